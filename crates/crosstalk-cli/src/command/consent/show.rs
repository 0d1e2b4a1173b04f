//! `crosstalk consent show`: a consent, the messages under it, and what became of its end.

use super::list::style;
use super::{ConsentSource, find, several, unknown};
use crate::console::{BOLD, Console, DIM, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::schema::CONSENT;
use crate::service::relay::remote::{Delivered, LOOKED_THROUGH, Remote, find_by_prefix};
use crate::service::workspace::{Desk, NOTHING};
use crate::{clock, view};
use clap::Args;
use crosstalk_protocol::consent::LedgerStore as _;
use crosstalk_relay::client::{Consent, ConsentRecord, UnderConsent};

/// Show a consent, the messages under it, and who was told of its end
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk consent show health-2026\n  crosstalk consent show health-2026 --relay https://relay.example\n\nExit codes: 0 shown, 1 not on record, 10 the relay does not know it or can't be reached."
)]
pub(super) struct Show {
    /// Its name, or the beginning of it
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    source: ConsentSource,
    /// Print JSON of the form crosstalk.consent/1
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(super) fn run(self, console: &mut Console, desk: &Desk) -> Result<Exit, Failure> {
        let record = match self.source.connect(desk)? {
            Some(remote) => at_relay(&remote, &self.id)?,
            None => self.kept(console, desk)?,
        };
        if self.json {
            console.report(CONSENT, &record)?;
            return Ok(Exit::SUCCESS);
        }
        console.show(&shown(&record))?;
        Ok(Exit::SUCCESS)
    }

    fn kept(&self, console: &mut Console, desk: &Desk) -> Result<ConsentRecord, Failure> {
        let store = self.source.open(console, desk)?;
        let store = store.ok_or_else(|| Failure::failed(NOTHING.to_owned()))?;
        let grant = find(&store, &self.id)?.ok_or_else(|| unknown(&self.id))?;
        let under = store.under(&grant.id)?.into_iter();
        Ok(ConsentRecord {
            consent: Consent::of(&grant, clock::exact()),
            messages: under
                .map(|(id, has_text)| UnderConsent { id, has_text })
                .collect(),
            // Only a relay tells others by itself.
            told: Vec::new(),
        })
    }
}

/// The consent that a name, or the beginning of one, means at a relay.
fn at_relay(remote: &Remote, name: &str) -> Result<ConsentRecord, Failure> {
    let all = || {
        let all = remote.consents(None, false, LOOKED_THROUGH.into())?;
        Ok(all.into_iter().map(|c| c.id).collect())
    };
    find_by_prefix(name, |name| remote.consent(name), all, || several(name))
}

fn shown(record: &ConsentRecord) -> String {
    let consent = &record.consent;
    let mut out = format!(
        "{}  {}\n",
        styled(BOLD, &view::line(&consent.id)),
        styled(style(&consent.standing), &view::line(&consent.standing))
    );
    let mut field = |name: &str, value: &str| {
        if !value.is_empty() {
            let name = styled(DIM, &format!("{name:<13}"));
            out.push_str(&format!("{name} {}\n", view::line(value)));
        }
    };
    field("by", &consent.granter);
    field("to", &consent.to.join(", "));
    field("scope", &consent.scopes.join(", "));
    field("says", consent.consent.as_deref().unwrap_or_default());
    field("since", &consent.since);
    field("until", consent.expires.as_deref().unwrap_or("no end"));
    field("jurisdiction", &consent.jurisdictions.join(", "));
    field("verified", &consent.assurance);
    field("key", consent.pkid.as_deref().unwrap_or_default());
    field("message", &consent.message);
    field("digest", &consent.digest);
    field("goes back to", &consent.originals.join(", "));
    if let Some(end) = &consent.revoked {
        field("withdrawn", &format!("{} by {}", end.at, end.by));
        field("revoke", &end.message);
        field("reason", end.reason.as_deref().unwrap_or_default());
    }
    for message in &record.messages {
        let state = match message.has_text {
            true => "text is here",
            false => "text is erased",
        };
        field("under it", &format!("{}, {state}", message.id));
    }
    for delivery in &record.told {
        field("told", &told(delivery));
    }
    out
}

/// How far the word that it was withdrawn is.
fn told(delivery: &Delivered) -> String {
    let how = match delivery.state.as_str() {
        "acknowledged" => "confirmed",
        state => state,
    };
    let at = delivery.acknowledged_at.as_ref();
    let at = at.or(delivery.delivered_at.as_ref());
    let at = at.or(delivery.failed_at.as_ref());
    let at = at.map_or(String::new(), |at| format!(" {at}"));
    format!("{} by {}: {how}{at}", delivery.to, delivery.by)
}
