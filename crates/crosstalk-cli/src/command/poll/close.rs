//! `crosstalk poll close`: counts a poll, keeps the result, and ends it.

use super::place::Place;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::deliver::arrival;
use crate::service::poll::KeptPoll;
use crate::service::workspace::Desk;
use crate::{clock, json, view};
use clap::Args;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{Document, ErrorCode, Reading, Timestamp};
use crosstalk_protocol::store::Store as _;

/// Close a poll: count what came, keep the result, and show it
///
/// Of a poll that was sent by paste, the result is kept here in its thread. A relay closes its polls by itself when the
/// deadline has passed or everybody has answered; one that went to a relay of the settings, or that --relay names, is
/// closed there now, and the relay sends the result.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk poll close last\n  crosstalk poll close 01K74V6VX0S86Z5JATM52C3M7Z --relay http://127.0.0.1:8799\n\nExit codes: 0 closed, 1 there is no such poll here, 10 the relay does not know\nit or can't be reached, 14 only who asked closes it."
)]
pub(super) struct Close {
    /// The poll, its thread, or `last`
    #[arg(value_name = "POLL")]
    poll: String,
    /// Only what came before this time counts; else all that came until now, or until the deadline
    #[arg(long, value_name = "TIME", value_parser = clock::time)]
    at: Option<Timestamp>,
    /// Print JSON of the form crosstalk.poll/1
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Place,
}

impl Close {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let desk = Desk::open(console)?;
        let kept = KeptPoll::find(console, &desk, &self.poll)?;
        let shown = match self.place.relay(&desk, &self.poll, kept.as_ref())? {
            Some(_) if self.at.is_some() => {
                return Err(
                    Failure::usage("a relay closes its polls at the deadline or now")
                        .help("leave out --at, or count what is kept here with --here"),
                );
            }
            Some((relay, id)) => relay.close_poll(&id)?,
            None => {
                let none = || {
                    Failure::failed(format!("no poll here begins with `{}`", self.poll))
                        .help("--remote lets the relay close it")
                };
                self.here(console, &desk, &kept.ok_or_else(none)?)?
            }
        };
        match self.json {
            true => console.data(json::pretty(&shown)?)?,
            false => console.show(&view::poll(console, &shown))?,
        }
        Ok(Exit::SUCCESS)
    }

    fn here(
        &self,
        console: &mut Console,
        desk: &Desk,
        kept: &KeptPoll,
    ) -> Result<serde_json::Value, Failure> {
        let before = kept.closed_at();
        let asked_at = kept.asked().map(|r| r.written_at.unwrap_or(r.at));
        if let (Some(asked), Some(at)) = (asked_at, self.at)
            && at <= asked
        {
            return Err(Failure::usage(format!(
                "the poll was asked at {asked}, so that nothing counts before {at}"
            ))
            .help("give a later time"));
        }
        let at = match (before, self.at) {
            (Some(closed), None) => closed,
            (_, Some(at)) => at,
            (None, None) => end(kept)?,
        };
        let collation = kept.collate(Some(at))?;
        let envelopes = collation.to_envelopes(Some(&kept.thread));
        let envelopes =
            envelopes.map_err(|e| Failure::refused(ErrorCode::Format, e.to_string()))?;
        let batch: Vec<_> = envelopes
            .iter()
            .map(|text| {
                let document = Document::parse(text, Reading::Strict);
                arrival(&document, None, clock::now()).0
            })
            .collect();
        let mut store = desk.store(console)?;
        store.accept(&batch)?;
        for text in &envelopes {
            let document = Document::parse(text, Reading::Strict);
            let id = document.envelope().message.unwrap_or_default();
            console.talk(&format!(
                "The result for {} is kept as {}.\n",
                escape(document.receiver()),
                view::short(&store, id)?
            ))?;
        }
        let mut shown = json::value(&collation)?;
        json::set(&mut shown, "state", Some("closed"));
        Ok(shown)
    }
}

/// Up to when answers count: the deadline, if it has passed, else now. What was written in this second counts.
fn end(kept: &KeptPoll) -> Result<Timestamp, Failure> {
    let now = Timestamp::from_millis(clock::now().as_millis().saturating_add(1000));
    let deadline = kept.collate(None)?.call().deadline;
    Ok(deadline.filter(|end| *end <= now).unwrap_or(now))
}
