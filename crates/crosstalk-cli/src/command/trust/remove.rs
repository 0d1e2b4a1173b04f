//! `crosstalk trust remove`.

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::paragraph::count;
use crate::service::home::{Rooms, public_key};
use clap::Args;
use crosstalk_envelope::PublicKey;
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::{Standing, Trust};
use crosstalk_store::TrustStoreError;

/// Forget the keys of an id, or what a domain said
///
/// The next message of this id is first contact again. A key that was distrusted is forgotten as well; one that was
/// revoked is not. A domain that gave up DNSSEC has to be forgotten before it is believed again.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  crosstalk trust remove bob@keys/2025")]
pub(super) struct Remove {
    /// The id, or the domain
    #[arg(value_name = "ID|DOMAIN")]
    id: String,
    /// Only this key: its record, or a file with it
    #[arg(long, value_name = "PEM|RECORD")]
    key: Option<String>,
}

impl Remove {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let rooms = Rooms::open()?;
        let key = self.key.as_deref().map(public_key).transpose()?;
        let id = escape(&self.id);
        let (forgotten, (removed, revoked)) = rooms.trust.update(|trust| {
            let forgotten = key.is_none() && trust.forget_domain(&self.id);
            let removed = remove(trust, &self.id, key.as_ref());
            Ok::<(bool, (usize, usize)), TrustStoreError>((forgotten, removed))
        })?;
        if forgotten {
            console.talk(&format!("what {id} said is forgotten\n"))?;
        }
        if revoked > 0 {
            console.talk(&format!(
                "{} of {id} stays: revoked is revoked\n",
                count(revoked, "key")
            ))?;
        }
        if removed == 0 {
            if forgotten {
                return Ok(Exit::SUCCESS);
            }
            if revoked == 0 {
                console.talk(&format!("no key of {id} is known\n"))?;
            }
            return Ok(Exit::FAILURE);
        }
        console.talk(&format!("{} of {id} forgotten\n", count(removed, "key")))?;
        Ok(Exit::SUCCESS)
    }
}

/// How many were removed, and how many stay because they were revoked.
fn remove(trust: &mut Trust, id: &str, only: Option<&PublicKey>) -> (usize, usize) {
    let known = trust.of_id(id).into_iter();
    let meant = known.filter(|k| only.is_none_or(|only| k.key == *only));
    let (revoked, others): (Vec<_>, Vec<_>) =
        meant.partition(|k| matches!(k.standing, Standing::Revoked { .. }));
    let (revoked, keys) = (
        revoked.len(),
        others
            .into_iter()
            .map(|k| k.key)
            .collect::<Vec<PublicKey>>(),
    );
    let removed = keys.iter().map(|key| trust.remove(id, Some(key))).sum();
    (removed, revoked)
}
