//! Answers for browser extensions (HTP-069): a browser lets an extension read an answer only if the answer names its origin.

use super::HttpPolicy;
use super::body::Body;
use super::response::{Response, empty};
use crate::config::is_extension_origin;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
    VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};

/// What extensions may send.
const METHODS: &str = "GET, POST, PUT, DELETE";
const HEADERS: &str = "authorization, content-type, prefer, last-event-id";
/// What extensions may read, besides what browsers always show.
const EXPOSED: &str = "preference-applied, retry-after";
/// For how many seconds a browser may rely on the answer to a preflight request.
const MAX_AGE: &str = "600";

/// Whether a request comes from an extension, listed or not.
pub(super) fn is_from_extension(headers: &HeaderMap) -> bool {
    let mut origins = headers.get_all(ORIGIN).iter();
    origins.any(|origin| origin.to_str().is_ok_and(is_extension_origin))
}

/// The origin of a request, if it is that of an extension that the operator listed.
pub(super) fn listed_origin(policy: &HttpPolicy, headers: &HeaderMap) -> Option<HeaderValue> {
    let mut origins = headers.get_all(ORIGIN).iter();
    let (Some(origin), None) = (origins.next(), origins.next()) else {
        return None;
    };
    let listed = &policy.config.extension.origins;
    let is_listed = listed.iter().any(|o| o.as_bytes() == origin.as_bytes());
    is_listed.then(|| origin.clone())
}

/// Whether a browser asks whether it may send a request.
pub(super) fn is_preflight<B>(request: &Request<B>) -> bool {
    let has_method = request
        .headers()
        .contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    request.method() == Method::OPTIONS && has_method
}

/// The answer to a preflight request.
pub(super) fn allow() -> Response {
    let mut answer = empty(StatusCode::NO_CONTENT);
    let headers = answer.headers_mut();
    for (name, value) in [
        (ACCESS_CONTROL_ALLOW_METHODS, METHODS),
        (ACCESS_CONTROL_ALLOW_HEADERS, HEADERS),
        (ACCESS_CONTROL_MAX_AGE, MAX_AGE),
        // A relay on the machine of the browser counts as a more private network.
        (
            HeaderName::from_static("access-control-allow-private-network"),
            "true",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}

/// Lets the extension of an origin read an answer.
pub(super) fn share(answer: &mut http::Response<Body>, origin: HeaderValue) {
    let headers = answer.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(
        ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static(EXPOSED),
    );
    headers.append(VARY, HeaderValue::from_static("Origin"));
}
