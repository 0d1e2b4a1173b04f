//! The messages that tell others about a key: it was replaced, it was revoked.

use crate::service::settings::Config;
use clap::Args;
use crosstalk_envelope::signing::Signer;
use crosstalk_envelope::{Builder, id};

/// Who tells whom.
#[derive(Args, Debug)]
pub(super) struct Sides {
    /// The receiver of the message
    #[arg(long, value_name = "ADDRESS", default_value = "EVERYONE")]
    to: String,
    /// The sender of the message, as you call yourself in others; else the configured sender, or the id of the key
    #[arg(long, value_name = "NAME")]
    from: Option<String>,
}

impl Sides {
    /// The same, from the sender that is configured, if none is named: a relay takes a message only from an address that its
    /// credential speaks for.
    pub(super) fn or_configured(mut self, config: &Config) -> Self {
        self.from = self.from.or_else(|| config.named_sender());
        self
    }

    /// An envelope that is to be signed with the key of this id.
    pub(super) fn envelope(&self, signer: &Signer<'_>, context: &str) -> Builder {
        let sender = self.from.as_deref().unwrap_or(signer.pkid);
        // To the hour, as sessions are named, and something that no other session has.
        let hour: String = signer.at.to_string().chars().take(13).collect();
        let name: String = id::new_ulid().chars().rev().take(6).collect();
        Builder::new(sender, self.to.as_str())
            .user(signer.pkid)
            .session(format!("{hour}Z {}", name.to_ascii_lowercase()))
            .message(id::new_ulid())
            .context(context)
    }
}
