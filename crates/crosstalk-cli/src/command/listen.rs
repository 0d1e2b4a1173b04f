//! `crosstalk listen`: follows an inbox at a relay, and prints each message or has a program answer it.

mod exec;

use crate::console::{Console, DIM, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::paragraph::count;
use crate::schema::{LISTEN, NamedForm};
use crate::service::relay::inbox::{
    Cause, addresses, hand_over, keep, listen_secret, post, printed, takes_answer,
};
use crate::service::relay::outbox::Outbox;
use crate::service::relay::remote::{
    DeliveryStatus, MessageView, Pause, RelayArgument, RelayError, Remote, random,
};
use crate::service::relay::send::is_kept;
use crate::service::workspace::Workspace;
use crate::{clock, json, view};
use clap::{Args, ValueEnum};
use crosstalk_envelope::{Intent, Timestamp};
use crosstalk_protocol::relay::report::derived;
use crosstalk_protocol::relay::{Backoff, HOPS};
use crosstalk_protocol::store::{Record, Side, Way, is_same_party, may_answer};
use crosstalk_protocol::{Ancestor, FollowUp, may_reply_to_escalation};
use crosstalk_store::SqliteStore;
use exec::Program;
use std::collections::HashSet;
use std::time::{Duration, Instant};

const AT_ONCE: u32 = 50;
/// How many pages of unacknowledged messages are searched for requeued ones.
const LOOKED_BACK: usize = 10;
/// How long the relay holds a request for the next message, in seconds.
const HELD: u64 = 30;
/// The longest pause between requests to a relay that fails, in seconds.
const LONGEST_PAUSE: u64 = 60;
/// The pause before a failed program runs again; it doubles each time.
const FIRST_RETRY: Duration = Duration::from_secs(2);
const LONGEST_RETRY: Duration = Duration::from_secs(300);
/// The pause if the relay can't be reached at that time.
const RETRY_AFTER_TROUBLE: Duration = Duration::from_secs(10);

/// Follow an inbox at a relay: print each message, or let a program answer it
///
/// Each message is verified and kept here as a pasted one is, then acknowledged at the relay. With --exec, the program gets the
/// message on standard input, never in its arguments; its output becomes the answer: plain text, or an envelope.
/// CROSSTALK_MESSAGE_FROM, _ID, _THREAD, _INTENT, _VERIFICATION and _ATTEMPT describe the message; settings of Crosstalk are not in
/// its environment. If it answers with an ESCALATE or a REQUEST, it gets the reply as a follow-up, and its next output goes to the
/// first asker. If the program fails, the sender is told, and the command runs it again after 2 seconds, then after twice as long
/// each time. A program never gets a message on which nobody may act. If the relay can't be reached, the command tries again. Run
/// one `listen` for each address: two of them both answer. Ends with Ctrl-C.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk listen\n  crosstalk listen --for CLAUDE --exec claude -p\n  crosstalk listen --for CHATGPT --exec codex exec -\n  crosstalk listen --for human://acme.example/ann --once --json\n\nExit codes: 0 with --once, a message came; 1 its program failed; 10 to 17 the relay\nrejects a request; 23 to 25 it must not be acted on (crosstalk verify --help)."
)]
pub(crate) struct Listen {
    /// The name or the address whose inbox to follow; without it, yours
    #[arg(long = "for", value_name = "ADDR")]
    address: Option<String>,
    /// End after the first message
    #[arg(long)]
    once: bool,
    /// Print each message as a line of JSON of the form crosstalk.listen/1
    #[arg(long)]
    json: bool,
    /// The form in which the program gets a message
    #[arg(long, value_enum, value_name = "FORM", default_value_t = ProgramInput::Prompt, requires = "exec")]
    input: ProgramInput,
    /// The seconds after which a program is ended
    #[arg(long, value_name = "SECONDS", default_value_t = 600, requires = "exec", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// How often a program is tried for a message before its sender gets an ERROR
    #[arg(long, value_name = "NUMBER", default_value_t = 8, requires = "exec", value_parser = clap::value_parser!(u32).range(1..=100))]
    attempts: u32,
    #[command(flatten)]
    through: RelayArgument,
    /// Run this program for each message; everything behind it are its arguments
    #[arg(long, value_name = "PROGRAM", num_args = 1.., allow_hyphen_values = true, conflicts_with = "json")]
    exec: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ProgramInput {
    /// The envelope
    Envelope,
    /// A text that explains the format, and the envelope in a fence
    Prompt,
    /// The text of the message alone
    Body,
}

impl Listen {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let program = Program::new(&self.exec, self.input, Duration::from_secs(self.timeout))?;
        let workspace = Workspace::open(console)?;
        let typed: Vec<String> = self.address.iter().cloned().collect();
        let mut whose = addresses(&workspace, &typed)?;
        whose.truncate(1);
        let address = whose.pop().unwrap_or_default();
        let remote = self.through.connect(&workspace.config, Some(&address))?;
        let sentence = format!(
            "Listening for {} at {}; Ctrl-C ends it.\n",
            view::line(&address),
            view::line(remote.url())
        );
        console.talk(&styled(DIM, &sentence))?;
        let mut cursor = None::<String>;
        let mut pause = Pause::new(LONGEST_PAUSE, "trying again");
        let (mut repeats, mut retries) = (Repeats::default(), Retries::default());
        // Messages that are not acknowledged. The next `listen` gets them again.
        let mut left: HashSet<String> = HashSet::new();
        // Messages that were found behind the cursor.
        let mut found: HashSet<String> = HashSet::new();
        let inbox = FollowedInbox {
            remote: &remote,
            address: &address,
            program: program.as_ref(),
        };
        loop {
            for id in retries.due() {
                match inbox.again(&id) {
                    Ok(Some(waiting)) => {
                        let processed = self.one(console, &workspace, inbox, &waiting)?;
                        retries.add(&id, processed.retry);
                        console.flush()?;
                    }
                    Ok(None) => {}
                    Err(trouble) if trouble.is_temporary() => {
                        retries.add(&id, Some(RETRY_AFTER_TROUBLE));
                    }
                    Err(trouble) => return Err(trouble.into()),
                }
            }
            let held = retries.seconds_left().map_or(HELD, |left| left.min(HELD));
            let page = match remote.inbox(&address, cursor.as_deref(), AT_ONCE, held) {
                Ok(page) => page,
                Err(trouble) if trouble.is_temporary() => {
                    pause.take(console, &trouble, None)?;
                    continue;
                }
                Err(trouble) => return Err(trouble.into()),
            };
            pause.over(console)?;
            std::thread::sleep(repeats.pause(&page.messages));
            // A dead letter that was queued again keeps its old place, behind the cursor.
            let again = match cursor.is_some() {
                true => requeued(&remote, &address),
                false => Vec::new(),
            };
            let is_new = |w: &MessageView| page.messages.iter().all(|m| m.id != w.id);
            let is_due = |w: &MessageView| is_new(w) && !left.contains(&w.id);
            let again: Vec<MessageView> = again.into_iter().filter(is_due).collect();
            // One that came after this page was asked for is in the next one, too.
            let fresh = page.messages.iter().filter(|w| !found.contains(&w.id));
            let all: Vec<&MessageView> = again.iter().chain(fresh).collect();
            found.extend(again.iter().map(|w| w.id.clone()));
            for waiting in all {
                if retries.has(&waiting.id) {
                    continue;
                }
                let processed = self.one(console, &workspace, inbox, waiting)?;
                retries.add(&waiting.id, processed.retry);
                if processed.is_left {
                    left.insert(waiting.id.clone());
                }
                console.flush()?;
                if self.once {
                    return Ok(processed.exit);
                }
            }
            cursor = Some(page.cursor);
        }
    }

    fn one(
        &self,
        console: &mut Console,
        workspace: &Workspace,
        inbox: FollowedInbox<'_>,
        waiting: &MessageView,
    ) -> Result<Processed, Failure> {
        let FollowedInbox {
            remote,
            address,
            program,
        } = inbox;
        if self.json {
            console.data(json::line(&NamedForm::new(LISTEN, waiting))?)?;
            console.flush()?;
        }
        let is_quiet = self.json || program.is_some();
        let exit = keep(console, workspace, waiting, (is_quiet, true))?;
        if !is_kept(exit) {
            console.warning(&format!(
                "the message {} was not kept, and stays at the relay: another message here has its id, it can't be read, or its consent \
                 is not enough",
                waiting.id
            ))?;
            return Ok(Processed {
                exit,
                retry: None,
                is_left: true,
            });
        }
        if let Some(program) = program {
            if exit != Exit::SUCCESS {
                console.warning(&format!(
                    "nobody may act on the message {0}, so the program does not get it: `crosstalk show {0}`",
                    waiting.id
                ))?;
            } else if let Err(unanswered) =
                self.answered(console, workspace, remote, waiting, program)
            {
                let (fault, retry, is_left) = match unanswered {
                    Unanswered::Program(fault) => {
                        console.failure(&fault)?;
                        let retry = self.failed(console, inbox, waiting)?;
                        (fault, retry, false)
                    }
                    Unanswered::Other(fault) => {
                        console.failure(&fault)?;
                        console.talk(&format!(
                            "{} is not acknowledged, and comes again when you listen again.\n",
                            view::line(&waiting.id)
                        ))?;
                        (fault, None, true)
                    }
                };
                let exit = fault.exit();
                return Ok(Processed {
                    exit,
                    retry,
                    is_left,
                });
            }
        }
        // It is here. If the relay can't be told now, it hands the message out once more.
        let told = remote.acknowledge(address, &waiting.id);
        if let Err(trouble) = &told {
            console.note(&format!(
                "the relay was not told that {} came: {trouble}",
                waiting.id
            ))?;
        }
        Ok(Processed {
            exit,
            retry: None,
            is_left: told.is_err(),
        })
    }

    /// Reports to the relay that the program failed, so that it tells the sender. Returns the pause before the next
    /// attempt; nothing after the last one.
    fn failed(
        &self,
        console: &mut Console,
        inbox: FollowedInbox<'_>,
        waiting: &MessageView,
    ) -> Result<Option<Duration>, Failure> {
        let id = view::line(&waiting.id);
        // The relay counts, so that it goes on counting when this ends and is started again.
        let attempts = inbox.attempts(&waiting.id).saturating_add(1);
        let backoff = Backoff {
            first: FIRST_RETRY,
            longest: LONGEST_RETRY,
            attempts: self.attempts,
        };
        let retry = backoff.after(attempts, random());
        let told = inbox
            .remote
            .report_failure(inbox.address, &waiting.id, retry.is_none());
        if let Err(trouble) = told {
            console.note(&format!(
                "the sender of {id} was not told that the program failed: {trouble}"
            ))?;
        }
        let from = view::line(&waiting.from);
        let sentence = match retry {
            None => format!(
                "{id} is a dead letter after {}: {from} gets an ERROR.\n",
                count(attempts as usize, "attempt")
            ),
            Some(_) if self.once => format!(
                "{id} is not acknowledged, and comes again when you listen again; the relay tells {from}.\n"
            ),
            Some(wait) => format!(
                "{id} is not acknowledged, and is tried again in {}; the relay tells {from}.\n",
                count(
                    usize::try_from(wait.as_secs().max(1)).unwrap_or(usize::MAX),
                    "second"
                )
            ),
        };
        console.talk(&sentence)?;
        Ok(retry)
    }

    /// Runs the program on a message and sends its answer.
    fn answered(
        &self,
        console: &mut Console,
        workspace: &Workspace,
        remote: &Remote,
        waiting: &MessageView,
        program: &Program,
    ) -> Result<(), Unanswered> {
        let (id, from) = (view::line(&waiting.id), view::line(&waiting.from));
        let store = workspace.kept(console)?;
        let record = store.message(&waiting.id).map_err(Failure::from)?;
        let record =
            record.ok_or_else(|| Failure::failed(format!("the message {} is gone", waiting.id)))?;
        let reached = |id: &str, person: &str| {
            let status = remote.status(id);
            let mut ways = status.iter().flat_map(|s| &s.deliveries);
            ways.any(|way| is_same_party(&way.to, person))
        };
        let evidence = (reached, remote.has_token());
        let history = History::of(&store, &record, &waiting.to, clock::now(), evidence)?;
        let answer_id = answer_id(&listen_secret(workspace)?, &record, &waiting.to);
        if let Some(answer) = store.message(&answer_id).map_err(Failure::from)? {
            // This ended after the program had answered, and before the relay was told.
            if Outbox::of(workspace).find(&answer.id).is_some() {
                hand_over(workspace, remote, &answer.id, &answer.text)?;
            }
            let sentence = format!(
                "{id} from {from}: already answered with {}\n",
                view::line(&answer.id)
            );
            return Ok(console.talk(&sentence)?);
        }
        drop(store);
        let follow_up = history.follow_up.as_ref();
        let said = program.run(waiting, &record, follow_up);
        let said = said.map_err(Unanswered::Program)?;
        if follow_up.is_none() && !takes_answer(waiting) {
            return Ok(console.talk(&format!("{id} from {from}: given to the program\n"))?);
        }
        if history.is_endless {
            return Ok(console.warning(&format!(
                "the answer of the program to {id} was dropped: the conversation goes in circles"
            ))?);
        }
        let question = follow_up.map(|f| question_of(&f.question, &waiting.to));
        let cause = Cause {
            given: waiting,
            question: question.as_ref(),
            id: &answer_id,
            is_program: true,
        };
        let answers = printed(cause, workspace, &said, record.at).map_err(Unanswered::Program)?;
        if answers.is_empty() {
            return Ok(console.talk(&format!(
                "{id} from {from}: given to the program; its next question is not sent\n"
            ))?);
        }
        let mut sent = Vec::new();
        for answer in &answers {
            if let Some(printed) = &answer.printed_sender {
                console.note(&format!(
                    "the program wrote the sender {} into its envelope, which goes out from {}",
                    view::line(printed),
                    view::line(&waiting.to)
                ))?;
            }
            sent.push(post(console, workspace, remote, &answer.text)?);
        }
        let sent = view::names(&sent);
        let sentence = match &question {
            Some(question) => {
                let asker = view::line(&question.from);
                format!("{id}, the reply of {from}: {asker} is answered with {sent}\n")
            }
            None => format!("{id} from {from}: answered with {sent}\n"),
        };
        Ok(console.talk(&sentence)?)
    }
}

/// The id of the answer to a message; it is the same however often the program answers. It must be a secret: a message
/// of another sender with this id would take the place of the answer.
fn answer_id(secret: &str, record: &Record, address: &str) -> String {
    let seed = format!("answer\n{secret}\n{}\n{address}\n", record.digest);
    derived(record.at, &seed)
}

enum Unanswered {
    /// The program failed, or what it printed is no answer.
    Program(Failure),
    /// Another step failed.
    Other(Failure),
}

impl From<Failure> for Unanswered {
    fn from(fault: Failure) -> Self {
        Self::Other(fault)
    }
}

/// The result of processing a message.
struct Processed {
    exit: Exit,
    retry: Option<Duration>,
    /// Whether the message is neither acknowledged nor a dead letter.
    is_left: bool,
}

/// Dead letters that the operator has requeued and that were not fetched since. If the relay can't be asked now, the
/// next round asks it.
fn requeued(remote: &Remote, address: &str) -> Vec<MessageView> {
    let (mut found, mut cursor) = (Vec::new(), None::<String>);
    for _ in 0..LOOKED_BACK {
        let Ok(page) = remote.inbox(address, cursor.as_deref(), AT_ONCE, 0) else {
            break;
        };
        if page.messages.is_empty() {
            break;
        }
        let is_queued = |w: &MessageView| w.state.as_deref() == Some("queued");
        found.extend(page.messages.into_iter().filter(is_queued));
        cursor = Some(page.cursor);
    }
    found
}

/// The inbox that is followed, and the program that answers.
#[derive(Clone, Copy)]
struct FollowedInbox<'e> {
    remote: &'e Remote,
    address: &'e str,
    program: Option<&'e Program>,
}

impl FollowedInbox<'_> {
    /// How often the program has failed on a message.
    fn attempts(&self, id: &str) -> u32 {
        let deliveries = self.deliveries(id).unwrap_or_default();
        let attempts = deliveries.iter().map(|d| d.attempts).max();
        attempts.unwrap_or(0)
    }

    /// The deliveries of a message to this inbox; for a name, those to the address behind it.
    fn deliveries(&self, id: &str) -> Result<Vec<DeliveryStatus>, RelayError> {
        let mut deliveries = self.remote.status(id)?.deliveries;
        let is_here = |d: &DeliveryStatus| is_same_party(&d.to, self.address);
        if deliveries.iter().any(is_here) {
            deliveries.retain(is_here);
        }
        Ok(deliveries)
    }

    /// The current state of a message to retry; nothing if it was revoked or already answered.
    fn again(&self, id: &str) -> Result<Option<MessageView>, RelayError> {
        let message = match self.remote.message(id) {
            Err(trouble) if trouble.is_unknown() => return Ok(None),
            other => other?,
        };
        let is_over = |state: &str| matches!(state, "read" | "acknowledged" | "failed");
        let deliveries = self.deliveries(id)?;
        let is_open = deliveries.iter().any(|d| !is_over(&d.state));
        let failures = deliveries.iter().map(|d| d.attempts).max().unwrap_or(0);
        Ok(is_open.then(|| MessageView {
            to: self.address.to_owned(),
            attempt: Some(failures.saturating_add(1)),
            ..message
        }))
    }
}

/// Messages on which the program failed, with the time of the next attempt.
#[derive(Debug, Default)]
struct Retries {
    waiting: Vec<(Instant, String)>,
}

impl Retries {
    fn add(&mut self, id: &str, after: Option<Duration>) {
        if let Some(after) = after {
            self.waiting.push((Instant::now() + after, id.to_owned()));
        }
    }

    fn has(&self, id: &str) -> bool {
        self.waiting.iter().any(|(_, waiting)| waiting == id)
    }

    /// Removes and returns the messages that are due.
    fn due(&mut self) -> Vec<String> {
        let now = Instant::now();
        let due = self.waiting.extract_if(.., |(at, _)| *at <= now);
        due.map(|(_, id)| id).collect()
    }

    /// After how many seconds the next one is due.
    fn seconds_left(&self) -> Option<u64> {
        let next = self.waiting.iter().map(|(at, _)| *at).min()?;
        let left = next.saturating_duration_since(Instant::now());
        Some(left.as_secs().saturating_add(1))
    }
}

/// Slows down if the relay returns the same messages again and again.
#[derive(Debug, Default)]
struct Repeats {
    before: Vec<String>,
    seconds: u64,
}

impl Repeats {
    fn pause(&mut self, messages: &[MessageView]) -> Duration {
        let is_old = |w: &MessageView| self.before.contains(&w.id);
        self.seconds = match !messages.is_empty() && messages.iter().all(is_old) {
            true => (self.seconds * 2).clamp(1, LONGEST_PAUSE),
            false => 0,
        };
        if !messages.is_empty() {
            self.before = messages.iter().map(|w| w.id.clone()).collect();
        }
        Duration::from_secs(self.seconds)
    }
}

/// The conversation of a message, as far as it is kept here.
struct History {
    /// The question that it follows up, if it replies to a question of the program.
    follow_up: Option<FollowUp>,
    /// Whether the conversation has reached the hop limit.
    is_endless: bool,
}

impl History {
    /// The history of a message to an address. `reached` says whether the relay delivered a message to somebody,
    /// `has_credential` whether it asks for credentials.
    fn of(
        store: &SqliteStore,
        record: &Record,
        address: &str,
        now: Timestamp,
        (reached, has_credential): (impl Fn(&str, &str) -> bool, bool),
    ) -> Result<Self, Failure> {
        let is_agent = |sender: &str| {
            is_same_party(sender, address)
                || is_same_party(sender, &record.receiver)
                || may_answer(address, sender)
        };
        let mut ancestors: Vec<Ancestor> = Vec::new();
        let mut parent = record.parent.clone();
        while let Some(id) = parent.take().filter(|_| ancestors.len() < HOPS) {
            let Some(found) = store.message(&id)? else {
                break;
            };
            parent.clone_from(&found.parent);
            let is_mine = found.side == Side::Mine;
            let is_own = is_mine && found.way == Way::Sent && is_agent(&found.sender);
            let was_reached = |replier: &str| reached(&found.id, replier);
            let is_for_replier = match found.meaning.filter(|_| is_own) {
                Some(Intent::Escalate) => {
                    may_reply_to_escalation(&found.receiver, &record.sender, was_reached)
                }
                Some(Intent::Request) => {
                    is_same_party(&found.receiver, &record.sender) || was_reached(&record.sender)
                }
                _ => false,
            };
            ancestors.push(Ancestor {
                is_own,
                // The messages before a HANDOFF were for others.
                is_for_agent: found.side == Side::ToMe,
                is_for_replier,
                record: found,
            });
        }
        let is_endless = ancestors.len() >= HOPS;
        Ok(Self {
            follow_up: FollowUp::find(record, ancestors, now)
                .map(|found| found.with_credential(has_credential)),
            is_endless,
        })
    }
}

/// A question that is kept here, as it came out of the inbox of an address.
fn question_of(question: &Record, address: &str) -> MessageView {
    MessageView {
        id: question.id.clone(),
        thread: question.thread.clone(),
        from: question.sender.clone(),
        to: address.to_owned(),
        intent: question.meaning.map(|m| m.as_str().to_owned()),
        state: None,
        attempt: None,
        received_at: question.at.to_string(),
        signature: None,
        pkid: None,
        envelope: question.text.clone(),
        history: None,
        withheld: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(id: &str) -> MessageView {
        MessageView {
            id: id.into(),
            thread: "T".into(),
            from: "A".into(),
            to: "B".into(),
            intent: None,
            state: None,
            attempt: None,
            received_at: String::new(),
            signature: None,
            pkid: None,
            envelope: String::new(),
            history: None,
            withheld: None,
        }
    }

    #[test]
    fn the_id_of_an_answer_is_a_secret_and_stays() {
        let envelope = "[[A→B v1]]\nuser: u\nthread: T\nmessage: M\ncontext: c\nintent: REQUEST\nbody: |\n  x\nsig: none\n[[END]]\n";
        let home = tempfile::tempdir().unwrap();
        let mut store = crosstalk_store::SqliteStore::open(home.path().join("s.db")).unwrap();
        let document =
            crosstalk_envelope::Document::parse(envelope, crosstalk_envelope::Reading::Strict);
        let (arrival, _) = crate::service::deliver::arrival(&document, None, clock::now());
        store.accept(&[arrival]).unwrap();
        let record = store.message("M").unwrap().unwrap();
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let id = |folder: &tempfile::TempDir| {
            answer_id(
                &crate::service::relay::inbox::secret_in(folder.path()).unwrap(),
                &record,
                "B",
            )
        };
        assert_eq!(id(&one), id(&one));
        assert_ne!(id(&one), id(&other));
    }

    #[test]
    fn a_relay_that_repeats_itself_is_asked_less_often() {
        let mut repeats = Repeats::default();
        let mut seconds = |ids: &[&str]| {
            let page: Vec<MessageView> = ids.iter().map(|id| waiting(id)).collect();
            repeats.pause(&page).as_secs()
        };
        assert_eq!((seconds(&["1", "2"]), seconds(&["3"])), (0, 0));
        assert_eq!(
            (seconds(&["3"]), seconds(&["3"]), seconds(&["3"])),
            (1, 2, 4)
        );
        // Nothing is what there is most of the time.
        assert_eq!((seconds(&[]), seconds(&["3"]), seconds(&["4"])), (0, 1, 0));
    }
}
