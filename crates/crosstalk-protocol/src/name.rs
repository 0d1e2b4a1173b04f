//! Simple names and the addresses that they stand for (ADR-010 to ADR-015).
//!
//! ```text
//! CLAUDE ── a URL? ── the local table ── the DNS, if it was asked ── a person
//! ```

use crate::dns::{AddressAnswer, Dnssec};
use crosstalk_envelope::name::same_name;
use crosstalk_envelope::{Address, Explanation};

/// How many names may stand for another name, one after the other.
const CHAIN: usize = 8;

/// The local table: simple names, and the address that each stands for. Names are compared without regard to ASCII
/// case, and kept as they were written.
///
/// ```
/// use crosstalk_protocol::NameTable;
/// let mut names = NameTable::default();
/// names.set("CLAUDE", "claude://session/abc123").unwrap();
/// assert_eq!(names.get("claude"), Some("claude://session/abc123"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameTable {
    entries: Vec<(String, String)>,
}

/// Why a name can't be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.explanation())]
pub enum NameError {
    /// The name is not valid, with the reason.
    Name(Explanation),
    /// The address is not valid, with the reason.
    Address(Explanation),
    /// The name would stand for itself, by way of these names.
    Loop(Vec<String>),
}

impl NameError {
    /// Explains what happened and what to do.
    pub fn explanation(&self) -> Explanation {
        match self {
            Self::Name(explanation) | Self::Address(explanation) => explanation.clone(),
            Self::Loop(way) => Explanation::fact(format!(
                "the name would stand for itself: {}",
                way.join(" → ")
            )),
        }
    }
}

impl NameTable {
    /// Says what a name stands for, in place of what it stood for so far.
    ///
    /// # Errors
    /// If the name is a URL or empty, the address can't be read, or the name would stand for itself.
    pub fn set(&mut self, name: &str, address: &str) -> Result<Option<String>, NameError> {
        check_entry(name, address)?;
        let mut changed = self.clone();
        let before = changed.put(name, address);
        if let NameWalk::Loop(way) = changed.walk(name) {
            return Err(NameError::Loop(way));
        }
        *self = changed;
        Ok(before)
    }

    /// Takes an entry over as it is: a table that a person wrote may lead in a circle, which [`resolve`] notices.
    ///
    /// # Errors
    /// If the name is a URL or empty, or the address can't be read.
    pub fn add(&mut self, name: &str, address: &str) -> Result<Option<String>, NameError> {
        check_entry(name, address)?;
        Ok(self.put(name, address))
    }

    fn put(&mut self, name: &str, address: &str) -> Option<String> {
        let before = self.remove(name);
        self.entries.push((name.to_owned(), address.to_owned()));
        before.map(|(_, address)| address)
    }

    /// Takes a name out, and gives it as it was written, with its address.
    pub fn remove(&mut self, name: &str) -> Option<(String, String)> {
        let position = self.entries.iter().position(|(n, _)| same_name(n, name))?;
        Some(self.entries.remove(position))
    }

    /// The address that a name stands for; it may be another name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.find(name).map(|(_, address)| address)
    }

    /// A name as it is written in the table, and its address.
    pub fn find(&self, name: &str) -> Option<(&str, &str)> {
        self.iter().find(|(n, _)| same_name(n, name))
    }

    /// Every name with its address.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.iter().map(|(n, a)| (n.as_str(), a.as_str()))
    }

    /// Whether there is no name in it.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The names that stand for an address, by themselves or by way of others.
    pub fn of_address<'n>(&'n self, address: &'n str) -> impl Iterator<Item = &'n str> {
        let leads = move |name: &str| matches!(self.walk(name), NameWalk::End(end) if same_name(end, address));
        self.iter()
            .map(|(name, _)| name)
            .filter(move |name| leads(name))
    }

    fn walk<'n>(&'n self, name: &'n str) -> NameWalk<'n> {
        let mut way = vec![name.to_owned()];
        let mut current = name;
        while Address::split(current).is_name() {
            let Some(next) = self.get(current) else { break };
            let is_known = way.iter().any(|n| same_name(n, next));
            way.push(next.to_owned());
            if is_known {
                return NameWalk::Loop(way);
            }
            if way.len() > CHAIN + 1 {
                return NameWalk::TooLong;
            }
            current = next;
        }
        NameWalk::End(current)
    }
}

enum NameWalk<'n> {
    End(&'n str),
    Loop(Vec<String>),
    TooLong,
}

fn check_entry(name: &str, address: &str) -> Result<(), NameError> {
    match Address::parse(name) {
        Err(fault) => Err(NameError::Name(Explanation::fact(format!(
            "`{name}` is no name: {fault}"
        )))),
        Ok(read) if !read.is_name() => Err(NameError::Name(Explanation::new(
            format!("`{name}` is a URL, which needs no name"),
            "give a simple name such as CLAUDE first",
        ))),
        Ok(_) if name.trim() != name => Err(NameError::Name(Explanation::fact(format!(
            "`{name}` begins or ends with a space: a simple name does not"
        )))),
        Ok(_) => Ok(()),
    }?;
    match Address::parse(address) {
        Err(fault) => Err(NameError::Address(Explanation::fact(format!(
            "`{address}` is no address: {fault}"
        )))),
        Ok(_) if address.trim() != address => Err(NameError::Address(Explanation::fact(format!(
            "`{address}` begins or ends with a space: an address does not"
        )))),
        Ok(_) => Ok(()),
    }
}

/// The receivers that a person typed: the parts between commas, if each of them is a name or an address; else the whole
/// text is one receiver.
///
/// ```
/// use crosstalk_protocol::split_receivers;
/// assert_eq!(split_receivers("chatgpt, claude://session/abc123"), ["chatgpt", "claude://session/abc123"]);
/// assert_eq!(split_receivers("chatgpt"), ["chatgpt"]);
/// assert_eq!(split_receivers("chatgpt,"), ["chatgpt,"]);
/// ```
pub fn split_receivers(typed: &str) -> Vec<&str> {
    let parts: Vec<&str> = typed.split(',').map(str::trim).collect();
    // The rest of a URL that has a comma in it is no name.
    let is_rest =
        |part: &str| Address::split(part).is_name() && part.contains(['/', '?', '#', '=', '&']);
    let is_party = |part: &&str| Address::parse(part).is_ok() && !is_rest(part);
    match parts.iter().all(is_party) {
        true => parts,
        false => vec![typed],
    }
}

/// One step on the way from a name to an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameStep {
    /// It is a URL already: there is nothing to resolve.
    Url {
        /// The URL.
        address: String,
    },
    /// The local table has it.
    Table {
        /// The name that was looked for.
        name: String,
        /// What it stands for.
        address: String,
    },
    /// The local table does not have it.
    NotInTable {
        /// The name that was looked for.
        name: String,
    },
    /// The local table leads in a circle.
    Loop {
        /// The names on the way, the first again at the end.
        way: Vec<String>,
    },
    /// The local table has more names in a row than anybody follows.
    TooLong {
        /// The name that was looked for.
        name: String,
    },
    /// The DNS lists it.
    Dns {
        /// Where the records are.
        at: String,
        /// The first one, which is used.
        address: String,
        /// The others, which are not.
        others: Vec<String>,
        /// The faults of records that hold no address.
        wrong: Vec<String>,
        /// The DNSSEC status of the answer.
        dnssec: Dnssec,
    },
    /// The DNS has nothing there.
    NotInDns {
        /// Where there is nothing.
        at: String,
        /// The DNSSEC status of the answer.
        dnssec: Dnssec,
    },
    /// The DNS has records there, and none can be used.
    DnsWrong {
        /// Why.
        reason: String,
    },
    /// The DNS did not answer for now.
    DnsUnavailable {
        /// Why.
        reason: String,
    },
    /// The DNS can't be asked for this name.
    DnsUnasked {
        /// Why.
        reason: String,
    },
    /// It stays a name, which a person resolves.
    Person {
        /// The name.
        name: String,
    },
}

impl NameStep {
    /// The word for it, as JSON has it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Url { .. } => "url",
            Self::Table { .. } => "table",
            Self::NotInTable { .. } => "not-in-table",
            Self::Loop { .. } => "table-loop",
            Self::TooLong { .. } => "table-too-long",
            Self::Dns { .. } => "dns",
            Self::NotInDns { .. } => "not-in-dns",
            Self::DnsWrong { .. } => "dns-wrong",
            Self::DnsUnavailable { .. } => "dns-unavailable",
            Self::DnsUnasked { .. } => "dns-unasked",
            Self::Person { .. } => "person",
        }
    }
}

/// The way from a text to an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// The name to resolve, as written.
    pub asked: String,
    /// The steps of the resolution, in order.
    pub steps: Vec<NameStep>,
    /// The URL, or the name that a person has to resolve.
    pub result: String,
}

impl Resolution {
    /// Whether it led to a URL.
    pub fn is_resolved(&self) -> bool {
        !Address::split(&self.result).is_name()
    }

    /// Whether it may lead somewhere later: the DNS did not answer.
    pub fn is_retry(&self) -> bool {
        self.steps
            .iter()
            .any(|s| matches!(s, NameStep::DnsUnavailable { .. }))
    }
}

/// The name that the DNS may be asked for: what the local table leaves of a text. Nothing for a URL, and nothing where
/// the table leads in a circle.
///
/// ```
/// use crosstalk_protocol::{NameTable, name_to_ask};
/// let mut names = NameTable::default();
/// names.set("BROTHER", "CLAUDE").unwrap();
/// assert_eq!(name_to_ask("brother", &names), Some("CLAUDE"));
/// assert_eq!(name_to_ask("claude://session/abc123", &names), None);
/// ```
pub fn name_to_ask<'n>(text: &'n str, names: &'n NameTable) -> Option<&'n str> {
    match names.walk(text) {
        NameWalk::End(end) if Address::split(end).is_name() => Some(end),
        _ => None,
    }
}

/// Resolves a sender or receiver: a URL is left alone; a simple name is looked for in the local table, then in the
/// answer of the DNS about [`name_to_ask`] if there is one; and else it stays a name.
///
/// ```
/// use crosstalk_protocol::{NameTable, resolve};
/// let mut names = NameTable::default();
/// names.set("CLAUDE", "claude://session/abc123").unwrap();
/// assert_eq!(resolve("claude", &names, None).result, "claude://session/abc123");
/// assert_eq!(resolve("BROTHER AI", &names, None).result, "BROTHER AI");
/// ```
pub fn resolve(text: &str, names: &NameTable, dns: Option<&AddressAnswer>) -> Resolution {
    let mut steps = Vec::new();
    let result = go(text, names, dns, &mut steps);
    Resolution {
        asked: text.to_owned(),
        steps,
        result,
    }
}

fn go(
    text: &str,
    names: &NameTable,
    dns: Option<&AddressAnswer>,
    steps: &mut Vec<NameStep>,
) -> String {
    if !Address::split(text).is_name() {
        let address = text.to_owned();
        steps.push(NameStep::Url { address });
        return text.to_owned();
    }
    let person = |steps: &mut Vec<NameStep>, name: &str| {
        let name = name.to_owned();
        steps.push(NameStep::Person { name: name.clone() });
        name
    };
    let end = match names.walk(text) {
        // A table that leads nowhere decides nothing: the name is what was asked for.
        NameWalk::Loop(way) => {
            steps.push(NameStep::Loop { way });
            return person(steps, text);
        }
        NameWalk::TooLong => {
            let name = text.to_owned();
            steps.push(NameStep::TooLong { name });
            return person(steps, text);
        }
        NameWalk::End(end) => end,
    };
    let mut current = text;
    while Address::split(current).is_name() {
        let name = current.to_owned();
        let Some(next) = names.get(current) else {
            steps.push(NameStep::NotInTable { name });
            break;
        };
        let address = next.to_owned();
        steps.push(NameStep::Table { name, address });
        current = next;
    }
    if !Address::split(end).is_name() {
        return end.to_owned();
    }
    match dns.cloned() {
        None => {}
        Some(AddressAnswer::Found {
            at,
            mut addresses,
            wrong,
            dnssec,
            ..
        }) if !addresses.is_empty() => {
            let address = addresses.remove(0);
            steps.push(NameStep::Dns {
                at,
                address: address.clone(),
                others: addresses,
                wrong,
                dnssec,
            });
            return address;
        }
        Some(AddressAnswer::Found { at, dnssec, .. } | AddressAnswer::Absent { at, dnssec }) => {
            steps.push(NameStep::NotInDns { at, dnssec });
        }
        Some(AddressAnswer::Wrong { reason }) => steps.push(NameStep::DnsWrong { reason }),
        Some(AddressAnswer::Unavailable { reason }) => {
            steps.push(NameStep::DnsUnavailable { reason });
        }
        Some(AddressAnswer::Unasked { reason }) => steps.push(NameStep::DnsUnasked { reason }),
    }
    person(steps, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(entries: &[(&str, &str)]) -> NameTable {
        let mut names = NameTable::default();
        for (name, address) in entries {
            names.add(name, address).unwrap();
        }
        names
    }

    fn way(resolution: &Resolution) -> Vec<&'static str> {
        resolution.steps.iter().map(NameStep::as_str).collect()
    }

    fn found(addresses: &[&str]) -> AddressAnswer {
        let records = addresses.iter().map(|a| Ok((*a).to_owned()));
        AddressAnswer::of_records("_crosstalk-addr.x.test", records, 60, Dnssec::Secure)
    }

    #[test]
    fn a_text_is_split_at_commas_only_between_names_and_addresses() {
        for (typed, parts) in [
            ("a,b", vec!["a", "b"]),
            ("A , Brother AI,c", vec!["A", "Brother AI", "c"]),
            (
                "claude://s/1,email:a@b.example",
                vec!["claude://s/1", "email:a@b.example"],
            ),
            ("a,", vec!["a,"]),
            (",", vec![","]),
            ("", vec![""]),
            ("a,,b", vec!["a,,b"]),
            ("tool://x/a?b=1,c=2", vec!["tool://x/a?b=1,c=2"]),
            ("claude://s/a,b/c", vec!["claude://s/a,b/c"]),
            ("a,b\u{7}", vec!["a,b\u{7}"]),
            ("a,claude://s/1 2", vec!["a,claude://s/1 2"]),
        ] {
            assert_eq!(split_receivers(typed), parts, "{typed}");
        }
    }

    #[test]
    fn the_table_comes_before_the_dns() {
        let names = table(&[("Claude", "claude://a")]);
        let dns = found(&["claude://b"]);
        for (text, answer, steps, result) in [
            ("mcp://x@y", Some(&dns), vec!["url"], "mcp://x@y"),
            ("CLAUDE", Some(&dns), vec!["table"], "claude://a"),
            (
                "BROTHER",
                Some(&dns),
                vec!["not-in-table", "dns"],
                "claude://b",
            ),
            ("BROTHER", None, vec!["not-in-table", "person"], "BROTHER"),
        ] {
            let resolution = resolve(text, &names, answer);
            assert_eq!(way(&resolution), steps, "{text}");
            assert_eq!(resolution.result, result);
            assert_eq!(resolution.asked, text);
        }
    }

    #[test]
    fn names_stand_for_names_but_not_for_themselves() {
        let names = table(&[("a", "B"), ("b", "c"), ("c", "claude://x")]);
        let resolution = resolve("A", &names, None);
        assert_eq!(way(&resolution), ["table", "table", "table"]);
        assert_eq!(resolution.result, "claude://x");
        let of: Vec<&str> = names.of_address("claude://x").collect();
        assert_eq!(of, ["a", "b", "c"]);

        let names = table(&[("a", "b"), ("b", "A"), ("c", "b")]);
        for text in ["a", "B", "c"] {
            let resolution = resolve(text, &names, Some(&found(&["claude://evil"])));
            assert_eq!(way(&resolution), ["table-loop", "person"], "{text}");
            assert_eq!(resolution.result, text);
            assert_eq!(name_to_ask(text, &names), None);
        }
        let circle = |way: &[&str]| NameStep::Loop {
            way: way.iter().map(|n| (*n).to_owned()).collect(),
        };
        let found = resolve("c", &names, None);
        assert_eq!(found.steps[0], circle(&["c", "b", "A", "b"]));
        let found = resolve("x", &table(&[("x", "X")]), None);
        assert_eq!(found.steps[0], circle(&["x", "X"]));

        let entries: Vec<(String, String)> = (0..20)
            .map(|n| (format!("n{n}"), format!("n{}", n + 1)))
            .collect();
        let entries: Vec<(&str, &str)> = entries
            .iter()
            .map(|(n, a)| (n.as_str(), a.as_str()))
            .collect();
        let long = table(&entries);
        assert_eq!(
            way(&resolve("n0", &long, None)),
            ["table-too-long", "person"]
        );
        assert_eq!(resolve("n12", &long, None).result, "n20");
        assert_eq!(resolve("n11", &long, None).result, "n11");
    }

    #[test]
    fn circular_name_is_rejected() {
        let mut names = table(&[("a", "b"), ("b", "c")]);
        let before = names.clone();
        let fault = names.set("C", "A").unwrap_err();
        assert!(fault.to_string().contains("C → A → b → c"), "{fault}");
        assert!(matches!(names.set("x", "X"), Err(NameError::Loop(_))));
        assert_eq!(names, before);
        assert_eq!(names.set("A", "claude://x"), Ok(Some("b".to_owned())));
        assert_eq!(names.iter().count(), 2);
        for (name, address) in [
            ("claude://x", "claude://y"),
            ("", "claude://y"),
            (" a", "claude://y"),
            ("a\nb", "claude://y"),
            ("a", ""),
            ("a", "tel:me"),
            ("a", "claude://"),
            ("a", "x\ny"),
        ] {
            assert!(names.set(name, address).is_err(), "{name:?} {address:?}");
        }
    }

    #[test]
    fn an_answer_that_did_not_come_is_not_the_same_as_none() {
        let names = NameTable::default();
        let reason = "SERVFAIL".to_owned();
        let later = resolve(
            "X",
            &names,
            Some(&AddressAnswer::Unavailable {
                reason: reason.clone(),
            }),
        );
        assert_eq!(way(&later), ["not-in-table", "dns-unavailable", "person"]);
        assert!(later.is_retry() && !later.is_resolved());
        let at = "x".to_owned();
        let dnssec = Dnssec::Secure;
        for (answer, step) in [
            (AddressAnswer::Absent { at, dnssec }, "not-in-dns"),
            (
                AddressAnswer::Wrong {
                    reason: reason.clone(),
                },
                "dns-wrong",
            ),
            (AddressAnswer::Unasked { reason }, "dns-unasked"),
        ] {
            let resolution = resolve("X", &names, Some(&answer));
            assert_eq!(way(&resolution), ["not-in-table", step, "person"]);
            assert!(!resolution.is_retry());
        }
    }
}
