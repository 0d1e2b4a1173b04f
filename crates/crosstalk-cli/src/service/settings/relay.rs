//! The relays of the settings: `[[relay]]`, each with the addresses that it is for.

use super::file::{FileFault, Table, change, line_of};
use super::table::{PROFILE, nearest};
use crate::failure::Failure;
use crosstalk_protocol::relay::Pattern;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeValue, Deserializer};
use toml_edit::{ArrayOfTables, Item, TableLike};

pub(crate) const RELAY: &str = "relay";
const KEYS: [&str; 3] = ["url", "token_file", "for"];

/// A relay, and the addresses that it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RelaySetting {
    pub(crate) profile: Option<String>,
    /// Where it is, without a slash at the end.
    pub(crate) url: String,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) addresses: Vec<Pattern>,
    pub(crate) line: usize,
}

impl RelaySetting {
    /// How specific the pattern is by which it is for an address; nothing if it is not for it.
    fn specificity(&self, address: &str) -> Option<(bool, usize)> {
        let fitting = self.addresses.iter().filter(|p| p.matches(address));
        fitting.map(Pattern::specificity).max()
    }

    pub(crate) fn is_for_all(&self) -> bool {
        self.addresses.iter().any(Pattern::is_all)
    }

    /// The addresses as they are written.
    pub(crate) fn patterns(&self) -> Vec<String> {
        self.addresses.iter().map(Pattern::to_string).collect()
    }
}

/// The relay for an address: one of the profile before the others, then the one with the most specific pattern, then the one
/// that stands first.
pub(super) fn choose<'r>(relays: &'r [RelaySetting], address: &str) -> Option<&'r RelaySetting> {
    let ranked = relays.iter().rev().filter_map(|relay| {
        let specificity = relay.specificity(address)?;
        Some(((relay.profile.is_some(), specificity), relay))
    });
    // Of equals, the last one that is looked at counts: it stands first.
    ranked.max_by_key(|(rank, _)| *rank).map(|(_, relay)| relay)
}

/// Parses the URL of a relay: `https://relay.example`, without a slash at the end.
pub(crate) fn base_url(text: &str) -> Result<String, String> {
    let wrong = |what: &str| {
        Err(format!(
            "`{text}` {what}: write it as https://relay.example or http://127.0.0.1:8799"
        ))
    };
    let url = text.trim().trim_end_matches('/');
    let url = url.strip_suffix("/crosstalk/receive").unwrap_or(url);
    let Some((scheme, rest)) = url.split_once("://") else {
        return wrong("is no URL");
    };
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return wrong("is no http or https URL");
    }
    let authority = rest.split('/').next().unwrap_or_default();
    if authority.is_empty() || authority.starts_with(':') {
        return wrong("has no host");
    }
    if authority.contains('@') {
        return wrong("has a name or a password in it: use a token file");
    }
    if rest.contains(['?', '#']) || rest.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return wrong("has parts that the URL of a relay can't have");
    }
    Ok(url.to_owned())
}

/// Whether a URL is on this machine.
pub(crate) fn is_local(url: &str) -> bool {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(inner) => inner.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let is_number = host
        .parse()
        .is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
    is_number || host.eq_ignore_ascii_case("localhost")
}

/// Whether others can read a secret on its way to a relay.
pub(crate) fn is_open(url: &str) -> bool {
    !url.get(..8)
        .is_some_and(|start| start.eq_ignore_ascii_case("https://"))
        && !is_local(url)
}

/// A `[[relay]]` as it is written.
#[derive(Deserialize)]
struct RelayTable {
    url: Option<String>,
    token_file: Option<PathBuf>,
    #[serde(rename = "for")]
    addresses: Option<Addresses>,
}

/// One address, or several.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "`relay.for` has to be a list of addresses, such as [\"claude://*\"]"
)]
enum Addresses {
    One(String),
    Several(Vec<String>),
}

pub(super) fn read(
    text: &str,
    item: &Spanned<DeValue<'_>>,
    profile: Option<&str>,
    warnings: &mut Vec<(usize, String)>,
) -> Result<Vec<RelaySetting>, FileFault> {
    let tables = item.get_ref().as_array().and_then(|list| {
        let tables = list.iter();
        let tables = tables.map(|t| t.get_ref().as_table().map(|table| (t.span(), table)));
        tables.collect::<Option<Vec<_>>>()
    });
    let tables = tables.ok_or_else(|| FileFault {
        line: line_of(text, item.span()),
        message: "`relay` has to be a list of tables, as in [[relay]] with a `url`".to_owned(),
    })?;
    let mut found = Vec::new();
    for (span, table) in tables {
        let line = line_of(text, span.clone());
        for key in table
            .keys()
            .filter(|k| !KEYS.contains(&k.get_ref().as_ref()))
        {
            let near = nearest(key.get_ref(), KEYS.into_iter());
            let near = near.map_or(String::new(), |near| format!("; is it `{near}`?"));
            let warning = format!("there is no setting `relay.{}`{near}", key.get_ref());
            warnings.push((line, warning));
        }
        let table = Deserializer::from(Spanned::new(span, table.clone()));
        let table = RelayTable::deserialize(table).map_err(|fault| FileFault {
            line: fault.span().map_or(line, |span| line_of(text, span)),
            message: format!("a [[relay]]: {}", fault.message().trim_end()),
        })?;
        found.push(table.check(profile, line)?);
    }
    Ok(found)
}

impl RelayTable {
    fn check(self, profile: Option<&str>, line: usize) -> Result<RelaySetting, FileFault> {
        let wrong = |message: String| FileFault { line, message };
        let url = self.url;
        let url = url.ok_or_else(|| wrong("a [[relay]] needs a `url`".into()))?;
        let url = base_url(&url).map_err(|what| wrong(format!("`relay.url` {what}")))?;
        let addresses = match self.addresses {
            None => vec!["*".to_owned()],
            Some(Addresses::One(one)) => vec![one],
            Some(Addresses::Several(several)) => several,
        };
        let read =
            |t: &String| Pattern::parse(t).map_err(|e| wrong(format!("`relay.for`, `{t}`: {e}")));
        Ok(RelaySetting {
            profile: profile.map(str::to_owned),
            url,
            token_file: self.token_file,
            addresses: addresses.iter().map(read).collect::<Result<_, _>>()?,
            line,
        })
    }
}

/// The text with a relay added, or in place of the one with the same URL.
pub(crate) fn put_relay(text: &str, relay: &RelaySetting) -> Result<String, Failure> {
    change(text, |root| {
        let list = tables(root, relay.profile.as_deref())?;
        let mut table = Table::new();
        table.insert("url", relay.url.as_str().into());
        if let Some(file) = &relay.token_file {
            table.insert("token_file", file.to_string_lossy().as_ref().into());
        }
        if relay.addresses != [Pattern::all()] {
            let array: toml_edit::Array = relay.patterns().iter().map(String::as_str).collect();
            table.insert("for", array.into());
        }
        match position(list, &relay.url).and_then(|at| list.get_mut(at)) {
            Some(old) => {
                // Comments above it stay.
                *table.decor_mut() = old.decor().clone();
                for key in KEYS {
                    match table.remove(key) {
                        Some(item) => {
                            old.insert(key, item);
                        }
                        None => {
                            old.remove(key);
                        }
                    }
                }
            }
            None => list.push(table),
        }
        Ok(())
    })
}

/// The text without the relay of a URL; nothing if it is not there.
pub(crate) fn take_relay(
    text: &str,
    url: &str,
    profile: Option<&str>,
) -> Result<Option<String>, Failure> {
    let mut removed = false;
    let after = change(text, |root| {
        let list = tables(root, profile)?;
        if let Some(at) = position(list, url) {
            list.remove(at);
            removed = true;
        }
        Ok(())
    })?;
    Ok(removed.then_some(after))
}

fn position(list: &ArrayOfTables, url: &str) -> Option<usize> {
    list.iter().position(|t| {
        let written = t.get("url").and_then(Item::as_str);
        written.is_some_and(|w| base_url(w).as_deref() == Ok(url))
    })
}

/// The relays of the file or of a profile, as tables of their own.
fn tables<'t>(
    root: &'t mut toml_edit::Table,
    profile: Option<&str>,
) -> Result<&'t mut ArrayOfTables, Failure> {
    let mut table: &mut dyn TableLike = root;
    for name in profile.map(|p| [PROFILE, p]).into_iter().flatten() {
        let entry = table.entry(name).or_insert_with(|| {
            let mut new = toml_edit::Table::new();
            new.set_implicit(true);
            Item::Table(new)
        });
        table = entry
            .as_table_like_mut()
            .ok_or_else(|| Failure::failed(format!("`{name}` is no table in the settings")))?;
    }
    // A list in one line becomes tables of their own.
    if let Some(array) = table.get(RELAY).and_then(Item::as_array) {
        let inline = array.iter().filter_map(|v| v.as_inline_table());
        let tables: ArrayOfTables = inline.map(|t| t.clone().into_table()).collect();
        table.remove(RELAY);
        table.insert(RELAY, Item::ArrayOfTables(tables));
    }
    let entry = table
        .entry(RELAY)
        .or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
    entry
        .as_array_of_tables_mut()
        .ok_or_else(|| Failure::failed("`relay` is no list of tables in the settings"))
}

/// The path of a token file, relative to the settings.
pub(crate) fn token_path(config: &Path, file: &Path) -> PathBuf {
    config
        .parent()
        .map_or_else(|| file.to_owned(), |folder| folder.join(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_relays() {
        for (text, url) in [
            ("https://relay.example/", "https://relay.example"),
            ("http://127.0.0.1:8799", "http://127.0.0.1:8799"),
            ("https://x.example/crosstalk/receive", "https://x.example"),
            ("https://x.example/team/", "https://x.example/team"),
        ] {
            assert_eq!(base_url(text).as_deref(), Ok(url));
        }
        for text in [
            "relay.example",
            "ftp://x",
            "https://",
            "https://a:b@c",
            "https://x?y",
            "http://a b",
        ] {
            assert!(base_url(text).is_err(), "{text}");
        }
        for (url, local, open) in [
            ("http://127.0.0.1:8799", true, false),
            ("http://[::1]:8799", true, false),
            ("http://localhost", true, false),
            ("http://relay:8799", false, true),
            ("HTTPS://relay.example", false, false),
        ] {
            assert_eq!((is_local(url), is_open(url)), (local, open), "{url}");
        }
    }

    fn relay(url: &str, addresses: &[&str]) -> RelaySetting {
        RelaySetting {
            profile: None,
            url: url.into(),
            token_file: None,
            addresses: addresses
                .iter()
                .map(|a| Pattern::parse(a).unwrap())
                .collect(),
            line: 0,
        }
    }

    #[test]
    fn relays_are_added_changed_and_removed_and_the_rest_stays() {
        let text = "# mine\nuser = \"k\" # me\n";
        let one = put_relay(text, &relay("http://a", &["*"])).unwrap();
        assert_eq!(one, format!("{text}\n[[relay]]\nurl = \"http://a\"\n"));
        let two = put_relay(&one, &relay("http://b", &["claude://*", "CHATGPT"])).unwrap();
        let second = "\n[[relay]]\nurl = \"http://b\"\nfor = [\"claude://*\", \"CHATGPT\"]\n";
        assert_eq!(two, format!("{one}{second}"));
        let found = super::super::file::read(&two).unwrap();
        let told: Vec<_> = found
            .relays
            .iter()
            .map(|r| (r.url.as_str(), r.line))
            .collect();
        assert_eq!(told, [("http://a", 4), ("http://b", 7)]);
        let is_for = |address| choose(&found.relays[1..], address).is_some();
        assert!(is_for("chatgpt") && !is_for("gemini"));
        assert!(found.warnings.is_empty());
        let changed = put_relay(&two, &relay("http://b", &["*"])).unwrap();
        assert_eq!(changed, format!("{one}\n[[relay]]\nurl = \"http://b\"\n"));
        assert_eq!(take_relay(&two, "http://b", None).unwrap().unwrap(), one);
        assert_eq!(take_relay(&two, "http://c", None).unwrap(), None);
        let work = RelaySetting {
            profile: Some("work".into()),
            ..relay("http://w", &["*"])
        };
        let work = put_relay(text, &work).unwrap();
        assert!(
            work.contains("[[profile.work.relay]]\nurl = \"http://w\"\n"),
            "{work}"
        );
        let inline = "relay = [{url = \"http://a\"}, {url = \"http://b\", for = [\"X\"]}]\n";
        assert_eq!(super::super::file::read(inline).unwrap().relays.len(), 2);
        let inline = take_relay(inline, "http://a", None).unwrap().unwrap();
        assert!(inline.contains("[[relay]]\nurl = \"http://b\""), "{inline}");
    }

    #[test]
    fn the_most_specific_relay_counts_in_any_order() {
        let all = [
            relay("http://all", &["*"]),
            relay("http://scheme", &["claude://*", "CHATGPT"]),
            relay("http://folder", &["claude://code/*"]),
            relay("http://one", &["claude://code/api"]),
        ];
        let mut reversed = all.clone();
        reversed.reverse();
        for order in [&all, &reversed] {
            for (address, url) in [
                ("claude://code/api", "http://one"),
                ("claude://code/web", "http://folder"),
                ("claude://chat/7", "http://scheme"),
                ("chatgpt", "http://scheme"),
                ("GEMINI", "http://all"),
            ] {
                let chosen = choose(order, address).map(|r| r.url.as_str());
                assert_eq!(chosen, Some(url), "{address}");
            }
        }
        let work = RelaySetting {
            profile: Some("work".into()),
            ..relay("http://work", &["*"])
        };
        let with_profile = [&all[..], &[work]].concat();
        let chosen = choose(&with_profile, "claude://code/api");
        assert_eq!(chosen.map(|r| r.url.as_str()), Some("http://work"));
        let twice = [
            relay("http://first", &["*"]),
            relay("http://second", &["*"]),
        ];
        let chosen = choose(&twice, "GEMINI").map(|r| r.url.as_str());
        assert_eq!(chosen, Some("http://first"));
        assert_eq!(choose(&all[1..], "GEMINI"), None);
    }

    #[test]
    fn wrong_relay_is_named() {
        for (text, said) in [
            ("relay = 3", "[[relay]]"),
            ("[relay]\nurl = \"http://a\"", "[[relay]]"),
            ("[[relay]]\n", "needs a `url`"),
            ("[[relay]]\nurl = \"x\"", "is no URL"),
            ("[[relay]]\nurl = 3", "expected a string"),
            (
                "[[relay]]\nurl = \"http://a\"\nfor = [1]",
                "list of addresses",
            ),
            (
                "[[relay]]\nurl = \"http://a\"\nfor = [\"a*b\"]",
                "only at the end",
            ),
        ] {
            let fault = super::super::file::read(text).unwrap_err();
            assert!(fault.message.contains(said), "{text}: {}", fault.message);
        }
        let odd =
            super::super::file::read("[[relay]]\nurl = \"http://a\"\ntokenfile = \"x\"\n").unwrap();
        assert!(odd.warnings[0].1.contains("token_file"));
    }
}
