//! Media types: the type of a request body, and the type of response that the caller accepts.

use super::response::HttpError;
pub(super) use crosstalk_api::Media;
use crosstalk_envelope::registry::ErrorCode;
use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};

/// The media type that the caller likes best; without an `Accept`, the first.
///
/// # Errors
/// 406, if none will do.
pub(super) fn choose(headers: &HeaderMap, offers: &[Media]) -> Result<Media, HttpError> {
    best(headers, offers).ok_or_else(|| {
        let names: Vec<&str> = offers.iter().map(|o| o.name()).collect();
        let (what, help) = (
            "`Accept` allows none of the types of this path.",
            format!("ask for one of these: {}.", names.join(", ")),
        );
        HttpError::new(ErrorCode::Unsupported, what, help).status(406)
    })
}

/// Whether errors should be JSON.
pub(super) fn prefers_json(headers: &HeaderMap) -> bool {
    headers.contains_key(ACCEPT) && best(headers, &[Media::Text, Media::Json]) == Some(Media::Json)
}

fn best(headers: &HeaderMap, offers: &[Media]) -> Option<Media> {
    if !headers.contains_key(ACCEPT) {
        return offers.first().copied();
    }
    let lines = headers.get_all(ACCEPT).iter();
    let ranges: Vec<Range<'_>> = lines
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','))
        .filter_map(Range::parse)
        .collect();
    let mut best = None;
    for offer in offers {
        // The most specific range that fits says how much it is liked.
        let fitting = ranges.iter().filter(|r| r.fits(offer.name()));
        let liked = fitting.max_by_key(|r| r.precision()).map_or(0, |r| r.q);
        if liked > best.map_or(0, |(_, q)| q) {
            best = Some((*offer, liked));
        }
    }
    best.map(|(offer, _)| offer)
}

/// One range of an `Accept`.
struct Range<'r> {
    name: &'r str,
    /// In thousandths.
    q: u32,
}

impl<'r> Range<'r> {
    fn parse(text: &'r str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let name = parts.next().filter(|n| !n.is_empty())?;
        let q = parts.find_map(|p| p.strip_prefix("q=").or_else(|| p.strip_prefix("Q=")));
        let q = q.map_or(Some(1000), thousandths)?;
        Some(Self { name, q })
    }

    fn fits(&self, name: &str) -> bool {
        let starts = |p: &str| {
            let start = name.get(..p.len());
            start.is_some_and(|s| s.eq_ignore_ascii_case(p))
        };
        match self.name.strip_suffix('*') {
            Some("*/") => true,
            Some(start) => start.ends_with('/') && starts(start),
            None => self.name.eq_ignore_ascii_case(name),
        }
    }

    fn precision(&self) -> u8 {
        match self.name.strip_suffix('*') {
            Some("*/") => 0,
            Some(_) => 1,
            None => 2,
        }
    }
}

fn thousandths(text: &str) -> Option<u32> {
    let q: f32 = text.parse().ok()?;
    // Between 0 and 1000, so nothing is cut off.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 to 1000"
    )]
    (0.0..=1.0).contains(&q).then_some((q * 1000.0) as u32)
}

/// What a request to `/crosstalk/receive` brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestForm {
    /// The text of one envelope.
    One,
    /// One envelope as JSON.
    Json,
    Batch,
}

/// What a request brings: one envelope, as text or as JSON, or several.
///
/// # Errors
/// 415.
pub(super) fn request_form(headers: &HeaderMap) -> Result<RequestForm, HttpError> {
    check_encoding(headers)?;
    let Some(value) = headers.get(CONTENT_TYPE) else {
        return Ok(RequestForm::One);
    };
    if value == "text/plain; charset=utf-8" {
        return Ok(RequestForm::One);
    }
    let (name, charset) = parts(value);
    let utf8 = charset.is_none_or(|c| c.eq_ignore_ascii_case("utf-8"));
    let is = |wanted: &str| name.eq_ignore_ascii_case(wanted) && utf8;
    if is("text/plain") || is("application/vnd.crosstalk") {
        Ok(RequestForm::One)
    } else if is(Media::Batch.name()) {
        Ok(RequestForm::Batch)
    } else if is(Media::Json.name()) {
        Ok(RequestForm::Json)
    } else {
        Err(unsupported(
            "text/plain; charset=utf-8 or application/json for one envelope, application/vnd.crosstalk.batch for several",
        ))
    }
}

/// Checks that a request brings JSON.
///
/// # Errors
/// 415.
pub(super) fn check_json(headers: &HeaderMap) -> Result<(), HttpError> {
    check_encoding(headers)?;
    let (name, _) = headers.get(CONTENT_TYPE).map_or(("", None), parts);
    match name.eq_ignore_ascii_case(Media::Json.name()) {
        true => Ok(()),
        false => Err(unsupported(Media::Json.name())),
    }
}

/// Checks that the body of a request is as it is: a few compressed bytes could become very many.
///
/// # Errors
/// 415.
pub(super) fn check_encoding(headers: &HeaderMap) -> Result<(), HttpError> {
    let mut encodings = headers.get_all(CONTENT_ENCODING).iter();
    match encodings.all(|e| e.as_bytes().eq_ignore_ascii_case(b"identity")) {
        true => Ok(()),
        false => Err(HttpError::new(
            ErrorCode::Unsupported,
            "The body has a `Content-Encoding`, and nothing is decompressed here.",
            "send it as it is.",
        )
        .status(415)),
    }
}

fn parts(value: &HeaderValue) -> (&str, Option<&str>) {
    let mut parts = value.to_str().unwrap_or("?").split(';').map(str::trim);
    let name = parts.next().unwrap_or("?");
    let charset = parts.find_map(|p| {
        let (key, value) = p.split_once('=')?;
        let is_charset = key.trim().eq_ignore_ascii_case("charset");
        is_charset.then(|| value.trim().trim_matches('"'))
    });
    (name, charset)
}

fn unsupported(wanted: &str) -> HttpError {
    let (what, help) = (
        "The body is of a type that is not taken here.",
        format!("send it as {wanted}."),
    );
    HttpError::new(ErrorCode::Unsupported, what, help).status(415)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn the_most_wanted_kind_is_chosen() {
        let offers = [Media::Text, Media::Json, Media::Events];
        for (value, wanted) in [
            ("*/*", Some(Media::Text)),
            ("application/json", Some(Media::Json)),
            ("Application/JSON; charset=utf-8", Some(Media::Json)),
            ("text/event-stream, */*;q=0.1", Some(Media::Events)),
            ("text/*;q=0.5, application/json;q=0.4", Some(Media::Text)),
            ("text/plain;q=0, */*", Some(Media::Json)),
            ("application/json;q=0", None),
            ("image/png", None),
            ("", None),
            ("text/plain;q=7", None),
        ] {
            assert_eq!(best(&accept(value), &offers), wanted, "{value}");
        }
        assert_eq!(best(&HeaderMap::new(), &offers), Some(Media::Text));
    }

    #[test]
    fn refusals_are_text_unless_json_is_wanted_more() {
        for (value, json) in [
            ("application/json", true),
            ("*/*", false),
            ("text/html, */*;q=0.8", false),
            ("application/json, text/plain", false),
            ("application/json, text/plain;q=0.9", true),
            ("image/png", false),
        ] {
            assert_eq!(prefers_json(&accept(value)), json, "{value}");
        }
        assert!(!prefers_json(&HeaderMap::new()));
    }
}
