//! `crosstalk poll collate`: the result of a poll from text files alone.

use crate::console::Console;
use crate::failure::Failure;
use crate::input::{Files, Input};
use crate::{clock, json, view};
use clap::Args;
use crosstalk_envelope::{Document, PublicKey, Reading, Timestamp};
use crosstalk_protocol::poll::{Paper, PollError, Proofs, VoterNames, collate_named, polls};
use crosstalk_protocol::relay::check_hop;
use crosstalk_protocol::store::party;
use crosstalk_protocol::{Admitted, Trust, VerifyContext, verify};
use std::path::Path;

/// Count a poll from text files: the poll and its answers, in any order
///
/// Needs nothing but the files: no store, no relay, no clock. The same files give the same bytes, in whatever order.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk poll collate poll.crosstalk answers/*.crosstalk\n  crosstalk export 01K74V6R0074 | crosstalk poll collate --json\n  crosstalk poll collate --at 2025-10-10T12:00Z --envelope thread.crosstalk > result.crosstalk\n\nExit codes: 0 counted, with an outcome or without, 1 a file can't be read,\n2 wrong usage, 12 no poll among the envelopes, or more than one."
)]
pub(super) struct Collate {
    #[command(flatten)]
    files: Files,
    /// The poll, if there are several: its id or the beginning of it
    #[arg(long, value_name = "ID")]
    poll: Option<String>,
    /// Only answers that came before this time
    #[arg(long, value_name = "TIME", value_parser = clock::time)]
    at: Option<Timestamp>,
    /// The key of a relay, as ed25519:pk=…: its hops tell when an answer came, and a voter answers under the very
    /// address, as at the relay; may be given again
    #[arg(long, value_name = "RECORD", value_parser = key)]
    relay_key: Vec<PublicKey>,
    /// The address that a name stands for, as `Names` of the result says; may be given again
    #[arg(long, value_name = "NAME=ADDRESS", value_parser = name)]
    name: Vec<(String, String)>,
    /// Print the result as the envelope that goes to the asker
    #[arg(long, conflicts_with = "json")]
    envelope: bool,
    /// Print JSON of the form crosstalk.poll/1
    #[arg(long)]
    json: bool,
}

fn key(text: &str) -> Result<PublicKey, String> {
    PublicKey::parse_record(text).map_err(|e| e.to_string())
}

fn name(text: &str) -> Result<(String, String), String> {
    let (name, address) = text.split_once('=').ok_or("write it as NAME=ADDRESS")?;
    Ok((party(name.trim()), address.trim().to_owned()))
}

impl Collate {
    pub(super) fn run(self, console: &mut Console) -> Result<(), Failure> {
        let mut inputs = Vec::new();
        match self.files.files.is_empty() {
            true => inputs.push(Input::read(Path::new("-"), console)?),
            false => {
                for path in &self.files.files {
                    inputs.push(Input::read(path, console)?);
                }
            }
        }
        let mut documents = Vec::new();
        for input in &inputs {
            let (_, scan) = input.scan(Reading::Paste);
            if let Some(fault) = scan.rejected.iter().find(|d| d.is_error()) {
                let what = format!("{}: not counted: {}", input.shown_name(), fault.message);
                console.warning(&what)?;
            }
            documents.extend(scan.documents);
        }
        // The signed text is counted. Hops are signed by others, and are in the received text alone.
        let question = VerifyContext::at(Timestamp::from_millis(0));
        let admit = |document: &Document<'_>| {
            let verdict = verify(document, &Trust::default(), &question);
            (Admitted::new(document, verdict), self.hop(document))
        };
        let admitted: Vec<(Admitted, Option<Timestamp>)> = documents.iter().map(admit).collect();
        let papers: Vec<Paper<'_>> = admitted
            .iter()
            .map(|(admitted, hop)| Paper {
                hop: *hop,
                is_pasted: true,
                ..Paper::of(admitted.document())
            })
            .collect();
        let wanted = self.wanted(&papers)?;
        let is_relay = !self.relay_key.is_empty() || !self.name.is_empty();
        let names: VoterNames = self.name.iter().cloned().collect();
        let names = is_relay.then_some(&names);
        let collation = collate_named(&papers, wanted, self.at, names, &Proofs::default())
            .map_err(|error| {
                let failure = Failure::malformed(error.to_string());
                match error {
                    PollError::Several(_) => failure.help("name it with --poll ID"),
                    _ => failure,
                }
            })?;
        if self.json {
            console.data(json::pretty(&collation)?)?;
        } else if self.envelope {
            let envelopes = collation.to_envelopes(None);
            let envelopes = envelopes.map_err(|e| Failure::malformed(e.to_string()))?;
            console.text(&envelopes.join("\n"))?;
        } else {
            let report = json::read(json::value(&collation)?)?;
            console.show(&view::poll(console, &report))?;
        }
        Ok(())
    }

    /// The poll that is meant, by its whole id.
    fn wanted<'p>(&self, papers: &[Paper<'p>]) -> Result<Option<&'p str>, Failure> {
        let Some(poll) = &self.poll else {
            return Ok(None);
        };
        let all = polls(papers);
        let begins = |id: &&&str| {
            let start = id.get(..poll.len());
            start.is_some_and(|s| s.eq_ignore_ascii_case(poll))
        };
        let fitting: Vec<&str> = all.iter().filter(begins).copied().collect();
        let exact = fitting.iter().find(|id| **id == poll.as_str());
        match (exact, fitting.as_slice()) {
            (Some(one), _) => Ok(Some(*one)),
            (None, [one]) => Ok(Some(*one)),
            (None, none_or_several) => {
                let (what, ids) = match none_or_several.is_empty() {
                    true => (
                        "no poll among the envelopes has an id that begins so; there are",
                        &all,
                    ),
                    false => ("several polls have an id that begins so", &fitting),
                };
                Err(Failure::malformed(format!(
                    "--poll {poll}: {what}: {}",
                    ids.join(", ")
                )))
            }
        }
    }

    /// When a relay whose key is known got a message.
    fn hop(&self, document: &Document<'_>) -> Option<Timestamp> {
        let proven = |key: &PublicKey| check_hop(document, key).ok().map(|hop| hop.received_at);
        self.relay_key.iter().filter_map(proven).min()
    }
}
