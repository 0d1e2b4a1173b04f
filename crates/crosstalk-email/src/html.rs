//! HTML to lines of text, with the quotes that mail programs mark: the structure says more than the words do.
//!
//! This is no browser: it reads tags, keeps a bounded stack of open elements, and takes what it can't place for quoted.

use crate::reply::{LineMark, ReplyLine};
use mail_parser::decoders::html::add_html_token;

/// How deep elements may be nested. Deeper text counts as quoted.
const MAX_OPEN: usize = 512;

/// The meaning of an open element for the text inside of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ElementRole {
    /// Nothing.
    Neutral,
    /// Text of somebody else.
    Quote,
    /// The line that introduces a quote.
    Attribution,
    /// A signature or a footer of the mail program.
    Signature,
    /// Text that nobody sees: style, script, what is hidden.
    Hidden,
    /// Text whose spaces and line breaks count.
    Preformatted,
}

/// The lines of a text, each with what the structure says about it.
pub(crate) fn html_lines(html: &str) -> Vec<ReplyLine> {
    let mut writer = HtmlWriter::default();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        let (text, tail) = rest.split_at_checked(at).unwrap_or((rest, ""));
        writer.text(text);
        rest = writer.markup(tail);
    }
    writer.text(rest);
    writer.end_line(false);
    writer.lines
}

#[derive(Default)]
struct HtmlWriter {
    lines: Vec<ReplyLine>,
    line: String,
    open: Vec<(String, ElementRole)>,
    /// A space stands before the next word.
    has_space: bool,
    /// Everything from here on is the original message.
    is_cut: bool,
    /// A blank line stands before the next text.
    wants_gap: bool,
}

impl HtmlWriter {
    fn has_role(&self, role: ElementRole) -> bool {
        self.open.iter().any(|(_, own)| *own == role)
    }

    fn depth(&self) -> usize {
        let quotes = self
            .open
            .iter()
            .filter(|(_, role)| *role == ElementRole::Quote);
        quotes.count() + usize::from(self.open.len() >= MAX_OPEN)
    }

    fn mark(&self) -> LineMark {
        if self.is_cut {
            LineMark::Original
        } else if self.depth() > 0 {
            LineMark::Quoted
        } else if self.has_role(ElementRole::Attribution) {
            LineMark::Attribution
        } else if self.has_role(ElementRole::Signature) {
            LineMark::Signature
        } else {
            LineMark::Unknown
        }
    }

    fn text(&mut self, text: &str) {
        if self.has_role(ElementRole::Hidden) {
            return;
        }
        let text = decode_entities(text);
        if self.has_role(ElementRole::Preformatted) {
            for (index, line) in text.split('\n').enumerate() {
                if index > 0 {
                    self.end_line(true);
                }
                self.line.push_str(line);
            }
            return;
        }
        for c in text.chars() {
            match c {
                ' ' | '\t' | '\n' | '\r' | '\u{c}' => self.has_space = true,
                c => {
                    if self.has_space && !self.line.is_empty() {
                        self.line.push(' ');
                    }
                    self.has_space = false;
                    self.line.push(if c == '\u{a0}' { ' ' } else { c });
                }
            }
        }
    }

    /// Ends the line; `is_hard` ends an empty one as well.
    fn end_line(&mut self, is_hard: bool) {
        self.has_space = false;
        if self.line.is_empty() && !is_hard {
            return;
        }
        let mark = self.mark();
        let prefix = "> ".repeat(self.depth().min(8));
        let last_is_blank = self
            .lines
            .last()
            .is_none_or(|line| line.text.trim().is_empty());
        if std::mem::take(&mut self.wants_gap) && !last_is_blank {
            let text = prefix.trim_end().to_owned();
            self.lines.push(ReplyLine { text, mark });
        }
        let text = format!("{prefix}{}", std::mem::take(&mut self.line));
        let text = text.trim_end().to_owned();
        self.lines.push(ReplyLine { text, mark });
    }

    /// Reads what begins with `<`, and returns what follows it.
    fn markup<'h>(&mut self, tail: &'h str) -> &'h str {
        if let Some(comment) = tail.strip_prefix("<!--") {
            return comment.split_once("-->").map_or("", |(_, rest)| rest);
        }
        let inner = tail.get(1..).unwrap_or("");
        let is_tag =
            inner.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?'));
        if !is_tag {
            self.text("&lt;");
            return inner;
        }
        let end = tag_end(inner);
        let (tag, rest) = inner.split_at_checked(end).unwrap_or((inner, ""));
        let rest = rest.strip_prefix('>').unwrap_or(rest);
        if let Some(name) = tag.strip_prefix('/') {
            self.close(&name.trim().to_ascii_lowercase());
            return rest;
        }
        let name_end = tag.find(|c: char| c.is_ascii_whitespace() || c == '/');
        let (name, attributes) = tag
            .split_at_checked(name_end.unwrap_or(tag.len()))
            .unwrap_or((tag, ""));
        let name = name.to_ascii_lowercase();
        self.open(&name, attributes);
        if matches!(
            name.as_str(),
            "script" | "style" | "title" | "textarea" | "xmp"
        ) {
            return after_raw_text(rest, &name);
        }
        rest
    }

    fn open(&mut self, name: &str, attributes: &str) {
        if is_block(name) {
            self.end_line(false);
        }
        match name {
            "br" => self.end_line(true),
            "hr" => {
                let id = attribute(attributes, "id");
                if id.is_some_and(|id| is_original_id(&id)) {
                    self.is_cut = true;
                }
            }
            "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "ul" | "ol" => {
                self.wants_gap |= !is_tight(attributes);
            }
            "td" | "th" => self.has_space = true,
            "li" => self.line.push_str("- "),
            _ => {}
        }
        if is_void(name) {
            return;
        }
        let role = self.role(name, attributes);
        if self.open.len() < MAX_OPEN {
            self.open.push((name.to_owned(), role));
        }
    }

    fn role(&mut self, name: &str, attributes: &str) -> ElementRole {
        let class = attribute(attributes, "class").unwrap_or_default();
        let id = attribute(attributes, "id").unwrap_or_default();
        let style = attribute(attributes, "style").unwrap_or_default();
        let label = attribute(attributes, "name").unwrap_or_default();
        let style: String = style.split_whitespace().collect();
        let has = |names: &[&str]| {
            let classes = class.split_whitespace();
            classes
                .chain([id.as_str()])
                .any(|own| names.iter().any(|n| own.starts_with(n)))
        };
        if is_original_id(&id) || has(ORIGINAL) || is_outlook_border(name, &style) {
            self.is_cut = true;
        }
        if matches!(name, "head" | "script" | "style" | "title" | "template")
            || style.contains("display:none")
        {
            ElementRole::Hidden
        } else if name == "blockquote"
            || has(QUOTES)
            || matches!(label.as_str(), "quote" | "messagereplysection")
        {
            ElementRole::Quote
        } else if has(ATTRIBUTIONS) {
            ElementRole::Attribution
        } else if has(SIGNATURES) || label == "messagesignaturesection" {
            ElementRole::Signature
        } else if name == "pre" || style.contains("white-space:pre") {
            ElementRole::Preformatted
        } else {
            ElementRole::Neutral
        }
    }

    fn close(&mut self, name: &str) {
        if is_block(name) || name == "br" {
            self.end_line(name == "br");
        }
        let Some(at) = self.open.iter().rposition(|(own, _)| own == name) else {
            return;
        };
        let crosses_quote = self
            .open
            .get(at + 1..)
            .is_some_and(|inner| inner.iter().any(|(_, role)| *role == ElementRole::Quote));
        // A quote ends with its own tag: what was left open inside of it must not end it early.
        if !crosses_quote {
            self.end_of_roles(at);
            self.open.truncate(at);
        }
    }

    /// Text before the end of an inline element with a meaning belongs to it.
    fn end_of_roles(&mut self, at: usize) {
        let has_meaning = self.open.get(at..).is_some_and(|inner| {
            let roles = inner.iter().map(|(_, role)| *role);
            roles
                .into_iter()
                .any(|role| !matches!(role, ElementRole::Neutral | ElementRole::Hidden))
        });
        if has_meaning {
            self.end_line(false);
        }
    }
}

/// Elements after whose beginning everything is the original message: Outlook, OWA, its phone programs, Thunderbird's forward.
const ORIGINAL: &[&str] = &[
    "divrplyfwdmsg",
    "appendonsend",
    "mail-editor-reference-message-container",
    "ms-outlook-mobile-reference-message",
    "moz-forward-container",
    "zmail_extra",
    "outlookmessageheader",
    "replyforwardseparator",
    "isforwardcontent",
    "isreplycontent",
    "stopspelling",
];

const QUOTES: &[&str] = &[
    "yahoo_quoted",
    "protonmail_quote",
    "tutanota_quote",
    "gmail_quote_attribution_text",
    "moz-txt-citetags",
    "quoted-text",
    "samsung_quote",
];

const ATTRIBUTIONS: &[&str] = &["gmail_attr", "moz-cite-prefix", "moz-email-headers-table"];

const SIGNATURES: &[&str] = &[
    "moz-signature",
    "gmail_signature",
    "protonmail_signature",
    "applemailsignature",
    "ms-outlook-mobile-signature",
    "mobile-signature",
    "composer_signature",
    "k9mail-signature",
    "signature",
    "yahoo-signature",
];

/// Whether an id, or one that Outlook prefixed with `x_`, begins the original message.
fn is_original_id(id: &str) -> bool {
    let id = id.trim_start_matches("x_");
    ORIGINAL.contains(&id)
}

/// The block of Outlook for the desktop has no name, but a border above it.
fn is_outlook_border(name: &str, style: &str) -> bool {
    name == "div"
        && style.contains("border:none")
        && (style.contains("border-top:solid#e1e1e1") || style.contains("border-top:solid#b5c4df"))
}

fn is_block(name: &str) -> bool {
    matches!(
        name,
        "address"
            | "article"
            | "aside"
            | "blockquote"
            | "body"
            | "center"
            | "dd"
            | "div"
            | "dl"
            | "dt"
            | "fieldset"
            | "footer"
            | "form"
            | "h1"
            | "h2"
            | "h3"
            | "h4"
            | "h5"
            | "h6"
            | "header"
            | "hr"
            | "li"
            | "main"
            | "ol"
            | "p"
            | "pre"
            | "section"
            | "table"
            | "tbody"
            | "thead"
            | "tr"
            | "ul"
    )
}

fn is_void(name: &str) -> bool {
    matches!(
        name,
        "area"
            | "base"
            | "br"
            | "col"
            | "embed"
            | "hr"
            | "img"
            | "input"
            | "link"
            | "meta"
            | "source"
            | "track"
            | "wbr"
    ) || name.starts_with(['!', '?'])
}

/// Paragraphs of Outlook and of programs that set margins to 0 stand without a blank line between them.
fn is_tight(attributes: &str) -> bool {
    let style = attribute(attributes, "style").unwrap_or_default();
    let style: String = style.split_whitespace().collect();
    let class = attribute(attributes, "class").unwrap_or_default();
    class.starts_with("mso") || style.contains("margin:0") || style.contains("margin-top:0")
}

/// The value of an attribute in lower case.
fn attribute(attributes: &str, name: &str) -> Option<String> {
    let mut rest = attributes;
    // A tag with more attributes is not one of a mail program.
    for _ in 0..64 {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        let end = rest.find(|c: char| c.is_ascii_whitespace() || matches!(c, '=' | '/'))?;
        let (own, tail) = rest.split_at_checked(end)?;
        let tail = tail.trim_start();
        let Some(value) = tail.strip_prefix('=') else {
            rest = tail;
            continue;
        };
        let value = value.trim_start();
        let (value, after) = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let value = value.get(1..).unwrap_or("");
                value.split_once(quote).unwrap_or((value, ""))
            }
            _ => {
                let end = value.find(|c: char| c.is_ascii_whitespace());
                value
                    .split_at_checked(end.unwrap_or(value.len()))
                    .unwrap_or((value, ""))
            }
        };
        if own.eq_ignore_ascii_case(name) {
            let value: String = value.chars().take(4_096).collect();
            return Some(value.trim().to_ascii_lowercase());
        }
        rest = after;
    }
    None
}

/// Where a tag ends: at the first `>` outside of quotes, or at the end of the text.
fn tag_end(tag: &str) -> usize {
    let mut quote: Option<char> = None;
    let mut before = ' ';
    for (at, c) in tag.char_indices() {
        match (quote, c) {
            (None, '>') => return at,
            // A quote begins a value only behind `=`.
            (None, '"' | '\'') if before == '=' => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            _ => {}
        }
        if !c.is_ascii_whitespace() {
            before = c;
        }
    }
    // A quote that never ends was none.
    tag.find('>').unwrap_or(tag.len())
}

/// The text after the end tag of an element whose content is no markup.
fn after_raw_text<'h>(rest: &'h str, name: &str) -> &'h str {
    let end = format!("</{name}");
    let bytes = rest.as_bytes();
    let found = bytes
        .windows(end.len())
        .position(|window| window.eq_ignore_ascii_case(end.as_bytes()));
    found.and_then(|at| rest.get(at..)).unwrap_or("")
}

fn decode_entities(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        let (before, tail) = rest.split_at_checked(at).unwrap_or((rest, ""));
        out.push_str(before);
        let end = tail.bytes().take(40).position(|byte| byte == b';');
        let entity = end.and_then(|end| tail.get(..=end));
        let is_entity = |e: &str| {
            e.bytes()
                .skip(1)
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'#' | b';'))
        };
        match entity.filter(|e| is_entity(e)) {
            Some(entity) => {
                add_html_token(&mut out, entity.as_bytes(), false);
                rest = tail.get(entity.len()..).unwrap_or("");
            }
            None => {
                out.push('&');
                rest = tail.get(1..).unwrap_or("");
            }
        }
    }
    out.push_str(rest);
    out.retain(|c| !c.is_control() || matches!(c, '\n' | '\t' | '\r'));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(html: &str) -> Vec<String> {
        html_lines(html).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn blocks_and_breaks_are_lines() {
        assert_eq!(
            shown("<div dir=ltr>Yes<div><br></div><div>second &amp; third&nbsp;</div></div>"),
            ["Yes", "", "second & third"]
        );
        assert_eq!(shown("<p>a\n b</p><p>c</p>"), ["a b", "", "c"]);
        assert_eq!(
            shown("<p class=MsoNormal>a</p><p class=MsoNormal>b</p>"),
            ["a", "b"]
        );
        assert_eq!(shown("<pre>a\n  b</pre>c"), ["a", "  b", "c"]);
    }

    #[test]
    fn quotes_are_marked_and_end_with_their_own_tag() {
        let lines = html_lines("A<blockquote type=cite><div>q</div></div></span>r</blockquote>B");
        let quoted: Vec<_> = lines.iter().map(|l| (l.text.as_str(), l.mark)).collect();
        assert_eq!(
            quoted,
            [
                ("A", LineMark::Unknown),
                ("> q", LineMark::Quoted),
                ("> r", LineMark::Quoted),
                ("B", LineMark::Unknown)
            ]
        );
    }

    #[test]
    fn hidden_text_and_comments_are_left_out() {
        assert_eq!(
            shown(
                "<style>x</style><!-- y --><div style='DISPLAY: none'>z</div>a<script>'<b>'</script>"
            ),
            ["a"]
        );
    }

    #[test]
    fn outlook_cuts_everything_after_its_block() {
        let lines = html_lines("<p>Yes</p><div id=\"x_divRplyFwdMsg\">From</div><p>old</p>");
        assert_eq!(
            lines
                .iter()
                .filter(|l| l.mark == LineMark::Original)
                .count(),
            3
        );
    }

    #[test]
    fn broken_markup_is_text() {
        assert_eq!(shown("1 < 2 &foo; & <a href=\"x>y"), ["1 < 2 &foo; & y"]);
        assert_eq!(shown("<").len(), 1);
        shown(&"<div>".repeat(100_000));
    }
}
