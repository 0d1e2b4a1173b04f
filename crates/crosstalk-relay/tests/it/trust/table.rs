//! Every cell of the tables in `docs/security.md`, over HTTP.

use super::system::{ask_bob, passed_on};
use super::{introduced, is_held, key_revoke, new_key};
use crate::dns::Domains;
use crate::house::{House, Plan, letter, secret, signed, text};
use crate::http::{Answer, Ask, strict};
use crosstalk_envelope::PrivateKey;
use crosstalk_protocol::Origin;
use crosstalk_protocol::relay::Role;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// The word of an agent is enough for the scope that has to be signed, so that each column about consents is about one rule:
/// CON-008 decides about `medical`, and CON-027 about other scopes.
const CONFIG: &str = "name = \"here.example\"\n[federation]\nenabled = true\naccept = true\n\
     [consent]\nsigned = [\"medical\"]\ndeclared = [\"medical\"]\n[[hold]]\nto = [\"bot://here.example/held\"]\n";
const TO: &str = "bot://here.example/to";
const HELD: &str = "bot://here.example/held";
const ANN: &str = "human://here.example/ann";

/// One row: what a caller has.
struct Evidence {
    house: House,
    /// The addresses that it is for.
    agent: String,
    person: String,
    token: Option<&'static str>,
    /// The key that it signs with, and the id of that.
    key: Option<(PrivateKey, String)>,
    /// The key of the relay of b.test, if that passes its messages on.
    hop: Option<PrivateKey>,
}

impl Evidence {
    /// A relay, and somebody with a kind of evidence.
    fn of(row: &str) -> Self {
        let (key, b) = (new_key(), new_key());
        let host = match row {
            "sender's domain" => "vouching.example",
            "another domain" => "victim.example",
            "hop" => "b.test",
            _ => "here.example",
        };
        let (agent, person) = (format!("bot://{host}/x"), format!("human://{host}/x"));
        let own = [agent.as_str(), person.as_str()];
        let names = Domains::default()
            .list("b.test", &b)
            .list("vouching.example", &key)
            .list("evil.example", &key);
        let mut plan = Plan::default()
            .config(CONFIG)
            .resolver(Arc::new(names))
            .token("ann", Role::Person, &[ANN])
            .token("feeder", Role::Agent, &["bot://here.example/feeder"]);
        let token = |plan: Plan, role| (plan.token("caller", role, &own), Some("caller"));
        let (with_token, caller) = match row {
            "admin's token" => token(plan, Role::Admin),
            "person's token" => token(plan, Role::Person),
            "agent's token" | "agent's token and did:key" => token(plan, Role::Agent),
            "monitor's token" => token(plan, Role::Monitor),
            _ => (plan, None),
        };
        plan = with_token;
        let pkid = match row {
            "operator's pin" | "first-contact pin" => Some("x-key".to_owned()),
            "sender's domain" => Some("x@vouching.example".into()),
            "another domain" => Some("x@evil.example".into()),
            "did:key" | "agent's token and did:key" => Some(key.public().to_did()),
            "admin's token" | "person's token" | "agent's token" | "monitor's token" | "hop"
            | "nothing" => None,
            _ => panic!("no such evidence: {row}"),
        };
        let how = match row {
            "operator's pin" => Some(Origin::Manual),
            "first-contact pin" => Some(Origin::FirstContact),
            _ => None,
        };
        if let Some(how) = how {
            for sender in own {
                plan = plan.pin_as(how, "x-key", &key, sender);
            }
        }
        Self {
            house: plan.open(),
            token: caller,
            key: pkid.map(|pkid| (key, pkid)),
            hop: (row == "hop").then_some(b),
            agent,
            person,
        }
    }

    /// A text with everything that it has.
    fn prove(&self, text: &str) -> String {
        let text = match &self.key {
            Some((key, pkid)) => signed(text, key, pkid),
            None => text.to_owned(),
        };
        self.bring(text)
    }

    fn bring(&self, text: String) -> String {
        match &self.hop {
            Some(key) => passed_on(&text, "b.test", key),
            None => text,
        }
    }

    fn ask(&self, ask: Ask) -> Answer {
        self.house.ask(&match self.token {
            Some(name) => ask.token(&secret(name)),
            None => ask,
        })
    }

    fn send(&self, text: &str) -> Answer {
        self.ask(Ask::send(self.prove(text)))
    }

    fn takes(&self, text: &str) -> bool {
        self.send(text).status == 200
    }

    fn reads(&self, address: &str) -> bool {
        let path = format!("/crosstalk/inbox?for={address}");
        self.ask(Ask::get(&path).accept("application/json")).status == 200
    }

    fn may(&self, column: &str) -> &'static str {
        let is_so = match column {
            "send as an agent" => self.takes(&text(&self.agent, TO, "M1")),
            "send as a person" => self.takes(&text(&self.person, TO, "M1")),
            "skip holds" => {
                let answer = self.send(&text(&self.person, HELD, "M1"));
                answer.status == 200 && !is_held(&answer)
            }
            "count as signed" => self.declares("medical", "CON-008"),
            "grant a consent" => self.declares("location", "CON-027"),
            "revoke a consent" => self.can_revoke(),
            "revoke its key" => self.revokes(),
            "get a key pinned" => self.pins(),
            "speak as SYSTEM" => return self.is_system(),
            "read its inbox" => self.reads(&self.agent),
            "read another's inbox" => self.reads(ANN),
            "decide about held messages" => self.decides(),
            "see tokens" => self.ask(Ask::get("/crosstalk/tokens")).status == 200,
            _ => panic!("no such column: {column}"),
        };
        match is_so {
            true => "yes",
            false => "no",
        }
    }

    /// Whether its word about the consent for a scope is enough. If not, that is by this rule, unless it may not send at all.
    fn declares(&self, scope: &str, rule: &str) -> bool {
        let private = letter(&self.agent, TO, "M1").meta("privacy", "Scope", scope);
        let private = private.meta("privacy", "Consent", "explicit_yes");
        let answer = self.send(&private.build().unwrap());
        if answer.status != 200 && self.takes(&text(&self.agent, TO, "M2")) {
            let told = strict(answer.text());
            assert_eq!(told.meta("error", "Rule"), Some(rule), "{}", answer.text());
        }
        answer.status == 200
    }

    fn can_revoke(&self) -> bool {
        let revoke = letter(&self.agent, TO, "R1").meta("revocation", "Consent-ID", "C1");
        let text = revoke.intent("BROADCAST").build().unwrap();
        self.takes(&text.replace("intent: BROADCAST", "intent: REVOKE"))
    }

    /// Whether a REVOKE of its key is taken, and the key signs nothing any more.
    fn revokes(&self) -> bool {
        let unsigned = || {
            let revoke = letter(&self.agent, TO, "R1").meta("revocation", "Key-ID", "x-key");
            let text = revoke.intent("BROADCAST").build().unwrap();
            self.takes(&text.replace("intent: BROADCAST", "intent: REVOKE"))
        };
        let Some((key, pkid)) = &self.key else {
            return unsigned();
        };
        let revoke = key_revoke(&self.agent, "R1", key, pkid);
        let is_taken = self.ask(Ask::send(self.bring(revoke))).status == 200;
        let is_over = !self.takes(&text(&self.agent, TO, "M2"));
        assert!(!is_taken || is_over, "the REVOKE was acknowledged");
        is_taken
    }

    /// Whether a key of a first contact speaks for the sender afterwards, without anything else.
    fn pins(&self) -> bool {
        let fresh = (new_key(), "new-key".to_owned());
        let own = self.key.as_ref().filter(|_| self.token.is_some());
        let (key, pkid) = own.unwrap_or(&fresh);
        let met = introduced(&text(&self.agent, TO, "M1"), key, pkid);
        self.ask(Ask::send(self.bring(met)));
        let alone = signed(&text(&self.agent, TO, "M2"), key, pkid);
        self.house.ask(&Ask::send(alone)).status == 200
    }

    fn is_system(&self) -> &'static str {
        ask_bob(&self.house);
        let letter = |id| letter("SYSTEM", ANN, id).parent("Q1");
        let error = letter("E1")
            .intent("ERROR")
            .meta("error", "Code", "E-ROUTE");
        let error = error.meta("error", "Reason", "Gone").build().unwrap();
        let news = letter("N1").intent("BROADCAST").build().unwrap();
        match (self.takes(&error), self.takes(&news)) {
            (false, false) => "no",
            (true, false) => "report",
            _ => "yes",
        }
    }

    fn decides(&self) -> bool {
        let held = text("bot://here.example/feeder", HELD, "H1");
        let held = self.house.ask(&Ask::send(held).token(&secret("feeder")));
        assert!(is_held(&held));
        let look = Ask::get("/crosstalk/approvals/H1").accept("application/json");
        let seen = self.house.ask(&look.token(&secret("ann"))).json();
        let wish = serde_json::json!({"digest": seen["digest"], "raw": seen["raw"], "decision": "approve"});
        let answer = self.ask(Ask::json("POST", "/crosstalk/approvals/H1", &wish));
        let is_there = self.house.store().record("H1").unwrap().is_some();
        assert_eq!(answer.status == 200, is_there, "{}", answer.text());
        is_there
    }
}

fn cells(line: &str) -> Vec<&str> {
    let line = line.trim().trim_start_matches('|').trim_end_matches('|');
    line.split('|').map(str::trim).collect()
}

#[test]
fn every_cell_of_the_security_page_holds() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/security.md");
    let page = std::fs::read_to_string(path).unwrap();
    let lines: Vec<&str> = page.lines().collect();
    let tables: Vec<_> = (0..lines.len())
        .filter(|n| lines[*n].starts_with("| evidence |"))
        .collect();
    assert_eq!(
        tables.len(),
        3,
        "what each is, and two tables of what each allows"
    );
    let rows = |start: usize| lines[start + 2..].iter().take_while(|l| l.starts_with('|'));
    let names = |start| rows(start).map(|l| cells(l)[0]).collect::<BTreeSet<_>>();
    let mut walked = 0;
    for table in &tables[1..] {
        assert_eq!(names(*table), names(tables[0]), "every kind of evidence");
        let columns = cells(lines[*table]);
        for row in rows(*table).map(|l| cells(l)) {
            assert_eq!(row.len(), columns.len(), "{row:?}");
            for (column, said) in columns.iter().zip(&row).skip(1) {
                let found = Evidence::of(row[0]).may(column);
                assert_eq!(found, *said, "{}: {column}", row[0]);
                walked += 1;
            }
        }
    }
    assert_eq!(walked, 12 * 13);
}
