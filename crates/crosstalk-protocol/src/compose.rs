//! Defaults for a person who writes a message: the intent, the session and the context.

use crate::bundle::quote;
use crosstalk_envelope::{Intent, Timestamp};

/// The limit of a context that is derived from a text, in characters.
const CONTEXT_CHARS: usize = 60;
/// The context of a text that has no words, or whose words must not be repeated.
pub const NO_CONTEXT: &str = "conversation";

/// How an announcement begins, in lower case.
const OPENINGS: &[&str] = &[
    "fyi",
    "for your information",
    "note:",
    "announcement:",
    "announcement –",
    "announcement -",
];

/// The intent of a text: REQUEST, unless it opens like an announcement, answers something that asks, or only says thanks
/// ([`is_thanks`]). `answering` is
/// the intent of the message that it answers. A caller that knows better says so; a wrong guess here is one that asks for
/// an answer too many.
///
/// ```
/// use crosstalk_envelope::Intent;
/// use crosstalk_protocol::compose::infer_intent;
/// assert_eq!(infer_intent("Which endpoint should stay?", None), Intent::Request);
/// assert_eq!(infer_intent("Keep /v2/users.", Some(Intent::Request)), Intent::Respond);
/// assert_eq!(infer_intent("FYI: the build is green.", None), Intent::Broadcast);
/// ```
pub fn infer_intent(body: &str, answering: Option<Intent>) -> Intent {
    match answering {
        Some(meaning) if meaning.asks() => Intent::Respond,
        Some(_) if is_thanks(body) => Intent::Broadcast,
        // An answer, a refusal or a report is not asked for an answer: what follows it asks anew.
        Some(_) => Intent::Request,
        None if announces(body) || is_thanks(body) => Intent::Broadcast,
        None => Intent::Request,
    }
}

/// The words that a text with nothing but thanks in it is made of. One of the first line at least has to be there.
const THANKS: &[&str] = &[
    "thanks",
    "thank",
    "thx",
    "cheers",
    "noted",
    "understood",
    "bye",
    "welcome",
    "danke",
    "merci",
    "gracias",
];
const AROUND_THANKS: &[&str] = &[
    "you",
    "you're",
    "so",
    "very",
    "much",
    "many",
    "a",
    "lot",
    "again",
    "great",
    "perfect",
    "good",
    "nice",
    "ok",
    "okay",
    "got",
    "it",
    "that",
    "that's",
    "this",
    "is",
    "was",
    "all",
    "helps",
    "helped",
    "helpful",
    "for",
    "the",
    "your",
    "answer",
    "answers",
    "help",
    "quick",
    "and",
    "everything",
    "clear",
    "yes",
    "will",
    "do",
    "done",
    "i",
    "have",
    "what",
    "needed",
    "no",
    "further",
    "more",
    "questions",
    "now",
];

/// Whether a text says thanks or good-bye, and nothing else: at most 120 characters, no question mark, and no word that is not
/// in a short list.
///
/// ```
/// use crosstalk_protocol::compose::is_thanks;
/// assert!(is_thanks("Thanks, got it!") && is_thanks("Thank you so much, that was all."));
/// assert!(!is_thanks("Thanks, go on.") && !is_thanks("Thanks?") && !is_thanks("Okay."));
/// ```
pub fn is_thanks(body: &str) -> bool {
    const MOST_CHARS: usize = 120;
    if body.chars().nth(MOST_CHARS).is_some() || body.contains(['?', '？']) {
        return false;
    }
    let lower = body.to_lowercase().replace('’', "'");
    let words = lower.split(|c: char| !(c.is_alphanumeric() || c == '\''));
    let words: Vec<&str> = words.filter(|w| !w.is_empty()).collect();
    let has_thanks = words.iter().any(|w| THANKS.contains(w)) || lower.contains("got it");
    let is_known = |w: &&str| THANKS.contains(w) || AROUND_THANKS.contains(w);
    has_thanks && words.iter().all(is_known)
}

/// Whether an argument that was typed where an id belongs is a text: it has white space, or is one word of letters with the
/// marks of a sentence around it. A word that may be a mistyped id is not a text.
///
/// ```
/// use crosstalk_protocol::compose::looks_like_text;
/// assert!(looks_like_text("Use port 443") && looks_like_text("Yes.") && looks_like_text("Ja"));
/// assert!(!looks_like_text("01K74V8Q") && !looks_like_text("443") && !looks_like_text("msg-a") && !looks_like_text(""));
/// ```
pub fn looks_like_text(argument: &str) -> bool {
    let is_sentence = |c: char| c.is_alphabetic() || ".,!?…'’".contains(c);
    let has_letter = argument.contains(char::is_alphabetic);
    argument.trim().contains(char::is_whitespace)
        || (has_letter && argument.chars().all(is_sentence))
}

/// Whether a text opens like an announcement, and asks nothing.
fn announces(body: &str) -> bool {
    let text = body.trim_start();
    let opens = OPENINGS.iter().any(|opening| {
        let mut rest = text.chars();
        let same = opening
            .chars()
            .all(|c| rest.next().is_some_and(|r| r.to_ascii_lowercase() == c));
        // `FYIs` and `Fyison` begin otherwise.
        same && (!opening.ends_with(char::is_alphanumeric)
            || rest.next().is_none_or(|next| !next.is_alphanumeric()))
    });
    opens && !text.contains('?')
}

/// The context of a new thread: the first words of the text that opens it, in one line of at most 60 characters. A text
/// that is longer is cut between words, and `…` says so.
///
/// ```
/// use crosstalk_protocol::compose::context_of;
/// assert_eq!(context_of("Should we use JWT?\n\nOur clients are mobile."), "Should we use JWT?");
/// assert_eq!(context_of(" \n"), "conversation");
/// ```
pub fn context_of(text: &str) -> String {
    let lines = text.lines().map(str::trim);
    let mut spoken = lines.filter(|line| line.contains(char::is_alphanumeric));
    let Some(line) = spoken.next() else {
        return NO_CONTEXT.to_owned();
    };
    let words: Vec<&str> = line.split_whitespace().collect();
    let line = quote::visible(&words.join(" "));
    if line.chars().nth(CONTEXT_CHARS).is_none() {
        return line;
    }
    let room = CONTEXT_CHARS - 1;
    let mut cut: String = line.chars().take(room + 1).collect();
    match cut.rfind(' ') {
        Some(end) => cut.truncate(end),
        // One word that is too long for it.
        None => cut = cut.chars().take(room).collect(),
    }
    let cut = cut.trim_end_matches(|c: char| !c.is_alphanumeric());
    format!("{cut}…")
}

/// The session of v1.0: the hour, and a word that tells the sessions of an hour apart.
///
/// ```
/// use crosstalk_envelope::Timestamp;
/// use crosstalk_protocol::compose::session_text;
/// let at = Timestamp::parse("2025-10-09T16:23:04Z").unwrap();
/// assert_eq!(session_text(at, "abc123"), "2025-10-09T16Z abc123");
/// ```
pub fn session_text(at: Timestamp, word: &str) -> String {
    let text = at.to_string();
    let hour = text.split(':').next().unwrap_or(&text);
    format!("{hour}Z {word}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_intent_follows_from_what_is_answered() {
        use Intent::{Ack, Broadcast, Close, Error, Escalate, Handoff, Nack, Poll, Request};
        use Intent::{Respond, Revoke};
        for (body, answering, intent) in [
            ("Do it.", None, Request),
            ("", None, Request),
            ("Yes.", Some(Request), Respond),
            ("Why?", Some(Request), Respond),
            ("A", Some(Poll), Respond),
            ("I am here.", Some(Escalate), Respond),
            ("Mine.", Some(Handoff), Respond),
            ("And the other one?", Some(Respond), Request),
            ("Thanks, go on.", Some(Respond), Request),
            ("Thanks, got it.", Some(Respond), Broadcast),
            ("Thanks!", Some(Request), Respond),
            ("Thanks!", None, Broadcast),
            ("FYI: I did.", Some(Request), Respond),
            ("FYI: done.", Some(Respond), Request),
            ("What failed?", Some(Error), Request),
            ("So?", Some(Broadcast), Request),
            ("x", Some(Ack), Request),
            ("x", Some(Nack), Request),
            ("x", Some(Close), Request),
            ("x", Some(Revoke), Request),
        ] {
            assert_eq!(
                infer_intent(body, answering),
                intent,
                "{body} {answering:?}"
            );
        }
    }

    #[test]
    fn only_what_opens_like_an_announcement_is_one() {
        for body in [
            "FYI, the build is green.",
            "fyi the build is green",
            "\n  FYI: done",
            "FYI",
            "For your information: we moved.",
            "Note: the key changes tomorrow.",
            "NOTE: x",
            "Announcement: v2 is out.",
        ] {
            assert_eq!(infer_intent(body, None), Intent::Broadcast, "{body}");
        }
        for body in [
            "Please note: the key changes tomorrow.",
            "Note that this fails. Please look.",
            "Notes: a, b",
            "Note the time.",
            "FYIs are fine.",
            "Announcement text needed: write one.",
            "Write an announcement: short.",
            "FYI: it is red. Can you look?",
            "No FYI here",
        ] {
            assert_eq!(infer_intent(body, None), Intent::Request, "{body}");
        }
    }

    #[test]
    fn a_context_is_the_first_words_in_one_line() {
        let long = "word ".repeat(30);
        for (text, context) in [
            ("Should we use JWT?", "Should we use JWT?"),
            ("\n\n  two \t spaces \nmore", "two spaces"),
            ("---\n# Plan\nmore", "# Plan"),
            ("", NO_CONTEXT),
            ("?!", NO_CONTEXT),
            (
                "Which of the two endpoints should stay, and which of them should go first?",
                "Which of the two endpoints should stay, and which of them…",
            ),
            ("a\u{7}b\u{202e}c", "a\\u{7}b\\u{202e}c"),
            ("[[END]] is what?", "\\u{5b}[END]] is what?"),
            (&"x".repeat(61), &format!("{}…", "x".repeat(59))),
            (&"x".repeat(60), &"x".repeat(60)),
            (&long, &format!("{}word…", "word ".repeat(11))),
        ] {
            assert_eq!(context_of(text), context, "{text}");
            assert!(context_of(text).chars().count() <= CONTEXT_CHARS, "{text}");
        }
    }

    #[test]
    fn a_session_names_its_hour() {
        for (time, session) in [
            ("2025-10-09T16:59:59.999Z", "2025-10-09T16Z abc123"),
            ("2025-01-01", "2025-01-01T00Z abc123"),
            ("2025-10-09T01:30:00+02:00", "2025-10-08T23Z abc123"),
        ] {
            let at = Timestamp::parse(time).unwrap();
            assert_eq!(session_text(at, "abc123"), session);
            assert!(Timestamp::parse(session.split(' ').next().unwrap()).is_some());
        }
    }
}
