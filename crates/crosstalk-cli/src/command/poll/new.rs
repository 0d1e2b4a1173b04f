//! `crosstalk poll new`: a POLL, on the clipboard and in the store, or at a relay.

use crate::clock;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::typed_text;
use crate::service::compose::word_of;
use crate::service::deliver::SendOptions;
use crate::service::recipient::{resolve_each, resolve_typed, sender_or_own};
use crate::service::workspace::Workspace;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use crosstalk_envelope::{Builder, ErrorCode, Timestamp};
use crosstalk_protocol::compose::{context_of, session_text};
use crosstalk_protocol::poll::{OPTIONS, PollKind, Quorum, answer_hint, range};
use crosstalk_protocol::store::is_same_party;

/// Ask several the same question
///
/// Prints the POLL and puts it on the clipboard: paste it to every voter, and their answers back with `crosstalk paste`; on a
/// terminal, Enter goes on from one to the next. With a relay, it goes to all of them, and the relay counts. Without an --option it
/// asks for free text: nothing is counted, and all answers are in one thread. `crosstalk send a,b` does that with a message for
/// each voter.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk poll new \"When do we release?\" --option Friday --option Monday --target claude --target gemini\n  crosstalk poll new \"What did we forget?\" --target claude --target gemini   # asks several\n  crosstalk poll new \"In which order?\" --type ranked --option A --option B --option C --target claude --deadline 2h --relay http://127.0.0.1:8799\n\nExit codes: 0 sent, 1 nothing written or kept, 2 wrong usage, 12 and 13 the\nmessage would break a rule; with a relay, 10 to 17 it rejects the message."
)]
pub(super) struct NewPoll {
    /// The question; `-` is stdin
    #[arg(value_name = "TEXT")]
    text: String,
    /// An option to choose; once for each
    #[arg(long = "option", short = 'o', value_name = "OPTION")]
    options: Vec<String>,
    /// A voter, by name or address; once for each, or several with commas between them
    #[arg(long = "target", short = 't', value_name = "ADDRESS", required = true)]
    targets: Vec<String>,
    /// How it is counted; without options it is open
    #[arg(long = "type", value_name = "TYPE", value_parser = kinds())]
    kind: Option<PollKind>,
    /// How many ballots are needed: 2, 2-of-3 or 60%
    #[arg(long, value_name = "QUORUM", value_parser = quorum)]
    quorum: Option<String>,
    /// Until when answers count: a time, or 30m, 2h, 3d from now
    #[arg(long, value_name = "TIME", value_parser = deadline)]
    deadline: Option<Timestamp>,
    /// Hide choices from everyone but you until the poll is closed: answers are addressed to the asker
    #[arg(long)]
    secret: bool,
    /// How a tie is decided
    #[arg(long, value_enum, value_name = "RULE")]
    ties: Option<Ties>,
    /// The fewest and the most points of an option, as 0-10; for --type score
    #[arg(long, value_name = "LEAST-MOST", value_parser = points)]
    range: Option<String>,
    /// The name of all voters together, in the direction line
    #[arg(long, value_name = "NAME", default_value = "VOTERS")]
    group: String,
    /// Another address that gets the result; answers go to the asker
    #[arg(long, value_name = "ADDRESS")]
    result_to: Option<String>,
    /// The asker, in the direction line
    #[arg(long, value_name = "NAME")]
    from: Option<String>,
    /// The speaker: the `user` header
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// The subject (`context`); without it, the first words of the question
    #[arg(long, short, value_name = "TEXT")]
    context: Option<String>,
    #[command(flatten)]
    delivery: SendOptions,
}

/// The types of polls, as the command line takes them.
fn kinds() -> impl TypedValueParser<Value = PollKind> {
    let words = PollKind::ALL.map(|(_, word, about)| PossibleValue::new(word).help(about));
    PossibleValuesParser::new(words).map(|word| PollKind::parse(&word))
}

/// The characters that separate options in a ballot, so that no option can have them in it.
const fn marks(kind: &PollKind) -> &'static [char] {
    match kind {
        PollKind::Approval => &['|'],
        PollKind::Ranked => &['>', '='],
        PollKind::Score => &['|', '=', ':'],
        _ => &[],
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Ties {
    /// No outcome
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

fn points(text: &str) -> Result<String, String> {
    match range(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err("write it as 0-10, the fewest first".into()),
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

impl NewPoll {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let workspace = Workspace::open(console)?;
        let config = &workspace.config;
        let kind = self.kind.clone().unwrap_or(match self.options.is_empty() {
            true => PollKind::Open,
            false => PollKind::Plurality,
        });
        let mut targets: Vec<String> = Vec::new();
        for typed in &self.targets {
            targets.extend(resolve_each(config, typed)?);
        }
        self.require_sense(&kind, &targets)?;
        self.delivery.require_key(&workspace)?;
        let sender = sender_or_own(config, self.from.as_deref())?;
        let user = match &self.user {
            Some(user) => user.clone(),
            None => config.user()?,
        };
        let mut text = self.question(console)?;
        let context = self.context.clone().or_else(|| config.context());
        let context = context.unwrap_or_else(|| context_of(&text));
        if let Some(hint) = answer_hint(&kind, &self.options) {
            text = format!("{}\n\n{hint}", text.trim_end());
        }
        let thread = workspace.new_id();
        let list = |items: &[String]| serde_json::to_string(items).unwrap_or_default();
        let mut builder = Builder::new(sender, self.group.as_str())
            .user(user)
            .session(session_text(clock::now(), &word_of(&thread)))
            .thread(&thread)
            .message(workspace.new_id())
            .context(context)
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
        self.delivery.dispatch(console, &workspace, &builder, &[])
    }

    fn question(&self, console: &mut Console) -> Result<String, Failure> {
        let text = typed_text(console, &self.text)?;
        match text.trim().is_empty() {
            true => Err(Failure::failed("there is no question, so nothing was sent")),
            false => Ok(text),
        }
    }

    /// Rejects a poll that can't have a result.
    fn require_sense(&self, kind: &PollKind, targets: &[String]) -> Result<(), Failure> {
        if self.deadline.is_some_and(|t| t <= clock::now()) {
            return Err(Failure::refused(
                ErrorCode::Timeout,
                "nothing was sent: the deadline has passed",
            ));
        }
        let options: Vec<&str> = self.options.iter().map(|o| o.trim()).collect();
        let twice = first_twice(&options, |a, b| a == b);
        let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
        let asked_twice = first_twice(&targets, is_same_party);
        let marked = options.iter().find(|o| o.contains(marks(kind)));
        let quorum = self.quorum.as_deref().map(Quorum::parse);
        let needed = quorum.and_then(|q| q.required(targets.len()));
        let needed = needed.filter(|n| usize::try_from(*n).is_ok_and(|n| n > targets.len()));
        let word = kind.as_str();
        let (what, help) = match (options.len(), kind) {
            (_, PollKind::Open) if !options.is_empty() => (
                "an open question has no options".to_owned(),
                "leave out --option, or --type open",
            ),
            (1, _) => (
                "one option is no choice".to_owned(),
                "give another --option",
            ),
            (0, kind) if *kind != PollKind::Open => (
                "there is nothing to choose".to_owned(),
                "give each --option",
            ),
            (n, _) if n > OPTIONS => (
                format!("a poll has at most {OPTIONS} options"),
                "leave some out",
            ),
            _ if options.contains(&"") => ("an option is empty".to_owned(), "leave it out"),
            _ if twice.is_some() => (
                format!("`{}` is given twice", twice.unwrap_or_default()),
                "give each --option once",
            ),
            _ if asked_twice.is_some() => (
                format!("{} is asked twice", asked_twice.unwrap_or_default()),
                "give each --target once",
            ),
            _ if self.range.is_some() && *kind != PollKind::Score => (
                format!("--range sets points, and a poll of type {word} has none"),
                "choose --type score",
            ),
            _ => match (marked, needed) {
                (Some(option), _) => {
                    let marks: Vec<String> = marks(kind).iter().map(|m| format!("`{m}`")).collect();
                    let marks = marks.join(" and ");
                    (
                        format!(
                            "ballots of type {word} separate options with {marks}, so `{option}` is not clear"
                        ),
                        "write it otherwise",
                    )
                }
                (None, Some(n)) => (
                    format!("{n} ballots can't come from {} voters", targets.len()),
                    "ask more, or lower --quorum",
                ),
                (None, None) => return Ok(()),
            },
        };
        Err(Failure::usage(what).help(help))
    }
}

/// The first of some that is there before.
fn first_twice<'t>(all: &[&'t str], is_same: impl Fn(&str, &str) -> bool) -> Option<&'t str> {
    let is_twice = |(place, one): &(usize, &&str)| all.iter().take(*place).any(|o| is_same(o, one));
    all.iter().enumerate().find(is_twice).map(|(_, one)| *one)
}
