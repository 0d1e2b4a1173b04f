//! The fields of a form or of the query of a URL (`application/x-www-form-urlencoded`).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// How many fields a form has at most.
const MOST: usize = 2_000;

/// Names and values, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct FormFields(Vec<(String, String)>);

impl FormFields {
    /// Reads fields; nothing if one is not UTF-8, or there are too many.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let decode = |part: &str| {
            let spaced = part.replace('+', " ");
            let decoded = percent_decode_str(&spaced).decode_utf8().ok()?;
            Some(decoded.into_owned())
        };
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let fields: Option<Vec<_>> = pairs
            .take(MOST + 1)
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                // Browsers send CR LF in texts.
                Some((decode(name)?, decode(value)?.replace("\r\n", "\n")))
            })
            .collect();
        fields.filter(|f| f.len() <= MOST).map(Self)
    }

    /// The first value of a field; nothing if there is none, or it is empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(n, _)| n == name);
        found.map(|(_, v)| v.as_str()).filter(|v| !v.is_empty())
    }

    /// The first value of a field, or the empty text.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or("")
    }

    /// Every value of a field.
    pub(crate) fn all<'f>(&'f self, name: &'f str) -> impl Iterator<Item = &'f str> {
        let named = self.0.iter().filter(move |(n, _)| n == name);
        named.map(|(_, v)| v.as_str())
    }
}

const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b':');

/// The text that was encoded, if it is one.
pub(crate) fn decode(text: &str) -> Option<String> {
    let decoded = percent_decode_str(text).decode_utf8().ok()?;
    Some(decoded.into_owned())
}

/// A text as one segment of a path or one value of a query.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decoded() {
        let fields = FormFields::parse("a=1+2%0D%0A3&b=%C3%A9&a=x&c&d=").unwrap();
        assert_eq!((fields.get("a"), fields.text("b")), (Some("1 2\n3"), "é"));
        assert_eq!(fields.all("a").collect::<Vec<_>>(), ["1 2\n3", "x"]);
        assert_eq!(
            (fields.get("c"), fields.get("d"), fields.get("e")),
            (None, None, None)
        );
        assert!(FormFields::parse("a=%ff").is_none());
        assert!(FormFields::parse(&"a&".repeat(MOST + 1)).is_none());
        assert_eq!(encode("a b/é?&"), "a%20b%2F%C3%A9%3F%26");
    }
}
