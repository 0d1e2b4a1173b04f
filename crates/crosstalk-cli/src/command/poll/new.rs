//! `crosstalk poll new`: a POLL, on the clipboard and in the store, or at a relay.

use crate::clock;
use crate::console::Console;
use crate::desk::Desk;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::Input;
use crate::outgoing::Delivery;
use crate::recipient::resolve_typed;
use clap::{Args, ValueEnum};
use crosstalk_envelope::{Builder, ErrorCode, Timestamp};
use crosstalk_protocol::compose::session_text;
use crosstalk_protocol::poll::Quorum;
use std::path::Path;

/// Ask several the same question
///
/// Prints the POLL and puts it on the clipboard: paste it to everybody who is asked, and their answers back with
/// `crosstalk paste`. With a relay, it goes to all of them, and the relay counts.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk poll new \"When do we release?\" --option Friday --option Monday --target claude --target gemini\n  crosstalk poll new \"In which order?\" --type ranked --option A --option B --option C --target claude --deadline 2h --relay http://127.0.0.1:8799\n\nExit codes: 0 sent, 1 nothing written or kept, 2 wrong usage, 12 and 13 the\nmessage would break a rule; with a relay, 10 to 17 what it refuses."
)]
pub(super) struct New {
    /// The question; `-` is stdin
    #[arg(value_name = "TEXT")]
    text: String,
    /// What can be chosen; once for each
    #[arg(long = "option", short = 'o', value_name = "OPTION")]
    options: Vec<String>,
    /// Who is asked, by name or address; once for each
    #[arg(long = "target", short = 't', value_name = "ADDRESS", required = true)]
    targets: Vec<String>,
    /// How it is counted; without options it is open
    #[arg(long = "type", value_enum, value_name = "TYPE")]
    kind: Option<Kind>,
    /// How many ballots are needed: 2, 2-of-3 or 60%
    #[arg(long, value_name = "QUORUM", value_parser = quorum)]
    quorum: Option<String>,
    /// Up to when answers count: a time, or 30m, 2h, 3d from now
    #[arg(long, value_name = "TIME", value_parser = deadline)]
    deadline: Option<Timestamp>,
    /// Nobody sees choices before the poll is closed
    #[arg(long)]
    secret: bool,
    /// What happens in a tie
    #[arg(long, value_enum, value_name = "RULE")]
    ties: Option<Ties>,
    /// The fewest and the most points of an option, as 0-10; for --type score
    #[arg(long, value_name = "LEAST-MOST")]
    range: Option<String>,
    /// What those who are asked are called together, in the direction line
    #[arg(long, value_name = "NAME", default_value = "VOTERS")]
    group: String,
    /// Where the result goes besides
    #[arg(long, value_name = "ADDRESS")]
    result_to: Option<String>,
    /// Who asks, in the direction line
    #[arg(long, value_name = "NAME")]
    from: Option<String>,
    /// Who speaks
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// What it is about; else the folder's name
    #[arg(long, short, value_name = "TEXT")]
    context: Option<String>,
    #[command(flatten)]
    delivery: Delivery,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// The option that most choose
    Plurality,
    /// The option that more than half choose
    Majority,
    /// The option that all choose
    Consensus,
    /// Each chooses any number; the option that most choose
    Approval,
    /// Each puts options in an order; Schulze
    Ranked,
    /// Each gives points; the option with the most
    Score,
    /// Answers side by side, and no outcome
    Open,
}

impl Kind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Plurality => "plurality",
            Self::Majority => "majority",
            Self::Consensus => "consensus",
            Self::Approval => "approval",
            Self::Ranked => "ranked",
            Self::Score => "score",
            Self::Open => "open",
        }
    }

    /// How somebody answers who does not know ballots.
    fn hint(self, options: &[String]) -> Option<String> {
        let all = options.join(" | ");
        let (first, second) = (options.first()?, options.get(1).or(options.first())?);
        Some(match self {
            Self::Approval => format!(
                "Begin your answer with the options that you approve of, as `{first} | {second}`, out of: {all}"
            ),
            Self::Ranked => format!(
                "Begin your answer with the options from the best to the worst, as `{first} > {second}`, out of: {all}"
            ),
            Self::Score => format!(
                "Begin your answer with points for the options, as `{first}=5 | {second}=3`, out of: {all}"
            ),
            Self::Open => return None,
            _ => format!("Begin your answer with one of these, as it is written here: {all}"),
        })
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Ties {
    /// Nothing comes out
    None,
    /// The option that is listed first
    FirstListed,
}

impl Ties {
    const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::FirstListed => "first-listed",
        }
    }
}

fn quorum(text: &str) -> Result<String, String> {
    match Quorum::parse(text) {
        Quorum::Unreadable(_) => Err("write it as 2, 2-of-3 or 60%".into()),
        _ => Ok(text.to_owned()),
    }
}

fn deadline(text: &str) -> Result<Timestamp, String> {
    let units = [("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
    let span = units.into_iter().find_map(|(unit, millis)| {
        let number: u32 = text.strip_suffix(unit)?.parse().ok()?;
        Some(i64::from(number) * millis)
    });
    match span {
        Some(span) => Ok(Timestamp::from_millis(
            clock::now().as_millis().saturating_add(span),
        )),
        None => clock::time(text).map_err(|e| format!("{e}, or as 30m, 2h or 3d")),
    }
}

impl New {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let desk = Desk::open(console)?;
        self.require_sense()?;
        self.delivery.require_key(&desk)?;
        let config = &desk.config;
        let kind = self.kind.unwrap_or(match self.options.is_empty() {
            true => Kind::Open,
            false => Kind::Plurality,
        });
        let sender = match &self.from {
            Some(from) => resolve_typed(config, from),
            None => config.sender()?,
        };
        let user = match &self.user {
            Some(user) => user.clone(),
            None => config.user()?,
        };
        let mut text = self.question(console)?;
        if let Some(hint) = kind.hint(&self.options) {
            text = format!("{}\n\n{hint}", text.trim_end());
        }
        let thread = desk.new_id();
        let word: String = thread
            .chars()
            .skip(thread.len().saturating_sub(6))
            .collect();
        let targets: Vec<String> = self
            .targets
            .iter()
            .map(|t| resolve_typed(config, t))
            .collect();
        let list = |items: &[String]| serde_json::to_string(items).unwrap_or_default();
        let mut builder = Builder::new(sender, self.group.as_str())
            .user(user)
            .session(session_text(clock::now(), &word.to_lowercase()))
            .thread(&thread)
            .message(desk.new_id())
            .context(self.context.clone().unwrap_or_else(|| config.context()))
            .intent("POLL")
            .meta("routing", "Targets", list(&targets));
        if let Some(address) = &self.result_to {
            builder = builder.meta("routing", "X-Reply-To", resolve_typed(config, address));
        }
        let options = (!self.options.is_empty()).then(|| list(&self.options));
        let fields = [
            ("Type", Some(kind.as_str().to_owned())),
            ("Options", options),
            ("Quorum", self.quorum.clone()),
            ("Deadline", self.deadline.map(|t| t.to_string())),
            ("Secrecy", self.secret.then(|| "until close".to_owned())),
            ("Ties", self.ties.map(|t| t.as_str().to_owned())),
            ("Range", self.range.clone()),
        ];
        for (key, value) in fields {
            if let Some(value) = value {
                builder = builder.meta("poll", key, value);
            }
        }
        let builder = builder.body(text).visible();
        self.delivery.dispatch(console, &desk, &builder, &[])
    }

    fn question(&self, console: &mut Console) -> Result<String, Failure> {
        let text = match self.text.as_str() {
            "-" => {
                let input = Input::read(Path::new("-"), console)?;
                let text = input
                    .text()
                    .map_err(|(_, fault)| Failure::of_rule(fault.rule, &fault.message))?;
                text.to_owned()
            }
            text => text.to_owned(),
        };
        match text.trim().is_empty() {
            true => Err(Failure::Failed(
                "nothing is asked, so nothing was sent".into(),
            )),
            false => Ok(text),
        }
    }

    fn require_sense(&self) -> Result<(), Failure> {
        if self.deadline.is_some_and(|t| t <= clock::now()) {
            return Err(Failure::Refused(
                ErrorCode::Timeout,
                "nothing was sent: the deadline has passed".into(),
            ));
        }
        let is_counted = self.kind.is_some_and(|k| k != Kind::Open);
        match (self.options.len(), self.kind) {
            (1, _) => Err(Failure::Usage(
                "one option is no choice: give another --option".into(),
            )),
            (0, _) if is_counted => Err(Failure::Usage(
                "there is nothing to choose: give each --option".into(),
            )),
            (_, Some(Kind::Open)) if !self.options.is_empty() => Err(Failure::Usage(
                "an open question has no options: leave out --option, or --type open".into(),
            )),
            _ => Ok(()),
        }
    }
}
