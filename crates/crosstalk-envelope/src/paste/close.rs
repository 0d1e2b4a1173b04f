//! Where an envelope of a paste ends (SCN-002 to SCN-004).

use super::find::{Finder, Outcome, begins_here, begins_with_header, inside_error};
use super::frame::{Frame, Unwrap};
use super::line::Place;
use super::marker;
use super::name;
use super::region::Region;
use crate::diagnostic::{Diagnostic, Severity};
use crate::grammar::Reserved;
use crate::registry::rule;
use std::borrow::Cow;
use std::ops::Range;

/// How many directions inside another message are told one by one.
const OTHERS: usize = 16;

/// What comes next in a region.
enum Step<'t> {
    /// A line with a closing bracket, without its wrapping.
    Marked(Place, Cow<'t, str>),
    /// A line outside the frame.
    Outside(usize),
    /// The end of the text.
    Over,
}

/// What a line with a closing bracket means.
enum Meaning {
    End,
    Begin,
    /// Both, or two of one: nothing can be told apart.
    Tangle,
    /// A direction line that is quoted.
    Quote,
    Nothing,
}

/// Where the search for the end stands.
struct Walk<'f> {
    unwrap: Unwrap<'f>,
    at: usize,
    /// The direction lines before the end.
    others: Vec<Range<usize>>,
    /// The declared number of lines was looked at.
    counted: bool,
}

impl<'t> Finder<'t> {
    /// Finds the end of a region; gives the place where the search goes on.
    pub(super) fn close(&mut self, mut region: Region) -> (Outcome, usize) {
        let frame = region.frame.clone();
        let mut walk = Walk {
            unwrap: frame.unwrap_lines(),
            at: region.below,
            others: Vec::new(),
            counted: false,
        };
        if region.collapsed
            && let Some(closed) = self.close_on_first_line(&mut region)
        {
            return (closed.map(|()| region), walk.at);
        }
        loop {
            let (line, content) = match self.step(&mut walk, frame.can_break()) {
                Step::Marked(line, content) => (line, content),
                Step::Outside(end) => return (Err(self.cut(&region, end, &walk)), end),
                Step::Over => {
                    let end = self.len();
                    return (Err(self.cut(&region, end, &walk)), end);
                }
            };
            let meaning = self.meaning(&region, line, &content);
            let matters = !matches!(meaning, Meaning::Nothing | Meaning::Quote);
            if matters && !walk.counted && !region.collapsed {
                walk.counted = true;
                if let Some((at, unwrap)) = self.declared_end(&frame, region.below..line.start) {
                    (walk.at, walk.unwrap) = (at, unwrap);
                    region.counted = true;
                    continue;
                }
            }
            walk.at = line.next;
            match meaning {
                Meaning::Nothing => {}
                Meaning::Quote => region.quoted = region.quoted.or(Some(line.range())),
                Meaning::Begin if !region.collapsed => {
                    if walk.others.len() < OTHERS {
                        walk.others.push(line.range());
                    }
                }
                Meaning::End if walk.others.is_empty() => {
                    region.signed_off = self.is_signed_off(&region, line, &content);
                    region.span.end = line.next;
                    return (Ok(region), line.next);
                }
                Meaning::End | Meaning::Begin | Meaning::Tangle => {
                    return (Err(self.mixed_up(&region, &walk.others)), line.next);
                }
            }
        }
    }

    /// The end on the line of the direction, where line ends were lost.
    fn close_on_first_line(&self, region: &mut Region) -> Option<Result<(), Vec<Diagnostic>>> {
        let line = self.lines.at(region.span.start);
        let from = line.start + region.marker.span.end;
        let content = self.lines.text.get(from..line.end).unwrap_or("");
        match collapsed_meaning(content) {
            Meaning::Nothing | Meaning::Quote => None,
            Meaning::End => {
                region.signed_off = mentions_sig(content);
                Some(Ok(()))
            }
            Meaning::Begin | Meaning::Tangle => Some(Err(self.mixed_up(region, &[]))),
        }
    }

    /// The next line that matters. Where the frame can break, every line is looked at.
    fn step(&mut self, walk: &mut Walk<'_>, can_break: bool) -> Step<'t> {
        if !can_break {
            if walk.at >= self.len() {
                return Step::Over;
            }
            let Some(line) = self.next_marked(walk.at, walk.at) else {
                return Step::Over;
            };
            let content = walk.unwrap.line(self.lines.get(line)).unwrap_or_default();
            return Step::Marked(line, content);
        }
        while walk.at < self.len() {
            let line = self.lines.at(walk.at);
            let raw = self.lines.get(line);
            let Some(content) = walk.unwrap.line(raw) else {
                return Step::Outside(line.start);
            };
            if marker::has_close(raw) {
                return Step::Marked(line, content);
            }
            walk.at = line.next;
        }
        Step::Over
    }

    fn meaning(&self, region: &Region, line: Place, content: &str) -> Meaning {
        if region.collapsed {
            return collapsed_meaning(content);
        }
        let content = content.trim_end();
        if marker::end_line(content).is_some() {
            Meaning::End
        } else if self.ends_with_words(region, line, content) {
            // With another marker on the line, one of them is quoted.
            collapsed_meaning(content)
        } else if begins_here(content) {
            Meaning::Begin
        } else if is_quote(content) {
            Meaning::Quote
        } else {
            Meaning::Nothing
        }
    }

    /// `sig: none [[END]]` on one line, or words behind the `[[END]]` that follows a `sig:` line.
    fn ends_with_words(&self, region: &Region, line: Place, content: &str) -> bool {
        let Some(end) = marker::end_in(content) else {
            return false;
        };
        let before = content.get(..end.span.start).unwrap_or("");
        if name::is_sig(before) && !before.starts_with([' ', '\t']) {
            return end.span.end == content.len();
        }
        before.is_empty() && self.follows_sig(region, line)
    }

    /// Whether the line above is a `sig:` line.
    fn follows_sig(&self, region: &Region, line: Place) -> bool {
        let above = self.lines.text.get(region.below..line.start).unwrap_or("");
        let last = above.trim_end().rsplit(['\n', '\r']).next().unwrap_or("");
        let bare = last.trim_start_matches(|c: char| !c.is_alphanumeric());
        name::is_sig(bare)
            || bare
                .find(|c: char| !c.is_ascii_digit())
                .and_then(|i| bare.get(i..))
                .is_some_and(|t| name::is_sig(t.trim_start_matches(|c: char| !c.is_alphanumeric())))
    }

    fn is_signed_off(&self, region: &Region, line: Place, content: &str) -> bool {
        mentions_sig(content) || self.follows_sig(region, line)
    }

    /// Where the `sig:` line begins, if the head declares more lines than there are before `end`, and a
    /// `sig:` line stands right behind them (SCN-004).
    fn declared_end<'f>(
        &mut self,
        frame: &'f Frame,
        head: Range<usize>,
    ) -> Option<(usize, Unwrap<'f>)> {
        let end = head.end;
        let text = self.lines.text.get(head.clone())?;
        memchr::memmem::find(text.as_bytes(), b"Lines")?;
        let mut unwrap = frame.unwrap_lines();
        let (mut at, count) = self.declared_count(head, &mut unwrap)?;
        for _ in 0..count {
            let line = self.lines.at(at);
            self.lookahead = self.lookahead.checked_sub(line.next - at)?;
            unwrap.line(self.lines.get(line))?;
            at = line.next;
            if at >= self.len() {
                return None;
            }
        }
        while at < self.len() {
            let line = self.lines.at(at);
            self.lookahead = self.lookahead.checked_sub(line.next - at)?;
            let before = unwrap.clone();
            let content = unwrap.line(self.lines.get(line))?;
            if !content.trim().is_empty() {
                return (name::is_sig(&content) && at > end).then_some((at, before));
            }
            at = line.next;
        }
        None
    }

    /// Where the body begins, and the number of its lines that `meta: integrity` declares.
    fn declared_count(
        &self,
        head: Range<usize>,
        unwrap: &mut Unwrap<'_>,
    ) -> Option<(usize, usize)> {
        let mut count = None;
        let mut in_integrity = false;
        let mut at = head.start;
        while at < head.end {
            let line = self.lines.at(at);
            let content = unwrap.line(self.lines.get(line))?;
            at = line.next;
            let Some(named) = name::named(&content) else {
                continue;
            };
            match Reserved::named(named.name) {
                Some((Reserved::Meta, _)) => {
                    in_integrity = named.value.trim().eq_ignore_ascii_case("integrity");
                }
                Some((Reserved::Body(_), _)) => return Some((at, count?)),
                _ if in_integrity && named.name == "Lines" => {
                    count = count.or(named.value.trim().parse().ok());
                }
                _ => {}
            }
        }
        None
    }

    /// The text stopped before the `[[END]]`, or the frame did.
    fn cut(&self, region: &Region, end: usize, walk: &Walk<'_>) -> Vec<Diagnostic> {
        if !walk.others.is_empty() {
            return self.mixed_up(region, &walk.others);
        }
        let start = region.span.start;
        let text = self.lines.text.get(start..end).unwrap_or("").trim_end();
        let last = start + text.rfind(['\n', '\r']).map_or(0, |i| i + 1);
        vec![Diagnostic {
            rule: &rule::END_MISSING,
            severity: Severity::Error,
            span: last..start + text.len(),
            message: "the message has no [[END]]: it was probably cut off after this line".into(),
        }]
    }

    /// A message began before another one ended: an error for each of them (SCN-003).
    fn mixed_up(&self, region: &Region, others: &[Range<usize>]) -> Vec<Diagnostic> {
        let starts = std::iter::once(region.span.start).chain(others.iter().map(|o| o.start));
        starts.map(|at| inside_error(&self.lines, at)).collect()
    }
}

/// What a line means where line ends were lost: markers count wherever they stand.
fn collapsed_meaning(content: &str) -> Meaning {
    let Some(end) = marker::end_in(content) else {
        return match marker::direction_in(content) {
            Some(_) => Meaning::Begin,
            None => Meaning::Nothing,
        };
    };
    let behind = content.get(end.span.end..).unwrap_or("");
    if marker::end_in(behind).is_some() || marker::direction_in(content).is_some() {
        Meaning::Tangle
    } else {
        Meaning::End
    }
}

/// Whether a text has a word `sig:` before an `[[END]]`.
pub(super) fn mentions_sig(content: &str) -> bool {
    let end = marker::end_in(content).map_or(0, |e| e.span.start);
    let before = content.get(..end).unwrap_or("");
    before.rsplit([' ', '\t']).take(4).any(name::is_sig)
}

/// Whether a line begins with a direction marker behind a deeper prefix.
fn is_quote(content: &str) -> bool {
    marker::direction_in(content).is_some_and(|m| {
        let before = content.get(..m.span.start).unwrap_or("");
        let after = content.get(m.span.end..).unwrap_or("").trim();
        let is_alone = after.is_empty() || begins_with_header(after);
        is_alone && !before.chars().any(char::is_alphanumeric)
    })
}
