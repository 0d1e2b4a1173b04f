//! `crosstalk relay deliver`: hands a message that is kept here to a relay.

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::compose::attached;
use crate::service::lookup;
use crate::service::relay::outbox::{Due, Outbox};
use crate::service::relay::remote::{Remote, Through};
use crate::service::relay::send::Parcel;
use crate::service::relay::submit::Attached;
use crate::service::workspace::Desk;
use crate::view;
use clap::Args;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::{Document, Reading};
use crosstalk_protocol::store::Store as _;
use std::path::PathBuf;

/// Hand messages that are kept here to a relay, for the first time or again
///
/// Without --relay, a message goes to the relay that it was meant for when it was sent, else to that of the settings. A
/// relay takes a message once, however often it comes: what is there already gets the same answer.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk relay deliver last\n  crosstalk relay deliver --all\n  crosstalk relay deliver 01K74V8Q --wait 60\n  crosstalk relay deliver 01K74V8Q --relay https://relay.example --attach plan.md\n\nExit codes: 0 handed over, 10 to 17 what the relay refuses; 16 no answer in\ntime. Of several, the largest one."
)]
pub(super) struct Deliver {
    /// The messages: ids or the beginnings of them, or `last`
    #[arg(value_name = "ID", required_unless_present = "all")]
    ids: Vec<String>,
    /// Everything that was meant for a relay and is not there yet
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// Wait so many seconds for the answer, show it and keep it
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    wait: Option<u64>,
    /// Upload a file that the message names; may be given again
    #[arg(long, value_name = "FILE")]
    attach: Vec<PathBuf>,
    #[command(flatten)]
    through: Through,
}

impl Deliver {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let desk = Desk::open(console)?;
        let files: Vec<Attached> = self
            .attach
            .iter()
            .map(|path| attached(path))
            .collect::<Result<_, _>>()?;
        let outbox = Outbox::of(&desk);
        let mut exit = Exit::SUCCESS;
        let store = desk.kept(console)?;
        let mut records = Vec::new();
        for reference in &self.ids {
            records.push(lookup::message(&store, reference)?);
        }
        for id in outbox.all().iter().filter(|_| self.all) {
            match store.message(id)? {
                Some(record) => records.push(record),
                // It was forgotten here.
                None => outbox.remove(id)?,
            }
        }
        if records.is_empty() {
            console.talk("everything was handed over\n")?;
        }
        for record in records.into_iter().map(lookup::veiled) {
            let short = view::short(&store, &record.id)?;
            if let Err(fault) = lookup::require_text(&record) {
                // It never will be.
                outbox.remove(&record.id)?;
                console.failure(&fault)?;
                exit = exit.worst(fault.exit());
                continue;
            }
            let due = outbox.find(&record.id);
            let through = match &due {
                Some(due) => self.through.or(&due.relay, due.token_file.as_deref()),
                None => self.through.clone(),
            };
            let remote = through.connect(&desk.config, Some(&record.receiver))?;
            let mut files = files.clone();
            files.extend(due.iter().flat_map(Due::files));
            tell_missing(console, &remote, &record.text, &files)?;
            let parcel = Parcel {
                text: &record.text,
                files: &files,
                wait: self.wait,
            };
            exit = exit.worst(parcel.hand(console, &desk, &remote, &short)?);
        }
        Ok(exit)
    }
}

/// Warns of files that a message names and nobody has.
fn tell_missing(
    console: &mut Console,
    remote: &Remote,
    text: &str,
    files: &[Attached],
) -> Result<(), Failure> {
    let document = Document::parse(text, Reading::Strict);
    for (_, attachment) in document.envelope().attachments() {
        let Ok(attachment) = attachment else { continue };
        let digest = attachment.digest.and_then(Digest::parse);
        let Some(digest) = digest.filter(|_| attachment.data.is_none()) else {
            continue;
        };
        let is_given = files.iter().any(|file| file.digest == digest);
        // A relay that can't be reached is told about when the message is handed over.
        if is_given || remote.has_blob(digest).unwrap_or(true) {
            continue;
        }
        console.warning(&format!(
            "the file {} ({digest}) is not at the relay, and whoever gets the message can't fetch it: hand it over with \
             --attach FILE",
            attachment.name.unwrap_or("of the message")
        ))?;
    }
    Ok(())
}
