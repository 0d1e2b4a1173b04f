//! Polls: a list, a new one, how one stands, and what an answer in prose means.

use super::reply::{preview_written, user_of};
use super::{PageError, PageResult, Shell, render};
use crate::compose::build;
use crate::fields::{FormFields, encode};
use crate::text::{Moment, PartyName, Piece, Shown, pieces};
use crate::visit::{Posted, Visit, redirect};
use askama::Template;
use axum::extract::Path;
use crosstalk_api::client::PollSummary;
use crosstalk_envelope::{Builder, CoreHeader, Document, Intent, Reading, Timestamp, id};
use crosstalk_protocol::compose::{context_of, session_text};
use crosstalk_protocol::poll::{OPTIONS, PollKind, Quorum, answer_hint};
use crosstalk_protocol::store::is_same_party;
use serde_json::Value;

/// How many polls are on a page.
const MOST: usize = 60;

/// A poll in the list.
struct PollRow {
    path: String,
    from: PartyName,
    context: Shown,
    is_open: bool,
    ends: Option<Moment>,
    counted: u64,
    invited: u64,
    outcome: Option<Shown>,
    percent: u64,
}

impl PollRow {
    fn of(poll: &PollSummary, now: Timestamp) -> Self {
        let context = poll.context.as_deref().unwrap_or("(no topic)");
        Self {
            path: encode(&poll.message),
            from: PartyName::of(&poll.from),
            context: Shown::short(context, 120),
            is_open: poll.state == "open",
            ends: poll.ends_at.as_deref().map(|at| Moment::parse(at, now)),
            counted: poll.quorum.counted,
            invited: poll.invited,
            outcome: poll.outcome.as_deref().map(|o| Shown::short(o, 60)),
            percent: percent(poll.quorum.counted, poll.invited),
        }
    }
}

/// How much of a whole something is, of a hundred.
pub(crate) fn percent(part: u64, whole: u64) -> u64 {
    match whole {
        0 => 0,
        whole => (part.min(whole).saturating_mul(100)) / whole,
    }
}

#[derive(Template)]
#[template(path = "polls.html")]
struct PollsPage {
    shell: Shell,
    polls: Vec<PollRow>,
}

pub(crate) async fn list(visit: Visit) -> PageResult {
    let polls = visit.client.polls(MOST).await?;
    render(&PollsPage {
        polls: polls.iter().map(|p| PollRow::of(p, visit.now)).collect(),
        shell: visit.shell("Polls").await,
    })
}

#[derive(Template)]
#[template(path = "poll_new.html")]
struct NewPollPage {
    shell: Shell,
    addresses: Vec<Shown>,
    is_free: bool,
    known: Vec<Shown>,
}

/// The form for a new poll.
pub(crate) async fn new(visit: Visit) -> PageResult {
    let agents = visit.client.agents().await.unwrap_or_default();
    render(&NewPollPage {
        addresses: visit.addresses().iter().map(|a| Shown::new(a)).collect(),
        is_free: visit.chooses_address(),
        known: agents.iter().map(|a| Shown::new(&a.address)).collect(),
        shell: visit.shell("New poll").await,
    })
}

/// The lines of a field, without empty ones.
pub(crate) fn lines(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|l| !l.is_empty());
    lines.map(str::to_owned).collect()
}

fn wrong(what: impl Into<String>, help: &str) -> PageError {
    PageError::fault(400, what, help)
}

/// The time that a field names: so many minutes, hours or days from now, or a time.
pub(crate) fn time_of(text: &str, now: Timestamp) -> Result<Option<Timestamp>, PageError> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let units = [("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
    let span = units.into_iter().find_map(|(unit, millis)| {
        let number: u32 = text.strip_suffix(unit)?.trim().parse().ok()?;
        Some(i64::from(number) * millis)
    });
    let at = match span {
        Some(span) => Some(Timestamp::from_millis(now.as_millis().saturating_add(span))),
        None => Timestamp::parse(text),
    };
    match at {
        Some(at) if at > now => Ok(Some(at)),
        Some(_) => Err(wrong("This time has passed.", "give a later one.")),
        None => Err(wrong(
            "The time can't be read.",
            "write it as 30m, 2h, 3d or 2027-01-31T12:00:00Z.",
        )),
    }
}

/// Two of a list that are the same.
fn first_twice(all: &[String], is_same: impl Fn(&str, &str) -> bool) -> Option<&String> {
    let is_twice =
        |(place, one): &(usize, &String)| all.iter().take(*place).any(|o| is_same(o, one));
    all.iter().enumerate().find(is_twice).map(|(_, one)| one)
}

/// The envelope of a new poll, and the command that makes the same.
fn new_poll(form: &FormFields, user: &str, now: Timestamp) -> Result<(String, String), PageError> {
    let from = form.text("from").trim();
    let question = form.text("question").trim();
    let (options, voters) = (lines(form.text("options")), lines(form.text("voters")));
    if question.is_empty() || from.is_empty() || voters.is_empty() {
        return Err(wrong(
            "The poll has no question, no sender or no voters.",
            "fill all three in.",
        ));
    }
    if options.len() == 1 || options.len() > OPTIONS {
        return Err(wrong(
            format!("A poll has 2 to {OPTIONS} options, or none for free text."),
            "write one on each line.",
        ));
    }
    if let Some(twice) = first_twice(&options, |a, b| a == b) {
        return Err(wrong(
            format!("The option “{twice}” is there twice."),
            "leave one out.",
        ));
    }
    if let Some(twice) = first_twice(&voters, is_same_party) {
        return Err(wrong(format!("{twice} is asked twice."), "leave one out."));
    }
    let kind = match (form.text("kind"), options.is_empty()) {
        (_, true) => PollKind::Open,
        ("approval", _) => PollKind::Approval,
        ("ranked", _) => PollKind::Ranked,
        _ => PollKind::Plurality,
    };
    let quorum = form.get("quorum").map(str::trim).filter(|q| !q.is_empty());
    if let Some(text) = quorum {
        let read = Quorum::parse(text);
        let needed = read.required(voters.len());
        if matches!(read, Quorum::Unreadable(_)) {
            return Err(wrong(
                "The quorum can't be read.",
                "write it as 2, 2-of-3 or 60%.",
            ));
        }
        if needed.is_some_and(|n| usize::try_from(n).is_ok_and(|n| n > voters.len())) {
            return Err(wrong(
                format!("{} voters can't reach this quorum.", voters.len()),
                "ask more, or lower it.",
            ));
        }
    }
    let deadline = time_of(form.text("deadline"), now)?;
    let thread = id::new_ulid();
    let mut text = question.to_owned();
    if let Some(hint) = answer_hint(&kind, &options) {
        text = format!("{question}\n\n{hint}");
    }
    let list = |items: &[String]| serde_json::to_string(items).unwrap_or_default();
    let mut builder = Builder::new(from, "TEAM")
        .user(user)
        .session(session_text(now, "poll"))
        .thread(&thread)
        .message(id::new_ulid())
        .context(context_of(question))
        .intent(Intent::Poll.as_str())
        .meta("routing", "Targets", list(&voters))
        .meta("poll", "Type", kind.as_str());
    if !options.is_empty() {
        builder = builder.meta("poll", "Options", list(&options));
    }
    if let Some(quorum) = quorum {
        builder = builder.meta("poll", "Quorum", quorum);
    }
    if let Some(at) = deadline {
        builder = builder.meta("poll", "Deadline", at.to_string());
    }
    let is_secret = form.get("secret").is_some();
    if is_secret {
        builder = builder.meta("poll", "Secrecy", "until close");
    }
    let mut command = format!("crosstalk poll new {}", Shown::argument(question));
    for option in &options {
        command.push_str(&format!(" --option {}", Shown::argument(option)));
    }
    for voter in &voters {
        command.push_str(&format!(" --target {}", Shown::argument(voter)));
    }
    if !options.is_empty() && kind != PollKind::Plurality {
        command.push_str(&format!(" --type {}", kind.as_str()));
    }
    if let Some(quorum) = quorum {
        command.push_str(&format!(" --quorum {}", Shown::argument(quorum)));
    }
    if let Some(at) = deadline {
        command.push_str(&format!(" --deadline {at}"));
    }
    if is_secret {
        command.push_str(" --secret");
    }
    Ok((build(&builder.body(text).visible())?, command))
}

/// The exact envelope of a new poll.
pub(crate) async fn preview(Posted { visit, form }: Posted) -> PageResult {
    let user = user_of(&visit, form.text("from").trim());
    let (envelope, command) = new_poll(&form, &user, visit.now)?;
    preview_written(&visit, envelope, "/polls/new", command).await
}

/// How many chose an option.
struct TallyBar {
    option: Shown,
    number: u64,
    percent: u64,
    is_outcome: bool,
}

/// An answer of a voter.
struct VoterAnswer {
    from: PartyName,
    /// The option that it counts for; nothing for an abstention, or where that is not shown.
    choice: Option<Shown>,
    abstains: bool,
    corrected: Option<Correction>,
    confidence: Option<Shown>,
    /// The other words of the voter.
    says: Vec<Piece>,
    /// The answer as a correction names it.
    name: Shown,
    command_name: Shown,
    /// Why it does not count.
    why: Option<Shown>,
    /// Whether the person may say what it means.
    can_correct: bool,
}

/// How somebody said that an answer is read.
struct Correction {
    by: PartyName,
    read_as: Option<Shown>,
}

/// The longest answer that is shown beside others.
const ANSWER_CHARS: usize = 1_500;

fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key).and_then(Value::as_str)
}

fn items<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

impl VoterAnswer {
    fn of(value: &Value, may_correct: bool) -> Self {
        let name = text(value, "message")
            .or_else(|| text(value, "digest"))
            .unwrap_or("");
        let why = text(value, "why");
        let detail = text(value, "detail").filter(|d| !d.is_empty()).or(why);
        let says: String = text(value, "answer")
            .unwrap_or("")
            .chars()
            .take(ANSWER_CHARS)
            .collect();
        let corrected = value.get("corrected").filter(|c| c.is_object());
        let is_prose = text(value, "read_from") != Some("vote");
        Self {
            from: PartyName::of(text(value, "from").unwrap_or("")),
            choice: text(value, "choice").map(|c| Shown::short(c, 200)),
            abstains: value
                .get("abstains")
                .and_then(Value::as_bool)
                .unwrap_or(false),
            corrected: corrected.map(|c| Correction {
                by: PartyName::of(text(c, "by").unwrap_or("")),
                read_as: text(c, "read_as").map(|r| Shown::short(r, 100)),
            }),
            confidence: text(value, "confidence").map(|c| Shown::short(c, 20)),
            says: pieces(&says),
            name: Shown::new(name),
            command_name: Shown::argument(name),
            can_correct: may_correct
                && match why {
                    Some(why) => matches!(why, "unreadable" | "other-parent"),
                    None => is_prose,
                },
            why: detail.map(|d| Shown::short(d, 200)),
        }
    }
}

#[derive(Template)]
#[template(path = "poll.html")]
struct PollPage {
    shell: Shell,
    path: String,
    command_id: Shown,
    thread: String,
    from: PartyName,
    question: Vec<Piece>,
    kind: Shown,
    is_open: bool,
    is_veiled: bool,
    is_past: bool,
    may_close: bool,
    ends: Option<Moment>,
    closed: Option<Moment>,
    bars: Vec<TallyBar>,
    options: Vec<Shown>,
    outcome: Option<Shown>,
    reason: Option<Shown>,
    counted_number: u64,
    required: Option<u64>,
    invited: usize,
    counted: Vec<VoterAnswer>,
    not_counted: Vec<VoterAnswer>,
    missing: Vec<PartyName>,
}

impl PollPage {
    async fn of(visit: &Visit, poll: &Value) -> Self {
        let now = visit.now;
        let call = poll.get("poll").cloned().unwrap_or_default();
        let from = text(&call, "from").unwrap_or("").to_owned();
        let is_open = text(poll, "state") == Some("open");
        let options: Vec<&str> = items(&call, "options")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let may_correct = is_open && !options.is_empty() && visit.peer.speaks_for(&from);
        let quorum = poll.get("quorum").cloned().unwrap_or_default();
        let number = |value: &Value, key: &str| value.get(key).and_then(Value::as_u64);
        let outcome = text(poll, "outcome");
        let tally = |option: &str| {
            poll.get("tally")
                .and_then(|t| number(t, option))
                .unwrap_or(0)
        };
        let most = options.iter().map(|o| tally(o)).max().unwrap_or(0);
        let bars = options.iter().map(|option| TallyBar {
            option: Shown::short(option, 120),
            number: tally(option),
            percent: percent(tally(option), most),
            is_outcome: outcome == Some(*option),
        });
        let question = text(&call, "question").unwrap_or("");
        let counted_number = number(&quorum, "counted").unwrap_or(0);
        let required = number(&quorum, "required");
        let invited = items(&call, "invited").len();
        let answers = |key: &str| -> Vec<VoterAnswer> {
            let all = items(poll, key).iter();
            all.map(|a| VoterAnswer::of(a, may_correct)).collect()
        };
        let id = text(&call, "message").unwrap_or("");
        Self {
            shell: visit.shell("Poll").await,
            path: encode(id),
            command_id: Shown::argument(id),
            thread: encode(text(poll, "thread").unwrap_or("")),
            question: pieces(question),
            kind: Shown::new(text(&call, "type").unwrap_or("")),
            is_open,
            is_veiled: poll.get("veiled").and_then(Value::as_bool).unwrap_or(false),
            is_past: poll.get("past").and_then(Value::as_bool).unwrap_or(false),
            may_close: is_open && (visit.peer.is_admin() || visit.peer.speaks_for(&from)),
            ends: text(poll, "ends_at").map(|at| Moment::parse(at, now)),
            closed: text(poll, "closed_at").map(|at| Moment::parse(at, now)),
            bars: bars.collect(),
            outcome: outcome.map(|o| Shown::short(o, 200)),
            reason: text(poll, "reason").map(|r| Shown::short(r, 300)),
            counted_number,
            required,
            invited,
            counted: answers("counted"),
            not_counted: answers("not_counted"),
            missing: items(poll, "missing")
                .iter()
                .filter_map(Value::as_str)
                .map(PartyName::of)
                .collect(),
            from: PartyName::of(&from),
            options: options.iter().map(|o| Shown::new(o)).collect(),
        }
    }
}

pub(crate) async fn show(visit: Visit, Path(id): Path<String>) -> PageResult {
    let poll = visit.client.poll(&id).await?;
    render(&PollPage::of(&visit, &poll).await)
}

pub(crate) async fn close(Path(id): Path<String>, Posted { visit, .. }: Posted) -> PageResult {
    visit.client.close_poll(&id).await?;
    Ok(redirect(&format!("/polls/{}?did=closed", encode(&id))))
}

/// The exact envelope that says how to count an answer.
pub(crate) async fn correct(Path(id): Path<String>, Posted { visit, form }: Posted) -> PageResult {
    let poll = visit.client.message(&id).await?;
    let parsed = Document::parse(&poll.envelope, Reading::Strict);
    let original = parsed.envelope();
    let (answer, choice) = (form.text("answer"), form.text("choice"));
    let standing = visit.client.poll(&id).await?;
    let call = standing.get("poll").cloned().unwrap_or_default();
    let place = choice.parse::<usize>().ok();
    let option = place.and_then(|place| items(&call, "options").get(place)?.as_str());
    let builder = Builder::new(&poll.from, &poll.to)
        .user(user_of(&visit, &poll.from))
        .core_if(CoreHeader::Session, original.session.map(|s| s.text))
        .thread(&poll.thread)
        .parent(&poll.id)
        .message(id::new_ulid())
        .core_if(CoreHeader::Context, original.context)
        .intent(Intent::Respond.as_str())
        .meta("vote", "Corrects", answer);
    let command = format!("crosstalk poll count {}", Shown::argument(answer));
    let (builder, said, command) = match (option, choice) {
        (Some(option), _) => (
            builder.meta("vote", "Choice", option),
            option.to_owned(),
            format!("{command} --as {}", Shown::argument(option)),
        ),
        (None, "abstain") => (
            builder.meta("vote", "Abstain", "yes"),
            "an abstention".to_owned(),
            format!("{command} --abstain"),
        ),
        _ => return Err(wrong("There is no such option.", "choose one of the poll.")),
    };
    let text = format!("This answer counts as {said}.");
    let envelope = build(&builder.body(text).visible())?;
    let back = format!("/polls/{}", encode(&id));
    preview_written(&visit, envelope, &back, command).await
}
