//! Personal data taken out of a text or an envelope, with a placeholder in its place (RED-001 to RED-024).
//!
//! ```text
//! text ── View: look-alikes folded ── scanners, one a kind ── overlaps joined ──> Found: kind, place, placeholder
//!              └──────────── again, with what was found as barriers, until nothing is found ───────────┘
//! ```
//!
//! Every scanner walks the text once and looks a bounded number of symbols around, so the work grows with the text and
//! no faster.

mod card;
mod envelope;
mod iban;
mod ip;
mod label;
mod mail;
mod name;
mod national;
mod number;
mod phone;
mod view;

pub use crosstalk_envelope::registry::PiiKind;
pub use envelope::{Redacted, redact_envelope};

use name::Names;
use std::ops::Range;
use view::View;

/// How often a text is looked at: a find can uncover another one beside it, and that one no more than a third.
const PASSES: usize = 4;

/// A part of a text that is looked at by itself ends at the first blank line behind so many bytes.
const PART: usize = 64 * 1024;

/// The kinds of personal data and the names to look for.
///
/// ```
/// use crosstalk_protocol::redact::{PiiKind, RedactionRules, redact};
/// let rules = RedactionRules::default().with_names(["Jane Doe"]).without(&[PiiKind::Ip]);
/// let redacted = redact("Jane Doe's host is 192.0.2.7", &rules);
/// assert_eq!(redacted.text, "[NAME]'s host is 192.0.2.7");
/// ```
#[derive(Clone, Debug)]
pub struct RedactionRules {
    kinds: Vec<PiiKind>,
    names: Vec<String>,
    tree: Names,
}

impl Default for RedactionRules {
    /// Every kind, and no names.
    fn default() -> Self {
        Self {
            kinds: PiiKind::ALL.to_vec(),
            names: Vec::new(),
            tree: Names::default(),
        }
    }
}

impl RedactionRules {
    /// With these names besides those that are there. Blank ones and single letters are left aside.
    #[must_use]
    pub fn with_names<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.names.extend(names.into_iter().map(Into::into));
        self.tree = Names::new(self.names.iter().map(String::as_str));
        self
    }

    /// With these kinds alone.
    #[must_use]
    pub fn only(mut self, kinds: &[PiiKind]) -> Self {
        self.kinds.retain(|kind| kinds.contains(kind));
        self
    }

    /// Without these kinds.
    #[must_use]
    pub fn without(mut self, kinds: &[PiiKind]) -> Self {
        self.kinds.retain(|kind| !kinds.contains(kind));
        self
    }

    /// The kinds that are looked for, the strongest first.
    pub fn kinds(&self) -> &[PiiKind] {
        &self.kinds
    }

    /// The names that are looked for.
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPii {
    /// What it is.
    pub kind: PiiKind,
    /// Where it stands: bytes of the text.
    pub span: Range<usize>,
    /// Its replacement.
    pub placeholder: String,
}

/// A text without what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redaction {
    /// The text, with placeholders.
    pub text: String,
    /// The findings in the order of the text; their positions refer to the original text.
    pub found: Vec<FoundPii>,
}

/// What a scanner found: symbols of the view.
#[derive(Clone, Debug)]
struct PiiMatch {
    kind: PiiKind,
    place: Range<usize>,
}

impl PiiMatch {
    fn new(kind: PiiKind, place: Range<usize>) -> Self {
        Self { kind, place }
    }
}

/// Removes personal data from a text. All other bytes stay, and a second pass changes nothing.
///
/// ```
/// use crosstalk_protocol::redact::{RedactionRules, redact};
/// let redacted = redact("Call +1 (555) 010-0199 or write to jane@example.com.", &RedactionRules::default());
/// assert_eq!(redacted.text, "Call [PHONE] or write to [EMAIL].");
/// assert_eq!(redact(&redacted.text, &RedactionRules::default()).found, []);
/// ```
pub fn redact(text: &str, rules: &RedactionRules) -> Redaction {
    let found = find(text, rules);
    Redaction {
        text: replaced(text, &found),
        found,
    }
}

/// The text with placeholders for what was found in it.
fn replaced(text: &str, found: &[FoundPii]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for one in found {
        out.push_str(text.get(at..one.span.start).unwrap_or(""));
        out.push_str(&one.placeholder);
        at = one.span.end;
    }
    out.push_str(text.get(at..).unwrap_or(""));
    out
}

/// Finds personal data, in the order of the text and without overlaps, and changes nothing.
///
/// ```
/// use crosstalk_protocol::redact::{PiiKind, RedactionRules, find};
/// let found = find("card 4111 1111 1111 1111, please", &RedactionRules::default());
/// assert_eq!((found[0].kind, found[0].span.clone()), (PiiKind::Card, 5..24));
/// assert_eq!(found[0].placeholder, "[CARD-XXXX-1111]");
/// ```
pub fn find(text: &str, rules: &RedactionRules) -> Vec<FoundPii> {
    let mut all = Vec::new();
    let mut offset = 0;
    for part in parts(text) {
        let found = find_in_part(part, rules).into_iter();
        all.extend(found.map(|one| FoundPii {
            span: one.span.start + offset..one.span.end + offset,
            ..one
        }));
        offset += part.len();
    }
    all
}

/// The text in parts that end with a blank line: nothing goes across one.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut end = 0;
        for line in rest.split_inclusive('\n') {
            end += line.len();
            if end >= PART && line.trim().is_empty() {
                break;
            }
        }
        let (part, behind) = rest.split_at_checked(end)?;
        rest = behind;
        (!part.is_empty()).then_some(part)
    })
}

fn find_in_part(text: &str, rules: &RedactionRules) -> Vec<FoundPii> {
    let mut found: Vec<FoundPii> = Vec::new();
    for _ in 0..PASSES {
        let view = View::of(text, found.iter().map(|one| &one.span));
        let new = joined(&view, candidates(&view, rules));
        if new.is_empty() {
            break;
        }
        found.extend(new);
        crosstalk_envelope::sort_by_number(&mut found, |one| one.span.start);
    }
    found
}

fn candidates(view: &View, rules: &RedactionRules) -> Vec<PiiMatch> {
    let mut out = Vec::new();
    for kind in &rules.kinds {
        match kind {
            PiiKind::Iban => iban::scan(view, &mut out),
            PiiKind::Card => card::scan(view, &mut out),
            PiiKind::Nin => national::scan(view, &mut out),
            PiiKind::Email => mail::scan(view, &mut out),
            PiiKind::Ip => ip::scan(view, &mut out),
            PiiKind::Phone => phone::scan(view, &mut out),
            PiiKind::Name => rules.tree.scan(view, &mut out),
        }
    }
    out
}

/// Joins what overlaps (RED-006): the longest one says what it is, of the same length the strongest kind.
fn joined(view: &View, mut candidates: Vec<PiiMatch>) -> Vec<FoundPii> {
    // `PiiKind` is ordered by strength.
    candidates.sort_by_key(|c| (c.place.start, c.place.end, c.kind));
    let mut found: Vec<(Range<usize>, PiiMatch)> = Vec::new();
    for candidate in candidates {
        match found.last_mut() {
            Some((place, winner)) if candidate.place.start < place.end => {
                place.end = place.end.max(candidate.place.end);
                let rank = |c: &PiiMatch| (std::cmp::Reverse(c.place.len()), c.kind);
                if rank(&candidate) < rank(winner) {
                    *winner = candidate;
                }
            }
            _ => found.push((candidate.place.clone(), candidate)),
        }
    }
    let found = found.into_iter().map(|(place, winner)| FoundPii {
        kind: winner.kind,
        span: view.span(place),
        placeholder: placeholder(view, &winner),
    });
    found.collect()
}

/// The placeholder, with the last digits in the place of its `#`.
fn placeholder(view: &View, found: &PiiMatch) -> String {
    let form = found.kind.placeholder();
    let kept = form.chars().filter(|c| *c == '#').count();
    let digits: Vec<char> = found
        .place
        .clone()
        .map(|i| view.at(i))
        .filter(char::is_ascii_digit)
        .collect();
    let mut last = digits.iter().skip(digits.len().saturating_sub(kept));
    let fill = |c: char| match c {
        '#' => last.next().copied().unwrap_or('0'),
        c => c,
    };
    form.chars().map(fill).collect()
}
