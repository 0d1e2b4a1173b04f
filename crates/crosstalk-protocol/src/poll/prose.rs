//! An answer in prose, read with one conservative rule (POL-012): a first line that is a choice, or that begins with one
//! option and says nothing against it. What else it may mean is for a person to say.

use super::call::{PollCall, PollKind};
use super::choice::{BallotChoice, option};

/// How the rule is called in what is reported.
pub(super) const RULE: &str = "first-line";

/// Words after which a reason follows, which may speak of other options.
const REASONS: &[&str] = &["because", "since"];
/// Words by which an answer takes back, limits, weighs or rejects what it began with; and every word that ends in `n't`.
const DOUBTS: &[&str] = &[
    "no",
    "not",
    "never",
    "neither",
    "nor",
    "none",
    "nothing",
    "nobody",
    "against",
    "except",
    "unless",
    "but",
    "however",
    "if",
    "or",
    "maybe",
    "perhaps",
    "although",
    "though",
    "instead",
    "unsure",
    "either",
    "both",
    "rather",
    "cannot",
    "cant",
    "dont",
    "doesnt",
    "isnt",
    "wont",
    "wouldnt",
    "shouldnt",
    "without",
    "hardly",
    "only",
    "unlikely",
    "avoid",
    "oppose",
    "opposed",
    "reject",
    "rejected",
    "refuse",
    "disagree",
    "dislike",
    "hate",
    "veto",
    "drop",
    "skip",
    "stop",
    "fails",
    "lacks",
    "wrong",
    "bad",
    "worse",
    "worst",
    "terrible",
    "risky",
    "unacceptable",
];
/// Those of them that do so in a reason as well, which may speak against other options.
const TURNS: &[&str] = &[
    "but", "however", "although", "though", "disagree", "oppose", "reject", "against", "unless",
    "except",
];
/// Labels that models put in front of a choice.
const LABELS: &[&str] = &[
    "choice",
    "vote",
    "my choice",
    "my vote",
    "answer",
    "my answer",
];

/// Reads the choice from a text.
///
/// # Errors
/// Why it can't be read: a part of a sentence.
pub(super) fn read(body: &str, call: &PollCall) -> Result<BallotChoice, String> {
    let body = body.trim();
    if body.is_empty() {
        return Err("it says nothing".into());
    }
    if !call.has_options() {
        return Ok(BallotChoice::Text(body.to_owned()));
    }
    let line = body.lines().next().unwrap_or_default();
    if line.starts_with('>') {
        return Err("its first line quotes somebody".into());
    }
    let line = plain(line);
    let line = without_label(&line);
    if line.is_empty() {
        return Err("its first line says nothing".into());
    }
    let bare = line.trim_end_matches(['.', '!']).trim_end();
    if matches!(bare.to_lowercase().as_str(), "abstain" | "i abstain")
        && option(bare, call).is_none()
    {
        return Ok(BallotChoice::Abstain);
    }
    if let Ok(choice) = BallotChoice::parse(line, call).or_else(|_| BallotChoice::parse(bare, call))
    {
        return Ok(choice);
    }
    match call.kind {
        PollKind::Plurality | PollKind::Majority | PollKind::Consensus => {
            begins(line, call).map(BallotChoice::One)
        }
        PollKind::Approval => begins(line, call).map(|place| BallotChoice::Some(vec![place])),
        _ => Err("its first line is no choice as a ballot writes it".into()),
    }
}

/// A line without Markdown around its first words, and without what surrounds the whole of it.
fn plain(line: &str) -> String {
    let line = line.trim_start_matches(['#', '-', ' ', '\t']);
    let line: String = line.chars().filter(|c| !matches!(c, '*' | '`')).collect();
    let line = line.trim().trim_start_matches('_').to_owned();
    line.replace(['“', '”', '"'], "")
        .replace('’', "'")
        .trim()
        .to_owned()
}

fn without_label(line: &str) -> &str {
    match line.split_once(':') {
        Some((label, rest)) if LABELS.contains(&label.trim().to_lowercase().as_str()) => {
            rest.trim()
        }
        _ => line,
    }
}

/// The rest of a line that begins with an option, as whole words and in any case.
fn after<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    let mut rest = line.chars();
    let mut wanted = name.chars().filter(|c| !matches!(c, '*' | '`' | '"'));
    for c in &mut wanted {
        if !c.to_lowercase().eq(rest.next()?.to_lowercase()) {
            return None;
        }
    }
    let rest = rest.as_str();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    (!rest.starts_with(is_word)).then_some(rest)
}

/// The one option that a line begins with, where nothing in front of a reason speaks of others or against it.
fn begins(line: &str, call: &PollCall) -> Result<usize, String> {
    let fits = |(place, name): (usize, &String)| {
        let rest = after(line, name)?;
        Some((line.len() - rest.len(), place, rest))
    };
    let mut found: Vec<(usize, usize, &str)> =
        call.options.iter().enumerate().filter_map(fits).collect();
    found.sort_unstable_by_key(|(length, ..)| std::cmp::Reverse(*length));
    let Some((length, place, rest)) = found.first().copied() else {
        return Err("its first line begins with none of the options".into());
    };
    if found.iter().filter(|(other, ..)| *other == length).count() > 1 {
        return Err("its first line begins with several of the options".into());
    }
    let gap = rest.trim_start();
    let ends = gap.is_empty()
        || rest.starts_with([',', '.', ';', ':', '!', '(', ')'])
        || gap.starts_with(['—', '–', '('])
        || gap.starts_with("- ")
        || gap.starts_with("-- ")
        || REASONS.iter().any(|word| after(gap, word).is_some());
    if !ends {
        return Err(
            "its first line goes on after the option, so that it may mean something else".into(),
        );
    }
    let head = before_reason(rest);
    if head.contains('?') {
        return Err("its first line asks something".into());
    }
    let reason = rest.get(head.len()..).unwrap_or_default();
    let is_doubt = |w: &&str| {
        let word = w.to_lowercase();
        DOUBTS.contains(&word.as_str()) || word.ends_with("n't")
    };
    let is_turn = |w: &&str| TURNS.contains(&w.to_lowercase().as_str());
    let against = words(head).find(is_doubt);
    if let Some(word) = against.or_else(|| words(reason).find(is_turn)) {
        return Err(format!("its first line says `{word}` as well"));
    }
    let others = call
        .options
        .iter()
        .enumerate()
        .filter(|(other, _)| *other != place);
    for (_, other) in others {
        if mentions(head, other) {
            return Err(format!("its first line speaks of `{other}` as well"));
        }
    }
    Ok(place)
}

/// The text before the reason.
fn before_reason(text: &str) -> &str {
    let is_reason = |at: &usize| {
        let rest = text.get(*at..).unwrap_or_default();
        REASONS.iter().any(|word| after(rest, word).is_some())
    };
    let starts = word_starts(text).find(is_reason);
    starts.and_then(|at| text.get(..at)).unwrap_or(text)
}

/// Where words begin.
fn word_starts(text: &str) -> impl Iterator<Item = usize> + '_ {
    let mut before = ' ';
    text.char_indices().filter_map(move |(at, c)| {
        let starts = c.is_alphanumeric() && !before.is_alphanumeric();
        before = c;
        starts.then_some(at)
    })
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|w| !w.is_empty())
}

/// Whether a text names an option somewhere, as whole words.
fn mentions(text: &str, name: &str) -> bool {
    let mut starts = word_starts(text).chain(std::iter::once(0));
    starts.any(|at| {
        text.get(at..)
            .is_some_and(|rest| after(rest, name).is_some())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::call::PollCall;
    use crosstalk_envelope::{Document, Reading};

    fn call(kind: &str, options: &str) -> PollCall {
        let text = format!(
            "[[A→B v1]]\nuser: u\nsession: s\nmessage: 01K74V6VX0S86Z5JATM52C3M7Z\ncontext: c\nintent: POLL\nmeta: routing\n\
             Targets: [\"B\"]\nmeta: poll\nType: {kind}\nOptions: {options}\nbody: |\n  x\nsig: none\n[[END]]\n"
        );
        PollCall::read(&Document::parse(&text, Reading::Strict), "x", None)
    }

    fn said(body: &str, kind: &str, options: &str) -> Option<String> {
        let call = call(kind, options);
        let choice = read(body, &call).ok()?;
        Some(choice.to_text(&call).unwrap_or_else(|| "(abstains)".into()))
    }

    #[test]
    fn clear_answers_are_read() {
        let options = "MONOLITH | MICROSERVICES | Postgres | Postgres 16";
        for (body, choice) in [
            ("MONOLITH, because it is simple.", "MONOLITH"),
            ("monolith", "MONOLITH"),
            ("Monolith.\nMICROSERVICES would cost more.", "MONOLITH"),
            ("**MONOLITH** — it is simple", "MONOLITH"),
            ("\n\n  - Monolith: fewer parts\n", "MONOLITH"),
            ("Monolith because MICROSERVICES are not needed", "MONOLITH"),
            ("My vote: Microservices.", "MICROSERVICES"),
            ("Choice: `MONOLITH`", "MONOLITH"),
            ("\"Monolith\"!", "MONOLITH"),
            ("- MONOLITH (simple)", "MONOLITH"),
            ("Postgres 16, since it is new", "Postgres 16"),
            ("Postgres, since it is old", "Postgres"),
            ("I abstain.", "(abstains)"),
            ("Abstain", "(abstains)"),
        ] {
            assert_eq!(
                said(body, "plurality", options).as_deref(),
                Some(choice),
                "{body}"
            );
        }
        assert_eq!(
            said("A > c", "ranked", "A | B | C").as_deref(),
            Some("A > C")
        );
        assert_eq!(
            said("A = C > B.", "ranked", "A | B | C").as_deref(),
            Some("A = C > B")
        );
        assert_eq!(
            said("a=5 | B: 3", "score", "A | B").as_deref(),
            Some("A=5 | B=3")
        );
        assert_eq!(said("B | A", "approval", "A | B").as_deref(), Some("A | B"));
        assert_eq!(
            said("B, because", "approval", "A | B").as_deref(),
            Some("B")
        );
        assert_eq!(
            said("No, because it is not ready", "majority", "Yes | No").as_deref(),
            Some("No")
        );
    }

    #[test]
    fn unclear_answers_are_not_guessed() {
        let options = "MONOLITH | MICROSERVICES";
        for body in [
            "",
            "I would take the MONOLITH",
            "MONOLITH or MICROSERVICES, both are fine",
            "MONOLITH, MICROSERVICES",
            "MONOLITH would be wrong",
            "MONOLITH? No.",
            "MONOLITH: not with me",
            "MONOLITH, but MICROSERVICES later",
            "MONOLITHIC designs are bad",
            "MONOLITH_2",
            "MONOLITH if you must",
            "MONOLITH, unless it grows",
            "MONOLITH / MICROSERVICES",
            "Thanks!",
            "Both.",
            "```\nMONOLITH\n```",
            "MONOLITH, I don't know",
            "MONOLITH, I don’t know",
            "because MONOLITH",
            "> MONOLITH\n\nI disagree.",
            "> MONOLITH, because it is simple",
            "- > MONOLITH",
            "MONOLITH, cannot support it",
            "MONOLITH: doesn't work",
            "MONOLITH — avoid",
            "MONOLITH, which I oppose",
            "MONOLITH (the worst of them)",
            "MONOLITH, because many like it, but I do not",
            "MONOLITH: hasn’t worked",
        ] {
            assert_eq!(said(body, "plurality", options), None, "{body}");
        }
        assert_eq!(said("A", "plurality", "A | a"), Some("A".into()));
        assert_eq!(said("ä", "plurality", "Ä | ä | x"), Some("ä".into()));
        assert_eq!(said("A, because", "plurality", "A | a"), None);
        assert_eq!(said("A and C", "ranked", "A | B | C"), None);
        assert_eq!(said("A > A", "ranked", "A | B | C"), None);
        assert_eq!(said("A=101", "score", "A | B"), None);
        assert_eq!(said("A=-1", "score", "A | B"), None);
        assert_eq!(said("A=5 | A=5", "score", "A | B"), None);
    }
}
