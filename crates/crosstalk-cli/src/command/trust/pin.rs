//! `crosstalk trust pin`: a key id belongs to this key from now on (TRU-003 to TRU-006).

use super::{each_message, view};
use crate::clock;
use crate::console::{BOLD, Console, GREEN, RED, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::Input;
use crate::paragraph::wrap;
use crate::service::home::{Rooms, public_key, require_allowed};
use clap::Args;
use crosstalk_envelope::registry::rule;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{Document, ErrorCode, PublicKey, is_key_id};
use crosstalk_protocol::{
    KnownKey, Origin, PinError, Question, Standing, Trust, Verdict, Word, pin_of, verify,
};
use crosstalk_store::TrustStoreError;
use std::path::{Path, PathBuf};

/// Pin a key: from now on this id belongs to it
///
/// From a message that is signed `--with-key`: the id gets this key, and its sender this id. Or by hand: an id with
/// --key. Where the id has another key, or the sender another id, nothing is changed without --replace.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk trust pin signed.txt\n  crosstalk trust pin signed.txt --compared      # after reading the fingerprint to each other\n  crosstalk trust pin alice@example.com --key alice.pem --sender CLAUDE"
)]
pub(super) struct Pin {
    /// A file with signed messages (`-` is stdin), or with --key a key id
    #[arg(value_name = "FILE|ID")]
    what: String,
    /// Pin this key, by hand: its record, or a file with it
    #[arg(long, value_name = "PEM|RECORD")]
    key: Option<String>,
    /// A sender that uses the key; may be given again
    #[arg(long, value_name = "SENDER", requires = "key")]
    sender: Vec<String>,
    /// You have compared the fingerprint with the sender: the pin counts as made by hand
    #[arg(long, conflicts_with = "key")]
    compared: bool,
    /// Take the place of another key of this id, or take the sender from another id
    #[arg(long)]
    replace: bool,
}

impl Pin {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let rooms = Rooms::open()?;
        match &self.key {
            Some(key) => {
                let pin = self.by_hand(public_key(key)?)?;
                self.pin(console, &rooms, pin)
            }
            None => self.messages(console, &rooms),
        }
    }

    fn by_hand(&self, key: PublicKey) -> Result<KnownKey, Failure> {
        let id = &self.what;
        if !is_key_id(id) {
            return Err(Failure::Usage(format!(
                "`{id}` is no key id: 1 to 255 visible ASCII characters without ;[]()<>|"
            )));
        }
        if let Some(did) = PublicKey::from_did(id)
            && did.as_ref() != Ok(&key)
        {
            let message = format!("{id} is another key than the one that was given");
            return Err(Failure::Refused(ErrorCode::Format, message));
        }
        require_allowed(&key)?;
        Ok(KnownKey {
            id: id.clone(),
            key,
            since: clock::now(),
            how: Origin::Manual,
            by: None,
            senders: self.sender.clone(),
            standing: Standing::Active,
            credential: None,
        })
    }

    fn messages(&self, console: &mut Console, rooms: &Rooms) -> Result<Exit, Failure> {
        let path = PathBuf::from(&self.what);
        if self.what != "-" && !Path::new(&self.what).exists() && is_key_id(&self.what) {
            return Err(Failure::Usage(format!(
                "there is no file `{0}`: give the file with the message, or the key: crosstalk trust pin {0} --key FILE",
                self.what
            )));
        }
        let input = Input::read(&path, console)?;
        each_message(console, &input, |console, document| {
            self.message(console, rooms, document)
        })
    }

    fn message(
        &self,
        console: &mut Console,
        rooms: &Rooms,
        document: &Document<'_>,
    ) -> Result<Exit, Failure> {
        let now = clock::now();
        let verdict = verify(document, &rooms.trust()?, &Question::at(now));
        let pin = pin_of(&verdict, now).filter(|_| is_for_a_person(&verdict));
        match pin {
            Some(mut pin) => {
                if self.compared {
                    pin.how = Origin::Manual;
                }
                self.pin(console, rooms, pin)
            }
            None => {
                let word = styled(RED, "not pinned");
                let text = format!("{} {}", verdict.sentence(), advice(&verdict));
                console.talk(&format!("{word}: {}\n", wrap(&escape(&text), 12, 0)))?;
                Ok(match verdict.word() {
                    word if word.is_signed() => Exit::FAILURE,
                    word => word.into(),
                })
            }
        }
    }

    fn pin(&self, console: &mut Console, rooms: &Rooms, pin: KnownKey) -> Result<Exit, Failure> {
        let result = rooms.trust.update(|trust| {
            let result = change(trust, pin.clone(), self.replace);
            Ok::<Result<(), PinError>, TrustStoreError>(result)
        })?;
        if let Err(fault) = result {
            return Err(Failure::Refused(
                ErrorCode::Perm,
                format!(
                    "nothing is pinned: {}",
                    view::refusal(&pin, &fault, "run the same command with --replace")
                ),
            ));
        }
        console.show(&format!(
            "{}  {}\n  {}\n",
            styled(GREEN, "pinned"),
            styled(BOLD, &escape(&pin.id)),
            pin.key.fingerprint()
        ))?;
        if !pin.senders.is_empty() {
            let senders = pin.senders.join(", ");
            console.show(&format!("  used by {}\n", escape(&senders)))?;
        }
        if pin.how == Origin::FirstContact {
            let advice = "Compare the fingerprint with the sender by voice, all eight groups; then pin it again with \
                          --compared.";
            console.talk(&format!("{}\n", wrap(advice, 0, 0)))?;
        }
        Ok(Exit::SUCCESS)
    }
}

/// Pins a key. The same one again gets what is new about it: a sender, or that a person has compared it.
fn change(trust: &mut Trust, mut pin: KnownKey, replace: bool) -> Result<(), PinError> {
    let same = trust.entry(&pin.id, &pin.key);
    let known = same.filter(|k| k.standing == Standing::Active).cloned();
    // The rules come first; on a copy, since a pin by hand may go on from here.
    let mut after = trust.clone();
    match after.pin(pin.clone()) {
        Ok(()) => {}
        Err(fault) if !replace || is_final(&fault) => return Err(fault),
        Err(_) => {
            after = trust.clone();
            after.pin_anyway(pin.clone())?;
        }
    }
    if let Some(known) = known
        && pin.how == Origin::Manual
        && known.how != Origin::Manual
    {
        pin.senders.extend(known.senders);
        pin.senders.dedup();
        pin.since = known.since;
        pin.by = pin.by.or(known.by);
        after.pin_anyway(pin)?;
    }
    *trust = after;
    Ok(())
}

/// What --replace does not change.
fn is_final(fault: &PinError) -> bool {
    match fault {
        PinError::Denied(_) | PinError::NoRoom => true,
        PinError::Refused(standing) => !matches!(**standing, Standing::Replaced { .. }),
        PinError::Changed(_) | PinError::SenderChanged(_) | PinError::LooksLike(..) => false,
    }
}

/// Whether a person may pin the key of such a message: it is whole, and nothing speaks against the key itself.
fn is_for_a_person(verdict: &Verdict) -> bool {
    match verdict.word() {
        Word::NotVerified => {
            let rules = [
                &rule::KEY_CHANGED,
                &rule::SENDER_CHANGED,
                &rule::SENDER_LOOKS_LIKE,
            ];
            verdict.rule().is_some_and(|r| rules.contains(&r))
        }
        word => word.is_signed(),
    }
}

fn advice(verdict: &Verdict) -> String {
    match verdict.word() {
        word if word.is_signed() => {
            "The message does not bring its key along: pin it with --key.".to_owned()
        }
        _ => verdict.next(),
    }
}
