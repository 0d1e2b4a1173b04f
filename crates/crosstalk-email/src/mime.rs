//! The parts of a mail, with their encoding undone: texts, attached envelopes, reports of mail servers.
//!
//! `mail-parser` reads heads, transfer encodings and character sets, one part at a time. It would build nested messages as
//! nested values without a limit, so the parts are found here.

use crate::flowed::unflow;
use crate::head::{HeadFields, split_head};
use crate::limit;
use mail_parser::{ContentType, MessageParser, MimeHeaders as _, PartType};

/// One text of a mail, in the forms that it came in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TextForms {
    pub(crate) plain: Option<String>,
    pub(crate) html: Option<String>,
}

/// An attached file with envelopes.
#[derive(Clone, Debug)]
pub(crate) struct EnvelopeFile {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// All that a mail brings.
#[derive(Clone, Debug, Default)]
pub(crate) struct MailParts {
    /// The texts in the mail itself.
    pub(crate) texts: Vec<TextForms>,
    /// The texts of messages that are attached to it.
    pub(crate) attached: Vec<TextForms>,
    pub(crate) files: Vec<EnvelopeFile>,
    /// The `report-type` of a report.
    pub(crate) report: Option<String>,
    /// The fields of each delivery status report.
    pub(crate) statuses: Vec<String>,
    /// The head of the mail that a report is about.
    pub(crate) returned: Option<HeadFields>,
    pub(crate) damage: Vec<String>,
    parts: usize,
    text_bytes: usize,
}

/// Where a part stands.
#[derive(Clone, Copy, Default)]
struct PartPlace {
    depth: usize,
    /// In a message that is attached.
    is_attached: bool,
    is_report: bool,
}

impl MailParts {
    /// Reads the parts of a mail.
    ///
    /// # Errors
    /// The limit that it exceeds, in words.
    pub(crate) fn read(mail: &[u8]) -> Result<Self, String> {
        let mut parts = Self::default();
        parts.walk(mail, PartPlace::default())?;
        Ok(parts)
    }

    fn walk(&mut self, entity: &[u8], place: PartPlace) -> Result<(), String> {
        self.parts += 1;
        if self.parts > limit::PARTS {
            return Err(format!("it has more than {} parts", limit::PARTS));
        }
        if place.depth > limit::DEPTH {
            return Err(format!(
                "its parts are nested more than {} deep",
                limit::DEPTH
            ));
        }
        let (head, body) = split_head(entity);
        if head.len() > limit::HEAD_BYTES {
            return Err(format!("a head has more than {} bytes", limit::HEAD_BYTES));
        }
        let parsed = MessageParser::default().parse_headers(head_of(entity, body));
        let root = parsed.as_ref().and_then(|message| message.parts.first());
        let content_type = root.and_then(|part| part.content_type());
        let name = root.and_then(|part| part.attachment_name());
        let is_file = root
            .and_then(|part| part.content_disposition())
            .is_some_and(ContentType::is_attachment);
        let (main, sub) = media_type(content_type);
        match (main.as_str(), sub.as_str()) {
            ("multipart", _) => {
                let boundary = content_type.and_then(|c| c.attribute("boundary"));
                let Some(boundary) = boundary.filter(|b| !b.is_empty()) else {
                    self.damage_once("a multipart has no boundary");
                    return Ok(());
                };
                self.multipart(body, boundary, &sub, content_type, place)
            }
            ("message", "delivery-status" | "global-delivery-status") => {
                let (_, text) = self.decode(entity)?;
                self.statuses.push(text);
                Ok(())
            }
            ("message", "disposition-notification" | "global-disposition-notification") => {
                self.report = Some("disposition-notification".to_owned());
                Ok(())
            }
            ("message", _) | ("text", "rfc822-headers") if place.is_report => {
                let inner = match main.as_str() {
                    "message" => split_head(body).0.to_vec(),
                    _ => self.decode(entity)?.1.into_bytes(),
                };
                let inner = inner.get(..limit::HEAD_BYTES).unwrap_or(&inner);
                self.returned
                    .get_or_insert_with(|| HeadFields::parse(inner));
                Ok(())
            }
            ("message", "rfc822" | "global") => {
                let is_attached = true;
                let depth = place.depth + 1;
                self.walk(
                    body,
                    PartPlace {
                        depth,
                        is_attached,
                        ..place
                    },
                )
            }
            ("text", "plain" | "markdown" | "html") | (_, _) if is_envelope_file(name) => {
                let (_, text) = self.decode(entity)?;
                let name = name.unwrap_or_default().to_owned();
                self.files.push(EnvelopeFile { name, text });
                Ok(())
            }
            ("text", "plain" | "markdown" | "html") if !is_file => {
                let (is_html, text) = self.decode(entity)?;
                let forms = match is_html {
                    true => TextForms {
                        html: Some(text),
                        plain: None,
                    },
                    false => TextForms {
                        plain: Some(flow(text, content_type)),
                        html: None,
                    },
                };
                match place.is_attached {
                    true => self.attached.push(forms),
                    false => self.texts.push(forms),
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn multipart(
        &mut self,
        body: &[u8],
        boundary: &str,
        sub: &str,
        content_type: Option<&ContentType<'_>>,
        place: PartPlace,
    ) -> Result<(), String> {
        let is_report = sub == "report";
        if is_report && self.report.is_none() && !place.is_attached {
            let kind = content_type.and_then(|c| c.attribute("report-type"));
            self.report = Some(kind.unwrap_or_default().to_ascii_lowercase());
        }
        let place = PartPlace {
            depth: place.depth + 1,
            is_report: is_report || place.is_report,
            ..place
        };
        let before = (self.texts.len(), self.attached.len());
        for part in split_parts(body, boundary) {
            self.walk(part, place)?;
        }
        if sub == "alternative" {
            merge_alternatives(&mut self.texts, before.0);
            merge_alternatives(&mut self.attached, before.1);
        }
        Ok(())
    }

    /// The text of a part with its encodings undone, and whether it is HTML.
    fn decode(&mut self, entity: &[u8]) -> Result<(bool, String), String> {
        let parsed = MessageParser::default().parse(entity);
        let part = parsed.as_ref().and_then(|message| message.parts.first());
        let Some(part) = part else {
            return Ok((false, String::new()));
        };
        let (is_html, text) = match &part.body {
            PartType::Html(text) => (true, text.as_ref().to_owned()),
            PartType::Text(text) => (false, text.as_ref().to_owned()),
            PartType::Binary(bytes) | PartType::InlineBinary(bytes) => {
                (false, String::from_utf8_lossy(bytes).into_owned())
            }
            // A delivery status is a list of heads: the raw text is all that is needed.
            PartType::Message(_) | PartType::Multipart(_) => (
                false,
                String::from_utf8_lossy(split_head(entity).1).into_owned(),
            ),
        };
        if part.is_encoding_problem {
            self.damage_once("the transfer encoding of a part is broken");
        }
        if text.contains(char::REPLACEMENT_CHARACTER) {
            self.damage_once("some characters can't be decoded");
        }
        self.text_bytes = self.text_bytes.saturating_add(text.len());
        if self.text_bytes > limit::TEXT_BYTES {
            return Err(format!(
                "its texts have more than {} bytes",
                limit::TEXT_BYTES
            ));
        }
        let (text, has_controls) = clean(&text);
        if has_controls {
            self.damage_once("control characters were removed");
        }
        Ok((is_html, text))
    }

    fn damage_once(&mut self, what: &str) {
        if !self.damage.iter().any(|known| known == what) {
            self.damage.push(what.to_owned());
        }
    }
}

/// The head of a part with the blank line that ends it.
fn head_of<'m>(entity: &'m [u8], body: &[u8]) -> &'m [u8] {
    entity.get(..entity.len() - body.len()).unwrap_or(entity)
}

fn media_type(content_type: Option<&ContentType<'_>>) -> (String, String) {
    let Some(content_type) = content_type else {
        return ("text".to_owned(), "plain".to_owned());
    };
    let main = content_type.ctype().to_ascii_lowercase();
    let sub = content_type.subtype().unwrap_or_default();
    (main, sub.to_ascii_lowercase())
}

fn is_envelope_file(name: Option<&str>) -> bool {
    let ending = name.and_then(|name| name.rsplit_once('.'));
    ending.is_some_and(|(_, ending)| {
        ending.eq_ignore_ascii_case("crosstalk") || ending.eq_ignore_ascii_case("aict")
    })
}

fn flow(text: String, content_type: Option<&ContentType<'_>>) -> String {
    let is = |name: &str, value: &str| {
        let own = content_type.and_then(|c| c.attribute(name));
        own.is_some_and(|own| own.eq_ignore_ascii_case(value))
    };
    match is("format", "flowed") {
        true => unflow(&text, is("delsp", "yes")),
        false => text,
    }
}

/// The text with LF at the end of each line and without control characters; whether there were some.
fn clean(text: &str) -> (String, bool) {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let is_removed = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    match text.contains(is_removed) {
        true => (text.replace(is_removed, ""), true),
        false => (text, false),
    }
}

/// The parts between the lines `--boundary` (RFC 2046). The line break before such a line belongs to it.
fn split_parts<'m>(body: &'m [u8], boundary: &str) -> Vec<&'m [u8]> {
    let mark = format!("--{boundary}");
    let mut parts = Vec::new();
    let mut open: Option<usize> = None;
    let mut start = 0;
    for line in body.split_inclusive(|byte| *byte == b'\n') {
        let at = start;
        start += line.len();
        let rest = line.strip_prefix(mark.as_bytes());
        let rest = rest.map(|rest| rest.trim_ascii());
        let (is_mark, is_last) = match rest {
            Some(b"") => (true, false),
            Some(b"--") => (true, true),
            _ => (false, false),
        };
        if !is_mark {
            continue;
        }
        if let Some(from) = open {
            parts.push(without_line_break(body.get(from..at).unwrap_or(&[])));
        }
        open = (!is_last).then_some(start);
        if is_last || parts.len() > limit::PARTS {
            break;
        }
    }
    // A mail that was cut off still has the beginning of its last part.
    if let Some(rest) = open.and_then(|from| body.get(from..)) {
        parts.push(rest);
    }
    parts
}

fn without_line_break(part: &[u8]) -> &[u8] {
    let part = part.strip_suffix(b"\n").unwrap_or(part);
    part.strip_suffix(b"\r").unwrap_or(part)
}

/// Makes one text of the alternatives: the first plain form that has words, and all HTML.
fn merge_alternatives(texts: &mut Vec<TextForms>, from: usize) {
    let forms: Vec<TextForms> = texts.drain(from.min(texts.len())..).collect();
    let mut merged = TextForms::default();
    for form in forms {
        if merged.plain.is_none() {
            merged.plain = form.plain.filter(|text| !text.trim().is_empty());
        }
        if let Some(html) = form.html {
            merged.html.get_or_insert_default().push_str(&html);
        }
    }
    if merged != TextForms::default() {
        texts.push(merged);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternatives_are_one_text() {
        let mail = b"Content-Type: multipart/alternative; boundary=b\r\n\r\npreamble\r\n--b\r\n\r\nplain\r\n--b\r\nContent-Type: text/html\r\n\r\n<p>html</p>\r\n--b--\r\nafter";
        let parts = MailParts::read(mail).unwrap();
        let forms = TextForms {
            plain: Some("plain".to_owned()),
            html: Some("<p>html</p>".to_owned()),
        };
        assert_eq!(parts.texts, [forms]);
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = "Content-Type: message/rfc822\r\n\r\n".repeat(100_000);
        let why = MailParts::read(nested.as_bytes()).unwrap_err();
        assert!(why.contains("nested"), "{why}");
        let flat = format!(
            "Content-Type: multipart/mixed; boundary=b\r\n\r\n{}",
            "--b\r\n\r\nx\r\n".repeat(1_000)
        );
        let why = MailParts::read(flat.as_bytes()).unwrap_err();
        assert!(why.contains("parts"), "{why}");
    }

    #[test]
    fn a_text_is_cleaned() {
        assert_eq!(
            clean("a\r\nb\rc\0\u{1b}[1m\td"),
            ("a\nb\nc[1m\td".to_owned(), true)
        );
    }
}
