//! Consent in the paste workflow: what is refused, what is on record, and what a withdrawal leaves behind.

use crate::run::{Ended, Home, with_end_ahead};
use crate::schema::{assert_valid, validator};
use crosstalk_envelope::registry::{Rule, rule};
use serde_json::Value;
use std::path::Path;

const ME: [(&str, &str); 2] = [("CROSSTALK_USER", "kalle"), ("CROSSTALK_CLIPBOARD", "none")];
/// A text that nothing else has.
const SECRET: &str = "Zanzibar quokkas measured one hundred and forty to ninety, twice, at noon.";
const CLAUDE: &str = "claude://session/abc123";

fn kalle(home: &Home, arguments: &[&str], stdin: &str) -> Ended {
    home.run_with(&ME, arguments, stdin)
}

fn ok(home: &Home, arguments: &[&str], stdin: &str) -> String {
    let ended = kalle(home, arguments, stdin);
    assert_eq!(ended.code, 0, "{arguments:?}: {}{}", ended.out, ended.err);
    ended.out
}

fn json(home: &Home, arguments: &[&str], stdin: &str) -> Value {
    serde_json::from_str(&ok(home, arguments, stdin)).unwrap()
}

fn with_key(name: &str) -> Home {
    let home = Home::new(name);
    ok(&home, &["key", "new", "--id", "kalle@example.com"], "");
    home
}

fn grant(home: &Home, id: &str, more: &[&str]) {
    let base = ["consent", "grant", CLAUDE, "--scope", "medical", "--id", id];
    ok(home, &[&base, more].concat(), "");
}

/// Arguments that send a text under a consent.
fn under<'a>(id: &'a str, text: &'a str) -> Vec<&'a str> {
    vec![
        "send",
        CLAUDE,
        "--scope",
        "medical",
        "--consent",
        "explicit_yes",
        "--consent-id",
        id,
        "--body",
        text,
    ]
}

/// An envelope with these lines in `meta: privacy` and, if there are any, `meta: routing`.
fn envelope(id: &str, privacy: &str, routing: &str, body: &str) -> String {
    let routing = match routing {
        "" => String::new(),
        lines => format!("meta: routing\n{lines}\n\n"),
    };
    format!(
        "[[ANN→KALLE v1]]\nuser: ann\nsession: s\nmessage: {id}\ncontext: health\nintent: REQUEST\n\nmeta: privacy\n\
         {privacy}\n\n{routing}body: |\n  {body}\nsig: none\n[[END]]\n"
    )
}

/// The files of a folder, at any depth, in which a run of sixteen bytes of a text stands, in any case of the letters.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let text = text.to_ascii_lowercase();
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = std::fs::read(&path).unwrap().to_ascii_lowercase();
            let mut runs = text.as_bytes().windows(16);
            if runs.any(|run| bytes.windows(16).any(|w| w == run)) {
                found.push(path.to_string_lossy().into_owned());
            }
        }
    }
    found
}

#[test]
fn a_withdrawal_leaves_nothing_of_the_text_in_the_home() {
    let home = with_key("consent-erased");
    let folder = home.path("crosstalk");
    ok(
        &home,
        &["send", "chatgpt", "Something else that stays."],
        "",
    );
    grant(&home, "health", &[]);
    let sent = json(
        &home,
        &[under("health", SECRET), vec!["--json"]].concat(),
        "",
    );
    let thread = sent["message"]["thread"].as_str().unwrap().to_owned();
    let handed = [
        "handoff",
        &thread,
        "--to",
        "gemini://session/x",
        "--note",
        "Go on.",
        "--approve-transfer",
    ];
    let copy = ok(&home, &handed, "");
    assert!(copy.contains(SECRET), "{copy}");
    assert!(!files_with(&folder, SECRET).is_empty());

    let revoke = ["consent", "revoke", "health", "--reason", "over", "--json"];
    let revoked = json(&home, &revoke, "");
    let erased = revoked["withdrawn"]["erased"].as_array().unwrap();
    // The grant, the message under it, and the copy in the HANDOFF.
    assert_eq!(erased.len(), 3, "{revoked:#}");
    assert_eq!(files_with(&folder, SECRET), Vec::<String>::new());
    assert_valid(&validator("sent"), &revoked.to_string(), "sent");

    let shown = json(&home, &["consent", "show", "health", "--json"], "");
    assert_eq!(shown["standing"], "revoked");
    assert_eq!(shown["revoked"]["reason"], "over");
    let texts = shown["messages"].as_array().unwrap();
    assert!(texts.iter().all(|m| m["has_text"] == false), "{shown:#}");
    assert_eq!(kalle(&home, &["search", "quokkas"], "").code, 1);
    assert_eq!(kalle(&home, &["search", "stays"], "").code, 0);

    // Neither what one writes now nor a copy of what there was brings it back.
    let again = kalle(&home, &under("health", SECRET), "");
    refused(&again, &rule::CONSENT_WITHDRAWN, "again");
    let envelope = sent["message"]["envelope"].as_str().unwrap();
    refused(
        &kalle(&home, &["paste"], envelope),
        &rule::CONSENT_WITHDRAWN,
        "pasted",
    );
    assert_eq!(files_with(&folder, SECRET), Vec::<String>::new());
}

/// That something was refused by a rule, with its code, and says what to do.
fn refused(ended: &Ended, rule: &Rule, what: &str) {
    let code = rule.code.unwrap();
    let exit = match code.as_str() {
        "E-FORMAT" => 12,
        "E-PERM" => 14,
        _ => 11,
    };
    assert_eq!(ended.code, exit, "{what}: {}{}", ended.out, ended.err);
    assert!(ended.err.contains(rule.id), "{what}: {}", ended.err);
    assert!(ended.err.contains("What to do"), "{what}: {}", ended.err);
}

#[test]
fn what_is_sent_is_held_to_the_rules() {
    let home = with_key("consent-out");
    grant(&home, "narrow", &["--expires", "2090-01-01T00:00:00Z"]);
    let yes = ["--consent", "explicit_yes"];
    let cases: &[(&[&str], &Rule)] = &[
        (&["--scope", "medical"], &rule::CONSENT_MISSING),
        (&["--pii", "present"], &rule::CONSENT_MISSING),
        (
            &["--scope", "pii", "--consent", "implicit"],
            &rule::CONSENT_IMPLICIT,
        ),
        (
            &["--meta", "privacy.Consent=explicit_no"],
            &rule::CONSENT_DENIED,
        ),
        (
            &["--scope", "pii", "--meta", "privacy.Consent=maybe"],
            &rule::CONSENT_UNKNOWN,
        ),
        (
            &["--meta", "privacy.Expires=2020-01-01T00:00:00Z"],
            &rule::CONSENT_OVER,
        ),
        (
            &["--meta", "privacy.Expires=soon"],
            &rule::CONSENT_UNCLEAR_END,
        ),
        (
            &[
                "--scope",
                "pii",
                "--consent",
                "explicit_yes_2090-01-01T00:00:00Z",
            ],
            &rule::CONSENT_NOT_YET,
        ),
        (
            &["--scope", "pii", "--consent", "transferred_with_approval"],
            &rule::CONSENT_TRANSFER,
        ),
        (
            &["--meta", "routing.X-Policy=pii_redacted"],
            &rule::CONSENT_REDACTED,
        ),
        (
            &[
                yes[0],
                yes[1],
                "--scope",
                "financial",
                "--meta",
                "privacy.Original-Consent-ID=narrow",
            ],
            &rule::CONSENT_WIDER,
        ),
        (
            &[
                yes[0],
                yes[1],
                "--scope",
                "medical",
                "--meta",
                "privacy.Original-Consent-ID=narrow",
                "--expires",
                "2091-01-01T00:00:00Z",
            ],
            &rule::CONSENT_LONGER,
        ),
        (
            &[
                yes[0],
                yes[1],
                "--scope",
                "medical",
                "--jurisdiction",
                "HIPAA",
            ],
            &rule::CONSENT_JURISDICTION,
        ),
    ];
    for (more, rule) in cases {
        let base = ["send", "chatgpt", "--no-sign", "Mail ann@example.com."];
        let ended = kalle(&home, &[&base, *more].concat(), "");
        refused(&ended, rule, &format!("{more:?}"));
        assert!(ended.err.contains("nothing was sent"), "{}", ended.err);
    }
    let signed = [("CROSSTALK_CONSENT_SIGNED", "medical")];
    let env = [&ME[..], &signed[..]].concat();
    let base = [
        "send", "chatgpt", yes[0], yes[1], "--scope", "medical", "--body", "x",
    ];
    let ended = home.run_with(&env, &base, "");
    refused(&ended, &rule::CONSENT_SIGNED, "unsigned");
    assert!(ended.err.contains("`--sign`"), "{}", ended.err);
    let ended = home.run_with(&env, &[&base[..], &["--sign"]].concat(), "");
    assert_eq!(ended.code, 0, "{}", ended.err);
    // Nothing of what was refused was kept.
    let threads = json(&home, &["threads", "--json"], "");
    assert_eq!(threads["threads"].as_array().unwrap().len(), 2);
}

#[test]
fn what_comes_in_is_held_to_the_rules_and_the_rest_is_kept() {
    let home = Home::new("consent-in");
    let bad = envelope("BAD-1", "Scope: medical", "", "One");
    let good = envelope(
        "GOOD-1",
        "Scope: medical\nConsent: explicit_yes\nConsent-ID: ann-1",
        "",
        "Two",
    );
    let ended = kalle(&home, &["paste"], &bad);
    refused(&ended, &rule::CONSENT_MISSING, "paste");
    let both = kalle(&home, &["paste", "--json"], &format!("{bad}\n{good}"));
    assert_eq!(both.code, 11, "{}", both.err);
    let value = assert_valid(&validator("paste"), &both.out, "paste");
    assert_eq!(value["messages"][0]["outcome"], "refused");
    assert_eq!(
        value["messages"][0]["refusal"]["rule"],
        rule::CONSENT_MISSING.id
    );
    assert_eq!(value["messages"][1]["outcome"], "filed");

    let file = home.path("archive.crosstalk");
    let more = envelope("GOOD-2", "PII: none", "", "Three");
    std::fs::write(&file, format!("{bad}\n{good}\n{more}")).unwrap();
    let ended = kalle(&home, &["import", "--json", file.to_str().unwrap()], "");
    assert_eq!(ended.code, 11, "{}", ended.err);
    let value = assert_valid(&validator("import"), &ended.out, "import");
    assert_eq!((&value["filed"], &value["known"]), (&1.into(), &1.into()));
    let reason = value["refused"][0]["reason"].as_str().unwrap();
    assert!(reason.contains(rule::CONSENT_MISSING.id), "{reason}");

    // A scope that was not agreed to, under the name of what was.
    let wider = envelope(
        "BAD-2",
        "Scope: financial\nConsent: transferred_with_approval\nOriginal-Consent-ID: ann-1",
        "",
        "Four",
    );
    refused(
        &kalle(&home, &["paste"], &wider),
        &rule::CONSENT_WIDER,
        "wider",
    );
    let listed = json(&home, &["consent", "list", "--json"], "");
    assert_eq!(listed["consents"][0]["id"], "ann-1");
    assert_eq!(listed["consents"][0]["assurance"], "unsigned");
}

#[test]
fn only_who_granted_withdraws_and_only_surely() {
    let ann = with_key("consent-by-ann");
    let home = with_key("consent-by");
    let granted = envelope(
        "GOOD-1",
        "Scope: medical\nConsent: explicit_yes\nConsent-ID: ann-1",
        "",
        SECRET,
    );
    ok(&home, &["paste"], &granted);
    // Not mine to withdraw.
    let mine = kalle(&home, &["consent", "revoke", "ann-1"], "");
    refused(&mine, &rule::CONSENT_REVOKE_BY, "mine");
    // Somebody who calls herself ANN, with a key that nobody compared.
    let env = [("CROSSTALK_USER", "ann"), ("CROSSTALK_CLIPBOARD", "none")];
    let revoke = [
        "consent",
        "revoke",
        "ann-1",
        "--to",
        "human://acme.example/kalle",
        "--with-key",
    ];
    let made = ann.run_with(&env, &revoke, "");
    assert_eq!(made.code, 0, "{}", made.err);
    let pasted = kalle(&home, &["paste"], &made.out);
    refused(&pasted, &rule::CONSENT_REVOKE_PROOF, "first contact");
    assert!(!files_with(&home.path("crosstalk"), SECRET).is_empty());
    // An authority of the settings may, and a key of one's own is sure.
    let settings = ["config", "set", "consent.authorities", "KALLE"];
    ok(&home, &settings, "");
    ok(&home, &["consent", "revoke", "ann-1"], "");
    assert_eq!(
        files_with(&home.path("crosstalk"), SECRET),
        Vec::<String>::new()
    );
}

#[test]
fn a_text_whose_consent_is_over_is_not_shown_and_not_handed_on() {
    let home = with_end_ahead(|end| {
        let home = Home::new("consent-over");
        let privacy = format!("Scope: medical\nConsent: explicit_yes\nExpires: {end}");
        let message = envelope("SHORT-LIVED-1", &privacy, "", SECRET);
        let kept = kalle(&home, &["paste"], &message);
        let shown = kalle(&home, &["show", "SHORT-LIVED-1"], "");
        (kept.code == 0 && shown.out.contains(SECRET)).then_some(home)
    });
    for arguments in [
        &["show", "SHORT-LIVED-1"][..],
        &["show", "SHORT-LIVED-1", "--json"],
        &["inbox"],
        &["inbox", "--json"],
        &["export", "SHORT-LIVED-1"],
        &["export", "SHORT-LIVED-1", "--format", "json"],
        &["show", "SHORT-LIVED-1", "--envelope"],
        &["show", "SHORT-LIVED-1", "--received"],
        &["search", "quokkas"],
        &["handoff", "SHORT-LIVED-1", "--to", "gemini", "--note", "x"],
        &[
            "escalate",
            "SHORT-LIVED-1",
            "--to",
            "gemini",
            "--reason",
            "x",
        ],
        &["reply", "SHORT-LIVED-1", "Thank you."],
    ] {
        let ended = kalle(&home, arguments, "");
        assert!(
            !ended.out.contains("quokkas"),
            "{arguments:?}: {}",
            ended.out
        );
        let wanted = match arguments {
            ["search", ..] => 1,
            ["handoff" | "escalate", ..] | [.., "--envelope" | "--received"] => 11,
            _ => 0,
        };
        assert_eq!(ended.code, wanted, "{arguments:?}: {}", ended.err);
    }
    let listed = json(&home, &["consent", "list", "--all", "--json"], "");
    assert_eq!(listed["consents"][0]["standing"], "expired");
    let holding = json(&home, &["consent", "list", "--json"], "");
    assert_eq!(holding["consents"], Value::Array(Vec::new()));
}

#[test]
fn list_show_and_check_print_what_their_schemas_say() {
    let home = with_key("consent-schema");
    grant(
        &home,
        "health",
        &[
            "--jurisdiction",
            "GDPR",
            "--expires",
            "2090-01-01T00:00:00Z",
        ],
    );
    ok(&home, &under("health", SECRET), "");
    let listed = ok(&home, &["consent", "list", "--json"], "");
    let listed = assert_valid(&validator("consents"), &listed, "list");
    assert_eq!(listed["consents"][0]["assurance"], "pinned");
    assert_eq!(listed["consents"][0]["granter"], "KALLE");
    let none = json(&home, &["consent", "list", "--by", "ANN", "--json"], "");
    assert_eq!(none["consents"], Value::Array(Vec::new()));
    let shown = ok(&home, &["consent", "show", "heal", "--json"], "");
    let shown = assert_valid(&validator("consent"), &shown, "show");
    assert_eq!(shown["messages"].as_array().unwrap().len(), 2);
    assert_eq!(kalle(&home, &["consent", "show", "nothing"], "").code, 1);

    let check = validator("consent-check");
    let text = envelope(
        "LOOKED-AT-1",
        "Scope: medical\nConsent: explicit_yes\nExpires: 2090-01-01T00:00:00Z",
        "",
        "One",
    );
    let enough = ok(&home, &["consent", "check", "--json"], &text);
    let enough = assert_valid(&check, &enough, "enough");
    assert_eq!(enough["envelopes"][0]["enough"], true);
    assert_eq!(enough["envelopes"][0]["needs"][0], "Scope: medical");
    let late = ["consent", "check", "--json", "--at", "2090-01-01T00:00:00Z"];
    let late = kalle(&home, &late, &text);
    assert_eq!(late.code, 11);
    let late = assert_valid(&check, &late.out, "late");
    assert_eq!(
        late["envelopes"][0]["refusal"]["rule"],
        rule::CONSENT_OVER.id
    );
    assert_eq!(kalle(&home, &["consent", "check"], "no message").code, 12);
    // Nothing was kept by looking.
    assert_eq!(kalle(&home, &["show", "LOOKED-AT-1"], "").code, 1);
    // Without any store, too.
    let nobody = Home::new("consent-nobody");
    assert_eq!(kalle(&nobody, &["consent", "check"], &text).code, 0);
    assert_eq!(kalle(&nobody, &["consent", "list"], "").code, 0);
}

#[test]
fn a_message_under_a_consent_keeps_the_end_of_the_consent() {
    let home = with_key("consent-keeps-end");
    grant(&home, "h4", &["--expires", "2090-01-01T00:00:00Z"]);
    let until = |home: &Home| {
        let shown = json(home, &["consent", "show", "h4", "--json"], "");
        shown["expires"].as_str().map(str::to_owned)
    };
    let end = Some("2090-01-01T00:00:00Z".to_owned());
    assert_eq!(until(&home), end);
    let sent = kalle(&home, &under("h4", "x"), "");
    assert_eq!(sent.code, 0, "{}", sent.err);
    assert!(
        sent.out.contains("Expires: 2090-01-01T00:00:00Z"),
        "{}",
        sent.out
    );
    assert!(sent.err.contains("still expires at"), "{}", sent.err);
    assert_eq!(until(&home), end);
    // So does a second grant; and what it changes is said.
    let again = [
        "consent",
        "grant",
        "chatgpt://session/b",
        "--scope",
        "pii",
        "--id",
        "h4",
    ];
    let said = kalle(&home, &again, "").err;
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("scope medical → pii"), "{said}");
    let recipients =
        "recipients claude://session/abc123 → claude://session/abc123, chatgpt://session/b";
    assert!(said.contains(recipients), "{said}");
    assert_eq!(until(&home), end);
    grant(&home, "h4", &["--expires", "2091-01-01T00:00:00Z"]);
    assert_eq!(until(&home).as_deref(), Some("2091-01-01T00:00:00Z"));
}
