//! From what the resolver got to what it means for the keys, addresses or relays of a domain.

use crosstalk_envelope::PublicKey;
use crosstalk_protocol::dns::{AddressAnswer, DnsAnswer, Dnssec};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::{DnsError, NetError, NoRecords};
use hickory_resolver::proto::dnssec::Proof;
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::rdata::{CNAME, TXT};
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use std::net::IpAddr;

/// How many TXT records a domain may have there.
const RECORDS: usize = 64;
/// How many bytes a record may have, its strings joined.
const BYTES: usize = 4096;
/// How many names may stand for another name, one after the other.
const ALIASES: usize = 8;

/// Whether an answer was validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validation {
    /// Its records say what came out.
    Yes,
    /// There was no chain to check it with.
    No,
}

/// The TXT records at a name, whatever they are for.
#[derive(Debug)]
pub enum TxtRecords {
    /// There are some: the text of each, or why it can't be read.
    Texts {
        texts: Vec<Result<String, String>>,
        ttl: u32,
        dnssec: Dnssec,
    },
    /// There are none: final.
    Absent { dnssec: Dnssec },
    /// There are more than anybody reads.
    Wrong { reason: String },
    /// No server gave an answer that counts.
    Unavailable { reason: String },
}

/// The answer about the keys at `name`.
pub fn keys(name: &Name, found: TxtRecords) -> DnsAnswer {
    let (texts, ttl, dnssec) = match found {
        TxtRecords::Texts { texts, ttl, dnssec } => (texts, ttl, dnssec),
        TxtRecords::Absent { dnssec } => return DnsAnswer::Absent { dnssec },
        TxtRecords::Wrong { reason } => return DnsAnswer::Wrong { reason },
        TxtRecords::Unavailable { reason } => return DnsAnswer::Unavailable { reason },
    };
    let count = texts.len();
    let mut keys = Vec::new();
    let mut fault = None;
    for text in texts {
        let key = text.and_then(|t| PublicKey::parse_record(&t).map_err(|e| e.to_string()));
        match key {
            Ok(key) if keys.contains(&key) => {}
            Ok(key) => keys.push(key),
            Err(reason) => {
                fault.get_or_insert(reason);
            }
        }
    }
    if !keys.is_empty() {
        return DnsAnswer::Keys { keys, ttl, dnssec };
    }
    let (name, fault) = (plain(name), fault.unwrap_or_default());
    let reason = match count {
        1 => format!("{name}: the TXT record is no key: {fault}"),
        _ => format!("{name}: none of the {count} TXT records is a key; the first: {fault}"),
    };
    DnsAnswer::Wrong { reason }
}

/// The answer about the addresses at `name`.
pub fn addresses(name: &Name, found: TxtRecords) -> AddressAnswer {
    let at = plain(name);
    match found {
        TxtRecords::Texts { texts, ttl, dnssec } => {
            AddressAnswer::of_records(&at, texts, ttl, dnssec)
        }
        TxtRecords::Absent { dnssec } => AddressAnswer::Absent { at, dnssec },
        TxtRecords::Wrong { reason } => AddressAnswer::Wrong { reason },
        TxtRecords::Unavailable { reason } => AddressAnswer::Unavailable { reason },
    }
}

/// The texts at `name` that may be records of relays; none if there are none. An error is temporary.
pub fn relays(found: TxtRecords) -> Result<Vec<String>, String> {
    match found {
        TxtRecords::Texts { texts, .. } => Ok(texts.into_iter().filter_map(Result::ok).collect()),
        TxtRecords::Absent { .. } | TxtRecords::Wrong { .. } => Ok(Vec::new()),
        TxtRecords::Unavailable { reason } => Err(reason),
    }
}

/// The addresses of a host that the resolver found; none if there are none. An error is temporary.
pub fn hosts(
    name: &Name,
    result: Result<Lookup, NetError>,
    checked: Validation,
) -> Result<Vec<IpAddr>, String> {
    let reason = |found| match found {
        TxtRecords::Unavailable { reason } => Err(reason),
        _ => Ok(Vec::new()),
    };
    let lookup = match result {
        Ok(lookup) => lookup,
        Err(NetError::Dns(DnsError::NoRecordsFound(no))) => {
            return reason(absent(name, &no, checked));
        }
        Err(NetError::Dns(DnsError::Nsec {
            proof: Proof::Insecure,
            response,
            ..
        })) if response.answers.is_empty() => return Ok(Vec::new()),
        Err(error) => return reason(failure(name, &error)),
    };
    let records = lookup.answers();
    let Some((end, aliases)) = Chain::aliases(name, records) else {
        return reason(unavailable(name, "the answer does not fit the question"));
    };
    let found: Vec<(&Record, IpAddr)> = records
        .iter()
        .filter(|r| r.name == *end)
        .filter_map(|r| match &r.data {
            RData::A(a) => Some((r, IpAddr::V4(a.0))),
            RData::AAAA(a) => Some((r, IpAddr::V6(a.0))),
            _ => None,
        })
        .collect();
    let all = aliases.into_iter().chain(found.iter().map(|(r, _)| *r));
    if checked == Validation::Yes && weakest(all).is_none() {
        return reason(broken(name));
    }
    Ok(found.into_iter().take(RECORDS).map(|(_, a)| a).collect())
}

/// The mail servers that the resolver found, the preferred one first; none if there are none. An error is temporary.
pub fn mail_servers(
    name: &Name,
    result: Result<Lookup, NetError>,
    checked: Validation,
) -> Result<Vec<String>, String> {
    let lookup = match result {
        Ok(lookup) => lookup,
        Err(error) => return relays(read(name, Err(error), checked)),
    };
    let records = lookup.answers();
    let mut servers: Vec<_> = records
        .iter()
        .filter_map(|record| match &record.data {
            RData::MX(mx) => Some((mx.preference, mx.exchange.to_ascii())),
            _ => None,
        })
        .collect();
    if checked == Validation::Yes && weakest(records.iter()).is_none() {
        return relays(broken(name));
    }
    servers.sort();
    let hosts = servers.into_iter().take(RECORDS).map(|(_, host)| host);
    // A single dot says that the domain takes no mail (RFC 7505).
    let hosts = hosts.map(|host| host.trim_end_matches('.').to_owned());
    Ok(hosts.filter(|host| !host.is_empty()).collect())
}

/// Reads the TXT records at `name` from the resolver's result.
pub fn read(name: &Name, result: Result<Lookup, NetError>, checked: Validation) -> TxtRecords {
    match result {
        Ok(lookup) => present(name, lookup.answers(), checked),
        Err(NetError::Dns(DnsError::NoRecordsFound(no))) => absent(name, &no, checked),
        // Signed, and the proof that something is not there holds for an unsigned part only.
        Err(NetError::Dns(DnsError::Nsec {
            response,
            proof: Proof::Insecure,
            ..
        })) => {
            if response.answers.is_empty() {
                TxtRecords::Absent {
                    dnssec: Dnssec::Insecure,
                }
            } else {
                match present(name, &response.answers, checked) {
                    TxtRecords::Texts { texts, ttl, .. } => TxtRecords::Texts {
                        texts,
                        ttl,
                        dnssec: Dnssec::Insecure,
                    },
                    other => other,
                }
            }
        }
        Err(error) => failure(name, &error),
    }
}

/// No server gave an answer that counts.
pub fn failure(name: &Name, error: &NetError) -> TxtRecords {
    let what = match error {
        NetError::Timeout => "no name server answered in time".to_owned(),
        NetError::NoConnections => "no name server could be reached".to_owned(),
        NetError::Dns(DnsError::DnssecBogus | DnsError::Nsec { .. }) => {
            return broken(name);
        }
        NetError::Dns(DnsError::ResponseCode(ResponseCode::ServFail)) => {
            "the name server reports a failure (SERVFAIL)".to_owned()
        }
        NetError::Dns(DnsError::ResponseCode(ResponseCode::Refused)) => {
            "the name server refuses to answer (REFUSED)".to_owned()
        }
        NetError::Dns(DnsError::ResponseCode(code)) => {
            format!("the name server answers with an error: {code}")
        }
        other => other.to_string(),
    };
    unavailable(name, &what)
}

fn unavailable(name: &Name, what: &str) -> TxtRecords {
    TxtRecords::Unavailable {
        reason: format!("{}: {what}", plain(name)),
    }
}

fn broken(name: &Name) -> TxtRecords {
    unavailable(
        name,
        "DNSSEC is broken: the signatures of the answer do not lead to a trusted key",
    )
}

/// There are records.
fn present(name: &Name, records: &[Record], checked: Validation) -> TxtRecords {
    let Some(chain) = Chain::follow(name, records) else {
        return unavailable(name, "the answer does not fit the question");
    };
    let dnssec = match checked {
        Validation::No => Dnssec::Indeterminate,
        Validation::Yes => match weakest(chain.all()) {
            Some(dnssec) => dnssec,
            None => return broken(name),
        },
    };
    if chain.texts.len() > RECORDS {
        return TxtRecords::Wrong {
            reason: format!("{}: there are more than {RECORDS} TXT records", plain(name)),
        };
    }
    TxtRecords::Texts {
        texts: chain.texts.iter().map(|(_, text)| joined(text)).collect(),
        ttl: chain.all().map(|r| r.ttl).min().unwrap_or(0),
        dnssec,
    }
}

/// The text of a record: its strings, joined.
fn joined(text: &TXT) -> Result<String, String> {
    let bytes = text.txt_data.concat();
    if bytes.len() > BYTES {
        return Err(format!("it has more than {BYTES} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}

/// The records that answer a question. A server may add others, about names that it was not asked for, validated or
/// not: they don't count.
struct Chain<'a> {
    aliases: Vec<&'a Record>,
    texts: Vec<(&'a Record, &'a TXT)>,
}

impl<'a> Chain<'a> {
    /// The names that stand for another one, from `name` on, and where they lead; nothing if there are too many.
    fn aliases<'n>(name: &'n Name, records: &'a [Record]) -> Option<(&'n Name, Vec<&'a Record>)>
    where
        'a: 'n,
    {
        let mut name = name;
        let mut aliases = Vec::new();
        while let Some((alias, target)) = records.iter().find_map(|r| match &r.data {
            RData::CNAME(CNAME(target)) if r.name == *name => Some((r, target)),
            _ => None,
        }) {
            if aliases.len() == ALIASES {
                return None;
            }
            aliases.push(alias);
            name = target;
        }
        Some((name, aliases))
    }

    fn follow(name: &Name, records: &'a [Record]) -> Option<Self> {
        let (name, aliases) = Self::aliases(name, records)?;
        let texts: Vec<_> = records
            .iter()
            .filter(|r| r.name == *name)
            .filter_map(|r| match &r.data {
                RData::TXT(text) => Some((r, text)),
                _ => None,
            })
            .collect();
        (!texts.is_empty()).then_some(Self { aliases, texts })
    }

    fn all(&self) -> impl Iterator<Item = &'a Record> {
        self.aliases
            .iter()
            .copied()
            .chain(self.texts.iter().map(|(record, _)| *record))
    }
}

/// The DNSSEC state of all of these; `None` if one is forged.
fn weakest<'a>(records: impl Iterator<Item = &'a Record>) -> Option<Dnssec> {
    let mut found = Dnssec::Secure;
    for record in records {
        found = match (record.proof, found) {
            (Proof::Bogus, _) => return None,
            (Proof::Indeterminate, _) | (_, Dnssec::Indeterminate) => Dnssec::Indeterminate,
            (Proof::Insecure, _) | (_, Dnssec::Insecure) => Dnssec::Insecure,
            (Proof::Secure, Dnssec::Secure) => Dnssec::Secure,
        };
    }
    Some(found)
}

/// There are none.
fn absent(name: &Name, no: &NoRecords, checked: Validation) -> TxtRecords {
    let is_final = matches!(
        no.response_code,
        ResponseCode::NXDomain | ResponseCode::NoError
    );
    if !is_final || (no.soa.is_none() && no.ns.is_some()) {
        return unavailable(
            name,
            "the name server does not know it and does not ask others",
        );
    }
    let denial = |r: &Record| matches!(r.record_type(), RecordType::NSEC | RecordType::NSEC3);
    let dnssec = match checked {
        Validation::No => Dnssec::Indeterminate,
        // The end of a row of aliases: what was proven about those before it is not known any more.
        Validation::Yes if no.query.name() != name => Dnssec::Indeterminate,
        Validation::Yes => {
            let proven = no
                .authorities
                .iter()
                .flat_map(|records| records.iter())
                .any(|r| denial(r) && r.proof == Proof::Secure);
            if proven {
                Dnssec::Secure
            } else {
                Dnssec::Insecure
            }
        }
    };
    TxtRecords::Absent { dnssec }
}

/// A name as people write it.
fn plain(name: &Name) -> String {
    let text = name.to_ascii();
    text.strip_suffix('.').unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ed25519:pk=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
    const EVIL: &str = "ed25519:pk=PUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=";

    fn name(text: &str) -> Name {
        Name::from_ascii(text).unwrap()
    }

    fn record(owner: &str, data: RData, proof: Proof) -> Record {
        let mut record = Record::from_rdata(name(owner), 60, data);
        record.proof = proof;
        record
    }

    fn txt(owner: &str, text: &str, proof: Proof) -> Record {
        let data = RData::TXT(TXT::new(vec![text.to_owned()]));
        record(owner, data, proof)
    }

    fn cname(owner: &str, target: &str, proof: Proof) -> Record {
        record(owner, RData::CNAME(CNAME(name(target))), proof)
    }

    fn seen(records: &[Record]) -> String {
        let asked = name("k.a.test.");
        match keys(&asked, present(&asked, records, Validation::Yes)) {
            DnsAnswer::Keys { keys, dnssec, .. } => {
                let evil = keys.iter().any(|k| k.record() == EVIL);
                format!("{} keys, evil: {evil}, {}", keys.len(), dnssec.as_str())
            }
            DnsAnswer::Wrong { reason } | DnsAnswer::Unavailable { reason } => reason,
            DnsAnswer::Absent { .. } => "absent".to_owned(),
        }
    }

    #[test]
    fn records_of_names_that_were_not_asked_for_do_not_count() {
        let ours = txt("k.a.test.", KEY, Proof::Secure);
        let theirs = txt("k.evil.test.", EVIL, Proof::Secure);
        let bogus = txt("k.evil.test.", EVIL, Proof::Bogus);
        let good = "1 keys, evil: false, secure";
        assert_eq!(seen(&[theirs.clone(), ours.clone(), bogus]), good);
        assert_eq!(
            seen(&[
                cname("k.b.test.", "k.evil.test.", Proof::Secure),
                theirs.clone(),
                ours
            ]),
            good
        );
        assert!(seen(&[theirs]).contains("does not fit the question"));
        assert!(seen(&[]).contains("does not fit the question"));
    }

    #[test]
    fn the_weakest_record_on_the_way_counts() {
        use Proof::{Bogus, Indeterminate, Insecure, Secure};
        for (alias, first, second, expected) in [
            (Secure, Secure, Secure, "2 keys, evil: true, secure"),
            (Insecure, Secure, Secure, "2 keys, evil: true, insecure"),
            (Secure, Secure, Insecure, "2 keys, evil: true, insecure"),
            (
                Secure,
                Indeterminate,
                Insecure,
                "2 keys, evil: true, indeterminate",
            ),
            (
                Insecure,
                Indeterminate,
                Secure,
                "2 keys, evil: true, indeterminate",
            ),
        ] {
            let records = [
                cname("k.a.test.", "K.B.test.", alias),
                txt("k.b.test.", KEY, first),
                txt("k.b.test.", EVIL, second),
            ];
            assert_eq!(seen(&records), expected, "{alias} {first} {second}");
            for index in 0..3 {
                let mut records = records.clone();
                records[index].proof = Bogus;
                assert!(seen(&records).contains("DNSSEC is broken"), "{index}");
            }
        }
    }

    #[test]
    fn aliases_come_to_an_end() {
        let row = |length: usize| -> Vec<Record> {
            let alias = |n: usize| {
                let owner = if n == 0 {
                    "k.a.test.".to_owned()
                } else {
                    format!("k.{n}.test.")
                };
                cname(&owner, &format!("k.{}.test.", n + 1), Proof::Secure)
            };
            let end = txt(&format!("k.{length}.test."), KEY, Proof::Secure);
            (0..length).map(alias).chain([end]).collect()
        };
        assert_eq!(seen(&row(ALIASES)), "1 keys, evil: false, secure");
        assert!(seen(&row(ALIASES + 1)).contains("does not fit"));
        let circle = [
            cname("k.a.test.", "k.b.test.", Proof::Secure),
            cname("k.b.test.", "k.a.test.", Proof::Secure),
        ];
        assert!(seen(&circle).contains("does not fit"));
    }

    #[test]
    fn unchecked_answers_are_not_called_secure() {
        let records = [txt("k.a.test.", KEY, Proof::Secure)];
        assert!(matches!(
            present(&name("k.a.test."), &records, Validation::No),
            TxtRecords::Texts {
                dnssec: Dnssec::Indeterminate,
                ..
            }
        ));
    }

    #[test]
    fn the_same_key_twice_is_one_key() {
        let record = txt("k.a.test.", KEY, Proof::Insecure);
        assert_eq!(
            seen(&[record.clone(), record]),
            "1 keys, evil: false, insecure"
        );
    }
}
