//! The first lines of a relay: where it listens, where its data is, who may come in, and how to begin.

use crate::console::{BOLD, Console, DIM, styled};
use crate::failure::Failure;
use crate::service::relay::data::Data;
use crate::service::relay::log::LogFormat;
use crate::service::relay::token::NARROW_TOKEN;
use crosstalk_envelope::unicode::escape;
use crosstalk_relay::config::Config;
use std::net::SocketAddr;

/// What there is to say at the start.
pub(super) struct Greeting<'g> {
    pub(super) config: &'g Config,
    pub(super) data: &'g Data,
    /// Where it listens indeed.
    pub(super) address: SocketAddr,
    /// How many tokens count.
    pub(super) tokens: usize,
}

impl Greeting<'_> {
    /// The URL of the relay, from this machine.
    pub(super) fn url(&self) -> String {
        let scheme = match self.config.tls {
            Some(_) => "https",
            None => "http",
        };
        // Nobody connects to "any address".
        let host = match (
            self.address.ip().is_unspecified(),
            self.config.tls.is_some(),
        ) {
            (true, true) => self.config.name.clone(),
            (true, false) if self.address.is_ipv6() => "[::1]".to_owned(),
            (true, false) => "127.0.0.1".to_owned(),
            (false, _) if self.address.is_ipv6() => format!("[{}]", self.address.ip()),
            (false, _) => self.address.ip().to_string(),
        };
        format!("{scheme}://{host}:{}", self.address.port())
    }

    /// What others are told who try to start a relay here.
    pub(super) fn short(&self) -> String {
        format!(
            "process {}, {}, {}",
            std::process::id(),
            self.url(),
            self.address
        )
    }

    fn needs_tls(&self) -> bool {
        self.config.tls.is_none() && !self.address.ip().is_loopback()
    }

    /// Tells it: to people in sentences, to programs in the log, and the URL alone to whoever reads stdout.
    pub(super) fn tell(&self, console: &mut Console, format: LogFormat) -> Result<(), Failure> {
        let url = self.url();
        match format {
            LogFormat::Text => console.talk(&self.text())?,
            LogFormat::Json => tracing::info!(
                url,
                listen = %self.address,
                name = %self.config.name,
                data = %self.data.folder().display(),
                tokens = self.tokens,
                version = env!("CARGO_PKG_VERSION"),
                "listening"
            ),
        }
        const ADVICE: &str = "what is sent can be read on its way: set [tls] in relay.toml, or put a proxy with TLS in front \
                              and listen on loopback";
        match (self.needs_tls(), format) {
            (true, LogFormat::Text) => console.warning(ADVICE)?,
            (true, LogFormat::Json) => tracing::warn!(listen = %self.address, "{ADVICE}"),
            (false, _) => {}
        }
        if !console.is_terminal() {
            console.data(format!("{url}\n"))?;
            console.flush()?;
        }
        Ok(())
    }

    fn text(&self) -> String {
        let url = self.url();
        let list = self.data.command("token list");
        let who = match self.tokens {
            0 => format!(
                "Everyone on this machine is the local person; a first token changes that: `{}`.",
                self.data.command(NARROW_TOKEN)
            ),
            1 => format!("One token lets people and agents in; `{list}` shows it."),
            n => format!("{n} tokens let people and agents in; `{list}` shows them."),
        };
        format!(
            "The relay {} listens on {}\nIts data is in {}\n{who}\n{}\n",
            escape(&self.config.name),
            styled(BOLD, &url),
            self.data.shown(),
            styled(
                DIM,
                &format!(
                    "A first message:  crosstalk send claude \"Are you there?\" --relay {url}\n\
                     What waits there: crosstalk inbox --relay {url} --for CLAUDE\n\
                     Ctrl-C ends it."
                )
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(address: &str, tls: bool) -> String {
        let tls = tls.then(|| crosstalk_relay::config::Tls {
            certificate: "c".into(),
            key: "k".into(),
        });
        let config = Config {
            name: "relay.example".into(),
            tls,
            ..Config::default()
        };
        let greeting = Greeting {
            config: &config,
            data: &Data::at("/x".into()),
            address: address.parse().unwrap(),
            tokens: 0,
        };
        greeting.url()
    }

    #[test]
    fn the_url_is_one_that_can_be_used() {
        for (address, tls, wanted) in [
            ("127.0.0.1:8799", false, "http://127.0.0.1:8799"),
            ("[::1]:8799", false, "http://[::1]:8799"),
            ("0.0.0.0:80", false, "http://127.0.0.1:80"),
            ("[::]:80", false, "http://[::1]:80"),
            ("0.0.0.0:443", true, "https://relay.example:443"),
        ] {
            assert_eq!(url(address, tls), wanted);
        }
    }
}
