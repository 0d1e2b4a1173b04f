//! Attachments (HTP-050, HTP-051).

use super::code;
use crate::relay::CaseFunction;
use crate::relay::play::make_token;
use crate::relay::probe::{
    CaseStep, Probe, by, equal, holds, object, receive, rejected, same, word,
};
use crate::relay::wire::SuiteRequest;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::registry::ErrorCode;

pub(super) const CODE: &[(&str, CaseFunction)] = &[
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

fn upload(path: &str, bytes: &[u8]) -> SuiteRequest {
    let request = SuiteRequest::new("PUT", path).header("Content-Type", "application/octet-stream");
    request.body(bytes.to_vec())
}

async fn put(p: &Probe) -> CaseStep {
    let (bytes, path) = fresh(p);
    for _ in 0..3 {
        let answer = object(&p.send(upload(&path, &bytes)).await?, 201)?;
        equal(word(&answer, "digest"), &*Digest::of(&bytes).to_string())?;
        let size = answer.get("size").and_then(serde_json::Value::as_u64);
        equal(&size, &u64::try_from(bytes.len()).ok())?;
    }
    Ok(())
}

async fn wrong(p: &Probe) -> CaseStep {
    let (bytes, path) = fresh(p);
    let answer = p.send(upload(&path, b"something else")).await?;
    rejected(&answer, 400, ErrorCode::Format)?;
    rejected(
        &p.send(SuiteRequest::get(path.as_str())).await?,
        404,
        ErrorCode::Route,
    )?;
    let other = format!("/crosstalk/blobs/{}", Digest::of(b"something else"));
    let kept = p.send(SuiteRequest::get(other)).await?;
    kept.require(kept.status == 404, "404: nothing of it is kept")?;
    object(&p.send(upload(&path, &bytes)).await?, 201).map(drop)
}

async fn name(p: &Probe) -> CaseStep {
    for name in [
        "sha256:abc",
        "md5:900150983cd24fb0d6963f7d28e17f72",
        "..%2F..%2Fetc%2Fpasswd",
    ] {
        let answer = p
            .send(upload(&format!("/crosstalk/blobs/{name}"), b"x"))
            .await?;
        let good = matches!(answer.status, 400 | 404);
        answer.require(good, format!("400 or 404 for the name {name}"))?;
    }
    Ok(())
}

async fn bytes(p: &Probe) -> CaseStep {
    let (bytes, path) = fresh(p);
    p.send(upload(&path, &bytes)).await?;
    let answer = p.send(SuiteRequest::get(path)).await?;
    answer.require(
        answer.status == 200 && answer.body == bytes,
        "200 and the same bytes",
    )
}

async fn harmless(p: &Probe) -> CaseStep {
    let (bytes, path) = fresh(p);
    p.send(upload(&path, &bytes)).await?;
    let answer = p.send(SuiteRequest::get(path)).await?;
    same("Content-Type", "application/octet-stream", &answer.kind())?;
    answer.has_header("x-content-type-options", "nosniff")?;
    let how = answer.header("content-disposition");
    holds(
        how.starts_with("attachment"),
        "Content-Disposition: attachment",
        &how,
    )?;
    answer.has_header("etag", &format!("\"{}\"", Digest::of(&bytes)))
}

/// One caller uploads it; another one, who knows its digest, sends themselves a message that names it.
async fn named(p: &Probe) -> CaseStep {
    let (bytes, path) = fresh(p);
    let own = p.address("a");
    let (name, token) = make_token(p, "blob", "agent", std::slice::from_ref(&own)).await?;
    object(&p.send(upload(&path, &bytes)).await?, 201)?;
    let letter = p.letter("NOTE", &own, &own, |b| {
        let value = format!("text/plain;name=a.txt;digest={}", Digest::of(&bytes));
        b.meta("attachments", "A1", value)
    })?;
    let sent = p.send(by(&token, receive(letter.text))).await?;
    let got = p.send(by(&token, SuiteRequest::get(path))).await?;
    p.send(SuiteRequest::new(
        "DELETE",
        format!("/crosstalk/tokens/{name}"),
    ))
    .await?;
    sent.require(sent.status == 200, "200 for the message")?;
    got.require(got.status == 404, "404 for the attachment")
}

async fn head(p: &Probe) -> CaseStep {
    let (bytes, path) = fresh(p);
    let answer = p.send(SuiteRequest::new("HEAD", path.as_str())).await?;
    answer.require(
        answer.status == 404 && answer.body.is_empty(),
        "404 without a body",
    )?;
    p.send(upload(&path, &bytes)).await?;
    let answer = p.send(SuiteRequest::new("HEAD", path)).await?;
    answer.require(
        answer.status == 200 && answer.body.is_empty(),
        "200 without a body",
    )?;
    answer.has_header("content-length", &bytes.len().to_string())
}
