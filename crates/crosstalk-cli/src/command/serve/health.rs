//! `crosstalk serve --health`: whether the relay of a data folder is ready, for containers and supervisors.

use super::Overrides;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::relay::data::Data;
use crosstalk_envelope::unicode::escape;
use crosstalk_relay::server;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// How long the relay may take to answer.
const LIMIT: Duration = Duration::from_secs(4);

/// Asks the relay that runs on a data folder, wherever it listens.
pub(super) fn run(data: &Data, console: &mut Console) -> Result<Exit, Failure> {
    let at = data.folder().display();
    let said = data.last_said();
    let said = said.map_err(|e| Failure::at(data.folder(), e))?;
    // Where the lock can't be asked, the relay itself is.
    if !data.is_running().unwrap_or(true) {
        return Err(Failure::Failed(not_running(data)));
    }
    let said = said.unwrap_or_default();
    let place = Place::parse(&said).ok_or_else(|| {
        Failure::Failed(format!(
            "the relay on {at} is starting, and does not listen yet: ask again in a moment"
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

/// What is known about a relay that does not run.
fn not_running(data: &Data) -> String {
    let last = data.last_start();
    let mut text = format!("no relay is running on {}.", data.folder().display());
    let overrides = match &last.failure {
        Some(failed) => Overrides {
            file: failed.config.clone(),
            listen: failed.listen,
            name: failed.name.clone(),
        },
        None => Overrides {
            file: last.config,
            ..Overrides::default()
        },
    };
    match (last.failure, last.started_at) {
        (Some(failure), _) => text.push_str(&format!(
            " The last start failed on {}: {}. `{}` says whether it would work now",
            escape(&failure.at),
            escape(failure.reason.trim_end_matches('.')),
            overrides.command("--check", data),
        )),
        (None, Some(at)) => text.push_str(&format!(
            " The last one was started on {} and has ended. Start it with `{}`",
            escape(&at),
            overrides.command("", data),
        )),
        (None, None) => text.push_str(&format!(
            " Start one with `{}`, or name another folder with --data",
            overrides.command("", data),
        )),
    }
    text
}

/// Where a relay listens, as it is reached from its own machine.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Where it listens.
    bound: SocketAddr,
    /// Where it is reached.
    address: SocketAddr,
    is_tls: bool,
}

impl Place {
    /// Reads what a relay says about itself in the lock of its folder: a process, a URL, and its address.
    pub(super) fn parse(said: &str) -> Option<Self> {
        let mut parts = said.split(", ");
        let (_process, url, address) = (parts.next()?, parts.next()?, parts.next()?);
        let bound: SocketAddr = address.parse().ok()?;
        let ip = match bound.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        Some(Self {
            bound,
            address: SocketAddr::new(ip, bound.port()),
            is_tls: url.starts_with("https://"),
        })
    }

    /// Whether a relay that listens here keeps others from an address.
    pub(super) fn holds(&self, address: SocketAddr) -> bool {
        let (own, other) = (self.bound.ip(), address.ip());
        let is_same = own == other || own.is_unspecified() || other.is_unspecified();
        self.bound.port() == address.port() && is_same
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
            let place = Place::parse(said).map(|p| (p.address.to_string(), p.is_tls));
            let wanted = wanted.map(|(address, is_tls)| (address.to_owned(), is_tls));
            assert_eq!(place, wanted, "{said}");
        }
    }

    #[test]
    fn a_relay_holds_its_own_address() {
        let holds = |bound: &str, address: &str| {
            let place = Place::parse(&format!("process 7, http://x, {bound}")).unwrap();
            place.holds(address.parse().unwrap())
        };
        assert!(holds("127.0.0.1:80", "127.0.0.1:80"));
        assert!(holds("127.0.0.1:80", "0.0.0.0:80") && holds("0.0.0.0:80", "10.0.0.1:80"));
        assert!(!holds("127.0.0.1:80", "10.0.0.1:80") && !holds("127.0.0.1:80", "127.0.0.1:81"));
    }
}
