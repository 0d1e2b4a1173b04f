//! `crosstalk approve` and `crosstalk refuse`: decide about messages that a relay holds.

use crate::console::{BOLD, Console, DIM, GREEN, RED, YELLOW, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::paragraph::wrap;
use crate::report::ApprovalsReport;
use crate::schema::{APPROVAL, APPROVALS};
use crate::service::relay::remote::{
    Approval, LOOKED_THROUGH, RelayArgument, Remote, find_by_prefix,
};
use crate::service::settings::Settings;
use crate::view;
use clap::Args;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{Document, Reading};

/// Approve a message that a relay holds; without an id, list the held ones
///
/// The message is shown exactly as it came. You approve this text and no other, and you approve it once. The JSON of a
/// list has the form crosstalk.approvals/1.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk approve\n  crosstalk approve 01K74V8QF857CTA8MBHN4ZW0ZK\n  crosstalk approve --json | jq -r '.approvals[].id'\n\nExit codes: 0 approved or listed, 1 not confirmed, 2 no terminal and\nno --yes, 10 no such message waits or the relay can't be reached, 11 its\nconsent is not valid any more, 14 no permission or already decided, 16 its deadline has\npassed."
)]
pub(crate) struct Approve {
    /// The message: its id, or the beginning of it
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// How many are listed at most
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
    #[command(flatten)]
    how: DecisionArguments,
}

/// Refuse a message that a relay holds; its sender is told why
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  crosstalk refuse 01K74V8QF857CTA8MBHN4ZW0ZK --reason 'Not without Ann.'\n\nExit codes: 0 refused, 1 not confirmed, 2 no terminal and no --yes,\n10 no such message waits or the relay can't be reached, 14 no permission or\nalready decided."
)]
pub(crate) struct Refuse {
    /// The message: its id, or the beginning of it
    #[arg(value_name = "ID")]
    id: String,
    /// Why, in one line: the sender reads it
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    how: DecisionArguments,
}

#[derive(Args, Debug)]
struct DecisionArguments {
    /// Only if the text has this digest: `raw` of `crosstalk approve --json`
    #[arg(long, value_name = "SHA256", value_parser = digest)]
    raw: Option<Digest>,
    /// Don't ask
    #[arg(long, short)]
    yes: bool,
    /// Print JSON of the form crosstalk.approval/1
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    through: RelayArgument,
}

fn digest(text: &str) -> Result<Digest, String> {
    Digest::parse(text).ok_or_else(|| "write it as sha256: and 64 hexadecimal digits".to_owned())
}

impl Approve {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        match &self.id {
            Some(id) => self.how.decide(console, id, None),
            None => self.how.list(console, self.limit),
        }
    }
}

impl Refuse {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        self.how.decide(console, &self.id, Some(&self.reason))
    }
}

impl DecisionArguments {
    fn connect(&self, console: &mut Console) -> Result<Remote, Failure> {
        self.through.connect(&Settings::open(console)?, None)
    }

    fn list(&self, console: &mut Console, limit: u32) -> Result<Exit, Failure> {
        let waiting = self.connect(console)?.approvals(limit)?;
        if self.json {
            console.report(APPROVALS, &ApprovalsReport { approvals: waiting })?;
            return Ok(Exit::SUCCESS);
        }
        if waiting.is_empty() {
            console.talk("No messages are held for you.\n")?;
        }
        for held in &waiting {
            console.show(&head(held))?;
        }
        if !waiting.is_empty() {
            console.talk("`crosstalk approve ID` shows one of them, and asks\n")?;
        }
        Ok(Exit::SUCCESS)
    }

    fn decide(
        &self,
        console: &mut Console,
        id: &str,
        refused: Option<&str>,
    ) -> Result<Exit, Failure> {
        let remote = self.connect(console)?;
        let held = find(&remote, id)?;
        let id = held.id.as_str();
        let Some(text) = &held.envelope else {
            return Err(before(&held));
        };
        // The decision is about the text that the person saw: the digests are made from that text.
        let raw = Digest::of(text.as_bytes());
        let document = Document::parse(text, Reading::Strict);
        let canonical = document.digest().map_err(|_| unreadable(id))?;
        if self.raw.is_some_and(|wanted| wanted != raw) {
            return Err(Failure::denied(format!(
                "`{id}` has another text than the one that you named: its digest is {raw}"
            )));
        }
        if !self.json {
            console.show(&head(&held))?;
            console.show(&exactly(text))?;
            console.show(&format!("  {}\n", styled(DIM, &raw.to_string())))?;
        }
        let (question, action) = match refused {
            None => ("Approve it?", "approve it"),
            Some(_) => ("Refuse it?", "refuse it"),
        };
        if !self.yes && !console.confirm(question, action)? {
            console.talk("Nothing was decided.\n")?;
            return Ok(Exit::FAILURE);
        }
        let decided = remote.decide(id, canonical, raw, refused)?;
        // A rejected message has no text left to read these from.
        let decided = Approval {
            intent: decided.intent.or_else(|| held.intent.clone()),
            ..decided
        };
        if self.json {
            console.report(APPROVAL, &decided)?;
            return Ok(Exit::SUCCESS);
        }
        console.talk(match refused {
            None => "Approved. The relay delivers it.\n",
            Some(_) => "Refused. The relay tells the sender why.\n",
        })?;
        Ok(Exit::SUCCESS)
    }
}

/// The message that an id, or the beginning of one, means.
fn find(remote: &Remote, id: &str) -> Result<Approval, Failure> {
    let waiting = || {
        let waiting = remote.approvals(LOOKED_THROUGH.into())?.into_iter();
        Ok(waiting.map(|held| held.id).collect())
    };
    let several = || {
        Failure::usage(format!("`{id}` can mean several messages"))
            .help("write more of it (`crosstalk approve` lists them)")
    };
    find_by_prefix(id, |id| remote.approval(id), waiting, several)
}

/// The sender, the receivers and the reason why a message is held.
fn head(held: &Approval) -> String {
    let signature = match held.signature.as_str() {
        "verified" => styled(GREEN, "verified"),
        "unsigned" => styled(YELLOW, "unsigned"),
        other => styled(RED, &view::line(other)),
    };
    let key = held.pkid.as_ref();
    let key = key.map_or(String::new(), |k| format!(" by {}", view::line(k)));
    let goals: Vec<String> = held
        .recipients
        .iter()
        .map(|g| format!("{} by {}", view::line(&g.to), view::line(&g.by)))
        .collect();
    let mut more = vec![
        format!("goes to {}", goals.join(", ")),
        format!("held because: {}", view::line(&held.why)),
        format!(
            "came {} with the credential `{}`",
            view::line(&held.received_at),
            view::line(&held.handed_in_by)
        ),
    ];
    if !held.deciders.is_empty() {
        more.push(format!(
            "for {} to decide",
            view::line(&held.deciders.join(", "))
        ));
    }
    if let Some(end) = &held.ends_at {
        more.push(format!("until {}", view::line(end)));
    }
    let mut out = format!(
        "{}  {} → {}  {}  {signature}{key}\n",
        styled(BOLD, &view::line(&held.id)),
        view::line(&held.from),
        view::line(&held.to),
        view::line(held.intent.as_deref().unwrap_or("no intent")),
    );
    for line in more {
        out.push_str(&format!("  {}\n", wrap(&line, 2, 2)));
    }
    out
}

/// The text behind a bar, so that no line of it can pass for one of ours.
fn exactly(text: &str) -> String {
    let line = |line: &str| format!("  {} {}\n", styled(DIM, "│"), escape(line));
    text.lines().map(line).collect()
}

fn before(held: &Approval) -> Failure {
    let message = match &held.decided {
        Some(made) => format!(
            "`{}` was already {} at {} with the credential `{}`",
            held.id, made.decision, made.at, made.by
        ),
        None => format!("`{}` has no text any more", held.id),
    };
    Failure::denied(message)
}

fn unreadable(id: &str) -> Failure {
    Failure::malformed(format!(
        "the relay shows no valid envelope for `{id}`, so nothing was decided"
    ))
}
