//! The way out of messages that were written here: built, signed, kept, printed, put on the clipboard.
//!
//! ```text
//! Builder, Builder, … ── prepare ──> Sealed, … ── keep ──> Sent, … ──┬── to a relay
//!                        build, sign                                └── on the clipboard, one chat after the other
//! ```
//!
//! A message is kept before anything else is done with it, so that one that left is always known here. Of several, one that
//! can't be kept does not stop the others.

mod step;

use crate::console::{BOLD, Console, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::{
    FailureReport, HandedReport, MessageReport, RevokedReport, SentManyReport, SentReport,
    UnsentReport,
};
use crate::schema::{SENT, SENT_MANY};
use crate::service::agent;
use crate::service::clipboard::{Choice, ClipboardError, Copied};
use crate::service::consent::{self, ConsentStatement};
use crate::service::home::{Opened, block_of};
use crate::service::lookup;
use crate::service::passphrase::Passphrase;
use crate::service::relay::outbox::Outbox;
use crate::service::relay::remote::Remote;
use crate::service::relay::send::Attached;
use crate::service::relay::send::{ByRelay, Submission};
use crate::service::settings::When;
use crate::service::workspace::Workspace;
use crate::{clock, json, view};
use clap::Args;
use crosstalk_binding::{document_findings, require_verified};
use crosstalk_envelope::registry::rule;
use crosstalk_envelope::reply::ReceivedIds;
use crosstalk_envelope::signing::Signer;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{
    BuildError, Builder, Document, Intent, PublicKey, Reading, Timestamp, fence, id,
};
use crosstalk_protocol::consent::{Proof, RevocationResult};
use crosstalk_protocol::store::{
    Arrival, ArrivalContext, Mine, Record, StoreOutcome, Way, is_same_party,
};
use crosstalk_protocol::{
    Admitted, Assistant, Trust, VerifyContext, needs_primer, primer_of, verify,
};
use crosstalk_store::{SqliteStore, StoredKey};

/// How a message leaves.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "How it leaves")]
pub(crate) struct SendOptions {
    /// Sign it
    #[arg(long, overrides_with = "no_sign")]
    sign: bool,
    /// Don't sign it, whatever the settings say
    #[arg(long)]
    no_sign: bool,
    /// Sign with this key; not needed if there is only one
    #[arg(long, value_name = "ID")]
    key: Option<String>,
    /// Send the public key along with the signature
    #[arg(long)]
    with_key: bool,
    #[command(flatten)]
    ask: Passphrase,
    /// Put it into a code fence, for chats that collapse line breaks
    #[arg(long, overrides_with = "no_fence")]
    fence: bool,
    /// No code fence, whatever the settings say
    #[arg(long)]
    no_fence: bool,
    /// Copy the primer too, a short text that teaches the other AI the format; by default it goes with the first message of a
    /// thread, until you have pasted an envelope of that AI
    #[arg(long, overrides_with = "no_primer")]
    primer: bool,
    /// No primer, whatever the settings say
    #[arg(long)]
    no_primer: bool,
    /// Leave the clipboard alone
    #[arg(long)]
    no_copy: bool,
    #[command(flatten)]
    by: ByRelay,
    /// Go on with a thread that was closed
    #[arg(long)]
    reopen: bool,
    /// Print JSON of the form crosstalk.sent/1; for several receivers crosstalk.sent-many/1
    #[arg(long)]
    pub(crate) json: bool,
    /// An agent sends it: nobody carries it, and what is for the person of this store goes to their inbox
    #[arg(skip)]
    is_agent: bool,
}

/// A message that is built and signed, and not kept yet.
pub(crate) struct SignedMessage {
    /// The envelope.
    pub(crate) text: String,
    key: Option<PublicKey>,
    at: Timestamp,
    receiver: String,
    /// The relay that it goes by; without one, a person carries it.
    remote: Option<Remote>,
    /// The chats that a person pastes it into.
    chats: Vec<String>,
    has_primer: bool,
    is_fenced: bool,
    /// Whether an agent on this machine reads it here.
    is_read_here: bool,
}

/// A message that is kept, and on its way.
struct SentMessage {
    signed: SignedMessage,
    record: Record,
    revoked: RevocationResult,
    /// The text for the chat.
    pasted: String,
}

impl SentMessage {
    fn is_by_hand(&self) -> bool {
        self.signed.is_by_hand()
    }
}

impl SendOptions {
    /// How the message of an agent leaves: unsigned, because the keys are the person's.
    pub(crate) fn of_agent() -> Self {
        Self {
            no_sign: true,
            is_agent: true,
            ..Self::default().without_copy()
        }
    }

    /// Keeps messages and hands them to their relays, without a word to a person.
    pub(crate) fn post(
        &self,
        console: &mut Console,
        workspace: &Workspace,
        builders: &[Builder],
        files: &[Attached],
    ) -> Result<Vec<(Record, Option<HandedReport>)>, Failure> {
        let signed = self.prepare(console, workspace, builders)?;
        let mut store = workspace.store(console)?;
        let mut posted = Vec::new();
        for one in signed {
            let sent = self.keep(console, workspace, &mut store, one)?;
            let remote = sent.signed.remote.as_ref();
            let parcel = self.parcel(&sent, files);
            let handed = remote.map(|remote| parcel.hand_quietly(console, workspace, remote));
            let handed = handed.transpose()?.map(|(handed, _)| handed);
            posted.push((sent.record, handed));
        }
        Ok(posted)
    }

    /// Sends a message on its way. What it warns about has been told before.
    pub(crate) fn dispatch(
        &self,
        console: &mut Console,
        workspace: &Workspace,
        builder: &Builder,
        files: &[Attached],
    ) -> Result<Exit, Failure> {
        self.dispatch_all(console, workspace, std::slice::from_ref(builder), files)
    }

    /// Sends messages of one thread on their way: one, or one for each receiver.
    pub(crate) fn dispatch_all(
        &self,
        console: &mut Console,
        workspace: &Workspace,
        builders: &[Builder],
        files: &[Attached],
    ) -> Result<Exit, Failure> {
        let signed = self.prepare(console, workspace, builders)?;
        if !files.is_empty() && signed.iter().any(SignedMessage::is_by_hand) {
            console
                .talk("The files are named with their digests; give them to the chat as well.\n")?;
        }
        self.send(console, workspace, signed, files)
    }

    /// Builds and signs messages. Nothing is kept yet: one that breaks a rule stops all of them.
    pub(crate) fn prepare(
        &self,
        console: &mut Console,
        workspace: &Workspace,
        builders: &[Builder],
    ) -> Result<Vec<SignedMessage>, Failure> {
        let mut built = Vec::new();
        for builder in builders {
            let text = match builder.build() {
                Err(fault) if self.signs(workspace) && is_revoke_only(&fault) => fault.text,
                built => built.map_err(|e| refused(&e))?,
            };
            let receiver = Document::parse(&text, Reading::Strict)
                .receiver()
                .to_owned();
            let is_to_person = self.is_agent && workspace.mine()?.has(&receiver);
            let remote = match is_to_person {
                true => None,
                false => self.by.choose(&workspace.config, &receiver)?,
            };
            built.push((text, receiver, remote));
        }
        tell_findings(console, built.iter().map(|(text, ..)| text.as_str()))?;
        let at = clock::now();
        let store = workspace.store(console)?;
        let mine = workspace.mine()?;
        let opened = self.open_key(workspace)?;
        let is_fenced = self.fence || (workspace.config.fence() && !self.no_fence);
        let mut signed = Vec::new();
        for (text, receiver, remote) in built {
            let (text, key) = match &opened {
                Some(opened) => {
                    let is_known = store.knows(&receiver)?;
                    self.signed(workspace, &text, opened, (at, is_known))?
                }
                None => (text, None),
            };
            let document = Document::parse(&text, Reading::Strict);
            let chats = chats(&document, &mine);
            let mut is_read_here = remote.is_none();
            for chat in &chats {
                is_read_here = is_read_here && agent::is_known(workspace, chat)?;
            }
            let has_primer = remote.is_none()
                && !is_read_here
                && self.has_primer(workspace, &store, &document, &chats)?;
            drop(document);
            signed.push(SignedMessage {
                text,
                key,
                at,
                receiver,
                remote,
                chats,
                has_primer,
                is_fenced,
                is_read_here,
            });
        }
        Ok(signed)
    }

    /// Keeps messages, and gives each to a relay or to the person who carries it.
    pub(crate) fn send(
        &self,
        console: &mut Console,
        workspace: &Workspace,
        signed: Vec<SignedMessage>,
        files: &[Attached],
    ) -> Result<Exit, Failure> {
        let is_one = signed.len() == 1;
        let mut store = workspace.store(console)?;
        let (mut sent, mut unsent) = (Vec::new(), Vec::new());
        for one in signed {
            let receiver = one.receiver.clone();
            match self.keep(console, workspace, &mut store, one) {
                Ok(kept) => sent.push(kept),
                Err(fault) => unsent.push((receiver, fault)),
            }
        }
        if sent.is_empty() {
            let first = unsent.into_iter().next().map(|(_, fault)| fault);
            return Err(first.unwrap_or_else(|| Failure::failed("there is nothing to send")));
        }
        let unsent_exits = unsent.iter().map(|(_, fault)| fault.exit());
        let exit = unsent_exits.fold(Exit::SUCCESS, Exit::worst);
        if self.json {
            drop(store);
            return self.report_all(console, workspace, (&sent, &unsent), (is_one, files), exit);
        }
        self.print(console, &sent)?;
        let by_hand: Vec<&SentMessage> = sent.iter().filter(|one| one.is_by_hand()).collect();
        let stops: usize = by_hand.iter().map(|one| one.signed.chats.len()).sum();
        let steps = stops > 1 && !self.is_clipboard_off(workspace) && console.can_ask();
        let is_copied = match by_hand.first().filter(|_| !steps) {
            Some(first) => {
                let copied = self.copy(workspace, &first.pasted);
                step::tell_copied(console, &by_hand, &copied)?
            }
            None => false,
        };
        let mut names = Vec::new();
        for one in &sent {
            let id = view::short(&store, &one.record.id)?;
            let thread = view::short(&store, &one.record.thread)?;
            let to = match is_one {
                true => String::new(),
                false => format!(", for {}", escape(&one.signed.receiver)),
            };
            let id_shown = styled(BOLD, &id);
            console.talk(&format!("Kept as {id_shown} in thread {thread}{to}.\n"))?;
            consent::tell(console, &one.revoked)?;
            if one.signed.is_read_here {
                let agent = escape(&one.signed.receiver);
                console.talk(&format!("{agent} gets it here, with its next check.\n"))?;
            }
            names.push(id);
        }
        drop(store);
        for (receiver, fault) in &unsent {
            console.failure(&Failure::failed(step::not_sent(receiver, fault)))?;
        }
        let by_hand: Vec<(&SentMessage, &str)> = sent
            .iter()
            .zip(&names)
            .filter(|(one, _)| one.is_by_hand())
            .map(|(one, id)| (one, id.as_str()))
            .collect();
        if is_copied && let Some((_, later)) = by_hand.split_first() {
            step::tell_later(console, later)?;
            for (sent, _) in later {
                Outbox::of(workspace).add_uncopied(&sent.record.id)?;
            }
        }
        let mut exit = exit;
        for (one, id) in sent.iter().zip(&names) {
            if let Some(remote) = &one.signed.remote {
                let parcel = self.parcel(one, files);
                exit = exit.worst(parcel.hand(console, workspace, remote, id)?);
            }
        }
        if steps {
            for left in step::walk(console, &by_hand, |text| self.copy(workspace, text))? {
                Outbox::of(workspace).add_uncopied(&left)?;
            }
        }
        Ok(exit)
    }

    fn parcel<'p>(&self, sent: &'p SentMessage, files: &'p [Attached]) -> Submission<'p> {
        Submission {
            text: &sent.signed.text,
            files,
            wait: self.by.wait,
        }
    }

    /// Prints the envelopes. With --wait, the answer is what is asked for.
    fn print(&self, console: &mut Console, sent: &[SentMessage]) -> Result<(), Failure> {
        let is_printed = |one: &&SentMessage| one.is_by_hand() || self.by.wait.is_none();
        for (number, one) in sent.iter().filter(is_printed).enumerate() {
            let gap = if number == 0 { "" } else { "\n" };
            let text = match one.is_by_hand() && one.signed.is_fenced {
                true => fence(&one.signed.text),
                false => one.signed.text.clone(),
            };
            let id = &one.record.id;
            console
                .text(&format!("{gap}{text}"))
                .and_then(|()| console.flush())
                .map_err(|e| match e.io_error() {
                    Some(_) => Failure::failed(format!("{e}; the message is kept as {id}"))
                        .help(format!("`crosstalk show {id} --envelope` prints it")),
                    None => e,
                })?;
        }
        Ok(())
    }

    /// Keeps a message.
    fn keep(
        &self,
        console: &mut Console,
        workspace: &Workspace,
        store: &mut SqliteStore,
        signed: SignedMessage,
    ) -> Result<SentMessage, Failure> {
        let kept = (signed.text.as_str(), signed.key.as_ref());
        let (outcome, revoked) = keep_as(console, workspace, store, kept, (signed.at, self.way()))?;
        let StoreOutcome::Filed { id, .. } = outcome else {
            return Err(Failure::failed(
                "the message was not kept, because another message has its id",
            )
            .help("try again"));
        };
        let record = store.message(&id)?;
        let record = record.ok_or_else(|| Failure::failed("the message is gone"))?;
        let pasted = match (&signed.remote, signed.has_primer, signed.is_fenced) {
            // A relay gets the envelope alone.
            (Some(_), ..) | (None, false, false) => signed.text.clone(),
            (None, true, _) => primed(&signed.text, signed.assistant()),
            (None, false, true) => fence(&signed.text),
        };
        Ok(SentMessage {
            signed,
            record,
            revoked,
            pasted,
        })
    }

    /// The same for programs: nobody steps through several of them, and the first one is on the clipboard.
    fn report_all(
        &self,
        console: &mut Console,
        workspace: &Workspace,
        (sent, unsent): (&[SentMessage], &[(String, Failure)]),
        (is_one, files): (bool, &[Attached]),
        mut exit: Exit,
    ) -> Result<Exit, Failure> {
        let mut reports = Vec::new();
        let mut is_copied = false;
        for one in sent {
            let copied = match one.is_by_hand() && !is_copied {
                true => self.copy(workspace, &one.pasted),
                false => Err(ClipboardError::Off),
            };
            is_copied |= one.is_by_hand();
            let parcel = self.parcel(one, files);
            let remote = one.signed.remote.as_ref();
            let handed = remote.map(|remote| parcel.hand_quietly(console, workspace, remote));
            let (relay, ends) = handed.transpose()?.unzip();
            exit = exit.worst(ends.unwrap_or_default());
            reports.push(report(one, &copied, relay));
        }
        let thread = sent.first().map(|one| one.record.thread.clone());
        if is_one {
            console.data(json::pretty(&reports.pop())?)?;
            return Ok(exit);
        }
        let failed = unsent.iter().map(|(receiver, fault)| UnsentReport {
            to: receiver.clone(),
            failure: FailureReport::new(fault),
        });
        let report = SentManyReport {
            thread: thread.unwrap_or_default(),
            messages: reports,
            failed: failed.collect(),
        };
        console.report(SENT_MANY, &report)?;
        Ok(exit)
    }

    /// Whether there is a key to sign with, if it has to be signed: asked before anybody writes a text.
    pub(crate) fn require_key(&self, workspace: &Workspace) -> Result<(), Failure> {
        if self.signs(workspace) {
            let wanted = self.key.clone().or_else(|| workspace.config.key());
            workspace.keys.signing_key(wanted.as_deref())?;
        }
        Ok(())
    }

    /// The same, but signed: always, or unless somebody says otherwise or has no key.
    pub(crate) fn signed_if(
        mut self,
        workspace: &Workspace,
        always: bool,
    ) -> Result<Self, Failure> {
        let has_key = !workspace.keys.keys.list()?.keys.is_empty();
        self.sign = always || self.sign || (has_key && !self.no_sign);
        Ok(self)
    }

    /// The same, and the public key goes along if it is signed: the receiver can check it, and check later that what follows
    /// is signed with the same key. Only a setting that says never is respected.
    pub(crate) fn carrying_key(mut self, workspace: &Workspace) -> Self {
        self.with_key |= self.signs(workspace) && workspace.config.with_key() != When::Never;
        self
    }

    /// The relay by which a message to a receiver goes; nothing if a person carries it.
    pub(crate) fn relay_for(
        &self,
        workspace: &Workspace,
        receiver: &str,
    ) -> Result<Option<String>, Failure> {
        let remote = self.by.choose(&workspace.config, receiver)?;
        Ok(remote.map(|remote| remote.url().to_owned()))
    }

    /// A closed thread takes no new messages, unless it goes on.
    pub(crate) fn require_open(&self, store: &SqliteStore, thread: &str) -> Result<(), Failure> {
        match self.reopen {
            true => Ok(()),
            false => lookup::require_open(store, thread),
        }
    }

    /// Whether it will be signed.
    pub(crate) fn signs(&self, workspace: &Workspace) -> bool {
        let wanted = self.sign || self.key.is_some() || self.with_key;
        wanted || (workspace.config.sign() && !self.no_sign)
    }

    /// How the store takes it: what an agent sends to the person of the store is a message to them.
    const fn way(&self) -> Way {
        match self.is_agent {
            true => Way::Relayed,
            false => Way::Sent,
        }
    }

    /// Whether the primer goes along.
    fn has_primer(
        &self,
        workspace: &Workspace,
        store: &SqliteStore,
        document: &Document<'_>,
        chats: &[String],
    ) -> Result<bool, Failure> {
        let envelope = document.envelope();
        match workspace.config.primer() {
            _ if self.primer => return Ok(true),
            _ if self.no_primer => return Ok(false),
            When::Always => return Ok(true),
            When::Never => return Ok(false),
            // Persons are asked by it, whatever they are called.
            When::First if envelope.meaning() == Some(Intent::Escalate) => return Ok(false),
            When::First => {}
        }
        let thread = envelope.thread.unwrap_or_default();
        for chat in chats {
            let seen = lookup::seen(store, chat)?;
            if needs_primer(chat, &seen, thread) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The key to sign with, if it is signed.
    fn open_key(&self, workspace: &Workspace) -> Result<Option<(StoredKey, Opened)>, Failure> {
        if !self.signs(workspace) {
            return Ok(None);
        }
        let wanted = self.key.clone().or_else(|| workspace.config.key());
        let key = workspace.keys.signing_key(wanted.as_deref())?;
        let opened = workspace.keys.unlock(&key, &self.ask)?;
        Ok(Some((key, opened)))
    }

    /// The message, signed if that is wanted, and the key.
    pub(crate) fn seal(
        &self,
        workspace: &Workspace,
        text: &str,
        at: Timestamp,
        is_known: bool,
    ) -> Result<(String, Option<PublicKey>), Failure> {
        match &self.open_key(workspace)? {
            Some(opened) => self.signed(workspace, text, opened, (at, is_known)),
            None => Ok((text.to_owned(), None)),
        }
    }

    fn signed(
        &self,
        workspace: &Workspace,
        text: &str,
        (key, opened): &(StoredKey, Opened),
        (at, is_known): (Timestamp, bool),
    ) -> Result<(String, Option<PublicKey>), Failure> {
        let carries = match workspace.config.with_key() {
            _ if self.with_key => true,
            When::Always => true,
            When::First => !is_known,
            When::Never => false,
        };
        let block = match carries {
            true => block_of(key),
            false => Vec::new(),
        };
        let signer = Signer {
            key: &opened.key,
            pkid: &key.facts.id,
            at,
            key_block: &block,
        };
        let document = Document::parse(text, Reading::Strict);
        let signed = signer.sign(&document);
        let signed = signed.map_err(|d| Failure::of_rule(d.rule, &d.message))?;
        require_verified(&signed, &signer)?;
        Ok((signed, Some(opened.key.public())))
    }

    /// The same, but nothing is copied: nobody has to get it by hand.
    pub(crate) fn without_copy(mut self) -> Self {
        self.no_copy = true;
        self.no_primer = true;
        self.primer = false;
        self
    }

    fn is_clipboard_off(&self, workspace: &Workspace) -> bool {
        self.no_copy || workspace.config.clipboard() == Choice::None
    }

    fn copy(&self, workspace: &Workspace, text: &str) -> Result<Copied, ClipboardError> {
        match self.no_copy {
            true => Err(ClipboardError::Off),
            false => workspace.clipboard()?.write(text),
        }
    }
}

impl SignedMessage {
    /// Whether a person carries it.
    fn is_by_hand(&self) -> bool {
        self.remote.is_none() && !self.is_read_here
    }

    /// The reader of the primer.
    fn assistant(&self) -> Assistant {
        match self.chats.as_slice() {
            [only] => Assistant::of_address(only),
            _ => Assistant::Any,
        }
    }
}

/// The chats that a person pastes a message into: of a POLL its voters, of a BROADCAST its targets as well. A message
/// to the person needs no pasting.
fn chats(document: &Document<'_>, mine: &Mine) -> Vec<String> {
    let envelope = document.envelope();
    let receiver = document.receiver().to_owned();
    let targets = envelope.routing().target_list();
    let targets = targets.iter().map(ToString::to_string);
    let all: Vec<String> = match envelope.meaning() {
        Some(Intent::Poll) => targets.collect(),
        Some(Intent::Broadcast) => [receiver.clone()].into_iter().chain(targets).collect(),
        _ => Vec::new(),
    };
    let mut chats: Vec<String> = Vec::new();
    for chat in all {
        if !mine.has(&chat) && !chats.iter().any(|known| is_same_party(known, &chat)) {
            chats.push(chat);
        }
    }
    match chats.is_empty() {
        true => vec![receiver],
        false => chats,
    }
}

/// An envelope in a fence, with the text in front that teaches its receiver the format.
pub(crate) fn with_primer(text: &str, receiver: &str) -> String {
    primed(text, Assistant::of_address(receiver))
}

fn primed(text: &str, assistant: Assistant) -> String {
    let document = Document::parse(text, Reading::Strict);
    let primer = primer_of(assistant, document.sender());
    format!("{}\n\n{}", primer.trim_end(), fence(text))
}

/// Keeps a message of one's own, if its consent is enough. What it revoked.
pub(crate) fn keep(
    console: &mut Console,
    workspace: &Workspace,
    store: &mut SqliteStore,
    (text, key): (&str, Option<&PublicKey>),
    at: Timestamp,
) -> Result<(StoreOutcome, RevocationResult), Failure> {
    keep_as(console, workspace, store, (text, key), (at, Way::Sent))
}

fn keep_as(
    console: &mut Console,
    workspace: &Workspace,
    store: &mut SqliteStore,
    (text, key): (&str, Option<&PublicKey>),
    (at, way): (Timestamp, Way),
) -> Result<(StoreOutcome, RevocationResult), Failure> {
    let document = Document::parse(text, Reading::Strict);
    let mine = workspace.mine()?;
    let targets = document.envelope().routing().target_list();
    let mut parties = targets.iter().map(ToString::to_string);
    let is_to_person = mine.has(document.receiver()) || parties.any(|party| mine.has(&party));
    let (arrival, admitted) = match way == Way::Relayed && is_to_person {
        true => arrival_by(&document, key, (at, way), &mine),
        false => arrival(&document, key, at),
    };
    let proof = Proof::own(admitted.verdict(), workspace.mine()?.has(document.sender()));
    let policy = workspace.config.consent();
    let said = ConsentStatement::of(&admitted, proof, &policy, at);
    let filed = consent::file(console, store, &arrival, (&said, &policy))?;
    filed.map_err(|refusal| consent::declined("nothing was sent: ", &refusal))
}

/// A message of one's own, as it is kept, and with its verification.
pub(crate) fn arrival(
    document: &Document<'_>,
    key: Option<&PublicKey>,
    at: Timestamp,
) -> (Arrival, Admitted) {
    arrival_by(document, key, (at, Way::Sent), &Mine::default())
}

fn arrival_by(
    document: &Document<'_>,
    key: Option<&PublicKey>,
    (at, way): (Timestamp, Way),
    mine: &Mine,
) -> (Arrival, Admitted) {
    let question = VerifyContext {
        key,
        ..VerifyContext::at(at)
    };
    let verdict = verify(document, &Trust::default(), &question);
    let receipt = ArrivalContext {
        at,
        way,
        mine,
        generated: ReceivedIds {
            thread: id::new_ulid(),
            message: id::new_ulid(),
        },
    };
    let admitted = Admitted::new(document, verdict);
    (Arrival::new(&admitted, receipt), admitted)
}

/// Whether nothing is wrong with a message but that it is a REVOKE which is not signed yet.
pub(crate) fn is_revoke_only(fault: &BuildError) -> bool {
    let mut errors = fault.diagnostics.iter().filter(|d| d.is_error());
    !fault.text.is_empty() && errors.all(|d| *d.rule == rule::REVOKE_UNSIGNED)
}

/// Why a message can't be written, with the rule and the way out.
pub(crate) fn refused(fault: &BuildError) -> Failure {
    match fault.diagnostics.iter().find(|d| d.is_error()) {
        Some(finding) => Failure::of_rule(
            finding.rule,
            &format!("nothing was sent: {}", finding.message),
        ),
        None => Failure::failed(format!("nothing was sent: {fault}")),
    }
}

/// Tells unusual parts of messages that were written here: an unknown word, a value of the wrong kind. Several
/// messages with the same content have the same findings.
fn tell_findings<'t>(
    console: &mut Console,
    texts: impl Iterator<Item = &'t str>,
) -> Result<(), Failure> {
    let mut told: Vec<String> = Vec::new();
    for text in texts {
        let document = Document::parse(text, Reading::Strict);
        for finding in document_findings(&document) {
            let note = format!("{} ({})", finding.message, finding.rule.id);
            if !told.contains(&note) {
                console.note(&note)?;
                told.push(note);
            }
        }
    }
    Ok(())
}

fn report(
    sent: &SentMessage,
    copied: &Result<Copied, ClipboardError>,
    relay: Option<HandedReport>,
) -> SentReport {
    let copied = match copied {
        Ok(Copied::System) => Some("system"),
        Ok(Copied::Terminal) => Some("terminal"),
        Err(_) => None,
    };
    SentReport {
        schema: SENT,
        message: MessageReport::new(&sent.record),
        text: sent.pasted.clone(),
        primer: sent.signed.has_primer,
        copied,
        relay,
        withdrawn: RevokedReport::new(&sent.revoked),
    }
}
