//! The web console over real sockets: who gets in, what each sees, and what pages of others can't do.

mod office;

use crate::house::{House, Plan, secret, text};
use crate::http::{Answer, Ask};
use crosstalk_console::{ConsoleCredential, LinkKey};
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::{Builder, Timestamp};
use crosstalk_protocol::relay::Role;

const ANN: &str = "human://acme.example/ann";
const BOB: &str = "human://acme.example/bob";

fn office() -> Plan {
    Plan::default()
        .config("name = \"relay.example\"\n[[route]]\nto = \"CHATGPT\"\nby = \"copy_paste\"")
        .token("ann", Role::Person, &[ANN])
        .token("bob", Role::Person, &[BOB])
        .token("ops", Role::Admin, &[])
        .token("ci", Role::Agent, &["claude://code/main"])
        .token("watch", Role::Monitor, &[])
}

/// A browser that keeps its cookie.
struct Browser<'h> {
    house: &'h House,
    cookie: String,
}

fn origin(house: &House) -> String {
    format!("http://localhost:{}", house.addr.port())
}

fn page(house: &House, method: &str, path: &str) -> Ask {
    let host = format!("localhost:{}", house.addr.port());
    Ask::new(method, path)
        .header("Host", &host)
        .accept("text/html")
}

fn encoded(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric();
    let bytes = text.bytes();
    bytes
        .map(|b| match plain(b) {
            true => char::from(b).to_string(),
            false => format!("%{b:02X}"),
        })
        .collect()
}

fn form(house: &House, path: &str, fields: &[(&str, &str)]) -> Ask {
    let fields: Vec<String> = fields
        .iter()
        .map(|(n, v)| format!("{n}={}", encoded(v)))
        .collect();
    page(house, "POST", path)
        .header("Content-Type", "application/x-www-form-urlencoded")
        .header("Origin", &origin(house))
        .header("Sec-Fetch-Site", "same-origin")
        .body(fields.join("&"))
}

/// The cookie that an answer sets.
fn cookie_of(answer: &Answer) -> Option<String> {
    let line = answer.header("set-cookie")?;
    Some(line.split(';').next().unwrap().to_owned())
}

impl<'h> Browser<'h> {
    fn sign_in(house: &'h House, name: &str) -> Self {
        let answer = house.ask(&form(house, "/sign-in", &[("token", &secret(name))]));
        assert_eq!(answer.status, 303, "{}", answer.text());
        let cookie = cookie_of(&answer).unwrap();
        Self { house, cookie }
    }

    fn ask(&self, ask: Ask) -> Answer {
        self.house.ask(&ask.header("Cookie", &self.cookie))
    }

    fn get(&self, path: &str) -> Answer {
        self.ask(page(self.house, "GET", path))
    }

    /// The CSRF token of the sign-in, from a page.
    fn csrf(&self) -> String {
        let inbox = self.get("/inbox");
        let (_, rest) = inbox.text().split_once("name=\"csrf\" value=\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    }

    fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let csrf = self.csrf();
        let fields = [&[("csrf", csrf.as_str())], fields].concat();
        self.ask(form(self.house, path, &fields))
    }
}

fn link(house: &House, credential: ConsoleCredential, at: i64) -> String {
    let file = house.data.path().join(crosstalk_relay::server::CONSOLE_KEY);
    let key = LinkKey::parse(&std::fs::read_to_string(file).unwrap()).unwrap();
    key.make(
        credential,
        [u8::try_from(at % 250).unwrap(); 8],
        house_now(at),
    )
}

fn house_now(seconds: i64) -> Timestamp {
    Timestamp::from_millis(crate::house::START + seconds * 1000)
}

#[test]
fn pages_need_a_sign_in() {
    let house = office().open();
    for path in [
        "/inbox",
        "/threads",
        "/threads/x",
        "/new",
        "/carry",
        "/paste",
        "/inspect",
    ] {
        let answer = house.ask(&page(&house, "GET", path));
        assert_eq!(answer.status, 303, "{path}");
        assert!(
            answer.header("location").unwrap().starts_with("/sign-in"),
            "{path}"
        );
    }
    let answer = house.ask(&page(&house, "GET", "/live"));
    assert_eq!(answer.status, 401);
    let first = house.ask(&page(&house, "GET", "/"));
    assert!(first.status == 200 && first.text().contains("Sign in"));
    // A token in a header is no sign-in, and a sign-in is no credential of the API.
    let asked = page(&house, "GET", "/inbox").token(&secret("ann"));
    assert_eq!(house.ask(&asked).status, 303);
    let ann = Browser::sign_in(&house, "ann");
    let api = Ask::get(&format!("/crosstalk/inbox?for={ANN}")).header("Cookie", &ann.cookie);
    assert_eq!(house.ask(&api).status, 401);
    assert!(ann.get("/").text().contains("Inbox"));
}

#[test]
fn only_tokens_of_people_agents_and_the_operator_sign_in() {
    let mut old = crate::house::token("old", Role::Person, &[ANN]);
    old.expires_at = Some(house_now(60));
    let house = office().record(old).open();
    for wrong in ["xt_nothing", "", " ", "\u{1f511}", &"x".repeat(5000)] {
        let answer = house.ask(&form(&house, "/sign-in", &[("token", wrong)]));
        assert!(
            matches!(answer.status, 400 | 401),
            "{wrong}: {}",
            answer.status
        );
        assert_eq!(cookie_of(&answer), None);
    }
    let watch = house.ask(&form(&house, "/sign-in", &[("token", &secret("watch"))]));
    assert_eq!((watch.status, cookie_of(&watch)), (403, None));
    let old = Browser::sign_in(&house, "old");
    assert_eq!(old.get("/inbox").status, 200);
    house.later(61);
    // The token has expired, and with it the sign-in.
    assert_eq!(old.get("/inbox").status, 303);
    // A token that is revoked ends what it signed in.
    let ann = Browser::sign_in(&house, "ann");
    assert_eq!(ann.get("/inbox").status, 200);
    house
        .store()
        .revoke_token("ann", "operator", house_now(62))
        .unwrap();
    assert_eq!(ann.get("/inbox").status, 303);
}

#[test]
fn a_sign_in_gets_a_new_secret_and_can_be_ended_everywhere() {
    let house = office().open();
    // Fixation: a secret that somebody put into the browser before is not the one of the sign-in.
    let planted = format!("crosstalk-{}=planted", house.addr.port());
    let sign_in = form(&house, "/sign-in", &[("token", &secret("ann"))]).header("Cookie", &planted);
    let answer = house.ask(&sign_in);
    let line = answer.header("set-cookie").unwrap();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(line.contains(part), "{line}");
    }
    assert!(
        !line.contains("planted") && !line.contains(&secret("ann")),
        "{line}"
    );
    let first = Browser {
        house: &house,
        cookie: cookie_of(&answer).unwrap(),
    };
    let fixed = Browser {
        house: &house,
        cookie: planted,
    };
    assert_eq!(
        (first.get("/inbox").status, fixed.get("/inbox").status),
        (200, 303)
    );
    // Signing in again ends the sign-in that this browser had.
    let again =
        form(&house, "/sign-in", &[("token", &secret("bob"))]).header("Cookie", &first.cookie);
    let second = Browser {
        house: &house,
        cookie: cookie_of(&house.ask(&again)).unwrap(),
    };
    assert_eq!(
        (first.get("/inbox").status, second.get("/inbox").status),
        (303, 200)
    );
    let (third, other) = (
        Browser::sign_in(&house, "bob"),
        Browser::sign_in(&house, "ann"),
    );
    assert_eq!(third.post("/sign-out", &[]).status, 303);
    assert_eq!(
        (third.get("/inbox").status, second.get("/inbox").status),
        (303, 200)
    );
    let third = Browser::sign_in(&house, "bob");
    assert_eq!(third.post("/sign-out", &[("everywhere", "1")]).status, 303);
    let left = [&second, &third, &other].map(|b| b.get("/inbox").status);
    assert_eq!(left, [303, 303, 200]);
    // Nobody uses it for half a day.
    house.later(12 * 3600);
    assert_eq!(other.get("/inbox").status, 303);
}

/// Threat 19, and CSRF: pages of other sites send no form, whatever the browser adds to it.
#[test]
fn forms_come_from_pages_of_the_relay() {
    let house = office().open();
    house.take_as("ci", &text("claude://code/main", ANN, "M1"));
    let ann = Browser::sign_in(&house, "ann");
    let csrf = ann.csrf();
    let own = origin(&house);
    let done = |csrf: &str| {
        form(
            &house,
            "/inbox/done",
            &[("csrf", csrf), ("done", &format!("{ANN}\nM1"))],
        )
    };
    let bob = Browser::sign_in(&house, "bob").csrf();
    for (what, ask, status) in [
        ("no token", done(""), 403),
        ("a token of somebody else", done(&bob), 403),
        ("no origin", done(&csrf).without("Origin"), 403),
        ("a null origin", done(&csrf).header("Origin", "null"), 403),
        (
            "another site",
            done(&csrf).header("Origin", "https://evil.example"),
            403,
        ),
        (
            "another port",
            done(&csrf).header("Origin", "http://localhost:1"),
            403,
        ),
        (
            "a cross-site form",
            done(&csrf).header("Sec-Fetch-Site", "cross-site"),
            403,
        ),
        (
            "a form of a neighbour",
            done(&csrf).header("Sec-Fetch-Site", "same-site"),
            403,
        ),
        (
            "another name",
            done(&csrf).header("Host", "evil.example"),
            403,
        ),
    ] {
        let answer = ann.ask(ask);
        assert_eq!(answer.status, status, "{what}: {}", answer.text());
        assert!(ann.get("/inbox").text().contains("&#10;M1\""), "{what}");
    }
    // Without the cookie, which `SameSite=Strict` keeps back.
    assert_eq!(house.ask(&done(&csrf)).status, 303);
    assert_eq!(ann.ask(done(&csrf).header("Origin", &own)).status, 303);
    assert!(!ann.get("/inbox").text().contains("&#10;M1\""));
    // A sign-in is a form as well: nobody signs a browser in as somebody else.
    let foreign = form(&house, "/sign-in", &[("token", &secret("ann"))]);
    let foreign = house.ask(&foreign.header("Origin", "https://evil.example"));
    assert_eq!((foreign.status, cookie_of(&foreign)), (403, None));
}

#[test]
fn no_page_stands_in_a_frame_or_runs_what_others_wrote() {
    let house = office().open();
    let ann = Browser::sign_in(&house, "ann");
    let asset = {
        let inbox = ann.get("/inbox");
        let (_, rest) = inbox.text().split_once("href=\"/assets/console.").unwrap();
        format!("/assets/console.{}", rest.split('"').next().unwrap())
    };
    for answer in [
        ann.get("/inbox"),
        ann.get("/nothing"),
        ann.get("/threads/nothing"),
        house.ask(&page(&house, "GET", "/sign-in")),
        house.ask(&page(&house, "GET", "/inbox")),
        house.ask(&form(&house, "/sign-in", &[("token", "x")])),
        house.ask(&page(&house, "GET", &asset)),
    ] {
        if answer
            .header("content-type")
            .is_some_and(|t| t.starts_with("text/plain"))
        {
            // An ERROR envelope of the API.
            continue;
        }
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.contains("frame-ancestors 'none'") && policy.contains("default-src 'none'"));
        assert!(
            !policy.contains("unsafe") && !policy.contains('*'),
            "{policy}"
        );
        assert_eq!(answer.header("x-frame-options"), Some("DENY"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    }
    let found = house.ask(&page(&house, "GET", &asset).header("Accept-Encoding", "gzip"));
    assert_eq!(
        (found.status, found.header("content-encoding")),
        (200, Some("gzip"))
    );
    assert!(found.header("cache-control").unwrap().contains("immutable"));
    assert_eq!(ann.get("/inbox").header("cache-control"), Some("no-store"));
}

#[test]
fn a_one_time_link_signs_in_once() {
    let house = Plan::default().open();
    // Every program of this machine may call the API, but a browser needs the link.
    assert_eq!(house.get("/crosstalk/agents").status, 200);
    assert_eq!(house.ask(&page(&house, "GET", "/inbox")).status, 303);
    let code = link(&house, ConsoleCredential::Local, 1);
    let shown = house.ask(&page(&house, "GET", &format!("/sign-in?link={code}")));
    assert!(shown.status == 200 && shown.text().contains(&code) && cookie_of(&shown).is_none());
    let used = house.ask(&form(&house, "/sign-in", &[("link", &code)]));
    let local = Browser {
        house: &house,
        cookie: cookie_of(&used).unwrap(),
    };
    assert!(local.get("/inbox").text().contains("local"));
    let again = house.ask(&form(&house, "/sign-in", &[("link", &code)]));
    assert_eq!((again.status, cookie_of(&again)), (401, None));
    let late = link(&house, ConsoleCredential::Local, 2);
    house.later(700);
    let late = house.ask(&form(&house, "/sign-in", &[("link", &late)]));
    assert_eq!((late.status, cookie_of(&late)), (401, None));
    // With the first token, the local person is nobody any more.
    crate::house::add_token(
        house.data.path(),
        &crate::house::token("ann", Role::Person, &[ANN]),
    );
    assert_eq!(local.get("/inbox").status, 303);
    let local = link(&house, ConsoleCredential::Local, 703);
    let answer = house.ask(&form(&house, "/sign-in", &[("link", &local)]));
    assert_eq!((answer.status, cookie_of(&answer)), (401, None));
    let ann = ConsoleCredential::Token(Digest::of(secret("ann").as_bytes()).0);
    let answer = house.ask(&form(
        &house,
        "/sign-in",
        &[("link", &link(&house, ann, 704))],
    ));
    let ann = Browser {
        house: &house,
        cookie: cookie_of(&answer).unwrap(),
    };
    assert!(ann.get("/inbox").text().contains(ANN));
}

/// Threat 38, and access: what the API denies, no page shows or does.
#[test]
fn pages_show_and_do_what_the_credential_may() {
    let house = office().open();
    let secret_body = "the launch code is 7781";
    let message = Builder::new("claude://code/main", ANN)
        .user("claude")
        .thread("T1")
        .message("M1")
        .context("for ann alone")
        .intent("REQUEST")
        .body(secret_body)
        .build()
        .unwrap();
    house.take_as("ci", &message);
    let [ann, bob, ops, ci] = ["ann", "bob", "ops", "ci"].map(|n| Browser::sign_in(&house, n));
    assert!(ann.get("/inbox").text().contains(secret_body));
    assert!(ann.get("/threads/T1").text().contains(secret_body));
    assert_eq!(ops.get("/threads/T1").status, 200);
    for path in [
        "/inbox",
        "/threads",
        "/threads/T1",
        "/inspect?id=M1",
        "/paste?question=M1",
    ] {
        let answer = bob.get(path);
        assert!(
            !answer.text().contains(secret_body) && !answer.text().contains("for ann alone"),
            "{path}"
        );
    }
    assert_eq!(
        (
            bob.get("/threads/T1").status,
            bob.get("/inspect?id=M1").status
        ),
        (404, 404)
    );
    let read = bob.get(&format!("/inbox?for={ANN}"));
    assert!(!read.text().contains(secret_body));
    // Choosing the inbox of somebody else opens nothing, and breaks nothing.
    assert_eq!(bob.post("/inbox/address", &[("address", ANN)]).status, 403);
    assert_eq!(bob.get("/inbox").status, 200);
    let done = format!("{ANN}\nM1");
    assert_eq!(bob.post("/inbox/done", &[("done", &done)]).status, 403);
    // Nobody writes in the name of somebody else, and an agent not in that of a person.
    let forged = |from: &str| {
        let envelope = Builder::new(from, "claude://code/main")
            .user("ann")
            .thread("T2")
            .message("F1")
            .context("c")
            .intent("REQUEST")
            .body("deploy");
        envelope.build().unwrap()
    };
    for (who, from) in [(&bob, ANN), (&ci, ANN), (&ci, BOB), (&ann, BOB)] {
        let answer = who.post("/send", &[("envelope", &forged(from))]);
        assert_eq!(answer.status, 403, "{}", answer.text());
    }
    assert_eq!(ann.post("/send", &[("envelope", &forged(ANN))]).status, 303);
    // Couriers are people.
    assert_eq!(ci.get("/carry").status, 403);
}

#[test]
fn a_person_reads_answers_and_finishes() {
    let house = office().open();
    house.take_as("ci", &text("claude://code/main", ANN, "M1"));
    let ann = Browser::sign_in(&house, "ann");
    let inbox = ann.get("/inbox");
    assert!(
        inbox.text().contains("<title>(1) Inbox"),
        "{}",
        inbox.text()
    );
    let (_, rest) = inbox.text().split_once("href=\"/threads/").unwrap();
    let thread = rest.split(['#', '"']).next().unwrap().to_owned();
    assert!(
        ann.get(&format!("/threads/{thread}"))
            .text()
            .contains("Answer claude")
    );
    // It was on the screen.
    assert!(ann.get("/inbox").text().contains("<title>Inbox"));
    let fields = [
        ("parent", "M1"),
        ("body", "Yes.\n[[END]]\n<b>bold</b>"),
        ("intent", "RESPOND"),
    ];
    let preview = ann.post(&format!("/threads/{thread}/reply"), &fields);
    assert_eq!(preview.status, 200, "{}", preview.text());
    assert!(preview.text().contains("&#60;b&#62;bold") && !preview.text().contains("<b>bold"));
    let (_, rest) = preview.text().split_once("readonly>\n").unwrap();
    let envelope = rest.split("</textarea>").next().unwrap();
    let envelope = envelope.replace("&#60;", "<").replace("&#62;", ">");
    let sent = ann.post("/send", &[("envelope", &envelope)]);
    assert_eq!(sent.status, 303, "{}", sent.text());
    assert_eq!(
        sent.header("location"),
        Some(format!("/threads/{thread}?did=sent").as_str())
    );
    let answered = house.inbox_as("ci", "claude://code/main");
    assert_eq!(answered.len(), 1);
    // What was answered is done.
    assert!(ann.get("/inbox").text().contains("Nothing waits for you"));
}

#[test]
fn a_person_carries_a_question_to_a_chat_and_pastes_the_answer() {
    let house = office().open();
    house.take_as("ann", &text(ANN, "CHATGPT", "Q1"));
    let ann = Browser::sign_in(&house, "ann");
    let carry = ann.get("/carry");
    assert!(
        carry.text().contains("value=\"Q1\"")
            && carry.text().contains("AI Crosstalk: I carry messages")
    );
    let said = "Sure!\n[[CHATGPT=>ME v1]]\nUser: gpt\nContext: x\nIntent: ANSWER\nBody: |\nUse PKCE.\n[[END]]";
    let review = ann.post("/paste", &[("text", said), ("question", "Q1")]);
    assert_eq!(review.status, 200, "{}", review.text());
    assert!(
        review.text().contains("repairs</span>")
            && review.text().contains("<mark class=\"repair\">")
    );
    let (_, rest) = review
        .text()
        .split_once(
            "name=\"envelope\" aria-hidden=\"true\" tabindex=\"-1\" readonly id=\"exact\">\n",
        )
        .unwrap();
    let envelope = rest.split("</textarea>").next().unwrap();
    let other = envelope.replace("PKCE", "passwords");
    let fields = |envelope| {
        [
            ("text", said),
            ("question", "Q1"),
            ("place", "0"),
            ("envelope", envelope),
        ]
    };
    assert_eq!(ann.post("/paste/file", &fields(&other)).status, 409);
    let filed = ann.post("/paste/file", &fields(envelope));
    assert_eq!(filed.status, 303, "{}", filed.text());
    let inbox = ann.get("/inbox");
    assert!(inbox.text().contains("Use PKCE."), "{}", inbox.text());
    assert!(ann.get("/carry").text().contains("Nothing to carry"));
}

/// The form of the sign-in is read for everybody: it is small, and counts before it is read.
#[test]
fn nobody_fills_the_memory_by_signing_in() {
    let house = office().config("[limits]\nrequests_per_minute = 4").open();
    let long = "x".repeat(9000);
    let answer = house.ask(&form(&house, "/sign-in", &[("token", &long)]));
    assert_eq!(answer.status, 413, "{}", answer.text());
    // No byte of the form comes, and the answer is there.
    let unread = form(&house, "/sign-in", &[]).header("Content-Length", "8000");
    for _ in 0..4 {
        house.ask(&form(&house, "/sign-in", &[("token", &long)]));
    }
    assert_eq!(house.ask(&unread).status, 429);
}

/// Programs on the same machine set cookies for every port of it.
#[test]
fn of_two_cookies_with_the_name_none_counts() {
    let house = office().open();
    let ann = Browser::sign_in(&house, "ann");
    let name = ann.cookie.split('=').next().unwrap().to_owned();
    let both = [
        format!("{}; {name}=planted", ann.cookie),
        format!("{name}=planted; {}", ann.cookie),
    ];
    for cookie in both {
        let asked = page(&house, "GET", "/inbox").header("Cookie", &cookie);
        assert_eq!(house.ask(&asked).status, 303, "{cookie}");
    }
    assert_eq!(ann.get("/inbox").status, 200);
}

/// A page of the owner leads to a one-time link. It is a file, so for the browser a page of another site.
#[test]
fn a_link_page_leads_to_the_sign_in() {
    let house = office().open();
    let data = house.data.path();
    let link = format!("{}/sign-in?link=a&x=<\">", origin(&house));
    let path = crosstalk_relay::server::write_link_page(data, &link).unwrap();
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(
        written.contains("content=\"0; url=http://localhost:") && !written.contains("=<"),
        "{written}"
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let led = |path: &str| {
        page(&house, "GET", path)
            .header("Sec-Fetch-Site", "cross-site")
            .header("Sec-Fetch-Mode", "navigate")
            .header("Sec-Fetch-Dest", "document")
    };
    assert_eq!(house.ask(&led("/sign-in?link=a")).status, 200);
    assert_eq!(house.ask(&led("/inbox")).status, 403);
}

/// A stream of changes is one of a few, and ends with its sign-in.
#[test]
fn a_sign_in_has_a_few_streams() {
    let house = office().open();
    let ann = Browser::sign_in(&house, "ann");
    let ask = || page(&house, "GET", "/live").header("Cookie", &ann.cookie);
    let mut open = Vec::new();
    for _ in 0..8 {
        let mut line = crate::http::Line::to(house.addr);
        line.send(ask().bytes());
        assert_eq!(line.line(), "HTTP/1.1 200 OK");
        open.push(line);
    }
    assert_eq!(house.ask(&ask()).status, 429);
    // Those of others are not concerned, and a place is free again when a page closes.
    assert_eq!(Browser::sign_in(&house, "ann").get("/inbox").status, 200);
    drop(open);
    crosstalk_testing::wait::wait_until("a place is free", || {
        let mut line = crate::http::Line::to(house.addr);
        line.send(ask().bytes());
        line.line() == "HTTP/1.1 200 OK"
    });
}

#[test]
fn a_stream_ends_with_the_token() {
    let house = office().open();
    let ann = Browser::sign_in(&house, "ann");
    let ask = page(&house, "GET", "/live").header("Cookie", &ann.cookie);
    let mut line = crate::http::Line::to(house.addr);
    line.send(ask.bytes());
    assert_eq!(line.line(), "HTTP/1.1 200 OK");
    assert!((0..50).any(|_| line.line() == ": crosstalk"));
    house
        .store()
        .revoke_token("ann", "operator", house_now(1))
        .unwrap();
    house.take_as("ci", &text("claude://code/main", ANN, "M1"));
    let mut said = Vec::new();
    while said.len() < 20 && said.last().is_none_or(|l| l != "0") {
        said.push(line.line());
    }
    assert!(said.iter().any(|l| l == "0"), "{said:?}");
    assert!(!said.iter().any(|l| l.contains("change")), "{said:?}");
}

/// The number of the last change that a page shows.
fn position_of(page: &Answer) -> u64 {
    let (_, rest) = page.text().split_once("data-position=\"").unwrap();
    rest.split('"').next().unwrap().parse().unwrap()
}

/// A page is made, a message comes, and only then the browser opens the stream.
#[test]
fn a_stream_tells_what_came_after_the_page_was_made() {
    let house = office().open();
    let ann = Browser::sign_in(&house, "ann");
    let shown = position_of(&ann.get("/inbox"));
    house.take_as("ci", &text("claude://code/main", ANN, "M1"));
    crosstalk_testing::wait::wait_until("the change", || position_of(&ann.get("/inbox")) > shown);
    let since = page(&house, "GET", &format!("/live?since={shown}"));
    // A browser that connects again says by itself what it was told last.
    let again = page(&house, "GET", "/live?since=999").header("Last-Event-ID", &shown.to_string());
    for ask in [since, again] {
        let mut line = crate::http::Line::to(house.addr);
        line.send(ask.header("Cookie", &ann.cookie).bytes());
        let mut said = Vec::new();
        while !said.iter().any(|l| l == "event: change") {
            said.push(line.line());
            assert_ne!(said.last().unwrap(), ": still here", "{said:?}");
        }
        assert!(said.contains(&format!("id: {shown}")), "{said:?}");
        let newest = line.line();
        let newest = newest.strip_prefix("data: ").unwrap();
        assert!(newest.parse::<u64>().unwrap() > shown);
    }
}

/// A proxy with TLS that adds no header: the browser itself says that it sees TLS.
#[test]
fn a_browser_behind_tls_gets_a_secure_cookie() {
    let house = office().open();
    let bob = Browser::sign_in(&house, "bob");
    assert!(bob.cookie.starts_with("crosstalk-"), "{}", bob.cookie);
    let secure = |path: &str, fields: &str| {
        page(&house, "POST", path)
            .header("Content-Type", "application/x-www-form-urlencoded")
            .header("Origin", &origin(&house).replace("http:", "https:"))
            .header("Sec-Fetch-Site", "same-origin")
            .body(fields)
    };
    let entered = house.ask(&secure("/sign-in", &format!("token={}", secret("ann"))));
    assert_eq!(entered.status, 303, "{}", entered.text());
    let line = entered.header("set-cookie").unwrap();
    assert!(
        line.starts_with("__Host-crosstalk=") && line.ends_with("; Secure"),
        "{line}"
    );
    // A page of a neighbour can plant the cookie without TLS, and not this one.
    let cookie = cookie_of(&entered).unwrap();
    let both = format!("{}; {cookie}", bob.cookie);
    let ann = Browser {
        house: &house,
        cookie: both,
    };
    let inbox = ann.get("/inbox");
    assert!(inbox.text().contains("data-credential=\"ann\""));
    let csrf = format!("csrf={}", ann.csrf());
    let left = ann.ask(secure("/sign-out", &csrf));
    assert_eq!(left.status, 303);
    let line = left.header("set-cookie").unwrap();
    assert!(line.starts_with("__Host-crosstalk=;"), "{line}");
    assert_eq!(
        Browser {
            house: &house,
            cookie
        }
        .get("/inbox")
        .status,
        303
    );
}

/// Without tokens, only programs of this machine are the person at it: a proxy passes on requests of others.
#[test]
fn visitors_of_a_relay_without_tokens_are_strangers() {
    let limits = "[limits]\nrequests_per_minute = 4\nlocal_requests_per_minute = 0";
    let house = Plan::default().config(limits).open();
    let visit = || page(&house, "GET", "/inbox").header("X-Forwarded-For", "203.0.113.7");
    assert_eq!(house.ask(&visit()).status, 303);
    assert!((0..50).any(|_| house.ask(&visit()).status == 429));
    // Programs of this machine are not held up by them.
    for _ in 0..6 {
        let asked = Ask::get(&format!("/crosstalk/inbox?for={ANN}"));
        assert_eq!(house.ask(&asked).status, 200);
    }
}

/// HTP-025: a relay rejects answers to them, so no page offers one.
#[test]
fn what_only_informs_offers_no_answer() {
    let house = office().open();
    let message = |id: &str, intent: &str| {
        let builder = Builder::new("claude://code/main", ANN).user("claude");
        let builder = builder.thread(format!("T-{id}")).message(id).context("c");
        builder
            .intent(intent)
            .body("The build is green.")
            .build()
            .unwrap()
    };
    house.take_as("ci", &message("B1", "BROADCAST"));
    house.take_as("ci", &message("R1", "REQUEST"));
    let ann = Browser::sign_in(&house, "ann");
    let informs = ann.get("/threads/T-B1");
    assert!(informs.text().contains("The build is green."));
    assert!(!informs.text().contains("/reply\""), "{}", informs.text());
    let again = "href=\"/new?to=claude:%2F%2Fcode%2Fmain\"";
    assert!(informs.text().contains(again), "{}", informs.text());
    assert!(ann.get("/threads/T-R1").text().contains("/reply\""));
    let fields = |parent| {
        [
            ("parent", parent),
            ("body", "Thank you."),
            ("intent", "RESPOND"),
        ]
    };
    assert_eq!(ann.post("/threads/T-B1/reply", &fields("B1")).status, 409);
    assert_eq!(ann.post("/threads/T-R1/reply", &fields("R1")).status, 200);
}

/// Somebody who has chosen no inbox yet is the person in whose name they write.
#[test]
fn a_person_without_a_token_reads_what_answers_them() {
    let house = Plan::default().open();
    // The relay makes the key of links when the console is looked at.
    assert_eq!(house.ask(&page(&house, "GET", "/inbox")).status, 303);
    let code = link(&house, ConsoleCredential::Local, 1);
    let used = house.ask(&form(&house, "/sign-in", &[("link", &code)]));
    let local = Browser {
        house: &house,
        cookie: cookie_of(&used).unwrap(),
    };
    house.take(&text(ANN, "claude://code/main", "Q1"));
    let notice = Builder::new("claude://code/main", ANN).user("claude");
    let notice = notice.thread("T1").message("N1").context("c");
    house.take(&notice.intent("BROADCAST").body("Not yet.").build().unwrap());
    let thread = local.get("/threads/T1");
    let own = format!("as <b>{ANN}</b>");
    assert!(thread.text().contains(&own), "{}", thread.text());
    assert!(local.get("/inbox").text().contains("Choose whose inbox"));
    let envelope = text(ANN, "claude://code/main", "Q2");
    let sent = local.post("/send", &[("envelope", &envelope)]);
    assert_eq!(sent.status, 303, "{}", sent.text());
    assert!(local.get("/inbox").text().contains("Not yet."));
}

/// However long a conversation is, a page has a part of it.
#[test]
fn a_long_conversation_has_pages() {
    let house = office().open();
    for number in 0..70 {
        let message = Builder::new("claude://code/main", ANN)
            .user("claude")
            .thread("T1")
            .message(format!("M{number:03}"))
            .context("c")
            .intent("REQUEST")
            .body(format!("Question {number}?"));
        house.take_as("ci", &message.build().unwrap());
    }
    let ann = Browser::sign_in(&house, "ann");
    let turns = |page: &Answer| page.text().matches("id=\"m-M").count();
    let last = ann.get("/threads/T1");
    assert_eq!(turns(&last), 50);
    assert!(last.text().contains("Question 69?") && !last.text().contains("Question 19?"));
    assert!(last.text().contains("href=\"/threads/T1?from=0\""));
    let first = ann.get("/threads/T1?from=0");
    assert_eq!(turns(&first), 50);
    assert!(first.text().contains("Question 0?") && !first.text().contains("Question 50?"));
    assert!(first.text().contains("href=\"/threads/T1?from=50\""));
}

/// What a chat wrote in the name of a person is filed on the word of the one who pasted it.
#[test]
fn an_unsigned_paste_in_the_name_of_a_person_is_marked() {
    let house = office().open();
    let ann = Browser::sign_in(&house, "ann");
    let warned = |from: &str| {
        let written = text(from, "CLAUDE", "P1");
        let review = ann.post("/paste", &[("text", written.as_str())]);
        assert_eq!(review.status, 200, "{}", review.text());
        review.text().contains("Nobody signed this.")
    };
    assert!(warned(ANN) && warned(BOB));
    assert!(!warned("CHATGPT"));
}

/// A form takes its time: who signs out meanwhile has not sent it.
#[test]
fn a_form_counts_if_its_sign_in_does_when_it_has_come() {
    let house = office().open();
    house.take_as("ci", &text("claude://code/main", ANN, "M1"));
    let ann = Browser::sign_in(&house, "ann");
    let csrf = ann.csrf();
    let done = format!("{ANN}\nM1");
    let whole = form(&house, "/inbox/done", &[("csrf", &csrf), ("done", &done)]);
    let whole = whole
        .header("Cookie", &ann.cookie)
        .header("Expect", "100-continue")
        .bytes();
    let begin = whole.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
    let (head, body) = whole.split_at(begin);
    let mut line = crate::http::Line::to(house.addr);
    line.send(head);
    // The relay asks for the form when the sign-in was found.
    assert_eq!(line.line(), "HTTP/1.1 100 Continue");
    assert_eq!(line.line(), "");
    assert_eq!(ann.post("/sign-out", &[]).status, 303);
    line.send(body);
    let answer = line.answer();
    assert_eq!(answer.status, 303);
    assert_eq!(answer.header("location"), Some("/sign-in?why=ended"));
    let again = Browser::sign_in(&house, "ann");
    assert!(again.get("/inbox").text().contains("&#10;M1\""));
}

/// What a chat gets: nothing that is hidden, and what was found out about the sender.
#[test]
fn a_chat_gets_no_hidden_characters() {
    let house = office().open();
    let carried = Builder::new(ANN, "CHATGPT")
        .user("ann")
        .thread("T2")
        .message("M2")
        .context("c")
        .intent("REQUEST")
        .body("re\u{202e}lease\u{e0041}\u{200b}")
        .build()
        .unwrap();
    house.take_as("ann", &carried);
    let ann = Browser::sign_in(&house, "ann");
    let carry = ann.get("/carry");
    let text = carry.text();
    for hidden in ['\u{202e}', '\u{e0041}', '\u{200b}'] {
        assert!(!text.contains(hidden), "{hidden:?}");
    }
    let exact = text.split_once("id=\"exact-1\"").unwrap().1;
    let exact = exact.split("</textarea>").next().unwrap();
    assert!(
        exact.contains("\nVerification: unsigned; ") && exact.contains("  release\n"),
        "{exact}"
    );
}

/// Threats 30, 31, 33 and 34: what hides, reorders or is HTML is shown as text on every page.
#[test]
fn hidden_characters_and_html_are_shown_as_text() {
    let house = office().open();
    let words = "re\u{202e}lease\u{e0041}\u{200b} <script>alert(1)</script> \"'&";
    let message = Builder::new("claude://code/main", ANN)
        .user("claude")
        .thread("T1")
        .message("M1")
        .context("<b>to\u{202e}pic</b>")
        .intent("REQUEST")
        .body(words)
        .build()
        .unwrap();
    house.take_as("ci", &message);
    let carried = Builder::new(ANN, "CHATGPT")
        .user("ann")
        .thread("T2")
        .message("M2")
        .context("c")
        .intent("REQUEST")
        .body(words)
        .build()
        .unwrap();
    house.take_as("ann", &carried);
    let ann = Browser::sign_in(&house, "ann");
    for path in ["/inbox", "/threads", "/threads/T1", "/threads/T2"] {
        let page = ann.get(path);
        assert_eq!(page.status, 200, "{path}");
        let text = page.text();
        for hidden in ['\u{202e}', '\u{e0041}', '\u{200b}'] {
            assert!(!text.contains(hidden), "{path} {hidden:?}");
        }
        assert!(
            !text.contains("<script>") && !text.contains("<b>to"),
            "{path}"
        );
    }
    let thread = ann.get("/threads/T1");
    assert!(
        thread.text().contains("<mark class=\"hidden\""),
        "{}",
        thread.text()
    );
    assert!(
        thread.text().contains("&#60;script&#62;alert(1)"),
        "{}",
        thread.text()
    );
}
