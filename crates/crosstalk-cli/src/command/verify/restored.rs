//! A reflowed envelope with its body as it was signed (SIG-016).

use crosstalk_envelope::Document;

/// The envelope with another body text. Whether that verifies is for the caller to see.
pub(super) fn envelope(document: &Document<'_>, body: &str) -> Option<String> {
    let text = document.to_well_formed();
    let is_mark = |line: &str| matches!(line, "body: |\n" | "response: |\n");
    let mut out = String::with_capacity(text.len() + body.len());
    let mut lines = text.split_inclusive('\n');
    for line in lines.by_ref() {
        out.push_str(line);
        if is_mark(line) {
            break;
        }
    }
    // Lines of the body are indented or empty, so the first other one is the signature.
    let rest = lines.skip_while(|line| !line.starts_with("sig: "));
    for line in body.split('\n') {
        let indent = if line.is_empty() { "" } else { "  " };
        out.push_str(&format!("{indent}{line}\n"));
    }
    let before = out.len();
    out.extend(rest);
    (out.len() > before).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crosstalk_envelope::Reading;

    #[test]
    fn only_the_body_is_another_one() {
        let text = "[[A→B v1]]\nuser: u\nsession: s\ncontext: c\nintent: NOTE\nbody: |\n  a b\n  sig: x\nsig: none\n[[END]]\n";
        let document = Document::parse(text, Reading::Strict);
        let other = envelope(&document, "a\n\nb").unwrap();
        assert_eq!(other, text.replace("  a b\n  sig: x\n", "  a\n\n  b\n"));
    }
}
