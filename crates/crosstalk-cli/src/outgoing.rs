//! The way out of a message that was written here: built, signed, kept, printed, put on the clipboard.
//!
//! It is kept before anything else is done with it, so that a message that left is always one that is known here.

use crate::clipboard::{ClipboardError, Copied};
use crate::clock;
use crate::command::sign::require_verified;
use crate::config::WithKey;
use crate::console::{BOLD, Console, DIM, YELLOW, styled};
use crate::desk::{self, Desk};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::home::block_of;
use crate::json;
use crate::ledger::{self, Said};
use crate::paragraph::wrap;
use crate::passphrase::Passphrase;
use crate::relay::handing::Attached;
use crate::relay::parcel::{ByRelay, Parcel};
use crate::render;
use crate::schema::SENT;
use crate::view;
use clap::Args;
use crosstalk_envelope::registry::{SchemeKind, rule};
use crosstalk_envelope::reply::ReceivedIds;
use crosstalk_envelope::signing::Signer;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{
    Address, BuildError, Builder, Document, PublicKey, Reading, Timestamp, fence, id,
};
use crosstalk_protocol::consent::{Proof, Withdrawn};
use crosstalk_protocol::store::{Arrival, Mine, Outcome, Receipt, Record, Store as _, Way};
use crosstalk_protocol::{Admitted, Assistant, Question, Trust, primer, verify};
use crosstalk_store::SqliteStore;
use serde_json::json;

/// How a message leaves.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "How it leaves")]
pub(crate) struct Delivery {
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
    /// Put a short text in front that teaches the other AI the format
    #[arg(long, overrides_with = "no_primer")]
    primer: bool,
    /// No such text, whatever the settings say
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
    /// Print JSON of the form crosstalk.sent/1
    #[arg(long)]
    pub(crate) json: bool,
}

impl Delivery {
    /// Sends a message on its way. What it warns about has been told before.
    pub(crate) fn dispatch(
        &self,
        console: &mut Console,
        desk: &Desk,
        builder: &Builder,
        files: &[Attached],
    ) -> Result<Exit, Failure> {
        let text = match builder.build() {
            Err(fault) if self.signs(desk) && is_revoke_only(&fault) => fault.text,
            built => built.map_err(|e| refused(&e))?,
        };
        let receiver = Document::parse(&text, Reading::Strict)
            .receiver()
            .to_owned();
        let remote = self.by.choose(&desk.config, &receiver)?;
        if remote.is_none() && !files.is_empty() {
            console
                .talk("The files are named with their digests; give them to the chat as well.\n")?;
        }
        tell_findings(console, &text)?;
        let at = clock::now();
        let mut store = desk.store(console)?;
        let is_known = store.knows(&receiver)?;
        let (text, key) = self.seal(desk, &text, at, is_known)?;
        let (outcome, withdrawn) = keep(console, desk, &mut store, (&text, key.as_ref()), at)?;
        let Outcome::Filed { id, thread, .. } = outcome else {
            return Err(Failure::Failed(
                "the message was not kept, because its id is taken: try again".into(),
            ));
        };
        let shown = match remote {
            // What goes by a relay goes as it is.
            Some(_) => text.clone(),
            None => self.shown(desk, &text, &receiver),
        };
        let copied = match remote {
            Some(_) => Err(ClipboardError::Off),
            None => self.copy(desk, &shown),
        };
        let record = store.message(&id)?;
        if self.json {
            let record = record.ok_or_else(|| Failure::Failed("the message is gone".into()))?;
            let parcel = Parcel {
                text: &text,
                files,
                wait: self.by.wait,
            };
            let handed = remote.map(|remote| parcel.hand_quietly(console, desk, &remote));
            let handed = handed.transpose()?;
            return report(console, (&record, &withdrawn), &shown, &copied, handed);
        }
        // With --wait, the answer is what is asked for.
        if remote.is_none() || self.by.wait.is_none() {
            console.text(&shown).and_then(|()| console.flush()).map_err(|e| match e {
                Failure::Io(what, why) => Failure::Failed(format!(
                    "{what}: {why}; the message is kept as {id}: `crosstalk show {id} --envelope` prints it"
                )),
                other => other,
            })?;
        }
        tell_copied(console, &copied, &receiver)?;
        let (short, thread) = (view::short(&store, &id)?, view::short(&store, &thread)?);
        console.talk(&format!(
            "Kept as {} in thread {thread}.\n",
            styled(BOLD, &short)
        ))?;
        ledger::tell(console, &withdrawn)?;
        if let Some(remote) = &remote {
            drop(store);
            let parcel = Parcel {
                text: &text,
                files,
                wait: self.by.wait,
            };
            return parcel.hand(console, desk, remote, &short);
        }
        let kind = Address::split(&receiver).kind();
        let may_be_model = matches!(kind, None | Some(SchemeKind::Assistant));
        if !is_known && may_be_model && !self.has_primer(desk) {
            let hint = format!(
                "First message to {}: if it does not know the format, `crosstalk show {short} --copy --primer` puts a \
                 text in front that teaches it.",
                escape(&receiver)
            );
            console.talk(&format!("{}\n", styled(DIM, &wrap(&hint, 0, 0))))?;
        }
        Ok(Exit::SUCCESS)
    }

    /// Whether there is a key to sign with, if it has to be signed: asked before anybody writes a text.
    pub(crate) fn require_key(&self, desk: &Desk) -> Result<(), Failure> {
        if self.signs(desk) {
            let wanted = self.key.clone().or_else(|| desk.config.key());
            desk.rooms.signing_key(wanted.as_deref())?;
        }
        Ok(())
    }

    /// The same, but signed: always, or unless somebody says otherwise or has no key.
    pub(crate) fn signed_if(mut self, desk: &Desk, always: bool) -> Result<Self, Failure> {
        let has_key = !desk.rooms.keys.list()?.keys.is_empty();
        self.sign = always || self.sign || (has_key && !self.no_sign);
        Ok(self)
    }

    /// The same, and the public key goes along if it is signed: whoever gets it can check it, and check later that what follows
    /// is signed with the same key. Only a setting that says never is respected.
    pub(crate) fn carrying_key(mut self, desk: &Desk) -> Self {
        self.with_key |= self.signs(desk) && desk.config.with_key() != WithKey::Never;
        self
    }

    /// A closed thread takes no new messages, unless it goes on.
    pub(crate) fn require_open(&self, store: &SqliteStore, thread: &str) -> Result<(), Failure> {
        match self.reopen {
            true => Ok(()),
            false => desk::require_open(store, thread),
        }
    }

    /// Whether it will be signed.
    pub(crate) fn signs(&self, desk: &Desk) -> bool {
        let wanted = self.sign || self.key.is_some() || self.with_key;
        wanted || (desk.config.sign() && !self.no_sign)
    }

    fn has_primer(&self, desk: &Desk) -> bool {
        self.primer || (desk.config.primer() && !self.no_primer)
    }

    /// The message, signed if that is wanted, and the key.
    pub(crate) fn seal(
        &self,
        desk: &Desk,
        text: &str,
        at: Timestamp,
        is_known: bool,
    ) -> Result<(String, Option<PublicKey>), Failure> {
        match self.signs(desk) {
            true => self.signed(desk, text, at, is_known),
            false => Ok((text.to_owned(), None)),
        }
    }

    fn signed(
        &self,
        desk: &Desk,
        text: &str,
        at: Timestamp,
        is_known: bool,
    ) -> Result<(String, Option<PublicKey>), Failure> {
        let wanted = self.key.clone().or_else(|| desk.config.key());
        let key = desk.rooms.signing_key(wanted.as_deref())?;
        let opened = desk.rooms.unlock(&key, &self.ask)?;
        let carries = match desk.config.with_key() {
            _ if self.with_key => true,
            WithKey::Always => true,
            WithKey::First => !is_known,
            WithKey::Never => false,
        };
        let block = match carries {
            true => block_of(&key),
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

    /// What goes into the chat.
    fn shown(&self, desk: &Desk, text: &str, receiver: &str) -> String {
        let fenced = self.fence || (desk.config.fence() && !self.no_fence);
        if self.has_primer(desk) {
            return with_primer(text, receiver);
        }
        match fenced {
            true => fence(text),
            false => text.to_owned(),
        }
    }

    fn copy(&self, desk: &Desk, text: &str) -> Result<Copied, ClipboardError> {
        match self.no_copy {
            true => Err(ClipboardError::Off),
            false => desk.clipboard()?.write(text),
        }
    }
}

/// An envelope in a fence, with the text in front that teaches its receiver the format.
pub(crate) fn with_primer(text: &str, receiver: &str) -> String {
    let primer = primer(Assistant::of_address(receiver));
    format!("{}\n\n{}", primer.trim_end(), fence(text))
}

/// Keeps a message of one's own, if its consent is enough. What it withdrew.
pub(crate) fn keep(
    console: &mut Console,
    desk: &Desk,
    store: &mut SqliteStore,
    (text, key): (&str, Option<&PublicKey>),
    at: Timestamp,
) -> Result<(Outcome, Withdrawn), Failure> {
    let document = Document::parse(text, Reading::Strict);
    let (arrival, admitted) = arrival(&document, key, at);
    let proof = Proof::own(admitted.verdict(), desk.mine()?.has(document.sender()));
    let policy = desk.config.consent();
    let said = Said::of(&admitted, proof, &policy, at);
    let filed = ledger::file(console, store, &arrival, (&said, &policy))?;
    filed.map_err(|refusal| ledger::declined("nothing was sent: ", &refusal))
}

/// A message of one's own, as it is kept, and with its verification.
pub(crate) fn arrival(
    document: &Document<'_>,
    key: Option<&PublicKey>,
    at: Timestamp,
) -> (Arrival, Admitted) {
    let question = Question {
        key,
        ..Question::at(at)
    };
    let verdict = verify(document, &Trust::default(), &question);
    let receipt = Receipt {
        at,
        way: Way::Sent,
        mine: &Mine::default(),
        spare: ReceivedIds {
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
        None => Failure::Failed(format!("nothing was sent: {fault}")),
    }
}

/// What is unusual about a message that was written here: a word that nobody knows, a value of the wrong kind.
fn tell_findings(console: &mut Console, text: &str) -> Result<(), Failure> {
    let document = Document::parse(text, Reading::Strict);
    for finding in render::findings(&document) {
        console.note(&format!("{} ({})", finding.message, finding.rule.id))?;
    }
    Ok(())
}

fn tell_copied(
    console: &mut Console,
    copied: &Result<Copied, ClipboardError>,
    receiver: &str,
) -> Result<(), Failure> {
    let receiver = escape(receiver);
    let text = match copied {
        Ok(Copied::System) => format!("Copied to the clipboard: paste it to {receiver}.\n"),
        Ok(Copied::Terminal) => {
            format!("The terminal was asked to put it on your clipboard: paste it to {receiver}.\n")
        }
        Err(ClipboardError::Off) => return Ok(()),
        Err(fault) => format!(
            "{}: {}\n",
            styled(YELLOW, "not copied"),
            wrap(&escape(&fault.to_string()), 12, 0)
        ),
    };
    console.talk(&text)
}

fn report(
    console: &mut Console,
    (record, withdrawn): (&Record, &Withdrawn),
    shown: &str,
    copied: &Result<Copied, ClipboardError>,
    handed: Option<(serde_json::Value, Exit)>,
) -> Result<Exit, Failure> {
    let copied = match copied {
        Ok(Copied::System) => Some("system"),
        Ok(Copied::Terminal) => Some("terminal"),
        Err(_) => None,
    };
    let (relay, exit) = handed.unzip();
    let answer = json!({
        "schema": SENT,
        "message": crate::report::Message::new(record),
        "text": shown,
        "copied": copied,
        "relay": relay,
        "withdrawn": ledger::report(withdrawn),
    });
    console.data(json::pretty(&answer)?)?;
    Ok(exit.unwrap_or_default())
}
