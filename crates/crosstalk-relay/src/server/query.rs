//! Parameters in the query and the path of a URL.

use super::Server;
use super::response::HttpError;
use axum::extract::FromRequestParts;
use crosstalk_api::inbox::LIMIT;
pub(super) use crosstalk_api::schema::{MAX_ID_CHARS as ID, MAX_TEXT_CHARS as TEXT};
use crosstalk_api::{Parameter, ParameterKind};
use crosstalk_envelope::has_whole_escapes;
use http::request::Parts;
use percent_encoding::percent_decode_str;
use std::sync::Arc;

/// The parameters of a query.
#[derive(Debug)]
pub(super) struct Query(Vec<(String, String)>);

impl FromRequestParts<Arc<Server>> for Query {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Server>) -> Result<Self, HttpError> {
        Self::parse(parts.uri.query())
    }
}

impl Query {
    /// Reads the part of a URL behind its `?`.
    pub(super) fn parse(text: Option<&str>) -> Result<Self, HttpError> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for pair in text.unwrap_or("").split('&').filter(|p| !p.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode(name, true)?, decode(value, true)?);
            if pairs.iter().any(|(n, _)| *n == name) {
                return Err(HttpError::format(
                    format!("The parameter `{}` is given twice.", shown(&name)),
                    "give it once.",
                ));
            }
            pairs.push((name, value));
        }
        Ok(Self(pairs))
    }

    fn get(&self, name: &str) -> Option<&str> {
        let mut pairs = self.0.iter();
        pairs.find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// A text, if it is there.
    pub(super) fn text(&self, parameter: &Parameter) -> Result<Option<&str>, HttpError> {
        let ParameterKind::Text { max_chars, .. } = parameter.kind else {
            return Ok(None);
        };
        let text = self.get(parameter.name);
        text.map(|text| check_text(parameter.name, text, max_chars))
            .transpose()
    }

    /// A text that has to be there.
    pub(super) fn required(&self, parameter: &Parameter) -> Result<&str, HttpError> {
        self.text(parameter)?.ok_or_else(|| absent(parameter))
    }

    /// A number within its bounds; the usual one if there is none.
    pub(super) fn number(&self, parameter: &Parameter) -> Result<Option<u64>, HttpError> {
        let ParameterKind::Number { min, max, default } = parameter.kind else {
            return Ok(None);
        };
        let Some(text) = self.get(parameter.name) else {
            return Ok(default);
        };
        let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let number = text.parse().ok();
        let number = number.filter(|n| plain && (min..=max).contains(n));
        number.map(Some).ok_or_else(|| {
            HttpError::format(
                format!(
                    "The parameter `{}` is not a number from {min} to {max}.",
                    parameter.name
                ),
                "give one, or leave it out.",
            )
        })
    }

    /// A number that has to be there.
    pub(super) fn required_number(&self, parameter: &Parameter) -> Result<u64, HttpError> {
        self.number(parameter)?.ok_or_else(|| absent(parameter))
    }

    /// How many entries a listing has at most.
    pub(super) fn limit(&self) -> Result<usize, HttpError> {
        let limit = self.number(&LIMIT)?.unwrap_or_default();
        Ok(usize::try_from(limit).unwrap_or(usize::MAX))
    }

    /// Yes or no.
    pub(super) fn flag(&self, parameter: &Parameter) -> Result<Option<bool>, HttpError> {
        let ParameterKind::Flag { default } = parameter.kind else {
            return Ok(None);
        };
        match self.get(parameter.name) {
            None => Ok(default),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(_) => Err(HttpError::format(
                format!(
                    "The parameter `{}` is neither `true` nor `false`.",
                    parameter.name
                ),
                "give one of them, or leave it out.",
            )),
        }
    }
}

fn absent(Parameter { name, .. }: &Parameter) -> HttpError {
    HttpError::format(
        format!("The parameter `{name}` is missing."),
        format!("add `?{name}=…` to the URL."),
    )
}

/// A text that is neither empty nor too long, and has no controls in it.
pub(super) fn check_text<'t>(name: &str, text: &'t str, most: usize) -> Result<&'t str, HttpError> {
    let harmful = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    if text.is_empty() || text.chars().count() > most || text.contains(harmful) {
        return Err(HttpError::format(
            format!(
                "`{name}` is empty, has more than {most} characters, or has controls or line ends in it."
            ),
            format!("give 1 to {most} characters on one line."),
        ));
    }
    Ok(text)
}

/// A part of a path as it is meant.
pub(super) fn segment(text: &str) -> Result<String, HttpError> {
    let text = decode(text, false)?;
    check_text("The last part of the path", &text, ID)?;
    Ok(text)
}

/// A text without its percent signs.
fn decode(text: &str, plus: bool) -> Result<String, HttpError> {
    let spaced = if plus {
        text.replace('+', " ")
    } else {
        text.to_owned()
    };
    if !has_whole_escapes(&spaced) {
        return Err(not_encoded());
    }
    let decoded = percent_decode_str(&spaced).decode_utf8();
    decoded.map(Into::into).map_err(|_| not_encoded())
}

fn not_encoded() -> HttpError {
    HttpError::format(
        "The URL has a `%` without two hexadecimal digits, or bytes that are not UTF-8.",
        "encode it as RFC 3986 says.",
    )
}

fn shown(text: &str) -> String {
    crosstalk_envelope::unicode::escape(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crosstalk_api::audit::INDEX;
    use crosstalk_api::inbox::{FOR, WAIT};
    use crosstalk_api::message::WORDS;
    use crosstalk_api::thread::{OPEN, WITH};

    #[test]
    fn a_query_is_read_as_it_is_meant() {
        let query = Query::parse(Some(
            "for=claude%3A%2F%2Fcode%2F%C3%A4+b&wait=60&open=false&x",
        ))
        .unwrap();
        assert_eq!(query.required(&FOR).unwrap(), "claude://code/ä b");
        assert_eq!(query.number(&WAIT).unwrap(), Some(60));
        assert_eq!(query.flag(&OPEN).unwrap(), Some(false));
        assert_eq!(query.limit().unwrap(), 100);
        assert!(query.required(&WITH).is_err() && query.required_number(&INDEX).is_err());
    }

    #[test]
    fn parameters_outside_their_bounds_are_rejected() {
        for text in ["a=%", "a=%4", "a=%zz", "a=%ff", "a=1&a=2", "a=%+1"] {
            assert!(Query::parse(Some(text)).is_err(), "{text}");
        }
        for text in [
            "limit=0",
            "limit=501",
            "limit=",
            "limit=+5",
            "limit=-1",
            "limit=1e2",
            "limit=%31x",
        ] {
            assert!(Query::parse(Some(text)).unwrap().limit().is_err(), "{text}");
        }
        assert_eq!(
            Query::parse(Some("limit=500")).unwrap().limit().unwrap(),
            500
        );
        let long = format!("q={}", "x".repeat(TEXT));
        assert!(Query::parse(Some(&long)).unwrap().required(&WORDS).is_ok());
        assert!(
            Query::parse(Some(&(long + "x")))
                .unwrap()
                .required(&WORDS)
                .is_err()
        );
        assert!(
            Query::parse(Some("q=a%00"))
                .unwrap()
                .required(&WORDS)
                .is_err()
        );
        assert!(
            Query::parse(Some("q=%E2%80%A8"))
                .unwrap()
                .required(&WORDS)
                .is_err()
        );
        assert!(segment("").is_err() && segment("a%0Ab").is_err());
        assert_eq!(segment("a%2Fb+c").unwrap(), "a/b+c");
    }
}
