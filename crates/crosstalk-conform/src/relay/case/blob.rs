//! Attachments (HTP-050, HTP-051).

use super::code;
use crate::relay::Run;
use crate::relay::play::make_token;
use crate::relay::probe::{Probe, Step, by, need, object, receive, refused, same, word};
use crate::relay::wire::Request;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::registry::ErrorCode;

pub(super) const CODE: &[(&str, Run)] = &[
    code!("blob-new", put),
    code!("blob-wrong", wrong),
    code!("blob-name", name),
    code!("blob-bytes", bytes),
    code!("blob-harmless", harmless),
    code!("blob-named", named),
    code!("blob-head", head),
];

/// Bytes that nobody else has, and where they go. They look like a page with a script.
fn fresh(p: &Probe) -> (Vec<u8>, String) {
    let mut bytes = format!("<script>alert('{}')</script>", p.word("blob")).into_bytes();
    bytes.extend([0, 0xff, b'\r', b'\n', 0x1b]);
    let path = format!("/crosstalk/blobs/{}", Digest::of(&bytes));
    (bytes, path)
}

fn upload(path: &str, bytes: &[u8]) -> Request {
    let request = Request::new("PUT", path).header("Content-Type", "application/octet-stream");
    request.body(bytes.to_vec())
}

async fn put(p: &Probe) -> Step {
    let (bytes, path) = fresh(p);
    for _ in 0..3 {
        let answer = object(&p.send(upload(&path, &bytes)).await?, 201)?;
        same(
            "digest",
            &Digest::of(&bytes).to_string(),
            word(&answer, "digest"),
        )?;
        let size = answer.get("size").and_then(serde_json::Value::as_u64);
        need(
            size == u64::try_from(bytes.len()).ok(),
            "the size",
            answer.to_string(),
        )?;
    }
    Ok(())
}

async fn wrong(p: &Probe) -> Step {
    let (bytes, path) = fresh(p);
    let answer = p.send(upload(&path, b"something else")).await?;
    refused(&answer, 400, ErrorCode::Format)?;
    refused(
        &p.send(Request::get(path.as_str())).await?,
        404,
        ErrorCode::Route,
    )?;
    let other = format!("/crosstalk/blobs/{}", Digest::of(b"something else"));
    let kept = p.send(Request::get(other)).await?;
    need(
        kept.status == 404,
        "404: nothing of it is kept",
        kept.shown(),
    )?;
    object(&p.send(upload(&path, &bytes)).await?, 201).map(drop)
}

async fn name(p: &Probe) -> Step {
    for name in [
        "sha256:abc",
        "md5:900150983cd24fb0d6963f7d28e17f72",
        "..%2F..%2Fetc%2Fpasswd",
    ] {
        let answer = p
            .send(upload(&format!("/crosstalk/blobs/{name}"), b"x"))
            .await?;
        let good = matches!(answer.status, 400 | 404);
        need(
            good,
            format!("400 or 404 for the name {name}"),
            answer.shown(),
        )?;
    }
    Ok(())
}

async fn bytes(p: &Probe) -> Step {
    let (bytes, path) = fresh(p);
    p.send(upload(&path, &bytes)).await?;
    let answer = p.send(Request::get(path)).await?;
    need(
        answer.status == 200 && answer.body == bytes,
        "200 and the same bytes",
        answer.shown(),
    )
}

async fn harmless(p: &Probe) -> Step {
    let (bytes, path) = fresh(p);
    p.send(upload(&path, &bytes)).await?;
    let answer = p.send(Request::get(path)).await?;
    same("Content-Type", "application/octet-stream", &answer.kind())?;
    same(
        "X-Content-Type-Options",
        "nosniff",
        answer.header("x-content-type-options"),
    )?;
    let how = answer.header("content-disposition");
    need(
        how.starts_with("attachment"),
        "Content-Disposition: attachment",
        how,
    )?;
    same(
        "ETag",
        &format!("\"{}\"", Digest::of(&bytes)),
        answer.header("etag"),
    )
}

/// Somebody else uploads it; one who knows its digest sends themselves a message that names it.
async fn named(p: &Probe) -> Step {
    let (bytes, path) = fresh(p);
    let own = p.address("a");
    let (name, token) = make_token(p, "blob", "agent", std::slice::from_ref(&own)).await?;
    object(&p.send(upload(&path, &bytes)).await?, 201)?;
    let letter = p.letter("NOTE", &own, &own, |b| {
        let value = format!("text/plain;name=a.txt;digest={}", Digest::of(&bytes));
        b.meta("attachments", "A1", value)
    })?;
    let sent = p.send(by(&token, receive(letter.text))).await?;
    let got = p.send(by(&token, Request::get(path))).await?;
    p.send(Request::new("DELETE", format!("/crosstalk/tokens/{name}")))
        .await?;
    need(sent.status == 200, "200 for the message", sent.shown())?;
    need(got.status == 404, "404 for the attachment", got.shown())
}

async fn head(p: &Probe) -> Step {
    let (bytes, path) = fresh(p);
    let answer = p.send(Request::new("HEAD", path.as_str())).await?;
    need(
        answer.status == 404 && answer.body.is_empty(),
        "404 without a body",
        answer.shown(),
    )?;
    p.send(upload(&path, &bytes)).await?;
    let answer = p.send(Request::new("HEAD", path)).await?;
    need(
        answer.status == 200 && answer.body.is_empty(),
        "200 without a body",
        answer.shown(),
    )?;
    same(
        "Content-Length",
        &bytes.len().to_string(),
        answer.header("content-length"),
    )
}
