//! Who takes part: an address, a key that was made for the story, a credential.

use crate::clock;
use crate::command::key::signed;
use crate::failure::Failure;
use crosstalk_envelope::signing::Signer;
use crosstalk_envelope::{Algorithm, Builder, PrivateKey, id};
use crosstalk_protocol::relay::Role;
use crosstalk_protocol::rotation::key_block;
use crosstalk_protocol::{KnownKey, Origin, Standing};

/// The person.
pub(super) const ANN: &str = "human://demo.example/ann";
/// The agent that finds things out.
pub(super) const SCOUT: &str = "agent://demo.example/scout";
/// The agent that looks at them twice.
pub(super) const CRITIC: &str = "agent://demo.example/critic";
/// What the operator assigned to Critic, and a hand-off asks for.
pub(super) const ABLE: &str = "letters";

/// Somebody who takes part.
pub(super) struct Participant {
    pub(super) name: &'static str,
    pub(super) address: &'static str,
    pub(super) role: Role,
    /// The id of the key.
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
        let key = PrivateKey::generate(Algorithm::Ed25519)
            .map_err(|e| Failure::Failed(format!("the system gives no random numbers: {e}")))?;
        Ok(Self {
            name,
            address,
            role,
            pkid,
            key,
        })
    }

    /// All three.
    pub(super) fn all() -> Result<[Self; 3], Failure> {
        Ok([
            Self::new("Ann", ANN, Role::Person, "ann@demo.example")?,
            Self::new("Scout", SCOUT, Role::Agent, "scout@demo.example")?,
            Self::new("Critic", CRITIC, Role::Agent, "critic@demo.example")?,
        ])
    }

    /// The key as others know it who compared it.
    pub(super) fn known(&self) -> KnownKey {
        KnownKey {
            id: self.pkid.to_owned(),
            key: self.key.public(),
            since: clock::now(),
            how: Origin::Manual,
            by: None,
            senders: vec![self.address.to_owned()],
            standing: Standing::Active,
            credential: None,
        }
    }

    /// A new message, with an id of its own.
    pub(super) fn writes(&self, to: &str, thread: &str, intent: &str) -> Builder {
        Builder::new(self.address, to)
            .user(self.name.to_lowercase())
            .thread(thread)
            .message(id::new_ulid())
            .context("a day in the hills")
            .intent(intent)
    }

    /// The message, signed.
    pub(super) fn sign(&self, builder: &Builder) -> Result<String, Failure> {
        let signer = Signer {
            key: &self.key,
            pkid: self.pkid,
            at: clock::now(),
            // So that whoever counts a poll from text alone can tell whose it is.
            key_block: &key_block(self.pkid, &self.key.public(), None),
        };
        signed(&signer, builder)
    }
}
