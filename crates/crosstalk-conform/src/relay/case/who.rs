//! Who may do what, and how much (HTP-060 to HTP-067).

use super::case;
use crate::relay::Case;
use crate::relay::probe::{
    Probe, Step, acked, allowed, by, inbox_path, need, object, receive, refused, same, skipped,
    word,
};
use crate::relay::wire::{Answer, Credential, Request};
use crosstalk_envelope::registry::{ErrorCode, rule};
use serde_json::{Value, json};
use std::sync::PoisonError;
use std::time::Duration;

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    case!("credential-wrong", &rule::HTTP_CREDENTIAL, "a token that nobody made is 401", wrong_token),
    case!("credential-none", &rule::HTTP_CREDENTIAL, "no token where one is needed is 401", no_token),
    case!("credential-message", &rule::HTTP_CREDENTIAL, "an unsigned message without a token is 401", no_token_sent),
    case!("speaks-for", &rule::HTTP_SPEAKS_FOR, "a token does not speak for other addresses", speaks_for),
    case!("reads-for", &rule::HTTP_SPEAKS_FOR, "a token does not read for other addresses", reads_for),
    case!("agent-no-person", &rule::HTTP_SPEAKS_FOR, "an agent's token does not speak for a person", no_person),
    case!("host-strange", &rule::HTTP_HOST_ORIGIN, "a strange Host is 403", host),
    case!("origin-strange", &rule::HTTP_HOST_ORIGIN, "a strange Origin is 403", origin),
    case!("origin-own", &rule::HTTP_HOST_ORIGIN, "the own Origin is served", own_origin),
    case!("token-life", &rule::HTTP_TOKENS, "a token is made, shown once, listed without its secret, and ended", life),
    case!("rate-told", &rule::HTTP_RATE, "a limit that is told is a number of requests and of seconds", rate_told),
    case!(heavy "rate-flood", &rule::HTTP_RATE, "too many requests are 429 with Retry-After", flood),
    case!("for-now", &rule::HTTP_FOR_NOW, "each 503 of this run has E-RATE and Retry-After", for_now),
    case!(heavy "slow-head", &rule::HTTP_SLOW, "a head that does not come is not waited for", slow_head),
    case!(heavy "slow-body", &rule::HTTP_SLOW, "a body that does not come is 408", slow_body),
    case!("metrics-monitor", &rule::HTTP_METRICS, "a monitor reads the metrics, and nothing else", metrics),
];

/// A request that needs a credential wherever any does.
fn private(p: &Probe) -> Request {
    Request::get(inbox_path(&p.address("a"), ""))
}

fn need_challenge(answer: &Answer) -> Step {
    refused(answer, 401, ErrorCode::Perm)?;
    let how = answer.header("www-authenticate");
    need(how.starts_with("Bearer"), "WWW-Authenticate: Bearer", how)
}

async fn wrong_token(p: &Probe) -> Step {
    let token = format!("xt_{}", "A".repeat(43));
    need_challenge(&p.send(by(&token, private(p))).await?)
}

async fn no_token(p: &Probe) -> Step {
    if !p.wire.has_token() {
        return skipped("no token was given, so this relay seems to need none");
    }
    need_challenge(&p.send(private(p).by(Credential::None)).await?)
}

async fn no_token_sent(p: &Probe) -> Step {
    if !p.wire.has_token() {
        return skipped("no token was given, so this relay seems to need none");
    }
    let letter = p.request(&p.address("a"), &p.address("b"))?;
    let request = receive(letter.text).by(Credential::None);
    need_challenge(&p.send(request).await?)
}

/// A new token; the name and the secret.
pub(super) async fn make(
    p: &Probe,
    what: &str,
    role: &str,
    address: &str,
) -> Step<(String, String)> {
    make_for(p, what, role, &[address]).await
}

/// A new token for some addresses; the name and the secret.
async fn make_for(p: &Probe, what: &str, role: &str, addresses: &[&str]) -> Step<(String, String)> {
    if !p.wire.has_token() {
        // The first token of a relay that needs none would lock its owner out.
        return skipped("it makes tokens, which it does only with a token of an administrator");
    }
    let name = p.word(what);
    let wanted = json!({"name": name, "role": role, "addresses": addresses});
    let request = Request::new("POST", "/crosstalk/tokens").json(&wanted);
    let answer = p.send(request.accept("application/json")).await?;
    allowed(&answer, "make tokens")?;
    let made = object(&answer, 201)?;
    let token = word(&made, "token").to_owned();
    need(
        !token.is_empty(),
        "an object with `token`",
        made.to_string(),
    )?;
    Ok((name, token))
}

pub(super) async fn end(p: &Probe, name: &str) -> Step<Answer> {
    p.send(Request::new("DELETE", format!("/crosstalk/tokens/{name}")))
        .await
}

async fn speaks_for(p: &Probe) -> Step {
    let (name, token) = make(p, "speaks", "agent", &p.address("a")).await?;
    let own = p.request(&p.address("a"), &p.address("b"))?;
    let other = p.request(&p.address("c"), &p.address("b"))?;
    let own = p.send(by(&token, receive(own.text))).await?;
    let other = p.send(by(&token, receive(other.text))).await?;
    end(p, &name).await?;
    acked(&own)?;
    refused(&other, 403, ErrorCode::Perm).map(drop)
}

async fn reads_for(p: &Probe) -> Step {
    let letter = p.request(&p.address("c"), &p.address("b"))?;
    p.take(&letter).await?;
    let (name, token) = make(p, "reads", "agent", &p.address("a")).await?;
    let ask = |path: String| p.send(by(&token, Request::get(path)));
    let own = ask(inbox_path(&p.address("a"), "")).await?;
    let inbox = ask(inbox_path(&p.address("b"), "")).await?;
    let message = ask(format!("/crosstalk/messages/{}", letter.id)).await?;
    let status = ask(format!("/crosstalk/messages/{}/status", letter.id)).await?;
    end(p, &name).await?;
    need(own.status == 200, "200 for the own inbox", own.shown())?;
    refused(&inbox, 403, ErrorCode::Perm)?;
    for answer in [message, status] {
        let hidden = matches!(answer.status, 403 | 404);
        need(hidden, "403 or 404 for a message of others", answer.shown())?;
    }
    Ok(())
}

async fn no_person(p: &Probe) -> Step {
    let (name, token) = make(p, "person", "agent", "*").await?;
    let person = p.person("ann");
    let letter = p.request(&person, &p.address("b"))?;
    let sent = p.send(by(&token, receive(letter.text))).await?;
    let read = p
        .send(by(&token, Request::get(inbox_path(&person, ""))))
        .await?;
    end(p, &name).await?;
    refused(&sent, 403, ErrorCode::Perm)?;
    refused(&read, 403, ErrorCode::Perm).map(drop)
}

async fn host(p: &Probe) -> Step {
    for host in ["rebound.invalid", "rebound.invalid:8799"] {
        let answer = p.send(private(p).header("Host", host)).await?;
        refused(&answer, 403, ErrorCode::Perm)?;
    }
    Ok(())
}

async fn origin(p: &Probe) -> Step {
    for origin in ["https://evil.invalid", "null"] {
        let answer = p.send(private(p).header("Origin", origin)).await?;
        refused(&answer, 403, ErrorCode::Perm)?;
    }
    let to = p.address("b");
    let letter = p.request(&p.address("a"), &to)?;
    let answer = p
        .send(receive(letter.text).header("Origin", "http://evil.invalid"))
        .await?;
    refused(&answer, 403, ErrorCode::Perm)?;
    let kept = p.inbox_ids(&to).await?;
    need(kept.is_empty(), "an empty inbox", format!("{kept:?}"))
}

async fn own_origin(p: &Probe) -> Step {
    let answer = p
        .send(private(p).header("Origin", p.wire.base.origin()))
        .await?;
    need(answer.status == 200, "200", answer.shown())
}

async fn life(p: &Probe) -> Step {
    let (name, token) = make(p, "life", "agent", &p.address("a")).await?;
    let used = p.send(by(&token, private(p))).await?;
    let listed = p
        .send(Request::get("/crosstalk/tokens").accept("application/json"))
        .await?;
    let ended = end(p, &name).await?;
    let after = p.send(by(&token, private(p))).await?;
    need(used.status == 200, "200 with the new token", used.shown())?;
    let list = object(&listed, 200)?;
    let own = list.get("tokens").and_then(Value::as_array);
    let own = own.into_iter().flatten().find(|t| word(t, "name") == name);
    need(own.is_some(), format!("{name} in the list"), listed.shown())?;
    need(
        !listed.text().contains(&token),
        "a list without the secret",
        "it is there",
    )?;
    need(ended.status == 204, "204", ended.shown())?;
    need_challenge(&after)
}

async fn metrics(p: &Probe) -> Step {
    let path = || Request::get("/metrics");
    let (name, token) = make_for(p, "monitor", "monitor", &[]).await?;
    let read = p.send(by(&token, path())).await?;
    // Any other credential may ask for this.
    let agents = p
        .send(by(&token, Request::get("/crosstalk/agents")))
        .await?;
    let letter = p.request(&p.address("a"), &p.address("b"))?;
    let sent = p.send(by(&token, receive(letter.text))).await?;
    let admin = p.send(path()).await?;
    end(p, &name).await?;
    if admin.status == 404 {
        return skipped("this relay has no metrics");
    }
    for (who, answer) in [("a monitor", read), ("an administrator", admin)] {
        need(
            answer.status == 200,
            format!("200 for {who}"),
            answer.shown(),
        )?;
        let kind = answer.header("content-type");
        let is_metrics = kind.starts_with("text/plain") && kind.contains("version=0.0.4");
        need(is_metrics, "text/plain; version=0.0.4", kind)?;
    }
    refused(&agents, 403, ErrorCode::Perm)?;
    refused(&sent, 403, ErrorCode::Perm).map(drop)
}

/// The limit that an answer tells: requests and seconds.
fn told(answer: &Answer) -> Option<(u64, u64)> {
    let policy = answer.header("ratelimit-policy");
    let number = |key: &str| {
        let mut parts = policy.split(';').map(str::trim);
        parts.find_map(|part| part.strip_prefix(key)?.strip_prefix('=')?.parse().ok())
    };
    Some((number("q")?, number("w")?))
}

async fn rate_told(p: &Probe) -> Step {
    let answer = p.send(private(p)).await?;
    if !answer.has("ratelimit-policy") {
        return skipped("the relay tells no limit");
    }
    let policy = answer.header("ratelimit-policy");
    need(told(&answer).is_some(), "\"requests\";q=600;w=60", policy)
}

async fn flood(p: &Probe) -> Step {
    let told = told(&p.send(private(p)).await?).map(|(requests, _)| requests);
    let most = told.map_or(3000, |n| n + n / 2 + 100).min(50_000);
    for _ in 0..most {
        let answer = p.wire.send(private(p)).await?;
        if answer.status != 429 {
            continue;
        }
        let error = refused(&answer, 429, ErrorCode::Rate)?;
        let wait = answer.header("retry-after");
        need(wait.parse::<u64>().is_ok(), "Retry-After in seconds", wait)?;
        return same(
            "Retry-After in `meta: error`",
            wait,
            error.meta("error", "Retry-After").unwrap_or("none"),
        );
    }
    match told {
        Some(limit) => need(
            false,
            format!("429 after {limit} requests"),
            format!("none after {most}"),
        ),
        None => skipped(format!(
            "the relay tells no limit, and {most} requests did not reach one"
        )),
    }
}

async fn for_now(p: &Probe) -> Step {
    let came = p.wire.unavailable.lock();
    let came = came.unwrap_or_else(PoisonError::into_inner).clone();
    if came.is_empty() {
        return skipped("the relay was never in trouble while the suite ran");
    }
    for answer in came {
        let wait = answer.header("retry-after");
        need(
            wait.parse::<u64>().is_ok(),
            "503 with Retry-After in seconds",
            answer.shown(),
        )?;
        if answer.kind() == "text/plain" {
            refused(&answer, 503, ErrorCode::Rate)?;
        }
    }
    Ok(())
}

async fn slow(p: &Probe, rest: &str) -> Step<String> {
    let head = format!(
        "POST /crosstalk/receive HTTP/1.1\r\nHost: {}\r\n{rest}",
        p.wire.base.authority()
    );
    let patience = Duration::from_secs(120);
    let (ended, meanwhile) =
        tokio::join!(p.wire.raw(head.as_bytes(), patience), p.send(private(p)));
    let meanwhile = meanwhile?;
    need(
        meanwhile.status == 200,
        "200 for others meanwhile",
        meanwhile.shown(),
    )?;
    let ended = ended?;
    need(
        ended.is_over,
        "the end of the connection within 120 s",
        "it is still open",
    )?;
    Ok(ended.text)
}

async fn slow_head(p: &Probe) -> Step {
    let said = slow(p, "Content-Type: text/pl").await?;
    let good = said.is_empty() || said.starts_with("HTTP/1.1 408");
    need(
        good,
        "408, or the end without a word",
        said.lines().next().unwrap_or_default(),
    )
}

async fn slow_body(p: &Probe) -> Step {
    let said = slow(
        p,
        "Content-Type: text/plain\r\nContent-Length: 500\r\n\r\n[[A→B v1]]\n",
    )
    .await?;
    // Who it is may be asked before the body is read.
    let good = ["HTTP/1.1 408", "HTTP/1.1 401"]
        .iter()
        .any(|s| said.starts_with(s));
    need(
        good,
        "408",
        said.lines().next().unwrap_or("the end without a word"),
    )
}
