//! The head of a pasted envelope: names, values that were wrapped, blocks, and the `sig:` line.

use super::clean;
use super::find::Region;
use super::marker::NOISE;
use super::repair::{BodyOpener, Line, Repaired};
use crate::flow::Flow;
use crate::grammar::{BodyKind, CoreHeader, Reserved, is_name_byte};
use crate::registry::{Intent, LEGACY_INTENTS, Namespace, rule};
use crate::text::trim;
use std::ops::Range;

/// A header, a `meta:` line or a key, with its value in one piece.
#[derive(Debug)]
struct Field {
    name: String,
    value: String,
    origin: Range<usize>,
}

/// The lines above the body.
#[derive(Debug, Default)]
pub(super) struct Head {
    /// `None` is a blank line.
    fields: Vec<Option<Field>>,
}

/// A head line taken apart.
struct Named<'l> {
    name: &'l str,
    value: &'l str,
    /// It had Markdown around the name.
    markdown: bool,
    /// It did not begin at column 0.
    indented: bool,
}

impl Head {
    /// Reads the head and finds the line that opens the body.
    pub(super) fn split<'t>(
        lines: &[Line<'t>],
        region: &Region<'_>,
        out: &mut Repaired,
    ) -> (Self, Option<BodyOpener<'t>>) {
        let mut head = Self::default();
        if region.collapsed {
            out.note(
                &rule::COLLAPSED,
                region.marker.span.clone(),
                "line breaks were lost; the headers were told apart by their names",
            );
        }
        for (number, line) in lines.iter().enumerate() {
            let rest = lines.get(number + 1..).unwrap_or(&[]);
            let pieces = if region.collapsed {
                collapsed_pieces(*line, &head)
            } else {
                vec![*line]
            };
            for (index, piece) in pieces.iter().enumerate() {
                if let Some(mut opener) = head.opens_body(*piece, out) {
                    let further = pieces.get(index + 1..).unwrap_or(&[]);
                    opener.lines = further.iter().chain(rest).copied().collect();
                    if region.collapsed {
                        split_off_sig(&mut opener);
                    }
                    return (head, Some(opener));
                }
                head.line(*piece, region.marker.escaped, out);
            }
        }
        (head, None)
    }

    fn opens_body<'t>(&self, line: Line<'t>, out: &mut Repaired) -> Option<BodyOpener<'t>> {
        if self.flow_is_open() {
            return None;
        }
        let named = named(line.text)?;
        let kind = match Reserved::named(named.name)? {
            (Reserved::Body(kind), _) => kind,
            _ => return None,
        };
        let name = BodyKind::as_str(kind);
        note_name(&named, name, line.span(), out);
        let value = trim(named.value);
        let inline = match value {
            "|" => None,
            "" | "|-" | "|+" | ">" | ">-" | ">+" | "|2" => {
                out.note(
                    &rule::MARKER_SPELLING,
                    line.span(),
                    format!("`{name}:` without `|` was read"),
                );
                None
            }
            text => {
                let offset = text.as_ptr() as usize - line.text.as_ptr() as usize;
                out.note(
                    &rule::INLINE_BODY,
                    line.span(),
                    format!("text on the line of `{name}:` was read as the body"),
                );
                let text = text.strip_prefix("| ").map_or(text, str::trim_start);
                Some(Line {
                    text,
                    at: line.at + offset,
                })
            }
        };
        Some(BodyOpener {
            name,
            origin: line.span(),
            inline,
            lines: Vec::new(),
        })
    }

    /// Takes a line of the head: a field of its own, or the rest of the one before.
    fn line(&mut self, line: Line<'_>, escaped: bool, out: &mut Repaired) {
        let cleaned = clean::head_line(line.text, escaped);
        for (done, rule, what) in [
            (
                cleaned.nbsp,
                &rule::NBSP,
                "no-break spaces were read as spaces",
            ),
            (
                cleaned.zero_width,
                &rule::ZERO_WIDTH,
                "zero-width characters were removed",
            ),
            (
                cleaned.escapes,
                &rule::ESCAPES,
                "escapes outside the body were resolved",
            ),
            (
                cleaned.controls,
                &rule::CONTROLS,
                "terminal escapes and control characters were removed",
            ),
        ] {
            if done {
                out.note_once(rule, line.span(), what);
            }
        }
        let text = cleaned.text.trim_end();
        if text.trim().is_empty() {
            self.fields.push(None);
        } else if self.continues(text) {
            self.join(text.trim(), line.span(), out);
        } else if let Some(named) = named(text) {
            self.field(&named, line.span(), out);
        } else {
            // Not readable: the grammar says so.
            self.fields.push(Some(Field {
                name: text.to_owned(),
                value: String::new(),
                origin: line.span(),
            }));
        }
    }

    fn last(&self) -> Option<&Field> {
        self.fields
            .iter()
            .rev()
            .find_map(Option::as_ref)
            .filter(|_| self.fields.last().is_some_and(Option::is_some) || self.flow_is_open())
    }

    fn flow_is_open(&self) -> bool {
        let last = self.fields.iter().rev().find_map(Option::as_ref);
        last.is_some_and(|f| {
            Flow::is_meant(&f.value) && Flow::parse(&f.value) == Err(crate::flow::FlowError::Open)
        })
    }

    /// Whether a line is the rest of the field before it.
    fn continues(&self, text: &str) -> bool {
        let Some(last) = self.last() else {
            return false;
        };
        if last.name.contains(' ') || !named_line(&last.name) {
            return false;
        }
        if self.flow_is_open() || is_list_item(text, last) {
            return true;
        }
        match named(text) {
            None => true,
            // claude://… at the start of a line is the rest of a route, not a header.
            Some(n) => n.value.starts_with("//") && Reserved::named(n.name).is_none(),
        }
    }

    fn join(&mut self, text: &str, span: Range<usize>, out: &mut Repaired) {
        let open = self.flow_is_open();
        let Some(last) = self.fields.iter_mut().rev().find_map(Option::as_mut) else {
            return;
        };
        if let Some(item) =
            list_item(text).filter(|_| last.value.is_empty() || last.value.ends_with(']'))
        {
            let item = format!(
                "\"{}\"",
                item.trim_matches(['"', '\'']).replace('"', "\\\"")
            );
            match last.value.strip_suffix(']') {
                Some(list) => last.value = format!("{list}, {item}]"),
                None => last.value = format!("[{item}]"),
            }
            out.note_once(
                &rule::FLOW_LINES,
                span,
                "a list over several lines was joined",
            );
        } else {
            let glue = if is_unbroken(&last.value) && is_unbroken(text) && !open {
                ""
            } else {
                " "
            };
            last.value = format!("{}{glue}{text}", last.value);
            if open {
                out.note_once(
                    &rule::FLOW_LINES,
                    span,
                    "a list over several lines was joined",
                );
            } else {
                out.note(&rule::WRAPPED, span, "a wrapped value was joined again");
            }
        }
    }

    fn field(&mut self, named: &Named<'_>, span: Range<usize>, out: &mut Repaired) {
        let (mut name, mut value) = (named.name.to_owned(), trim(named.value).to_owned());
        match Reserved::named(&name) {
            Some((reserved, _)) => {
                // In a block, only a core name in its own case is surely a header: the grammar refuses it.
                note_name(named, reserved.as_str(), span.clone(), out);
                name = reserved.as_str().to_owned();
                value = self.core_value(reserved, value, &span, out);
            }
            None => note_name(named, &name, span.clone(), out),
        }
        self.fields.push(Some(Field {
            name,
            value,
            origin: span,
        }));
    }

    fn core_value(
        &self,
        reserved: Reserved,
        value: String,
        span: &Range<usize>,
        out: &mut Repaired,
    ) -> String {
        match reserved {
            Reserved::Core(CoreHeader::Thread | CoreHeader::Parent | CoreHeader::Message) => {
                match value.split_once(" #").or_else(|| value.split_once("\t#")) {
                    Some((id, _)) => {
                        out.note(
                            &rule::ID_COMMENT,
                            span.clone(),
                            "the comment behind an id was removed",
                        );
                        id.trim_end().to_owned()
                    }
                    None => value,
                }
            }
            Reserved::Core(CoreHeader::Intent) => match intent_in_another_case(&value) {
                Some(intent) => {
                    out.note(
                        &rule::INTENT_CASE,
                        span.clone(),
                        format!("the intent was read as {intent}"),
                    );
                    intent.to_owned()
                }
                None => value,
            },
            Reserved::Meta if value.chars().any(|c| c.is_ascii_uppercase()) => {
                out.note(
                    &rule::NAMESPACE_CASE,
                    span.clone(),
                    "the namespace was read in lower case",
                );
                value.to_ascii_lowercase()
            }
            _ => value,
        }
    }

    /// `Lines` of `meta: integrity`.
    pub(super) fn declared_lines(&self) -> Option<usize> {
        let fields = self.fields.iter().flatten();
        let mut block = fields
            .skip_while(|f| f.name != "meta" || f.value != "integrity")
            .skip(1);
        block
            .by_ref()
            .take_while(|f| f.name != "meta")
            .find(|f| f.name == "Lines")?
            .value
            .parse()
            .ok()
    }

    /// Writes the fields; of two equal names the first wins.
    pub(super) fn emit(&mut self, out: &mut Repaired) {
        let mut headers: Vec<String> = Vec::new();
        let mut namespaces: Vec<String> = Vec::new();
        let mut block: Option<Vec<String>> = None;
        let mut dropping = false;
        for field in self.fields.drain(..) {
            let Some(Field {
                name,
                value,
                origin,
            }) = field
            else {
                out.emit("", origin_of_blank(out));
                continue;
            };
            let lower = name.to_ascii_lowercase();
            if name == "meta" {
                let repeats = Namespace::find(&value).is_some_and(|n| n.repeats);
                dropping = namespaces.contains(&value) && !repeats;
                if dropping {
                    out.note(
                        &rule::DUPLICATE_DROPPED,
                        origin,
                        "a META block that stands twice was left out",
                    );
                    continue;
                }
                namespaces.push(value.clone());
                block = Some(Vec::new());
            } else {
                if dropping {
                    continue;
                }
                let is_core = CoreHeader::from_name(&name).is_some();
                if is_core && value.is_empty() {
                    out.note(&rule::EMPTY_DROPPED, origin, "an empty header was left out");
                    continue;
                }
                let seen = if is_core {
                    &mut headers
                } else {
                    block.as_mut().unwrap_or(&mut headers)
                };
                if seen.contains(&lower) {
                    out.note(
                        &rule::DUPLICATE_DROPPED,
                        origin,
                        "a name that stands twice was left out",
                    );
                    continue;
                }
                if seen.len() <= crate::limit::HEADERS {
                    seen.push(lower);
                }
            }
            let line = if named_line(&name) {
                format!("{name}: {value}")
            } else {
                name
            };
            out.emit(line.trim_end(), origin);
        }
    }
}

fn origin_of_blank(out: &Repaired) -> Range<usize> {
    let end = out.origin.last().map_or(0, |o| o.end);
    end..end
}

/// Whether a text is the name of a header or key.
fn named_line(name: &str) -> bool {
    name.bytes().all(is_name_byte)
        && name
            .bytes()
            .next()
            .is_some_and(|b| b.is_ascii_alphanumeric())
}

/// A head line as name and value, if it has that form once Markdown is taken off.
fn named(line: &str) -> Option<Named<'_>> {
    let text = line.trim_start_matches([' ', '\t']);
    let indented = text.len() < line.len();
    if let Some((name, value)) = colon(text).filter(|(name, _)| named_line(name)) {
        return Some(Named {
            name,
            value,
            markdown: false,
            indented,
        });
    }
    let bare = text
        .trim_start_matches(['-', '*', '•', '+'])
        .trim_start()
        .trim_start_matches(NOISE);
    if bare.len() == text.len() && !text.contains(NOISE) {
        return None;
    }
    let (name, value) = colon(bare)?;
    let (name, value) = (
        name.trim_end_matches(NOISE).trim(),
        value.trim_start_matches(NOISE),
    );
    // The closing emphasis of a value that was emphasised as a whole.
    let value = if text.starts_with("**") && !name.is_empty() {
        value.trim_end_matches(NOISE)
    } else {
        value
    };
    named_line(name).then_some(Named {
        name,
        value,
        markdown: true,
        indented,
    })
}

/// Splits at the first colon, a full-width one included.
fn colon(text: &str) -> Option<(&str, &str)> {
    let at = text.find([':', '：'])?;
    let (name, rest) = text.split_at_checked(at)?;
    let mut chars = rest.chars();
    chars.next();
    Some((name, chars.as_str()))
}

fn note_name(named: &Named<'_>, meant: &str, span: Range<usize>, out: &mut Repaired) {
    if named.markdown {
        out.note(
            &rule::MARKDOWN,
            span.clone(),
            format!("Markdown around `{meant}` was removed"),
        );
    }
    if named.indented {
        out.note_once(
            &rule::EXTRA_INDENT,
            span.clone(),
            "the indent of a header was removed",
        );
    }
    if named.name != meant {
        out.note(
            &rule::NAME_CASE,
            span,
            format!("`{}` was read as `{meant}`", named.name),
        );
    }
}

/// The known intent that a text is in another case.
pub(super) fn intent_in_another_case(value: &str) -> Option<&'static str> {
    let known = Intent::ALL
        .iter()
        .map(|i| i.as_str())
        .chain(LEGACY_INTENTS.iter().map(|(name, _)| *name));
    let found = known
        .into_iter()
        .find(|name| name.eq_ignore_ascii_case(value))?;
    (found != value).then_some(found)
}

/// `- item` of a YAML list below a key without a value.
fn list_item(text: &str) -> Option<&str> {
    text.trim_start()
        .strip_prefix("- ")
        .map(str::trim)
        .filter(|t| !t.is_empty())
}

fn is_list_item(text: &str, last: &Field) -> bool {
    let listing =
        last.value.is_empty() || (last.value.starts_with("[\"") && last.value.ends_with(']'));
    listing && list_item(text).is_some() && CoreHeader::from_name(&last.name).is_none()
}

/// One long word, as of base64 or hex: broken anywhere, not at a space.
fn is_unbroken(text: &str) -> bool {
    let tail = text.rsplit([' ', '\t']).next().unwrap_or("");
    let head = text.split([' ', '\t']).next().unwrap_or("");
    tail == text && head.len() >= 16
        || text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='))
}

/// The index of the `sig:` line: the last one, with nothing but its own rest behind it.
pub(super) fn find_sig(lines: &[Line<'_>], declared: Option<usize>) -> Option<usize> {
    let is_sig = |line: &Line<'_>| {
        let text = line.text.trim_start_matches(NOISE);
        (!line.text.starts_with([' ', '\t'])
            && named(text)
                .is_some_and(|n| n.name.trim_end_matches(NOISE).eq_ignore_ascii_case("sig")))
        .then_some(())
    };
    if let Some(count) = declared {
        let behind = lines
            .iter()
            .enumerate()
            .skip(count)
            .find(|(_, l)| !l.text.trim().is_empty());
        if let Some((index, line)) = behind
            && is_sig(line).is_some()
        {
            return Some(index);
        }
    }
    let index = lines.iter().rposition(|l| is_sig(l).is_some())?;
    let rest_is_wrapped = lines.iter().skip(index + 1).all(|l| {
        let text = l.text.trim();
        text.bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+/=;:@._-".contains(&b))
    });
    rest_is_wrapped.then_some(index)
}

/// Writes the `sig:` line, joined if it was wrapped.
pub(super) fn emit_sig(lines: &[Line<'_>], out: &mut Repaired) {
    let Some(first) = lines.first() else { return };
    let cleaned = clean::head_line(first.text, false);
    let Some(named) = named(&cleaned.text) else {
        return;
    };
    note_name(&named, "sig", first.span(), out);
    if cleaned.nbsp || cleaned.zero_width {
        let rule = if cleaned.nbsp {
            &rule::NBSP
        } else {
            &rule::ZERO_WIDTH
        };
        out.note_once(
            rule,
            first.span(),
            "characters that show nothing were removed from the signature",
        );
    }
    let mut value = trim(named.value).to_owned();
    for line in lines.iter().skip(1).filter(|l| !l.text.trim().is_empty()) {
        out.note_once(
            &rule::WRAPPED,
            line.span(),
            "a wrapped signature was joined again",
        );
        value.push_str(line.text.trim());
    }
    if value.is_empty() || value.eq_ignore_ascii_case("none") {
        if value != "none" {
            out.note(
                &rule::SIG_ADDED,
                first.span(),
                "the sig: line was read as none",
            );
        }
        "none".clone_into(&mut value);
    }
    out.emit(&format!("sig: {value}"), first.span());
}

/// Cuts a line without line breaks into headers, told apart by their names.
fn collapsed_pieces<'t>(line: Line<'t>, head: &Head) -> Vec<Line<'t>> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut namespace = head
        .fields
        .iter()
        .flatten()
        .rev()
        .find(|f| f.name == "meta")
        .map(|f| f.value.clone());
    for (at, word) in words(line.text) {
        let Some(name) = word
            .trim_start_matches(NOISE)
            .trim_end_matches(NOISE)
            .strip_suffix(':')
        else {
            continue;
        };
        let name = name.trim_end_matches(NOISE);
        let reserved = Reserved::named(name);
        let is_key = namespace
            .as_deref()
            .is_some_and(|n| looks_like_key(n, name));
        if reserved.is_none() && !is_key {
            continue;
        }
        push_piece(line, start..at, &mut pieces);
        start = at;
        match reserved {
            Some((Reserved::Meta, _)) => {
                let behind = line.text.get(at + word.len()..).unwrap_or("");
                namespace = Some(behind.split_whitespace().next().unwrap_or("").to_owned());
            }
            Some((Reserved::Body(_), _)) => break,
            _ => {}
        }
    }
    push_piece(line, start..line.text.len(), &mut pieces);
    pieces
}

fn push_piece<'t>(line: Line<'t>, range: Range<usize>, pieces: &mut Vec<Line<'t>>) {
    let text = line.text.get(range.clone()).unwrap_or("");
    let trimmed = text.trim();
    if !trimmed.is_empty() {
        let offset = text.len() - text.trim_start().len();
        pieces.push(Line {
            text: trimmed,
            at: line.at + range.start + offset,
        });
    }
}

/// The words of a text with their places.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split([' ', '\t', '\u{a0}'])
        .filter(|w| !w.is_empty())
        .map(|w| (w.as_ptr() as usize - text.as_ptr() as usize, w))
}

fn looks_like_key(namespace: &str, name: &str) -> bool {
    match Namespace::find(namespace) {
        Some(known) => known.kind_of(name).is_some() || name.starts_with("X-"),
        None => named_line(name) && name.bytes().next().is_some_and(|b| b.is_ascii_uppercase()),
    }
}

/// In a collapsed text the `sig:` stands on the last line of the body: behind its last mention.
fn split_off_sig(opener: &mut BodyOpener<'_>) {
    let mut lines: Vec<Line<'_>> = opener.inline.take().into_iter().collect();
    let had_inline = !lines.is_empty();
    lines.append(&mut opener.lines);
    while lines.last().is_some_and(|l| l.text.trim().is_empty()) {
        lines.pop();
    }
    if let Some(last) = lines.pop() {
        match last.text.rfind("sig:").filter(|at| {
            *at == 0
                || last
                    .text
                    .get(..*at)
                    .is_some_and(|b| b.ends_with([' ', '\t']))
        }) {
            Some(at) => {
                push_piece(last, 0..at, &mut lines);
                push_piece(last, at..last.text.len(), &mut lines);
            }
            None => lines.push(last),
        }
    }
    let mut lines = lines.into_iter();
    let is_sig = |l: &Line<'_>| l.text.starts_with("sig:");
    if had_inline {
        opener.inline = lines.next();
        if let Some(sig) = opener.inline.take_if(|l| is_sig(l)) {
            opener.lines.push(sig);
        }
    }
    opener.lines.extend(lines);
}
