//! The files that pages load: style, scripts, the icon. They are in the binary, and their names have the digest of their bytes.

use crate::header;
use axum::extract::Request;
use axum::response::Response;
use http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};

include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// A file that pages load.
#[derive(Debug)]
pub struct Asset {
    /// Its path.
    pub path: &'static str,
    media: &'static str,
    bytes: &'static [u8],
    packed: &'static [u8],
}

/// Answers a request for an asset. Another version of it has another name, so browsers keep it for good.
pub(crate) async fn serve(request: Request) -> Response {
    let path = request.uri().path();
    let Some(asset) = ALL.iter().find(|a| a.path == path) else {
        let mut missing =
            Response::new("This file belongs to another version of the console.".into());
        *missing.status_mut() = StatusCode::NOT_FOUND;
        return missing;
    };
    let is_packed = accepts_gzip(request.headers()) && asset.packed.len() < asset.bytes.len();
    let bytes = match is_packed {
        true => asset.packed,
        false => asset.bytes,
    };
    let mut answer = Response::new(bytes.into());
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(asset.media));
    let forever = HeaderValue::from_static("public, max-age=31536000, immutable");
    headers.insert(CACHE_CONTROL, forever);
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if is_packed {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    header::secure(headers);
    answer
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT_ENCODING).iter();
    let mut codings = lines
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','));
    codings.any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        name.trim() == "gzip" && weight.replace(' ', "") != "q=0"
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::ACCEPT_ENCODING;

    #[test]
    fn a_compressed_form_needs_a_browser_that_accepts_it() {
        for (value, wanted) in [
            ("gzip, deflate, br", true),
            ("br;q=1.0, gzip;q=0.8", true),
            ("gzip;q=0", false),
            ("br", false),
            ("x-gzip", false),
        ] {
            let headers =
                HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(value))]);
            assert_eq!(accepts_gzip(&headers), wanted, "{value}");
        }
    }

    #[test]
    fn the_assets_of_a_page_are_small() {
        let all: usize = ALL.iter().map(|a| a.packed.len()).sum();
        assert!(all < 60_000, "{all} bytes");
    }
}
