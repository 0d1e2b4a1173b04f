//! Two relays of two domains, and a real name server between them.

use super::{eventually, message, meta};
use crate::house::{START, add_token, setup, start, token};
use crosstalk_api::outbound::{Outbound, Roots};
use crosstalk_dns::{Dns, Options};
use crosstalk_envelope::{Algorithm, PrivateKey, Timestamp};
use crosstalk_protocol::dns::{AddressAnswer, DnsAnswer};
use crosstalk_protocol::relay::port::InboxEntry;
use crosstalk_protocol::relay::{Delivery as Way, DeliveryState, HOPS, Peer, Role, add_hop};
use crosstalk_relay::config::Config;
use crosstalk_relay::core::{Received, Relay, Setup as Parts};
use crosstalk_relay::delivery::{DeliverySetup, DeliveryTask};
use crosstalk_relay::port::{Later, Resolver};
use crosstalk_relay::server::{ServerOptions, serve};
use crosstalk_testing::knot::{Knot, Zone};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tempfile::TempDir;
use tokio::net::TcpListener;

struct Names(Dns);

impl Resolver for Names {
    fn keys<'l>(&'l self, domain: &'l str) -> Later<'l, DnsAnswer> {
        Box::pin(self.0.keys(domain))
    }

    fn addresses<'l>(&'l self, name: &'l str, domain: &'l str) -> Later<'l, AddressAnswer> {
        Box::pin(self.0.addresses(name, domain))
    }

    fn relays<'l>(&'l self, domain: &'l str) -> Later<'l, Result<Vec<String>, String>> {
        Box::pin(self.0.relays(domain))
    }

    fn hosts<'l>(&'l self, host: &'l str) -> Later<'l, Result<Vec<IpAddr>, String>> {
        Box::pin(self.0.hosts(host))
    }
}

/// The relay of a domain, as others see it.
struct House {
    relay: Relay,
    _delivery: DeliveryTask,
    _folder: TempDir,
}

/// A relay that believes nobody without a credential: only its hops prove who passes a message on.
fn open(domain: &str, listener: TcpListener, key: PrivateKey, dns: SocketAddr) -> House {
    let folder = tempfile::tempdir().unwrap();
    let config = Config::parse(&format!(
        "name = \"{domain}\"\nhosts = [\"relay.{domain}\"]\n[retry]\nfirst_seconds = 0\nlongest_seconds = 0\nattempts = 3\nfailures = 100\n\
         [federation]\nenabled = true\naccept = true\nallow_private = true\n"
    ))
    .unwrap();
    let options = Options {
        attempts: 1,
        ..Options::default()
    };
    let names: Arc<dyn Resolver> = Arc::new(Names(Dns::server(dns, options).unwrap()));
    let now = || Timestamp::from_millis(START);
    let parts = Parts {
        resolver: Some(Arc::clone(&names)),
        key: Some(key),
        ..setup(folder.path(), config, now)
    };
    let token = token("admin", Role::Admin, &["*"]);
    add_token(folder.path(), &token);
    let relay = start(parts);
    let options = ServerOptions {
        data: folder.path().to_owned(),
        tls: None,
        shutdown: std::future::pending(),
    };
    tokio::spawn(serve(relay.clone(), listener, options));
    let delivery = DeliverySetup {
        work: folder.path().join("work"),
        data: folder.path().to_owned(),
        outbound: Outbound::new(Some(names), Roots::system()),
    };
    House {
        _delivery: DeliveryTask::start(&relay, delivery),
        relay,
        _folder: folder,
    }
}

impl House {
    async fn send(&self, text: &str) {
        let received = self.relay.take_in(text, &Peer::local()).await;
        assert!(
            matches!(received, Received::Accepted { .. }),
            "{}",
            received.answer()
        );
    }

    async fn gets(&self, address: &str, count: usize) -> Vec<InboxEntry> {
        eventually(&format!("{count} messages for {address}"), async || {
            let inbox = self.relay.inbox(address, None, 100).await.unwrap();
            (inbox.len() >= count).then_some(inbox)
        })
        .await
    }

    async fn is(&self, id: &str, state: DeliveryState) -> Way {
        eventually(&format!("{id} {state:?}"), async || {
            let ways = self.relay.store().deliveries_of(id).await.unwrap();
            ways.into_iter().find(|w| w.state == state)
        })
        .await
    }
}

const ANN: &str = "bot://a.test/ann";
const BOB: &str = "bot://b.test/bob";

/// Both relays, and the name server that knows them.
async fn both() -> (House, House, Knot) {
    let (one, other) = (bind().await, bind().await);
    let (port_a, port_b) = (port(&one), port(&other));
    let key = || PrivateKey::generate(Algorithm::Ed25519).unwrap();
    let (key_a, key_b) = (key(), key());
    let zone = |name: &str, port: u16, key: &PrivateKey| {
        Zone::new(name)
            .txt(
                "_crosstalk",
                &[&format!("v=crosstalk1; url=http://relay.{name}:{port}/")],
            )
            .txt("_crosstalk-key", &[&key.public().record()])
            .record("relay A 127.0.0.1")
    };
    // Whoever looks for the relay of this domain comes to that of b.test, which looks for it as well.
    let circle = Zone::new("circle.test").txt(
        "_crosstalk",
        &[&format!("v=crosstalk1; url=http://relay.b.test:{port_b}/")],
    );
    let knot = Knot::start([
        zone("a.test", port_a, &key_a),
        zone("b.test", port_b, &key_b),
        circle,
        Zone::new("none.test"),
        Zone::with_text("broken.test", "this is no zone"),
    ]);
    let a = open("a.test", one, key_a, knot.address());
    let b = open("b.test", other, key_b, knot.address());
    (a, b, knot)
}

async fn bind() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

fn port(listener: &TcpListener) -> u16 {
    listener.local_addr().unwrap().port()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_goes_there_and_its_answer_comes_back() {
    let (a, b, _knot) = both().await;
    a.send(&message("M1", ANN, BOB, "REQUEST").build().unwrap())
        .await;
    let asked = b.gets(BOB, 1).await.remove(0).record;
    assert_eq!((asked.id.as_str(), asked.sender.as_str()), ("M1", ANN));
    assert_eq!(
        meta(&asked.text, "audit", "Received-By").as_deref(),
        Some("a.test")
    );
    a.is("M1", DeliveryState::Delivered).await;
    let answer = message("A1", BOB, ANN, "RESPOND")
        .thread("T-M1")
        .parent("M1");
    b.send(&answer.build().unwrap()).await;
    let answered = a.gets(ANN, 1).await.remove(0).record;
    assert_eq!(
        (answered.id.as_str(), answered.parent.as_deref()),
        ("A1", Some("M1"))
    );
    assert_eq!(
        meta(&answered.text, "audit", "Received-By").as_deref(),
        Some("b.test")
    );
    b.is("A1", DeliveryState::Delivered).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_there_is_an_error_here() {
    let (a, b, _knot) = both().await;
    let eve = "bot://b.test/eve";
    for (id, intent) in [("C0", "INFORM"), ("C1", "CLOSE")] {
        let text = message(id, BOB, eve, intent).thread("T-M1");
        b.send(&text.build().unwrap()).await;
    }
    a.send(&message("M1", ANN, BOB, "REQUEST").build().unwrap())
        .await;
    let way = a.is("M1", DeliveryState::Failed).await;
    assert_eq!(way.attempts, 1);
    let error = a.gets(ANN, 1).await.remove(0).record;
    assert_eq!(error.sender, BOB);
    assert_eq!(
        meta(&error.text, "error", "Code").as_deref(),
        Some("E-PERM")
    );
}

/// A relay speaks for its own domain, and for nobody else's.
#[tokio::test(flavor = "multi_thread")]
async fn a_relay_does_not_speak_for_others() {
    let (a, b, _knot) = both().await;
    for (id, sender) in [
        ("F1", "bot://b.test/eve"),
        ("F2", "bot://none.test/x"),
        ("F3", "ANN"),
        ("F4", "human://a.test/boss"),
    ] {
        a.send(&message(id, sender, BOB, "REQUEST").build().unwrap())
            .await;
        let way = a.is(id, DeliveryState::Failed).await;
        assert!(way.reason.unwrap().contains("E-PERM"), "{sender}");
    }
    let inbox = b.relay.inbox(BOB, None, 10).await.unwrap();
    assert!(inbox.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_relay_is_final_and_a_broken_zone_is_not() {
    let (a, _b, _knot) = both().await;
    let to = |domain: &str| format!("bot://{domain}.test/x");
    a.send(&message("N1", ANN, &to("none"), "REQUEST").build().unwrap())
        .await;
    let way = a.is("N1", DeliveryState::Failed).await;
    assert_eq!(way.attempts, 1);
    a.send(
        &message("B1", ANN, &to("broken"), "REQUEST")
            .build()
            .unwrap(),
    )
    .await;
    let way = a.is("B1", DeliveryState::Failed).await;
    assert_eq!(way.attempts, 3, "{way:?}");
}

/// Threat 20: loops end: a relay does not speak for others, the same message is known, and at the latest there are too many hops.
#[tokio::test(flavor = "multi_thread")]
async fn circles_end() {
    let (a, b, _knot) = both().await;
    a.send(
        &message("M1", ANN, "bot://circle.test/x", "REQUEST")
            .build()
            .unwrap(),
    )
    .await;
    a.is("M1", DeliveryState::Delivered).await;
    let way = b.is("M1", DeliveryState::Failed).await;
    assert!(
        way.reason.unwrap().contains("E-PERM"),
        "b.test does not speak for a.test"
    );
    b.send(
        &message("M3", BOB, "bot://circle.test/x", "REQUEST")
            .build()
            .unwrap(),
    )
    .await;
    b.is("M3", DeliveryState::Delivered).await;
    let key = PrivateKey::generate(Algorithm::Ed25519).unwrap();
    let mut text = message("M2", ANN, BOB, "REQUEST").build().unwrap();
    let at = Timestamp::from_millis(START);
    for number in 1..HOPS {
        let pkid = format!("r{number}.test");
        let hop = crosstalk_protocol::relay::HopKey {
            key: &key,
            pkid: &pkid,
        };
        text = add_hop(&text, at, &pkid, Some(hop)).unwrap();
    }
    a.send(&text).await;
    let way = a.is("M2", DeliveryState::Failed).await;
    assert!(way.reason.unwrap().contains("E-ROUTE"));
    let error = a.gets(ANN, 1).await.remove(0).record;
    assert_eq!(
        meta(&error.text, "error", "Code").as_deref(),
        Some("E-ROUTE")
    );
    let inbox = b.relay.inbox(BOB, None, 10).await.unwrap();
    assert!(inbox.is_empty());
}
