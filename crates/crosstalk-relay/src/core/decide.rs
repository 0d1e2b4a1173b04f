//! Decisions about messages that are held for a person.

use super::Relay;
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_envelope::reply::Rejection;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{Document, Intent, Reading};
use crosstalk_protocol::relay::{HeldMessage, HoldChoice, HoldDecision, Peer, Ruling, report};
use crosstalk_protocol::store::{StoreError, StoreFault};

/// A decision that a person wants to make, about a message as they have seen it.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The digests of the message that was seen: of its canonical form, and of its text byte for byte.
    pub digests: (
        crosstalk_envelope::meta::Digest,
        crosstalk_envelope::meta::Digest,
    ),
    /// Whether it may go on.
    pub is_approved: bool,
    /// Why, in one line.
    pub reason: Option<String>,
    /// The credential of the person who decides.
    pub by: String,
}

impl Relay {
    /// Carries out what a person decided about a message that is held. Whether they may is asked before.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn decide(&self, held: &HeldMessage, wish: Wish) -> Result<Ruling, StoreError> {
        let refusal = match (wish.is_approved, &wish.reason) {
            (true, _) => None,
            (false, reason) => {
                let reason = reason.as_deref().unwrap_or("no reason was given");
                let reason = reason.trim_end_matches('.');
                let (what, help) = (
                    // The sender does not learn who decided, only that it was not the recipient.
                    format!(
                        "A person who decides at the relay refused this message before it reached {}: {}.",
                        escape(&held.record.receiver),
                        escape(reason)
                    ),
                    "change what they object to, and send it as a new message.",
                );
                Some(Rejection::new(ErrorCode::Perm, what, help))
            }
        };
        let choice = match wish.is_approved {
            true => HoldChoice::Approve,
            false => HoldChoice::Refuse,
        };
        let decision = HoldDecision {
            id: held.record.id.clone(),
            digest: wish.digests.0,
            raw: wish.digests.1,
            choice,
            reason: wish.reason,
            by: wish.by,
            at: self.now(),
            report: None,
        };
        let ruling = self.carry_out(held, decision, refusal).await?;
        let is_approved = match &ruling {
            Ruling::Done(_) => choice == HoldChoice::Approve,
            // What could not be recorded then is recorded now.
            Ruling::AlreadyDecided(decided) => decided.choice == HoldChoice::Approve,
            _ => false,
        };
        if is_approved {
            self.learn_from(held).await?;
        }
        if is_approved && held.record.meaning == Some(Intent::Revoke) {
            self.follow_up_revocation();
        }
        Ok(ruling)
    }

    /// Applies the key changes that an approved message proves; the approval of a person pins no key.
    async fn learn_from(&self, held: &HeldMessage) -> Result<(), StoreError> {
        if held.record.pkid.is_none() {
            return Ok(());
        }
        // After the decision, only the accepted message has its text.
        let Some(taken) = self.store().record(&held.record.id).await? else {
            return Ok(());
        };
        let document = Document::parse(&taken.text, Reading::Strict);
        let at = self.now();
        let Some(verification) = self
            .shared
            .verify_message(&document, &Peer::itself(), at)
            .await
        else {
            return Err(self.gone());
        };
        let peer = Peer::stranger();
        let learned = self.shared.learn(&document, &verification, &peer, at).await;
        learned.map_err(|_| {
            let what = "the relay could not record the key that the message announces";
            StoreError::new(StoreFault::Busy, what, "try again later")
        })
    }

    /// Ends a held message that was not decided about in time.
    ///
    /// # Errors
    /// The error of the store.
    pub(crate) async fn lapse(&self, held: &HeldMessage) -> Result<Ruling, StoreError> {
        let at = self.now();
        let Some(refusal) = held.ended(at) else {
            return Ok(Ruling::Unknown);
        };
        let reason = refusal.what.lines().next().map(str::to_owned);
        let decision = HoldDecision {
            id: held.record.id.clone(),
            digest: held.record.digest,
            raw: held.raw,
            choice: HoldChoice::Lapse,
            reason,
            by: Peer::itself().name,
            at,
            report: None,
        };
        self.carry_out(held, decision, Some(refusal)).await
    }

    async fn carry_out(
        &self,
        held: &HeldMessage,
        mut decision: HoldDecision,
        refusal: Option<Rejection>,
    ) -> Result<Ruling, StoreError> {
        decision.report = refusal.and_then(|refusal| report::declined(&held.record, &refusal));
        let ruling = self.store().decide(Box::new(decision)).await?;
        if let Err(error) = self.send_notices().await {
            tracing::warn!(reason = %error, "the sender is told later");
        }
        Ok(ruling)
    }
}
