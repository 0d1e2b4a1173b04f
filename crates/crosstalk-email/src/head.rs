//! The head of a mail or of one of its parts: its fields by name, unfolded.

use crate::limit;

/// The fields of a head, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeadFields {
    fields: Vec<(String, String)>,
    /// There are more fields than a mail may have.
    pub(crate) is_excessive: bool,
}

impl HeadFields {
    /// Reads a head. A carriage return alone ends a line too, because some mail programs take it for a line end: a field that
    /// only they see must be seen here.
    pub(crate) fn parse(head: &[u8]) -> Self {
        let text = String::from_utf8_lossy(head);
        let mut this = Self::default();
        for line in text.split(['\n', '\r']).filter(|line| !line.is_empty()) {
            if line.starts_with([' ', '\t']) {
                if let Some((_, value)) = this.fields.last_mut() {
                    value.push(' ');
                    value.push_str(line.trim());
                }
                continue;
            }
            let Some((name, value)) = line.split_once(':') else {
                continue;
            };
            if this.fields.len() == limit::FIELDS {
                this.is_excessive = true;
                break;
            }
            let name = name.trim().to_ascii_lowercase();
            this.fields.push((name, value.trim().to_owned()));
        }
        this
    }

    /// The values of all fields of this name, which is in lower case.
    pub(crate) fn all<'h>(&'h self, name: &'h str) -> impl Iterator<Item = &'h str> {
        let named = self.fields.iter().filter(move |(own, _)| own == name);
        named.map(|(_, value)| value.as_str())
    }

    /// The value of the first field of this name.
    pub(crate) fn first(&self, name: &str) -> Option<&str> {
        let named = self.fields.iter().find(|(own, _)| own == name);
        named.map(|(_, value)| value.as_str())
    }

    /// The names of all fields.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|(name, _)| name.as_str())
    }
}

/// Splits a mail or a part of it into head and body, at the first blank line.
pub(crate) fn split_head(entity: &[u8]) -> (&[u8], &[u8]) {
    let mut start = 0;
    for line in entity.split_inclusive(|byte| *byte == b'\n') {
        let end = start + line.len();
        if matches!(line, b"\n" | b"\r\n") {
            let (head, rest) = entity.split_at_checked(start).unwrap_or((entity, &[]));
            return (head, rest.get(line.len()..).unwrap_or(&[]));
        }
        start = end;
    }
    (entity, &[])
}

/// The message ids `<id@domain>` of a field such as References, in their order, with their angle brackets.
pub(crate) fn message_ids(value: &str) -> Vec<String> {
    let pieces = value.split('<').skip(1);
    let inner = pieces.filter_map(|piece| piece.split_once('>'));
    let ids = inner.map(|(id, _)| id.split_whitespace().collect::<String>());
    ids.filter(|id| !id.is_empty() && id.len() <= 998)
        .take(limit::FIELDS)
        .map(|id| format!("<{id}>"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_unfolded_and_split_at_every_kind_of_line_end() {
        let fields =
            HeadFields::parse(b"Subject: one\r\n two\r\nFROM : a@x\rFrom: b@y\nno colon\n\tx\n");
        assert_eq!(fields.first("subject"), Some("one two"));
        assert_eq!(fields.all("from").collect::<Vec<_>>(), ["a@x", "b@y x"]);
    }

    #[test]
    fn a_blank_line_ends_the_head() {
        assert_eq!(
            split_head(b"A: b\r\n\r\nbody"),
            (&b"A: b\r\n"[..], &b"body"[..])
        );
        assert_eq!(split_head(b"\nbody"), (&b""[..], &b"body"[..]));
        assert_eq!(split_head(b"A: b"), (&b"A: b"[..], &b""[..]));
    }

    #[test]
    fn message_ids_keep_their_brackets() {
        assert_eq!(message_ids("<a@x>\t<b@ y> junk <>"), ["<a@x>", "<b@y>"]);
        assert_eq!(message_ids("no id").len(), 0);
    }
}
