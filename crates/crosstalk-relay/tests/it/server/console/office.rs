//! The pages about decisions, records and the relay: each shows what the API gives to the same credential, and does it once.

use super::{ANN, BOB, Browser, form, origin, page};
use crate::house::{House, Plan, key, letter, secret, signed, text};
use crate::http::Ask;
use crosstalk_envelope::{Algorithm, Builder, PrivateKey};
use crosstalk_protocol::Origin;
use crosstalk_testing::wait::wait_for;
use serde_json::json;

const HOLD: &str = "[[hold]]\nwhy = \"agents to people\"\nfrom = [\"claude://*\"]\nto = [\"human://acme.example/bob\"]\n";
const CI: &str = "claude://code/main";
const POLL: &str = "01M4T8PA00S86Z5JATM52C3M7Z";

/// What the pages get in every field: HTML, a URL for an attribute, characters that hide or reorder.
const HOSTILE: &str = "<img src=x onerror=alert(1)>\"'&\u{202e}\u{e0041}\u{200b}";
const HIDDEN: [char; 3] = ['\u{202e}', '\u{e0041}', '\u{200b}'];

fn plan() -> Plan {
    super::office().config(HOLD).key(key())
}

/// The text of a page without its markup for a test: the entities of the templates as characters.
fn plain(text: &str) -> String {
    let entities = [
        ("&#60;", "<"),
        ("&#62;", ">"),
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&#38;", "&"),
    ];
    entities
        .into_iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// The value of a hidden field of a page.
fn field(page: &str, name: &str) -> String {
    let start = format!("name=\"{name}\" value=\"");
    let (_, rest) = page
        .split_once(&start)
        .unwrap_or_else(|| panic!("no field {name}: {page}"));
    plain(rest.split('"').next().unwrap())
}

/// The exact envelope of a preview.
fn exact(page: &str) -> String {
    let (_, rest) = page
        .split_once("id=\"exact\"")
        .unwrap_or_else(|| panic!("no envelope: {page}"));
    let (_, rest) = rest.split_once(">\n").unwrap();
    plain(rest.split("</textarea>").next().unwrap())
}

fn held(house: &House, id: &str) {
    house.take_as("ci", &text(CI, BOB, id));
}

/// The page of the first entry of the log about a message.
fn entry_of(browser: &Browser<'_>, id: &str) -> String {
    let export = browser.get(&format!("/audit/export?message={id}"));
    let line = export.text().lines().next().expect("an entry");
    let entry: serde_json::Value = serde_json::from_str(line).unwrap();
    format!("/audit/{}", entry["index"])
}

/// A poll of Ann to Bob and an agent.
fn poll() -> String {
    Builder::new(ANN, "TEAM")
        .user("ann")
        .thread("T-poll")
        .message(POLL)
        .context("release")
        .intent("POLL")
        .meta("routing", "Targets", format!("[\"{BOB}\", \"{CI}\"]"))
        .meta("poll", "Type", "plurality")
        .meta("poll", "Options", "Friday | Monday")
        .body("When?")
        .build()
        .unwrap()
}

fn answer(from: &str, id: &str, body: &str) -> Builder {
    Builder::new(from, ANN)
        .user("x")
        .thread("T-poll")
        .parent(POLL)
        .message(id)
        .context("release")
        .intent("RESPOND")
        .body(body)
}

const ADMIN: [&str; 6] = [
    "/audit", "/audit/0", "/trust", "/status", "/dead", "/tokens",
];

/// What the API denies to a credential, the page about it denies in the same words.
#[test]
fn pages_of_the_operator_answer_as_the_api_does() {
    let house = plan().open();
    held(&house, "M1");
    house.take_as("ann", &poll());
    house.take_as(
        "ann",
        &letter(ANN, CI, "C-1")
            .meta("privacy", "Consent", "explicit_yes_2025-10-09T16:00Z")
            .meta("privacy", "Scope", "medical")
            .meta("privacy", "Consent-ID", "consent-1")
            .build()
            .unwrap(),
    );
    let [ann, bob, ops, ci] = ["ann", "bob", "ops", "ci"].map(|n| Browser::sign_in(&house, n));
    let api = |who: &str, path: &str| {
        let path = format!("/crosstalk{path}");
        house.ask(
            &Ask::get(&path)
                .token(&secret(who))
                .accept("application/json"),
        )
    };
    for path in ADMIN {
        assert_eq!(
            ops.get(path).status,
            200,
            "{path}: {}",
            ops.get(path).text()
        );
        for (who, browser) in [("ann", &ann), ("ci", &ci)] {
            let answer = browser.get(path);
            assert_eq!(answer.status, 403, "{who} {path}");
            let of_api = match path {
                "/status" => api(who, "/routes"),
                "/audit" | "/audit/0" => api(who, "/audit/entries"),
                other => api(who, other),
            };
            assert_eq!(of_api.status, 403, "{who} {path}");
        }
    }
    let detail = api("ann", "/tokens").json()["error"]["detail"]
        .as_str()
        .unwrap()
        .to_owned();
    let first = detail.split(['\n', '.']).next().unwrap();
    assert!(plain(ann.get("/tokens").text()).contains(first), "{first}");
    // Held messages, polls and consents are for their parties, the operator, and nobody else.
    for (path, sees, not) in [
        ("/approvals/M1", vec![&ops, &bob, &ann], vec![(&ci, 403)]),
        (
            &*format!("/polls/{POLL}"),
            vec![&ops, &ann, &bob, &ci],
            vec![],
        ),
        (
            "/consents/consent-1",
            vec![&ops, &ann, &ci],
            vec![(&bob, 404)],
        ),
    ] {
        for browser in sees {
            assert_eq!(browser.get(path).status, 200, "{path}");
        }
        for (browser, status) in not {
            assert_eq!(browser.get(path).status, status, "{path}");
        }
    }
    assert_eq!(bob.get("/approvals/nothing").status, 404);
    assert!(!bob.get("/consents?all=1").text().contains("consent-1"));
    assert!(ann.get("/consents?all=1").text().contains("consent-1"));
    // The navigation lists what the credential may open.
    assert!(ops.get("/inbox").text().contains("href=\"/tokens\""));
    assert!(!ann.get("/inbox").text().contains("href=\"/tokens\""));
}

/// Threats 30, 31, 33 and 34: whatever a field says, a page shows it as text, and nothing of it is hidden.
#[test]
fn hostile_texts_stay_texts_on_every_page() {
    let house = plan()
        .pin(
            "eve\"'&@x",
            &PrivateKey::from_seed(Algorithm::Ed25519, &[3; 32]).unwrap(),
            HOSTILE,
        )
        .open();
    let hostile = |from: &str, to: &str, id: &str| {
        Builder::new(from, to)
            .user("x")
            .thread(format!("T-{id}"))
            .message(id)
            .context(HOSTILE)
            .intent("REQUEST")
            .body(HOSTILE)
    };
    house.take_as("ci", &hostile(CI, BOB, "M\"'&1").build().unwrap());
    let consent = hostile(ANN, CI, "C-1")
        .intent("BROADCAST")
        .meta("privacy", "Consent", "explicit_yes_2025-10-09T16:00Z")
        .meta("privacy", "Scope", "<img src=x onerror=alert(1)>\"'&")
        .meta("privacy", "Consent-ID", "<img src=x>\"'&")
        .build()
        .unwrap();
    house.take_as("ann", &consent);
    let asked = poll()
        .replace(
            "Friday | Monday",
            "<img src=x onerror=alert(1)>\"'& | Monday",
        )
        .replace("context: release", "context: <img src=x onerror=alert(1)>")
        .replace("When?", "<img src=x onerror=alert(1)>\"'& When?");
    house.take_as("ann", &asked);
    house.take_as("bob", &answer(BOB, "A1", HOSTILE).build().unwrap());
    house.take_as("ann", &text(ANN, "CHATGPT", "M-carried"));
    let carried =
        json!({"to": "CHATGPT", "state": "failed", "reason": "<img src=x onerror=alert(1)>\"'&"});
    let failed = Ask::json("POST", "/crosstalk/courier/M-carried", &carried).token(&secret("ann"));
    assert_eq!(house.ask(&failed).status, 200);
    house.settle();
    let ops = Browser::sign_in(&house, "ops");
    let held = "/approvals/M%22%27%261";
    let entry = entry_of(&ops, "M%22%27%261");
    let consent = "/consents/%3Cimg%20src%3Dx%3E%22%27%26";
    for (path, shown) in [
        ("/approvals", "<img src=x onerror=alert(1)>"),
        (held, "<img src=x onerror=alert(1)>\"'&"),
        ("/polls", "<img src=x onerror=alert(1)>"),
        (
            &*format!("/polls/{POLL}"),
            "<img src=x onerror=alert(1)>\"'& When?",
        ),
        ("/consents?all=1", "<img src=x>\"'&"),
        (consent, "onerror=alert(1)>\"'&"),
        ("/audit", "M\"'&1"),
        (&*entry, "M\"'&1"),
        (
            "/audit?message=%3Cimg%20src%3Dx%3E%22&kind=%22%3E%3Cimg",
            "<img src=x>\"",
        ),
        ("/dead", "<img src=x onerror=alert(1)>\"'&"),
        ("/trust", "eve\"'&@x"),
        ("/trust", "<img src=x onerror=alert(1)>\"'&\\u{202e}"),
        ("/search?q=%3Cimg%20src%3Dx%3E%22", "<img src=x>\""),
        (
            "/search?q=onerror",
            "<img src=x onerror=alert(1)>\"'&\\u{202e}",
        ),
        ("/tokens", "claude://code/main"),
        ("/status", "CHATGPT"),
    ] {
        let answer = ops.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        let text = answer.text();
        assert!(
            plain(text).contains(shown),
            "{path} does not show {shown}: {text}"
        );
        assert!(!text.contains("<img src=x"), "{path}: {text}");
        for hidden in HIDDEN {
            assert!(!text.contains(hidden), "{path} hides {hidden:?}");
        }
        // No attribute that the policy would block, and none that a value has ended.
        assert!(
            !text.contains(" style=\"") && !text.contains(" onerror=\""),
            "{path}"
        );
    }
    // A command that a person may copy is one argument for a shell.
    assert!(plain(ops.get(held).text()).contains("crosstalk approve 'M\"'\\''&1'"));
    // What a form sends back is shown as text as well.
    for (path, fields) in [
        (
            "/polls/new",
            vec![("from", ANN), ("question", HOSTILE), ("voters", HOSTILE)],
        ),
        (
            "/consents/grant",
            vec![
                ("from", ANN),
                ("to", HOSTILE),
                ("scope", "pii"),
                ("note", HOSTILE),
            ],
        ),
        (
            "/trust/pin",
            vec![("id", HOSTILE), ("key", HOSTILE), ("senders", HOSTILE)],
        ),
        (
            "/tokens",
            vec![
                ("name", HOSTILE),
                ("role", "person"),
                ("addresses", HOSTILE),
            ],
        ),
    ] {
        let answer = ops.post(path, &fields);
        let text = answer.text();
        assert!(matches!(answer.status, 200 | 400), "{path}: {text}");
        assert!(!text.contains("<img src=x"), "{path}: {text}");
    }
}

/// CSRF: a form without the token of the sign-in, or from another site, changes nothing.
#[test]
fn forms_of_the_office_need_the_token_of_the_sign_in() {
    let house = plan().open();
    held(&house, "M1");
    house.take_as("ann", &poll());
    let ops = Browser::sign_in(&house, "ops");
    let csrf = ops.csrf();
    let close = format!("/polls/{POLL}/close");
    let record = key().public().record();
    let forms: [(&str, Vec<(&str, &str)>); 9] = [
        ("/approvals/M1", vec![("decision", "approve")]),
        (
            "/polls/new",
            vec![("from", ANN), ("question", "?"), ("voters", "X")],
        ),
        (&close, vec![]),
        (
            "/consents/grant",
            vec![("from", ANN), ("to", "X"), ("scope", "pii")],
        ),
        ("/dead/M1/requeue", vec![]),
        ("/quarantine/retry", vec![]),
        ("/trust/pin", vec![("id", "x@y"), ("key", &record)]),
        ("/tokens", vec![("name", "evil"), ("role", "admin")]),
        ("/tokens/ann/revoke", vec![]),
    ];
    for (path, fields) in &forms {
        let bare = ops.ask(form(&house, path, fields));
        assert_eq!(bare.status, 403, "{path}: {}", bare.text());
        let with = [&[("csrf", csrf.as_str())], fields.as_slice()].concat();
        let foreign = form(&house, path, &with).header("Origin", "https://evil.example");
        assert_eq!(ops.ask(foreign).status, 403, "{path}");
        let foreign = form(&house, path, &with).header("Sec-Fetch-Site", "cross-site");
        assert_eq!(ops.ask(foreign).status, 403, "{path}");
        // A link or an image of another page is a GET: nothing happens by one.
        assert_ne!(ops.get(path).status, 303, "{path}");
    }
    assert!(ops.get("/approvals").text().contains("/approvals/M1"));
    assert!(ops.get(&format!("/polls/{POLL}")).text().contains(">open<"));
    let tokens = ops.get("/tokens");
    assert!(!tokens.text().contains("evil") && !tokens.text().contains("revoked"));
    assert!(ops.get("/trust").text().contains("No keys yet"));
    assert_eq!(
        origin(&house),
        format!("http://localhost:{}", house.addr.port())
    );
}

#[test]
fn a_held_message_is_decided_once_and_as_it_was_shown() {
    let house = plan().open();
    for id in ["M1", "M2", "M3"] {
        held(&house, id);
    }
    let [bob, ops] = ["bob", "ops"].map(|n| Browser::sign_in(&house, n));
    let list = bob.get("/approvals");
    assert!(list.text().contains("agents to people") && list.text().contains("/approvals/M1"));
    assert!(
        ops.get("/inbox").text().contains(">3<"),
        "the number in the navigation"
    );
    let shown = bob.get("/approvals/M1");
    let shown = shown.text();
    for part in [
        "agents to people",
        "Are they ripe?",
        "[[claude://code/main→",
        "not signed",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let (digest, raw) = (field(shown, "digest"), field(shown, "raw"));
    // The digests of another message decide nothing.
    let other = bob.get("/approvals/M2");
    let wrong = field(other.text(), "raw");
    for fields in [
        [
            ("digest", digest.as_str()),
            ("raw", wrong.as_str()),
            ("decision", "approve"),
        ],
        [
            ("digest", wrong.as_str()),
            ("raw", raw.as_str()),
            ("decision", "approve"),
        ],
    ] {
        let answer = bob.post("/approvals/M1", &fields);
        assert_eq!(answer.status, 409, "{}", answer.text());
        assert!(answer.text().contains("other digests") && answer.text().contains(">Approve<"));
    }
    let answer = bob.post("/approvals/M1", &[("decision", "approve")]);
    assert_eq!(answer.status, 400);
    // A rejection without a reason is asked for one.
    let reject = [
        ("digest", digest.as_str()),
        ("raw", raw.as_str()),
        ("decision", "reject"),
    ];
    let answer = bob.post("/approvals/M1", &reject);
    assert!(answer.status == 400 && answer.text().contains("needs a reason"));
    // Two people press the button at once: one decides, and the other is told.
    let approve = [
        ("digest", digest.as_str()),
        ("raw", raw.as_str()),
        ("decision", "approve"),
    ];
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let both =
            [&bob, &ops].map(|b| scope.spawn(move || b.post("/approvals/M1", &approve).status));
        both.map(|one| one.join().unwrap()).to_vec()
    });
    let mut sorted = statuses.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [303, 409], "{statuses:?}");
    let after = ops.get("/approvals/M1");
    assert!(after.text().contains(">approved<") && !after.text().contains(">Approve<"));
    let again = bob.post("/approvals/M1", &approve);
    assert!(
        again.status == 409 && again.text().contains("already approved"),
        "{}",
        again.text()
    );
    assert!(bob.get("/inbox").text().contains("Are they ripe?"));
    // A rejection with its reason, which the sender reads.
    let shown = bob.get("/approvals/M3");
    let (digest, raw) = (field(shown.text(), "digest"), field(shown.text(), "raw"));
    let fields = [
        ("digest", &*digest),
        ("raw", &*raw),
        ("decision", "reject"),
        ("reason", "not yet"),
    ];
    assert_eq!(bob.post("/approvals/M3", &fields).status, 303);
    let after = bob.get("/approvals/M3");
    assert!(after.text().contains(">rejected<") && after.text().contains("not yet"));
    // The sender itself does not decide, and sees no page about it.
    assert_eq!(
        Browser::sign_in(&house, "ci").get("/approvals/M2").status,
        403
    );
}

#[test]
fn a_poll_is_opened_counted_corrected_and_closed() {
    let house = plan().open();
    let [ann, bob] = ["ann", "bob"].map(|n| Browser::sign_in(&house, n));
    assert!(ann.get("/polls").text().contains("No polls yet"));
    let voters = format!("{BOB}\n{CI}");
    let fields = [
        ("from", ANN),
        ("question", "When do we release?"),
        ("options", "Friday\nMonday"),
        ("voters", voters.as_str()),
        ("quorum", "2"),
        ("deadline", "2h"),
    ];
    for (name, value, what) in [
        ("options", "Friday", "2 to"),
        ("options", "Friday\nFriday", "twice"),
        ("quorum", "3", "this quorum"),
        ("quorum", "many", "can&#39;t be read"),
        ("deadline", "soon", "can&#39;t be read"),
        ("voters", "", "no voters"),
    ] {
        let changed: Vec<_> = fields
            .iter()
            .map(|f| if f.0 == name { (name, value) } else { *f })
            .collect();
        let answer = ann.post("/polls/new", &changed);
        assert!(
            answer.status == 400 && answer.text().contains(what),
            "{what}: {}",
            answer.text()
        );
    }
    let preview = ann.post("/polls/new", &fields);
    assert_eq!(preview.status, 200, "{}", preview.text());
    let command = "crosstalk poll new 'When do we release?' --option Friday --option Monday";
    assert!(plain(preview.text()).contains(command));
    let envelope = exact(preview.text());
    // Nothing was sent yet.
    assert!(ann.get("/polls").text().contains("No polls yet"));
    let sent = ann.post("/send", &[("envelope", &envelope)]);
    assert_eq!(sent.status, 303, "{}", sent.text());
    let place = sent.header("location").unwrap().to_owned();
    let (path, did) = place.split_once('?').unwrap();
    assert!(
        path.starts_with("/polls/") && did == "did=opened",
        "{place}"
    );
    let poll = path.strip_prefix("/polls/").unwrap().to_owned();
    let document = crate::http::strict(&envelope);
    let thread = document.envelope().thread.unwrap().to_owned();
    let reply = |from: &str, id: &str, body: &str| {
        let builder = Builder::new(from, ANN)
            .user("x")
            .thread(&thread)
            .parent(&poll)
            .message(id);
        let builder = builder.context("release").intent("RESPOND").body(body);
        builder.build().unwrap()
    };
    house.take_as("bob", &reply(BOB, "A1", "Friday\n\nThe tests are green."));
    house.take_as(
        "ci",
        &reply(
            CI,
            "A2",
            "I would rather have it later, at the start of the week.",
        ),
    );
    house.settle();
    let shown = ann.get(path);
    let shown = shown.text();
    for part in [
        "Friday",
        "1 of 2 counted",
        "The tests are green.",
        "Not counted",
        "start of the week",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // The reasons are for the asker.
    assert!(!bob.get(path).text().contains("The tests are green."));
    // What the second one means: Monday is the second option.
    let answer = field(shown, "answer");
    let count = format!("{path}/count");
    let wrong = ann.post(&count, &[("answer", "A2"), ("choice", "7")]);
    assert_eq!(wrong.status, 400);
    let preview = ann.post(&count, &[("answer", &*answer), ("choice", "1")]);
    assert!(
        plain(preview.text()).contains("crosstalk poll count"),
        "{}",
        preview.text()
    );
    let named = if answer == "A1" {
        "A2".to_owned()
    } else {
        answer
    };
    let preview = match named == "A2" {
        true => ann.post(&count, &[("answer", "A2"), ("choice", "1")]),
        false => preview,
    };
    let sent = ann.post("/send", &[("envelope", &exact(preview.text()))]);
    assert_eq!(
        sent.header("location"),
        Some(&*format!("{path}?did=counted")),
        "{}",
        sent.text()
    );
    house.settle();
    let shown = ann.get(path);
    assert!(
        shown.text().contains("2 of 2 counted") && shown.text().contains("corrected by"),
        "{}",
        shown.text()
    );
    // Bob may read the poll, and neither correct nor close it.
    assert!(!bob.get(path).text().contains("Close the poll"));
    let close = format!("{path}/close");
    assert_eq!(bob.post(&close, &[]).status, 403);
    assert_eq!(ann.post(&close, &[]).status, 303);
    assert!(
        ann.get(path).text().contains("closed") && !ann.get(path).text().contains("Close the poll")
    );
}

/// Threat 21: a REVOKE counts with the signature of the granter only; then the text is gone.
#[test]
fn a_revoked_consent_takes_its_text_away() {
    let house = plan().pin("ann@acme.example", &key(), ANN).open();
    let ann = Browser::sign_in(&house, "ann");
    assert!(ann.get("/consents").text().contains("No consents in force"));
    let fields = [
        ("from", ANN),
        ("to", CI),
        ("scope", "medical"),
        ("other", "sleep"),
        ("expires", "30d"),
        ("note", "My blood count is fine."),
    ];
    let preview = ann.post("/consents/grant", &fields);
    assert!(
        plain(preview.text())
            .contains("crosstalk consent grant claude://code/main --scope medical --scope sleep"),
        "{}",
        preview.text()
    );
    let granted = signed(&exact(preview.text()), &key(), "ann@acme.example");
    let sent = ann.post("/send", &[("envelope", &granted)]);
    assert_eq!(sent.status, 303, "{}", sent.text());
    let place = sent.header("location").unwrap().to_owned();
    let path = place.split('?').next().unwrap();
    assert!(path.starts_with("/consents/"), "{place}");
    let id = crate::http::strict(&granted)
        .envelope()
        .message
        .unwrap()
        .to_owned();
    house.settle();
    let shown = ann.get(path);
    for part in [
        "medical",
        "sleep",
        "holds",
        "1 kept, 0 erased",
        "pinned for the granter",
    ] {
        assert!(shown.text().contains(part), "{part}: {}", shown.text());
    }
    let read =
        |who: &str| house.ask(&Ask::get(&format!("/crosstalk/messages/{id}")).token(&secret(who)));
    assert!(read("ci").text().contains("blood count"));
    let preview = ann.post(&format!("{path}/revoke"), &[("reason", "it's over")]);
    assert!(
        plain(preview.text()).contains("--reason 'it'\\''s over'"),
        "{}",
        preview.text()
    );
    assert!(
        preview.text().contains("It needs your signature")
            && !preview.text().contains(">Revoke and erase<")
    );
    let revoke = exact(preview.text());
    let unsigned = ann.post("/send", &[("envelope", &revoke)]);
    assert!(unsigned.status >= 400, "{}", unsigned.status);
    assert!(read("ci").text().contains("blood count"));
    let revoke = signed(&revoke, &key(), "ann@acme.example");
    let sent = ann.post("/send", &[("envelope", &revoke)]);
    assert_eq!(
        sent.header("location"),
        Some(&*format!("{path}?did=revoked")),
        "{}",
        sent.text()
    );
    house.settle();
    let shown = wait_for("the consent is shown as revoked", || {
        let shown = ann.get(path).text().to_owned();
        shown.contains("0 kept, 1 erased").then_some(shown)
    });
    assert!(
        shown.contains(">revoked<") && plain(&shown).contains("it's over"),
        "{shown}"
    );
    assert!(!read("ci").text().contains("blood count"));
}

#[test]
fn keys_are_compared_pinned_and_distrusted() {
    let other = PrivateKey::from_seed(Algorithm::Ed25519, &[9; 32]).unwrap();
    let house = plan()
        .pin_as(Origin::FirstContact, "ann@acme.example", &key(), ANN)
        .open();
    let ops = Browser::sign_in(&house, "ops");
    let shown = ops.get("/trust");
    let fingerprint = key().public().fingerprint().to_string();
    let first = fingerprint.split_whitespace().next().unwrap();
    assert!(
        shown.text().contains(first) && shown.text().contains("I compared it"),
        "{}",
        shown.text()
    );
    let record = key().public().record();
    let pin = |key: &str, replace: bool| {
        let mut fields = vec![("id", "ann@acme.example"), ("key", key), ("senders", ANN)];
        if replace {
            fields.push(("replace", "1"));
        }
        ops.post("/trust/pin", &fields)
    };
    // The card binds the senders that it shows: another one, which came meanwhile, is not bound unseen.
    let card = "name=\"sender\" value=\"human:%2F%2Facme.example%2Fann\"";
    assert!(shown.text().contains(card), "{}", shown.text());
    let id = ("id", "ann@acme.example");
    let unseen = ops.post("/trust/pin", &[id, ("key", &record)]);
    assert_eq!(unseen.status, 409, "{}", unseen.text());
    assert!(plain(unseen.text()).contains(&format!("used by {ANN} as well")));
    assert!(unseen.text().contains("I compared it") && unseen.text().contains(card));
    let sender = ("sender", "human:%2F%2Facme.example%2Fann");
    let card = ops.post("/trust/pin", &[id, ("key", &record), sender]);
    assert_eq!(card.status, 303, "{}", card.text());
    assert_eq!(pin(&record, false).status, 303);
    let shown = ops.get("/trust");
    assert!(shown.text().contains("pinned by a person") && !shown.text().contains("I compared it"));
    // Another key of the same id is shown beside the known one, and takes its place only if a person says so.
    let others = other.public().record();
    let refused = pin(&others, false);
    assert_eq!(refused.status, 409);
    assert!(
        refused.text().contains("has another key already")
            && refused.text().contains("name=\"replace\"")
    );
    assert!(
        plain(refused.text()).contains(&fingerprint),
        "{}",
        refused.text()
    );
    assert_eq!(pin(&others, true).status, 303);
    assert!(
        house
            .relay
            .trust()
            .entry("ann@acme.example", &other.public())
            .is_some()
    );
    let distrust = [
        ("id", "ann@acme.example"),
        ("key", others.as_str()),
        ("reason", "she lost it"),
    ];
    assert_eq!(ops.post("/trust/distrust", &distrust).status, 303);
    let shown = ops.get("/trust");
    assert!(shown.text().contains("distrusted") && shown.text().contains("she lost it"));
    // It counts at once: what it signed is not from Ann any more.
    let sent = signed(
        &text(ANN, CI, "01M7D00000000000000000000A"),
        &other,
        "ann@acme.example",
    );
    let answer = house.ask(&Ask::send(&sent).token(&secret("ann")));
    assert!(answer.status >= 400, "{}", answer.text());
    // The same over the API, for the operator alone.
    let pin = json!({"id": "ann@acme.example", "key": record});
    for (who, status) in [("ann", 403), ("ci", 403), ("ops", 409)] {
        let ask = Ask::json("POST", "/crosstalk/trust/pin", &pin).token(&secret(who));
        assert_eq!(house.ask(&ask).status, status, "{who}");
    }
    for (id, key) in [
        ("a b", record.as_str()),
        ("ann@acme.example", "ed25519:pk=x"),
        (
            "did:key:z6Mkf5rGMoatrSj1f4CyvuHBeXJELe9RPdzo2PKGNCKVtZxP",
            &record,
        ),
    ] {
        let ask = Ask::json(
            "POST",
            "/crosstalk/trust/pin",
            &json!({"id": id, "key": key}),
        );
        assert_eq!(house.ask(&ask.token(&secret("ops"))).status, 400, "{id}");
    }
}

#[test]
fn the_secret_of_a_token_is_shown_once() {
    let house = plan().open();
    let ops = Browser::sign_in(&house, "ops");
    let fields = [
        ("name", "carl"),
        ("role", "person"),
        ("addresses", "human://acme.example/carl"),
        ("expires", "90d"),
    ];
    let made = ops.post("/tokens", &fields);
    assert_eq!(made.status, 200, "{}", made.text());
    let (_, rest) = made.text().split_once("id=\"secret\">").unwrap();
    let secret = rest.split('<').next().unwrap().to_owned();
    assert!(secret.starts_with("xt_") && secret.len() > 40, "{secret}");
    assert_eq!(made.header("cache-control"), Some("no-store"));
    let list = ops.get("/tokens");
    assert!(list.text().contains("carl") && !list.text().contains(&secret));
    // A page that is loaded again makes no second one.
    let again = ops.post("/tokens", &fields);
    assert!(
        again.status == 400 && again.text().contains("There is a token"),
        "{}",
        again.text()
    );
    assert!(
        again.text().contains("value=\"carl\""),
        "what was typed is kept"
    );
    let in_use = house.ask(&form(&house, "/sign-in", &[("token", &secret)]));
    assert_eq!(in_use.status, 303);
    assert_eq!(ops.post("/tokens/carl/revoke", &[]).status, 303);
    assert!(ops.get("/tokens").text().contains(">revoked<"));
    let over = house.ask(&form(&house, "/sign-in", &[("token", &secret)]));
    assert_eq!(over.status, 401);
    // People do not make tokens.
    let ann = Browser::sign_in(&house, "ann");
    assert_eq!(ann.post("/tokens", &fields).status, 403);
    assert_eq!(ann.post("/tokens/ops/revoke", &[]).status, 403);
    assert_eq!(ops.get("/inbox").status, 200);
}

#[test]
fn dead_letters_and_quarantined_messages_are_tried_again() {
    let house = plan().open();
    let ops = Browser::sign_in(&house, "ops");
    let empty = ops.get("/dead");
    assert!(empty.text().contains("No dead letters") && empty.text().contains("could be indexed"));
    house.take_as("ann", &text(ANN, "CHATGPT", "M1"));
    let failed = json!({"to": "CHATGPT", "state": "failed", "reason": "the chat is gone"});
    let failed = Ask::json("POST", "/crosstalk/courier/M1", &failed).token(&secret("ann"));
    assert_eq!(house.ask(&failed).status, 200);
    let shown = ops.get("/dead");
    assert!(
        shown.text().contains("the chat is gone")
            && shown.text().contains("crosstalk dead requeue M1"),
        "{}",
        shown.text()
    );
    assert_eq!(ops.post("/dead/M1/requeue", &[]).status, 303);
    assert!(ops.get("/dead").text().contains("No dead letters"));
    assert_eq!(ops.post("/dead/M1/requeue", &[]).status, 404);
    // A message that another one is in the way of.
    house.settle();
    let displace = |to: &str| {
        let sql = format!("UPDATE message SET seq = (SELECT {to} FROM intake) WHERE id = 'M1'");
        assert_eq!(house.execute(&sql), 1);
    };
    displace("max(seq) + 1");
    house.take_as("ci", &text(CI, ANN, "M2"));
    house.settle();
    let list = || {
        let ask = Ask::get("/crosstalk/quarantine")
            .token(&secret("ops"))
            .accept("application/json");
        house.ask(&ask).json()["messages"].clone()
    };
    assert_eq!(list()[0]["id"], "M2");
    let shown = ops.get("/dead");
    assert!(
        shown.text().contains("Try to index them again"),
        "{}",
        shown.text()
    );
    let tried = ops.post("/quarantine/retry", &[]);
    assert_eq!(
        tried.header("location"),
        Some("/dead?did=still-quarantined")
    );
    displace("min(seq)");
    let tried = ops.post("/quarantine/retry", &[]);
    assert_eq!(tried.header("location"), Some("/dead?did=released"));
    assert_eq!(list(), json!([]));
    assert!(
        house
            .ask(&Ask::get(&format!("/crosstalk/inbox?for={ANN}")).token(&secret("ann")))
            .text()
            .contains("message: M2")
    );
    for who in ["ann", "ci"] {
        for ask in [
            Ask::get("/crosstalk/quarantine"),
            Ask::new("POST", "/crosstalk/quarantine/retry"),
            Ask::get("/crosstalk/routes"),
            Ask::get("/crosstalk/trust"),
        ] {
            assert_eq!(house.ask(&ask.token(&secret(who))).status, 403, "{who}");
        }
    }
}

#[test]
fn the_journal_is_filtered_proved_and_exported() {
    let house = plan().open();
    house.take_as("ci", &text(CI, ANN, "M1"));
    held(&house, "M2");
    let ops = Browser::sign_in(&house, "ops");
    let all = ops.get("/audit");
    assert!(
        all.text().contains(">M1<") && all.text().contains(">M2<"),
        "{}",
        all.text()
    );
    let kept = ops.get("/audit?kind=held");
    assert!(kept.text().contains(">M2<") && !kept.text().contains(">M1<"));
    assert!(ops.get("/audit?message=M1").text().contains(">M1<"));
    assert!(
        ops.get("/audit?message=M9")
            .text()
            .contains("No such entries")
    );
    assert!(
        ops.get("/audit?since=2000-01-01&until=2000-01-02")
            .text()
            .contains("No such entries")
    );
    assert_eq!(ops.get("/audit?since=yesterday").status, 400);
    assert_eq!(ops.get("/audit?before=x").status, 400);
    let export = ops.get("/audit/export?kind=held");
    assert!(
        export
            .header("content-disposition")
            .unwrap()
            .starts_with("attachment")
    );
    let lines: Vec<serde_json::Value> = export
        .text()
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!((lines.len(), &lines[0]["message"]), (1, &json!("M2")));
    let entry = entry_of(&ops, "M1");
    let number = entry.strip_prefix("/audit/").unwrap();
    let proved = wait_for("a checkpoint that covers the entry", || {
        let shown = ops.get(&entry).text().to_owned();
        shown.contains("data-root").then_some(shown)
    });
    for part in [
        &*format!("the entry is number {number}"),
        "its key has signed this root",
        "crosstalk audit receipt M1",
        "proof.",
    ] {
        assert!(plain(&proved).contains(part), "{part}: {proved}");
    }
    for missing in ["/audit/99", "/audit/x", "/audit/18446744073709551615"] {
        assert_eq!(ops.get(missing).status, 404, "{missing}");
    }
}

#[test]
fn search_and_status_show_what_the_caller_may_read() {
    let house = plan().open();
    house.take_as("ci", &text(CI, ANN, "M1"));
    house.settle();
    let [ann, bob, ops] = ["ann", "bob", "ops"].map(|n| Browser::sign_in(&house, n));
    let found = wait_for("the words are searchable", || {
        let found = ann.get("/search?q=ripe").text().to_owned();
        found.contains("/threads/T1#m-M1").then_some(found)
    });
    assert!(found.contains("crosstalk search ripe"));
    assert!(bob.get("/search?q=ripe").text().contains("Nothing found"));
    assert!(ann.get("/search").text().contains("Finds whole words"));
    held(&house, "M2");
    let status = wait_for("the numbers are measured again", || {
        let shown = ops.get("/status").text().to_owned();
        shown
            .contains("<b>1</b> <span>held</span>")
            .then_some(shown)
    });
    for part in [
        "copy and paste",
        "CHATGPT",
        "copy_paste",
        "The last 24 hours",
        "Messages by the hour",
    ] {
        assert!(status.contains(part), "{part}: {status}");
    }
    assert_eq!(house.ask(&page(&house, "GET", "/status")).status, 303);
}
