//! A question that was put to several at once: a message for each of them, in one thread.

use super::party::{is_same_party, party};
use super::record::Record;
use std::collections::HashMap;

/// The messages of a thread that put the same question to several receivers: for each round, their places among the
/// messages. They have the same sender, parent, intent and text, and a receiver each. Whoever is asked the same once more
/// is asked in another round; one message alone is no round.
///
/// ```
/// use crosstalk_protocol::store::rounds;
/// assert!(rounds(&[]).is_empty());
/// ```
pub fn rounds(records: &[Record]) -> Vec<Vec<usize>> {
    type Question<'r> = (String, Option<&'r str>, Option<&'r str>, String);
    let mut latest: HashMap<Question<'_>, usize> = HashMap::new();
    let mut rounds: Vec<Vec<usize>> = Vec::new();
    for (place, record) in records.iter().enumerate() {
        if record.text.is_empty() {
            continue;
        }
        let question = (
            party(&record.sender),
            record.parent.as_deref(),
            record.intent.as_deref(),
            record.document().body_text(),
        );
        let round = latest.get(&question).and_then(|at| rounds.get_mut(*at));
        let is_new = |round: &[usize]| {
            let asked = round.iter().filter_map(|other| records.get(*other));
            let mut asked = asked.map(|other| &other.receiver);
            !asked.any(|receiver| is_same_party(receiver, &record.receiver))
        };
        match round.filter(|round| is_new(round)) {
            Some(round) => round.push(place),
            None => {
                latest.insert(question, rounds.len());
                rounds.push(vec![place]);
            }
        }
    }
    rounds.retain(|round| round.len() > 1);
    rounds
}
