//! `crosstalk key revoke`: a key says that it is worth nothing any more (TRU-013).

use super::announcement::Sides;
use crate::clock;
use crate::console::{Console, RED, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::paragraph::wrap;
use crate::service::home::{Rooms, block_of};
use crate::service::passphrase::Passphrase;
use crate::service::settings::Config;
use crate::service::signing::sign;
use clap::Args;
use crosstalk_envelope::signing::Signer;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{Builder, Document, Reading};
use crosstalk_protocol::{Question, Trust, learn};
use crosstalk_store::{StoredKey, TrustStoreError};

/// Revoke a key, and print the message that says so
///
/// Everyone who imports the message with `crosstalk trust import` sees `revoked` on everything that the key ever signed.
/// Nothing takes a revocation back.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk key revoke alice@example.com --reason 'the laptop was stolen' > revocation.txt\n  crosstalk key revoke alice@example.com --old > revocation.txt"
)]
pub(super) struct Revoke {
    /// The id
    #[arg(value_name = "ID")]
    id: String,
    /// Why, for those who read the message
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// The key that was replaced, where it has the id of the new one
    #[arg(long)]
    old: bool,
    #[command(flatten)]
    sides: Sides,
    #[command(flatten)]
    ask: Passphrase,
}

impl Revoke {
    pub(super) fn run(mut self, console: &mut Console) -> Result<Exit, Failure> {
        self.sides = self.sides.or_configured(&Config::open(console)?);
        let rooms = Rooms::open()?;
        let key = self.key(&rooms)?;
        let opened = rooms.unlock(&key, &self.ask)?;
        // Who revokes again says what was said the first time.
        let (at, reason) = match &key.facts.revoked {
            Some(revoked) => (revoked.at, revoked.reason.clone()),
            None => (clock::now(), self.reason.clone()),
        };
        let signer = Signer {
            key: &opened.key,
            pkid: &self.id,
            at: clock::now(),
            key_block: &block_of(&key),
        };
        let text = sign(&signer, &self.message(&signer, &key, at, reason.as_deref()))?;
        let document = Document::parse(&text, Reading::Strict);
        let question = Question::at(signer.at);
        if learn(&document, &mut Trust::default(), &question).is_err() {
            return Err(Failure::Failed(
                "the revocation proves nothing, so it is not given out: this is a fault of the program".into(),
            ));
        }
        rooms.keys.revoke(&key, at, reason.as_deref())?;
        rooms.trust.update(|trust| {
            let _ = learn(&document, trust, &question);
            Ok::<(), TrustStoreError>(())
        })?;
        console.data(&text)?;
        let advice = format!(
            "Send this message to everybody, by every way you have, and take the key out of DNS. Then make a new one, \
             under a new id, and let people compare its fingerprint. A relay takes this message from {}: --from names another \
             sender, for which your credential there speaks. Nothing takes the revocation of {} back.",
            document.sender(),
            self.id
        );
        let word = styled(RED, "revoked");
        console.talk(&format!(
            "{word}  {}  {}\n{}\n",
            escape(&self.id),
            key.facts.public.fingerprint(),
            wrap(&escape(&advice), 0, 0)
        ))?;
        Ok(Exit::SUCCESS)
    }

    fn key(&self, rooms: &Rooms) -> Result<StoredKey, Failure> {
        let current = rooms.keys.find(&self.id)?;
        if !self.old || current.facts.retired.is_some() {
            return Ok(current);
        }
        let listing = rooms.keys.list()?;
        let mut replaced = listing
            .of_id(&self.id)
            .filter(|k| k.facts.retired.is_some());
        // The last one that was replaced, if there are several.
        let first = replaced.next();
        let last = replaced.fold(first, |last, key| match last {
            Some(last) if last.facts.created > key.facts.created => Some(last),
            _ => Some(key),
        });
        last.cloned().ok_or_else(|| {
            Failure::Failed(format!("no key of {} was replaced by another one", self.id))
        })
    }

    fn message(
        &self,
        signer: &Signer<'_>,
        key: &StoredKey,
        at: crosstalk_envelope::Timestamp,
        reason: Option<&str>,
    ) -> Builder {
        let builder = self
            .sides
            .envelope(signer, "revoked key")
            .intent("REVOKE")
            .meta("revocation", "Key-ID", &self.id)
            .meta("revocation", "Public-Key", key.facts.public.record());
        let builder = match reason {
            Some(reason) => builder.meta("revocation", "Reason", reason),
            None => builder,
        };
        builder
            .meta("revocation", "Effective", at.to_string())
            .body(format!(
                "Do not trust this key any more: {}\n\n\
                 To refuse it: crosstalk trust import FILE, with this message in the file.",
                key.facts.public.fingerprint()
            ))
    }
}
