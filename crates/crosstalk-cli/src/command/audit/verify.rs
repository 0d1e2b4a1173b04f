//! `crosstalk audit verify`: a bundle or a receipt, checked without the relay.

use super::key;
use crate::console::{Console, DIM, GREEN, RED, YELLOW, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::shown_path;
use crate::json;
use crate::paragraph::{count, wrap};
use crate::schema::AUDIT_VERIFY;
use crate::service::audit_bundle::BundleFolder;
use crate::service::relay::progress::Progress;
use clap::Args;
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::Word;
use crosstalk_protocol::audit::bundle::{self, Against, Checked, Files as _, Trouble, Wrong};
use crosstalk_protocol::audit::{NoteKey, Receipt, ReceiptError};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// Check a bundle, or the receipt of a message: no relay and no network is needed
///
/// Says the first thing that is wrong, where it is, and what to do. A signature proves something only with a key that did
/// not come with the bundle: give it with --key, or pin it under the name of the relay (`crosstalk trust pin`). A
/// checkpoint that you kept from before shows whether the log was rewritten or cut since.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk audit verify bundle/ --key relay.key\n  crosstalk audit verify bundle/ --key relay.key --checkpoint held.note\n  crosstalk audit verify receipt.tlog-proof --message sent.aict --key relay.key\n\nExit codes: 0 everything holds, 20 it holds, and the key came with it, 24 something does not hold, 30 the log was\nrewritten: two checkpoints that do not fit together, 12 it is no bundle, or the message is none, 1 a file can't be read."
)]
pub(super) struct Verify {
    /// The folder of a bundle, or the file of a receipt
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// The public key of the log: name+hash+key, a file with it, a PEM file or a record
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// A checkpoint that you kept from before; can be given several times
    #[arg(long, value_name = "FILE")]
    checkpoint: Vec<PathBuf>,
    /// Of a receipt: the message
    #[arg(long, value_name = "FILE")]
    message: Option<PathBuf>,
    /// Print JSON of the form crosstalk.audit-verify/1
    #[arg(long)]
    json: bool,
}

impl Verify {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        match self.path.is_dir() {
            true => self.bundle(console),
            false => self.receipt(console),
        }
    }

    /// The key to check with, for the log of a name.
    fn trusted(&self, own: Option<&NoteKey>, name: &str) -> Result<Option<NoteKey>, Failure> {
        if let Some(text) = &self.key {
            return key::given(text, name).map(Some);
        }
        let known = key::known(name)?;
        let mut keys = known.into_iter().filter_map(|k| NoteKey::new(name, k).ok());
        Ok(match own {
            // Of several, the one that it is signed with.
            Some(own) => {
                let all: Vec<NoteKey> = keys.collect();
                let same = all.iter().find(|k| *k == own).cloned();
                same.or_else(|| all.into_iter().next())
            }
            None => keys.next(),
        })
    }

    fn bundle(&self, console: &mut Console) -> Result<Exit, Failure> {
        let folder = BundleFolder::at(&self.path);
        let mut held = Vec::new();
        for file in &self.checkpoint {
            let read = std::fs::read_to_string(file);
            held.push(read.map_err(|e| Failure::at(file, e))?);
        }
        let own = folder.read(bundle::KEY).ok().flatten();
        let own = own.and_then(|b| NoteKey::parse(std::str::from_utf8(&b).ok()?.trim_end()).ok());
        let name = own.as_ref().map_or("", NoteKey::name);
        let trusted = match &own {
            Some(key) => self.trusted(Some(key), name)?,
            None => None,
        };
        let against = Against {
            key: trusted.as_ref(),
            held: &held,
        };
        let progress = Progress::start("checking messages");
        let checked = bundle::check(&folder, &against, &mut |done, all| progress.at(done, all));
        progress.end();
        match checked {
            Ok(checked) => self.holds(console, &checked, trusted.is_some()),
            Err(wrong) => self.fails(console, &wrong),
        }
    }

    fn holds(
        &self,
        console: &mut Console,
        checked: &Checked,
        is_trusted: bool,
    ) -> Result<Exit, Failure> {
        let exit = match is_trusted {
            true => Exit::SUCCESS,
            false => Word::FirstContact.into(),
        };
        if self.json {
            let kinds: Map<String, Value> = checked
                .kinds
                .iter()
                .map(|(k, n)| (k.as_str().to_owned(), (*n).into()))
                .collect();
            let report = json!({
                "schema": AUDIT_VERIFY,
                "holds": true,
                "key_is_trusted": is_trusted,
                "key": checked.key.to_string(),
                "origin": checked.checkpoint.origin,
                "size": checked.checkpoint.size,
                "is_all": checked.is_all,
                "kinds": kinds,
                "messages": checked.messages,
                "erased": checked.erased,
                "withheld": checked.withheld,
                "extended": checked.extended,
                "wrong": null,
            });
            console.data(json::pretty(&report)?)?;
            return Ok(exit);
        }
        let word = match is_trusted {
            true => styled(GREEN, "holds"),
            false => styled(YELLOW, "holds, by the key that came with it"),
        };
        let kinds: Vec<String> = checked
            .kinds
            .iter()
            .map(|(kind, n)| format!("{n} {}", kind.as_str()))
            .collect();
        let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let scope = match checked.is_all {
            true => "the whole log",
            false => "a part of the log",
        };
        let mut out = format!(
            "{word}  {} of {}, {} entries signed\n",
            scope,
            escape(&checked.checkpoint.origin),
            checked.checkpoint.size
        );
        if !kinds.is_empty() {
            out.push_str(&format!("  {}\n", kinds.join(", ")));
        }
        out.push_str(&format!(
            "  {}, each the text that was taken; {} erased\n",
            count(number(checked.messages), "message"),
            checked.erased
        ));
        if let Some((first, last)) = checked.span {
            out.push_str(&styled(DIM, &format!("  from {first} to {last}\n")));
        }
        if checked.extended > 0 {
            let held = count(checked.extended, "older checkpoint");
            out.push_str(&format!("  it extends {held}\n"));
        }
        console.show(&out)?;
        if !is_trusted {
            let advice = format!(
                "Whoever made the bundle could have made the key. Compare it with what {} says elsewhere, and give it with --key:\n  {}\n",
                escape(&checked.checkpoint.origin),
                escape(&checked.key.to_string())
            );
            console.talk(&advice)?;
        }
        Ok(exit)
    }

    fn fails(&self, console: &mut Console, wrong: &Wrong) -> Result<Exit, Failure> {
        let exit = match &wrong.trouble {
            Trouble::Unread => Exit::FAILURE,
            Trouble::Form => crosstalk_envelope::ErrorCode::Format.into(),
            Trouble::Broken | Trouble::Apart => Word::NotVerified.into(),
            Trouble::Fork(_) => Exit::FORK,
        };
        let fork = match &wrong.trouble {
            Trouble::Fork(fork) => Some(fork),
            _ => None,
        };
        if self.json {
            let report = json!({
                "schema": AUDIT_VERIFY,
                "holds": false,
                "wrong": {
                    "file": wrong.file,
                    "line": wrong.line,
                    "what": wrong.what,
                    "help": wrong.help,
                    "exit": exit.code(),
                    "fork": fork.map(|f| json!({"held": f.held, "shown": f.shown})),
                },
            });
            console.data(json::pretty(&report)?)?;
            return Ok(exit);
        }
        let word = match fork {
            Some(_) => "the log was rewritten",
            None => "does not hold",
        };
        console.show(&format!(
            "{}  {}\n",
            styled(RED, word),
            shown_path(&self.path.to_string_lossy())
        ))?;
        console.show(&format!("  {}\n", wrap(&escape(&wrong.to_string()), 2, 2)))?;
        console.show(&format!("  {}\n", wrap(wrong.help, 2, 2)))?;
        if let Some(fork) = fork {
            let notes = [
                ("the one that you hold", &fork.held),
                ("the one that was shown", &fork.shown),
            ];
            for (whose, note) in notes {
                console.show(&format!("\n{}\n{}", styled(DIM, whose), escape(note)))?;
            }
        }
        Ok(exit)
    }

    fn receipt(&self, console: &mut Console) -> Result<Exit, Failure> {
        let read = |path: &PathBuf| {
            let text = std::fs::read_to_string(path);
            text.map_err(|e| Failure::at(path, e))
        };
        let text = read(&self.path)?;
        let Some(file) = &self.message else {
            let message = "a receipt is checked against its message: give it with --message FILE";
            return Err(Failure::Usage(message.into()));
        };
        let message = read(file)?;
        let broken = |what: String| Wrong {
            trouble: Trouble::Broken,
            file: self.path.to_string_lossy().into_owned(),
            line: None,
            what,
            help: "Ask the relay for the receipt again: crosstalk audit receipt",
        };
        let receipt = match Receipt::parse(&text) {
            Ok(receipt) => receipt,
            Err(e) => {
                let wrong = Wrong {
                    trouble: Trouble::Form,
                    ..broken(e.to_string())
                };
                return self.fails(console, &wrong);
            }
        };
        let claim = crosstalk_protocol::audit::Note::parse(&receipt.note).and_then(|n| n.claim());
        let origin = claim.map(|c| c.origin).unwrap_or_default();
        let Some(key) = self.trusted(None, &origin)? else {
            return Err(Failure::Usage(format!(
                "there is no key of `{origin}` here: give it with --key, or pin it"
            )));
        };
        let opened = receipt
            .open(&key)
            .and_then(|c| receipt.is_of(&message).map(|()| c));
        let checkpoint = match opened {
            Ok(checkpoint) => checkpoint,
            Err(e @ ReceiptError::Unreadable) => {
                let wrong = Wrong {
                    trouble: Trouble::Form,
                    file: file.to_string_lossy().into_owned(),
                    help: "Give the message as it was handed in: one envelope and nothing else",
                    ..broken(e.to_string())
                };
                return self.fails(console, &wrong);
            }
            Err(e) => return self.fails(console, &broken(e.to_string())),
        };
        if self.json {
            let report = json!({
                "schema": AUDIT_VERIFY,
                "holds": true,
                "key_is_trusted": true,
                "key": key.to_string(),
                "origin": checkpoint.origin,
                "size": checkpoint.size,
                "index": receipt.index,
                "leaf": receipt.leaf.to_string(),
                "wrong": null,
            });
            console.data(json::pretty(&report)?)?;
            return Ok(Exit::SUCCESS);
        }
        console.show(&format!(
            "{}  {} took this message at {}: entry {} of {}\n",
            styled(GREEN, "holds"),
            escape(&checkpoint.origin),
            receipt.leaf.at,
            receipt.index,
            checkpoint.size
        ))?;
        Ok(Exit::SUCCESS)
    }
}
