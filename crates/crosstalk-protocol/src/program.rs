//! The program of an agent: what it is called, what its environment says about the message that it gets, and what the
//! envelope that it prints means.

use crate::primer::is_primer_example;
use crate::relay::report::speaker;
use crate::store::{Record, is_same_party};
use crate::verdict::VerdictWord;
use crosstalk_envelope::registry::{Intent, SchemeKind};
use crosstalk_envelope::unicode::is_hidden;
use crosstalk_envelope::{Address, Document, PublicKey, Reading, scan};

/// What the names of all variables begin with that say something about a message. No setting begins so.
pub const MESSAGE_VARIABLE_PREFIX: &str = "CROSSTALK_MESSAGE_";
/// The longest value of such a variable, in characters.
const MAX_VALUE_CHARS: usize = 1000;
/// The scheme of agents that no vendor's scheme names.
const AGENT: &str = "agent";

/// The name of an agent for `user:`. The scheme names an assistant; of `agent://`, the end of the path does.
///
/// ```
/// use crosstalk_protocol::agent_user;
/// assert_eq!(agent_user("claude://code/api"), "claude");
/// assert_eq!(agent_user("agent://acme.example/team/reviewer"), "reviewer");
/// assert_eq!(agent_user("agent://reviewer"), "reviewer");
/// assert_eq!(agent_user("BOT"), "bot");
/// ```
pub fn agent_user(address: &str) -> String {
    let split = Address::split(address);
    let word = match (split.kind(), split.scheme()) {
        (Some(SchemeKind::Person) | None, _) | (_, None) => address,
        (_, Some(scheme)) if scheme.eq_ignore_ascii_case(AGENT) => {
            let place = address.split(['?', '#']).next().unwrap_or(address);
            let mut parts = place.rsplit('/').filter(|part| !part.is_empty());
            parts.next().unwrap_or(scheme)
        }
        (_, Some(scheme)) => scheme,
    };
    word.to_lowercase()
}

/// Whether a message with this intent asks for an answer. A program that prints nothing has failed on such a message; on any
/// other one, it has not.
///
/// ```
/// use crosstalk_envelope::Intent;
/// use crosstalk_protocol::expects_answer;
/// assert!(expects_answer(Some(Intent::Request)) && expects_answer(Some(Intent::Escalate)));
/// assert!(!expects_answer(Some(Intent::Respond)) && !expects_answer(None));
/// ```
pub fn expects_answer(meaning: Option<Intent>) -> bool {
    meaning.is_some_and(Intent::asks)
}

/// Whether an envelope that a program printed answers, and does not ask or tell somebody.
pub fn is_answer(meaning: Option<Intent>) -> bool {
    meaning.is_none_or(Intent::answers)
}

/// The output of a program.
#[derive(Debug)]
pub enum Printed<'t> {
    /// Nothing but blank lines.
    Nothing,
    /// A text without an envelope of its own.
    Text(&'t str),
    /// Envelopes, in the order of the text. Examples of the primer, quotes of what the program got and repetitions are not
    /// among them.
    Envelopes(Vec<Document<'t>>),
    /// The beginning of an envelope whose end is missing: the program was cut off.
    Truncated,
}

/// Why output that ends within an envelope is no answer.
pub const TRUNCATED_OUTPUT: &str =
    "printed an envelope without its end (`sig:` and `[[END]]`), so its output may be cut off";

impl<'t> Printed<'t> {
    /// Reads what a program printed that was given a message.
    ///
    /// ```
    /// use crosstalk_envelope::{Document, Reading};
    /// use crosstalk_protocol::Printed;
    /// let envelope = |body: &str| format!("[[B→A v1]]\nuser: u\nthread: T\ncontext: c\nintent: RESPOND\nbody: |\n  {body}\nsig: none\n[[END]]\n");
    /// let asked = envelope("Ready?").replace("B→A", "A→B").replace("RESPOND", "REQUEST");
    /// let given = Document::parse(&asked, Reading::Strict);
    /// let two = format!("{asked}{}{}", envelope("Yes."), envelope("No."));
    /// let Printed::Envelopes(found) = Printed::read(&two, &given) else { panic!() };
    /// assert_eq!(found.iter().map(|d| d.body_text()).collect::<Vec<_>>(), ["Yes.", "No."]);
    /// let one = envelope("Yes.");
    /// let cut = one.split("sig:").next().unwrap();
    /// assert!(matches!(Printed::read(cut, &given), Printed::Truncated));
    /// assert!(matches!(Printed::read("Yes.\n", &given), Printed::Text("Yes.\n")));
    /// ```
    pub fn read(text: &'t str, given: &Document<'_>) -> Self {
        if text.trim().is_empty() {
            return Self::Nothing;
        }
        let found = scan(text, Reading::Paste);
        let is_own = |d: &Document<'_>| !is_primer_example(d) && !is_quote(d, given);
        // A quote may be cut off, too.
        let is_part = |d: &Document<'_>| {
            is_same_party(d.sender(), given.sender())
                && given.body_text().starts_with(d.body_text().trim_end())
        };
        let mut cut = found.truncated.iter().filter(|d| is_own(d));
        if cut.any(|d| !is_part(d)) {
            return Self::Truncated;
        }
        let mut envelopes: Vec<Document<'t>> = Vec::new();
        for document in found.documents.into_iter().filter(is_own) {
            if !envelopes.iter().any(|d| d.source() == document.source()) {
                envelopes.push(document);
            }
        }
        match envelopes.is_empty() {
            true => Self::Text(text),
            false => Self::Envelopes(envelopes),
        }
    }
}

/// Whether an envelope that a program printed is the message that it got: a quote, and no answer.
pub fn is_quote(printed: &Document<'_>, given: &Document<'_>) -> bool {
    is_same_party(printed.sender(), given.sender())
        && is_same_party(printed.receiver(), given.receiver())
        && printed.envelope().meaning() == given.envelope().meaning()
        && printed.body_text() == given.body_text()
}

/// Whom an envelope is for that a program printed under a name that is not its own. What it prints goes out in its own name,
/// whatever name a model wrote: `names` are those of the program, and `asker` is who gets its answers. An answer goes to the
/// asker, and so does a question to the program itself: the model did not swap the two sides.
///
/// ```
/// use crosstalk_envelope::{Document, Reading};
/// use crosstalk_protocol::printed_receiver;
/// let receiver = |direction: &str, intent: &str| {
///     let text = format!("[[{direction} v1]]\nuser: u\nthread: T\ncontext: c\nintent: {intent}\nbody: |\n  x\nsig: none\n[[END]]\n");
///     let document = Document::parse(&text, Reading::Strict);
///     printed_receiver(&document, &["claude://code/api"], "ANN").to_owned()
/// };
/// assert_eq!(receiver("YOU→SOMEBODY", "RESPOND"), "ANN");
/// assert_eq!(receiver("AGENT→human://acme.example/boss", "ESCALATE"), "human://acme.example/boss");
/// assert_eq!(receiver("ANN→claude://code/api", "REQUEST"), "ANN");
/// ```
pub fn printed_receiver<'d>(printed: &'d Document<'_>, names: &[&str], asker: &'d str) -> &'d str {
    let receiver = printed.receiver();
    let is_own = names.iter().any(|name| is_same_party(name, receiver));
    match is_answer(printed.envelope().meaning()) || is_own {
        true => asker,
        false => receiver,
    }
}

/// What the environment of a program says about the message that it gets: names and values. The values are short and have
/// no control or hidden characters; a program must not run them as commands. `own` is how many of the last hops are those
/// of the relay that the program answers for ([`speaker`]). `attempt` is 1 the first time that the program gets the message.
pub fn message_variables(record: &Record, own: usize, attempt: u32) -> [(String, String); 6] {
    let from = speaker(&record.sender, &record.text, own);
    let attempt = attempt.to_string();
    let intent = record.meaning.map(|m| m.as_str());
    let intent = intent.or(record.intent.as_deref()).unwrap_or_default();
    [
        ("FROM", &*from),
        ("ID", &record.id),
        ("THREAD", &record.thread),
        ("INTENT", intent),
        ("VERIFICATION", verification(record).as_str()),
        ("ATTEMPT", &attempt),
    ]
    .map(|(name, value)| (format!("{MESSAGE_VARIABLE_PREFIX}{name}"), clean(value)))
}

/// What a program is told about a signature. Everybody can make a did:key, so that one is never more than a first contact.
pub(crate) fn verification(record: &Record) -> VerdictWord {
    let is_did = |pkid: &str| PublicKey::from_did(pkid).is_some();
    match record.verdict {
        VerdictWord::Verified if record.pkid.as_deref().is_some_and(is_did) => {
            VerdictWord::FirstContact
        }
        verdict => verdict,
    }
}

fn clean(value: &str) -> String {
    let is_shown = |c: &char| !c.is_control() && !is_hidden(*c);
    value
        .chars()
        .filter(is_shown)
        .take(MAX_VALUE_CHARS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::tests::record;

    #[test]
    fn variables_are_bounded_and_clean() {
        let mut long = record(VerdictWord::Unsigned, "x");
        long.sender = "A".repeat(5000);
        long.id = "M\n\u{1b}[31m\u{202e}1\u{e0041}\u{0}".into();
        long.intent = Some("PATCH\u{85}".into());
        let variables = message_variables(&long, 0, 2);
        let value = |name: &str| {
            let mut all = variables.iter();
            let name = format!("CROSSTALK_MESSAGE_{name}");
            all.find(|(n, _)| *n == name).unwrap().1.clone()
        };
        assert_eq!(value("FROM"), "A".repeat(1000));
        assert_eq!(value("ID"), "M[31m1");
        assert_eq!(
            (value("THREAD"), value("INTENT")),
            ("T".into(), "PATCH".into())
        );
        assert_eq!(value("VERIFICATION"), "unsigned");
        assert_eq!(value("ATTEMPT"), "2");
    }

    #[test]
    fn did_key_is_a_first_contact_in_the_environment() {
        let did = "did:key:z6MkiTBz1ymuepAQ4HEHYSF1H8quG5GLVVQR3djdX3mDooWp";
        for (pkid, wanted) in [(did, "first-contact"), ("ann@acme.example", "verified")] {
            let variables = message_variables(&record(VerdictWord::Verified, pkid), 0, 1);
            assert_eq!(variables[4].1, wanted);
        }
    }
}
