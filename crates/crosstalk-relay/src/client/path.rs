//! Paths of requests, with names of others in them.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b':');

/// A path with parts and a query, everything in it encoded.
pub(super) struct Path {
    pub(super) text: String,
    has_query: bool,
}

impl Path {
    pub(super) fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            has_query: false,
        }
    }

    pub(super) fn part(mut self, part: &str) -> Self {
        self.text.push('/');
        self.encode(part);
        self
    }

    pub(super) fn query(mut self, name: &str, value: &str) -> Self {
        self.text.push(if self.has_query { '&' } else { '?' });
        self.has_query = true;
        self.text.push_str(name);
        self.text.push('=');
        self.encode(value);
        self
    }

    pub(super) fn query_if(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    fn encode(&mut self, text: &str) {
        self.text.extend(utf8_percent_encode(text, ENCODED));
    }
}
