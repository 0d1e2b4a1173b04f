//! Asks domains for their keys: only with --dns, and not again while an answer is valid (TRU-020 to TRU-025).

use crate::clock;
use crate::console::{Console, YELLOW, styled};
use crate::failure::Failure;
use crate::service::home::KeysAndTrust;
use clap::Args;
use crosstalk_dns::{Dns, Options};
use crosstalk_envelope::registry::{Rule, rule};
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{Document, Timestamp};
use crosstalk_protocol::dns::{DnsAnswer, Dnssec};
use crosstalk_protocol::{Trust, Verdict, VerdictWord, VerifyContext, domain_to_ask, verify};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// Whether and which name servers to ask.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct DnsOptions {
    /// Ask the domain of the key id for its keys. Without this, the command asks no name server
    #[arg(long)]
    pub(crate) dns: bool,
    /// Ask this name server, and not those of the system
    #[arg(long, value_name = "ADDR[:PORT]", value_parser = server, requires = "dns")]
    pub(crate) dns_server: Option<SocketAddr>,
    /// Check DNSSEC against the DNSKEY records of this file, and not those of the root
    #[arg(long, value_name = "FILE", requires = "dns")]
    pub(crate) dns_anchor: Option<PathBuf>,
    /// An answer that DNSSEC does not protect vouches for nothing
    #[arg(long, requires = "dns")]
    pub(crate) require_dnssec: bool,
}

/// Reads `192.0.2.53`, `192.0.2.53:5353`, `2001:db8::53` or `[2001:db8::53]:5353`.
pub(crate) fn server(text: &str) -> Result<SocketAddr, String> {
    let bare = text.parse().map(|ip: IpAddr| SocketAddr::new(ip, 53));
    bare.or_else(|_| text.parse())
        .map_err(|_| "write it as 192.0.2.53, 192.0.2.53:5353 or [2001:db8::53]:5353".to_owned())
}

/// Answers of this run, on top of the kept ones.
#[derive(Debug)]
pub(crate) struct DnsLookup<'l> {
    look: &'l DnsOptions,
    rooms: &'l KeysAndTrust,
    dns: Option<Dns>,
    answers: Vec<(String, DnsAnswer)>,
}

impl<'l> DnsLookup<'l> {
    /// Prepares to ask, if it was asked for. Nothing is sent yet.
    pub(crate) fn new(look: &'l DnsOptions, rooms: &'l KeysAndTrust) -> Result<Self, Failure> {
        let dns = match look.dns {
            true => Some(look.connect()?),
            false => None,
        };
        Ok(Self {
            look,
            rooms,
            dns,
            answers: Vec::new(),
        })
    }

    /// The kept answer of a domain, if it may be used.
    pub(crate) fn holds(&self, domain: &str, trust: &Trust, at: Timestamp) -> bool {
        let kept = trust.domain(domain, at);
        kept.is_some_and(|d| !self.look.require_dnssec || d.dnssec == Dnssec::Secure)
    }

    /// Asks a domain once per run and keeps the answer. Nothing without --dns.
    pub(crate) fn ask(
        &mut self,
        console: &mut Console,
        domain: &str,
        trust: &mut Trust,
    ) -> Result<Option<DnsAnswer>, Failure> {
        let Some(dns) = &self.dns else {
            return Ok(None);
        };
        if let Some((_, answer)) = self.answers.iter().find(|(name, _)| name == domain) {
            return Ok(Some(answer.clone()));
        }
        let answer = dns.keys_blocking(domain);
        let now = clock::now();
        trust.remember(domain, &answer, now);
        let kept = self.rooms.trust.update(|trust| {
            trust.remember(domain, &answer, now);
            Ok::<(), crosstalk_store::TrustStoreError>(())
        });
        if let Err(fault) = kept {
            let word = styled(YELLOW, "warning");
            let fault = fault.to_string();
            console.talk(&format!(
                "{word}: the answer of {domain} is not kept: {}\n",
                escape(&fault)
            ))?;
        }
        self.answers.push((domain.to_owned(), answer.clone()));
        Ok(Some(answer))
    }

    /// Verifies an envelope; asks the domain of its key if the options allow it and the verdict needs it.
    pub(crate) fn judge(
        &mut self,
        console: &mut Console,
        document: &Document<'_>,
        trust: &mut Trust,
        question: &VerifyContext<'_>,
    ) -> Result<Verdict, Failure> {
        let domain = match question.key {
            Some(_) => None,
            None => domain_to_ask(document).filter(|_| self.look.dns),
        };
        let mut answer = None;
        if let Some(domain) = domain
            && !self.holds(domain, trust, question.at)
        {
            answer = self.ask(console, domain, trust)?;
        }
        let question = VerifyContext {
            dns: answer.as_ref(),
            require_dnssec: self.look.require_dnssec,
            ..*question
        };
        let verdict = verify(document, trust, &question);
        match domain {
            // The cached keys speak against the message, but the domain may have changed them since.
            Some(domain) if is_unlisted(&verdict) && !self.was_asked(domain) => {
                let answer = self.ask(console, domain, trust)?;
                let question = VerifyContext {
                    dns: answer.as_ref(),
                    ..question
                };
                Ok(verify(document, trust, &question))
            }
            _ => Ok(verdict),
        }
    }

    /// Whether a domain was asked in this run.
    fn was_asked(&self, domain: &str) -> bool {
        self.answers.iter().any(|(name, _)| name == domain)
    }
}

impl DnsOptions {
    /// Prepares to ask. Nothing is sent yet.
    pub(crate) fn connect(&self) -> Result<Dns, Failure> {
        let mut options = Options::default();
        if let Some(path) = &self.dns_anchor {
            let text = std::fs::read_to_string(path).map_err(|e| Failure::at(path, e))?;
            options.anchor = Some(text);
        }
        Ok(match self.dns_server {
            Some(address) => Dns::server(address, options)?,
            None => Dns::system(options)?,
        })
    }
}

/// Whether the keys that a domain listed are what speaks against the message.
fn is_unlisted(verdict: &Verdict) -> bool {
    const RULES: [&Rule; 3] = [
        &rule::DNS_OTHER_KEY,
        &rule::SIGNATURE_UNFIT,
        &rule::ALGORITHM_OF_KEY,
    ];
    verdict.word() == VerdictWord::NotVerified && verdict.rule().is_some_and(|r| RULES.contains(&r))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_an_address_with_or_without_a_port() {
        for (text, address) in [
            ("192.0.2.53", "192.0.2.53:53"),
            ("192.0.2.53:5353", "192.0.2.53:5353"),
            ("2001:db8::53", "[2001:db8::53]:53"),
            ("[2001:db8::53]:5353", "[2001:db8::53]:5353"),
        ] {
            assert_eq!(server(text).unwrap().to_string(), address);
        }
        assert!(server("dns.example.com").is_err());
    }
}
