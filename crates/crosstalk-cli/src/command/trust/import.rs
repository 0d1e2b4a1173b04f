//! `crosstalk trust import`: a trust file of somebody else, or what messages say about their keys (TRU-010, TRU-013).

use super::{each_message, view};
use crate::clock;
use crate::console::{Console, GREEN, RED, YELLOW, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::Input;
use crate::paragraph::{count, wrap};
use crate::service::home::Rooms;
use clap::Args;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{Document, ErrorCode};
use crosstalk_protocol::{KnownKey, Learned, PinError, Question, Trust, Unlearned, Verdict, learn};
use crosstalk_store::TrustStoreError;
use std::path::PathBuf;

/// Take over a trust file, or the new keys and revocations that messages announce
///
/// Of a trust file, what contradicts your own is left out and named. A message that announces a new key counts if the
/// old one is pinned; a revocation counts if the key itself or its successor signed it.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk trust import rotation.txt\n  crosstalk trust import /media/stick/trust.toml"
)]
pub(super) struct Import {
    /// A trust file, or a file with messages; `-` is stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl Import {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let rooms = Rooms::open()?;
        let input = Input::read(&self.file, console)?;
        match input.text() {
            Ok(text) if is_trust_file(text) => merge(console, &rooms, text, &input.shown_name()),
            _ => each_message(console, &input, |console, document| {
                message(console, &rooms, document)
            }),
        }
    }
}

/// A trust file says so in a line of its own; no envelope is in it.
fn is_trust_file(text: &str) -> bool {
    let is_schema = |line: &str| {
        let (name, value) = line.split_once('=').unwrap_or_default();
        name.trim() == "schema" && value.trim_start().starts_with(['"', '\''])
    };
    text.lines()
        .take_while(|line| !line.trim_start().starts_with('['))
        .any(is_schema)
}

fn merge(console: &mut Console, rooms: &Rooms, text: &str, name: &str) -> Result<Exit, Failure> {
    let other = Trust::parse(text).map_err(|fault| {
        let fault = fault.to_string();
        Failure::Refused(
            ErrorCode::Format,
            format!("{name}: {} (TRU-030)", fault.trim_end()),
        )
    })?;
    let (new, refused) = rooms.trust.update(|trust| {
        let before = trust.clone();
        let refused = trust.merge(&other);
        let is_new = |k: &&KnownKey| before.entry(&k.id, &k.key) != Some(*k);
        let new: Vec<KnownKey> = trust.keys().iter().filter(is_new).cloned().collect();
        Ok::<(Vec<KnownKey>, Vec<(String, PinError)>), TrustStoreError>((new, refused))
    })?;
    for known in &new {
        console.show(&view::key(known, &[]))?;
    }
    for (id, fault) in &refused {
        let offered = other.active(id);
        let text = match offered {
            Some(pin) => view::refusal(
                pin,
                fault,
                "`crosstalk trust pin ID --key FILE --replace` takes it",
            ),
            None => format!("{id} is left out"),
        };
        let word = styled(YELLOW, "left out");
        console.talk(&format!("{word}: {}\n", escape(&text)))?;
    }
    let (taken, left) = (count(new.len(), "key"), count(refused.len(), "key"));
    console.talk(&format!("{name}: {taken} taken over, {left} left out\n"))?;
    Ok(match refused.is_empty() {
        true => Exit::SUCCESS,
        false => ErrorCode::Perm.into(),
    })
}

fn message(console: &mut Console, rooms: &Rooms, document: &Document<'_>) -> Result<Exit, Failure> {
    let question = Question::at(clock::now());
    let (learned, changed) = rooms.trust.update(|trust| {
        let before = trust.clone();
        let learned = learn(document, trust, &question);
        Ok::<(Result<Learned, Unlearned>, bool), TrustStoreError>((learned, *trust != before))
    })?;
    match learned {
        Ok(Learned::Rotated(_)) if !changed => {
            console.talk("the new key is known already: nothing changed\n")?;
            Ok(Exit::SUCCESS)
        }
        Ok(Learned::Rotated(rotation)) => {
            console.show(&format!(
                "{}  {} is replaced by {}\n  old key  {}\n  new key  {}\n  what the old one signs after {} does not count\n",
                styled(GREEN, "new key"),
                escape(&rotation.old_id),
                escape(&rotation.new_id),
                rotation.old.fingerprint(),
                rotation.new.fingerprint(),
                rotation.grace
            ))?;
            Ok(Exit::SUCCESS)
        }
        Ok(Learned::Revoked { id, key, at }) => {
            console.show(&format!(
                "{}  {}, from {at} on\n  {}\n",
                styled(RED, "revoked"),
                escape(&id),
                key.fingerprint()
            ))?;
            Ok(Exit::SUCCESS)
        }
        Err(Unlearned::Nothing) => {
            let text = "the message announces no new key and revokes none; to pin the key that it was signed with: \
                        crosstalk trust pin FILE";
            refuse(console, text)?;
            Ok(Exit::FAILURE)
        }
        Err(Unlearned::Unproven(rule, verdict)) => {
            let text = format!(
                "{} {} ({})",
                verdict.sentence(),
                unproven(&verdict),
                rule.id
            );
            refuse(console, &text)?;
            Ok(ErrorCode::Perm.into())
        }
    }
}

fn unproven(verdict: &Verdict) -> String {
    match verdict.word() {
        word if word.is_signed() => {
            "It does not prove what it says about the key: whoever signed it is not known here as the old key, the \
             key itself or its successor."
                .to_owned()
        }
        _ => verdict.next(),
    }
}

fn refuse(console: &mut Console, text: &str) -> Result<(), Failure> {
    let word = styled(RED, "nothing changed");
    console.talk(&format!("{word}: {}\n", wrap(&escape(text), 17, 0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trust_file_is_told_from_a_message() {
        assert!(is_trust_file(
            "# hi\n\nschema = \"crosstalk.trust/1\"\n[[key]]\n"
        ));
        assert!(is_trust_file("schema='crosstalk.trust/2'\n"));
        assert!(!is_trust_file("[[A→B v1]]\nbody: |\n  schema = \"x\"\n"));
        assert!(!is_trust_file(""));
    }
}
