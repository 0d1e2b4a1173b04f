//! Where an envelope of a paste ends (SCN-002 to SCN-004).

use super::find::{Finder, RegionRejection, RegionResult, begins_with_header, inside_error};
use super::frame::{Frame, Unwrap};
use super::line::LineSpan;
use super::marker;
use super::name;
use super::region::Region;
use super::unended::Ending;
use crate::diagnostic::Diagnostic;
use crate::grammar::Reserved;
use crate::registry::rule;
use std::borrow::Cow;
use std::ops::Range;

const LACKS_PREFIX: &str = "the message has no [[END]] before this line, which lacks the prefix of the lines above: \
     was one of them wrapped?";

/// How many directions inside another message are told one by one.
const OTHERS: usize = 16;

/// The next line of a region that matters.
enum CloseStep<'t> {
    /// A line with a closing bracket, without its wrapping.
    Marked(LineSpan, Cow<'t, str>),
    /// A line outside the frame.
    Outside(usize),
    /// The end of the text.
    Over,
}

/// The meaning of a line with a closing bracket.
enum Meaning {
    End,
    Begin,
    /// Both, or two of one: nothing can be told apart.
    Tangle,
    /// A direction line that is quoted.
    Quote,
    Nothing,
}

/// The state of a message without `[[END]]`, if fewer messages end than begin below it.
enum Unended {
    /// It is complete.
    Complete(Ending),
    /// It was cut off before the message that begins here.
    CutBefore(usize),
}

/// Where the search for the end stands.
struct EndSearch<'f> {
    unwrap: Unwrap<'f>,
    at: usize,
    /// The direction lines before the end, and how many messages are open because of them.
    others: Vec<Range<usize>>,
    open: usize,
    /// The declared number of lines was looked at.
    counted: bool,
}

impl EndSearch<'_> {
    /// Counts the messages that begin and end in a line.
    fn count(&mut self, content: &str) {
        let mut rest = content;
        let before = self.open;
        while let Some(begin) = marker::direction_in(rest) {
            self.open += 1;
            rest = rest.get(begin.span.end..).unwrap_or("");
        }
        if self.open == before && marker::unversioned_in(content).is_some() {
            self.open += 1;
        }
        let mut rest = content;
        while let Some(end) = marker::end_in(rest) {
            self.open = self.open.saturating_sub(1);
            rest = rest.get(end.span.end..).unwrap_or("");
        }
    }
}

impl<'t> Finder<'t> {
    /// Finds the end of a region; gives the place where the search goes on.
    pub(super) fn close(&mut self, mut region: Region) -> (RegionResult, usize) {
        let frame = region.frame.clone();
        let mut walk = EndSearch {
            unwrap: frame.unwrap_lines(),
            at: region.below,
            others: Vec::new(),
            open: 1,
            counted: false,
        };
        if region.collapsed {
            let line = self.lines.at(region.span.start);
            let from = line.start + region.marker.span.end;
            let content = self.lines.text.get(from..line.end).unwrap_or("");
            match collapsed_meaning(content) {
                Meaning::Nothing | Meaning::Quote => {}
                Meaning::End => {
                    region.signed_off = mentions_sig(content);
                    return (Ok(region), walk.at);
                }
                Meaning::Begin | Meaning::Tangle => {
                    walk.others.push(line.range());
                    walk.count(content);
                    if walk.open == 0 {
                        return (Err(self.mixed_up(&region, &walk.others).into()), walk.at);
                    }
                }
            }
        }
        // The message lacks its [[END]] if fewer messages end than begin below it; else one is quoted.
        let mut without_end: Option<Unended> = None;
        loop {
            let step = self.step(&mut walk, frame.can_break());
            if !matches!(step, CloseStep::Marked(..)) || walk.others.len() >= OTHERS {
                match without_end {
                    Some(Unended::Complete(ending)) => {
                        self.closes.rewind(ending.next);
                        return (Ok(ended(region, &ending)), ending.next);
                    }
                    Some(Unended::CutBefore(at)) => {
                        self.closes.rewind(at);
                        return (Err(self.cut_off(region, at, true)), at);
                    }
                    None => {}
                }
            }
            let (line, content) = match step {
                CloseStep::Marked(line, content) => (line, content),
                CloseStep::Outside(end) => {
                    let outside = self.lines.at(end).range();
                    let (mut outcome, next) = self.broken_off(region, end, &walk);
                    let refusal = outcome.as_mut().err().into_iter();
                    for finding in refusal.flat_map(|r| &mut r.findings) {
                        if finding.rule.id == rule::END_MISSING.id {
                            finding.span = outside.clone();
                            finding.message = LACKS_PREFIX.into();
                        }
                    }
                    return (outcome, next);
                }
                CloseStep::Over => return self.broken_off(region, self.len(), &walk),
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
                Meaning::End if walk.others.is_empty() => {
                    region.signed_off = self.is_signed_off(&region, line, &content);
                    region.span.end = line.next;
                    return (Ok(region), line.next);
                }
                Meaning::End => walk.open = walk.open.saturating_sub(1),
                Meaning::Begin | Meaning::Tangle => {
                    if walk.others.is_empty() && matches!(meaning, Meaning::Begin) {
                        without_end = self.before_another(&region, line.start);
                    }
                    if walk.others.len() < OTHERS {
                        walk.others.push(line.range());
                    }
                    walk.count(&content);
                }
            }
            // Nothing is read until as many messages have ended as have begun.
            if walk.open == 0 {
                return (Err(self.mixed_up(&region, &walk.others).into()), line.next);
            }
        }
    }

    /// The next line that matters. Where the frame can break, every line is looked at.
    fn step(&mut self, walk: &mut EndSearch<'_>, can_break: bool) -> CloseStep<'t> {
        if !can_break {
            if walk.at >= self.len() {
                return CloseStep::Over;
            }
            let Some(line) = self.next_marked(walk.at, walk.at) else {
                return CloseStep::Over;
            };
            let content = walk.unwrap.line(self.lines.get(line)).unwrap_or_default();
            return CloseStep::Marked(line, content);
        }
        while walk.at < self.len() {
            let line = self.lines.at(walk.at);
            let raw = self.lines.get(line);
            let Some(content) = walk.unwrap.line(raw) else {
                return CloseStep::Outside(line.start);
            };
            if marker::has_close(raw) {
                return CloseStep::Marked(line, content);
            }
            walk.at = line.next;
        }
        CloseStep::Over
    }

    fn meaning(&self, region: &Region, line: LineSpan, content: &str) -> Meaning {
        if region.collapsed {
            return collapsed_meaning(content);
        }
        let content = content.trim_end();
        if marker::end_line(content).is_some() {
            Meaning::End
        } else if self.ends_with_words(region, line, content) {
            // With another marker on the line, one of them is quoted.
            collapsed_meaning(content)
        } else if self.begins_here(line, content) {
            Meaning::Begin
        } else if is_quote(content) {
            Meaning::Quote
        } else {
            Meaning::Nothing
        }
    }

    /// `sig: none [[END]]` on one line, or words behind the `[[END]]` that follows a `sig:` line.
    fn ends_with_words(&self, region: &Region, line: LineSpan, content: &str) -> bool {
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
    fn follows_sig(&self, region: &Region, line: LineSpan) -> bool {
        let above = self.lines.text.get(region.below..line.start).unwrap_or("");
        let last = above.trim_end().rsplit(['\n', '\r']).next().unwrap_or("");
        let bare = last.trim_start_matches(|c: char| !c.is_alphanumeric());
        name::is_sig(bare)
            || bare
                .find(|c: char| !c.is_ascii_digit())
                .and_then(|i| bare.get(i..))
                .is_some_and(|t| name::is_sig(t.trim_start_matches(|c: char| !c.is_alphanumeric())))
    }

    fn is_signed_off(&self, region: &Region, line: LineSpan, content: &str) -> bool {
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

    /// The state of a message without `[[END]]` where another one begins; nothing if the other one may be quoted in it.
    fn before_another(&self, region: &Region, at: usize) -> Option<Unended> {
        let ending = self.ending(region, at, true).map(Unended::Complete);
        let is_cut = || !region.after_open_body && self.is_cut_before(region, at);
        ending.or_else(|| is_cut().then_some(Unended::CutBefore(at)))
    }

    /// The text stopped before the `[[END]]`, or the frame did. Where another message began before, one may be quoted in the
    /// other.
    fn broken_off(
        &mut self,
        region: Region,
        end: usize,
        walk: &EndSearch<'_>,
    ) -> (RegionResult, usize) {
        match walk.others.is_empty() {
            true => self.unended(region, end),
            false => (Err(self.mixed_up(&region, &walk.others).into()), end),
        }
    }

    /// No `[[END]]` came: the message is complete (PST-029), or may be cut off.
    fn unended(&mut self, region: Region, end: usize) -> (RegionResult, usize) {
        let ending = self.ending(&region, end, false);
        let left = ending.as_ref().map(|e| end.saturating_sub(e.next));
        let left = left.and_then(|again| self.lookahead.checked_sub(again));
        if let (Some(ending), Some(left)) = (ending, left) {
            self.lookahead = left;
            self.closes.rewind(ending.next);
            return (Ok(ended(region, &ending)), ending.next);
        }
        (Err(self.cut_off(region, end, false)), end)
    }

    /// A message that may be cut off at `end`, where another one begins or the text stops.
    fn cut_off(&self, mut region: Region, end: usize, before_another: bool) -> RegionRejection {
        let end = self.end_of_cut(&region, end).unwrap_or(end);
        let findings = vec![self.cut(&region, end)];
        region.span.end = end;
        region.is_cut = true;
        RegionRejection {
            findings,
            cut: Some(Box::new(region)),
            before_another,
        }
    }

    /// Whether the lines of a message up to `end` are in order, so that a line at its prefix there is
    /// not part of its body: the body is indented, or has not begun.
    fn is_cut_before(&self, region: &Region, end: usize) -> bool {
        let mut unwrap = region.frame.unwrap_lines();
        let (mut at, mut in_body, mut has_text) = (region.below, false, false);
        while at < end && !region.collapsed {
            let line = self.lines.at(at);
            at = line.next;
            let Some(content) = unwrap.line(self.lines.get(line)) else {
                return false;
            };
            if in_body && !content.trim().is_empty() {
                has_text = true;
                let is_indented = content.starts_with("  ") || content.starts_with('\t');
                if !is_indented && !name::is_sig(&content) {
                    return false;
                }
            }
            let reserved = name::named(&content).and_then(|n| Reserved::named(n.name));
            in_body |= matches!(reserved, Some((Reserved::Body(_), _)));
        }
        !region.collapsed && (has_text || !in_body)
    }

    fn cut(&self, region: &Region, end: usize) -> Diagnostic {
        let start = region.span.start;
        let text = self.lines.text.get(start..end).unwrap_or("").trim_end();
        let last = start + text.rfind(['\n', '\r']).map_or(0, |i| i + 1);
        Diagnostic::error(
            &rule::END_MISSING,
            last..start + text.len(),
            "the message has no [[END]]: it was probably cut off after this line",
        )
    }

    /// A message began before another one ended: an error for each of them (SCN-003).
    fn mixed_up(&self, region: &Region, others: &[Range<usize>]) -> Vec<Diagnostic> {
        let starts = std::iter::once(region.span.start).chain(others.iter().map(|o| o.start));
        starts.map(|at| inside_error(&self.lines, at)).collect()
    }
}

/// A region that is over without an `[[END]]`.
fn ended(mut region: Region, ending: &Ending) -> Region {
    region.span.end = ending.end;
    region.signed_off = ending.is_signed_off;
    region.ended_by = Some(ending.by.clone());
    region.left_out = ending.left_out;
    region
}

/// The meaning of a line of a text without line ends: markers count at any place.
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
