//! Hands a message to a relay, uploads its attachments, and waits for the answer.

use crate::console::{Console, DIM, GREEN, YELLOW, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::Input;
use crate::report::{FailureReport, HandedReport};
use crate::service::dns::DnsOptions;
use crate::service::intake::{AssignedIds, TextIntake};
use crate::service::relay::inbox::take;
use crate::service::relay::outbox::{DueMessage, Outbox, StatusWatch};
use crate::service::relay::remote::{MessageView, Pause, RelayArgument, RelayError, Remote};
use crate::service::settings::{Settings, base_url};
use crate::service::workspace::Workspace;
use crate::shell;
use clap::Args;
use crosstalk_envelope::json::message_of;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{CoreHeader, Document, ErrorCode, Intent, Reading};
use crosstalk_protocol::store::Way;
use crosstalk_relay::client::SendResult;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How many pages of an inbox are searched for an answer, and their size.
const PAGES: usize = 10;
const PAGE: u32 = 100;

/// Whether a message goes by a relay, and by which.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ByRelay {
    /// Hand it to this relay, whatever the settings say
    #[arg(long, value_name = "URL", value_parser = base_url, conflicts_with = "no_relay")]
    relay: Option<String>,
    /// Hand it to no relay, whatever the settings say
    #[arg(long)]
    no_relay: bool,
    /// The file with the token of the relay
    #[arg(long, value_name = "FILE", requires = "relay")]
    token_file: Option<PathBuf>,
    /// Wait up to this many seconds for the answer, show it and keep it; needs a relay
    #[arg(long, value_name = "SECONDS", conflicts_with = "no_relay", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) wait: Option<u64>,
}

impl ByRelay {
    /// The relay for a receiver; nothing if the message stays here.
    pub(crate) fn choose(
        &self,
        config: &Settings,
        receiver: &str,
    ) -> Result<Option<Remote>, Failure> {
        let configured = config.relay_for(receiver).is_some();
        if self.no_relay || (self.relay.is_none() && !configured) {
            return match self.wait {
                Some(_) => Err(Failure::usage(format!(
                    "--wait needs a relay, and none is configured for {receiver}"
                ))
                .help(
                    "name one with --relay URL, or `crosstalk \
                     relay add URL`",
                )),
                None => Ok(None),
            };
        }
        let through = RelayArgument::new(self.relay.clone(), self.token_file.clone());
        through.connect(config, Some(receiver)).map(Some)
    }
}

/// A message that is kept here and goes to a relay.
pub(crate) struct Submission<'p> {
    pub(crate) text: &'p str,
    pub(crate) files: &'p [Attached],
    pub(crate) wait: Option<u64>,
}

impl Submission<'_> {
    /// Hands the message over. The outbox keeps its destination until the relay has it.
    fn hand_over(
        &self,
        console: &mut Console,
        workspace: &Workspace,
        remote: &Remote,
        watch: Option<&mut StatusWatch>,
    ) -> Result<HandOver, Failure> {
        let document = Document::parse(self.text, Reading::Strict);
        let id = document.header(CoreHeader::Message).unwrap_or_default();
        let outbox = Outbox::of(workspace);
        outbox.add(&DueMessage::new(id, remote, self.files))?;
        upload(remote, self.files)?;
        let mut handed = HandOver::over(remote, self.text);
        if handed.is_taken {
            outbox.remove(id)?;
        }
        if let Some(seconds) = self.wait
            && (handed.is_taken || handed.is_unclear())
        {
            let mut watch = watch;
            handed.wait(
                console,
                (remote, self.text),
                seconds,
                |console| match &mut watch {
                    Some(watch) => watch.tell(console, &workspace.config, remote, id),
                    None => Ok(()),
                },
            )?;
            if handed.is_taken {
                outbox.remove(id)?;
            }
        }
        Ok(handed)
    }

    /// The failure that the relay may not have the message; `id` is the local id.
    fn explain_rejection(handed: &HandOver, trouble: RelayError, id: &str) -> (Failure, Exit) {
        let (what, next) = match handed.is_unclear() {
            true => (
                "the connection ended before the relay said whether it has the message",
                format!(
                    "`crosstalk relay deliver {id}` hands it over again; a relay accepts it once"
                ),
            ),
            false if trouble.is_wrong_sender() => (
                "not handed over",
                format!(
                    "write it again with `--from NAME`; `crosstalk forget {id}` erases this one"
                ),
            ),
            false => (
                "not handed over",
                format!("`crosstalk relay deliver {id}` hands it over again"),
            ),
        };
        let fault = Failure::from(trouble);
        let failure = Failure::failed(format!("{what}: {fault}\nThe message is kept")).help(next);
        (failure, fault.exit())
    }

    /// Hands the message over and reports the result, also a failure, since the message is kept; `id` is the local id.
    pub(crate) fn hand(
        &self,
        console: &mut Console,
        workspace: &Workspace,
        remote: &Remote,
        id: &str,
    ) -> Result<Exit, Failure> {
        let url = escape(remote.url()).into_owned();
        if let Some(seconds) = self.wait {
            let sentence =
                format!("Handing it to {url}, and waiting {seconds} seconds for the answer …\n");
            console.talk(&styled(DIM, &sentence))?;
        }
        let document = Document::parse(self.text, Reading::Strict);
        let known = document.header(CoreHeader::Message).unwrap_or(id);
        let mut watch = StatusWatch::default();
        let handed = match self.hand_over(console, workspace, remote, Some(&mut watch)) {
            Ok(handed) => handed,
            Err(fault) => {
                let failure =
                    Failure::failed(format!("not handed over: {fault}\nThe message is kept")).help(
                        format!("`crosstalk relay deliver {id}` hands it over again"),
                    );
                console.failure(&failure)?;
                return Ok(fault.exit());
            }
        };
        if let Some(answer) = &handed.answer {
            let (exit, _) = file_answer(console, workspace, remote, answer, false)?;
            return Ok(exit);
        }
        if let Some(trouble) = handed.trouble.clone().filter(|_| !handed.is_taken) {
            let (failure, exit) = Self::explain_rejection(&handed, trouble, id);
            console.failure(&failure)?;
            return Ok(exit);
        }
        let me = shell::word(document.sender());
        let later = format!(
            "`crosstalk relay deliver {id} --relay {url} --wait 60` waits on.\n`crosstalk inbox --relay {url} --for {me} --take` fetches \
             the answer later.\n"
        );
        match (&handed.trouble, self.wait) {
            (Some(trouble), _) if trouble.is_temporary() => {
                console.talk(&format!(
                    "No answer yet. The relay at {url} has the message, and can't be reached now.\n{later}"
                ))?;
                Ok(ErrorCode::Timeout.into())
            }
            (Some(trouble), _) => {
                let fault = Failure::from(trouble.clone());
                console.failure(&Failure::failed(format!(
                    "the relay at {url} has the message, and its answer can't be waited for: {fault}"
                )))?;
                Ok(fault.exit())
            }
            (None, wait) if handed.is_held => {
                console.talk(&format!(
                    "{} to {url}, where it waits for a person to approve it.\n`crosstalk status {id}` says how far it is.\n",
                    styled(YELLOW, "Handed")
                ))?;
                Ok(match wait {
                    Some(_) => ErrorCode::Timeout.into(),
                    None => Exit::SUCCESS,
                })
            }
            (None, Some(_)) if take_question_back(console, workspace, remote, &document)? => {
                console.talk(&format!(
                    "No answer yet: {} asks back first.\n",
                    escape(document.receiver())
                ))?;
                Ok(ErrorCode::Timeout.into())
            }
            (None, Some(_)) => {
                watch.tell(console, &workspace.config, remote, known)?;
                console.talk(&format!("No answer yet; the message is at {url}.\n{later}"))?;
                Ok(ErrorCode::Timeout.into())
            }
            (None, None) => {
                let receiver = escape(document.receiver());
                console.talk(&format!(
                    "{} to {url}, for {receiver}.\n`crosstalk status {id}` says how far it is.\n",
                    styled(GREEN, "Handed")
                ))?;
                watch.tell(console, &workspace.config, remote, known)?;
                Ok(Exit::SUCCESS)
            }
        }
    }

    /// The same for programs: a report and the exit code.
    pub(crate) fn hand_quietly(
        &self,
        console: &mut Console,
        workspace: &Workspace,
        remote: &Remote,
    ) -> Result<(HandedReport, Exit), Failure> {
        let url = remote.url().to_owned();
        let told = |exit: Exit, message: String| {
            let exit = exit.code().into();
            Some(FailureReport { exit, message })
        };
        let handed = match self.hand_over(console, workspace, remote, None) {
            Ok(handed) => handed,
            Err(fault) => {
                let report = HandedReport {
                    url,
                    taken: Some(false),
                    held: false,
                    answer: None,
                    parsed_answer: None,
                    error: Some(FailureReport::new(&fault)),
                };
                return Ok((report, fault.exit()));
            }
        };
        let taken = (!handed.is_unclear()).then_some(handed.is_taken);
        let (error, exit) = match (&handed.answer, &handed.trouble) {
            (Some(answer), _) => {
                let (exit, refusal) = file_answer(console, workspace, remote, answer, true)?;
                (refusal.and_then(|why| told(exit, why)), exit)
            }
            (None, Some(trouble)) => {
                let fault = Failure::from(trouble.clone());
                let exit = match handed.is_taken && trouble.is_temporary() {
                    true => ErrorCode::Timeout.into(),
                    false => fault.exit(),
                };
                (told(exit, fault.to_string()), exit)
            }
            (None, None) if self.wait.is_some() => (None, ErrorCode::Timeout.into()),
            (None, None) => (None, Exit::SUCCESS),
        };
        let report = HandedReport {
            url,
            taken,
            held: handed.is_held,
            parsed_answer: handed.answer.as_deref().map(message_of),
            answer: handed.answer,
            error,
        };
        Ok((report, exit))
    }
}

/// Shows and keeps the questions that the receiver asks back. Returns whether there were any.
fn take_question_back(
    console: &mut Console,
    workspace: &Workspace,
    remote: &Remote,
    sent: &Document<'_>,
) -> Result<bool, Failure> {
    let Some(id) = sent.header(CoreHeader::Message) else {
        return Ok(false);
    };
    // A relay that does not let its caller read the inbox has nothing to show.
    let Ok(page) = remote.inbox(sent.sender(), None, PAGE, 0) else {
        return Ok(false);
    };
    let asks_back = |waiting: &&MessageView| {
        let document = Document::parse(&waiting.envelope, Reading::Strict);
        let asks = document.envelope().meaning().is_some_and(Intent::asks);
        asks && document.header(CoreHeader::Parent) == Some(id)
    };
    let mut found = false;
    for waiting in page.messages.iter().filter(asks_back) {
        let (_, is_taken) = take(console, workspace, remote, sent.sender(), waiting, false)?;
        found = found || is_taken;
    }
    Ok(found)
}

/// Keeps an answer like a pasted message and acknowledges it. Returns the exit code, and the reason of a rejection.
fn file_answer(
    console: &mut Console,
    workspace: &Workspace,
    remote: &Remote,
    answer: &str,
    quiet: bool,
) -> Result<(Exit, Option<String>), Failure> {
    let document = Document::parse(answer, Reading::Strict);
    let carried = document.header(CoreHeader::Message);
    let given = match carried {
        Some(_) => None,
        None => entry_of(remote, &document),
    };
    let look = DnsOptions::default();
    let mut intake = TextIntake::new(workspace, &look, false);
    intake.way = Way::Relayed;
    intake.quiet = quiet;
    intake.given = given.as_ref().and_then(AssignedIds::of);
    let exit = intake.keep(console, &Input::of_text("answer", answer.to_owned()))?;
    let id = carried.or(given.as_ref().map(|w| w.id.as_str()));
    if let Some(id) = id.filter(|_| is_kept(exit)) {
        // It is here; that the relay shows it once more is the worst that can happen.
        if let Err(fault) = remote.acknowledge(document.receiver(), id) {
            console.note(&format!(
                "the relay was not told that the answer came: {fault}"
            ))?;
        }
    }
    let refusal = refusal(&document);
    let ends = refusal.as_ref().map_or(Exit::SUCCESS, |(exit, _)| *exit);
    Ok((exit.worst(ends), refusal.map(|(_, why)| why)))
}

/// The exit code and the reason, if the answer is an ERROR or a NACK.
fn refusal(answer: &Document<'_>) -> Option<(Exit, String)> {
    let envelope = answer.envelope();
    let word = match envelope.meaning()? {
        Intent::Error => "ERROR",
        Intent::Nack => "NACK",
        _ => return None,
    };
    let report = envelope.error();
    let code = report.as_ref().and_then(|r| r.code);
    let body = answer.body_text();
    let reason = report.as_ref().and_then(|r| r.reason);
    let reason = reason.or(body.lines().next()).unwrap_or_default();
    let code_text = code.map_or(word, |c| c.as_str());
    Some((
        code.map_or(Exit::FAILURE, Exit::from),
        format!("{} answered {code_text}: {reason}", answer.sender()),
    ))
}

/// The inbox entry of an answer that carries no id.
fn entry_of(remote: &Remote, answer: &Document<'_>) -> Option<MessageView> {
    let wanted = answer.digest().ok()?;
    let mut cursor = None::<String>;
    for _ in 0..PAGES {
        let page = remote
            .inbox(answer.receiver(), cursor.as_deref(), PAGE, 0)
            .ok()?;
        if page.messages.is_empty() {
            return None;
        }
        let is_it = |w: &MessageView| {
            let document = Document::parse(&w.envelope, Reading::Strict);
            document.digest().is_ok_and(|d| d == wanted)
        };
        if let Some(found) = page.messages.into_iter().find(is_it) {
            return Some(found);
        }
        cursor = Some(page.cursor);
    }
    None
}

/// Whether a message that ended with this code is in the store.
pub(crate) fn is_kept(exit: Exit) -> bool {
    exit == Exit::SUCCESS || exit.code() >= crate::exit::FIRST_CONTACT
}

/// The longest time that a relay holds one request for an answer, in seconds.
const LONGEST: u64 = 60;
/// The shortest; each request is twice as long as the one before.
const SHORTEST: u64 = 1;
/// The longest pause before a relay that can't be reached is asked again for the answer, in seconds.
const LONGEST_PAUSE: u64 = 5;
/// The pause after a relay ended a wait early because it shuts down.
const CLOSING: Duration = Duration::from_millis(500);

#[derive(Clone, Debug)]
pub(crate) struct Attached {
    pub(crate) path: PathBuf,
    pub(crate) digest: Digest,
}

/// The state of a message that was handed to a relay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HandOver {
    /// Whether the relay confirmed the message.
    pub(crate) is_taken: bool,
    /// Whether it is held there for approval.
    pub(crate) is_held: bool,
    pub(crate) answer: Option<String>,
    /// The last error.
    pub(crate) trouble: Option<RelayError>,
}

impl HandOver {
    /// Hands a message over without waiting for its answer.
    pub(crate) fn over(remote: &Remote, text: &str) -> Self {
        let mut handed = Self::default();
        match remote.receive(text) {
            Ok(sent) => handed.note(sent),
            Err(trouble) => handed.trouble = Some(trouble),
        }
        handed
    }

    fn note(&mut self, sent: SendResult) {
        self.is_taken = true;
        self.trouble = None;
        match sent.receipt {
            Some(receipt) => self.is_held = receipt.is_held,
            None => self.answer = Some(sent.answer),
        }
    }

    /// Whether it is unknown if the relay has the message.
    pub(crate) fn is_unclear(&self) -> bool {
        let may_have_arrived = |trouble: &RelayError| trouble.may_have_arrived();
        !self.is_taken && self.trouble.as_ref().is_some_and(may_have_arrived)
    }

    /// Waits for the answer, also while the relay can't be reached: it accepts the same message once, however often it
    /// comes. `tell` is called between requests, soon at first, to report news before the time is over.
    pub(crate) fn wait(
        &mut self,
        console: &mut Console,
        (remote, text): (&Remote, &str),
        seconds: u64,
        mut tell: impl FnMut(&mut Console) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut slice = SHORTEST;
        let end = Instant::now() + Duration::from_secs(seconds);
        let mut pause = Pause::new(LONGEST_PAUSE, "waiting for the relay to come back");
        while self.answer.is_none() {
            let begun = Instant::now();
            let left = end.saturating_duration_since(begun);
            if left.is_zero() {
                break;
            }
            let held = left.as_secs().clamp(1, slice);
            slice = (slice * 2).min(LONGEST);
            match remote.receive_and_wait(text, held) {
                Ok(sent) => {
                    pause.over(console)?;
                    let has_waited = sent.has_waited;
                    self.note(sent);
                    if !has_waited {
                        break;
                    }
                    if self.answer.is_none() && begun.elapsed() < Duration::from_secs(held) {
                        std::thread::sleep(CLOSING.min(left));
                    }
                    if self.answer.is_none() {
                        tell(console)?;
                    }
                }
                Err(trouble) => {
                    let is_temporary = trouble.is_temporary();
                    if is_temporary {
                        pause.take(console, &trouble, Some(end))?;
                    }
                    self.trouble = Some(trouble);
                    if !is_temporary {
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Uploads the files of a message. What the relay has already stays as it is.
pub(crate) fn upload(remote: &Remote, files: &[Attached]) -> Result<(), Failure> {
    for file in files {
        let bytes = std::fs::read(&file.path).map_err(|e| Failure::at(&file.path, e))?;
        if Digest::of(&bytes) != file.digest {
            return Err(Failure::failed(format!(
                "{} was changed since the message was written",
                file.path.to_string_lossy()
            ))
            .help("send a new message"));
        }
        remote.put_blob(bytes)?;
    }
    Ok(())
}
