//! The settings as commands use them: each with its type.

use super::Config;
use super::setting::{Key, Value, direction};
use crate::failure::Failure;
use crate::service::clipboard::Choice;
use crosstalk_protocol::consent::Policy;
use crosstalk_protocol::relay::Pattern;

/// Which messages something goes along with: the public key, the primer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Never,
    /// The first ones, as long as the other side does not have it.
    First,
    Always,
}

/// The form of new ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ids {
    Ulid,
    Uuid,
}

impl Config {
    fn text(&self, key: Key) -> Option<String> {
        match self.value(key).0 {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    fn list(&self, key: Key) -> Vec<String> {
        match self.value(key).0 {
            Some(Value::List(list)) => list,
            _ => Vec::new(),
        }
    }

    fn is_on(&self, key: Key) -> bool {
        matches!(self.value(key).0, Some(Value::Switch(true)))
    }

    fn when(&self, key: Key) -> When {
        match self.value(key).0 {
            Some(Value::Switch(true)) => When::Always,
            Some(Value::Switch(false)) => When::Never,
            _ => When::First,
        }
    }

    /// In whose name to write.
    pub(crate) fn user(&self) -> Result<String, Failure> {
        self.text(Key::User).ok_or_else(|| {
            Failure::Failed(
                "nobody says who you are: `crosstalk config set user kalle`, or set CROSSTALK_USER"
                    .to_owned(),
            )
        })
    }

    /// Who to be in the first line of a message.
    pub(crate) fn sender(&self) -> Result<String, Failure> {
        let Some(sender) = self.text(Key::Sender) else {
            return self.user().map(|user| user.to_uppercase());
        };
        direction(&sender).map_err(|what| {
            Failure::Usage(format!(
                "the sender {what}: `crosstalk config set sender KALLE`"
            ))
        })?;
        Ok(sender)
    }

    /// The sender that is configured, if it can be used.
    pub(crate) fn named_sender(&self) -> Option<String> {
        self.text(Key::Sender)
            .filter(|sender| direction(sender).is_ok())
    }

    /// Further names and addresses of the same person.
    pub(crate) fn me(&self) -> Vec<String> {
        self.list(Key::Me)
    }

    /// What new messages are about, whatever they say.
    pub(crate) fn context(&self) -> Option<String> {
        self.text(Key::Context)
    }

    /// Whether to sign.
    pub(crate) fn sign(&self) -> bool {
        self.is_on(Key::Sign)
    }

    /// The id of the key to sign with, if one was chosen.
    pub(crate) fn key(&self) -> Option<String> {
        self.text(Key::Key)
    }

    /// Whether a signed message carries the public key.
    pub(crate) fn with_key(&self) -> When {
        self.when(Key::WithKey)
    }

    /// Whether to write messages in a code block.
    pub(crate) fn fence(&self) -> bool {
        self.is_on(Key::Fence)
    }

    /// Whether the primer goes along with a message that is copied.
    pub(crate) fn primer(&self) -> When {
        self.when(Key::Primer)
    }

    /// Which clipboard to use.
    pub(crate) fn clipboard(&self) -> Choice {
        match self.text(Key::Clipboard).as_deref() {
            Some("system") => Choice::System,
            Some("terminal") => Choice::Terminal,
            Some("none") => Choice::None,
            _ => Choice::Auto,
        }
    }

    /// The program to write with, and its arguments: of the settings, else VISUAL, else EDITOR.
    pub(crate) fn editor(&self) -> Option<String> {
        self.text(Key::Editor)
    }

    /// The form of new ids.
    pub(crate) fn ids(&self) -> Ids {
        match self.text(Key::Ids).as_deref() {
            Some("uuid") => Ids::Uuid,
            _ => Ids::Ulid,
        }
    }

    /// Whether pasting remembers the key of a sender at first contact.
    pub(crate) fn pin(&self) -> bool {
        self.is_on(Key::Pin)
    }

    /// The domain that lists the addresses of simple names.
    pub(crate) fn domain(&self) -> Option<String> {
        self.text(Key::Domain)
    }

    /// Whether the DNS may be asked without --dns.
    pub(crate) fn dns(&self) -> bool {
        self.is_on(Key::Dns)
    }

    /// Names that are taken out of what is shared.
    pub(crate) fn redact_names(&self) -> Vec<String> {
        self.list(Key::RedactNames)
    }

    /// What is demanded of consent here.
    pub(crate) fn consent(&self) -> Policy {
        let authorities = self.list(Key::ConsentAuthorities);
        Policy {
            signed: self.list(Key::ConsentSigned),
            // They were read before.
            authorities: authorities
                .iter()
                .filter_map(|p| Pattern::parse(p).ok())
                .collect(),
            ..Policy::default()
        }
    }
}
