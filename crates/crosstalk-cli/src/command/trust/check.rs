//! `crosstalk trust check`: what is believed, why, and what is wrong with it.

use super::view::{self, Remark};
use crate::clock;
use crate::console::{BOLD, Console, RED, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::dns::{Look, Lookup};
use crate::service::home::Rooms;
use clap::Args;
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::dns::{DnsAnswer, Dnssec, domain_of};
use crosstalk_protocol::{Domain, KnownKey, Origin, Standing, Trust};

/// A grace period that ends sooner is worth a word.
const SOON: u32 = 7;

/// Look through what is known, and say what is wrong
///
/// Without ids, everything. With --dns, the domains of the keys are asked. The exit code is 1 if something is wrong:
/// a key that its domain does not list, one that counts for nobody, an id that is not known.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk trust check\n  crosstalk trust check --dns alice@example.com"
)]
pub(super) struct Check {
    /// Only these ids
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Print JSON of the form crosstalk.trust-list/1
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    look: Look,
}

impl Check {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let rooms = Rooms::open()?;
        let known = rooms.trust()?;
        let mut trust = known.clone();
        let mut lookup = Lookup::new(&self.look, &rooms)?;
        let now = clock::now();
        let is_meant = |id: &str| self.ids.is_empty() || self.ids.iter().any(|i| i == id);
        let mut keys: Vec<(&KnownKey, Vec<Remark>)> = Vec::new();
        for key in known.keys().iter().filter(|k| is_meant(&k.id)) {
            let mut remarks = standing(&known, key, now);
            if key.standing == Standing::Active
                && let Some(domain) = domain_of(&key.id)
            {
                let answer = match lookup.holds(domain, &trust, now) {
                    true => None,
                    false => lookup.ask(console, domain, &mut trust)?,
                };
                remarks.extend(self.domain(key, domain, answer.as_ref(), &trust, now));
            }
            keys.push((key, remarks));
        }
        let missing = self.ids.iter().filter(|id| known.of_id(id).is_empty());
        let missing: Vec<Remark> = missing
            .map(|id| Remark::wrong(format!("no key of {id} is known")))
            .collect();
        if self.json {
            let names = keys.iter().filter_map(|(k, _)| domain_of(&k.id));
            let names: Vec<&str> = names.collect();
            let is_named = |d: &&Domain| names.iter().any(|n| n.eq_ignore_ascii_case(&d.name));
            let domains: Vec<&Domain> = trust.domains().iter().filter(is_named).collect();
            console.data(view::report(&keys, &domains, &missing)?)?;
        } else {
            for (key, remarks) in &keys {
                console.show(&view::key(key, remarks))?;
            }
            for remark in &missing {
                console.show(&format!(
                    "{}: {}\n",
                    styled(RED, "wrong"),
                    styled(BOLD, &escape(&remark.text))
                ))?;
            }
            if keys.is_empty() && missing.is_empty() {
                console.talk("no key is known: there is nothing to check\n")?;
            }
        }
        let all = keys.iter().flat_map(|(_, remarks)| remarks).chain(&missing);
        Ok(match all.into_iter().any(|r| r.wrong) {
            true => Exit::FAILURE,
            false => Exit::SUCCESS,
        })
    }

    /// What the domain says about a key.
    fn domain(
        &self,
        key: &KnownKey,
        domain: &str,
        answer: Option<&DnsAnswer>,
        trust: &Trust,
        now: Timestamp,
    ) -> Option<Remark> {
        let (keys, dnssec) = match answer {
            Some(DnsAnswer::Keys { keys, dnssec, .. }) => (keys.as_slice(), *dnssec),
            Some(DnsAnswer::Absent { .. }) => {
                return Some(Remark::wrong(format!("{domain} lists no key")));
            }
            Some(DnsAnswer::Wrong { reason }) => {
                let text = format!("{domain} lists no key that can be read: {reason}");
                return Some(Remark::wrong(text));
            }
            Some(DnsAnswer::Unavailable { reason }) => {
                let text = format!("{domain} could not be asked: {reason}");
                return Some(Remark::wrong(text));
            }
            None => match trust.domain(domain, now) {
                Some(kept) => (kept.keys.as_slice(), kept.dnssec),
                None if key.how == Origin::Dns || knows(trust, domain) => {
                    let text = format!("what {domain} said is out of date: ask again with --dns");
                    return Some(Remark::note(text));
                }
                None => return None,
            },
        };
        Some(if !keys.contains(&key.key) {
            Remark::wrong(format!("{domain} lists other keys, and not this one"))
        } else if self.look.require_dnssec && dnssec != Dnssec::Secure {
            let text = format!("{domain} lists this key, and DNSSEC does not protect that");
            Remark::wrong(text)
        } else {
            let text = format!("{domain} lists this key (DNSSEC: {})", dnssec.as_str());
            Remark::note(text)
        })
    }
}

/// Whether a domain has answered before.
fn knows(trust: &Trust, domain: &str) -> bool {
    let domains = trust.domains();
    domains.iter().any(|d| d.name.eq_ignore_ascii_case(domain))
}

/// What is to say about a key without asking anybody.
fn standing(trust: &Trust, known: &KnownKey, now: Timestamp) -> Vec<Remark> {
    let mut remarks = Vec::new();
    if let Some(reason) = known.key.denied() {
        let text = format!("the key counts for nobody: it was {reason}");
        remarks.push(Remark::wrong(text));
    }
    let revoked = |k: &&KnownKey| {
        k.key == known.key && k.id != known.id && matches!(k.standing, Standing::Revoked { .. })
    };
    if let Some(other) = trust.keys().iter().find(revoked) {
        let text = format!("the same key was revoked under the id {}", other.id);
        remarks.push(Remark::wrong(text));
    }
    match &known.standing {
        Standing::Active if known.how == Origin::FirstContact => {
            let text = "its fingerprint was not compared with anybody: do that, and pin it again with --compared";
            remarks.push(Remark::note(text));
        }
        Standing::Replaced { by, key, grace, .. } => {
            if trust.entry(by, key).is_none() {
                let text = format!("the key of {by} that took its place is not known");
                remarks.push(Remark::wrong(text));
            }
            if *grace < now {
                remarks.push(Remark::note("its grace period has ended"));
            } else if *grace < clock::days_after(now, SOON) {
                remarks.push(Remark::note(format!("its grace period ends on {grace}")));
            }
        }
        _ => {}
    }
    remarks
}
