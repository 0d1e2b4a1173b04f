//! The commands that write a message: `send`, `reply`, `forward`, `escalate`, `handoff` and `close`.

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::typed_text;
use crate::paragraph::count;
use crate::screen::clip_cells;
use crate::service::compose::Content;
use crate::service::consent;
use crate::service::deliver::SendOptions;
use crate::service::lookup::{self, LAST};
use crate::service::recipient::{Ask, meant_by, resolve_each, resolve_typed, sender_or_own};
use crate::service::reply::answer;
use crate::service::workspace::Workspace;
use crate::{clock, shell, view};
use clap::Args;
use crosstalk_envelope::{Builder, Intent, Timestamp};
use crosstalk_protocol::bundle::{
    self, Bundle, BundleClosing, BundleError, DEFAULT_LIMIT, Escalation, closing, escalation,
    others_in,
};
use crosstalk_protocol::compose::looks_like_text;
use crosstalk_protocol::store::{Record, ReferenceMatch, Side, Wait};
use crosstalk_store::SqliteStore;

/// Write a message, keep it, and put it on the clipboard
///
/// Prints the envelope; paste it into the chat that it is for. Without a text, your editor opens. Sender, subject and intent come
/// from the settings and the text, unless you give them. Several receivers get a message each, in one thread, and `crosstalk show
/// --compare` puts their answers side by side.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk send chatgpt \"Should we use JWT?\"\n  crosstalk send claude --context auth --attach plan.md\n  git diff | crosstalk send gemini --intent REQUEST --body -\n  crosstalk send claude://code/api \"Which endpoint stays?\" --wait 60   # by the relay\n  crosstalk send chatgpt,claude \"Which of the two endpoints should stay?\"   # asks both\n  crosstalk send chatgpt --fyi --reply-to last \"Thanks, got it.\"   # waits for nothing\n\nExit codes: 0 sent, 1 nothing written or kept, 2 wrong usage, 11 consent\ndenied, 12 and 13 the message would break a rule, 14 no permission (a key, a\nclosed thread); with a relay, 10 to 17 it rejects the message, 16 no answer in time."
)]
pub(crate) struct Send {
    /// The receiver: a name, or an address such as chatgpt://thread/xyz789; several with commas between them
    #[arg(value_name = "TO")]
    to: String,
    #[command(flatten)]
    ask: Ask,
    #[command(flatten)]
    content: Content,
    /// The message that it answers: its id or the beginning of it, or `last`
    #[arg(long, value_name = "ID")]
    reply_to: Option<String>,
    #[command(flatten)]
    delivery: SendOptions,
}

impl Send {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let workspace = Workspace::open(console)?;
        let receivers = self
            .ask
            .resolve_each(console, &workspace.config, &self.to)?;
        for receiver in &receivers {
            if let Some(meant) = meant_by(&workspace, console, receiver)? {
                console.note(&format!(
                    "the name {} is not known here: did you mean {}?",
                    view::line(receiver),
                    view::line(&meant)
                ))?;
            }
        }
        let answered = match &self.reply_to {
            Some(reference) => Some(lookup::message(&workspace.kept(console)?, reference)?),
            None => None,
        };
        if let Some(answered) = &answered {
            self.delivery
                .require_open(&workspace.kept(console)?, &answered.thread)?;
        }
        self.delivery.require_key(&workspace)?;
        let sender = self.content.sender(&workspace.config)?;
        let outgoing = self.content.write(
            console,
            &workspace,
            (&sender, &receivers),
            answered.as_ref(),
        )?;
        outgoing.dispatch(console, &workspace, &self.delivery)
    }
}

/// How many messages that wait are listed.
const LISTED: usize = 9;

/// Answer a message
///
/// Without an id, the message that waits for you; `last` is the latest that waits, or the latest of another party if none does. The
/// answer gets the thread, parent, session and context of the message, and goes to its sender; to a POLL it is a ballot. Without a
/// text, your editor opens with the message below. A text that only says thanks for an answer waits for nothing; --intent REQUEST
/// asks for an answer.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk reply\n  crosstalk reply \"Yes, with short expiry.\"           # to the one message that waits\n  crosstalk reply 01K74V8Q \"Yes, with short expiry.\"\n  crosstalk reply last --body - < answer.txt\n  crosstalk reply last --fyi \"Thanks, got it.\"   # waits for nothing\n\nExit codes: as of crosstalk send; 1 if nothing waits for you."
)]
pub(crate) struct ReplyCommand {
    /// The message: its id or the beginning of it, a thread, or `last`; without TEXT, a text for the only message that waits
    #[arg(value_name = "ID")]
    id: Option<String>,
    #[command(flatten)]
    content: Content,
    #[command(flatten)]
    delivery: SendOptions,
}

impl ReplyCommand {
    pub(super) fn run(mut self, console: &mut Console) -> Result<Exit, Failure> {
        let workspace = Workspace::open(console)?;
        let store = workspace.kept(console)?;
        if let Some(text) = self.id.take_if(|id| is_the_text(&store, id, &self.content)) {
            self.content.set_text(text);
        }
        self.require_known(&store)?;
        let is_named = self
            .id
            .as_deref()
            .is_some_and(|id| !id.eq_ignore_ascii_case(LAST));
        let answered = match &self.id {
            // A thanks is for the answer that came last, and not for a question that waits.
            Some(reference) if self.content.asks_nothing() => {
                lookup::others_message(&store, reference)?
            }
            Some(reference) => lookup::question(&store, reference)?,
            None => waiting(&store, self.content.has_text())?,
        };
        self.delivery.require_open(&store, &answered.thread)?;
        if !is_named {
            console.talk(&format!("Answers {}\n", lookup::named(&store, &answered)?))?;
        }
        drop(store);
        answer(
            console,
            &workspace,
            &answered,
            &self.content,
            &self.delivery,
        )
    }
}

impl ReplyCommand {
    /// Rejects an only argument that names no message here and does not look like a text; it may be one.
    fn require_known(&self, store: &SqliteStore) -> Result<(), Failure> {
        let Some(id) = self
            .id
            .as_deref()
            .filter(|id| !id.eq_ignore_ascii_case(LAST))
        else {
            return Ok(());
        };
        match store.find(id)? {
            ReferenceMatch::Nothing if !self.content.has_text() => Err(Failure::failed(format!(
                "no message or thread here begins with `{id}`"
            ))
            .help(format!(
                "`crosstalk inbox` lists those that wait; if it is your \
                 answer, `crosstalk reply last {}` sends it",
                shell::word(id)
            ))),
            _ => Ok(()),
        }
    }
}

/// Whether the only argument is the answer and not the message: it names none that is here, and reads like a text.
fn is_the_text(store: &SqliteStore, argument: &str, content: &Content) -> bool {
    let names_something = argument.eq_ignore_ascii_case(LAST)
        || !matches!(store.find(argument), Ok(ReferenceMatch::Nothing));
    !names_something && !content.has_text() && looks_like_text(argument)
}

/// The message that waits for an answer: without a text, which a person writes below it, the latest one; a text that is there
/// already goes to the only one.
fn waiting(store: &SqliteStore, has_text: bool) -> Result<Record, Failure> {
    let mut open = lookup::open(store, &[Wait::Me])?.into_iter();
    let Some(latest) = open.next() else {
        return Err(
            Failure::failed("nothing waits for an answer of yours").help(
                "`crosstalk reply last \"…\"` answers the latest message, and `crosstalk \
             threads` lists the others",
            ),
        );
    };
    let others: Vec<Record> = open.collect();
    if others.is_empty() || !has_text {
        return Ok(latest);
    }
    let number = others.len() + 1;
    let id = view::short(store, &latest.id)?;
    let mut rows = format!(
        "{number} messages wait for your answer: name one, as in `crosstalk reply {id} \"…\"`, or the latest with `last`"
    );
    for record in [&latest].into_iter().chain(&others).take(LISTED) {
        rows.push_str(&format!("\n  {}", lookup::named(store, record)?));
    }
    if number > LISTED {
        rows.push_str("\n  … `crosstalk inbox` lists the rest");
    }
    Err(Failure::usage(rows))
}

/// Show another AI or person what was said
///
/// Makes a message in the same thread. It quotes the forwarded words, with their author, the time, and whether the signature was
/// verified, so that neither a reader nor a program mistakes them for a message, or for your words. The message asks for an answer
/// unless --fyi says that it waits for none. It is kept, printed and put on the clipboard.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk forward last --to claude \"Do you agree?\"\n  crosstalk forward 01K74V8Q --to claude,gemini \"What is missing here?\"\n  crosstalk forward last --to claude --thread \"Where do we stand?\"\n\nExit codes: as of crosstalk send; 11 if a consent that the thread depends on is denied, revoked, expired, or\nnot approved to be transferred (--approve-transfer)."
)]
pub(crate) struct Forward {
    /// The message: its id or the beginning of it, or `last`, the latest of another party; of a thread, the latest one
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
    /// The maximum number of characters; a line counts the messages that do not fit
    #[arg(long, value_name = "N", default_value_t = DEFAULT_LIMIT)]
    limit: usize,
    #[command(flatten)]
    delivery: SendOptions,
}

impl Forward {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let workspace = Workspace::open(console)?;
        self.delivery.require_key(&workspace)?;
        let store = workspace.kept(console)?;
        let message = lookup::others_message(&store, &self.message)?;
        self.delivery.require_open(&store, &message.thread)?;
        // The consent of a message counts even if its text is gone.
        let thread = lookup::whole(&store, &message.thread)?;
        let mut quoted = match self.thread {
            true => {
                let all = lookup::everything(&store, &message.thread)?;
                match all.iter().any(|r| !r.text.is_empty()) {
                    true => lookup::with_text(console, all)?,
                    false => Vec::new(),
                }
            }
            false => Vec::new(),
        };
        if quoted.is_empty() {
            lookup::require_text(&message)?;
            quoted.push(message.clone());
        }
        let elsewhere = lookup::elsewhere(&store, &quoted)?;
        drop(store);
        let receivers = resolve_each(&workspace.config, &self.to)?;
        let sender = sender_or_own(&workspace.config, self.from.as_deref())?;
        let user = workspace.config.user()?;
        let note = self.text.as_deref();
        let note = note.map(|text| typed_text(console, text)).transpose()?;
        let at = clock::exact();
        let write = |receiver: &String| -> Result<Builder, Failure> {
            let id = workspace.new_id();
            let request = bundle::ForwardBundle {
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
        consent::tell_granted(console, &workspace, &builders)?;
        self.delivery
            .dispatch_all(console, &workspace, &builders, &[])
    }
}

/// Ask a person to step in, with the conversation so far
///
/// One ESCALATE envelope holds the reason, the open questions, the valid consent, and every message of the thread, so that nobody
/// has to explain anything again. It is kept, printed and put on the clipboard.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk escalate last --to human://support.acme.com/queue/billing --reason \"refund above my limit\"\n  crosstalk escalate 01K74V6R0074 --to ANNA --reason \"needs a decision\" --urgency today\n\nExit codes: as of crosstalk send; 11 if a consent that the thread depends on is denied, revoked or expired."
)]
pub(crate) struct Escalate {
    #[command(flatten)]
    transfer: ThreadTransfer,
    /// Why a person is needed, in a line
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// How soon, in a word or a line
    #[arg(long, value_name = "TEXT")]
    urgency: Option<String>,
    #[command(flatten)]
    delivery: SendOptions,
}

impl Escalate {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let workspace = Workspace::open(console)?;
        let thread = self.transfer.look_up(console, &workspace, &self.delivery)?;
        let request = Escalation {
            bundle: self.transfer.bundle(&thread),
            reason: &self.reason,
            urgency: self.urgency.as_deref(),
        };
        let builder = self
            .transfer
            .write(console, &thread, |records| escalation(records, &request))?;
        consent::tell_granted(console, &workspace, std::slice::from_ref(&builder))?;
        self.delivery.dispatch(console, &workspace, &builder, &[])
    }
}

/// Hand the conversation over to another agent or person
///
/// One HANDOFF envelope holds the capabilities that the new party needs, the consent that goes with it, and every message of the
/// thread, so that nobody has to explain anything again. It is kept, printed and put on the clipboard.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk handoff last --to gemini --capability sql --capability file-access\n  crosstalk handoff 01K74V6R0074 --to claude://session/abc123 --note \"Go on with table four.\"\n\nExit codes: as of crosstalk send; 11 if a consent that the thread depends on is denied, revoked, expired, or\nnot approved to be transferred (--approve-transfer)."
)]
pub(crate) struct Handoff {
    #[command(flatten)]
    transfer: ThreadTransfer,
    /// The person who gave a consent agrees that the new party gets it
    #[arg(long)]
    approve_transfer: bool,
    #[command(flatten)]
    delivery: SendOptions,
}

impl Handoff {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let workspace = Workspace::open(console)?;
        let thread = self.transfer.look_up(console, &workspace, &self.delivery)?;
        let request = bundle::HandoffBundle {
            bundle: self.transfer.bundle(&thread),
            approved: self.approve_transfer,
        };
        let builder = self.transfer.write(console, &thread, |records| {
            bundle::handoff(records, &request)
        })?;
        consent::tell_granted(console, &workspace, std::slice::from_ref(&builder))?;
        self.delivery.dispatch(console, &workspace, &builder, &[])
    }
}

/// The most columns of a question that is listed.
const QUOTED: usize = 40;

/// Close a thread: end the waiting in it, and tell the others
///
/// Writes a CLOSE for each of the others, keeps it and puts it on the clipboard, one after the other. Lists open questions first,
/// and asks you on a terminal. Messages that come later are kept with a warning; the command rejects new ones of yours.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk close 01K74V6R0074 --reason \"decided: JWT with short expiry\"\n\nExit codes: 0 closed, 1 not found or not confirmed, 14 already closed."
)]
pub(crate) struct Close {
    /// The thread, one of its messages, or `last`
    #[arg(value_name = "THREAD")]
    thread: String,
    /// Why, in a line
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// The outcome of the conversation, in a line
    #[arg(long, value_name = "TEXT")]
    outcome: Option<String>,
    /// Words of your own
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Don't ask, even if questions in it are open
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    delivery: SendOptions,
}

impl Close {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let workspace = Workspace::open(console)?;
        let store = workspace.kept(console)?;
        let thread = lookup::thread(&store, &self.thread)?;
        lookup::require_open(&store, &thread.id)?;
        let records = lookup::everything(&store, &thread.id)?;
        if !self.is_confirmed(console, &store, &records)? {
            return Ok(Exit::FAILURE);
        }
        drop(store);
        let sender = match records.last() {
            Some(last) if last.side == Side::Mine => last.sender.clone(),
            _ => workspace.config.sender()?,
        };
        let receivers = others_in(&records, &workspace.mine()?);
        let receivers = match receivers.is_empty() {
            true => vec![sender.clone()],
            false => self.reachable(console, &workspace, receivers)?,
        };
        let user = workspace.config.user()?;
        let mut builders = Vec::new();
        for receiver in &receivers {
            let request = BundleClosing {
                sender: &sender,
                receiver,
                user: &user,
                message: &workspace.new_id(),
                reason: self.reason.as_deref(),
                outcome: self.outcome.as_deref(),
                note: self.note.as_deref(),
            };
            builders.push(closing(&records, &request)?);
        }
        let exit = self
            .delivery
            .dispatch_all(console, &workspace, &builders, &[])?;
        let mut to_carry = Vec::new();
        for receiver in receivers {
            if self.delivery.relay_for(&workspace, &receiver)?.is_none() {
                to_carry.push(receiver);
            }
        }
        if !to_carry.is_empty() && !self.delivery.json {
            let names = view::names(&to_carry);
            console.tell(&format!("You still have to tell: {names}."))?;
        }
        Ok(exit)
    }

    /// Lists what is open, and asks whether to close it all the same where somebody can be asked.
    fn is_confirmed(
        &self,
        console: &mut Console,
        store: &SqliteStore,
        records: &[Record],
    ) -> Result<bool, Failure> {
        let open: Vec<&Record> = records.iter().filter(|r| r.wait != Wait::Nobody).collect();
        if open.is_empty() {
            return Ok(true);
        }
        let (what, pronoun) = match open.len() {
            1 => ("1 question is".to_owned(), "it"),
            many => (format!("{many} questions are"), "them"),
        };
        console.note(&format!(
            "{what} without an answer in this thread; closing it ends the waiting for {pronoun}:"
        ))?;
        for record in open {
            let whom = match record.wait {
                Wait::Me => "your answer".to_owned(),
                _ => view::names(&record.recipients()),
            };
            let words = view::first_line(&record.document().body_text());
            console.talk(&format!(
                "  {}  waits for {whom}: {}\n",
                view::short(store, &record.id)?,
                clip_cells(&words, QUOTED)
            ))?;
        }
        match self.yes || self.delivery.json || !console.can_ask() {
            true => Ok(true),
            false => console.confirm("Close it all the same?", "close it"),
        }
    }

    /// Those who are told: a relay takes one CLOSE for a thread, so of several whom it serves, the first one.
    fn reachable(
        &self,
        console: &mut Console,
        workspace: &Workspace,
        receivers: Vec<String>,
    ) -> Result<Vec<String>, Failure> {
        let mut told: Vec<(String, Option<String>)> = Vec::new();
        for receiver in receivers {
            let relay = self.delivery.relay_for(workspace, &receiver)?;
            match told
                .iter()
                .find(|(_, used)| relay.is_some() && *used == relay)
            {
                Some((first, _)) => console.note(&format!(
                    "{} is not told: the relay accepts one CLOSE for a thread, and that goes to {}",
                    view::party(&receiver),
                    view::party(first)
                ))?,
                None => told.push((receiver, relay)),
            }
        }
        Ok(told.into_iter().map(|(receiver, _)| receiver).collect())
    }
}

/// The thread that goes to another party, and what goes with it.
#[derive(Args, Debug)]
struct ThreadTransfer {
    /// The thread, one of its messages, or `last`
    #[arg(value_name = "THREAD")]
    thread: String,
    /// The receiver: a name or an address
    #[arg(long, value_name = "TO")]
    to: String,
    /// The sender, in the direction line
    #[arg(long, value_name = "NAME")]
    from: Option<String>,
    /// A capability that the receiver must have; may be given again
    #[arg(long, value_name = "WORD")]
    capability: Vec<String>,
    /// Words of your own, before the conversation
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Where the answer goes, if not to the sender
    #[arg(long, value_name = "ADDRESS")]
    answer_to: Option<String>,
    /// The maximum number of characters; a line counts the messages that do not fit
    #[arg(long, value_name = "N", default_value_t = DEFAULT_LIMIT)]
    limit: usize,
}

/// The messages of that thread, and the two sides.
#[derive(Debug)]
struct TransferredThread {
    /// All messages of the thread: what they say about consent counts, even if it is over.
    all: Vec<Record>,
    /// Those with a text.
    records: Vec<Record>,
    /// The messages of other threads that some of them belong to.
    elsewhere: Vec<Record>,
    sender: String,
    receiver: String,
    user: String,
    message: String,
    at: Timestamp,
}

impl ThreadTransfer {
    /// Looks up the conversation and the two sides.
    fn look_up(
        &self,
        console: &mut Console,
        workspace: &Workspace,
        delivery: &SendOptions,
    ) -> Result<TransferredThread, Failure> {
        delivery.require_key(workspace)?;
        let store = workspace.kept(console)?;
        let thread = lookup::thread(&store, &self.thread)?;
        delivery.require_open(&store, &thread.id)?;
        let sender = sender_or_own(&workspace.config, self.from.as_deref())?;
        let all = lookup::whole(&store, &thread.id)?;
        let records = lookup::everything(&store, &thread.id)?.into_iter();
        Ok(TransferredThread {
            records: records.filter(|r| !r.text.is_empty()).collect(),
            elsewhere: lookup::elsewhere(&store, &all)?,
            all,
            sender,
            receiver: resolve_typed(&workspace.config, &self.to),
            user: workspace.config.user()?,
            message: workspace.new_id(),
            at: clock::exact(),
        })
    }

    /// Writes the envelope. A consent that does not hold stops it; a text whose consent is over is left out.
    fn write(
        &self,
        console: &mut Console,
        thread: &TransferredThread,
        write: impl Fn(&[Record]) -> Result<Builder, BundleError>,
    ) -> Result<Builder, Failure> {
        let whole = write(&thread.all)?;
        let left_out = thread.all.len() - thread.records.len();
        if left_out == 0 {
            return Ok(whole);
        }
        if let ([first, ..], []) = (thread.all.as_slice(), thread.records.as_slice()) {
            lookup::require_text(&lookup::veiled(first.clone()))?;
        }
        let what = count(left_out, "message");
        console.note(&format!(
            "{what} left out: the consent has expired or was revoked"
        ))?;
        Ok(write(&thread.records)?)
    }

    /// The two together, as the library takes them.
    fn bundle<'a>(&'a self, thread: &'a TransferredThread) -> Bundle<'a> {
        Bundle {
            sender: &thread.sender,
            receiver: &thread.receiver,
            user: &thread.user,
            message: &thread.message,
            parent: None,
            at: thread.at,
            reply_to: self.answer_to.as_deref(),
            capabilities: &self.capability,
            note: self.note.as_deref(),
            limit: self.limit,
            elsewhere: &thread.elsewhere,
        }
    }
}
