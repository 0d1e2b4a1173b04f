//! A plain answer, made into the RESPOND of a message.

use super::pick;
use crate::console::Console;
use crate::failure::Failure;
use crate::input::Input;
use crate::service::deliver::refused;
use crate::service::lookup::{self, Reference};
use crate::service::poll::KeptPoll;
use crate::service::recipient::resolve_typed;
use crate::service::workspace::Workspace;
use crate::{shell, view};
use crosstalk_envelope::reply::{self, ReceivedIds};
use crosstalk_envelope::unicode::{escape, nfc};
use crosstalk_envelope::{Address, Document, Intent};
use crosstalk_protocol::answer_receiver;
use crosstalk_protocol::poll::PollCall;
use crosstalk_protocol::store::{Record, Side, Wait, Way, is_same_party, may_answer};
use crosstalk_store::SqliteStore;

/// The states of a question that somebody else has to answer.
const OPEN: [Wait; 2] = [Wait::Them, Wait::Carry];

/// Whether somebody else has to answer a message.
pub(super) fn is_open(question: &Record) -> bool {
    OPEN.contains(&question.wait)
}

/// The questions that somebody else has to answer, the latest first.
pub(super) fn open_questions(store: &SqliteStore) -> Result<Vec<Record>, Failure> {
    lookup::open(store, &OPEN)
}

/// Whether a message asks somebody.
pub(crate) fn asks(question: &Record, name: &str) -> bool {
    match question.meaning {
        Some(Intent::Poll) => PollCall::read(&question.document(), &question.id, None).asks(name),
        _ => may_answer(&question.receiver, name),
    }
}

/// Those whom a message asks: of a poll, the voters.
pub(crate) fn asked(question: &Record) -> Vec<String> {
    match question.meaning {
        Some(Intent::Poll) => PollCall::read(&question.document(), &question.id, None).invited,
        _ => vec![question.receiver.clone()],
    }
}

/// Those whom several messages ask, each once.
fn all_asked(questions: &[Record]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in questions.iter().flat_map(asked) {
        if !all.iter().any(|known| is_same_party(known, &name)) {
            all.push(name);
        }
    }
    all
}

/// The failure where no question is open.
pub(super) fn none_open() -> Failure {
    Failure::failed("no message of yours waits for an answer").help(
        "`crosstalk threads` lists those that this text may answer; name one with \
         --as-reply-to",
    )
}

/// How a text that holds no message that can be read is filed as the answer to a question, with a command that works as it is
/// printed. The text may name the question or the sender.
pub(super) fn hint(
    console: &mut Console,
    workspace: &Workspace,
    input: &Input,
) -> Result<String, Failure> {
    const ASK: &str = "No message here waits for an answer, so the text can't be filed as one: ask first with `crosstalk send NAME \"…\"`.";
    let Some(store) = workspace.messages(console)? else {
        return Ok(ASK.to_owned());
    };
    let body = body_of(input).unwrap_or_default();
    let open = open_questions(&store)?;
    let file = input.further_argument();
    let (reference, asked) = match (named_in(&store, body)?, open.as_slice()) {
        (Some(question), _) => (view::short(&store, &question.id)?, asked(&question)),
        (None, []) if lookup::recent(&store, is_question)?.is_empty() => return Ok(ASK.to_owned()),
        (None, []) => {
            return Ok(format!(
                "If it is the plain answer to a message of yours, file it with `crosstalk paste --as-reply-to ID{file}`; \
                 `crosstalk threads` lists the messages."
            ));
        }
        (None, open) => (lookup::LAST.to_owned(), all_asked(open)),
    };
    let from = match asked.as_slice() {
        [] | [_] => String::new(),
        [first, ..] => {
            let words = body.to_lowercase();
            let is_in_text = |name: &&String| words.contains(&name.to_lowercase());
            let said = asked.iter().find(is_in_text).unwrap_or(first);
            format!(" --from {}", shell::word(said))
        }
    };
    let names = match asked.as_slice() {
        [] | [_] => String::new(),
        several => format!("; --from names its sender, one of {}", view::names(several)),
    };
    Ok(format!(
        "If it is the plain answer to a message of yours, file it with `crosstalk paste --as-reply-to {reference}{from}{file}`{names}."
    ))
}

/// Whether a message asks somebody else.
fn is_question(record: &Record) -> bool {
    record.side != Side::ToMe && record.meaning.is_some_and(Intent::asks)
}

/// The question whose id a text contains.
fn named_in(store: &SqliteStore, text: &str) -> Result<Option<Record>, Failure> {
    const WORDS: usize = 400;
    let is_inside = |c: char| c.is_alphanumeric() || c == '-';
    let words = text.split(|c| !is_inside(c));
    for word in words.filter(|w| w.len() >= 20).take(WORDS) {
        if let Some(found) = store.message(word)?.filter(is_question) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The messages among which a reference chooses.
enum Scope {
    /// The one that is named.
    Message(Box<Record>),
    /// The open ones, and all that ask somebody; the latest first.
    Questions { open: Vec<Record>, all: Vec<Record> },
}

impl Scope {
    fn find(store: &SqliteStore, reference: &str) -> Result<Self, Failure> {
        if matches!(reference, "" | lookup::LAST) {
            return Ok(Self::Questions {
                open: open_questions(store)?,
                all: lookup::recent(store, is_question)?,
            });
        }
        let thread = match lookup::reference(store, reference)? {
            Reference::Message(record) => return Ok(Self::Message(record)),
            Reference::Thread(thread) => thread,
        };
        let mut all = lookup::everything(store, &thread.id)?;
        all.reverse();
        let latest = all.first().cloned();
        all.retain(is_question);
        match (all.is_empty(), latest) {
            (true, Some(latest)) => Ok(Self::Message(Box::new(latest))),
            _ => Ok(Self::Questions {
                open: all.iter().filter(|r| is_open(r)).cloned().collect(),
                all,
            }),
        }
    }
}

/// The message that an envelope answers: the one that is named; else the latest open question to its sender, or the latest
/// one.
pub(super) fn answered_by(
    console: &mut Console,
    workspace: &Workspace,
    reference: &str,
    (from, signed): (Option<&str>, Option<&str>),
) -> Result<Record, Failure> {
    let store = workspace.kept(console)?;
    let (open, all) = match Scope::find(&store, reference)? {
        Scope::Message(record) => return Ok(*record),
        Scope::Questions { open, all } => (open, all),
    };
    if let Some(from) = from {
        return latest_to(&open, &all, from);
    }
    let of_sender = signed.and_then(|s| open.iter().find(|q| asks(q, s)));
    let found = of_sender.or(open.first());
    found.cloned().ok_or_else(none_open)
}

/// The latest open question to somebody; if none is open, the latest question.
fn latest_to(open: &[Record], all: &[Record], from: &str) -> Result<Record, Failure> {
    let mut questions = open.iter().chain(all);
    let found = questions.find(|q| asks(q, from)).cloned();
    found.ok_or_else(|| match open {
        [] => none_open(),
        open => Failure::usage(format!("no message here asks {}", escape(from))).help(format!(
            "name one of {} with --from",
            view::names(&all_asked(open))
        )),
    })
}

/// The message that a plain text answers; nothing if no question is open. A plain text does not say whose it is: where
/// several are asked, a person picks the question or names the sender.
pub(super) fn answered(
    console: &mut Console,
    workspace: &Workspace,
    (reference, from): (&str, Option<&str>),
    (input, may_ask): (&Input, bool),
) -> Result<Option<Record>, Failure> {
    let store = workspace.kept(console)?;
    let (open, all) = match Scope::find(&store, reference)? {
        Scope::Message(record) => return Ok(Some(*record)),
        Scope::Questions { open, all } => (open, all),
    };
    if let Some(from) = from {
        return latest_to(&open, &all, from).map(Some);
    }
    let names = all_asked(&open);
    if open.len() < 2 || names.len() < 2 {
        return Ok(open.into_iter().next());
    }
    if may_ask && let Some(picked) = pick::choose(console, &store, &open)? {
        return Ok(Some(picked));
    }
    let reference = match reference {
        "" => lookup::LAST,
        named => named,
    };
    let first = names.first().map_or_else(String::new, |n| shell::word(n));
    let file = input.further_argument();
    Err(Failure::usage(format!(
        "{} questions are open, and a plain answer does not name its sender",
        open.len()
    ))
    .help(format!(
        "name its sender with --from NAME, one of {}, as in \
         `crosstalk paste --as-reply-to {} --from {first}{file}`",
        view::names(&names),
        shell::word(reference)
    )))
}

/// The plain text of an answer, without the blank lines around it.
fn body_of(input: &Input) -> Result<&str, Failure> {
    let text = input
        .text()
        .map_err(|(_, d)| Failure::of_rule(d.rule, &d.message))?;
    Ok(text.trim_end().trim_start_matches(['\r', '\n']))
}

/// The lines of a text in the form in which a body is kept.
fn lines_of(text: &str) -> Vec<String> {
    let lines = text.trim_end().lines();
    lines.map(|l| nfc(l.trim_end()).into_owned()).collect()
}

/// Whether a message was filed from the same plain text.
fn is_filed_from(record: &Record, body: &str) -> bool {
    record.way == Way::Filed && lines_of(&record.document().body_text()) == lines_of(body)
}

/// The answer that was filed before from the same plain text, in one of the latest threads; by the one who is named, if one is.
pub(super) fn filed_before(
    console: &mut Console,
    workspace: &Workspace,
    input: &Input,
    from: Option<&str>,
) -> Result<Option<Record>, Failure> {
    let (Ok(body), Some(store)) = (body_of(input), workspace.messages(console)?) else {
        return Ok(None);
    };
    if body.is_empty() {
        return Ok(None);
    }
    lookup::find_recent(&store, |r| {
        is_filed_from(r, body) && from.is_none_or(|f| is_same_party(&r.sender, f))
    })
}

/// Makes the envelope for an answer in plain text; an answer that was indexed before keeps its envelope.
pub(super) fn envelope(
    console: &mut Console,
    workspace: &Workspace,
    input: &Input,
    (answered, from): (&Record, Option<&str>),
) -> Result<String, Failure> {
    let body = body_of(input)?;
    if body.is_empty() {
        return Err(Failure::failed("there is no text to file"));
    }
    let document = answered.document();
    let sender = speaker(console, workspace, (answered, &document), from)?;
    let before = lookup::everything(&workspace.kept(console)?, &answered.thread)?;
    let mut before = before
        .into_iter()
        .rev()
        .filter(|r| r.parent.as_deref() == Some(&answered.id) && is_same_party(&r.sender, &sender));
    if let Some(same) = before.find(|r| is_filed_from(r, body)) {
        return Ok(same.text);
    }
    let ids = ReceivedIds {
        thread: answered.thread.clone(),
        message: answered.id.clone(),
    };
    let user = workspace.config.user()?;
    let mut asked = document.envelope();
    asked.sender = Address::split(answer_receiver(answered, &sender));
    asked.receiver = Address::split(&sender);
    let builder = reply::respond(&asked, &ids, &user, body);
    builder.build().map_err(|e| refused(&e))
}

/// Finds the sender: the one whom the message is for, or who wrote it if it is for the person; of those whom a poll asks, the one
/// who is named.
fn speaker(
    console: &mut Console,
    workspace: &Workspace,
    (answered, document): (&Record, &Document<'_>),
    from: Option<&str>,
) -> Result<String, Failure> {
    if answered.meaning != Some(Intent::Poll) {
        let other = match answered.side {
            Side::ToMe => &answered.sender,
            Side::Mine | Side::Between => &answered.receiver,
        };
        return Ok(from.unwrap_or(other).to_owned());
    }
    let call = PollCall::read(document, &answered.id, None);
    let open = KeptPoll::missing(console, workspace, &answered.id)?;
    let asked = match open.is_empty() {
        true => view::names(&call.invited),
        false => view::names(&open),
    };
    let from = match (from, call.invited.as_slice()) {
        (Some(from), _) => from.to_owned(),
        (None, [only]) => return Ok(only.clone()),
        (None, _) if console.can_ask() => {
            let line = console.ask(&format!("Who said it? One of {asked}: "))?;
            resolve_typed(&workspace.config, &line.unwrap_or_default())
        }
        (None, _) => {
            return Err(Failure::usage(
                "a poll asks several, and a plain answer does not name its sender",
            )
            .help(format!("name its sender with --from, one of {asked}")));
        }
    };
    match call.asks(&from) {
        true => Ok(from),
        false => Err(
            Failure::usage(format!("{} is no voter of this poll", escape(&from)))
                .help(format!("name one of {asked} with --from")),
        ),
    }
}
