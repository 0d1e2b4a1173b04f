//! `crosstalk audit watch`: a witness, which remembers what a relay said and cries when it says something else.

use super::key;
use super::source::Where;
use crate::console::{Console, GREEN, RED, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::shown_path;
use clap::Args;
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::Word;
use crosstalk_protocol::audit::{Checkpoint, Note, NoteKey, extends};
use std::io;
use std::path::{Path, PathBuf};

/// Remember the checkpoint of a relay, and notice when a later one does not extend it
///
/// For a cron job on another machine than the relay's. The first time, the key and the checkpoint are kept in the file
/// (with --key, the key is that one). Then each new checkpoint has to prove that it extends the one of the file, and
/// takes its place. One that does not is kept beside it, in FILE.shown, FILE.shown.2 and so on: both notes together prove
/// what happened. A note that the key did not sign proves nothing; it is written to FILE.unsigned.
#[derive(Args, Debug)]
#[command(
    visible_alias = "witness",
    after_help = "Examples:\n  crosstalk audit watch --relay https://relay.acme.example --token-file w.token --keep acme.note\n  */5 * * * * crosstalk audit watch --relay https://relay.acme.example --token-file w.token --keep acme.note\n\nExit codes: 0 it extends the one that was kept, 20 the first contact, 24 the checkpoint is not signed by the key, or the relay\ndoes not prove that it extends the one that was kept, 30 it does not extend it, 10 the relay gives no checkpoint."
)]
pub(super) struct Watch {
    #[command(flatten)]
    place: Where,
    /// Where the checkpoint is kept; the key is beside it, in FILE.key
    #[arg(long, value_name = "FILE")]
    keep: PathBuf,
    /// The public key of the log, from elsewhere
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

fn beside(file: &Path, end: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// What is in a file, if it is there.
fn kept(path: &Path) -> Result<Option<String>, Failure> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Failure::at(path, e)),
    }
}

/// Writes a file at once: whoever looks sees the old one or the new one.
fn put(path: &Path, text: &str) -> Result<(), Failure> {
    let new = beside(path, ".new");
    std::fs::write(&new, text).map_err(|e| Failure::at(&new, e))?;
    std::fs::rename(&new, path).map_err(|e| Failure::at(path, e))
}

impl Watch {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let mut source = self.place.open(console)?;
        let shown = source.checkpoint()?;
        let claim = Note::parse(&shown).and_then(|n| n.claim());
        let origin = claim.map(|c| c.origin).unwrap_or_default();
        let key_file = beside(&self.keep, ".key");
        let own = kept(&key_file)?;
        let own = own.map(|text| {
            NoteKey::parse(text.trim_end())
                .map_err(|e| Failure::Failed(format!("{}: {e}", key_file.display())))
        });
        let (key, is_new) = match (own.transpose()?, &self.key) {
            (_, Some(text)) => (key::given(text, &origin)?, false),
            (Some(own), None) => (own, false),
            (None, None) => (source.key()?, true),
        };
        let new = match Note::parse(&shown).and_then(|n| n.open(&key)) {
            Ok(new) => new,
            Err(fault) => {
                let unsigned = beside(&self.keep, ".unsigned");
                put(&unsigned, &shown)?;
                return self.cry(
                    console,
                    &unsigned,
                    &fault.to_string(),
                    Word::NotVerified.into(),
                );
            }
        };
        let Some(held) = kept(&self.keep)? else {
            put(&key_file, &format!("{key}\n"))?;
            put(&self.keep, &shown)?;
            self.say(console, &new, "is kept: the first one")?;
            return Ok(match is_new {
                true => Word::FirstContact.into(),
                false => Exit::SUCCESS,
            });
        };
        let old = Note::parse(&held).and_then(|n| n.open(&key));
        let old = old.map_err(|e| Failure::Failed(format!("{}: {e}", self.keep.display())))?;
        if new.size < old.size {
            // A relay that was brought back out of an older backup says so, too: what it forgot is gone.
            let what = format!(
                "it has {} entries, and had {}: the log was cut",
                new.size, old.size
            );
            return self.cry(console, &self.evidence(&shown)?, &what, Exit::FORK);
        }
        let path = match new.size == old.size {
            true => Vec::new(),
            false => match source.consistency(old.size, new.size) {
                Ok(path) => path,
                // Whoever rewrites a log has a reason to give no proof.
                Err(fault) => {
                    let what = format!(
                        "it could not be proved that it extends the one of {} entries: {fault}",
                        old.size
                    );
                    let kept = self.evidence(&shown)?;
                    return self.cry(console, &kept, &what, Word::NotVerified.into());
                }
            },
        };
        if !extends(old.size, &old.root, new.size, &new.root, &path) {
            let what = format!(
                "its first {} entries are not those that were signed before",
                old.size
            );
            return self.cry(console, &self.evidence(&shown)?, &what, Exit::FORK);
        }
        put(&self.keep, &shown)?;
        self.say(
            console,
            &new,
            &format!("extends the one of {} entries", old.size),
        )?;
        Ok(Exit::SUCCESS)
    }

    fn say(&self, console: &mut Console, new: &Checkpoint, what: &str) -> Result<(), Failure> {
        console.show(&format!(
            "{}  {}, {} entries: {what}\n",
            styled(GREEN, "ok"),
            escape(&new.origin),
            new.size
        ))
    }

    /// Keeps what was shown beside what is held, in a file of its own. Where it is.
    fn evidence(&self, shown: &str) -> Result<PathBuf, Failure> {
        let mut place = beside(&self.keep, ".shown");
        let mut number = 1_u64;
        while let Some(before) = kept(&place)? {
            if before == shown {
                return Ok(place);
            }
            number += 1;
            place = beside(&self.keep, &format!(".shown.{number}"));
        }
        put(&place, shown)?;
        Ok(place)
    }

    /// Says what is wrong, and where both notes are.
    fn cry(
        &self,
        console: &mut Console,
        evidence: &Path,
        what: &str,
        exit: Exit,
    ) -> Result<Exit, Failure> {
        let text = |path: &Path| shown_path(&path.to_string_lossy()).into_owned();
        console.show(&format!(
            "{}  {}\n",
            styled(RED, "the checkpoint does not hold"),
            escape(what)
        ))?;
        console.show(&format!(
            "  {} is what was held, {} is what was shown now: keep both, and ask the relay operator.\n",
            text(&self.keep),
            text(evidence)
        ))?;
        Ok(exit)
    }
}
