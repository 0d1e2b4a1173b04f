//! What happens to a text on its way: the changes of chats, editors, terminals and mail programs.

use crosstalk_envelope::{Document, Edit, Reading, base64};
use unicode_normalization::UnicodeNormalization as _;

pub(crate) type Way = fn(&str) -> String;

/// The ways that a signature survives.
pub(crate) const HARMLESS: &[(&str, Way)] = &[
    ("CRLF", crlf),
    ("padding", padded),
    ("fence", fenced),
    ("quote", |t| prefixed(t, "> ")),
    ("indent by 2", |t| prefixed(t, "  ")),
    ("indent by 4", |t| prefixed(t, "    ")),
    ("BOM", |t| format!("\u{feff}{t}")),
    ("ASCII arrow", |t| t.replacen('→', "->", 1)),
    ("NFD", |t| t.nfd().collect()),
    ("blank lines around META", blank_lines),
    ("audit block", audited),
    ("X-Route", routed),
    ("mail, quoted-printable", |t| {
        mailed(t, &quoted_printable(t), "quoted-printable")
    }),
    ("mail, base64", |t| mailed(t, &base64_lines(t), "base64")),
    ("prose around", |t| {
        format!("Sure, here it is:\n\n{t}\nShall I go on?\n")
    }),
];

pub(crate) fn crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

fn padded(text: &str) -> String {
    text.lines().map(|l| format!("{l}  \t\n")).collect()
}

pub(crate) fn fenced(text: &str) -> String {
    crosstalk_envelope::fence(text)
}

pub(crate) fn prefixed(text: &str, prefix: &str) -> String {
    text.lines().map(|l| format!("{prefix}{l}\n")).collect()
}

fn blank_lines(text: &str) -> String {
    let (head, body) = text.split_once("\nbody: |").unwrap();
    format!(
        "{}\n\n\nbody: |{body}",
        head.replace("\nmeta:", "\n\n\nmeta:")
    )
}

pub(crate) fn audited(text: &str) -> String {
    let document = Document::parse(text, Reading::Strict);
    let hop = [("Hop", "1"), ("Received-By", "human://relay.example")];
    let edit = Edit::new(&document).unwrap();
    let edit = edit
        .add_block("audit", &hop)
        .unwrap()
        .add_block("email", &[("Message-ID", "<1@x>")]);
    edit.unwrap().finish()
}

pub(crate) fn routed(text: &str) -> String {
    let document = Document::parse(text, Reading::Strict);
    let edit = Edit::new(&document).unwrap();
    edit.set_key("routing", "X-Route", "CLAUDE → relay")
        .unwrap()
        .finish()
}

/// A mail with this content, read back by a mail program.
fn mailed(original: &str, content: &str, encoding: &str) -> String {
    let mail = format!(
        "From: kalle@example.com\r\nTo: bob@example.com\r\nSubject: x\r\nMIME-Version: 1.0\r\n\
         Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n{content}"
    );
    let parsed = mail_parser::MessageParser::default()
        .parse(mail.as_bytes())
        .unwrap();
    let text = parsed.body_text(0).unwrap().into_owned();
    assert!(text.len() >= original.len());
    text
}

fn quoted_printable(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut column = 0;
        for byte in line.bytes() {
            let shown = match byte {
                b'=' | 0x80.. | b' ' | b'\t' => format!("={byte:02X}"),
                _ => char::from(byte).to_string(),
            };
            if column + shown.len() > 75 {
                out.push_str("=\r\n");
                column = 0;
            }
            column += shown.len();
            out.push_str(&shown);
        }
        out.push_str("\r\n");
    }
    out
}

fn base64_lines(text: &str) -> String {
    let encoded = base64::encode(crlf(text).as_bytes());
    let lines = encoded.as_bytes().chunks(76);
    lines
        .map(|l| format!("{}\r\n", std::str::from_utf8(l).unwrap()))
        .collect()
}

/// Every line wrapped at a width, as a mail program or a terminal does; `long` breaks long words as well.
pub(crate) fn wrapped(text: &str, width: usize, long: bool) -> String {
    let mut out = String::new();
    for line in text.lines() {
        if line.chars().count() <= width {
            out.push_str(line);
            out.push('\n');
            continue;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        let mut at = indent.to_owned();
        let mut empty = true;
        for word in line.split_whitespace() {
            let mut word = word;
            let room = |at: &str, empty: bool| {
                width.saturating_sub(at.chars().count() + usize::from(!empty))
            };
            if word.chars().count() > room(&at, empty) && !empty {
                out.push_str(at.trim_end());
                out.push('\n');
                (at, empty) = (String::new(), true);
            }
            while long && word.chars().count() > width {
                let cut = word.char_indices().nth(width).unwrap().0;
                out.push_str(&word[..cut]);
                out.push('\n');
                word = &word[cut..];
            }
            if !empty {
                at.push(' ');
            }
            at.push_str(word);
            empty = false;
        }
        out.push_str(at.trim_end());
        out.push('\n');
    }
    out
}

/// Every line end became a space.
pub(crate) fn collapsed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
