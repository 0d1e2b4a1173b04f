//! Consent in the paste workflow (CON-001 to CON-034): what a message says about it is held against the rules and against
//! what is on record here, before it is kept; what follows from it is written down right after.

use crate::console::{Console, GREEN, styled};
use crate::failure::Failure;
use crate::service::lookup::is_sound;
use crate::service::workspace::Workspace;
use crate::{clock, view};
use crosstalk_envelope::meta::ConsentKind;
use crosstalk_envelope::reply::Rejection;
use crosstalk_envelope::{Builder, Document, Intent, Reading, Timestamp};
use crosstalk_protocol::Admitted;
use crosstalk_protocol::consent::{
    self, Assurance, Claim, ConsentContext, Grant, Party, Policy, Proof, RevocationResult, Terms,
};
use crosstalk_protocol::store::{Arrival, StoreError, StoreOutcome, is_same_party};
use crosstalk_store::SqliteStore;
use std::time::Duration;

/// How often to try to remove traces of erased texts, and how long to wait between the later attempts.
const TRIES: u32 = 400;
const AT_ONCE: u32 = 200;
const PAUSE: Duration = Duration::from_millis(10);

/// The consent that a message claims, and the evidence for its sender.
#[derive(Clone, Debug)]
pub(crate) struct ConsentStatement {
    claim: Option<Claim>,
    proof: Proof,
    /// Why the message is not taken, by its own words.
    refusal: Option<Rejection>,
    /// Whether it must not be acted on: then it changes nothing on record.
    is_unsound: bool,
}

impl ConsentStatement {
    /// Looks at a message by itself.
    pub(crate) fn of(admitted: &Admitted, proof: Proof, policy: &Policy, at: Timestamp) -> Self {
        let document = admitted.document();
        let claim = Claim::of(document);
        let setting = ConsentContext {
            at,
            policy,
            assurance: proof.assurance,
        };
        let enough = claim
            .as_ref()
            .map_or(Ok(()), |c| consent::check(c, &setting));
        let enough = enough.and_then(|()| consent::check_redacted(document));
        Self {
            claim,
            proof,
            refusal: enough.err(),
            is_unsound: !is_sound(admitted.verdict().word()),
        }
    }

    /// Whether there is nothing to look up and to write down.
    pub(crate) const fn is_silent(&self) -> bool {
        self.claim.is_none() && self.refusal.is_none()
    }

    /// The claim.
    pub(crate) const fn claim(&self) -> Option<&Claim> {
        self.claim.as_ref()
    }

    /// How well it was verified.
    pub(crate) const fn assurance(&self) -> Assurance {
        self.proof.assurance
    }

    /// The terms of the message where nothing is on record; or its refusal.
    pub(crate) fn judge_alone(
        &self,
        arrival: &Arrival,
        policy: &Policy,
    ) -> Result<Terms, Rejection> {
        self.ruled(arrival, &[], policy)
    }

    /// The terms of the message, given the consents on record; or its refusal.
    pub(crate) fn judge(
        &self,
        store: &SqliteStore,
        arrival: &Arrival,
        policy: &Policy,
    ) -> Result<Result<Terms, Rejection>, StoreError> {
        let known = match &self.claim {
            Some(claim) if self.refusal.is_none() => store.known(claim, arrival.id())?,
            _ => Vec::new(),
        };
        Ok(self.ruled(arrival, &known, policy))
    }

    fn ruled(
        &self,
        arrival: &Arrival,
        known: &[Grant],
        policy: &Policy,
    ) -> Result<Terms, Rejection> {
        if let Some(refusal) = &self.refusal {
            return Err(refusal.clone());
        }
        let Some(claim) = &self.claim else {
            return Ok(Terms::default());
        };
        let mut to = vec![arrival.receiver.clone()];
        to.extend(arrival.targets.iter().cloned());
        // A person vouches for what they paste.
        let backing = policy.backing(claim, self.proof.assurance, true);
        let party = Party {
            sender: &arrival.sender,
            speaker: &arrival.sender,
            is_pasted: true,
            pkid: arrival.pkid.as_deref(),
            proof: self.proof,
            to: &to,
            receiver: None,
            is_escalation: arrival.meaning == Some(Intent::Escalate),
            backing: backing.as_ref(),
            message: arrival.id(),
            digest: arrival.digest,
            at: arrival.at,
        };
        if self.is_unsound {
            let mut terms = consent::judge(claim, &party, known)?;
            terms.grants.clear();
            return Ok(terms);
        }
        // A token is of a relay; there are none here.
        let mut claim = claim.clone();
        claim.permission = None;
        let is_authority = policy.is_authority(party.sender);
        let revocation = consent::plan_revocation(&claim, &party, known, is_authority)?;
        match revocation {
            Some(_) => Ok(Terms {
                expires: claim.expires,
                withdrawal: revocation,
                ..Terms::default()
            }),
            None => consent::judge(&claim, &party, known),
        }
    }
}

/// The terms of a consent that is granted again under its name.
pub(crate) struct Renewal<'r> {
    /// The granter.
    pub(crate) sender: &'r str,
    pub(crate) to: &'r [String],
    pub(crate) scopes: &'r [String],
    pub(crate) expires: Option<Timestamp>,
}

impl Renewal<'_> {
    /// Tells what changes of a consent on record, and gives the end that the message has to name: its own, or else the
    /// earlier one, which the renewal keeps.
    pub(crate) fn tell(
        &self,
        console: &mut Console,
        before: &Grant,
        at: Timestamp,
    ) -> Result<Option<Timestamp>, Failure> {
        if !is_same_party(&before.granter, self.sender) || before.standing(at) == "revoked" {
            return Ok(self.expires);
        }
        let id = view::line(&before.id);
        // A consent that is over is renewed only with a new end: the ledger says so.
        let kept = before.expires.filter(|end| *end > at);
        let changes = self.changes(before);
        if !changes.is_empty() {
            console.note(&format!(
                "this message changes the terms of the consent {id}: {}",
                changes.join("; ")
            ))?;
        }
        match (self.expires, kept) {
            (None, Some(end)) => {
                console.note(&format!(
                    "the consent {id} still expires at {end}, and so does this message; --expires changes that"
                ))?;
                Ok(Some(end))
            }
            (own, _) => Ok(own),
        }
    }

    fn changes(&self, before: &Grant) -> Vec<String> {
        let list = |words: &[String]| match words.is_empty() {
            true => "none".to_owned(),
            false => words
                .iter()
                .map(|w| view::line(w))
                .collect::<Vec<_>>()
                .join(", "),
        };
        let mut changes = Vec::new();
        let has = |all: &[String], one: &String| all.iter().any(|w| w.eq_ignore_ascii_case(one));
        let is_same = before.scopes.iter().all(|s| has(self.scopes, s))
            && self.scopes.iter().all(|s| has(&before.scopes, s));
        if !is_same {
            changes.push(format!(
                "scope {} → {}",
                list(&before.scopes),
                list(self.scopes)
            ));
        }
        if let Some(end) = self.expires.filter(|end| before.expires != Some(*end)) {
            let old = before
                .expires
                .map_or_else(|| "no end".to_owned(), |t| t.to_string());
            changes.push(format!("expiry {old} → {end}"));
        }
        let mut to = before.to.clone();
        to.extend(self.to.iter().filter(|a| !before.to.contains(a)).cloned());
        if to != before.to {
            changes.push(format!("recipients {} → {}", list(&before.to), list(&to)));
        }
        changes
    }
}

/// Tells which consents messages grant or renew that pass a conversation on: what they carry is not written by hand.
pub(crate) fn tell_granted(
    console: &mut Console,
    workspace: &Workspace,
    builders: &[Builder],
) -> Result<(), Failure> {
    let Some(store) = workspace.messages(console)? else {
        return Ok(());
    };
    // A message that can't be built is rejected later, with its reason.
    for text in builders.iter().filter_map(|builder| builder.build().ok()) {
        let document = Document::parse(&text, Reading::Strict);
        let Some(claim) = Claim::of(&document) else {
            continue;
        };
        let grants = [ConsentKind::ExplicitYes, ConsentKind::Transferred];
        if !claim.kind.is_some_and(|kind| grants.contains(&kind)) {
            continue;
        }
        let renewal = Renewal {
            sender: document.sender(),
            to: &[document.receiver().to_owned()],
            scopes: &claim.scopes,
            expires: claim.expires,
        };
        for id in &claim.ids {
            match store.grant(id)? {
                Some(known) => {
                    renewal.tell(console, &known, clock::now())?;
                }
                None => console.note(&format!(
                    "the consent {} is new: this message grants it to {}",
                    view::line(id),
                    view::line(document.receiver())
                ))?,
            }
        }
    }
    Ok(())
}

/// Files a message: the outcome and the consents that it revoked; or its refusal.
pub(crate) type Filed = Result<(StoreOutcome, RevocationResult), Rejection>;

/// Keeps a message, if its consent is enough, and writes down what follows from it.
pub(crate) fn file(
    console: &mut Console,
    store: &mut SqliteStore,
    arrival: &Arrival,
    (said, policy): (&ConsentStatement, &Policy),
) -> Result<Filed, Failure> {
    if let Some(refusal) = &said.refusal {
        return Ok(Err(refusal.clone()));
    }
    let claim = said.claim.clone().unwrap_or_default();
    let rule = |known: &[Grant]| said.ruled(arrival, known, policy);
    let filed = store.accept_ruled(arrival, &claim, &rule)?;
    if matches!(&filed, Ok((_, revoked)) if !revoked.erased.is_empty()) {
        scrub(console, store)?;
    }
    Ok(filed)
}

/// Removes what is left of erased texts from the files. It does not wait for readers of an older state
/// for ever, and the person is told.
pub(crate) fn scrub(console: &mut Console, store: &mut SqliteStore) -> Result<(), Failure> {
    for turn in 0..TRIES {
        if store.scrub()? {
            return Ok(());
        }
        if turn >= AT_ONCE {
            std::thread::sleep(PAUSE);
        }
    }
    console.warning(
        "another program still reads the store, so its files may still have parts of the erased \
         texts: end that program, then `crosstalk consent list` removes them",
    )
}

/// A refusal as a command ends with it.
pub(crate) fn declined(before: &str, refusal: &Rejection) -> Failure {
    Failure::refused(refusal.code, format!("{before}{}", sentence(refusal)))
}

/// Why a message was rejected, by which rule, and what to do.
pub(crate) fn sentence(refusal: &Rejection) -> String {
    let rule = refusal.rule.map_or("", |(id, _)| id);
    format!("{} ({}, {rule})", refusal.detail(), refusal.code.as_str())
}

/// Says what was revoked and erased; nothing if nothing was.
pub(crate) fn tell(console: &mut Console, revoked: &RevocationResult) -> Result<(), Failure> {
    if revoked.consents.is_empty() {
        return Ok(());
    }
    console.talk(&format!(
        "{}: {}; {}\n",
        styled(GREEN, "Revoked"),
        view::names(&revoked.consents),
        match revoked.erased.len() {
            0 => "there was nothing to erase here".to_owned(),
            1 => "1 message erased here, whose digest stays".to_owned(),
            many => format!("{many} messages erased here, whose digests stay"),
        }
    ))
}
