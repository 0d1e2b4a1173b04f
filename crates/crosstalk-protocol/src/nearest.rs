//! What somebody may have meant who mistyped a word or an address.

use crate::store::is_same_party;
use crosstalk_envelope::Address;

/// How many characters of each text are compared.
const MAX_CHARS: usize = 200;
/// How far an address may be from the one that was meant.
const MAX_DISTANCE: usize = 2;

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
