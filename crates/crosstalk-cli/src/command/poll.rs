//! `crosstalk poll`: ask several, count what they say, and tell what came out.

use crate::console::{Console, GREEN, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::deliver::{SendOptions, arrival};
use crate::service::lookup::{self, LAST};
use crate::service::poll::KeptPoll;
use crate::service::relay::remote::{RelayArgument, Remote};
use crate::service::workspace::Workspace;
use crate::{clock, json, view};
use clap::Args;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{Builder, CoreHeader, Document, ErrorCode, Intent, Reading, Timestamp};
use crosstalk_protocol::poll::{BallotChoice, CountedBallot};
use crosstalk_protocol::relay::is_human;
use crosstalk_protocol::store::Record;
use crosstalk_store::SqliteStore;
use serde_json::Value;

mod collate;
mod new;

group! {
    /// Ask several voters, and count their answers
    ///
    /// A poll is a message to several voters; each answers with a ballot, or in prose. The result follows from the envelopes alone:
    /// anyone who has them gets the same result, byte for byte. Without options, a poll asks for free text, and nothing is counted.
    #[command(
        after_help = "Examples:\n  crosstalk poll new \"When do we release?\" --option Friday --option Monday --target claude --target human://acme.example/ann\n  crosstalk poll status last\n  crosstalk poll count 01K74V9TPR --as Monday   # what an answer in prose means\n  crosstalk poll close last\n  crosstalk poll collate --json poll.crosstalk answers/*.crosstalk"
    )]
    Poll {
        New(Box<new::NewPoll>),
        Status(ShowPoll),
        Count(CountBallot),
        Collate(collate::Collate),
        Close(ClosePoll),
    }
}

/// Where a poll is looked at or closed.
#[derive(Args, Debug)]
struct PollSource {
    /// Ask the relay of the settings, whether the poll is kept here or not
    #[arg(long, conflicts_with = "here")]
    remote: bool,
    /// Count only the messages that are kept here, whatever a relay counts
    #[arg(long, conflicts_with = "relay")]
    here: bool,
    #[command(flatten)]
    through: RelayArgument,
}

impl PollSource {
    /// The relay that counts a poll, and how the poll is called there; nothing if it is counted here. A poll that goes by a
    /// relay of the settings is counted there, if the relay knows it.
    fn relay(
        &self,
        workspace: &Workspace,
        poll: &str,
        kept: Option<&KeptPoll>,
    ) -> Result<Option<(Remote, String)>, Failure> {
        let id = kept.map_or(poll, |k| k.id.as_str()).to_owned();
        if self.remote || self.through.is_named() {
            let remote = self.through.connect(&workspace.config, None)?;
            return Ok(Some((remote, id)));
        }
        let group = kept.and_then(KeptPoll::asked).map(|r| r.receiver.as_str());
        let by = group.filter(|g| workspace.config.relay_for(g).is_some());
        let Some(group) = by.filter(|_| !self.here) else {
            return Ok(None);
        };
        let remote = self.through.connect(&workspace.config, Some(group))?;
        match remote.poll(&id) {
            Ok(_) => Ok(Some((remote, id))),
            Err(trouble) if trouble.is_unknown() => Ok(None),
            Err(trouble) => {
                let why = Failure::from(trouble).to_string();
                Err(Failure::refused(
                    ErrorCode::Route,
                    format!("the relay may count this poll, and can't be asked: {why}"),
                )
                .help("--here counts only the messages that are kept here"))
            }
        }
    }
}

/// Show the current state of a poll: the choices, the voters, and who has not answered
///
/// Counts the messages that are kept here, or asks the relay that counts the poll: the one of the settings that got it, or the one
/// that --relay names. Shows the choices of a secret poll only after it is closed.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk poll status last\n  crosstalk poll status 01K74V6VX0 --json | jq .tally\n  crosstalk poll status 01K74V6VX0S86Z5JATM52C3M7Z --relay http://127.0.0.1:8799\n\nExit codes: 0 shown, 1 there is no such poll here, 10 the relay does not know\nit or can't be reached, 14 no permission."
)]
struct ShowPoll {
    /// The poll, its thread, or `last`
    #[arg(value_name = "POLL")]
    poll: String,
    /// Print JSON of the form crosstalk.poll/1
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    source: PollSource,
}

impl ShowPoll {
    pub(super) fn run(self, console: &mut Console) -> Result<(), Failure> {
        let workspace = Workspace::open(console)?;
        let kept = KeptPoll::find(console, &workspace, &self.poll)?;
        let view = match self.source.relay(&workspace, &self.poll, kept.as_ref())? {
            Some((relay, id)) => relay.poll(&id)?,
            None => {
                let none = || {
                    match self.poll.eq_ignore_ascii_case(LAST) {
                    true => Failure::failed("there is no poll here").help(
                        "begin one with `crosstalk poll new \"When?\" --target claude --target gemini`",
                    ),
                    false => Failure::failed(format!("no poll here begins with `{}`", self.poll))
                        .help("--remote asks the relay"),
                }
                };
                here(&kept.ok_or_else(none)?)?
            }
        };
        match self.json {
            true => console.data(json::pretty(&view)?)?,
            false => console.show(&view::poll(console, &json::read(view)?))?,
        }
        Ok(())
    }
}

/// How a poll that is kept here stands.
fn here(kept: &KeptPoll) -> Result<Value, Failure> {
    let collation = kept.collate(kept.closed_at())?;
    let is_over = kept.is_over(&collation);
    let shown = match is_over {
        true => collation,
        false => collation.while_open(),
    };
    let mut view = json::value(&shown)?;
    let state = if is_over { "closed" } else { "open" };
    json::set(&mut view, "state", Some(state));
    Ok(view)
}

/// Close a poll: count the answers, keep the result, and show it
///
/// Keeps the result of a poll that you sent by paste in its thread. A relay closes its polls itself when the deadline has passed or
/// everybody has answered. If the poll went to a relay of the settings, or --relay names one, the command closes it there now, and
/// the relay sends the result.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk poll close last\n  crosstalk poll close 01K74V6VX0S86Z5JATM52C3M7Z --relay http://127.0.0.1:8799\n\nExit codes: 0 closed, 1 there is no such poll here, 10 the relay does not know\nit or can't be reached, 14 only the asker closes it."
)]
struct ClosePoll {
    /// The poll, its thread, or `last`
    #[arg(value_name = "POLL")]
    poll: String,
    /// Count only answers that came before this time; without it, all until now, or until the deadline
    #[arg(long, value_name = "TIME", value_parser = clock::time)]
    at: Option<Timestamp>,
    /// Print JSON of the form crosstalk.poll/1
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    source: PollSource,
}

impl ClosePoll {
    pub(super) fn run(self, console: &mut Console) -> Result<(), Failure> {
        let workspace = Workspace::open(console)?;
        let kept = KeptPoll::find(console, &workspace, &self.poll)?;
        let shown = match self.source.relay(&workspace, &self.poll, kept.as_ref())? {
            Some(_) if self.at.is_some() => {
                return Err(
                    Failure::usage("a relay closes its polls at the deadline or now").help(
                        "leave out --at, or count the messages that are kept here with --here",
                    ),
                );
            }
            Some((relay, id)) => relay.close_poll(&id)?,
            None => {
                let none = || {
                    Failure::failed(format!("no poll here begins with `{}`", self.poll))
                        .help("--remote lets the relay close it")
                };
                self.here(console, &workspace, &kept.ok_or_else(none)?)?
            }
        };
        match self.json {
            true => console.data(json::pretty(&shown)?)?,
            false => console.show(&view::poll(console, &json::read(shown)?))?,
        }
        Ok(())
    }

    fn here(
        &self,
        console: &mut Console,
        workspace: &Workspace,
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
        let envelopes = envelopes.map_err(|e| Failure::malformed(e.to_string()))?;
        let batch: Vec<_> = envelopes
            .iter()
            .map(|text| {
                let document = Document::parse(text, Reading::Strict);
                arrival(&document, None, clock::now()).0
            })
            .collect();
        let mut store = workspace.store(console)?;
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

/// Up to when answers count: the deadline, if it has passed, else now. Answers of this second count.
fn end(kept: &KeptPoll) -> Result<Timestamp, Failure> {
    let now = Timestamp::from_millis(clock::now().as_millis().saturating_add(1000));
    let deadline = kept.collate(None)?.call().deadline;
    Ok(deadline.filter(|end| *end <= now).unwrap_or(now))
}

/// Say how to count an answer without a readable choice
///
/// Writes the correction of a ballot: a RESPOND to the poll that names the answer and what it chooses, for everybody to
/// see. Only the asker can do that, or a voter with a human:// address; an answer that says what it chooses
/// is not corrected. The last correction of an answer counts.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk poll count 01K74V9TPR --as Monday\n  crosstalk poll count 01K74V9TPR --as 'Friday > Monday'   # of a ranked poll\n  crosstalk poll count 01K74V9TPR --abstain\n\nExit codes: as of crosstalk send; 1 there is no such answer here, 12 this choice\ncan't be read, 14 the answer can't be corrected, or not by you."
)]
struct CountBallot {
    /// The answer: its id or the beginning of it, `last`, or its digest
    #[arg(value_name = "MESSAGE")]
    answer: String,
    /// The option that it chooses, in the words of the poll
    #[arg(
        long = "as",
        value_name = "CHOICE",
        required_unless_present = "abstain"
    )]
    choice: Option<String>,
    /// It chooses nothing
    #[arg(long, conflicts_with = "choice")]
    abstain: bool,
    #[command(flatten)]
    delivery: SendOptions,
}

impl CountBallot {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let workspace = Workspace::open(console)?;
        let store = workspace.kept(console)?;
        let answer = find(&store, &self.answer)?;
        let kept = KeptPoll::asked_by(&store, &answer)?;
        drop(store);
        let poll = kept
            .asked()
            .ok_or_else(|| Failure::failed("the poll that it answers is not kept here"))?;
        if let Some(at) = kept.closed_at() {
            return Err(Failure::denied(format!(
                "nothing was sent: the poll was closed at {at}, and its result stays as it is"
            )));
        }
        let sender = teller(&workspace, poll)?;
        let call = kept.collate(None)?.call().clone();
        let choice = match &self.choice {
            Some(text) => {
                let read = BallotChoice::parse(text, &call).map_err(|why| {
                    let options = call.options.join(", ");
                    Failure::malformed(format!(
                        "`{text}` is no choice of this poll: {why}; it has {options}"
                    ))
                })?;
                read.to_text(&call)
            }
            None => None,
        };
        // How others know the answer: here it may have an id of its own.
        let named = match answer.carries_id {
            true => answer.id.clone(),
            false => answer.digest.to_string(),
        };
        let builder = Builder::new(sender, poll.receiver.as_str())
            .user(workspace.config.user()?)
            .core_if(CoreHeader::Session, poll.session.as_deref())
            .thread(&kept.thread)
            .parent(&poll.id)
            .message(workspace.new_id())
            .core_if(CoreHeader::Context, poll.context.as_deref())
            .intent(Intent::Respond.as_str())
            .meta("vote", "Corrects", named);
        let (builder, said) = match &choice {
            Some(choice) => (builder.meta("vote", "Choice", choice), choice.as_str()),
            None => (builder.meta("vote", "Abstain", "yes"), "an abstention"),
        };
        let voter = view::line(&answer.sender);
        let builder = builder
            .body(format!("The answer of {voter} counts as {said}."))
            .visible();
        // A correction of a signed poll is signed.
        let delivery = self.delivery.without_copy();
        let delivery = match poll.verdict.is_signed() {
            true => delivery.signed_if(&workspace, true)?,
            false => delivery,
        };
        delivery.require_key(&workspace)?;
        let signed = delivery.prepare(console, &workspace, &[builder])?;
        for one in &signed {
            require_counted(&kept, &answer, &one.text)?;
        }
        let is_told = !delivery.json;
        let exit = delivery.send(console, &workspace, signed, &[])?;
        if is_told {
            let word = styled(GREEN, "Counted");
            console.talk(&format!("{word}: {voter} as {}.\n", view::line(said)))?;
        }
        Ok(exit)
    }
}

/// The answer that a reference means. One without an id of its own is listed by its digest.
fn find(store: &SqliteStore, reference: &str) -> Result<Record, Failure> {
    let Some(digest) = Digest::parse(reference) else {
        return lookup::message(store, reference);
    };
    let found = lookup::find_recent(store, |r| r.digest == digest)?;
    found.ok_or_else(|| {
        Failure::failed(format!("no message here has the digest {reference}"))
            .help("`crosstalk poll status POLL` lists the answers")
    })
}

/// In whose name the person corrects: who asked, else a person who is asked.
fn teller(workspace: &Workspace, poll: &Record) -> Result<String, Failure> {
    let mine = workspace.mine()?;
    if mine.has(&poll.sender) {
        return Ok(poll.sender.clone());
    }
    let document = poll.document();
    let targets = document.envelope().routing().target_list();
    let own = targets.iter().map(ToString::to_string);
    let mut own = own.filter(|t| mine.has(t) && is_human(t));
    own.next().ok_or_else(|| {
        Failure::denied(format!(
            "only {}, or a voter with a human:// address, can correct an answer to this poll",
            poll.sender
        ))
    })
}

/// Counts the poll with the correction: what would change nothing is not sent.
fn require_counted(kept: &KeptPoll, answer: &Record, text: &str) -> Result<(), Failure> {
    let document = Document::parse(text, Reading::Strict);
    let id = document.envelope().message;
    let collation = kept.collate_with(&document)?;
    let digest = answer.digest.to_string();
    let counts = |c: &CountedBallot| {
        let by = c.corrected.as_ref().and_then(|by| by.message.as_deref());
        c.digest == digest && by == id
    };
    if collation.counted.iter().any(counts) {
        return Ok(());
    }
    let is_it = |message: &Option<String>, other: &str| {
        message.as_deref() == id || other == digest.as_str()
    };
    let mut why = collation.not_counted.iter();
    let why = why.find(|n| is_it(&n.message, &n.digest));
    let why = why.map_or("another answer of the same sender counts", |n| {
        n.detail.as_str()
    });
    Err(Failure::denied(format!(
        "nothing was sent, because the answer would not count: {why}"
    )))
}
