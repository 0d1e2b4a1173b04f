//! Messages to hold for a person: `[[hold]]`.

use super::check::{ConfigError, pattern};
use crosstalk_envelope::registry::Intent;
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::relay::{Handler, Hold, Pattern, is_human};
use serde::Deserialize;

/// Which messages wait for a person. Everything that is said has to fit.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, deny_unknown_fields)]
pub struct HoldEntry {
    /// Why, in a few words, as those who decide read it; else it is made of the rest.
    pub why: Option<String>,
    /// With one of these intents.
    pub intents: Vec<String>,
    /// From one of these addresses: one, or the beginning of some and `*`.
    pub from: Vec<String>,
    /// To one of these addresses.
    pub to: Vec<String>,
    /// By one of these ways: inbox, copy_paste, http, file, exec, relay, email, sms.
    pub by: Vec<String>,
    /// With one of these words in `Scope` of `meta: privacy`.
    pub scopes: Vec<String>,
    /// Only with an attachment.
    pub attachments: bool,
    /// With a signature of one of these kinds: verified, first-contact, unsigned, unknown-key.
    pub signature: Vec<String>,
    /// Also what people send themselves.
    pub people: bool,
    /// The addresses of those who decide; without it, any person.
    pub deciders: Vec<String>,
}

impl HoldEntry {
    /// The rule, if everything in it can be used.
    pub(super) fn rule(&self) -> Result<Hold, ConfigError> {
        let conditions = [
            ("intents", &self.intents),
            ("from", &self.from),
            ("to", &self.to),
            ("by", &self.by),
            ("scopes", &self.scopes),
            ("signature", &self.signature),
        ];
        if conditions.iter().all(|(_, words)| words.is_empty()) && !self.attachments {
            return Err(ConfigError::new(
                "a [[hold]] does not say which messages to hold",
                "write `intents`, `from`, `to`, `by`, `scopes`, `attachments` or `signature`; `to = [\"*\"]` holds all",
            ));
        }
        let said = conditions.iter().filter(|(_, words)| !words.is_empty());
        let mut made: Vec<String> = said
            .map(|(key, words)| format!("{key} {}", words.join(" or ")))
            .collect();
        made.extend(self.attachments.then(|| "an attachment".to_owned()));
        for address in &self.deciders {
            if !is_human(address) {
                return Err(ConfigError::new(
                    format!(
                        "`deciders` of a [[hold]] has `{address}`, which is not the address of a person"
                    ),
                    "write human://…",
                ));
            }
        }
        let why = self.why.clone().unwrap_or_else(|| made.join(", "));
        if why.trim().is_empty() || why.chars().any(char::is_control) {
            return Err(ConfigError::new(
                "`why` of a [[hold]] is empty or has a control character in it",
                "write one line",
            ));
        }
        Ok(Hold {
            why,
            intents: each("intents", &self.intents, intent, "the name of an intent")?,
            from: patterns("`from` of a [[hold]]", &self.from)?,
            to: patterns("`to` of a [[hold]]", &self.to)?,
            by: each(
                "by",
                &self.by,
                Handler::parse,
                "inbox, copy_paste, http, file, exec, relay, email, sms or mcp",
            )?,
            scopes: self.scopes.clone(),
            attachments: self.attachments,
            verdicts: each(
                "signature",
                &self.signature,
                verdict,
                "verified, first-contact, unbound, unsigned or unknown-key",
            )?,
            people: self.people,
            deciders: self.deciders.clone(),
        })
    }
}

fn patterns(place: &str, texts: &[String]) -> Result<Vec<Pattern>, ConfigError> {
    texts.iter().map(|text| pattern(place, text)).collect()
}

fn intent(word: &str) -> Option<Intent> {
    let mut all = Intent::ALL.iter().copied();
    all.find(|i| i.as_str().eq_ignore_ascii_case(word))
}

/// The relay rejects messages with other verdicts, so it can't hold them.
fn verdict(word: &str) -> Option<VerdictWord> {
    [
        VerdictWord::Verified,
        VerdictWord::FirstContact,
        VerdictWord::Unbound,
        VerdictWord::Unsigned,
        VerdictWord::UnknownKey,
    ]
    .into_iter()
    .find(|w| w.as_str() == word)
}

fn each<T>(
    key: &str,
    words: &[String],
    read: fn(&str) -> Option<T>,
    known: &str,
) -> Result<Vec<T>, ConfigError> {
    let one = |word: &String| {
        read(word).ok_or_else(|| {
            ConfigError::new(
                format!("`{key}` of a [[hold]] has `{word}`, which this relay does not know"),
                format!("write {known}"),
            )
        })
    };
    words.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Config;

    #[test]
    fn a_rule_is_read_and_says_why() {
        let text = "[[hold]]\nby = [\"exec\", \"http\"]\nintents = [\"request\"]\nattachments = true\n\
                    signature = [\"unsigned\"]\ndeciders = [\"human://acme.example/ann\"]\n";
        let rules = Config::parse(text).unwrap().rules();
        let [hold] = rules.holds.as_slice() else {
            panic!("{rules:?}");
        };
        assert_eq!(
            hold.why,
            "intents request, by exec or http, signature unsigned, an attachment"
        );
    }

    #[test]
    fn errors_name_the_wrong_entry() {
        for (text, said) in [
            ("", "which messages to hold"),
            ("people = true", "which messages to hold"),
            ("by = [\"pigeon\"]", "pigeon"),
            ("intents = [\"SHOUT\"]", "SHOUT"),
            ("signature = [\"damaged\"]", "damaged"),
            ("to = [\"a*b\"]", "only at the end"),
            ("to = [\"*\"]\ndeciders = [\"claude://x\"]", "claude://x"),
            ("to = [\"*\"]\nwhy = \"a\\nb\"", "one line"),
            ("to = [\"*\"]\nwhom = 3", "whom"),
        ] {
            let fault = Config::parse(&format!("[[hold]]\n{text}\n")).unwrap_err();
            assert!(fault.to_string().contains(said), "{text}: {fault}");
        }
    }
}
