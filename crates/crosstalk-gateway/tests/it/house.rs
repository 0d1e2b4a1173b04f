//! A relay with a mail gateway, on a real store and real sockets, and a mail client.

use crosstalk_email::{ReplyKey, TokenScope, make_token};
use crosstalk_envelope::signing::Signer;
use crosstalk_envelope::{Algorithm, Document, PrivateKey, Reading, Timestamp};
use crosstalk_gateway::gateway::{MailGateway, MailListeners};
use crosstalk_protocol::relay::Peer;
use crosstalk_protocol::relay::port::RelayStore;
use crosstalk_protocol::store::Record;
use crosstalk_protocol::{KeyStanding, KnownKey, Origin, Trust};
use crosstalk_relay::config::Config;
use crosstalk_relay::core::{Received, Relay, Setup};
use crosstalk_relay::port::Keyring;
use crosstalk_store::SqliteRelay;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// The time of every relay.
pub const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);
/// The key of the reply tokens.
pub const KEY: ReplyKey = ReplyKey::new([9; 32]);

#[derive(Default)]
struct MemoryKeyring(Mutex<Trust>);

impl Keyring for MemoryKeyring {
    fn read(&self) -> Result<Trust, String> {
        Ok(self.0.lock().unwrap().clone())
    }

    fn update(&self, change: &mut dyn FnMut(&mut Trust)) -> Result<Trust, String> {
        let mut trust = self.0.lock().unwrap();
        change(&mut trust);
        Ok(trust.clone())
    }
}

/// A relay with its gateway. It ends with the value; the data folder can go on.
pub struct MailHouse {
    pub runtime: Runtime,
    pub relay: Relay,
    gateway: Option<MailGateway>,
    pub data: Option<TempDir>,
}

/// The configuration of a gateway `crosstalk@relay.example` with a route to every mail address, LMTP, and SMTP.
pub fn config(more: &str) -> String {
    format!(
        "{more}\n[email]\ndomain = \"relay.example\"\ntrust_results = \"mx.relay.example\"\n[email.out]\nhost = \"127.0.0.1\"\n\
         port = 9\ntls = \"none\"\n[email.lmtp]\nlisten = \"127.0.0.1:0\"\n[email.smtp]\nlisten = \"127.0.0.1:0\"\n\
         [[route]]\nto = \"email:*\"\nby = \"email\"\n[[route]]\nto = \"human://acme.example/ann\"\nby = \"email\"\n\
         mail = \"ann@acme.example\"\n"
    )
}

impl MailHouse {
    pub fn new(config: &str) -> Self {
        Self::at(config, tempfile::tempdir().unwrap())
    }

    /// One on a data folder.
    pub fn at(config: &str, data: TempDir) -> Self {
        let config = Config::parse(config).unwrap();
        let mut trust = Trust::default();
        trust.pin(pinned()).unwrap();
        let path = data.path().join("relay.db");
        let setup = Setup {
            config: config.clone(),
            open: Box::new(move |context| {
                Box::pin(
                    async move { Ok(SqliteRelay::open(path, context)? as Arc<dyn RelayStore>) },
                )
            }),
            resolver: None,
            keyring: Box::new(MemoryKeyring(Mutex::new(trust))),
            key: None,
            reply_key: Some(KEY),
            command: Arc::new(|words: &str| format!("crosstalk {words}")),
            clock: Arc::new(|| NOW),
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let listeners = MailListeners::bind(&config).unwrap();
        let (relay, gateway) = runtime.block_on(async {
            let relay = Relay::start(setup).await.unwrap();
            let gateway = MailGateway::start(&relay, listeners, data.path()).unwrap();
            (relay, gateway)
        });
        Self {
            runtime,
            relay,
            gateway,
            data: Some(data),
        }
    }

    /// Stops the gateway and the relay. The data folder is left.
    pub fn stop(mut self) -> TempDir {
        let (gateway, relay) = (self.gateway.take(), self.relay.clone());
        self.runtime.block_on(async {
            if let Some(gateway) = gateway {
                gateway.stop(Duration::from_secs(10)).await;
            }
            relay.stop().await;
        });
        self.data.take().unwrap()
    }

    pub fn lmtp(&self) -> MailClient {
        let address = self.gateway.as_ref().unwrap().lmtp.unwrap();
        MailClient::connect(address, "LHLO")
    }

    pub fn smtp(&self) -> MailClient {
        let address = self.gateway.as_ref().unwrap().smtp.unwrap();
        MailClient::connect(address, "EHLO")
    }

    pub fn lmtp_address(&self) -> SocketAddr {
        self.gateway.as_ref().unwrap().lmtp.unwrap()
    }

    pub fn smtp_address(&self) -> SocketAddr {
        self.gateway.as_ref().unwrap().smtp.unwrap()
    }

    /// A message of a program to a recipient that is reached by mail.
    pub fn ask(&self, id: &str, recipient: &str, intent: &str) -> Record {
        let text = format!(
            "[[BOT→{recipient} v1]]\nuser: bot\nthread: T{id}\nmessage: {id}\ncontext: deploy\nintent: {intent}\nbody: |\n  \
             May I deploy?\nsig: none\n[[END]]\n"
        );
        self.take(&text);
        self.record(id).unwrap()
    }

    pub fn take(&self, text: &str) {
        let received = self
            .runtime
            .block_on(self.relay.take_in(text, &Peer::local()));
        assert!(
            matches!(received, Received::Accepted { .. }),
            "{received:?}"
        );
    }

    pub fn record(&self, id: &str) -> Option<Record> {
        self.runtime.block_on(async {
            self.relay.store().caught_up().await.unwrap();
            self.relay.store().record(id).await.unwrap()
        })
    }

    /// The messages of a thread.
    pub fn thread(&self, thread: &str) -> Vec<Record> {
        self.runtime.block_on(async {
            self.relay.store().caught_up().await.unwrap();
            self.relay
                .store()
                .messages(thread, None, 100)
                .await
                .unwrap()
                .items
        })
    }
}

/// The reply token of a question.
pub fn token(question: &Record, recipient: &str) -> String {
    let scope = TokenScope {
        message: &question.id,
        thread: &question.thread,
        recipient,
    };
    make_token(
        &KEY,
        scope,
        Timestamp::from_millis(NOW.as_millis() + 86_400_000),
    )
}

/// A key that the operator pinned for KALLE.
pub fn key() -> PrivateKey {
    PrivateKey::from_seed(Algorithm::Ed25519, &[7; 32]).unwrap()
}

fn pinned() -> KnownKey {
    KnownKey {
        id: "kalle@example.com".to_owned(),
        key: key().public(),
        senders: vec!["KALLE".to_owned()],
        since: Timestamp::from_millis(0),
        how: Origin::Manual,
        by: None,
        standing: KeyStanding::Active,
        credential: None,
    }
}

/// A message of KALLE, signed.
pub fn signed(id: &str) -> String {
    let text = format!(
        "[[KALLE→email:ann@acme.example v1]]\nuser: kalle\nthread: TS\nmessage: {id}\ncontext: café\nintent: NOTE\nbody: |\n  \
         A long line, so that a mail program has a reason to wrap it somewhere in the middle of the words, with an é.\n  End.\n\
         sig: none\n[[END]]\n"
    );
    let key = key();
    let signer = Signer {
        key: &key,
        pkid: "kalle@example.com",
        at: NOW,
        key_block: &[],
    };
    signer
        .sign(&Document::parse(&text, Reading::Strict))
        .unwrap()
}

/// A mail with these header fields and text.
pub fn mail(head: &str, text: &str) -> String {
    format!(
        "{}\r\n\r\n{}",
        head.replace('\n', "\r\n"),
        text.replace('\n', "\r\n")
    )
}

/// A mail client.
pub struct MailClient {
    stream: BufReader<TcpStream>,
}

impl MailClient {
    fn connect(address: SocketAddr, hello: &str) -> Self {
        let mut client = Self::raw(address);
        assert_eq!(client.hear(), "220");
        assert_eq!(client.say(&format!("{hello} client.example")), "250");
        client
    }

    /// A connection on which nothing was said.
    pub fn raw(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(crosstalk_testing::wait::LIMIT))
            .unwrap();
        Self {
            stream: BufReader::new(stream),
        }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    /// The whole answer.
    pub fn answer(&mut self) -> String {
        let mut all = String::new();
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line).unwrap() == 0 {
                return all;
            }
            let is_last = line.as_bytes().get(3) == Some(&b' ');
            all.push_str(&line);
            if is_last {
                return all;
            }
        }
    }

    /// The code of the next answer; empty at the end.
    pub fn hear(&mut self) -> String {
        self.answer().get(..3).unwrap_or_default().to_owned()
    }

    pub fn say(&mut self, line: &str) -> String {
        self.send(format!("{line}\r\n").as_bytes());
        self.hear()
    }

    /// Sends a mail. The answer to it.
    pub fn deliver(&mut self, from: &str, to: &str, mail: &str) -> String {
        assert_eq!(self.say(&format!("MAIL FROM:<{from}>")), "250");
        assert_eq!(self.say(&format!("RCPT TO:<{to}>")), "250");
        assert_eq!(self.say("DATA"), "354");
        let stuffed = mail.replace("\r\n.", "\r\n..");
        self.send(format!("{}\r\n.\r\n", stuffed.trim_end_matches("\r\n")).as_bytes());
        self.answer()
    }
}
