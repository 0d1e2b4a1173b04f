//! Digits in groups: what cards and phone numbers are made of. Dates are told apart here (RED-004).

use super::view::View;
use std::ops::Range;

/// How many signs may stand between two groups.
const MOST_BETWEEN: usize = 3;

/// A group of digits.
#[derive(Clone, Debug)]
pub(super) struct DigitGroup {
    /// Its position in the view.
    pub(super) place: Range<usize>,
    /// Which digits of the run it has.
    pub(super) digits: Range<usize>,
}

impl DigitGroup {
    /// How many digits it has.
    pub(super) fn len(&self) -> usize {
        self.digits.len()
    }
}

/// Groups of digits with little between them, on one line.
#[derive(Debug, Default)]
pub(super) struct DigitRun {
    pub(super) groups: Vec<DigitGroup>,
    digits: Vec<u8>,
    /// The first group is tied to a word: `ORD-0012`, `#12`.
    pub(super) tied_before: bool,
    /// The last group is tied to a word: `12-rc`.
    pub(super) tied_behind: bool,
}

impl DigitRun {
    /// The digits of some groups.
    pub(super) fn digits(&self, first: usize, last: usize) -> &[u8] {
        let start = self.groups.get(first).map_or(0, |g| g.digits.start);
        let end = self.groups.get(last).map_or(0, |g| g.digits.end);
        self.digits.get(start..end).unwrap_or(&[])
    }

    /// Where some groups stand.
    pub(super) fn place(&self, first: usize, last: usize) -> Range<usize> {
        let start = self.groups.get(first).map_or(0, |g| g.place.start);
        let end = self.groups.get(last).map_or(0, |g| g.place.end);
        start..end
    }

    /// What stands between a group and the next one.
    pub(super) fn between(&self, view: &View, group: usize) -> String {
        let start = self.groups.get(group).map_or(0, |g| g.place.end);
        let end = self.groups.get(group + 1).map_or(start, |g| g.place.start);
        (start..end).map(|i| view.at(i)).collect()
    }

    /// Whether a group and the next one are written together, with no space between them.
    pub(super) fn is_tight(&self, view: &View, group: usize) -> bool {
        group + 1 < self.groups.len() && !self.between(view, group).contains(' ')
    }

    /// Whether the groups from `first` to `last` stand apart from what is around them.
    pub(super) fn stands_apart(&self, view: &View, first: usize, last: usize) -> bool {
        let before = first.checked_sub(1).is_none_or(|i| !self.is_tight(view, i));
        before && !self.is_tight(view, last)
    }

    fn push(&mut self, view: &View, place: Range<usize>) {
        let start = self.digits.len();
        self.digits
            .extend(place.clone().filter_map(|i| view.digit(i)));
        let digits = start..self.digits.len();
        self.groups.push(DigitGroup { place, digits });
    }
}

/// Gives every run of a view to `take`, in order.
pub(super) fn runs(view: &View, mut take: impl FnMut(&DigitRun)) {
    let mut at = 0;
    let mut run = DigitRun::default();
    while at < view.len() {
        if !view.is_digit(at) || view.follows_word(at) {
            at += 1;
            continue;
        }
        if let Some(end) = date(view, at, &run) {
            at = end;
            finish(&mut run, &mut take);
            continue;
        }
        let end = view.digits_end(at);
        if view.is_word(end) {
            // Digits of a longer word.
            run.tied_behind = !run.groups.is_empty() && !is_loose(view, at);
            finish(&mut run, &mut take);
            at = end;
            continue;
        }
        if run.groups.is_empty() {
            run.tied_before = is_tied(view, at);
        }
        run.push(view, at..end);
        match next_group(view, end) {
            Some(next) => at = next,
            None => {
                run.tied_behind = view.at(end) == '-' && view.is_word(end + 1);
                finish(&mut run, &mut take);
                at = end;
            }
        }
    }
    finish(&mut run, &mut take);
}

fn finish(run: &mut DigitRun, take: &mut impl FnMut(&DigitRun)) {
    if !run.groups.is_empty() {
        take(run);
    }
    *run = DigitRun::default();
}

/// Where the next group begins, if little stands between.
fn next_group(view: &View, end: usize) -> Option<usize> {
    let is_between = |i: usize| matches!(view.at(i), ' ' | '-' | '.' | '/' | '(' | ')');
    let mut at = end;
    while at < end + MOST_BETWEEN && is_between(at) {
        at += 1;
    }
    (at > end && view.is_digit(at)).then_some(at)
}

fn is_loose(view: &View, at: usize) -> bool {
    view.before(at) == ' '
}

/// Whether a sign ties what begins here to a word before it.
fn is_tied(view: &View, at: usize) -> bool {
    match view.before(at) {
        '#' => true,
        '-' | '_' | '.' => view.follows_word(at.saturating_sub(1)),
        _ => false,
    }
}

/// The end of a date that begins here: year, month and day, or day, month and year, with one sign between them.
fn date(view: &View, at: usize, run: &DigitRun) -> Option<usize> {
    if !run.groups.is_empty() && !is_loose(view, at) {
        return None;
    }
    let first = at..view.digits_end(at);
    let sign = view.at(first.end);
    if !matches!(sign, '-' | '.' | '/') {
        return None;
    }
    let second = first.end + 1..view.digits_end(first.end + 1);
    if view.at(second.end) != sign {
        return None;
    }
    let third = second.end + 1..view.digits_end(second.end + 1);
    let goes_on = matches!(view.at(third.end), '-' | '.' | '/') && view.is_word(third.end + 1);
    // A time may follow: 2025-10-09T16:00Z.
    let is_time = view.at(third.end) == 't' && view.is_digit(third.end + 1);
    if goes_on || (view.is_word(third.end) && !is_time) {
        return None;
    }
    let value = |r: &Range<usize>| r.clone().filter_map(|i| view.digit(i)).fold(0, decimal);
    let is_year = |r: &Range<usize>| r.len() == 4 && (1900..2100).contains(&value(r));
    let is_day = |r: &Range<usize>| matches!(r.len(), 1 | 2) && (1..=31).contains(&value(r));
    let is_date =
        is_day(&second) && (is_year(&first) && is_day(&third) || is_day(&first) && is_year(&third));
    is_date.then_some(third.end)
}

fn decimal(number: u32, digit: u8) -> u32 {
    number.saturating_mul(10).saturating_add(u32::from(digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let mut out = Vec::new();
        runs(&View::of(text, [].iter()), |run| {
            let sizes: Vec<String> = run.groups.iter().map(|g| g.len().to_string()).collect();
            let ties = (run.tied_before, run.tied_behind);
            out.push(format!("{} {ties:?}", sizes.join("-")));
        });
        out
    }

    #[test]
    fn groups_are_found_and_dates_are_not() {
        let free = |sizes: &str| vec![format!("{sizes} (false, false)")];
        assert_eq!(shown("call (555) 010-0199 now"), free("3-3-4"));
        assert_eq!(shown("2025-10-09 555-010-0199"), free("3-3-4"));
        assert_eq!(shown("09.10.2025 1 2"), free("1-1"));
        assert_eq!(shown("2025-10-09T16"), Vec::<String>::new());
        assert_eq!(shown("ORD-12 34"), ["2-2 (true, false)"]);
        assert_eq!(shown("12-34-rc1"), ["2-2 (false, true)"]);
        assert_eq!(shown("12-34-5a"), ["2-2 (false, true)"]);
        assert_eq!(shown("a12 12b"), Vec::<String>::new());
        assert_eq!(shown("1\n2"), ["1 (false, false)", "1 (false, false)"]);
    }
}
