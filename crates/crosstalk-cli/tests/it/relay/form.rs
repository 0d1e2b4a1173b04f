//! What the commands of a relay print with `--json` has the form that `crosstalk schema` describes.

use super::{Person, Relay, header};
use crate::schema::{assert_valid, validator};
use serde_json::Value;

#[test]
fn the_commands_of_a_relay_print_what_their_schemas_say() {
    let kalle = Person::new("form", "kalle");
    let relay = Relay::start(&kalle.home, &[]);
    let valid = |form: &str, arguments: &[&str]| -> Value {
        let ended = kalle.run(arguments);
        let what = format!("{arguments:?}: {}", ended.err);
        assert_valid(&validator(form), &ended.out, &what)
    };
    valid("relays", &["relay", "list", "--json"]);
    kalle.does(&["relay", "add", &relay.url]);
    let relays = valid("relays", &["relay", "list", "--json"]);
    assert_eq!(relays["relays"][0]["url"], relay.url.as_str());
    let sent = valid("sent", &["send", "BOT", "Hi \u{202e}?", "--json"]);
    assert_eq!(sent["relay"]["taken"], true);
    valid("sent", &["send", "BOT", "Hi?", "--json", "--wait", "1"]);
    valid("sent", &["send", "BOT", "Hi?", "--json", "--no-relay"]);
    let by_mail = [
        "send",
        "BOT",
        "Hi?",
        "--meta",
        "routing.X-Delivery=pigeon",
        "--json",
    ];
    let refused = valid("sent", &by_mail);
    assert_eq!(refused["relay"]["taken"], false);
    let message = refused["relay"]["error"]["message"].as_str().unwrap();
    assert!(message.contains("E-UNSUPPORTED"), "{message}");
    let id = sent["message"]["id"].as_str().unwrap();
    valid("status", &["status", id, "--json"]);
    valid("relay-inbox", &["inbox", "--relay", "--json"]);
    let thread = header(sent["message"]["envelope"].as_str().unwrap(), "thread");
    valid(
        "sent",
        &[
            "escalate",
            &thread,
            "--to",
            "human://localhost/anna",
            "--reason",
            "x",
            "--json",
        ],
    );
    let inbox = valid(
        "relay-inbox",
        &[
            "inbox",
            "--relay",
            "--for",
            "human://localhost/anna",
            "--json",
        ],
    );
    assert_eq!(inbox["messages"][0]["intent"], "ESCALATE");
    let heard = valid("listen", &["listen", "--for", "BOT", "--once", "--json"]);
    assert_eq!(heard["id"], id);
    let taken = valid(
        "relay-inbox",
        &["inbox", "--relay", "--for", "BOT", "--take", "--json"],
    );
    assert_eq!(taken["messages"][0]["taken"], true);
    let sent = valid("sent", &["send", "gemini", "Hi?", "--json"]);
    let id = sent["message"]["id"].as_str().unwrap();
    valid("dead", &["dead", "--json"]);
    kalle.does(&["carry", "--fail", id, "--reason", "gone \u{202e}"]);
    let dead = valid("dead", &["dead", "--json"]);
    assert_eq!(dead["deliveries"][0]["id"], id);
    valid("status", &["status", id, "--json"]);
    valid("fsck", &["fsck", "--json", "--data", relay.data()]);
    valid(
        "tokens",
        &["token", "list", "--json", "--data", relay.data()],
    );
    kalle.does(&[
        "token",
        "create",
        "a",
        "--role",
        "admin",
        "--expires",
        "90d",
        "--data",
        relay.data(),
    ]);
    kalle.does(&[
        "token",
        "create",
        "b",
        "--role",
        "agent",
        "--for",
        "X",
        "Y",
        "--data",
        relay.data(),
    ]);
    kalle.does(&["token", "revoke", "b", "--data", relay.data()]);
    let tokens = valid(
        "tokens",
        &["token", "list", "--json", "--data", relay.data()],
    );
    assert_eq!(
        (&tokens["tokens"][0]["state"], &tokens["tokens"][1]["state"]),
        (&"active".into(), &"revoked".into())
    );
    relay.stop();
}
