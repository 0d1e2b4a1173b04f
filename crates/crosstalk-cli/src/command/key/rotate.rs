//! `crosstalk key rotate`: a new key that the old one vouches for (TRU-010).

use super::announcement::Sides;
use super::new::{Kind, generate, key_id, require_fitting};
use crate::clock::{self, days_after};
use crate::console::{BOLD, Console, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::paragraph::wrap;
use crate::service::home::{Rooms, block_of, require_active, rotation_of};
use crate::service::passphrase::Passphrase;
use crate::service::signing::sign;
use clap::Args;
use crosstalk_envelope::signing::Signer;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{Builder, Document, ErrorCode, PrivateKey, Reading, base64};
use crosstalk_protocol::rotation::key_block;
use crosstalk_protocol::{Question, Rotation, learn};
use crosstalk_store::{Handover, StoredKey, TrustStoreError};

/// Put a new key in the place of an old one, and print the message that says so
///
/// Both keys sign the message. Everyone who imports it with `crosstalk trust import` takes the new key for the old one.
/// The old key signs nothing from now on here; what it signed until the end of the grace period goes on to count. A
/// passphrase of the old key is that of the new one. Everyone who misses the message sees the same in every message that
/// you sign with --with-key.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk key rotate alice@example.com > rotation.txt\n  crosstalk key rotate alice@example.com --new-id alice@example.com/2 --grace 90 > rotation.txt\n  crosstalk key rotate alice@example.com/2 --again"
)]
pub(super) struct Rotate {
    /// The id of the old key
    #[arg(value_name = "ID")]
    id: String,
    /// The id of the new key; else the same
    #[arg(long, value_name = "ID", value_parser = key_id)]
    new_id: Option<String>,
    /// How the new key signs: ed25519 or secp256r1; else as the old one
    #[arg(long, value_enum, value_name = "NAME", hide_possible_values = true)]
    algorithm: Option<Kind>,
    /// For how many days messages of the old key still count
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(..=3650))]
    grace: u32,
    /// Change nothing: print the message about the key that ID has now once more
    #[arg(long, conflicts_with_all = ["new_id", "algorithm", "grace"])]
    again: bool,
    #[command(flatten)]
    sides: Sides,
    #[command(flatten)]
    ask: Passphrase,
}

impl Rotate {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let rooms = Rooms::open()?;
        let old = rooms.keys.find(&self.id)?;
        require_active(&old)?;
        let opened = rooms.unlock(&old, &self.ask)?;
        if self.again {
            return self.print_again(console, &old, &opened.key);
        }
        let algorithm = self.algorithm.map(Into::into);
        let new = generate(algorithm.unwrap_or(old.facts.public.algorithm()))?;
        let new_id = self.new_id.as_deref().unwrap_or(&self.id);
        require_fitting(new_id, &new.public())?;
        let at = clock::now();
        let rotation = Rotation {
            old_id: self.id.clone(),
            old: old.facts.public,
            new_id: new_id.to_owned(),
            new: new.public(),
            grace: days_after(at, self.grace),
        };
        let proof = rotation.prove(&opened.key);
        let signer = Signer {
            key: &new,
            pkid: new_id,
            at,
            key_block: &key_block(new_id, &new.public(), Some((&rotation, &proof))),
        };
        let text = sign(&signer, &announcement(&self.sides, &signer, &rotation))?;
        let handover = Handover {
            at,
            grace_until: rotation.grace,
            proof: base64::encode(&proof),
        };
        let passphrase = opened.passphrase.as_ref().map(|p| p.as_str());
        let stored = rooms
            .keys
            .rotate(&old, new_id, &new, passphrase, handover)?;
        take_over(&rooms, &text, at)?;
        console.data(&text)?;
        advise(console, &stored, &rotation)?;
        Ok(Exit::SUCCESS)
    }
}

impl Rotate {
    fn print_again(
        &self,
        console: &mut Console,
        stored: &StoredKey,
        key: &PrivateKey,
    ) -> Result<Exit, Failure> {
        let Some((rotation, _)) = rotation_of(stored) else {
            let message = format!("the key {} took the place of none", self.id);
            return Err(Failure::Refused(ErrorCode::Perm, message));
        };
        let signer = Signer {
            key,
            pkid: &self.id,
            at: clock::now(),
            key_block: &block_of(stored),
        };
        let text = sign(&signer, &announcement(&self.sides, &signer, &rotation))?;
        console.data(&text)?;
        advise(console, stored, &rotation)?;
        Ok(Exit::SUCCESS)
    }
}

fn announcement(sides: &Sides, signer: &Signer<'_>, rotation: &Rotation) -> Builder {
    let body = format!(
        "The key of {} is replaced by another one, under the id {}.\nIts fingerprint is {}.\n\
         What the old key signs after {} does not count.\n\n\
         To take the new key over: crosstalk trust import FILE, with this message in the file.",
        rotation.old_id,
        rotation.new_id,
        rotation.new.fingerprint(),
        rotation.grace
    );
    sides
        .envelope(signer, "new key")
        .intent("BROADCAST")
        .body(body)
}

/// If the old key is pinned here, the new one takes its place here as well.
fn take_over(rooms: &Rooms, text: &str, at: crosstalk_envelope::Timestamp) -> Result<(), Failure> {
    let document = Document::parse(text, Reading::Strict);
    let mut known = rooms.trust()?;
    if learn(&document, &mut known, &Question::at(at)).is_err() {
        return Ok(());
    }
    rooms.trust.update(|trust| {
        let _ = learn(&document, trust, &Question::at(at));
        Ok::<(), TrustStoreError>(())
    })?;
    Ok(())
}

fn advise(console: &mut Console, new: &StoredKey, rotation: &Rotation) -> Result<(), Failure> {
    let advice = format!(
        "Send this message to everybody who has pinned {}. What the old key signs after {} does not count. Back up the new \
         key: crosstalk key backup {} --to FILE. If the old key may be in wrong hands, revoke it as well.",
        rotation.old_id, rotation.grace, new.facts.id
    );
    console.talk(&format!(
        "{}  {}\n{}\n",
        styled(BOLD, &escape(&new.facts.id)),
        new.facts.public.fingerprint(),
        wrap(&escape(&advice), 0, 0)
    ))
}
