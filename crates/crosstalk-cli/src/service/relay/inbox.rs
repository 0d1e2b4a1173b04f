//! Inbox messages: keeps them here, acknowledges them at the relay, and posts the answers of programs and chats.

use crate::clock;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::Input;
use crate::service::deliver::{self, SendOptions, refused};
use crate::service::dns::DnsOptions;
use crate::service::intake::{AssignedIds, TextIntake};
use crate::service::recipient::resolve_typed;
use crate::service::relay::outbox::{DueMessage, Outbox};
use crate::service::relay::remote::{MessageView, Remote};
use crate::service::relay::send::is_kept;
use crate::service::workspace::Workspace;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::{
    Builder, CoreHeader, Document, Intent, MetaBlock, Reading, Timestamp, scan,
};
use crosstalk_protocol::relay::report::derived;
use crosstalk_protocol::store::{
    StoreOutcome, Wait, Way, is_placeholder, is_same_party, may_answer,
};
use crosstalk_protocol::{
    Admitted, Printed, TRUNCATED_OUTPUT, VerifyContext, agent_user, expects_answer, is_answer,
    is_primer_example, is_quote, printed_receiver, verify,
};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

/// The addresses to read: those given, else the person's own.
pub(crate) fn addresses(workspace: &Workspace, typed: &[String]) -> Result<Vec<String>, Failure> {
    if let Some(pattern) = typed.iter().find(|a| a.contains('*')) {
        return Err(Failure::usage(format!(
            "`{pattern}` is a pattern, and an inbox belongs to one address"
        ))
        .help("name each address that you read for"));
    }
    if !typed.is_empty() {
        return Ok(typed
            .iter()
            .map(|a| resolve_typed(&workspace.config, a))
            .collect());
    }
    let mut all = vec![workspace.config.sender()?];
    for one in workspace.config.me() {
        if !all.contains(&one) {
            all.push(one);
        }
    }
    Ok(all)
}

/// Keeps a message here, as one that was pasted is kept, and acknowledges it at the relay.
pub(crate) fn take(
    console: &mut Console,
    workspace: &Workspace,
    remote: &Remote,
    address: &str,
    waiting: &MessageView,
    quiet: bool,
) -> Result<(Exit, bool), Failure> {
    let exit = keep(console, workspace, waiting, (quiet, true))?;
    let taken = is_kept(exit);
    if taken {
        remote.acknowledge(address, &waiting.id)?;
    }
    Ok((exit, taken))
}

/// Keeps a message like a pasted one. It is for the person who fetched it, under whatever address.
pub(crate) fn keep(
    console: &mut Console,
    workspace: &Workspace,
    waiting: &MessageView,
    (quiet, is_mine): (bool, bool),
) -> Result<Exit, Failure> {
    let look = DnsOptions::default();
    keep_history(console, workspace, &look, waiting)?;
    let mut intake = TextIntake::new(workspace, &look, false);
    intake.way = Way::Relayed;
    intake.quiet = quiet;
    intake.given = AssignedIds::of(waiting).map(|assigned| assigned.in_inbox(is_mine));
    intake.keep(console, &Input::of_text("relay", waiting.envelope.clone()))
}

/// Keeps the messages before an ESCALATE or a HANDOFF, so that they are shown with it. They wait for no answer.
fn keep_history(
    console: &mut Console,
    workspace: &Workspace,
    look: &DnsOptions,
    waiting: &MessageView,
) -> Result<(), Failure> {
    for text in waiting.history.iter().flatten() {
        let mut intake = TextIntake::new(workspace, look, false);
        intake.way = Way::Relayed;
        intake.quiet = true;
        // One that can't be kept is not shown, and the message itself is.
        let _ = intake.keep(console, &Input::of_text("relay", text.clone()))?;
        let carried = intake.kept.iter().filter(|r| r.wait == Wait::Carry);
        for record in carried {
            workspace.kept(console)?.dismiss(&record.id)?;
        }
    }
    Ok(())
}

/// Whether a message takes an answer. Answers and unsolicited messages are never answered, or two programs would talk
/// for ever.
pub(crate) fn takes_answer(waiting: &MessageView) -> bool {
    let document = Document::parse(&waiting.envelope, Reading::Strict);
    expects_answer(document.envelope().meaning())
}

/// The answer to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) text: String,
    /// Whether the responder wrote an envelope, and not only text.
    pub(crate) has_envelope: bool,
    /// The sender that a program wrote into it, where that is not the address that was asked.
    pub(crate) printed_sender: Option<String>,
}

/// What an answer belongs to.
#[derive(Clone, Copy)]
pub(crate) struct Cause<'c> {
    /// The message that the responder got.
    pub(crate) given: &'c MessageView,
    /// The question that the message follows up, if a person replied to the responder's own question.
    pub(crate) question: Option<&'c MessageView>,
    /// The id of the answer, unless it has one of its own.
    pub(crate) id: &'c str,
    /// Whether a program answers. It speaks for the address that was asked, whatever name it writes; a person's text
    /// may be from another chat.
    pub(crate) is_program: bool,
}

impl<'c> Cause<'c> {
    fn asked(&self) -> &'c MessageView {
        self.question.unwrap_or(self.given)
    }
}

/// The answers that a program printed: each of its envelopes with missing parts filled in, else the text as a RESPOND.
/// Empty where [`envelope`] returns nothing.
pub(crate) fn printed(
    cause: Cause<'_>,
    workspace: &Workspace,
    said: &str,
    at: Timestamp,
) -> Result<Vec<Answer>, Failure> {
    let given = Document::parse(&cause.given.envelope, Reading::Strict);
    match Printed::read(said, &given) {
        Printed::Truncated => Err(Failure::failed(format!("the program {TRUNCATED_OUTPUT}"))),
        Printed::Envelopes(found) if found.len() > 1 => {
            let mut answers = Vec::new();
            for (number, document) in found.iter().enumerate() {
                let id = match number {
                    0 => cause.id.to_owned(),
                    _ => derived(at, &format!("printed\n{}\n{number}\n", cause.id)),
                };
                let cause = Cause { id: &id, ..cause };
                answers.extend(from_envelope(cause, workspace, document)?);
            }
            Ok(answers)
        }
        _ => Ok(envelope(cause, workspace, said)?.into_iter().collect()),
    }
}

/// The answer in a text: its last envelope with missing parts filled in, else the text as a RESPOND. Nothing if a
/// person declined or failed and the text asks another party.
pub(crate) fn envelope(
    cause: Cause<'_>,
    workspace: &Workspace,
    said: &str,
) -> Result<Option<Answer>, Failure> {
    let found = scan(said, Reading::Paste);
    let given = Document::parse(&cause.given.envelope, Reading::Strict);
    let is_quoted = |d: &Document<'_>| cause.is_program && is_quote(d, &given);
    let is_written = |d: &&Document<'_>| !is_primer_example(d) && !is_quoted(d);
    let mut written = found.documents.iter().filter(is_written);
    if let Some(last) = written.next_back() {
        return from_envelope(cause, workspace, last);
    }
    let body = said.trim_end().trim_start_matches(['\r', '\n']);
    if body.trim().is_empty() {
        return Err(Failure::failed("the answer is empty"));
    }
    let text = respond(cause, body).build();
    Ok(Some(Answer {
        text: text.map_err(|e| refused(&e))?,
        has_envelope: false,
        printed_sender: None,
    }))
}

/// The answer in an envelope, unless a person declined or failed and the envelope asks another party.
fn from_envelope(
    cause: Cause<'_>,
    workspace: &Workspace,
    found: &Document<'_>,
) -> Result<Option<Answer>, Failure> {
    let given = Document::parse(&cause.given.envelope, Reading::Strict);
    let is_final = given.envelope().meaning() != Some(Intent::Respond);
    let ends = is_answer(found.envelope().meaning());
    if cause.question.is_some() && !ends && is_final {
        return Ok(None);
    }
    let is_foreign = |sender: &&str| speaker(cause.asked(), sender).is_none();
    let printed_sender = Some(found.sender()).filter(is_foreign).map(str::to_owned);
    Ok(Some(Answer {
        text: own(cause, workspace, found)?,
        has_envelope: true,
        printed_sender,
    }))
}

/// The responder's envelope, with its missing parts filled in.
fn own(cause: Cause<'_>, workspace: &Workspace, answer: &Document<'_>) -> Result<String, Failure> {
    let ends = is_answer(answer.envelope().meaning());
    let waiting = match ends {
        true => cause.asked(),
        false => cause.given,
    };
    let sender = answer.sender();
    let known = speaker(waiting, sender);
    let is_signed = answer.sig().is_some_and(|sig| sig != "none");
    let own = cause.is_program.then_some(waiting.to.as_str());
    let speaker = known.or(own);
    let Some(speaker) = speaker.filter(|s| !is_signed || is_same_party(s, sender)) else {
        return Err(Failure::denied(format!(
            "the answer is an envelope from {sender}, and {} was asked: nothing was sent",
            waiting.to
        )));
    };
    if is_signed {
        let verdict = verify(
            answer,
            &workspace.keys.trust()?,
            &VerifyContext::at(clock::now()),
        );
        let admitted = Admitted::new(answer, verdict);
        return Ok(admitted.document().source().to_owned());
    }
    let named = |core| answer.header(core).filter(|id| !is_placeholder(id));
    let is_new = |id: &&str| *id != waiting.id;
    let receiver = match answer.receiver() {
        _ if known.is_none() => printed_receiver(answer, &[&waiting.to], &waiting.from),
        // Whomever a model addresses: who asked first waits for it.
        _ if ends && cause.question.is_some() => waiting.from.as_str(),
        // Models shorten the address of who asked.
        short if ends && may_answer(&waiting.from, short) => waiting.from.as_str(),
        receiver => receiver,
    };
    let (thread, parent) = match ends {
        true => (Some(waiting.thread.as_str()), Some(waiting.id.as_str())),
        false => (named(CoreHeader::Thread), named(CoreHeader::Parent)),
    };
    let question = Document::parse(&waiting.envelope, Reading::Strict);
    let context = answer.header(CoreHeader::Context);
    let user = match answer.header(CoreHeader::User) {
        Some(user) => user.to_owned(),
        None => agent_user(&waiting.to),
    };
    let session = answer.header(CoreHeader::Session);
    let mut builder = Builder::new(speaker, receiver)
        .user(user)
        .core_if(
            CoreHeader::Session,
            session.or_else(|| question.header(CoreHeader::Session)),
        )
        .thread(thread.unwrap_or(&waiting.thread))
        .parent(parent.filter(is_new).unwrap_or(&waiting.id))
        .context(
            context
                .or_else(|| question.header(CoreHeader::Context))
                .unwrap_or("reply"),
        )
        .intent(
            answer
                .header(CoreHeader::Intent)
                .unwrap_or(Intent::Respond.as_str()),
        );
    builder = match named(CoreHeader::Message).filter(is_new) {
        Some(id) => builder.message(id),
        None => builder.message(cause.id),
    };
    // Signatures and hops that a model copied are those of another message.
    let is_said =
        |b: &MetaBlock<'_>| !matches!(b.namespace(), "integrity" | "key" | "audit" | "email");
    for block in answer.blocks().filter(is_said) {
        for (key, value) in block.fields() {
            builder = builder.meta(block.namespace(), key, value);
        }
    }
    let builder = builder.body(answer.body_text()).visible();
    builder.build().map_err(|e| refused(&e))
}

/// The address under which `sender` answers; nothing if another party was asked.
fn speaker<'w>(waiting: &'w MessageView, sender: &'w str) -> Option<&'w str> {
    let question = Document::parse(&waiting.envelope, Reading::Strict);
    let is_for_one = question.envelope().routing().target_list().is_empty();
    // The name that the relay maps to the address.
    if is_for_one && is_same_party(sender, question.receiver()) {
        return Some(sender);
    }
    may_answer(&waiting.to, sender).then_some(waiting.to.as_str())
}

fn respond(cause: Cause<'_>, body: &str) -> Builder {
    let waiting = cause.asked();
    let document = Document::parse(&waiting.envelope, Reading::Strict);
    let envelope = document.envelope();
    let reply_to = envelope.routing().reply_to;
    let receiver = reply_to.map_or(waiting.from.clone(), |a| a.as_str().to_owned());
    let builder = Builder::new(waiting.to.as_str(), receiver)
        .user(agent_user(&waiting.to))
        .core_if(CoreHeader::Session, envelope.session.map(|s| s.text))
        .thread(&waiting.thread)
        .parent(&waiting.id)
        .message(cause.id)
        .context(envelope.context.unwrap_or("reply"))
        .intent(Intent::Respond.as_str())
        .body(body);
    builder.visible()
}

/// Keeps an answer here, signed if the settings say so, and hands it to the relay. Returns its id.
pub(crate) fn post(
    console: &mut Console,
    workspace: &Workspace,
    remote: &Remote,
    text: &str,
) -> Result<String, Failure> {
    let document = Document::parse(text, Reading::Strict);
    let at = clock::now();
    let mut store = workspace.store(console)?;
    let is_signed = document.sig().is_some_and(|sig| sig != "none");
    let (text, key) = match is_signed {
        true => (text.to_owned(), None),
        false => {
            let is_known = store.knows(document.receiver())?;
            SendOptions::default().seal(workspace, text, at, is_known)?
        }
    };
    let (outcome, _) = deliver::keep(console, workspace, &mut store, (&text, key.as_ref()), at)?;
    let (StoreOutcome::Filed { id, .. }
    | StoreOutcome::Known { id, .. }
    | StoreOutcome::Conflict { id, .. }) = outcome;
    drop(store);
    let outbox = Outbox::of(workspace);
    outbox.add(&DueMessage::new(&id, remote, &[]))?;
    hand_over(workspace, remote, &id, &text)?;
    Ok(id)
}

/// Hands an answer to the relay that is kept here.
pub(crate) fn hand_over(
    workspace: &Workspace,
    remote: &Remote,
    id: &str,
    text: &str,
) -> Result<(), Failure> {
    remote.receive(text).map_err(|trouble| {
        Failure::refused(
            trouble.code(),
            format!("the answer was not handed over: {trouble}\nIt is kept"),
        )
        .help(format!("`crosstalk relay deliver {id}` tries again"))
    })?;
    Outbox::of(workspace).remove(id)
}

/// The name of the file in the folder of the settings.
const FILE: &str = "listen.secret";
const LENGTH: u64 = 32;

/// The secret of a person as text. It is made when it is needed first, and stays the same from then on.
pub(crate) fn listen_secret(workspace: &Workspace) -> Result<String, Failure> {
    secret_in(workspace.home().as_ref())
}

pub(crate) fn secret_in(folder: &Path) -> Result<String, Failure> {
    let place = folder.join(FILE);
    let fault = |e: io::Error| Failure::at(&place, e);
    if !place.exists() {
        let mut bytes = [0; LENGTH as usize];
        getrandom::fill(&mut bytes).map_err(|e| fault(io::Error::other(e.to_string())))?;
        let made = tempfile::NamedTempFile::new_in(folder).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.as_file().sync_all()?;
            // Another process may have made one meanwhile: the first counts.
            match file.persist_noclobber(&place) {
                Err(e) if e.error.kind() != io::ErrorKind::AlreadyExists => Err(e.error),
                _ => Ok(()),
            }
        });
        made.map_err(fault)?;
    }
    let mut bytes = Vec::new();
    let file = File::open(&place).map_err(fault)?;
    file.take(LENGTH + 1)
        .read_to_end(&mut bytes)
        .map_err(fault)?;
    match bytes.len() as u64 == LENGTH {
        true => Ok(Digest::of(&bytes).to_string()),
        false => Err(
            Failure::failed(format!("{} is damaged", place.to_string_lossy()))
                .help("remove it, and a new one is created"),
        ),
    }
}
