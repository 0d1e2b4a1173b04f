//! Claims: the statements of one message about consent.

use crosstalk_envelope::meta::ConsentKind;
use crosstalk_envelope::registry::{Namespace, Pii};
use crosstalk_envelope::{Document, Intent, Timestamp};

/// The scopes of consents that the registry has.
///
/// ```
/// use crosstalk_protocol::consent::scopes;
/// assert!(scopes().contains(&"general") && !scopes().contains(&"research"));
/// ```
pub fn scopes() -> &'static [&'static str] {
    let scope = Namespace::find("privacy").and_then(|n| n.kind_of("Scope"));
    scope.map_or(&[], |(_, words)| words)
}

/// Whether a scope is one for which an explicit consent is needed: every one but `general`.
///
/// ```
/// use crosstalk_protocol::consent::is_sensitive;
/// assert!(is_sensitive("medical") && is_sensitive("research") && !is_sensitive("General"));
/// ```
pub fn is_sensitive(scope: &str) -> bool {
    !scope.eq_ignore_ascii_case("general")
}

/// What a message says about consent, in `meta: privacy`, and which consent it revokes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// What it says about personal data in it.
    pub pii: Option<Pii>,
    /// What the consent says.
    pub kind: Option<ConsentKind>,
    /// The consent, as it was written.
    pub text: Option<String>,
    /// When it was given, by its own words.
    pub given_at: Option<Timestamp>,
    /// Its scopes: words in lower case, each once.
    pub scopes: Vec<String>,
    /// When it ends.
    pub expires: Option<Timestamp>,
    /// An end that is written and is no time.
    pub unclear_end: Option<String>,
    /// The laws that are named.
    pub jurisdictions: Vec<String>,
    /// The names of the consent.
    pub ids: Vec<String>,
    /// The consents that it goes back to.
    pub originals: Vec<String>,
    /// The consents that it revokes, if it is a REVOKE.
    pub revokes: Vec<String>,
    /// The permission that it revokes, if it is a REVOKE.
    pub permission: Option<String>,
    /// Why it revokes it.
    pub reason: Option<String>,
    /// Whether it is a REVOKE.
    pub is_revoke: bool,
}

/// What a message has in it that an explicit consent is needed for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// It says `PII: present`.
    Pii,
    /// It has a sensitive scope.
    Scope(String),
}

impl Claim {
    /// What a message says; nothing if it says nothing about it.
    ///
    /// ```
    /// use crosstalk_envelope::{Document, Reading};
    /// use crosstalk_protocol::consent::Claim;
    /// let text = "[[ANN→BOB v1]]\nuser: ann\nsession: s\ncontext: c\nintent: REQUEST\n\nmeta: privacy\n\
    ///             Scope: medical\nConsent: implicit\n\nbody: |\n  Hello\nsig: none\n[[END]]\n";
    /// let claim = Claim::of(&Document::parse(text, Reading::Strict)).unwrap();
    /// assert_eq!(claim.needs().count(), 1);
    /// ```
    pub fn of(document: &Document<'_>) -> Option<Self> {
        let envelope = document.envelope();
        let is_revoke = envelope.meaning() == Some(Intent::Revoke);
        let revocation = envelope.revocation().filter(|_| is_revoke);
        if document.block("privacy").is_none() && revocation.is_none() {
            return None;
        }
        let privacy = envelope.privacy();
        let mut scopes: Vec<String> = Vec::new();
        for scope in privacy.scopes() {
            let scope = scope.to_ascii_lowercase();
            if !scopes.contains(&scope) {
                scopes.push(scope);
            }
        }
        let pii = privacy.pii.filter(|word| !word.is_empty());
        let consent = privacy.consent();
        let revokes = revocation.as_ref().and_then(|r| r.consent_id);
        Some(Self {
            // A word that nobody knows does not say that there is none.
            pii: pii.map(|word| Pii::from_wire(&word.to_ascii_lowercase()).unwrap_or(Pii::Present)),
            kind: consent.map(|c| c.kind),
            text: consent.map(|c| c.text.to_owned()),
            given_at: consent.and_then(|c| c.at),
            scopes,
            expires: privacy.expires(),
            unclear_end: privacy
                .end
                .filter(|_| privacy.expires().is_none())
                .map(str::to_owned),
            jurisdictions: privacy
                .jurisdictions()
                .into_iter()
                .map(Into::into)
                .collect(),
            ids: privacy.consent_id.map(names).unwrap_or_default(),
            originals: privacy.original_consent_id.map(names).unwrap_or_default(),
            revokes: revokes.map(names).unwrap_or_default(),
            permission: revocation
                .as_ref()
                .and_then(|r| r.permission)
                .map(str::to_owned),
            reason: revocation.and_then(|r| r.reason).map(str::to_owned),
            is_revoke,
        })
    }

    /// What an explicit consent is needed for.
    pub fn needs(&self) -> impl Iterator<Item = Need> {
        let pii = (self.pii == Some(Pii::Present)).then_some(Need::Pii);
        let scopes = self.scopes.iter().filter(|s| is_sensitive(s));
        pii.into_iter().chain(scopes.cloned().map(Need::Scope))
    }

    /// Whether it says that somebody agreed.
    pub fn grants(&self) -> bool {
        !self.is_revoke
            && matches!(
                self.kind,
                Some(ConsentKind::ExplicitYes | ConsentKind::Transferred)
            )
    }

    /// Whether it is kept in the ledger: somebody agreed, or what is said has a name by which it can be revoked.
    pub(super) fn is_recorded(&self) -> bool {
        let is_named = !self.ids.is_empty() && self.kind != Some(ConsentKind::ExplicitNo);
        self.grants() || (is_named && !self.is_revoke)
    }

    /// The names of its own consent: `Consent-ID`, else the id of the message, if it grants one.
    pub(super) fn own_names<'c>(&'c self, message: &'c str) -> impl Iterator<Item = &'c str> {
        let is_nameless = self.ids.is_empty() && self.grants();
        let ids = self.ids.iter().map(String::as_str);
        ids.chain(is_nameless.then_some(message))
    }

    /// Every consent that a message names; `message` is its id.
    pub fn names<'c>(&'c self, message: &'c str) -> impl Iterator<Item = &'c str> {
        let others = self.originals.iter().chain(&self.revokes);
        self.own_names(message).chain(others.map(String::as_str))
    }

    /// The sensitive scopes that it has: `PII: present` is `pii`.
    pub(super) fn sensitive(&self) -> impl Iterator<Item = &str> {
        let scopes = self.scopes.iter().map(String::as_str);
        let pii = (self.pii == Some(Pii::Present)).then_some("pii");
        scopes.filter(|s| is_sensitive(s)).chain(pii)
    }
}

/// What stands between several consents that go on as one.
pub(crate) const SEVERAL: &str = ", ";

/// One name, or several where consents go on as one: a name has no comma in it.
pub(crate) fn names(value: &str) -> Vec<String> {
    let names = value.split(',').map(str::trim);
    names.filter(|n| !n.is_empty()).map(str::to_owned).collect()
}
