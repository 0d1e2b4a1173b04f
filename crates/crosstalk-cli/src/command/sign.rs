//! `crosstalk sign`: signs envelopes (SIG-006, SIG-007).

use crate::caret::Carets;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::Input;
use crate::service::home::{KeysAndTrust, block_of};
use crate::service::passphrase::Passphrase;
use crate::{clock, render};
use clap::Args;
use crosstalk_binding::{is_repaired_by_signing, require_verified, signing_faults};
use crosstalk_envelope::registry::rule;
use crosstalk_envelope::signing::Signer;
use crosstalk_envelope::{Diagnostic, Document, Reading, Scan, Timestamp};
use std::path::PathBuf;

/// Sign envelopes
///
/// Adds a message id if there is none, the block `meta: integrity`, and the signature. Reads the text as a paste, and signs nothing
/// if a repair has to leave text out. Rejects a message that is signed already, since another person may have written it. If one of
/// several can't be signed, none is.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk sign message.txt > signed.txt\n  crosstalk sign --key alice@example.com --with-key message.txt > signed.txt\n  crosstalk build message.json | crosstalk sign | crosstalk fmt --fence"
)]
pub(crate) struct Sign {
    /// The file; `-` or none is stdin
    #[arg(value_name = "FILE", default_value = "-", hide_default_value = true)]
    file: PathBuf,
    /// The id of the key; not needed if there is only one
    #[arg(long, value_name = "ID")]
    key: Option<String>,
    /// Send the public key along, for people who don't have it yet; after a rotation with the proof of the old key
    #[arg(long)]
    with_key: bool,
    /// Replace the signature of a message that is signed already
    #[arg(long)]
    replace: bool,
    /// The time to write as Signed-At, in place of now
    #[arg(long, value_name = "TIME", value_parser = clock::time)]
    at: Option<Timestamp>,
    #[command(flatten)]
    ask: Passphrase,
}

impl Sign {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let input = Input::read(&self.file, console)?;
        let (text, scan) = input.scan(Reading::Paste);
        let name = input.shown_name();
        let exit = self.objections(console, &Carets::new(&name, &text), &scan)?;
        if exit != Exit::SUCCESS {
            return Ok(exit);
        }
        let rooms = KeysAndTrust::open()?;
        let key = rooms.signing_key(self.key.as_deref())?;
        let opened = rooms.unlock(&key, &self.ask)?;
        let block = match self.with_key {
            true => block_of(&key),
            false => Vec::new(),
        };
        let signer = Signer {
            key: &opened.key,
            pkid: &key.facts.id,
            at: self.at.unwrap_or_else(clock::now),
            key_block: &block,
        };
        let mut out = Vec::new();
        for document in &scan.documents {
            let signed = match self.replace {
                true => signer.sign_anew(document),
                false => signer.sign(document),
            };
            let signed = signed.map_err(|d| Failure::of_rule(d.rule, &d.message))?;
            require_verified(&signed, &signer)?;
            out.push(signed);
        }
        console.text(&out.join("\n"))?;
        Ok(Exit::SUCCESS)
    }

    /// Reports the objections against signing.
    fn objections(
        &self,
        console: &mut Console,
        carets: &Carets<'_>,
        scan: &Scan<'_>,
    ) -> Result<Exit, Failure> {
        let mut faults: Vec<Diagnostic> = scan.rejected.clone();
        for document in &scan.documents {
            faults.extend(signing_faults(document, self.replace));
        }
        for fault in &mut faults {
            if *fault.rule == rule::SIGNED_ALREADY {
                fault.message =
                    "the message is signed already; --replace signs it anew, in your name".into();
            }
        }
        carets.tell(console, &faults)?;
        if faults.iter().any(|d| d.rule.drops) {
            console.talk(
                "nothing was signed: the repair would leave out the text shown above. Put it where it belongs, or remove it\n",
            )?;
        }
        let exit = Exit::of(&faults);
        if exit == Exit::SUCCESS {
            // The signed text may differ from the intended one, so the repairs are shown.
            let all = scan.documents.iter().flat_map(Document::diagnostics);
            for finding in all.filter(|d| render::is_worth_telling(d) && !is_repaired_by_signing(d))
            {
                console.talk(&carets.draw(finding))?;
            }
        }
        Ok(exit)
    }
}
