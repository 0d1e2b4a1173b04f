//! Where a request goes: an endpoint, with names of others in its path and in its query.

use crate::{Endpoint, Method, Parameter};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::borrow::Cow;
use std::fmt::Display;

const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b':');

/// An endpoint with the values of its parameters.
pub(crate) struct RequestTarget {
    pub(super) method: Method,
    pub(super) path: String,
    has_query: bool,
}

impl RequestTarget {
    pub(crate) fn of(endpoint: &Endpoint) -> Self {
        Self {
            method: endpoint.method,
            path: endpoint.path.trim_start_matches('/').to_owned(),
            has_query: false,
        }
    }

    /// The same with the segment of its path.
    pub(crate) fn segment(self, name: &str) -> Self {
        Self {
            path: self.path.replacen("{}", &encode(name), 1),
            ..self
        }
    }

    /// The same with a parameter.
    pub(crate) fn query(mut self, parameter: &Parameter, value: impl Display) -> Self {
        self.path.push(if self.has_query { '&' } else { '?' });
        self.has_query = true;
        self.path.push_str(parameter.name);
        self.path.push('=');
        self.path.push_str(&encode(&value.to_string()));
        self
    }

    /// The same with a parameter that may have no value.
    pub(crate) fn query_if(self, parameter: &Parameter, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.query(parameter, value),
            None => self,
        }
    }
}

fn encode(text: &str) -> Cow<'_, str> {
    utf8_percent_encode(text, ENCODED).into()
}
