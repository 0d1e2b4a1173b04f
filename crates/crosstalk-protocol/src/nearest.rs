//! What somebody may have meant who mistyped a word or an address.

use crate::store::is_same_party;
use crosstalk_envelope::Address;

/// How many characters of each text are compared.
const MAX_CHARS: usize = 200;
/// A distance that is never allowed.
const FAR: usize = usize::MAX / 2;
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
    distance_within(one, other, MAX_CHARS)
}

/// The same where it is at most `most`; else any number above it. The time is that of the length times `most`.
fn distance_within(one: &str, other: &str, most: usize) -> usize {
    let chars = |text: &str| text.chars().take(MAX_CHARS).collect::<Vec<char>>();
    let (a, b) = (chars(one), chars(other));
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        // Characters that stand further apart cost more than is allowed.
        let from = i.saturating_sub(most);
        let mut row = vec![FAR; from];
        row.push(if from == 0 { i + 1 } else { FAR });
        let near = b.iter().enumerate().skip(from).take(2 * most + 1);
        for (j, y) in near {
            let at = |row: &[usize], j: usize| row.get(j).copied().unwrap_or(FAR);
            let mut best = (at(&last, j + 1) + 1)
                .min(at(&row, j) + 1)
                .min(at(&last, j) + usize::from(x != y));
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if swapped {
                best = best.min(at(&before, j - 1) + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    match last.len() > b.len() {
        true => last.last().copied().unwrap_or(0),
        false => FAR,
    }
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
    // Short names are near to everything.
    let most = MAX_DISTANCE.min(address.chars().count() / 3);
    let known = known.into_iter();
    let near = known.filter(|k| !is_same_party(k, address) && scheme(k) == wanted);
    near.map(|k| (distance_within(address, k, most), k))
        .filter(|(distance, _)| *distance <= most)
        .min()
        .map(|(_, k)| k)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bounded_distance_is_the_distance_where_it_is_small() {
        let words = [
            "", "a", "ab", "ba", "api", "apj", "aip", "website", "wesbite", "webs", "xyz",
            "aaaaaaaa", "aaaaaa",
        ];
        for one in words {
            for other in words {
                let (whole, bounded) = (edit_distance(one, other), distance_within(one, other, 2));
                assert!(
                    bounded == whole || (bounded > 2 && whole > 2),
                    "{one} {other}: {bounded}, {whole}"
                );
            }
        }
    }
}
