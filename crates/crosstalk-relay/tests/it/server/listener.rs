//! What senders learn about the other side: that nobody reads the inbox, or that its program fails.

use crate::house::{House, Plan, ids, secret, text};
use crate::http::Ask;
use crosstalk_protocol::relay::Role;
use serde_json::{Value, json};

const API: &str = "claude://code/api";
const TYPO: &str = "claude://code/apj";
const ANN: &str = "claude://ann/1";

fn status(house: &House, who: &str, id: &str) -> Value {
    let ask = Ask::get(&format!("/crosstalk/messages/{id}/status"))
        .accept("application/json")
        .token(&secret(who));
    house.ask(&ask).json()["deliveries"][0].clone()
}

fn listen(house: &House, who: &str, address: &str) -> Value {
    let ask = Ask::get(&format!("/crosstalk/inbox?for={address}"))
        .accept("application/json")
        .token(&secret(who));
    house.ask(&ask).json()["messages"].clone()
}

fn send(house: &House, who: &str, text: &str) {
    let answer = house.ask(&Ask::send(text).token(&secret(who)));
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// Threats 48 and 49: a wrong address is no way to find out which others there are.
#[test]
fn similar_address_is_named_only_to_callers_with_access() {
    for (is_listed, ann, admin) in [
        (false, Value::Null, json!(API)),
        (true, json!(API), json!(API)),
    ] {
        let listed = format!("[[agent]]\naddress = \"{API}\"\ncapabilities = [\"sql\"]\n");
        let house = Plan::default()
            .config(if is_listed { &listed } else { "" })
            .token("ann", Role::Agent, &[ANN])
            .token("api", Role::Agent, &[API])
            .token("both", Role::Agent, &[ANN, API])
            .token("ops", Role::Admin, &["*"])
            .open();
        listen(&house, "api", API);
        send(&house, "ann", &text(ANN, TYPO, "M1"));
        for (who, meant) in [("ann", &ann), ("both", &json!(API)), ("ops", &admin)] {
            let delivery = status(&house, who, "M1");
            assert_eq!(delivery["never_read"], true);
            assert_eq!(&delivery["did_you_mean"], meant, "{who}");
        }
        // The inbox of somebody who came is read, whether there was something in it or not.
        send(&house, "ann", &text(ANN, API, "M2"));
        let delivery = status(&house, "ann", "M2");
        assert_eq!(
            (&delivery["never_read"], &delivery["did_you_mean"]),
            (&json!(false), &Value::Null)
        );
    }
}

/// A look by the operator is not one by the recipient.
#[test]
fn looks_of_others_do_not_count() {
    let house = Plan::default()
        .token("ann", Role::Agent, &[ANN])
        .token("ops", Role::Admin, &[])
        .open();
    send(&house, "ann", &text(ANN, API, "M1"));
    assert_eq!(ids(&listen(&house, "ops", API)), ["M1"]);
    assert_eq!(status(&house, "ann", "M1")["never_read"], true);
}

#[test]
fn failure_of_a_program_is_told_by_the_relay_and_by_nobody_else() {
    let house = Plan::default()
        .token("ann", Role::Agent, &[ANN])
        .token("api", Role::Agent, &[API])
        .token("eve", Role::Agent, &["claude://eve/1"])
        .open();
    send(&house, "ann", &text(ANN, API, "M1"));
    let fails = |who: &str, state: &str| {
        let said = json!({"for": API, "ids": ["M1", "M9"], "state": state});
        house.ask(&Ask::json("POST", "/crosstalk/ack", &said).token(&secret(who)))
    };
    for who in ["eve", "ann"] {
        assert_eq!(fails(who, "failed").code(), "E-PERM", "{who}");
    }
    let unchanged = json!({"changed": ["M1"], "unknown": ["M9"]});
    for attempts in 1..=3 {
        assert_eq!(fails("api", "retrying").json(), unchanged);
        let delivery = status(&house, "ann", "M1");
        assert_eq!(
            (&delivery["state"], &delivery["attempts"]),
            (&json!("delivered"), &json!(attempts))
        );
        let told = listen(&house, "ann", ANN);
        assert_eq!(told.as_array().unwrap().len(), 1, "it is said once");
        assert_eq!(
            (&told[0]["intent"], &told[0]["from"]),
            (&json!("BROADCAST"), &json!(API))
        );
    }
    assert_eq!(fails("api", "failed").json(), unchanged);
    let told = listen(&house, "ann", ANN);
    // The ERROR settles the notice.
    assert_eq!(told[0]["intent"], "ERROR");
    assert!(
        told[0]["envelope"]
            .as_str()
            .unwrap()
            .contains("Code: E-ROUTE")
    );
    assert_eq!(status(&house, "ann", "M1")["state"], "failed");
    assert_eq!(
        fails("api", "failed").json(),
        json!({"changed": [], "unknown": ["M1", "M9"]})
    );
    assert_eq!(listen(&house, "ann", ANN).as_array().unwrap().len(), 1);
}
