//! `crosstalk forward`: shows one party what another said, in the same thread.

use crate::clock;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::Input;
use crate::paragraph::count;
use crate::service::deliver::Delivery;
use crate::service::recipient::{resolve_each, resolve_typed};
use crate::service::workspace::Desk;
use crate::service::{consent, lookup};
use clap::Args;
use crosstalk_envelope::{Builder, Intent};
use crosstalk_protocol::bundle::{self, Bundle, DEFAULT_LIMIT};
use crosstalk_protocol::store::Record;
use std::path::Path;

/// Show another AI or person what was said
///
/// Makes a message in the same thread. The forwarded words are quoted, with who wrote them, when, and whether the signature
/// was verified: neither a reader nor a program takes them for a message, or for your words. The message asks for an answer
/// unless --fyi says that it waits for none. It is kept, printed and put on the clipboard.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk forward last --to claude \"Do you agree?\"\n  crosstalk forward 01K74V8Q --to claude,gemini \"What is missing here?\"\n  crosstalk forward last --to claude --thread \"Where do we stand?\"\n\nExit codes: as of crosstalk send; 11 if a consent that the thread depends on is denied, revoked, over, or\nnot approved to be transferred (--approve-transfer)."
)]
pub(crate) struct Forward {
    /// The message: its id or the beginning of it, or `last`, the latest of somebody else; of a thread, the latest one
    #[arg(value_name = "MESSAGE")]
    message: String,
    /// Words of your own, before what is forwarded; `-` is stdin
    #[arg(value_name = "TEXT")]
    text: Option<String>,
    /// The receiver: a name or an address; several with commas between them
    #[arg(long, value_name = "TO")]
    to: String,
    /// Forward the whole conversation so far
    #[arg(long)]
    thread: bool,
    /// It is for information, and waits for no answer
    #[arg(long)]
    fyi: bool,
    /// The sender, in the direction line
    #[arg(long, value_name = "NAME")]
    from: Option<String>,
    /// The person who gave a consent agrees that the new party gets it
    #[arg(long)]
    approve_transfer: bool,
    /// The characters that it may have; what is left out is counted
    #[arg(long, value_name = "N", default_value_t = DEFAULT_LIMIT)]
    limit: usize,
    #[command(flatten)]
    delivery: Delivery,
}

impl Forward {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let desk = Desk::open(console)?;
        self.delivery.require_key(&desk)?;
        let store = desk.kept(console)?;
        let message = lookup::others_message(&store, &self.message)?;
        self.delivery.require_open(&store, &message.thread)?;
        // What they say about consent counts, even of those whose text is gone.
        let thread = lookup::whole(&store, &message.thread)?;
        let quoted = match self.thread {
            true => {
                let all = lookup::everything(&store, &message.thread)?;
                with_text(console, all)?
            }
            false => Vec::new(),
        };
        let quoted = match quoted.is_empty() {
            true => {
                lookup::require_text(&message)?;
                vec![message.clone()]
            }
            false => quoted,
        };
        let elsewhere = lookup::elsewhere(&store, &quoted)?;
        drop(store);
        let receivers = resolve_each(&desk.config, &self.to)?;
        let sender = match &self.from {
            Some(from) => resolve_typed(&desk.config, from),
            None => desk.config.sender()?,
        };
        let user = desk.config.user()?;
        let note = self.note(console)?;
        let at = clock::exact();
        let write = |receiver: &String| -> Result<Builder, Failure> {
            let id = desk.new_id();
            let request = bundle::Forward {
                bundle: Bundle {
                    sender: &sender,
                    receiver,
                    user: &user,
                    message: &id,
                    parent: Some(&message.id),
                    at,
                    reply_to: None,
                    capabilities: &[],
                    note: note.as_deref(),
                    limit: self.limit,
                    elsewhere: &elsewhere,
                },
                intent: match self.fyi {
                    true => Intent::Broadcast,
                    false => Intent::Request,
                },
                approved: self.approve_transfer,
            };
            Ok(bundle::forward(&thread, &quoted, &request)?)
        };
        let builders: Vec<Builder> = receivers.iter().map(write).collect::<Result<_, _>>()?;
        consent::tell_granted(console, &desk, &builders)?;
        self.delivery.dispatch_all(console, &desk, &builders, &[])
    }

    fn note(&self, console: &mut Console) -> Result<Option<String>, Failure> {
        match self.text.as_deref() {
            Some("-") => {
                let input = Input::read(Path::new("-"), console)?;
                let text = input.text().map(str::to_owned);
                text.map(Some)
                    .map_err(|(_, d)| Failure::of_rule(d.rule, &d.message))
            }
            text => Ok(text.map(str::to_owned)),
        }
    }
}

/// The messages that still have a text.
fn with_text(console: &mut Console, all: Vec<Record>) -> Result<Vec<Record>, Failure> {
    let (kept, gone): (Vec<Record>, Vec<Record>) =
        all.into_iter().partition(|r| !r.text.is_empty());
    if !gone.is_empty() && !kept.is_empty() {
        let what = count(gone.len(), "message");
        console.note(&format!(
            "{what} left out: the consent is over or was withdrawn"
        ))?;
    }
    Ok(kept)
}
