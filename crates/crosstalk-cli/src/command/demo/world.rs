//! The stage of the demo: a folder, a relay on a free port of this machine, and three participants with an address, a key
//! and a token each.

use crate::clock;
use crate::failure::Failure;
use crate::service::audit_bundle::require_empty;
use crate::service::relay::data::{DataFolder, make_folder};
use crate::service::relay::start::{self, OPERATOR, new_token};
use crate::service::signing::{new_key, sign};
use crosstalk_envelope::signing::Signer;
use crosstalk_envelope::{Algorithm, Builder, Document, PrivateKey, Reading, Timestamp, id};
use crosstalk_protocol::audit::{ChainId, NoteKey};
use crosstalk_protocol::relay::Role;
use crosstalk_protocol::rotation::key_block;
use crosstalk_protocol::{
    KeyStanding, KnownKey, Origin, Trust, VerdictWord, VerifyContext, verify,
};
use crosstalk_relay::client::{Client, ClientError, MessageView, RelayReceipt};
use crosstalk_relay::config::{AgentEntry, Config};
use crosstalk_relay::core::Relay;
use crosstalk_relay::delivery::{DeliverySetup, DeliveryTask};
use crosstalk_relay::outbound::{Outbound, Roots};
use crosstalk_relay::server::{self, ServerOptions};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The name of the relay.
pub(super) const NAME: &str = "demo.example";
/// How long to wait for an event; only a fault takes this long.
const PATIENCE: Duration = Duration::from_secs(30);
const STEP: Duration = Duration::from_millis(25);

pub(super) const ANN: &str = "human://demo.example/ann";
/// The agent that finds things out.
pub(super) const SCOUT: &str = "agent://demo.example/scout";
/// The agent that looks at them twice.
pub(super) const CRITIC: &str = "agent://demo.example/critic";
/// The capability that the operator assigned to Critic and that the hand-off requires.
pub(super) const ABLE: &str = "letters";

/// A participant.
pub(super) struct Participant {
    pub(super) name: &'static str,
    pub(super) address: &'static str,
    pub(super) role: Role,
    pub(super) pkid: &'static str,
    key: PrivateKey,
}

impl Participant {
    fn new(
        name: &'static str,
        address: &'static str,
        role: Role,
        pkid: &'static str,
    ) -> Result<Self, Failure> {
        let key = new_key(Algorithm::Ed25519)?;
        Ok(Self {
            name,
            address,
            role,
            pkid,
            key,
        })
    }

    fn all() -> Result<[Self; 3], Failure> {
        Ok([
            Self::new("Ann", ANN, Role::Person, "ann@demo.example")?,
            Self::new("Scout", SCOUT, Role::Agent, "scout@demo.example")?,
            Self::new("Critic", CRITIC, Role::Agent, "critic@demo.example")?,
        ])
    }

    /// The key, as pinned by the others.
    fn known(&self) -> KnownKey {
        KnownKey {
            id: self.pkid.to_owned(),
            key: self.key.public(),
            since: clock::now(),
            how: Origin::Manual,
            by: None,
            senders: vec![self.address.to_owned()],
            standing: KeyStanding::Active,
            credential: None,
        }
    }

    /// A new message, with an id of its own.
    fn begin(&self, to: &str, thread: &str, intent: &str) -> Builder {
        Builder::new(self.address, to)
            .user(self.name.to_lowercase())
            .thread(thread)
            .message(id::new_ulid())
            .context("a day in the hills")
            .intent(intent)
    }

    fn sign(&self, builder: &Builder) -> Result<String, Failure> {
        let signer = Signer {
            key: &self.key,
            pkid: self.pkid,
            at: clock::now(),
            // So that a count from the texts alone can tell the voters apart.
            key_block: &key_block(self.pkid, &self.key.public(), None),
        };
        sign(&signer, builder)
    }
}

/// The folder, the relay, and the state that chapters share.
pub(super) struct World {
    folder: PathBuf,
    /// Removed at the end, unless the folder is kept.
    _temporary: Option<tempfile::TempDir>,
    pub(super) data: DataFolder,
    pub(super) url: String,
    pub(super) relay: Relay,
    runtime: Runtime,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
    cast: [Participant; 3],
    clients: [Client; 3],
    pub(super) admin: Client,
    /// The keys that all participants have compared.
    pub(super) trust: Trust,
    written: usize,
    pub(super) thread: String,
    pub(super) question: String,
    /// A checkpoint that Critic keeps from the middle of the story.
    pub(super) held: String,
    /// When Ann's consent expires.
    pub(super) end: Timestamp,
}

pub(super) struct DemoMessage {
    pub(super) id: String,
    pub(super) text: String,
    /// The file that has it, in the folder.
    pub(super) file: String,
    pub(super) receipt: RelayReceipt,
}

#[derive(Clone, Copy)]
pub(super) enum Who {
    Ann,
    Scout,
    Critic,
}

/// Fails with a sentence unless a condition holds.
pub(super) fn require(is_so: bool, what: impl Into<String>) -> Result<(), Failure> {
    match is_so {
        true => Ok(()),
        false => Err(Failure::failed(what)),
    }
}

/// The same for an answer of the relay.
pub(super) fn relayed<T>(answer: Result<T, ClientError>, what: &str) -> Result<T, Failure> {
    answer.map_err(|e| Failure::failed(format!("{what}: {e}")))
}

impl World {
    /// Makes the folder, keys and tokens, and starts the relay.
    pub(super) fn open(keep: Option<&Path>) -> Result<Self, Failure> {
        let (folder, temporary) = match keep {
            Some(folder) => (empty(folder)?, None),
            None => {
                let made = tempfile::Builder::new().prefix("crosstalk-demo-").tempdir();
                let made = made.map_err(|e| Failure::at(&std::env::temp_dir(), e))?;
                (made.path().to_owned(), Some(made))
            }
        };
        let envelopes = folder.join("envelopes");
        make_folder(&envelopes).map_err(|e| Failure::at(&envelopes, e))?;
        let data = DataFolder::at(folder.join("relay"));
        data.make()?;
        let cast = Participant::all()?;
        let trust = data.trust().update(|trust| {
            for one in &cast {
                let pinned = trust.pin(one.known());
                pinned.map_err(|_| Failure::failed("a new key can't be pinned"))?;
            }
            Ok::<Trust, Failure>(trust.clone())
        })?;
        let mut store = data.open()?;
        let mut credential = |name: &str, role: Role, addresses: &[&str]| {
            let addresses = addresses.iter().map(|a| (*a).to_owned()).collect();
            let (token, secret) = new_token(name.to_lowercase(), role, addresses)?;
            store.add_token(&token, OPERATOR)?;
            Ok::<String, Failure>(secret)
        };
        let mut secrets = Vec::new();
        for one in &cast {
            secrets.push(credential(one.name, one.role, &[one.address])?);
        }
        let admin = credential("operator", Role::Admin, &[])?;
        let config = Config {
            name: NAME.to_owned(),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            agents: vec![AgentEntry {
                address: CRITIC.to_owned(),
                capabilities: vec![ABLE.to_owned()],
            }],
            ..Config::default()
        };
        let runtime = start::runtime(Some(2))?;
        let relay = runtime.block_on(start::start(&data, config, store))?;
        let (url, running) = runtime.block_on(listen(&relay, &data))?;
        let client = |secret: &String| {
            let client = Client::new(&url).map(|c| c.with_token(secret));
            relayed(client, "the relay has no address")
        };
        let [ann, scout, critic] = secrets.as_slice() else {
            return Err(Failure::failed("there are not three participants"));
        };
        Ok(Self {
            clients: [client(ann)?, client(scout)?, client(critic)?],
            admin: client(&admin)?,
            folder,
            _temporary: temporary,
            data,
            url,
            relay,
            runtime,
            running: Some(running),
            cast,
            trust,
            written: 0,
            thread: id::new_ulid(),
            question: String::new(),
            held: String::new(),
            end: clock::days_after(clock::now(), 7),
        })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn cast(&self) -> &[Participant; 3] {
        &self.cast
    }

    fn of(&self, who: Who) -> (&Participant, &Client) {
        let ([ann, scout, critic], [a, s, c]) = (&self.cast, &self.clients);
        match who {
            Who::Ann => (ann, a),
            Who::Scout => (scout, s),
            Who::Critic => (critic, c),
        }
    }

    /// Begins a message of somebody in the conversation.
    pub(super) fn begin(&self, from: Who, to: &str, intent: &str) -> Builder {
        self.of(from).0.begin(to, &self.thread, intent)
    }

    /// Asks the relay something, as somebody.
    pub(super) fn ask<T>(&self, who: Who, work: impl AsyncFnOnce(&Client) -> T) -> T {
        self.runtime.block_on(work(self.of(who).1))
    }

    /// Does something in the threads of the relay.
    pub(super) fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Signs a message, keeps it as a file, and hands it to the relay.
    pub(super) fn try_post(
        &mut self,
        from: Who,
        name: &str,
        builder: &Builder,
    ) -> Result<Result<DemoMessage, ClientError>, Failure> {
        let text = self.of(from).0.sign(builder)?;
        self.written += 1;
        let file = self.write(&format!("{:02}-{name}.crosstalk", self.written), &text)?;
        let sent = self.ask(from, async |c| c.send(&text).await);
        let sent = match sent {
            Ok(sent) => sent,
            Err(refused @ ClientError::Rejected(_)) => return Ok(Err(refused)),
            Err(other) => return relayed(Err(other), "the relay can't be asked"),
        };
        let receipt = sent
            .receipt
            .ok_or_else(|| Failure::failed("the relay accepted the message and gave no receipt"))?;
        let document = Document::parse(&text, Reading::Strict);
        let id = document.envelope().message.unwrap_or_default().to_owned();
        Ok(Ok(DemoMessage {
            id,
            file,
            receipt,
            text,
        }))
    }

    /// The same for a message that the relay has to accept.
    pub(super) fn post(
        &mut self,
        from: Who,
        name: &str,
        builder: &Builder,
    ) -> Result<DemoMessage, Failure> {
        let posted = self.try_post(from, name, builder)?;
        relayed(posted, &format!("the relay did not accept the {name}"))
    }

    /// Writes an envelope; the name of its file in the folder.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<String, Failure> {
        let file = format!("envelopes/{name}");
        let path = self.folder.join(&file);
        std::fs::write(&path, text).map_err(|e| Failure::at(&path, e))?;
        Ok(file)
    }

    /// The messages that a participant has not acknowledged.
    pub(super) fn inbox(&self, who: Who) -> Result<Vec<MessageView>, Failure> {
        let address = self.of(who).0.address;
        let inbox = self.ask(who, async |c| {
            c.inbox(address, None, 100, Duration::ZERO).await
        });
        Ok(relayed(inbox, "the inbox can't be read")?.messages)
    }

    /// Waits for a message of an inbox, and acknowledges it.
    pub(super) fn fetch(
        &self,
        who: Who,
        what: &str,
        is_it: impl Fn(&MessageView) -> bool,
    ) -> Result<MessageView, Failure> {
        let (one, _) = self.of(who);
        let what = format!("{what} in the inbox of {}", one.name);
        let found = self.until(&what, || Ok(self.inbox(who)?.into_iter().find(&is_it)))?;
        let acked = self.ask(who, async |c| {
            c.acknowledge(one.address, &[&found.id]).await
        });
        relayed(acked, "it can't be acknowledged")?;
        Ok(found)
    }

    /// Waits for a message that was posted, acknowledges it, and verifies it.
    pub(super) fn fetch_verified(
        &self,
        who: Who,
        what: &str,
        posted: &DemoMessage,
    ) -> Result<MessageView, Failure> {
        let found = self.fetch(who, what, |m| m.id == posted.id)?;
        self.verified(&found.envelope)?;
        Ok(found)
    }

    /// The public key of the relay's log.
    pub(super) fn log_key(&self) -> Result<NoteKey, Failure> {
        relayed(
            self.run(self.admin.log_key(ChainId::FIRST)),
            "the relay does not publish its key",
        )
    }

    /// Makes the relay sign its log now.
    pub(super) fn sign_log(&self) -> Result<(), Failure> {
        let signed = self.run(self.relay.tend_log());
        signed.map_err(|e| Failure::failed(format!("the log can't be signed: {e}")))?;
        Ok(())
    }

    /// Polls until `look` finds something.
    pub(super) fn until<T>(
        &self,
        what: &str,
        mut look: impl FnMut() -> Result<Option<T>, Failure>,
    ) -> Result<T, Failure> {
        let began = Instant::now();
        loop {
            if let Some(found) = look()? {
                return Ok(found);
            }
            if began.elapsed() > PATIENCE {
                return Err(Failure::failed(format!(
                    "{what}: not within {} seconds",
                    PATIENCE.as_secs()
                )));
            }
            std::thread::sleep(STEP);
        }
    }

    /// Verifies a message as its recipient does: with the keys that were compared.
    pub(super) fn verified(&self, text: &str) -> Result<(), Failure> {
        let document = Document::parse(text, Reading::Strict);
        let word = verify(&document, &self.trust, &VerifyContext::at(clock::now())).word();
        require(
            word == VerdictWord::Verified,
            format!("a message does not verify: {}", word.as_str()),
        )
    }

    /// Stops the relay, after everything is written.
    pub(super) fn stop(&mut self) {
        let Some((stop, running)) = self.running.take() else {
            return;
        };
        // It may have ended by itself.
        let _ = stop.send(());
        self.runtime.block_on(async {
            let _ = running.await;
            self.relay.stop().await;
        });
    }
}

/// Creates the folder, or checks that it is empty.
fn empty(folder: &Path) -> Result<PathBuf, Failure> {
    let folder = std::path::absolute(folder).map_err(|e| Failure::at(folder, e))?;
    require_empty(&folder)?;
    make_folder(&folder).map_err(|e| Failure::at(&folder, e))?;
    Ok(folder)
}

type RunningRelay = (oneshot::Sender<()>, JoinHandle<()>);

/// Starts the server and the deliveries of the relay.
async fn listen(relay: &Relay, data: &DataFolder) -> Result<(String, RunningRelay), Failure> {
    let fault = |e| Failure::io("a port of this machine", e);
    let listener = tokio::net::TcpListener::bind(relay.config().listen).await;
    let listener = listener.map_err(fault)?;
    let url = format!("http://{}", listener.local_addr().map_err(fault)?);
    let setup = DeliverySetup {
        work: data.folder().join("work"),
        data: data.folder().to_owned(),
        outbound: Outbound::new(None, Roots::system()),
    };
    let delivery = DeliveryTask::start(relay, setup);
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async move {
        let _ = stopped.await;
        delivery.stop(Duration::from_secs(1)).await;
    };
    let options = ServerOptions {
        data: data.folder().to_owned(),
        tls: None,
        shutdown,
    };
    let relay = relay.clone();
    let running = tokio::spawn(async move {
        // A relay that ends too early is noticed by the next question to it.
        let _ = server::serve(relay, listener, options).await;
    });
    Ok((url, (stop, running)))
}

/// The name of somebody by the address.
pub(super) fn name_of(address: &str) -> &str {
    match address {
        ANN => "Ann",
        SCOUT => "Scout",
        CRITIC => "Critic",
        other => other,
    }
}

/// The names of several, for a sentence.
pub(super) fn names_of(addresses: &[impl AsRef<str>]) -> String {
    let names: Vec<&str> = addresses.iter().map(|a| name_of(a.as_ref())).collect();
    names.join(", ")
}
