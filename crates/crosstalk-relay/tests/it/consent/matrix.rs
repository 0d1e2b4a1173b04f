//! Every scope × consent × time × way comes out as the tables in `spec/consent.md` say.

use super::{ANN, KEY, from_ann, plan, revoke, time};
use crate::delivery::endpoint::{Asked, Endpoint, Say};
use crate::house::{House, Plan, key, letter, signed};
use crate::http::Ask;
use crosstalk_api::outbound::{Outbound, Roots};
use crosstalk_envelope::{Document, Reading};
use crosstalk_protocol::relay::DeliveryState;
use crosstalk_relay::delivery::{DeliverySetup, DeliveryTask};
use crosstalk_testing::tier;
use crosstalk_testing::wait::{LIMIT, wait_until};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// What a message can have in it, and the row of the table that is about it.
const CONTENTS: [(&str, &str); 11] = [
    ("", "general"),
    ("general", "general"),
    ("pii", "sensitive"),
    ("medical", "sensitive"),
    ("phi", "sensitive"),
    ("financial", "sensitive"),
    ("biometric", "sensitive"),
    ("location", "sensitive"),
    ("custom", "sensitive"),
    ("research", "sensitive"),
    ("PII: present", "sensitive"),
];

/// The columns of the first table.
const KINDS: [&str; 7] = [
    "none",
    "implicit",
    "other",
    "explicit_no",
    "explicit_yes",
    "transferred, original not named",
    "transferred",
];

/// The rows of the second table.
const WHENS: [&str; 7] = [
    "before it expires",
    "at the time at which it expires",
    "after it expired",
    "it expires before it is handed out",
    "revoked before the message arrives",
    "revoked before the message is handed out",
    "revoked after the message was handed out",
];

const WAYS: [&str; 9] = [
    "inbox",
    "copy_paste",
    "file",
    "exec",
    "mcp",
    "sms",
    "email",
    "http",
    "relay",
];

/// The address whose messages go that way.
fn address(way: usize) -> String {
    match WAYS[way] {
        "mcp" => "mcp://take@here.example".to_owned(),
        name => format!("agent://here.example/{name}/x"),
    }
}

/// A server of tools that keeps each call in a file of its own.
const SERVER: &str = r#"
answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"server/discover"'*) answer '"error":{"code":-32601,"message":"unknown method"}' ;;
    *'"method":"initialize"'*) answer '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"}}' ;;
    *'"method":"tools/list"'*) answer '"result":{"tools":[{"name":"take","inputSchema":{"type":"object"}}]}' ;;
    *'"method":"tools/call"'*) printf '%s\n' "$line" > $$; answer '"result":{"content":[{"type":"text","text":"Done."}]}' ;;
  esac
done
"#;

#[derive(Clone, Copy, Debug)]
struct Cell {
    content: usize,
    kind: usize,
    when: usize,
    way: usize,
}

impl Cell {
    fn all() -> impl Iterator<Item = Self> {
        let cells = (0..WAYS.len()).flat_map(|way| (0..WHENS.len()).map(move |when| (way, when)));
        let cells = cells.flat_map(|(way, when)| (0..KINDS.len()).map(move |k| (way, when, k)));
        cells.flat_map(|(way, when, kind)| {
            (0..CONTENTS.len()).map(move |content| Self {
                content,
                kind,
                when,
                way,
            })
        })
    }

    /// All of them; in the default run each cell of the tables with one content of its row, another one each time.
    fn chosen() -> impl Iterator<Item = Self> {
        Self::all().filter(|cell| {
            let turn = cell.way + cell.when + cell.kind;
            let is_general = |content: &usize| CONTENTS[*content].1 == "general";
            let general = (0..CONTENTS.len()).filter(is_general).count();
            let sensitive = general + turn % (CONTENTS.len() - general);
            tier::is_full() || [turn % general, sensitive].contains(&cell.content)
        })
    }

    fn id(self) -> String {
        format!("M{}-{}-{}-{}", self.way, self.when, self.kind, self.content)
    }

    fn to(self) -> String {
        address(self.way)
    }

    /// All messages with the same way, time and content are under one consent. Contents do not share one, because a renewal
    /// never adds a scope (CON-026).
    fn consent(self) -> String {
        consent(self.way, self.when, self.content)
    }

    fn when(self) -> &'static str {
        WHENS[self.when]
    }

    fn text(self) -> String {
        let mut builder = from_ann(&self.to(), &self.id()).body(format!("This is {}.", self.id()));
        builder = match CONTENTS[self.content].0 {
            "" => builder,
            "PII: present" => builder.meta("privacy", "PII", "present"),
            scope => builder.meta("privacy", "Scope", scope),
        };
        let consent = match KINDS[self.kind] {
            "none" => None,
            "implicit" => Some("implicit"),
            "other" => Some("certainly"),
            "explicit_no" => Some("explicit_no"),
            "explicit_yes" => Some("explicit_yes_2025-10-09T16:00Z"),
            _ => Some("transferred_with_approval"),
        };
        if let Some(consent) = consent {
            builder = builder.meta("privacy", "Consent", consent);
        }
        builder = builder.meta("privacy", "Consent-ID", self.consent());
        if KINDS[self.kind] == "transferred" {
            builder = builder.meta("privacy", "Original-Consent-ID", "O");
        }
        let end = match self.when() {
            "at the time at which it expires" => 0,
            "after it expired" => -1,
            "it expires before it is handed out" => 50,
            _ => 10_000,
        };
        builder
            .meta("privacy", "Expires", time(end))
            .build()
            .unwrap()
    }
}

fn consent(way: usize, when: usize, content: usize) -> String {
    format!("C{way}-{when}-{content}")
}

/// All consents for a way and a time, as a REVOKE names them.
fn consents(way: usize, when: usize) -> String {
    let names = (0..CONTENTS.len()).map(|content| consent(way, when, content));
    names.collect::<Vec<_>>().join(", ")
}

/// A table of the specification: what stands in which row under which heading.
fn table(heading: &str) -> BTreeMap<(String, String), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/consent.md");
    let text = std::fs::read_to_string(path).unwrap();
    let cells = |line: &str| -> Vec<String> {
        let line = line.trim().trim_start_matches('|').trim_end_matches('|');
        line.split('|').map(|c| c.trim().to_owned()).collect()
    };
    let mut lines = text.lines().skip_while(|l| !l.starts_with(heading));
    let columns = cells(lines.next().unwrap_or_else(|| panic!("no table {heading}")));
    let rows = lines.skip(1).take_while(|l| l.starts_with('|'));
    let mut found = BTreeMap::new();
    for row in rows.map(cells) {
        for (column, cell) in columns.iter().zip(&row).skip(1) {
            found.insert((row[0].clone(), column.clone()), cell.clone());
        }
    }
    found
}

struct Tables {
    what: BTreeMap<(String, String), String>,
    when: BTreeMap<(String, String), String>,
}

impl Tables {
    fn read() -> Self {
        Self {
            what: table("| in the message |"),
            when: table("| when |"),
        }
    }

    fn when(&self, cell: Cell, column: &str) -> &str {
        &self.when[&(cell.when().to_owned(), column.to_owned())]
    }

    /// What a message gets when it comes: `accepted`, or the rule that rejects it. An end that has passed is named before a
    /// consent that is missing, and after one that is denied; a revocation last.
    fn at_accept(&self, cell: Cell) -> &str {
        let row = CONTENTS[cell.content].1.to_owned();
        let what = self.what[&(row, KINDS[cell.kind].to_owned())].as_str();
        let when = self.when(cell, "at intake");
        match (what, when) {
            ("CON-002", _) => what,
            (_, "CON-005") => when,
            ("accepted", _) => when,
            _ => what,
        }
    }

    fn is_handed_out(&self, cell: Cell) -> bool {
        self.at_accept(cell) == "accepted" && self.when(cell, "handed out") == "yes"
    }
}

/// The mails that a mail server got.
type Mails = Arc<Mutex<Vec<String>>>;

/// A mail server that keeps what it gets.
fn mail_server() -> (SocketAddr, Mails) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, mails) = (listener.local_addr().unwrap(), Mails::default());
    let kept = Arc::clone(&mails);
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let kept = Arc::clone(&kept);
            std::thread::spawn(move || take_mails(&client, &kept));
        }
    });
    (address, mails)
}

fn take_mails(client: &TcpStream, kept: &Mails) -> std::io::Result<()> {
    let mut out = client;
    out.write_all(b"220 mail.test ESMTP\r\n")?;
    let mut mail: Option<String> = None;
    for line in BufReader::new(client).lines() {
        let line = line?;
        let answer = match (mail.take(), line.as_str()) {
            (Some(text), ".") => {
                kept.lock().unwrap().push(text);
                "250 kept"
            }
            (Some(text), line) => {
                mail = Some(format!("{text}{line}\n"));
                continue;
            }
            (None, "DATA") => {
                mail = Some(String::new());
                "354 go on"
            }
            (None, "QUIT") => "221 bye",
            (None, _) => "250 OK",
        };
        write!(out, "{answer}\r\n")?;
    }
    Ok(())
}

/// The id of the message in a mail.
fn id_of_mail(mail: &str) -> String {
    let mut lines = mail.lines();
    let id = lines.find_map(|line| line.strip_prefix("message: "));
    id.unwrap_or_else(|| panic!("{mail}")).to_owned()
}

fn relay(other: &House, provider: &Endpoint, mail: SocketAddr, out: &Path) -> House {
    let out = out.display();
    let (port, provider) = (other.addr.port(), provider.url());
    let (ip, mail) = (mail.ip(), mail.port());
    let config = format!(
        "[email]\ndomain = \"here.example\"\n[email.out]\nhost = \"{ip}\"\nport = {mail}\ntls = \"none\"\n\
         [[route]]\nto = \"agent://here.example/email/x\"\nby = \"email\"\nmail = \"bo@people.test\"\n\
         [sms]\nurl = \"{provider}\"\nfrom = \"+4915112345678\"\nallow_private = true\n\
         [[route]]\nto = \"agent://here.example/sms/x\"\nby = \"sms\"\nphone = \"+4915187654321\"\n\
         [[route]]\nto = \"agent://here.example/copy_paste/*\"\nby = \"copy_paste\"\n\
         [[route]]\nto = \"agent://here.example/file/*\"\nby = \"file\"\nfolder = \"{out}/file\"\n\
         [[route]]\nto = \"agent://here.example/exec/*\"\nby = \"exec\"\ninput = \"envelope\"\n\
         command = [\"sh\", \"-c\", \"cat > {out}/exec/$$; echo Done.\"]\n\
         [[route]]\nto = \"mcp://take@here.example\"\nby = \"mcp\"\nargument = \"text\"\n\
         directory = \"{out}/mcp\"\ncommand = [\"sh\", \"-c\", '''{SERVER}''']\n\
         [[route]]\nto = \"agent://here.example/http/*\"\nby = \"http\"\nallow_private = true\n\
         url = \"http://127.0.0.1:{port}/crosstalk/receive\"\n\
         [[route]]\nto = \"agent://here.example/relay/*\"\nby = \"relay\"\nallow_private = true\n\
         url = \"http://127.0.0.1:{port}/\"\n"
    );
    plan().config(&config).open()
}

fn id_of_envelope(text: &str) -> String {
    let document = Document::parse(text, Reading::Strict);
    document.envelope().message.unwrap().to_owned()
}

fn id_of_call(text: &str) -> String {
    let call: serde_json::Value = serde_json::from_str(text).unwrap();
    let id = call["params"]["_meta"]["crosstalk/id"].as_str().unwrap();
    assert_eq!(
        call["params"]["arguments"]["text"],
        format!("This is {id}.")
    );
    id.to_owned()
}

/// The id in the body of a message that was sent as a text; none for a revocation.
fn id_of_text(asked: &Asked) -> Option<String> {
    let sent: serde_json::Value = serde_json::from_str(&asked.body).unwrap();
    let text = sent["text"].as_str().unwrap();
    let id = text.split("This is ").nth(1)?.split('.').next()?;
    Some(id.to_owned())
}

/// The ids of the messages in the files of a folder.
fn in_folder(folder: &Path, id_of: fn(&str) -> String) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path());
    let files = entries.filter(|path| path.is_file());
    files
        .map(|path| id_of(&std::fs::read_to_string(path).unwrap()))
        .collect()
}

/// Everything that an address gets.
fn in_inbox(house: &House, address: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut cursor = "0".to_owned();
    loop {
        let path = format!("/crosstalk/inbox?for={address}&limit=100&after={cursor}");
        let page = house
            .ask(&Ask::get(&path).accept("application/json"))
            .json();
        let ids = crate::house::ids(&page["messages"]);
        if ids.is_empty() {
            return found;
        }
        found.extend(ids);
        cursor = page["cursor"].as_str().unwrap().to_owned();
    }
}

#[test]
fn every_cell_of_the_tables_holds_over_every_way() {
    let tables = Tables::read();
    let out = tempfile::tempdir().unwrap();
    for folder in ["file", "exec", "mcp"] {
        std::fs::create_dir(out.path().join(folder)).unwrap();
    }
    let other = Plan::default().pin(KEY, &key(), ANN).open();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let provider = runtime.block_on(Endpoint::start(|_, _| Say::ok()));
    let (mail, mails) = mail_server();
    let house = relay(&other, &provider, mail, out.path());
    let everything = "general, pii, medical, financial, biometric, location, custom, research";
    let original = from_ann("agent://here.example/inbox/origin", "O")
        .meta("privacy", "Scope", everything)
        .meta("privacy", "Consent", "explicit_yes")
        .meta("privacy", "Consent-ID", "O");
    house.take(&original.build().unwrap());
    let revoke_it = |when: &str| {
        let when = WHENS.iter().position(|w| *w == when).unwrap();
        for way in 0..WAYS.len() {
            let to = address(way);
            let id = format!("R{way}-{when}");
            house.take(&revoke(&consents(way, when), &to, &id));
        }
    };

    revoke_it("revoked before the message arrives");
    let mut taken = Vec::new();
    for cell in Cell::chosen() {
        let answer = house.ask(&Ask::send(cell.text()));
        let document = Document::parse(answer.text(), Reading::Strict);
        let came = document.meta("error", "Rule").unwrap_or("accepted");
        assert_eq!(came, tables.at_accept(cell), "{cell:?} {}", answer.text());
        assert_eq!(answer.status == 200, came == "accepted", "{cell:?}");
        if came == "accepted" {
            taken.push(cell);
        }
    }
    let while_it_waits = "revoked before the message is handed out";
    revoke_it(while_it_waits);
    house.later(100);
    let cancelled = taken.iter().filter(|c| c.when() == while_it_waits).count();
    wait_until("those whose messages were cancelled are told", || {
        in_inbox(&house, ANN).len() >= cancelled
    });

    let inside = runtime.enter();
    let setup = DeliverySetup {
        work: out.path().join("work"),
        data: out.path().to_owned(),
        outbound: Outbound::new(None, Roots::system()),
    };
    let delivery = DeliveryTask::start(&house.relay, setup);
    let store = house.store();
    for cell in taken.iter().filter(|c| c.way > 1) {
        wait_until(&format!("{cell:?} waits for ever"), || {
            let ways = store.deliveries(&cell.id()).unwrap();
            ways.iter().all(|d| d.state != DeliveryState::Queued)
        });
    }
    let courier = house.ask(&Ask::get("/crosstalk/courier?limit=500").accept("application/json"));
    for (way, name) in WAYS.iter().enumerate() {
        let address = address(way);
        let mut handed_out = match *name {
            "inbox" => in_inbox(&house, &address),
            "copy_paste" => crate::house::ids(&courier.json()["messages"])
                .into_iter()
                .collect(),
            "file" | "exec" => in_folder(&out.path().join(name), id_of_envelope),
            "mcp" => in_folder(&out.path().join(name), id_of_call),
            "sms" => provider.asked().iter().filter_map(id_of_text).collect(),
            "email" => {
                let mails = mails.lock().unwrap();
                mails.iter().map(|mail| id_of_mail(mail)).collect()
            }
            _ => in_inbox(&other, &address),
        };
        handed_out.retain(|id| id.starts_with('M'));
        let wanted = taken
            .iter()
            .filter(|c| c.way == way && tables.is_handed_out(**c));
        let wanted: BTreeSet<String> = wanted.map(|c| c.id()).collect();
        assert_eq!(handed_out, wanted, "{name}");
        assert!(!wanted.is_empty());
    }

    revoke_it("revoked after the message was handed out");
    for cell in &taken {
        let is_there = store.record(&cell.id()).unwrap().is_some();
        let wanted = tables.when(*cell, "text afterwards");
        // What has ended is erased by and by; it is not shown until then.
        let shown = house
            .get(&format!("/crosstalk/messages/{}", cell.id()))
            .status
            == 200;
        assert_eq!(shown, wanted == "kept", "{cell:?}");
        if cell.when() != "it expires before it is handed out" {
            assert_eq!(is_there, wanted == "kept", "{cell:?}");
        }
    }
    // The relay that had got it was told, and has erased it as well.
    let last = WHENS.len() - 1;
    let others = other.store();
    for cell in taken
        .iter()
        .filter(|c| WAYS[c.way] == "relay" && c.when == last)
    {
        wait_until(&format!("{cell:?} is still at the other relay"), || {
            others.record(&cell.id()).unwrap().is_none()
        });
    }
    let relay = WAYS.iter().position(|w| *w == "relay").unwrap();
    wait_until("the confirmation of the other relay", || {
        let ways = store.deliveries(&format!("R{relay}-{last}")).unwrap();
        ways.iter().any(|d| d.state == DeliveryState::Delivered)
    });
    runtime.block_on(delivery.stop(LIMIT));
    drop(inside);
}

/// A message with an explicit consent that names a consent of Ann for Bot, by a row and a column of the table.
fn naming(sender: &str, case: &str, consent: &str, id: &str) -> String {
    const BOT: &str = "agent://here.example/bot";
    let from = match sender {
        "the granter, with at least the same assurance" | "the granter, with less assurance" => ANN,
        "a recipient" | "a recipient, who transfers it" => BOT,
        "another" => "agent://here.example/stranger",
        _ => panic!("no such sender: {sender}"),
    };
    let party = if from == BOT { ANN } else { BOT };
    let (to, intent, scope) = match case {
        "to the granter or a recipient" => (party, "REQUEST", "medical"),
        "to others" => ("agent://here.example/scout", "REQUEST", "medical"),
        "ESCALATE to another person" => ("human://here.example/eve", "ESCALATE", "medical"),
        "scope not covered" => (party, "REQUEST", "financial"),
        _ => panic!("no such case: {case}"),
    };
    let builder = letter(from, to, id)
        .thread(format!("T-{id}"))
        .intent(intent);
    let builder = builder.meta("privacy", "Scope", scope);
    let builder = match sender {
        "a recipient, who transfers it" => builder
            .meta("privacy", "Consent", "transferred_with_approval")
            .meta("privacy", "Consent-ID", format!("{consent}-new"))
            .meta("privacy", "Original-Consent-ID", consent),
        _ => builder.meta("privacy", "Consent", "explicit_yes").meta(
            "privacy",
            "Consent-ID",
            consent,
        ),
    };
    let text = builder.build().unwrap();
    match sender {
        "the granter, with at least the same assurance" => signed(&text, &key(), KEY),
        _ => text,
    }
}

#[test]
fn message_that_names_a_consent_on_record_keeps_its_limits() {
    let house = plan().open();
    let cells = table("| sender |");
    for (number, ((sender, case), wanted)) in cells.iter().enumerate() {
        let consent = format!("C{number}");
        let grant = from_ann("agent://here.example/bot", &format!("G{number}"))
            .meta("privacy", "Scope", "medical")
            .meta("privacy", "Consent", "explicit_yes")
            .meta("privacy", "Consent-ID", &consent);
        house.take(&signed(&grant.build().unwrap(), &key(), KEY));
        let text = naming(sender, case, &consent, &format!("M{number}"));
        let answer = house.ask(&Ask::send(text));
        let document = Document::parse(answer.text(), Reading::Strict);
        let came = document.meta("error", "Rule").unwrap_or("accepted");
        assert_eq!(came, wanted, "{sender}: {case}: {}", answer.text());
        assert_eq!(answer.status == 200, came == "accepted", "{sender}: {case}");
    }
    assert_eq!(cells.len(), 5 * 4);
}
