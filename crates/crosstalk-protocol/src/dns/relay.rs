//! DNS records of the relays of a domain (HTP-080 to HTP-082).

use super::Dnssec;
use super::address::host_fault;
use crate::url::Url;

/// The priority of a relay that says nothing about it.
const PRIORITY: u16 = 10;
/// The prefix of every record.
const VERSION: &str = "v=crosstalk1";
/// The longest record that is read.
const LONGEST: usize = 2048;

/// A relay of a domain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RelayRecord {
    /// Relays with a smaller number are tried first.
    pub priority: u16,
    /// Its base URL, which ends with a slash.
    pub url: String,
}

impl RelayRecord {
    /// Reads a record. `http://` counts only where private addresses may be reached.
    ///
    /// ```
    /// use crosstalk_protocol::dns::RelayRecord;
    /// let record = RelayRecord::parse("v=crosstalk1; url=https://relay.example.com/; p=5", false).unwrap();
    /// assert_eq!((record.url.as_str(), record.priority), ("https://relay.example.com/", 5));
    /// assert!(RelayRecord::parse("v=crosstalk1; url=http://127.0.0.1:8799/", false).is_err());
    /// assert!(RelayRecord::parse("v=crosstalk1; url=http://127.0.0.1:8799/", true).is_ok());
    /// ```
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub fn parse(text: &str, allow_private: bool) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err(format!("it has more than {LONGEST} bytes"));
        }
        let mut fields = text.split(';').map(|f| f.trim_matches([' ', '\t']));
        if fields.next() != Some(VERSION) || text.starts_with([' ', '\t']) {
            return Err(format!("it does not begin with {VERSION}"));
        }
        let (mut url, mut priority) = (None, None);
        let fields: Vec<&str> = fields.collect();
        // A trailing semicolon is allowed.
        let fields = match fields.split_last() {
            Some((&"", rest)) => rest,
            _ => fields.as_slice(),
        };
        for field in fields {
            let (name, value) = field.split_once('=').ok_or("a field has no `=`")?;
            let is_name = (1..=16).contains(&name.len())
                && name
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
            if !is_name || !value.bytes().all(|b| b.is_ascii_graphic()) {
                return Err("a field is of another form than name=value".into());
            }
            let slot = match name {
                "url" => &mut url,
                "p" => &mut priority,
                _ => continue,
            };
            if slot.replace(value).is_some() {
                return Err(format!("`{name}` appears twice"));
            }
        }
        let url = url.ok_or("there is no `url`")?;
        if let Some(fault) = url_fault(url, allow_private) {
            return Err(fault);
        }
        let number = |p: &str| {
            p.bytes()
                .all(|b| b.is_ascii_digit())
                .then(|| p.parse().ok())
        };
        let priority = match priority.map(number) {
            None => PRIORITY,
            Some(Some(Some(number))) => number,
            Some(_) => return Err("`p` is a number from 0 to 65535".into()),
        };
        Ok(Self {
            priority,
            url: url.to_owned(),
        })
    }
}

/// The fault of the base URL of a relay, if it has one.
fn url_fault(url: &str, allow_private: bool) -> Option<String> {
    let is_private = allow_private && url.starts_with("http://");
    if !url.starts_with("https://") && !is_private {
        return Some("the URL does not begin with https://".into());
    }
    if url.contains(['@', '?', '#']) {
        return Some("the URL has a user, a query or a fragment".into());
    }
    if !url.ends_with('/') {
        return Some("the URL does not end with a slash".into());
    }
    Url::parse(url).err().map(|fault| fault.to_string())
}

/// The answer of the DNS about the relays of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RelayAnswer {
    /// The relays that are listed.
    Found {
        /// Where the records are.
        at: String,
        /// The relays, those that are tried first in front. There is at least one.
        relays: Vec<RelayRecord>,
        /// The faults of the other records.
        wrong: Vec<String>,
        /// For how many seconds the answer may be kept.
        ttl: u32,
        /// The DNSSEC status of the answer.
        dnssec: Dnssec,
    },
    /// There is no such name or no TXT record: the domain has no relay, and that is final.
    Absent {
        /// Where there is nothing.
        at: String,
        /// The DNSSEC status of the answer.
        dnssec: Dnssec,
    },
    /// There are records, and none names a relay: that is final, too.
    Wrong {
        /// The fault of the records.
        reason: String,
    },
    /// SERVFAIL, a time-out, a refusal, a broken DNSSEC chain: try later.
    Unavailable {
        /// The cause.
        reason: String,
    },
}

impl RelayAnswer {
    /// What some records say: an error in place of a text says why the record can't be read.
    ///
    /// ```
    /// use crosstalk_protocol::dns::{Dnssec, RelayAnswer};
    /// let records = [Ok("v=crosstalk1; url=https://relay.example.com/".to_owned())];
    /// let answer = RelayAnswer::of_records("_crosstalk.example.com", records, 300, Dnssec::Secure, false);
    /// assert!(matches!(answer, RelayAnswer::Found { relays, .. } if relays.len() == 1));
    /// ```
    pub fn of_records(
        at: &str,
        records: impl IntoIterator<Item = Result<String, String>>,
        ttl: u32,
        dnssec: Dnssec,
        allow_private: bool,
    ) -> Self {
        let (mut relays, mut wrong) = (Vec::new(), Vec::new());
        for record in records {
            match record.and_then(|text| RelayRecord::parse(&text, allow_private)) {
                Ok(relay) => relays.push(relay),
                Err(reason) => wrong.push(reason),
            }
        }
        relays.sort_unstable();
        relays.dedup();
        wrong.sort_unstable();
        let at = at.to_owned();
        match (relays.is_empty(), wrong.first()) {
            (true, None) => Self::Absent { at, dnssec },
            (true, Some(first)) => Self::Wrong {
                reason: format!("{at}: no TXT record names a relay; one of them: {first}"),
            },
            (false, _) => Self::Found {
                at,
                relays,
                wrong,
                ttl,
                dnssec,
            },
        }
    }
}

/// The order in which relays are tried: by priority, those with the same one by chance. `random` gives any number.
///
/// ```
/// use crosstalk_protocol::dns::{RelayRecord, relay_order};
/// let relay = |p: u16, url: &str| RelayRecord { priority: p, url: url.into() };
/// let relays = [relay(20, "https://c/"), relay(10, "https://a/"), relay(10, "https://b/")];
/// let order = relay_order(&relays, || 1);
/// assert_eq!(order.last().map(|r| r.url.as_str()), Some("https://c/"));
/// ```
pub fn relay_order(relays: &[RelayRecord], mut random: impl FnMut() -> u64) -> Vec<&RelayRecord> {
    let mut order: Vec<(u16, u64, &RelayRecord)> =
        relays.iter().map(|r| (r.priority, random(), r)).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, _, relay)| relay).collect()
}

/// Where a domain lists its relays, or why the DNS can't be asked for it.
///
/// ```
/// use crosstalk_protocol::dns::relay_name;
/// assert_eq!(relay_name("Example.com").unwrap(), "_crosstalk.example.com");
/// assert!(relay_name("192.0.2.1").is_err());
/// ```
///
/// # Errors
/// A sentence that says what is wrong with the domain.
pub fn relay_name(domain: &str) -> Result<String, String> {
    let host = domain
        .strip_suffix('.')
        .unwrap_or(domain)
        .to_ascii_lowercase();
    let full = format!("_crosstalk.{host}");
    match host_fault(&host) {
        None if full.len() <= 253 => Ok(full),
        None => Err("the domain is too long for the DNS".into()),
        Some(fault) => Err(format!("it is no domain: {fault}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_or_refused() {
        let url = |text: &str| RelayRecord::parse(text, false).map(|r| r.url);
        for good in [
            "v=crosstalk1;url=https://a.example/",
            "v=crosstalk1 ;\turl=https://a.example/ ; ",
            "v=crosstalk1; note=x; url=https://a.example:8443/relay/; p=0",
            "v=crosstalk1; url=https://192.0.2.1/",
            "v=crosstalk1; url=https://[2001:db8::1]:443/",
        ] {
            assert!(url(good).is_ok(), "{good}: {:?}", url(good));
        }
        for bad in [
            "",
            "v=crosstalk1",
            "v=crosstalk1; p=5",
            "v=crosstalk2; url=https://a.example/",
            " v=crosstalk1; url=https://a.example/",
            "url=https://a.example/; v=crosstalk1",
            "v=crosstalk1 url=https://a.example/",
            "v=crosstalk1; url=https://a.example",
            "v=crosstalk1; url=http://a.example/",
            "v=crosstalk1; url=https://a.example/?x/",
            "v=crosstalk1; url=https://u@a.example/",
            "v=crosstalk1; url=https:///",
            "v=crosstalk1; url=https://a.example:0/",
            "v=crosstalk1; url=https://a.example:x/",
            "v=crosstalk1; url=https://[::zz]/",
            "v=crosstalk1; url=https://a/; url=https://b/",
            "v=crosstalk1; url=https://a/; p=1; p=2",
            "v=crosstalk1; url=https://a/; p=65536",
            "v=crosstalk1; url=https://a/; p=-1",
            "v=crosstalk1; url=https://a/; p=",
            "v=crosstalk1; URL=https://a/",
            "v=crosstalk1;; url=https://a/",
            "v=crosstalk1; url=https://a/ b/",
        ] {
            assert!(url(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn chance_decides_within_a_priority_only() {
        let relay = |priority, url: &str| RelayRecord {
            priority,
            url: url.into(),
        };
        let relays = [
            relay(5, "https://a/"),
            relay(5, "https://b/"),
            relay(1, "https://c/"),
        ];
        let mut firsts = std::collections::BTreeSet::new();
        for seed in 0..8_u64 {
            let mut state = seed;
            let order = relay_order(&relays, || {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                state >> 33
            });
            assert_eq!(order[0].url, "https://c/");
            firsts.insert(order[1].url.clone());
        }
        assert_eq!(firsts.len(), 2);
    }
}
