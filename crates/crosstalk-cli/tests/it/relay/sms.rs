//! A relay that sends text messages through a provider, and gets the answers in its callbacks.

use super::client::json;
use super::{Person, Relay, output};
use crosstalk_email::{WebhookCall, id_of_mail, sign_webhook};
use crosstalk_envelope::id::time_of;
use crosstalk_testing::http::Connection;
use crosstalk_testing::wait::wait_for;
use serde_json::{Value, json as value};
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

const ANN: &str = "+4915112345678";
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A request of the relay to the provider.
#[derive(Clone, Debug)]
struct Posted {
    head: String,
    body: Value,
}

/// A provider of text messages that follows the interface in docs/operate.md: it sends a text once for each Idempotency-Key.
struct Provider {
    address: SocketAddr,
    posted: Arc<Mutex<Vec<Posted>>>,
}

impl Provider {
    /// One that answers the requests with these statuses, and 202 after them.
    fn start(statuses: &'static [u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let posted: Arc<Mutex<Vec<Posted>>> = Arc::default();
        let seen = Arc::clone(&posted);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let Some(request) = read_request(&stream) else {
                    continue;
                };
                let mut posted = seen.lock().unwrap();
                let status = statuses.get(posted.len()).copied().unwrap_or(202);
                posted.push(request);
                drop(posted);
                let _ = write!(
                    &stream,
                    "HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                );
            }
        });
        Self { address, posted }
    }

    fn posted(&self) -> Vec<Posted> {
        self.posted.lock().unwrap().clone()
    }

    /// The requests, when there are so many.
    fn gets(&self, count: usize) -> Vec<Posted> {
        wait_for(&format!("{count} requests at the provider"), || {
            let posted = self.posted();
            (posted.len() >= count).then_some(posted)
        })
    }
}

fn read_request(stream: &TcpStream) -> Option<Posted> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        (reader.read_line(&mut head).ok()? > 0).then_some(())?;
    }
    let head = head.to_lowercase();
    let length = head
        .lines()
        .find_map(|l| l.strip_prefix("content-length: "))?;
    let mut body = vec![0; length.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    let body = serde_json::from_slice(&body).ok()?;
    Some(Posted { head, body })
}

fn write_config(person: &Person, provider: &Provider) {
    let data = person.home.path("relay");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("sms.token"), "token-of-the-provider\n").unwrap();
    std::fs::write(data.join("sms.secret"), format!("{SECRET}\n")).unwrap();
    let config = format!(
        "[retry]\nfirst_seconds = 1\nlongest_seconds = 1\nattempts = 1000\n[sms]\nurl = \"http://{}/v1/messages\"\n\
         from = \"+4915199999999\"\ntoken_file = \"sms.token\"\nsecret_file = \"sms.secret\"\nallow_private = true\n\
         [[route]]\nto = \"tel:*\"\nby = \"sms\"\n[[route]]\nto = \"human://acme.example/ann\"\nby = \"sms\"\nphone = \"{ANN}\"\n",
        provider.address
    );
    std::fs::write(data.join("relay.toml"), config).unwrap();
}

/// Calls the relay as the provider does; the status and the answer.
fn call_back(url: &str, secret: &str, seconds_ago: u64, body: &Value) -> (u16, Value) {
    let address = url.trim_start_matches("http://").parse().unwrap();
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    let (body, timestamp) = (body.to_string(), (now.as_secs() - seconds_ago).to_string());
    let call = WebhookCall {
        id: "msg_1",
        timestamp: &timestamp,
        signature: "",
        body: body.as_bytes(),
    };
    let signature = sign_webhook(&call, secret).unwrap();
    let headers = format!(
        "webhook-id: msg_1\r\nwebhook-timestamp: {timestamp}\r\nwebhook-signature: v1,AAAA {signature}\r\nContent-Type: application/json\r\n"
    );
    let mut connection = Connection::open(address).unwrap();
    let answer = connection
        .request("POST", "/crosstalk/sms", &headers, body.as_bytes())
        .unwrap();
    let text = answer.text();
    (
        answer.status,
        serde_json::from_str(&text).unwrap_or(Value::String(text)),
    )
}

fn received(id: &str, from: &str, text: &str) -> Value {
    value!({ "type": "message.received", "data": { "id": id, "from": from, "to": "+4915199999999", "text": text } })
}

/// The different keys by which the provider knows a text that comes again.
fn keys(posted: &[Posted]) -> BTreeSet<&str> {
    let lines = posted.iter().flat_map(|p| p.head.lines());
    lines
        .filter(|l| l.starts_with("idempotency-key: "))
        .collect()
}

/// The code in a text.
fn code(posted: &Posted) -> String {
    let text = posted.body["text"].as_str().unwrap();
    let (_, rest) = text.split_once("Answer: ").unwrap();
    rest.split(' ').next().unwrap().to_owned()
}

#[test]
fn question_goes_out_as_a_text_and_its_answer_comes_back() {
    let provider = Provider::start(&[503, 429]);
    let kalle = Person::new("sms", "kalle");
    write_config(&kalle, &provider);
    let relay = Relay::start(&kalle.home, &[]);
    let to = format!("tel:{ANN}");
    let question = "May I deploy release 4.2 tonight?";
    let asking = kalle.starts(&[
        "send", &to, question, "--relay", &relay.url, "--wait", "300",
    ]);
    // The provider asked for patience: it gets the same text again, and knows it.
    let posted = provider.gets(3);
    for request in &posted {
        assert_eq!(request.body, posted[0].body);
        assert!(request.head.starts_with("post /v1/messages http/1.1\r\n"));
        assert!(
            request
                .head
                .contains("authorization: bearer token-of-the-provider\r\n")
        );
    }
    assert_eq!(keys(&posted).len(), 1, "{posted:?}");
    let text = posted[0].body["text"].as_str().unwrap();
    assert!(text.contains(question) && !text.contains("[["), "{text}");
    assert_eq!(posted[0].body["to"], ANN);
    assert_eq!(posted[0].body["from"], "+4915199999999");
    let code = code(&posted[0]);
    assert_eq!(posted[0].body["reference"], code);

    // Nothing counts that others can write.
    let answer = format!("{} yes, after 10 pm", code.to_lowercase());
    let from_ann = received("SM1", ANN, &answer);
    let other_secret = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    for (secret, age) in [(other_secret, 0), (SECRET, 301)] {
        let (status, told) = call_back(&relay.url, secret, age, &from_ann);
        assert_eq!(status, 401, "{told}");
    }
    let wrong_code = format!("{}A yes", &code[..code.len() - 1]);
    let other_code = match wrong_code == format!("{code} yes") {
        true => format!("{}B yes", &code[..code.len() - 1]),
        false => wrong_code,
    };
    for (from, text, why) in [
        ("+4915187654321", answer.as_str(), "another number"),
        (ANN, "yes", "no code"),
        (ANN, code.as_str(), "no code"),
        (ANN, other_code.as_str(), "no code"),
    ] {
        let (status, told) = call_back(&relay.url, SECRET, 0, &received("SM0", from, text));
        assert_eq!((status, &told["outcome"]), (200, &value!("rejected")));
        assert!(told["why"].as_str().unwrap().contains(why), "{told}");
    }
    let (status, told) = call_back(&relay.url, SECRET, 0, &from_ann);
    assert_eq!(
        (status, &told["outcome"]),
        (200, &value!("accepted")),
        "{told}"
    );
    let (code, printed) = output(asking);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("yes, after 10 pm"), "{printed}");
    assert_eq!(provider.posted().len(), 3);
    relay.stop();
}

#[test]
fn text_that_the_operator_queues_again_is_a_new_one_to_the_provider() {
    let provider = Provider::start(&[500, 400]);
    let kalle = Person::new("sms-again", "kalle");
    write_config(&kalle, &provider);
    let relay = Relay::start(&kalle.home, &[]);
    let to = format!("tel:{ANN}");
    kalle.does(&["send", &to, "Still there?", "--relay", &relay.url]);
    let dead = wait_for("a dead letter", || {
        let dead = json(&kalle.does(&["dead", "--json", "--relay", &relay.url]).out);
        dead["deliveries"][0]["id"].as_str().map(str::to_owned)
    });
    // The provider remembers the failure under the key of the first two requests.
    assert_eq!(keys(&provider.posted()).len(), 1);
    kalle.does(&["dead", "requeue", &dead, "--relay", &relay.url]);
    let posted = provider.gets(3);
    assert_eq!(keys(&posted).len(), 2, "{posted:?}");
    assert!(posted.iter().all(|p| p.body == posted[0].body));
    relay.stop();
}

#[test]
fn answers_by_text_come_once_though_the_relay_is_killed() {
    let provider = Provider::start(&[]);
    let kalle = Person::new("sms-kill", "kalle");
    write_config(&kalle, &provider);
    let relay = Relay::start(&kalle.home, &[]);
    let person = "human://acme.example/ann";
    kalle.does(&["send", person, "First?", "--relay", &relay.url]);
    kalle.does(&[
        "send",
        "tel:+442071234567",
        "Second?",
        "--relay",
        &relay.url,
    ]);
    let posted = provider.gets(2);
    let of = |number: &str| {
        let posted = posted.iter().find(|p| p.body["to"] == number);
        code(posted.unwrap_or_else(|| panic!("{number}: {posted:?}")))
    };
    relay.signal("KILL");
    drop(relay);
    let relay = Relay::start(&kalle.home, &[]);
    let answer = received("SM1", ANN, &format!("{}: no", of(ANN)));
    let (_, first) = call_back(&relay.url, SECRET, 0, &answer);
    assert_eq!(first["outcome"], "accepted", "{first}");
    // What the provider knows is not enough to send a message in its place before.
    let id = first["message"].as_str().unwrap();
    assert_ne!(id, id_of_mail("<SM1@text-message>", time_of(id).unwrap()));
    relay.signal("KILL");
    drop(relay);
    // The provider did not get the answer, and calls again.
    let relay = Relay::start(&kalle.home, &[]);
    let (_, again) = call_back(&relay.url, SECRET, 0, &answer);
    assert_eq!(again, first);
    let reference = of("+442071234567");
    let lost = value!({ "type": "message.failed", "data": { "reference": reference, "reason": "no such subscriber" } });
    for _ in 0..2 {
        let (_, told) = call_back(&relay.url, SECRET, 0, &lost);
        assert_eq!(told["outcome"], "accepted", "{told}");
    }
    let (_, other) = call_back(
        &relay.url,
        SECRET,
        0,
        &value!({ "type": "message.sent", "data": { "x": 1 } }),
    );
    assert_eq!(other["outcome"], "dropped");
    let inbox = kalle.does(&["inbox", "--relay", &relay.url, "--json"]);
    let inbox = json(&inbox.out);
    let texts = inbox["messages"].to_string();
    assert_eq!(inbox["messages"].as_array().unwrap().len(), 2, "{texts}");
    assert!(
        texts.contains("no such subscriber") && texts.contains("E-ROUTE") && texts.contains(person),
        "{texts}"
    );
    // A relay that was killed behind the provider's answer sends the text again, by the key of which the provider knows it.
    assert_eq!(keys(&provider.posted()).len(), 2, "{:?}", provider.posted());
    // What has to stay with the recipient's organisation does not go to a provider.
    let words = [
        "send",
        person,
        "Secret?",
        "--meta",
        "routing.X-Policy=no_third_party",
        "--relay",
        &relay.url,
    ];
    let held = kalle.run(&words);
    assert_ne!(held.code, 0, "{}", held.out);
    relay.stop();
}
