//! The new words of a reply, apart from the text that it quotes (MAI-020 to MAI-024).
//!
//! Two errors are possible: new words that are cut, and quoted text that is taken for new words. The second one would put
//! words into the mouth of the person who answers, so every doubt is decided against the line.

use crate::phrase;

/// The kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineMark {
    /// Nothing yet: new words, if no rule says otherwise.
    Unknown,
    /// New whatever its words are: a line of an envelope.
    New,
    /// Quoted, by its mark or by the structure of HTML.
    Quoted,
    /// It introduces a quote.
    Attribution,
    /// A signature, or a footer of the mail program.
    Signature,
    /// It belongs to the original message, which begins here or above.
    Original,
}

/// A line of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReplyLine {
    pub(crate) text: String,
    pub(crate) mark: LineMark,
}

/// A text, divided into what is new and what is not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DividedText {
    /// The new words.
    pub(crate) text: String,
    /// Everything else.
    pub(crate) cut: String,
    /// The part that was cut begins as a forwarded message does.
    pub(crate) is_forward: bool,
    /// Which lines were kept.
    pub(crate) is_new: Vec<bool>,
}

/// The lines of a plain text.
pub(crate) fn plain_lines(text: &str) -> Vec<ReplyLine> {
    let lines = text.split('\n').map(|line| ReplyLine {
        text: line.to_owned(),
        mark: LineMark::Unknown,
    });
    lines.collect()
}

/// Divides a text.
pub(crate) fn divide(mut lines: Vec<ReplyLine>) -> DividedText {
    for line in &mut lines {
        if line.mark == LineMark::Unknown && is_quoted(&line.text) {
            line.mark = LineMark::Quoted;
        }
    }
    let is_forward = mark_original(&mut lines);
    mark_attributions(&mut lines);
    mark_leftovers(&mut lines);
    mark_signatures(&mut lines);
    let is_new: Vec<bool> = lines
        .iter()
        .map(|line| matches!(line.mark, LineMark::Unknown | LineMark::New))
        .collect();
    let kept = |keep: bool| {
        let chosen = lines
            .iter()
            .zip(&is_new)
            .map(move |(line, is_new)| (line.text.as_str(), *is_new == keep));
        join(chosen)
    };
    DividedText {
        text: kept(true).trim_start().to_owned(),
        cut: kept(false),
        is_forward,
        is_new,
    }
}

/// Joins the chosen lines. Where others stood between two of them, one blank line stands.
pub(crate) fn join<'l>(lines: impl Iterator<Item = (&'l str, bool)>) -> String {
    let mut out = String::new();
    let mut blanks = 0;
    let mut has_gap = false;
    for (text, is_chosen) in lines {
        let text = text.trim_end();
        if !is_chosen {
            has_gap = true;
        } else if text.is_empty() {
            blanks += 1;
        } else {
            if !out.is_empty() {
                let breaks = if has_gap { 2 } else { blanks + 1 };
                out.extend(std::iter::repeat_n('\n', breaks));
            }
            out.push_str(text);
            (blanks, has_gap) = (0, false);
        }
    }
    out
}

/// Whether a line carries the mark of a quote: `>`, `|`, a full-width one, or initials before it.
pub(crate) fn is_quoted(line: &str) -> bool {
    let line = line.trim_start();
    if line.starts_with(['>', '＞', '»', '|']) {
        return true;
    }
    let Some((initials, _)) = line.split_once('>') else {
        return false;
    };
    (1..=3).contains(&initials.len()) && initials.bytes().all(|b| b.is_ascii_uppercase())
}

/// A line in lower case, without the stars, dashes and spaces around it.
fn folded(line: &str) -> String {
    let line = line.replace(['\u{a0}', '\u{202f}', '\t'], " ");
    let line = line.trim_matches([' ', '*', '\u{200e}', '\u{200f}', '\u{feff}']);
    line.to_lowercase()
}

/// Marks everything from the beginning of an original message on; whether that is a forwarded one.
fn mark_original(lines: &mut [ReplyLine]) -> bool {
    let mut first: Option<(usize, bool)> = None;
    for at in 0..lines.len() {
        let Some(line) = lines.get(at) else { break };
        if line.mark == LineMark::Original {
            first = Some((at, false));
            break;
        }
        if !matches!(line.mark, LineMark::Unknown | LineMark::Attribution) {
            continue;
        }
        if let Some(is_forward) = separator(&line.text) {
            first = Some((at, is_forward));
            break;
        }
        if is_above_mark(&line.text) || is_rule(&line.text) || is_header_block(lines, at) {
            first = Some((at, false));
            break;
        }
    }
    let Some((at, is_forward)) = first else {
        return false;
    };
    let tail = lines.get_mut(at..).unwrap_or_default();
    // The structure of HTML can say "original" for a forwarded message, whose own words say so.
    let is_forward = is_forward
        || tail
            .iter()
            .take(4)
            .any(|line| separator(&line.text) == Some(true));
    for line in tail {
        line.mark = LineMark::Original;
    }
    is_forward
}

/// Whether a line is `-----Original Message-----` or the like; true for a forwarded message.
fn separator(line: &str) -> Option<bool> {
    let line = folded(line);
    let inner = line.trim_matches([
        ' ', '-', '_', '=', '*', '—', '–', '~', '#', '<', '>', '|', '[', ']',
    ]);
    let dashes = line.chars().count() - inner.chars().count();
    let inner = inner.trim_end_matches([':', '：', ' ']);
    if inner.chars().count() > 80 {
        return None;
    }
    let is_one_of = |phrases: &[&str]| {
        phrases
            .iter()
            .any(|phrase| match inner.strip_prefix(phrase) {
                // With dashes around it, a name may follow: "---- Forwarded by Anna ----".
                Some(rest) => rest.is_empty() || (dashes >= 4 && rest.starts_with(' ')),
                None => false,
            })
    };
    let has_frame = dashes >= 2 || line.ends_with([':', '：']);
    if is_one_of(phrase::FORWARDED) && has_frame {
        return Some(true);
    }
    (is_one_of(phrase::ORIGINAL) && has_frame).then_some(false)
}

fn is_above_mark(line: &str) -> bool {
    let line = folded(line);
    line.chars().count() < 120 && phrase::ABOVE.iter().any(|phrase| line.contains(phrase))
}

/// The line of underscores that Outlook and lists write.
fn is_rule(line: &str) -> bool {
    let line = line.trim();
    line.len() >= 20 && line.bytes().all(|byte| byte == b'_')
}

/// The meaning of a label of a head.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HeadLabel {
    From,
    Sent,
    To,
    Subject,
}

fn head_label(line: &str) -> Option<HeadLabel> {
    let line = folded(line);
    let (label, _) = line.split_once([':', '：'])?;
    let label = label.trim_matches([' ', '*', '_']);
    let is = |labels: &[&str]| labels.contains(&label);
    if is(phrase::FROM) {
        Some(HeadLabel::From)
    } else if is(phrase::SENT) {
        Some(HeadLabel::Sent)
    } else if is(phrase::SUBJECT) {
        Some(HeadLabel::Subject)
    } else if is(phrase::TO) {
        Some(HeadLabel::To)
    } else {
        None
    }
}

/// Whether the head of an original message begins here: at least three different labels with the sender among them, or two
/// if one of the lines has an address. A long list of receivers may take several lines.
fn is_header_block(lines: &[ReplyLine], at: usize) -> bool {
    let block: Vec<&str> = lines
        .iter()
        .skip(at)
        .take_while(|line| !line.text.trim().is_empty() && line.mark != LineMark::New)
        .take(12)
        .map(|line| line.text.as_str())
        .collect();
    if block.first().and_then(|line| head_label(line)).is_none() {
        return false;
    }
    let mut seen: Vec<HeadLabel> = Vec::new();
    let mut has_address = false;
    let mut other = 0;
    for line in block {
        match head_label(line) {
            Some(label) => {
                has_address |= line.contains('@');
                if !seen.contains(&label) {
                    seen.push(label);
                }
                other = 0;
            }
            None => {
                other += 1;
                if other > 3 {
                    break;
                }
            }
        }
    }
    let needed = if has_address { 2 } else { 3 };
    seen.contains(&HeadLabel::From) && seen.len() >= needed
}

/// How many lines an introduction such as "On … wrote:" takes at most.
const MAX_ATTRIBUTION_LINES: usize = 5;

/// Marks the lines that introduce quotes. If no marked quote follows one, everything below it is the quote.
fn mark_attributions(lines: &mut [ReplyLine]) {
    for end in 0..lines.len() {
        let start = match lines.get(end).map(|line| line.mark) {
            Some(LineMark::Unknown) => match attribution_start(lines, end) {
                Some(start) => start,
                None => continue,
            },
            Some(LineMark::Attribution) => end,
            _ => continue,
        };
        let next = lines
            .iter()
            .skip(end + 1)
            .find(|line| !line.text.trim().is_empty());
        let is_quote_below = matches!(
            next.map(|line| line.mark),
            None | Some(LineMark::Quoted | LineMark::Attribution | LineMark::Original)
        );
        for line in lines.get_mut(start..=end).unwrap_or_default() {
            line.mark = LineMark::Attribution;
        }
        if !is_quote_below {
            for line in lines.get_mut(end + 1..).unwrap_or_default() {
                line.mark = LineMark::Original;
            }
            return;
        }
    }
}

/// Where an introduction begins that ends with this line.
fn attribution_start(lines: &[ReplyLine], end: usize) -> Option<usize> {
    let last = folded(&lines.get(end)?.text);
    let is_quote_next = is_quote_after(lines, end);
    let is_end = last.ends_with([':', '：', '﹕']) || (is_quote_next && ends_with_verb(&last));
    if !is_end {
        return None;
    }
    let mut joined = String::new();
    let mut fallback = None;
    for back in 0..MAX_ATTRIBUTION_LINES {
        let Some(start) = end.checked_sub(back) else {
            break;
        };
        let Some(line) = lines.get(start) else { break };
        let text = folded(&line.text);
        if line.mark != LineMark::Unknown || text.is_empty() || text.chars().count() > 300 {
            break;
        }
        joined = format!("{text} {joined}");
        if !is_attribution(&joined, is_quote_next) {
            continue;
        }
        if begins_as_attribution(&text) {
            return Some(start);
        }
        if is_quote_next || joined.contains('@') {
            fallback.get_or_insert(start);
        }
    }
    fallback
}

/// Whether a quote with its marks begins right below, behind one blank line at most.
fn is_quote_after(lines: &[ReplyLine], end: usize) -> bool {
    let mut below = lines.iter().skip(end + 1);
    let first = below.next();
    let first = match first {
        Some(line) if line.text.trim().is_empty() => below.next(),
        other => other,
    };
    first.is_some_and(|line| line.mark == LineMark::Quoted)
}

/// Some programs put no colon behind the verb.
fn ends_with_verb(line: &str) -> bool {
    phrase::WROTE.iter().any(|verb| line.ends_with(verb.trim()))
}

fn begins_as_attribution(line: &str) -> bool {
    let line = line.trim_start_matches(['-', '*', ' ', '[', '(']);
    line.starts_with(|c: char| c.is_numeric()) || phrase::ON.iter().any(|on| line.starts_with(on))
}

/// Whether the joined lines introduce a quote: somebody wrote, and there is a date or an address; or, right above a marked
/// quote, one of both.
fn is_attribution(joined: &str, is_quote_next: bool) -> bool {
    let joined = format!(" {joined}");
    let has_verb = phrase::WROTE.iter().any(|verb| joined.contains(verb));
    let has_evidence = has_date_or_address(&joined);
    match (has_verb, has_evidence) {
        (true, true) => true,
        (true, false) => is_quote_next && joined.chars().count() <= 120,
        // A line of a program in a language that is not listed here.
        (false, true) => is_quote_next || is_date_and_address(&joined),
        (false, false) => false,
    }
}

fn has_date_or_address(line: &str) -> bool {
    is_dated(line) || line.contains('@')
}

/// A date and an address in one line that ends with a colon, as Gmail writes it in Japanese: no verb at all.
fn is_date_and_address(line: &str) -> bool {
    is_dated(line) && line.contains('@') && line.contains('<')
}

/// A year or a clock time, with at least three digits in all.
fn is_dated(line: &str) -> bool {
    let digits = line.chars().filter(|c| c.is_numeric()).count();
    digits >= 3
}

/// Marks unmarked ends of quoted lines: a program wrapped a quoted line again and marked its first half only.
fn mark_leftovers(lines: &mut [ReplyLine]) {
    for at in 1..lines.len().saturating_sub(1) {
        let [before, line, after] = match lines.get(at - 1..=at + 1) {
            Some([before, line, after]) => [before, line, after],
            _ => continue,
        };
        let is_between = before.mark == LineMark::Quoted && after.mark == LineMark::Quoted;
        let text = line.text.trim();
        if line.mark != LineMark::Unknown || !is_between || text.is_empty() {
            continue;
        }
        let quoted = before.text.trim_end();
        let first_word = text.split_whitespace().next().unwrap_or_default();
        let reaches_margin = quoted.chars().count() + 1 + first_word.chars().count() > 70;
        let continues = text.starts_with(char::is_lowercase);
        let is_open = !quoted.ends_with(['.', '?', '!', ':', ';', ')', '…', '。', '？', '！']);
        if reaches_margin
            && (continues || is_open)
            && let Some(line) = lines.get_mut(at)
        {
            line.mark = LineMark::Quoted;
        }
    }
}

/// Marks signatures and footers of mail programs, each up to the next quote.
fn mark_signatures(lines: &mut [ReplyLine]) {
    let mut is_signature = false;
    for at in 0..lines.len() {
        let begins = lines
            .get(at)
            .is_some_and(|line| is_signature_mark(&line.text))
            || is_footer(lines, at);
        let Some(line) = lines.get_mut(at) else { break };
        match line.mark {
            LineMark::Unknown => {
                is_signature |= begins;
                if is_signature {
                    line.mark = LineMark::Signature;
                }
            }
            LineMark::Signature => {}
            _ => is_signature = false,
        }
    }
}

fn is_signature_mark(line: &str) -> bool {
    let line = line.trim_start();
    matches!(line, "-- " | "--" | "—" | "— ")
}

/// Whether a line is the footer of a mail program, with nothing new but a line or two below it.
fn is_footer(lines: &[ReplyLine], at: usize) -> bool {
    let Some(line) = lines.get(at) else {
        return false;
    };
    let text = folded(&line.text);
    let text = text.trim_start_matches(['[', '(', '<', '_', '-', ' ']);
    let is_named = phrase::FOOTERS
        .iter()
        .any(|footer| text.starts_with(footer))
        && phrase::PROGRAMS
            .iter()
            .any(|program| text.contains(program));
    if !is_named || text.chars().count() > 120 {
        return false;
    }
    let below = lines.iter().skip(at + 1);
    let below = below.take_while(|line| line.mark == LineMark::Unknown);
    let below = below.filter(|line| !line.text.trim().is_empty() && !is_signature_mark(&line.text));
    below.count() <= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (String, String) {
        let divided = divide(plain_lines(text));
        (divided.text, divided.cut)
    }

    fn new(text: &str) -> String {
        parts(text).0
    }

    #[test]
    fn words_above_below_and_between_quotes_are_new() {
        assert_eq!(
            new("Yes.\n\nOn Mon, 3 Mar 2025 at 10:00, Bot <b@x.org> wrote:\n> Do it?\n"),
            "Yes."
        );
        assert_eq!(
            new("On Mon, 3 Mar 2025, Bot wrote:\n> Do it?\n\nYes.\n"),
            "Yes."
        );
        assert_eq!(
            new("Hi,\n> One?\nFirst.\n> Two?\n\nSecond.\n"),
            "Hi,\n\nFirst.\n\nSecond."
        );
    }

    #[test]
    fn an_introduction_without_marked_quote_cuts_the_rest() {
        let (text, cut) =
            parts("Yes\n\nOn Monday 3 March 2025, Bot <b@x.org>\nwrote:\n\nDo it?\n\nRegards\n");
        assert_eq!(text, "Yes");
        assert_eq!(
            cut,
            "On Monday 3 March 2025, Bot <b@x.org>\nwrote:\n\nDo it?\n\nRegards"
        );
    }

    #[test]
    fn a_head_needs_more_than_two_labels() {
        assert_eq!(
            new("From: Berlin\nTo: Hamburg\n"),
            "From: Berlin\nTo: Hamburg"
        );
        assert_eq!(
            new("Yes\n\nFrom: Bot <b@x.org>\nSent: Monday\nTo: Anna\n\nDo it?"),
            "Yes"
        );
        assert_eq!(
            new("Ja\n\n________________________________\nVon: Bot\nAn: Anna\n"),
            "Ja"
        );
    }

    #[test]
    fn the_unmarked_rest_of_a_wrapped_quote_is_quoted() {
        let quoted = "> Should the release go out on Friday afternoon, or should it wait until";
        assert_eq!(new(&format!("{quoted}\nMonday?\n> Who?\nAnna\n")), "Anna");
        let question =
            "> Should the release go out on Friday afternoon, or should it wait some days?";
        assert_eq!(
            new(&format!("{question}\nFriday\n> Who?\nAnna\n")),
            "Friday\n\nAnna"
        );
    }

    #[test]
    fn signatures_and_footers_end_at_the_next_quote() {
        assert_eq!(
            new("Yes\n\n-- \nAnna\n> Do it?\nReally.\n"),
            "Yes\n\nReally."
        );
        assert_eq!(new("Yes\n\nSent from my iPhone\n\n> Do it?\n"), "Yes");
        assert_eq!(
            new("Sent from my desk, this is\nthe plan:\nfirst\nsecond\n"),
            "Sent from my desk, this is\nthe plan:\nfirst\nsecond"
        );
    }

    #[test]
    fn a_forwarded_message_is_told_apart() {
        let divided = divide(plain_lines(
            "FYI\n\n---------- Forwarded message ---------\nFrom: x\n",
        ));
        assert!(divided.is_forward);
        assert!(!divide(plain_lines("-----Original Message-----\nx")).is_forward);
        assert_eq!(
            new("The original message was lost."),
            "The original message was lost."
        );
    }

    #[test]
    fn nothing_but_quotes_is_no_answer() {
        assert_eq!(new("> Do it?\n> Yes\n"), "");
        assert_eq!(new("\n\n"), "");
    }
}
