//! `crosstalk trust distrust` (TRU-007).

use crate::clock;
use crate::console::{Console, RED, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::home::{Rooms, public_key};
use clap::Args;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{PublicKey, is_key_id};
use crosstalk_protocol::Standing;
use crosstalk_store::TrustStoreError;

/// Refuse a key, whoever vouches for it
///
/// Without --key, every key that is known for the id. `crosstalk trust remove` takes it back.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  crosstalk trust distrust bob@keys/2025 --reason 'Bob does not know this key'"
)]
pub(super) struct Distrust {
    /// The id
    #[arg(value_name = "ID")]
    id: String,
    /// This key: its record, or a file with it
    #[arg(long, value_name = "PEM|RECORD")]
    key: Option<String>,
    /// Why, for yourself
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Distrust {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        if !is_key_id(&self.id) {
            return Err(Failure::Usage(format!("`{}` is no key id", self.id)));
        }
        let rooms = Rooms::open()?;
        let key = self.key.as_deref().map(public_key).transpose()?;
        let at = clock::now();
        let marked = rooms.trust.update(|trust| {
            let known = trust.of_id(&self.id).into_iter();
            let known = known.filter(|k| !matches!(k.standing, Standing::Revoked { .. }));
            let keys: Vec<PublicKey> = match key {
                Some(key) => vec![key],
                None => known.map(|k| k.key).collect(),
            };
            for key in &keys {
                let standing = Standing::Distrusted {
                    at,
                    reason: self.reason.clone(),
                };
                trust.mark(&self.id, key, at, standing);
            }
            Ok::<Vec<PublicKey>, TrustStoreError>(keys)
        })?;
        if marked.is_empty() {
            return Err(Failure::Failed(format!(
                "no key of {} is known that could be distrusted: name one with --key",
                self.id
            )));
        }
        for key in marked {
            let word = styled(RED, "distrusted");
            let id = escape(&self.id);
            console.show(&format!("{word}  {id}\n  {}\n", key.fingerprint()))?;
        }
        Ok(Exit::SUCCESS)
    }
}
