//! Sorts findings and other things by their place in a text.

/// Sorts things by a number; those with the same one keep their order. Most lists are in order already.
///
/// Numbers are sorted, whatever the things are: a sort of its own for each type would make the package for browsers larger.
///
/// ```
/// let mut words = vec!["and", "a", "the", "I"];
/// crosstalk_envelope::sort_by_number(&mut words, |word| word.len());
/// assert_eq!(words, ["a", "I", "and", "the"]);
/// ```
pub fn sort_by_number<T>(things: &mut Vec<T>, number: impl Fn(&T) -> usize) {
    if things.is_sorted_by_key(&number) {
        return;
    }
    let numbers = things.iter().map(number).zip(0..);
    let mut order: Vec<(usize, usize)> = numbers.collect();
    order.sort_unstable();
    let mut unsorted: Vec<Option<T>> = things.drain(..).map(Some).collect();
    let sorted = order.iter().map(|(_, at)| unsorted.get_mut(*at)?.take());
    things.extend(sorted.flatten());
}
