//! Several relays on one PostgreSQL database, and the suite of one relay on it.

use crate::house::{House, Plan, key, letter, secret, signed, text};
use crate::http::Ask;
use crate::storage;
use crosstalk_envelope::{Algorithm, PrivateKey};
use crosstalk_protocol::Trust;
use crosstalk_protocol::relay::Role;
use crosstalk_relay::port::Keyring;
use crosstalk_store::{PostgresPlace, PostgresTrust};
use crosstalk_testing::postgres::Database;
use crosstalk_testing::tier;
use crosstalk_testing::wait::wait_until;
use serde_json::json;
use std::process::Command;

/// Tests about the file of the store, its words and its one writer, or that change it as only commands on the file do.
const FILE_ONLY: [&str; 7] = [
    "consent::erasure::no_run_of_an_erased_body_is_left_and_the_log_still_proves",
    "consent::revocation::revocation_of_a_newer_ledger_is_adopted_with_its_time",
    "core::full_queue_of_the_writer_is_a_temporary_rejection",
    "delivery::circuit::outcome_under_a_lost_lease_changes_nothing",
    "server::operation::a_panic_of_the_writer_ends_the_server",
    "server::message::search_index_is_made_again_while_the_relay_runs",
    "server::message::status_hides_details_of_the_machine_from_the_sender",
];
/// The part of the suite that always runs on a database.
const SAMPLE: [&str; 4] = [
    "server::message::",
    "server::revocation::",
    "consent::revocation::",
    "delivery::dead_letter::",
];

/// Runs this program again, with its relays on PostgreSQL.
#[test]
fn the_suite_of_the_relay_passes_on_a_database() {
    if storage::is_shared() {
        return;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(storage::VARIABLE, "postgres");
    for test in FILE_ONLY.iter().chain(&["shared::"]) {
        command.args(["--skip", test]);
    }
    if !tier::is_full() {
        command.args(SAMPLE);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    let passed = said.split("test result: ok. ").nth(1).unwrap();
    let passed: usize = passed.split(' ').next().unwrap().parse().unwrap();
    assert!(passed >= tier::size(30, 300), "{passed} tests ran");
}

/// The trust data of a database behind the port of the relay.
pub struct SharedKeyring(PostgresTrust);

impl SharedKeyring {
    pub fn new(url: &str) -> Box<Self> {
        let place = PostgresPlace::parse(url).unwrap();
        Box::new(Self(PostgresTrust::open(place).unwrap()))
    }
}

impl Keyring for SharedKeyring {
    fn read(&self) -> Result<Trust, String> {
        self.0.read().map_err(|e| e.to_string())
    }

    fn update(&self, change: &mut dyn FnMut(&mut Trust)) -> Result<Trust, String> {
        self.0.update(change).map_err(|e| e.to_string())
    }

    fn is_shared(&self) -> bool {
        true
    }
}

/// Relays on one database, made alike.
pub fn relays(database: &Database, count: usize, plan: impl Fn() -> Plan) -> Vec<House> {
    let url = database.url();
    let relays = (0..count).map(|number| {
        let mut plan = plan().database(&url);
        if number > 0 {
            // The database has its tokens then.
            plan = plan.without_tokens();
        }
        plan.open()
    });
    relays.collect()
}

const CI: &str = "claude://code/api";
const BOT: &str = "agent://here.example/bot";
const ANN: &str = "human://here.example/ann";

fn office() -> Plan {
    Plan::default()
        .config("name = \"here.example\"")
        .key(key())
        .token("ops", Role::Admin, &["*"])
        .token("ann", Role::Person, &[ANN])
        .token("ci", Role::Agent, &["claude://*"])
        .token("bot", Role::Agent, &[BOT])
}

fn with(name: &str, ask: Ask) -> Ask {
    ask.token(&secret(name))
}

/// Tokens and agents of one relay count at the others from the answer on.
#[test]
fn tokens_and_agents_count_at_every_relay_at_once() {
    let database = Database::new();
    let able = format!("[[agent]]\naddress = \"{CI}\"\ncapabilities = [\"rust\", \"sql\"]\n");
    let relays = relays(&database, 3, || office().config(&able));
    for round in 0..tier::size(10, 100) {
        let (one, others) = (
            &relays[round % 3],
            [&relays[(round + 1) % 3], &relays[(round + 2) % 3]],
        );
        let name = format!("late{round}");
        let wish =
            json!({"name": name, "role": "agent", "addresses": [format!("gemini://late/{round}")]});
        let made = one.ask(&with("ops", Ask::json("POST", "/crosstalk/tokens", &wish)));
        assert_eq!(made.status, 201, "{}", made.text());
        let made = made.json()["token"].as_str().unwrap().to_owned();
        let listed = others[0].ask(&Ask::get("/crosstalk/agents").token(&made));
        assert_eq!(listed.status, 200);
        let skill = ["rust", "sql"][round % 2];
        let declare = json!({"address": CI, "capabilities": [skill]});
        let declare = with("ci", Ask::json("PUT", "/crosstalk/agents", &declare));
        assert_eq!(others[0].ask(&declare).status, 200);
        let listed = others[1].ask(&Ask::get("/crosstalk/agents").token(&made));
        let wanted = json!([{"address": CI, "capabilities": [skill]}]);
        assert_eq!(listed.json()["agents"], wanted);
        let path = format!("/crosstalk/tokens/{name}");
        assert_eq!(one.ask(&with("ops", Ask::new("DELETE", &path))).status, 204);
        for other in others {
            let look = Ask::get("/crosstalk/agents").token(&made);
            assert_eq!(other.ask(&look).status, 401, "round {round}");
        }
    }
}

/// A key that is pinned at one relay verifies at the others, and one that is distrusted does not.
#[test]
fn trusted_keys_count_at_every_relay_at_once() {
    let database = Database::new();
    let url = database.url();
    let relays = relays(&database, 3, || office().keyring(SharedKeyring::new(&url)));
    let signature = |relay: &House, message: &str| {
        let path = format!("/crosstalk/messages/{message}");
        let ask = with("ops", Ask::get(&path).accept("application/json"));
        relay.ask(&ask).json()["signature"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    for round in 0..tier::size(5, 50) {
        let (one, other, third) = (
            &relays[round % 3],
            &relays[(round + 1) % 3],
            &relays[(round + 2) % 3],
        );
        let mut seed = [7; 32];
        seed[..8].copy_from_slice(&round.to_be_bytes());
        let key = PrivateKey::from_seed(Algorithm::Ed25519, &seed).unwrap();
        let (id, sender) = (format!("code{round}"), format!("claude://code/{round}"));
        let record = key.public().record();
        let wish = json!({"id": id, "key": record, "senders": [sender]});
        let ask = with("ops", Ask::json("POST", "/crosstalk/trust/pin", &wish));
        let pinned = one.ask(&ask);
        assert_eq!(pinned.status, 200, "{}", pinned.text());
        let known = signed(&text(&sender, BOT, &format!("K{round}")), &key, &id);
        let sent = other.ask(&with("ci", Ask::send(&known)));
        assert_eq!(sent.status, 200, "{}", sent.text());
        assert_eq!(signature(third, &format!("K{round}")), "verified");
        let no = json!({"id": id, "key": record, "reason": "it was lost"});
        let ask = with("ops", Ask::json("POST", "/crosstalk/trust/distrust", &no));
        let distrusted = one.ask(&ask);
        assert_eq!(distrusted.status, 200, "{}", distrusted.text());
        for (place, relay) in [other, third].into_iter().enumerate() {
            let sent = signed(&text(&sender, BOT, &format!("D{round}-{place}")), &key, &id);
            let refused = relay.ask(&with("ci", Ask::send(&sent)));
            assert_eq!(refused.status, 403, "round {round}: {}", refused.text());
        }
    }
}

/// A message that is decided at one relay is decided: every other one says so.
#[test]
fn a_decision_counts_at_every_relay_at_once() {
    let database = Database::new();
    let hold = "[[hold]]\nwhy = \"what code does\"\nfrom = [\"claude://*\"]\n";
    let relays = relays(&database, 3, || office().config(hold));
    for round in 0..tier::size(10, 100) {
        let relay = |number: usize| &relays[(round + number) % 3];
        let id = format!("H{round}");
        let held = relay(0).ask(&with("ci", Ask::send(text(CI, BOT, &id))));
        assert!(held.text().contains("\nState: held\n"), "{}", held.text());
        let path = format!("/crosstalk/approvals/{id}");
        let seen = relay(1).ask(&with("ops", Ask::get(&path).accept("application/json")));
        let seen = seen.json();
        let wish = json!({"digest": seen["digest"], "raw": seen["raw"], "decision": "approve"});
        let decide = with("ops", Ask::json("POST", &path, &wish));
        let decided = relay(1).ask(&decide);
        assert_eq!(decided.status, 200, "{}", decided.text());
        let no = json!({"digest": seen["digest"], "raw": seen["raw"], "decision": "refuse", "reason": "late"});
        let late = relay(2).ask(&with("ops", Ask::json("POST", &path, &no)));
        assert_eq!(late.status, 409, "{}", late.text());
        assert!(relay(2).inbox_as("bot", BOT).contains(&id));
    }
}

/// What an agent hands in at one relay, its receiver gets at another, and a repeated message gets the same bytes everywhere.
#[test]
fn a_repeated_message_gets_the_same_answer_at_every_relay() {
    let database = Database::new();
    let relays = relays(&database, 3, office);
    for round in 0..tier::size(10, 100) {
        let id = format!("M{round}");
        let ask = with("ci", Ask::send(letter(CI, BOT, &id).build().unwrap()));
        let answers = relays.iter().map(|relay| relay.ask(&ask));
        let answers: Vec<(u16, String)> =
            answers.map(|a| (a.status, a.text().to_owned())).collect();
        assert_eq!(answers[0].0, 200, "{}", answers[0].1);
        assert!(
            answers.iter().all(|answer| *answer == answers[0]),
            "{answers:?}"
        );
        let is_there = |relay: &House| relay.inbox_as("bot", BOT).contains(&id);
        assert!(relays.iter().all(is_there), "{id}");
    }
}

/// Whoever waits at one relay gets what comes to another one, unless the token was revoked there meanwhile.
#[test]
fn an_answer_at_one_relay_ends_the_wait_at_another() {
    let database = Database::new();
    let relays = relays(&database, 3, office);
    for round in 0..tier::size(4, 40) {
        let relay = |number: usize| &relays[(round + number) % 3];
        let is_revoked = round % 2 == 1;
        let name = format!("waiting{round}");
        let sender = format!("gemini://waiting/{round}");
        let wish = json!({"name": name, "role": "agent", "addresses": [sender]});
        let made = relay(0).ask(&with("ops", Ask::json("POST", "/crosstalk/tokens", &wish)));
        let made = made.json()["token"].as_str().unwrap().to_owned();
        let id = format!("Q{round}");
        let question = letter(&sender, BOT, &id).thread(format!("T{round}"));
        let question = Ask::send(question.build().unwrap()).token(&made);
        let mut line = relay(1).line();
        line.send(question.header("Prefer", "wait=100").bytes());
        // The question is there when its recipient is told so, at a third relay.
        let inbox = format!("/crosstalk/inbox?for={BOT}&wait=100");
        wait_until("the question", || {
            relay(2)
                .ask(&with("bot", Ask::get(&inbox)))
                .text()
                .contains(&id)
        });
        if is_revoked {
            let path = format!("/crosstalk/tokens/{name}");
            let revoked = relay(0).ask(&with("ops", Ask::new("DELETE", &path)));
            assert_eq!(revoked.status, 204);
        }
        let answer = letter(BOT, &sender, &format!("A{round}")).thread(format!("T{round}"));
        let answer = answer
            .intent("RESPOND")
            .parent(&id)
            .body("The PIN is 4711.");
        let sent = relay(2).ask(&with("bot", Ask::send(answer.build().unwrap())));
        assert_eq!(sent.status, 200, "{}", sent.text());
        let came = line.answer();
        assert_eq!(
            came.status,
            if is_revoked { 401 } else { 200 },
            "{}",
            came.text()
        );
        assert_eq!(came.text().contains("4711"), !is_revoked, "{}", came.text());
    }
}
