//! `crosstalk poll count`: a person says how an answer is to be read (POL-013).

use crate::console::{Console, GREEN, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::deliver::Delivery;
use crate::service::lookup;
use crate::service::poll::KeptPoll;
use crate::service::workspace::Desk;
use crate::view;
use clap::Args;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::{Builder, CoreHeader, Document, ErrorCode, Intent, Reading};
use crosstalk_protocol::poll::{Choice, Counted};
use crosstalk_protocol::relay::is_human;
use crosstalk_protocol::store::Record;
use crosstalk_store::SqliteStore;

/// Say how an answer counts that nobody can read a choice from
///
/// Writes the correction of a ballot: a RESPOND to the poll that names the answer and what it chooses, for everybody to
/// see. Only who asked can do that, and a person who is asked under a human:// address; an answer that says what it chooses
/// is not corrected. The last correction of an answer counts.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk poll count 01K74V9TPR --as Monday\n  crosstalk poll count 01K74V9TPR --as 'Friday > Monday'   # of a ranked poll\n  crosstalk poll count 01K74V9TPR --abstain\n\nExit codes: as of crosstalk send; 1 there is no such answer here, 12 nobody can\nread this choice, 14 the answer can't be corrected, or not by you."
)]
pub(super) struct Count {
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
    delivery: Delivery,
}

impl Count {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let desk = Desk::open(console)?;
        let store = desk.kept(console)?;
        let answer = find(&store, &self.answer)?;
        let kept = KeptPoll::asked_by(&store, &answer)?;
        drop(store);
        let poll = kept
            .asked()
            .ok_or_else(|| Failure::failed("the poll that it answers is not kept here"))?;
        if let Some(at) = kept.closed_at() {
            return Err(Failure::refused(
                ErrorCode::Perm,
                format!(
                    "nothing was sent: the poll was closed at {at}, and its result stays as it is"
                ),
            ));
        }
        let sender = teller(&desk, poll)?;
        let call = kept.collate(None)?.call().clone();
        let choice = match &self.choice {
            Some(text) => {
                let read = Choice::parse(text, &call).map_err(|why| {
                    let options = call.options.join(", ");
                    Failure::refused(
                        ErrorCode::Format,
                        format!("`{text}` is no choice of this poll: {why}; it has {options}"),
                    )
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
            .user(desk.config.user()?)
            .core_if(CoreHeader::Session, poll.session.as_deref())
            .thread(&kept.thread)
            .parent(&poll.id)
            .message(desk.new_id())
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
        // Who signed the poll signs what corrects it.
        let delivery = self.delivery.without_copy();
        let delivery = match poll.verdict.is_signed() {
            true => delivery.signed_if(&desk, true)?,
            false => delivery,
        };
        delivery.require_key(&desk)?;
        let sealed = delivery.prepare(console, &desk, &[builder])?;
        for one in &sealed {
            require_counted(&kept, &answer, &one.text)?;
        }
        let is_told = !delivery.json;
        let exit = delivery.send(console, &desk, sealed, &[])?;
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
fn teller(desk: &Desk, poll: &Record) -> Result<String, Failure> {
    let mine = desk.mine()?;
    if mine.has(&poll.sender) {
        return Ok(poll.sender.clone());
    }
    let document = poll.document();
    let targets = document.envelope().routing().target_list();
    let own = targets.iter().map(ToString::to_string);
    let mut own = own.filter(|t| mine.has(t) && is_human(t));
    own.next().ok_or_else(|| {
        Failure::refused(ErrorCode::Perm, format!(
                "only {} says how an answer to this poll counts, and whoever is asked under a human:// address",
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
    let counts = |c: &Counted| {
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
    Err(Failure::refused(
        ErrorCode::Perm,
        format!("nothing was sent, because the answer would not count: {why}"),
    ))
}
