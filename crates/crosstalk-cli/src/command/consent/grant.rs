//! `crosstalk consent grant`: a message that says yes.

use crate::clock;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::compose::scope;
use crate::service::consent::Renewal;
use crate::service::deliver::Delivery;
use crate::service::lookup;
use crate::service::recipient::resolve_typed;
use crate::service::workspace::Desk;
use clap::Args;
use crosstalk_envelope::{Builder, CoreHeader, Intent, Timestamp};
use crosstalk_protocol::compose::session_text;
use crosstalk_protocol::consent::LedgerStore as _;

/// Say yes: make, sign and keep a message that grants a consent
///
/// It says what the consent covers, for whom, since when and until when, and has a name by which it can be withdrawn. It is
/// signed if you have a key. It is kept, printed and put on the clipboard, or handed to a relay.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk consent grant claude://session/abc123 --scope medical --expires 2027-01-01T00:00:00Z\n  crosstalk consent grant chatgpt --scope pii --scope location --id trip-2026 --reply-to last\n\nExit codes: as of crosstalk send; 11 if the consent is not enough for the law that it names."
)]
pub(super) struct Grant {
    /// The receiver: a name or an address
    #[arg(value_name = "TO")]
    to: String,
    /// The scopes that it covers: pii, medical, financial, biometric, location, a word of your own; may be given again
    #[arg(long, value_name = "SCOPE", required = true, value_parser = scope)]
    scope: Vec<String>,
    /// When it ends: 30d, 12h, 8w, a date or a time
    #[arg(long, value_name = "TIME", value_parser = clock::end)]
    expires: Option<Timestamp>,
    /// The law that applies: GDPR, CCPA, HIPAA …; may be given again
    #[arg(long, value_name = "LAW")]
    jurisdiction: Vec<String>,
    /// Its name; else one is made
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// The message that asked for it: its id or the beginning of it, or `last`
    #[arg(long, value_name = "ID")]
    reply_to: Option<String>,
    /// Words of your own
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// The sender, in the direction line
    #[arg(long, value_name = "NAME")]
    from: Option<String>,
    #[command(flatten)]
    delivery: Delivery,
}

impl Grant {
    pub(super) fn run(self, console: &mut Console, desk: &Desk) -> Result<Exit, Failure> {
        let receiver = resolve_typed(&desk.config, &self.to);
        let sender = match &self.from {
            Some(from) => resolve_typed(&desk.config, from),
            None => desk.config.sender()?,
        };
        let asked = match &self.reply_to {
            Some(reference) => {
                let store = desk.kept(console)?;
                let asked = lookup::message(&store, reference)?;
                self.delivery.require_open(&store, &asked.thread)?;
                Some(asked)
            }
            None => None,
        };
        let delivery = self
            .delivery
            .clone()
            .signed_if(desk, false)?
            .carrying_key(desk);
        delivery.require_key(desk)?;
        let at = clock::now();
        let id = self.id.clone().unwrap_or_else(|| desk.new_id());
        let expires = self.end(console, desk, (&id, &sender, &receiver))?;
        let intent = match asked {
            Some(_) => Intent::Respond,
            None => Intent::Broadcast,
        };
        let asked = asked.as_ref();
        let thread = asked.map_or_else(|| desk.new_id(), |r| r.thread.clone());
        let mut builder = Builder::new(sender, receiver)
            .user(desk.config.user()?)
            .session(session_text(at, "consent"))
            .thread(thread)
            .core_if(CoreHeader::Parent, asked.map(|r| r.id.as_str()))
            .message(desk.new_id())
            .context(
                asked
                    .and_then(|r| r.context.as_deref())
                    .unwrap_or("consent"),
            )
            .intent(intent.as_str())
            .meta("privacy", "Consent", format!("explicit_yes_{at}"))
            .meta("privacy", "Scope", self.scope.join(", "));
        if let Some(end) = expires {
            builder = builder.meta("privacy", "Expires", end.to_string());
        }
        if !self.jurisdiction.is_empty() {
            builder = builder.meta("privacy", "Jurisdiction", self.jurisdiction.join(", "));
        }
        let builder = builder
            .meta("privacy", "Consent-ID", &id)
            .body(self.words(&id, expires, delivery.signs(desk)))
            .visible();
        let is_signed = delivery.signs(desk);
        let exit = delivery.dispatch(console, desk, &builder, &[])?;
        if !is_signed {
            console.note(
                "it is not signed, so nothing can revoke it until you have a key: `crosstalk key new --id you@example.com` makes one",
            )?;
        }
        Ok(exit)
    }

    /// When it ends: one that is on record keeps its end, unless another is named. Says what changes.
    fn end(
        &self,
        console: &mut Console,
        desk: &Desk,
        (id, sender, receiver): (&str, &str, &str),
    ) -> Result<Option<Timestamp>, Failure> {
        let store = desk.messages(console)?;
        let known = store.map(|s| s.grant(id)).transpose()?.flatten();
        let Some(known) = known else {
            return Ok(self.expires);
        };
        let renewal = Renewal {
            sender,
            to: &[receiver.to_owned()],
            scopes: &self.scope,
            expires: self.expires,
        };
        renewal.tell(console, &known, clock::now())
    }

    /// What the message says to people.
    fn words(&self, id: &str, expires: Option<Timestamp>, is_signed: bool) -> String {
        if let Some(note) = &self.note {
            return note.clone();
        }
        let end = match expires {
            Some(end) => format!(" until {end}"),
            None => String::new(),
        };
        // Only who has a key can withdraw it.
        let ends = match is_signed {
            true => "; I can withdraw it at any time.",
            false => ".",
        };
        format!(
            "I agree to the use of what falls under {}{end}. The name of this consent is {id}{ends}",
            self.scope.join(", ")
        )
    }
}
