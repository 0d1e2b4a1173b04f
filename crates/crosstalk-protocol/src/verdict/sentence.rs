//! A verdict for people: what happened, and what to do next.

use super::{Trusted, Verdict, VerdictDetail, VerdictWord};
use crosstalk_envelope::registry::rule;
use crosstalk_envelope::{Diagnosis, Timestamp};

impl Verdict {
    /// The verdict in one sentence.
    pub fn sentence(&self) -> String {
        let id = self.pkid.as_deref().unwrap_or("nobody");
        match self.word {
            VerdictWord::Verified => {
                let change = match self.detail {
                    VerdictDetail::KeyChanged { .. } => {
                        ", which is not the one that was known here"
                    }
                    _ => "",
                };
                format!(
                    "Signed by {id}, and nothing was changed; {}{change}{}.",
                    self.voucher(),
                    self.ahead()
                )
            }
            VerdictWord::FirstContact => format!(
                "Signed by {id} with a key that came with the message, and nothing was changed; nobody vouches for the key yet{}.",
                self.ahead()
            ),
            VerdictWord::Unbound => format!(
                "Signed by {id}, and nothing was changed; {}, but neither this domain nor a pin binds the key to the sender {}{}.",
                self.voucher(),
                self.head.sender,
                self.ahead()
            ),
            VerdictWord::Unsigned => {
                "Nobody signed this message: anybody may have written it.".to_owned()
            }
            VerdictWord::UnknownKey => self.no_key(id),
            VerdictWord::Damaged => format!(
                "Signed by {id}, but the body is not what was signed: {}.",
                self.damage()
            ),
            VerdictWord::NotVerified => self.refusal(id),
            VerdictWord::Revoked => {
                let (when, why) = match &self.detail {
                    VerdictDetail::Revoked(at, reason) => (day(*at), reason.as_deref()),
                    _ => (String::new(), None),
                };
                let why = why.map_or(String::new(), |why| format!(" ({why})"));
                format!(
                    "The signature is of a key of {id} that was revoked on {when}{why}: somebody else may have made it."
                )
            }
        }
    }

    fn ahead(&self) -> String {
        match self.head.signed_at.filter(|_| self.ahead) {
            Some(at) => format!(
                "; it says that it was signed on {}, which is in the future",
                day(at)
            ),
            None => String::new(),
        }
    }

    fn voucher(&self) -> String {
        match &self.trusted {
            Trusted::Dns { domain, dnssec } => {
                format!("{domain} vouches for the key (DNSSEC: {})", dnssec.as_str())
            }
            Trusted::Pinned {
                since,
                rotated_from: None,
            } => {
                format!("the key is pinned since {}", day(*since))
            }
            Trusted::Pinned {
                rotated_from: Some(old),
                ..
            } => {
                format!("the key is new, and the pinned key of {old} vouches for it")
            }
            Trusted::Did => {
                "the id is the key itself, and says nothing about who holds it".to_owned()
            }
            Trusted::Given => "it fits the key that you gave".to_owned(),
            _ => "nobody vouches for the key".to_owned(),
        }
    }

    fn no_key(&self, id: &str) -> String {
        match &self.detail {
            VerdictDetail::Text(why) => {
                format!("Signed as {id}, but the key could not be looked up: {why}.")
            }
            VerdictDetail::Expired(domain) => {
                format!("Signed as {id}, but what {domain} said about its keys is out of date.")
            }
            _ => format!("Signed as {id}, but there is no key here to check it with."),
        }
    }

    fn damage(&self) -> String {
        match &self.body {
            Some(Diagnosis::Reflowed) => match self.restored() {
                Some(_) => "the words are right, the line breaks are not, and the original could be restored".to_owned(),
                None => "the words are right, the line breaks or the spacing are not".to_owned(),
            },
            Some(Diagnosis::Truncated { missing, after }) => match lines(missing) {
                Some(lines) => format!("{lines} missing"),
                None => format!("it ends after line {after}"),
            },
            Some(Diagnosis::Altered { lines: changed }) => match lines(changed) {
                Some(lines) => format!("{lines} changed"),
                None => "the text was changed".to_owned(),
            },
            _ => "it can't be told how".to_owned(),
        }
    }

    fn refusal(&self, id: &str) -> String {
        match &self.detail {
            VerdictDetail::KeyChanged { .. } if self.rule == Some(&rule::ROTATION) => format!(
                "STOP: {id} claims the place of a key that is not the one known here; an announcement may be missing in between."
            ),
            VerdictDetail::KeyChanged { .. } => format!(
                "STOP: {id} has another key than the one that is known here; somebody else may be using the name."
            ),
            VerdictDetail::SenderChanged(known) => format!(
                "STOP: {} has signed as {} so far, and now as {id}; somebody else may be using the name.",
                self.head.sender,
                known.join(" or ")
            ),
            VerdictDetail::LooksLike(like) => format!(
                "STOP: {} looks like {like}, who signs with another key, and is somebody else.",
                self.head.sender
            ),
            VerdictDetail::Replaced(by, grace) => format!(
                "Signed by {id} with an old key after {}, when {by} had taken its place.",
                day(*grace)
            ),
            VerdictDetail::Text(text) => text.clone(),
            _ => match self.rule {
                Some(r) if *r == rule::SIGNATURE_STRIPPED => {
                    "The message was signed once, and its signature is gone: it may have been changed.".to_owned()
                }
                Some(r) if *r == rule::SIGNATURE_UNFIT => {
                    format!("The signature of {id} does not fit: the head was changed, the sender has a new key, or somebody else signed.")
                }
                Some(r) => format!("Not verified: {}.", lower(r.title)),
                None => "Not verified.".to_owned(),
            },
        }
    }

    /// What a person should do next, in one sentence.
    pub fn next(&self) -> String {
        let id = self.pkid.as_deref().unwrap_or("ID");
        if let (
            Some(id),
            VerdictWord::Verified | VerdictWord::FirstContact | VerdictWord::Unbound,
        ) = (&self.revokes, self.word)
        {
            return format!(
                "Revoke the key of {id} with `crosstalk trust import FILE`, with this message in the file."
            );
        }
        match self.word {
            VerdictWord::Verified => match self.trusted {
                Trusted::Pinned { rotated_from: Some(_), .. } => {
                    "Use it, and import the new key with `crosstalk trust import FILE`.".to_owned()
                }
                _ => "Use it.".to_owned(),
            },
            VerdictWord::FirstContact => {
                "Compare the fingerprint with the sender by voice, then pin the key with `crosstalk trust pin FILE --compared`.".to_owned()
            }
            VerdictWord::Unbound => format!(
                "Don't rely on its sender: ask them over another channel whether {id} is theirs, then pin it with `crosstalk trust pin FILE`."
            ),
            VerdictWord::Unsigned => "Don't rely on its sender; ask them to sign it if that matters.".to_owned(),
            VerdictWord::UnknownKey => match &self.detail {
                VerdictDetail::Text(_) => "Try again later; don't act on it until then.".to_owned(),
                VerdictDetail::Expired(_) => "Ask the domain again with `crosstalk verify --dns`.".to_owned(),
                _ => format!(
                    "Ask the sender to sign with `--with-key`, or pin their key with `crosstalk trust pin {id} --key FILE`."
                ),
            },
            VerdictWord::Damaged => match &self.body {
                Some(Diagnosis::Reflowed) if self.restored().is_some() => {
                    "Read the restored text with `crosstalk verify --text FILE`, or copy the message again inside a code fence.".to_owned()
                }
                Some(Diagnosis::Reflowed) => {
                    "Copy the message again inside a code fence if its layout matters.".to_owned()
                }
                Some(Diagnosis::Truncated { .. }) => {
                    "Copy the whole message again, or ask the sender for the missing lines.".to_owned()
                }
                _ => "Don't act on it: copy the message again, or ask the sender what they wrote.".to_owned(),
            },
            VerdictWord::NotVerified => match &self.detail {
                VerdictDetail::KeyChanged { .. } if self.rule == Some(&rule::ROTATION) => {
                    "Don't act on it: ask the sender for every announcement of a new key, and import them one after the other with `crosstalk trust import FILE`.".to_owned()
                }
                VerdictDetail::KeyChanged { .. } => {
                    "Don't act on it: compare both fingerprints with the sender by voice; if the new one is theirs, pin it with `crosstalk trust pin FILE --replace`, with this message in the file.".to_owned()
                }
                VerdictDetail::SenderChanged(_) => format!(
                    "Don't act on it: ask the sender over another channel; if {id} is theirs, pin it with `crosstalk trust pin FILE --replace`, with this message in the file."
                ),
                VerdictDetail::LooksLike(_) => format!(
                    "Don't act on it: compare the names letter by letter; if {id} is really somebody else whom you know, pin it with `crosstalk trust pin FILE --replace`, with this message in the file."
                ),
                // Its help is for the author of the line.
                _ if self.rule == Some(&rule::SIG_MALFORMED) => {
                    "Don't act on it: copy the message again, or ask the sender to send it again.".to_owned()
                }
                _ => match self.rule.map(|r| r.help).filter(|h| !h.is_empty()) {
                    Some(help) => format!("{}.", upper(help)),
                    None => "Don't act on it: ask the sender to send it again.".to_owned(),
                },
            },
            VerdictWord::Revoked => "Don't act on it: ask the sender over another channel for their new key.".to_owned(),
        }
    }
}

/// `line 3 is`, `lines 3, 4 and 7 are`; nothing without lines.
fn lines(numbers: &[usize]) -> Option<String> {
    /// More numbers than this help nobody.
    const SHOWN: usize = 6;
    let (first, rest) = numbers.split_first()?;
    let last = rest.last();
    let is_run = last.is_some_and(|last| last - first == rest.len());
    Some(match (rest, last) {
        ([], _) | (_, None) => format!("line {first} is"),
        (_, Some(last)) if is_run => format!("lines {first} to {last} are"),
        _ if rest.len() < SHOWN => {
            let (tail, middle) = rest.split_last()?;
            let middle: String = middle.iter().map(|n| format!(", {n}")).collect();
            format!("lines {first}{middle} and {tail} are")
        }
        _ => format!("{} lines from line {first} on are", numbers.len()),
    })
}

/// The day of a point in time.
fn day(at: Timestamp) -> String {
    at.to_string().chars().take(10).collect()
}

fn lower(text: &str) -> String {
    recased(text, |c| c.to_lowercase().collect())
}

fn upper(text: &str) -> String {
    recased(text, |c| c.to_uppercase().collect())
}

fn recased(text: &str, case: impl Fn(char) -> String) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(case).unwrap_or_default();
    first + chars.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_shortly() {
        assert_eq!(lines(&[]), None);
        assert_eq!(lines(&[3]).unwrap(), "line 3 is");
        assert_eq!(lines(&[3, 4, 5]).unwrap(), "lines 3 to 5 are");
        assert_eq!(lines(&[3, 4, 7]).unwrap(), "lines 3, 4 and 7 are");
        assert_eq!(
            lines(&[1, 3, 5, 7, 9, 11, 13, 15]).unwrap(),
            "8 lines from line 1 on are"
        );
    }
}
