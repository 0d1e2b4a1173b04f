//! Suggestions for a mistyped word or address.

use crate::store::is_same_party;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{Address, Intent, IntentField};

/// How many characters of each text are compared.
const MAX_CHARS: usize = 200;
/// How far an address may be from the one that was meant.
const MAX_DISTANCE: usize = 2;

/// What to tell a sender whose intent is not registered: such a message is kept, and nobody waits for an answer to it.
///
/// ```
/// use crosstalk_protocol::intent_hint;
/// assert!(intent_hint("request").unwrap().ends_with("did you mean REQUEST?"));
/// assert!(intent_hint("REQEUST").unwrap().ends_with("did you mean REQUEST?"));
/// assert!(intent_hint("X-ACME-NOTE").is_some() && intent_hint("REQUEST").is_none());
/// ```
pub fn intent_hint(written: &str) -> Option<String> {
    if IntentField::parse(written).meaning.is_some() {
        return None;
    }
    let upper = written.to_uppercase();
    let known = Intent::ALL.iter().map(|i| i.as_str());
    let near = known.map(|word| (edit_distance(&upper, word), word)).min();
    let near = near.filter(|(distance, _)| *distance <= MAX_DISTANCE);
    let meant = near.map_or(String::new(), |(_, word)| format!("; did you mean {word}?"));
    let shown: String = escape(written).chars().take(MAX_CHARS).collect();
    Some(format!(
        "the intent {shown} is not registered, and no answer is expected{meant}"
    ))
}

/// How many characters have to be added, taken out, exchanged or swapped with the next one, to get from one text to
/// another. Only the beginnings of long texts are compared.
///
/// ```
/// use crosstalk_protocol::edit_distance;
/// assert_eq!(edit_distance("apj", "api"), 1);
/// assert_eq!(edit_distance("aip", "api"), 1);
/// assert_eq!(edit_distance("web", "api"), 3);
/// ```
pub fn edit_distance(one: &str, other: &str) -> usize {
    strsim::osa_distance(beginning(one), beginning(other))
}

fn beginning(text: &str) -> &str {
    let end = text.char_indices().nth(MAX_CHARS).map(|(at, _)| at);
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

/// The known address that somebody may have meant by another one: of the same scheme, and at most two characters away.
///
/// ```
/// use crosstalk_protocol::nearest_address;
/// let known = ["claude://code/api", "chatgpt://code/apj", "claude://code/website"];
/// assert_eq!(nearest_address("claude://code/apj", known), Some("claude://code/api"));
/// assert_eq!(nearest_address("claude://code/api", known), None);
/// assert_eq!(nearest_address("claude://mail/apj", known), None);
/// ```
pub fn nearest_address<'k>(
    address: &str,
    known: impl IntoIterator<Item = &'k str>,
) -> Option<&'k str> {
    let scheme = |a: &str| Address::split(a).scheme().map(str::to_ascii_lowercase);
    let wanted = scheme(address);
    let length = beginning(address).chars().count();
    // Short names are near to everything.
    let limit = MAX_DISTANCE.min(length / 3);
    // A relay may know many addresses: most of them differ too much in length to be worth comparing.
    let has_near_length = |k: &str| beginning(k).chars().count().abs_diff(length) <= limit;
    let known = known.into_iter().filter(|k| has_near_length(k));
    let near = known.filter(|k| scheme(k) == wanted && !is_same_party(k, address));
    near.map(|k| (edit_distance(address, k), k))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, k)| k)
}
