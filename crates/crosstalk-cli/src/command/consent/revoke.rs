//! `crosstalk consent revoke`: a consent ends, and what was kept under it goes.

use super::find;
use crate::clock;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::deliver::Delivery;
use crate::service::recipient::resolve_typed;
use crate::service::workspace::Desk;
use clap::Args;
use crosstalk_envelope::{Address, Builder, CoreHeader, Intent};
use crosstalk_protocol::compose::session_text;
use crosstalk_protocol::consent::Grant;
use crosstalk_protocol::store::{Record, Store as _, Way};

/// Withdraw a consent: erase what was kept under it, and make the signed REVOKE
///
/// It holds at once. Every message here that was kept under the consent, or under one that goes back to it, loses its text,
/// and what is left of it in the files of the store is taken out; the digests stay. The REVOKE goes to whoever got the
/// consent, or by a relay, which does the same and passes it on. Nothing takes it back: a new consent needs a new name.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk consent revoke health-2026\n  crosstalk consent revoke health-2026 --reason 'the study is over' --relay https://relay.example\n\nExit codes: as of crosstalk send; 1 no key to sign with, 14 the consent was given by somebody else."
)]
pub(super) struct Revoke {
    /// Its name, or the beginning of it
    #[arg(value_name = "ID")]
    id: String,
    /// Why, in a line
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// The receiver of the REVOKE; without it, the one who got the consent
    #[arg(long, value_name = "TO")]
    to: Option<String>,
    /// The sender, in the direction line
    #[arg(long, value_name = "NAME")]
    from: Option<String>,
    #[command(flatten)]
    delivery: Delivery,
}

impl Revoke {
    pub(super) fn run(self, console: &mut Console, desk: &Desk) -> Result<Exit, Failure> {
        let delivery = self
            .delivery
            .clone()
            .signed_if(desk, true)?
            .carrying_key(desk);
        delivery.require_key(desk)?;
        let store = desk.messages(console)?;
        let grant = match &store {
            Some(store) => find(store, &self.id)?,
            None => None,
        };
        let given = match (&store, &grant) {
            (Some(store), Some(grant)) => store.message(&grant.message)?,
            _ => None,
        };
        drop(store);
        if let Some(end) = grant.as_ref().and_then(|g| g.revoked.as_ref()) {
            console.note(&format!(
                "it was withdrawn before, at {} ({}): this REVOKE says it again",
                end.at, end.message
            ))?;
        }
        let receiver = self.receiver(console, desk, grant.as_ref())?;
        let at = clock::now();
        let id = grant.as_ref().map_or(&self.id, |g| &g.id);
        let thread = given.as_ref().map(|r| r.thread.clone());
        let mut builder =
            Builder::new(self.sender(desk, grant.as_ref(), given.as_ref())?, receiver)
                .user(desk.config.user()?)
                .session(session_text(at, "consent"))
                .thread(thread.unwrap_or_else(|| desk.new_id()))
                .core_if(CoreHeader::Parent, given.as_ref().map(|r| r.id.as_str()))
                .message(desk.new_id())
                .context("consent")
                .intent(Intent::Revoke.as_str())
                .meta("revocation", "Consent-ID", id);
        if let Some(reason) = &self.reason {
            builder = builder.meta("revocation", "Reason", reason);
        }
        let builder = builder
            .meta("revocation", "Effective", at.to_string())
            .body(format!(
                "I withdraw the consent {id}. Please erase what you have under it, let those know whom you passed it on to, \
                 and confirm."
            ))
            .visible();
        delivery.dispatch(console, desk, &builder, &[])
    }

    /// The name under which it was given, if that is one's own, or if it was given here.
    fn sender(
        &self,
        desk: &Desk,
        grant: Option<&Grant>,
        given: Option<&Record>,
    ) -> Result<String, Failure> {
        let mine = desk.mine()?;
        let was_given_here = given.is_some_and(|r| r.way == Way::Sent);
        let own = grant.filter(|g| mine.has(&g.granter) || was_given_here);
        match (&self.from, own) {
            (Some(from), _) => Ok(resolve_typed(&desk.config, from)),
            (None, Some(grant)) => Ok(grant.granter.clone()),
            (None, None) => desk.config.sender(),
        }
    }

    fn receiver(
        &self,
        console: &mut Console,
        desk: &Desk,
        grant: Option<&Grant>,
    ) -> Result<String, Failure> {
        let given = grant.map_or(&[][..], |g| &g.to);
        let receiver = match (&self.to, given) {
            (Some(to), _) => resolve_typed(&desk.config, to),
            (None, [first, others @ ..]) => {
                for other in others {
                    console.note(&format!(
                        "{other} got the consent, too: `crosstalk consent revoke {} --to {other}` tells them",
                        self.id
                    ))?;
                }
                first.clone()
            }
            (None, []) => {
                return Err(Failure::usage(format!(
                    "no consent `{}` is on record, so it is not known who got it",
                    self.id
                ))
                .help(
                    "name them with --to, or see `crosstalk \
                     consent list --all`",
                ));
            }
        };
        if Address::split(&receiver).is_name() {
            console.note(&format!(
                "{receiver} is a name and no address: a program can't be sure that this REVOKE is meant for it, and a relay \
                 does not take it; --to ADDRESS makes one that it can"
            ))?;
        }
        Ok(receiver)
    }
}
