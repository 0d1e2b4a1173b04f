//! Where names lead, asked of a real name server.

use crate::run::{Ended, Home};
use crosstalk_testing::knot::{Knot, Signing, Zone};
use serde_json::Value;

fn resolve(home: &Home, knot: &Knot, more: &[&str]) -> (Value, Ended) {
    let server = knot.address().to_string();
    let asked = ["address", "resolve", "--json", "--dns-server", &server];
    let ended = home.run(&[&asked[..], more].concat(), "");
    (
        serde_json::from_str(&ended.out).unwrap_or(Value::Null),
        ended,
    )
}

fn steps(value: &Value) -> Vec<&str> {
    let steps = value["steps"].as_array().unwrap();
    steps.iter().map(|s| s["step"].as_str().unwrap()).collect()
}

#[test]
fn the_table_then_the_domain_then_a_person() {
    let home = Home::new("resolve");
    let knot = Knot::start([
        Zone::new("example.test")
            .txt("_crosstalk-addr.claude", &["claude://dns"])
            .txt("_crosstalk-addr.brother-ai", &["mcp://b@host"])
            .txt("_crosstalk-addr.brother-ai", &["claude://first"])
            .txt("_crosstalk-addr.brother-ai", &["no address"])
            .txt("_crosstalk-addr.wrong", &["CLAUDE"]),
        Zone::with_text("broken.test", "this is no zone\n"),
    ]);
    let ask = |name: &str, more: &[&str]| {
        let words = [&["--dns", "--domain", "example.test", name][..], more].concat();
        resolve(&home, &knot, &words)
    };
    let (value, ended) = ask("Claude", &[]);
    assert_eq!((ended.code, ended.err.as_str()), (0, ""));
    assert_eq!(value["result"], "claude://dns");
    assert_eq!(steps(&value), ["not-in-table", "dns"]);
    assert_eq!(value["steps"][1]["dnssec"], "indeterminate");

    let (value, _) = ask("BROTHER AI", &[]);
    assert_eq!(value["result"], "claude://first");
    assert_eq!(
        value["steps"][1]["others"],
        serde_json::json!(["mcp://b@host"])
    );
    assert_eq!(value["steps"][1]["wrong"].as_array().unwrap().len(), 1);

    let (value, ended) = ask("wrong", &[]);
    assert_eq!((ended.code, steps(&value)[1]), (0, "dns-wrong"));
    let (value, ended) = ask("nobody", &["--require"]);
    assert_eq!((ended.code, steps(&value)[1]), (10, "not-in-dns"));
    let (value, ended) = ask("Claude", &["--require", "--require-dnssec"]);
    assert_eq!((ended.code, steps(&value)[1]), (10, "dns-wrong"));

    // What is one's own comes first, and then nobody is asked.
    assert_eq!(home.run(&["name", "CLAUDE", "claude://mine"], "").code, 0);
    let (value, _) = ask("Claude", &[]);
    assert_eq!(
        (&value["result"], steps(&value)),
        (&"claude://mine".into(), vec!["table"])
    );

    // No answer is not the same as none.
    let (value, ended) = resolve(&home, &knot, &["--dns", "--domain", "broken.test", "X"]);
    assert_eq!((ended.code, &value["retry"]), (16, &Value::Bool(true)));
    let server = knot.address().to_string();
    let arguments = [
        "address",
        "resolve",
        "--dns",
        "--dns-server",
        &server,
        "--domain",
        "broken.test",
        "X",
    ];
    let ended = home.run(&arguments, "");
    assert!(ended.out.contains("SERVFAIL"), "{}", ended.out);
    assert!(ended.err.contains("ADR-014"), "{}", ended.err);
}

#[test]
fn settings_choose_the_name_server() {
    let home = Home::new("resolve-settings");
    let knot =
        Knot::start(
            [Zone::new("example.test").txt("_crosstalk-addr.gpt", &["chatgpt://thread/1"])],
        );
    assert_eq!(
        home.run(&["config", "set", "domain", "example.test"], "")
            .code,
        0
    );
    // A server alone is not a word to ask it.
    assert_eq!(resolve(&home, &knot, &["GPT"]).1.code, 2);
    assert_eq!(home.run(&["config", "set", "dns", "true"], "").code, 0);
    let (value, _) = resolve(&home, &knot, &["GPT"]);
    assert_eq!(value["result"], "chatgpt://thread/1");
}

#[test]
fn a_signed_zone_is_told_apart() {
    let home = Home::new("resolve-signed");
    let zone = Zone::new("signed.test")
        .signed(Signing::Nsec)
        .txt("_crosstalk-addr.gpt", &["chatgpt://thread/1"]);
    let knot = Knot::start([zone.clone()]);
    let anchor = home.path("anchor");
    std::fs::write(&anchor, knot.anchor(&zone)).unwrap();
    let anchor = anchor.to_str().unwrap();
    let words = [
        "--dns",
        "--domain",
        "signed.test",
        "--dns-anchor",
        anchor,
        "--require-dnssec",
        "GPT",
    ];
    let (value, ended) = resolve(&home, &knot, &words);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert_eq!(value["steps"][1]["dnssec"], "secure");
}

#[test]
fn a_message_goes_where_the_domain_says() {
    let home = Home::new("resolve-send");
    let knot = Knot::start([
        Zone::new("example.test").txt("_crosstalk-addr.claude", &["claude://dns"]),
        Zone::with_text("broken.test", "this is no zone\n"),
    ]);
    let server = knot.address().to_string();
    let send = |name: &str, domain: &str| {
        let me = [("CROSSTALK_USER", "kalle"), ("CROSSTALK_CLIPBOARD", "none")];
        let asked = ["--dns", "--dns-server", &server, "--domain", domain];
        home.run_with(&me, &[&["send", name, "Hi?"][..], &asked].concat(), "")
    };
    let sent = send("Claude", "example.test");
    assert!(
        sent.out.starts_with("[[KALLE→claude://dns v1]]\n"),
        "{}{}",
        sent.out,
        sent.err
    );
    // What nobody lists stays a name; a domain that does not answer is asked again later.
    let stays = send("gemini", "example.test");
    assert!(
        stays.out.starts_with("[[KALLE→GEMINI v1]]\n"),
        "{}{}",
        stays.out,
        stays.err
    );
    let later = send("claude", "broken.test");
    assert_eq!((later.code, later.out.as_str()), (16, ""), "{}", later.err);
    // One's own table comes first, and nobody is asked.
    assert_eq!(home.run(&["name", "CLAUDE", "claude://mine"], "").code, 0);
    let own = send("claude", "broken.test");
    assert!(
        own.out.starts_with("[[KALLE→claude://mine v1]]\n"),
        "{}{}",
        own.out,
        own.err
    );
}
