//! The stage of the demo: a folder, a relay on a free port of this machine, and three participants with an address, a key
//! and a token each. Its methods are the steps of the story: they do what the commands do, with the same services.

use super::page::ChapterPage;
use crate::failure::Failure;
use crate::service::audit_bundle::require_empty;
use crate::service::audit_log::LogSource;
use crate::service::relay::data::{DataFolder, make_folder};
use crate::service::relay::remote::{MessageView, Remote};
use crate::service::relay::start::{self, OPERATOR, new_token};
use crate::service::signing::{new_key, sign};
use crate::{clock, view};
use crosstalk_envelope::signing::Signer;
use crosstalk_envelope::{
    Algorithm, Builder, CoreHeader, Document, ErrorCode, PrivateKey, Reading, Timestamp, id,
};
use crosstalk_protocol::relay::Role;
use crosstalk_protocol::rotation::key_block;
use crosstalk_protocol::{
    KeyStanding, KnownKey, Origin, Trust, VerdictWord, VerifyContext, verify,
};
use crosstalk_relay::client::{ClientError, RelayReceipt};
use crosstalk_relay::config::{AgentEntry, Config};
use crosstalk_relay::core::Relay;
use serde_json::Value;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
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

/// A participant, with a connection to the relay.
pub(super) struct Participant {
    pub(super) name: &'static str,
    pub(super) address: &'static str,
    pub(super) role: Role,
    pub(super) pkid: String,
    key: PrivateKey,
    pub(super) relay: Remote,
}

impl Participant {
    /// The key, as pinned by the others.
    fn known(&self) -> KnownKey {
        KnownKey {
            id: self.pkid.clone(),
            key: self.key.public(),
            since: clock::now(),
            how: Origin::Manual,
            by: None,
            senders: vec![self.address.to_owned()],
            standing: KeyStanding::Active,
            credential: None,
        }
    }

    fn sign(&self, message: &Builder) -> Result<String, Failure> {
        let signer = Signer {
            key: &self.key,
            pkid: &self.pkid,
            at: clock::now(),
            // So that a count from the texts alone can tell the voters apart.
            key_block: &key_block(&self.pkid, &self.key.public(), None),
        };
        sign(&signer, message)
    }
}

#[derive(Clone, Copy)]
pub(super) enum Who {
    Ann,
    Scout,
    Critic,
}

/// A message that the relay accepted.
pub(super) struct DemoMessage {
    pub(super) id: String,
    pub(super) text: String,
    /// The file that has it, in the folder.
    pub(super) file: String,
    receipt: RelayReceipt,
}

/// The folder, the relay, the participants, and the state that chapters share.
pub(super) struct Stage {
    /// The output of the chapter that is being told.
    pub(super) page: ChapterPage,
    folder: PathBuf,
    /// Removed at the end, unless the folder is kept.
    _temporary: Option<tempfile::TempDir>,
    pub(super) data: DataFolder,
    pub(super) url: String,
    relay: Relay,
    runtime: Runtime,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
    cast: [Participant; 3],
    /// The log of the relay, as its operator reads it.
    pub(super) log: LogSource,
    /// The keys that all participants have compared.
    pub(super) trust: Trust,
    written: usize,
    thread: String,
    pub(super) question: String,
    /// A checkpoint that Critic keeps from the middle of the story.
    pub(super) held: String,
    /// When Ann's consent expires.
    pub(super) end: Timestamp,
}

/// Fails with a sentence.
pub(super) fn fail<T>(what: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::failed(what))
}

/// Fails with a sentence unless a condition holds.
pub(super) fn require(is_so: bool, what: impl Into<String>) -> Result<(), Failure> {
    if is_so { Ok(()) } else { fail(what) }
}

pub(super) fn read(text: &str) -> Document<'_> {
    Document::parse(text, Reading::Strict)
}

impl Stage {
    /// Makes the folder, keys and tokens, and starts the relay.
    pub(super) fn open(keep: Option<&Path>) -> Result<Self, Failure> {
        let (folder, temporary) = match keep {
            Some(folder) => {
                let folder = std::path::absolute(folder).map_err(|e| Failure::at(folder, e))?;
                require_empty(&folder)?;
                (folder, None)
            }
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
        let runtime = start::runtime(Some(2))?;
        let port = |e| Failure::io("a port of this machine", e);
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
        let listener = listener.map_err(port)?;
        let listen = listener.local_addr().map_err(port)?;
        let url = format!("http://{listen}");

        let mut store = data.open()?;
        let mut connect = |name: &str, role: Role, addresses: &[&str]| {
            let addresses = addresses.iter().map(|a| (*a).to_owned()).collect();
            let (token, secret) = new_token(name.to_lowercase(), role, addresses)?;
            store.add_token(&token, OPERATOR)?;
            Remote::open(&url, Some(secret))
        };
        let mut enter = |name: &'static str, address: &'static str, role: Role| {
            Ok::<Participant, Failure>(Participant {
                name,
                address,
                role,
                pkid: format!("{}@{NAME}", name.to_lowercase()),
                key: new_key(Algorithm::Ed25519)?,
                relay: connect(name, role, &[address])?,
            })
        };
        let cast = [
            enter("Ann", ANN, Role::Person)?,
            enter("Scout", SCOUT, Role::Agent)?,
            enter("Critic", CRITIC, Role::Agent)?,
        ];
        let operator = connect("operator", Role::Admin, &[])?;
        let trust = data.trust().update(|trust| {
            for one in &cast {
                let pinned = trust.pin(one.known());
                pinned.map_err(|_| Failure::failed("a new key can't be pinned"))?;
            }
            Ok::<Trust, Failure>(trust.clone())
        })?;
        let config = Config {
            name: NAME.to_owned(),
            listen,
            agents: vec![AgentEntry {
                address: CRITIC.to_owned(),
                capabilities: vec![ABLE.to_owned()],
            }],
            ..Config::default()
        };
        let relay = runtime.block_on(start::start(&data, config, store))?;
        let (stop, stopped) = oneshot::channel::<()>();
        let (served, folder_of_relay) = (relay.clone(), data.clone());
        let running = runtime.spawn(async move {
            let stop = async {
                let _ = stopped.await;
                Duration::from_secs(1)
            };
            // A relay that ends too early is noticed by the next question to it.
            let _ = start::serve(&served, listener, None, &folder_of_relay, stop).await;
        });
        Ok(Self {
            page: ChapterPage::default(),
            folder,
            _temporary: temporary,
            data,
            url,
            relay,
            runtime,
            running: Some((stop, running)),
            cast,
            log: LogSource::Remote(Box::new(operator)),
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

    pub(super) fn of(&self, who: Who) -> &Participant {
        let [ann, scout, critic] = &self.cast;
        match who {
            Who::Ann => ann,
            Who::Scout => scout,
            Who::Critic => critic,
        }
    }

    /// Says something that needs no check.
    pub(super) fn say(&mut self, text: &str) {
        self.page.say(text);
    }

    /// Says what was checked.
    pub(super) fn checked(&mut self, text: impl Into<String>) {
        self.page.checked(text);
    }

    /// Says something if it is so; else the chapter fails with a sentence.
    pub(super) fn check(
        &mut self,
        is_so: bool,
        text: impl Into<String>,
        fault: impl Into<String>,
    ) -> Result<(), Failure> {
        require(is_so, fault)?;
        self.checked(text);
        Ok(())
    }

    /// A fact for `--json`.
    pub(super) fn fact(&mut self, name: &str, value: impl Into<Value>) {
        self.page.fact(name, value);
    }

    /// A new message of somebody in the conversation, with an id of its own.
    pub(super) fn begin(&self, from: Who, to: &str, intent: &str) -> Builder {
        let from = self.of(from);
        Builder::new(from.address, to)
            .user(from.name.to_lowercase())
            .thread(&self.thread)
            .message(id::new_ulid())
            .context("a day in the hills")
            .intent(intent)
    }

    /// Signs a message and keeps it as a file: its text, and the name of the file.
    fn write_signed(
        &mut self,
        from: Who,
        name: &str,
        message: &Builder,
    ) -> Result<(String, String), Failure> {
        let text = self.of(from).sign(message)?;
        self.written += 1;
        let file = self.write(&format!("{:02}-{name}.crosstalk", self.written), &text)?;
        Ok((text, file))
    }

    /// Signs a message, keeps it as a file, and hands it to the relay, which has to accept it.
    pub(super) fn post(
        &mut self,
        from: Who,
        name: &str,
        message: &Builder,
    ) -> Result<DemoMessage, Failure> {
        let (text, file) = self.write_signed(from, name, message)?;
        let sent = self.of(from).relay.receive(&text);
        let sent = sent.map_err(|e| {
            Failure::failed(format!("the relay did not accept the {name}: {}", e.fault))
        })?;
        let Some(receipt) = sent.receipt else {
            return fail("the relay accepted the message and gave no receipt");
        };
        let id = read(&text).header(CoreHeader::Message).map(str::to_owned);
        Ok(DemoMessage {
            id: id.unwrap_or_default(),
            text,
            file,
            receipt,
        })
    }

    /// Posts a message and shows it, with the receipt of the relay.
    pub(super) fn post_shown(
        &mut self,
        from: Who,
        name: &str,
        message: &Builder,
    ) -> Result<DemoMessage, Failure> {
        let posted = self.post(from, name, message)?;
        self.page.envelope(&posted.text, &posted.file);
        let entry = match posted.receipt.index {
            Some(index) => format!("entry {index} of its log"),
            None => "no entry in its log".to_owned(),
        };
        let digest: String = posted.receipt.digest.chars().take(19).collect();
        self.checked(format!("The relay accepted it: {entry}, {digest}…"));
        Ok(posted)
    }

    /// One participant posts a message, and the other one fetches and verifies it.
    pub(super) fn exchange(
        &mut self,
        (from, to): (Who, Who),
        name: &str,
        message: &Builder,
    ) -> Result<(DemoMessage, MessageView), Failure> {
        let posted = self.post_shown(from, name, message)?;
        let got = self.fetch_verified(to, &format!("the {name}"), &posted)?;
        Ok((posted, got))
    }

    /// Posts a message that the relay has to reject for want of consent, and shows why it did.
    pub(super) fn post_rejected(
        &mut self,
        from: Who,
        name: &str,
        message: &Builder,
        what: &str,
    ) -> Result<(), Failure> {
        let (text, _) = self.write_signed(from, name, message)?;
        match self.of(from).relay.receive(&text).map_err(|e| e.fault) {
            Err(ClientError::Rejected(why)) if why.code == Some(ErrorCode::Consent) => {
                let said = view::first_line(&why.detail);
                self.checked(format!("The relay rejected that with E-CONSENT: {said}"));
                Ok(())
            }
            Err(other) => fail(format!(
                "the relay has to reject {what} for want of consent, and it was for another reason: {other}"
            )),
            Ok(_) => fail(format!("the relay accepted {what}, which it has to reject")),
        }
    }

    /// Writes an envelope; the name of its file in the folder.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<String, Failure> {
        let file = format!("envelopes/{name}");
        self.put(&file, text)?;
        Ok(file)
    }

    /// Writes a file of the folder.
    pub(super) fn put(&self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.folder.join(name);
        std::fs::write(&path, text).map_err(|e| Failure::at(&path, e))
    }

    /// The messages that a participant has not acknowledged.
    pub(super) fn inbox(&self, who: Who) -> Result<Vec<MessageView>, Failure> {
        let one = self.of(who);
        Ok(one.relay.inbox(one.address, None, 100, 0)?.messages)
    }

    /// Waits for a message of an inbox, and acknowledges it.
    pub(super) fn fetch(
        &self,
        who: Who,
        what: &str,
        is_it: impl Fn(&MessageView) -> bool,
    ) -> Result<MessageView, Failure> {
        let one = self.of(who);
        let what = format!("{what} in the inbox of {}", one.name);
        let found = self.until(&what, || Ok(self.inbox(who)?.into_iter().find(&is_it)))?;
        one.relay.acknowledge(one.address, &found.id)?;
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
        self.verify(&found.envelope)?;
        Ok(found)
    }

    /// Verifies a message as its recipient does: with the keys that were compared.
    pub(super) fn verify(&self, text: &str) -> Result<(), Failure> {
        let context = VerifyContext::at(clock::now());
        let word = verify(&read(text), &self.trust, &context).word();
        require(
            word == VerdictWord::Verified,
            format!("a message does not verify: {}", word.as_str()),
        )
    }

    /// Makes the relay sign its log now.
    pub(super) fn sign_log(&self) -> Result<(), Failure> {
        let signed = self.runtime.block_on(self.relay.tend_log());
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
        while began.elapsed() < PATIENCE {
            if let Some(found) = look()? {
                return Ok(found);
            }
            std::thread::sleep(STEP);
        }
        fail(format!("{what}: not within {} seconds", PATIENCE.as_secs()))
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
