//! `crosstalk serve --health`: whether the relay of a data folder is ready, for containers and supervisors.

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::relay::data::Data;
use crosstalk_relay::server;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// How long the relay may take to answer.
const LIMIT: Duration = Duration::from_secs(4);

/// Asks the relay that runs on a data folder, wherever it listens.
pub(super) fn run(data: &Data, console: &mut Console) -> Result<Exit, Failure> {
    let at = data.folder().display();
    let said = data.last_said();
    let said = said.map_err(|e| Failure::Io(data.folder().to_string_lossy().into_owned(), e))?;
    let said = said.ok_or_else(|| {
        Failure::Failed(format!(
            "no relay has run on {at}: start one with `crosstalk serve`, or name another folder with --data"
        ))
    })?;
    let place = Place::parse(&said).ok_or_else(|| {
        Failure::Failed(format!(
            "the relay on {at} does not say where it listens yet: try again"
        ))
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::Io("a connection".into(), e))?;
    match runtime.block_on(server::probe(place.address, place.is_tls, LIMIT)) {
        Ok(()) => {
            console.talk("ready\n")?;
            Ok(Exit::SUCCESS)
        }
        Err(fault) => Err(Failure::Failed(format!(
            "the relay on {at} ({said}): {fault}. Its log says more"
        ))),
    }
}

/// Where a relay listens, as it is reached from its own machine.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    address: SocketAddr,
    is_tls: bool,
}

impl Place {
    /// Reads what a relay says about itself in the lock of its folder: a process, a URL, and its address.
    fn parse(said: &str) -> Option<Self> {
        let mut parts = said.split(", ");
        let (_process, url, address) = (parts.next()?, parts.next()?, parts.next()?);
        let address: SocketAddr = address.parse().ok()?;
        let ip = match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        Some(Self {
            address: SocketAddr::new(ip, address.port()),
            is_tls: url.starts_with("https://"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relay_is_asked_where_it_listens() {
        for (said, wanted) in [
            (
                "process 7, http://127.0.0.1:80, 127.0.0.1:80",
                Some(("127.0.0.1:80", false)),
            ),
            (
                "process 7, https://relay.example:443, 0.0.0.0:443",
                Some(("127.0.0.1:443", true)),
            ),
            (
                "process 7, https://relay.example:443, [::]:443",
                Some(("[::1]:443", true)),
            ),
            (
                "process 7, https://10.0.0.1:443, 10.0.0.1:443",
                Some(("10.0.0.1:443", true)),
            ),
            ("", None),
            ("process 7, http://127.0.0.1:80", None),
        ] {
            let wanted = wanted.map(|(address, is_tls)| Place {
                address: address.parse().unwrap(),
                is_tls,
            });
            assert_eq!(Place::parse(said), wanted, "{said}");
        }
    }
}
