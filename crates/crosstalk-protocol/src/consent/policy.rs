//! Consent policies: the demands of an organisation, and whether a message meets them (CON-001 to CON-014).

use super::claim::{Claim, Need};
use super::jurisdiction::Jurisdiction;
use super::proof::Assurance;
use super::{is_same_scope, refuse, shown};
use crate::redact;
use crate::relay::Pattern;
use crosstalk_envelope::flow::Flow;
use crosstalk_envelope::meta::{ConsentKind, words};
use crosstalk_envelope::registry::rule;
use crosstalk_envelope::reply::Rejection;
use crosstalk_envelope::{Document, Timestamp};
use std::borrow::Cow;

/// How many consents a message names at most.
const NAMED: usize = 64;
/// Clocks of others may be ahead by so much, in milliseconds.
const AHEAD: i64 = 5 * 60 * 1000;

/// The rules of an organisation, besides those of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The scopes for which a consent has to be signed with a trusted key; `*` is every sensitive one.
    pub signed: Vec<String>,
    /// The scopes for which the word of an agent is enough; `*` is every sensitive one.
    pub declared: Vec<String>,
    /// The messages that need an explicit consent to leave the organisation.
    pub border: BorderPolicy,
    /// Addresses that may revoke consents of other parties.
    pub authorities: Vec<Pattern>,
    /// What laws demand where a message names them.
    pub jurisdictions: Vec<Jurisdiction>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            signed: Vec::new(),
            declared: Vec::new(),
            border: BorderPolicy::default(),
            authorities: Vec::new(),
            jurisdictions: Jurisdiction::built_in(),
        }
    }
}

/// The messages that need an explicit consent to leave the organisation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BorderPolicy {
    /// Messages with sensitive data, as everywhere.
    #[default]
    Sensitive,
    /// Everything.
    All,
}

impl Policy {
    /// Whether somebody may revoke what others granted.
    pub fn is_authority(&self, address: &str) -> bool {
        self.authorities.iter().any(|p| p.matches(address))
    }

    /// The consent on record that a message needs, because the word of its sender is not enough: that has to be signed for
    /// one of its scopes, or the sender is an agent, whose word about what people agreed to is none of theirs.
    pub fn backing(&self, claim: &Claim, assurance: Assurance, may_grant: bool) -> Option<Backing> {
        if !claim.grants() {
            return None;
        }
        let lists =
            |list: &[String], scope: &str| list.iter().any(|s| s == "*" || is_same_scope(s, scope));
        let wants_signed = |s: &&str| !assurance.is_trusted() && lists(&self.signed, s);
        let wants_person = |s: &&str| !may_grant && !lists(&self.declared, s);
        let scope = |wanted: &dyn Fn(&&str) -> bool| claim.sensitive().find(wanted);
        let signed = scope(&wants_signed).map(|s| Backing::Signed(s.to_owned()));
        signed.or_else(|| scope(&wants_person).map(|s| Backing::Person(s.to_owned())))
    }
}

/// A consent that has to be on record before a message with this scope is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backing {
    /// One that was signed with a trusted key.
    Signed(String),
    /// One that a person gave, or somebody on their evidence.
    Person(String),
}

impl Backing {
    pub(super) fn is_met_by(&self, assurance: Assurance) -> bool {
        match self {
            Self::Signed(_) => assurance.is_trusted(),
            // The ledger has none that an agent gave by its own word.
            Self::Person(_) => true,
        }
    }

    pub(super) fn refusal(&self, sender: &str) -> Rejection {
        match self {
            Self::Signed(scope) => refuse(
                &rule::CONSENT_SIGNED,
                &format!(
                    "A consent for the scope {} has to be signed with a trusted key here, and neither this message is nor a \
                     consent on record that it names",
                    shown(scope)
                ),
                "name a signed consent in `Consent-ID` (`--consent-id`), or send the message with `--sign` (`crosstalk config \
                 set sign true` signs everything that you send), with an id, to a receiver that is a URL, and have the key \
                 pinned",
            ),
            Self::Person(scope) => refuse(
                &rule::CONSENT_GRANTER,
                &format!(
                    "{} is an agent and cannot agree to the scope {} for a person",
                    shown(sender),
                    shown(scope)
                ),
                "ask the person to grant it (`crosstalk consent grant ADDRESS --scope SCOPE --id ID`) and name it in \
                 `Consent-ID` (`--consent-id ID`)",
            ),
        }
    }
}

/// Under which circumstances a message is looked at.
#[derive(Clone, Copy, Debug)]
pub struct ConsentContext<'s> {
    /// When.
    pub at: Timestamp,
    /// The rules of the organisation.
    pub policy: &'s Policy,
    /// How well the message was verified.
    pub assurance: Assurance,
}

/// Whether what a message says about consent is enough for what is in it.
///
/// ```
/// use crosstalk_envelope::{Timestamp, meta::ConsentKind};
/// use crosstalk_protocol::consent::{Assurance, Claim, Policy, ConsentContext, check};
/// let policy = Policy::default();
/// let setting = ConsentContext { at: Timestamp::from_millis(0), policy: &policy, assurance: Assurance::Unsigned };
/// let mut claim = Claim { scopes: vec!["medical".into()], ..Claim::default() };
/// assert_eq!(check(&claim, &setting).unwrap_err().code.as_str(), "E-CONSENT");
/// claim.kind = Some(ConsentKind::ExplicitYes);
/// assert!(check(&claim, &setting).is_ok());
/// ```
///
/// # Errors
/// The refusal: the rule, what is missing, and what to do.
pub fn check(claim: &Claim, setting: &ConsentContext<'_>) -> Result<(), Rejection> {
    denied_or_over(claim, setting.at)?;
    if claim.is_revoke {
        return Ok(());
    }
    let is_explicit = claim.grants();
    if let Some(need) = claim.needs().next().filter(|_| !is_explicit) {
        return Err(missing(&need, claim));
    }
    if claim.kind == Some(ConsentKind::Transferred) && claim.originals.is_empty() {
        return Err(refuse(
            &rule::CONSENT_TRANSFER,
            "The message says `Consent: transferred_with_approval` and does not name the transferred consent",
            "name it in `Original-Consent-ID`",
        ));
    }
    if let Some(given) = claim.given_at
        && is_explicit
        && given.as_millis() > setting.at.as_millis().saturating_add(AHEAD)
    {
        return Err(refuse(
            &rule::CONSENT_NOT_YET,
            &format!("The consent of this message is given at {given}, which is in the future"),
            "send it then, or write the time of the grant",
        ));
    }
    lawful(claim, setting)
}

/// Rejects a consent that denies, or that has expired by its own terms.
fn denied_or_over(claim: &Claim, at: Timestamp) -> Result<(), Rejection> {
    if claim.kind == Some(ConsentKind::ExplicitNo) && !claim.is_revoke {
        return Err(refuse(
            &rule::CONSENT_DENIED,
            "The message says `Consent: explicit_no`",
            "ask for consent first, or remove the data that needs it (`crosstalk redact`)",
        ));
    }
    if let Some(written) = &claim.unclear_end {
        return Err(refuse(
            &rule::CONSENT_UNCLEAR_END,
            &format!(
                "`Expires: {}` is no time, so the expiry of this consent is unknown",
                shown(written)
            ),
            "write it as 2026-12-31T23:59:59Z",
        ));
    }
    if claim.names("").count() > NAMED {
        return Err(refuse(
            &rule::CONSENT_MANY,
            &format!("The message names more than {NAMED} consents"),
            "send it in parts, with fewer in each",
        ));
    }
    match claim.expires {
        Some(end) if end <= at => Err(refuse(
            &rule::CONSENT_OVER,
            &format!("The consent of this message expired at {end}"),
            "ask for it again",
        )),
        _ => Ok(()),
    }
}

fn missing(need: &Need, claim: &Claim) -> Rejection {
    let what = match need {
        Need::Pii => "has personal data in it (`PII: present`)".to_owned(),
        Need::Scope(scope) => format!("has the scope {}", shown(scope)),
    };
    let (rule, why) = match (claim.kind, &claim.text) {
        (None, _) => (&rule::CONSENT_MISSING, "and no consent".to_owned()),
        (Some(ConsentKind::Implicit), _) => (
            &rule::CONSENT_IMPLICIT,
            "for which an implicit consent is not enough".to_owned(),
        ),
        (_, text) => (
            &rule::CONSENT_UNKNOWN,
            format!(
                "and an unknown word for its consent: {}",
                shown(text.as_deref().unwrap_or_default())
            ),
        ),
    };
    refuse(
        rule,
        &format!("The message {what} {why}"),
        "ask for consent and write `Consent: explicit_yes_` and the time, or remove the data that needs it (`crosstalk redact`)",
    )
}

/// What the laws that a message names demand.
fn lawful(claim: &Claim, setting: &ConsentContext<'_>) -> Result<(), Rejection> {
    for name in &claim.jurisdictions {
        let mut known = setting.policy.jurisdictions.iter();
        let law = known.find(|j| j.name.eq_ignore_ascii_case(name));
        let broken = law.and_then(|j| j.broken(claim, setting.assurance, setting.at));
        let (Some(law), Some((provision, lacks, remedy))) = (law, broken) else {
            continue;
        };
        return Err(refuse(
            &rule::CONSENT_JURISDICTION,
            &format!(
                "The consent of this message {lacks}, which {} {} demands: {}",
                law.name,
                provision.place,
                provision.says.trim_end_matches('.')
            ),
            remedy,
        ));
    }
    Ok(())
}

/// Whether a message may leave the organisation, on its way to somebody.
///
/// # Errors
/// The refusal, if its own policy forbids it, or the organisation wants an explicit consent and it has none.
pub fn check_leaving(
    document: &Document<'_>,
    claim: Option<&Claim>,
    policy: &Policy,
    to: &str,
) -> Result<(), Rejection> {
    if keeps_inside(document) {
        return Err(refuse(
            &rule::CONSENT_THIRD_PARTY,
            &format!(
                "`X-Policy: no_third_party` forbids passing the message on to {}, which is outside of the organisation",
                shown(to)
            ),
            "remove the policy, bring it there yourself, or ask the relay operator to declare \
             this route (`inside = true`) or the domain (`domains`) as its own",
        ));
    }
    let is_free = claim.is_some_and(|c| c.grants() || c.is_revoke);
    match is_free || policy.border == BorderPolicy::Sensitive {
        true => Ok(()),
        false => Err(refuse(
            &rule::CONSENT_BORDER,
            "Nothing leaves this organisation without an explicit consent, and the message has none",
            "write `Consent: explicit_yes_` and the time into `meta: privacy`",
        )),
    }
}

/// Whether the text of a message is not kept for long: it is sensitive, and does not say that it may be.
pub fn is_brief(document: &Document<'_>, claim: Option<&Claim>) -> bool {
    let is_sensitive = claim.is_some_and(|c| c.needs().next().is_some());
    is_sensitive && !permits(document, "ok_to_cache")
}

/// Whether a message must not get to a third party: it says `no_third_party`, or its policy can't be read and may say so.
pub fn keeps_inside(document: &Document<'_>) -> bool {
    let is_unclear = |policy: &str| legible(policy).is_none();
    policy_of(document).is_some_and(is_unclear) || demands(document, "no_third_party")
}

/// The policy of a message, in whatever case its name is written.
fn policy_of<'d>(document: &'d Document<'_>) -> Option<&'d str> {
    let mut fields = document.block("routing")?.fields();
    let is_policy = |(key, _): &(&str, &str)| key.eq_ignore_ascii_case("X-Policy");
    fields.find(is_policy).map(|(_, value)| value)
}

/// Whether a message permits something by a word of its policy.
fn permits(document: &Document<'_>, word: &str) -> bool {
    let policy = policy_of(document).and_then(legible);
    let mut words = policy.unwrap_or_default().into_iter();
    words.any(|w| w.eq_ignore_ascii_case(word))
}

/// Whether a message demands something by a word of its policy, in whatever spelling.
fn demands(document: &Document<'_>, word: &str) -> bool {
    let letters = |text: &str| {
        let plain = text.chars().filter(char::is_ascii_alphanumeric);
        plain.collect::<String>().to_ascii_lowercase()
    };
    let policy = policy_of(document).unwrap_or_default();
    letters(policy).contains(&letters(word))
}

/// The words of a value; nothing if it is a list that can't be read, or one of other things than words.
pub(crate) fn legible(value: &str) -> Option<Vec<Cow<'_, str>>> {
    if Flow::is_meant(value) {
        let Ok(Flow::List(items)) = Flow::parse(value) else {
            return None;
        };
        if !items.iter().all(|item| matches!(item, Flow::Text(_))) {
            return None;
        }
    }
    Some(words(value))
}

/// Whether a message that claims to be redacted contains no personal data that can be found.
///
/// # Errors
/// The refusal: what was found, not the data itself.
pub fn check_redacted(document: &Document<'_>) -> Result<(), Rejection> {
    if !demands(document, "pii_redacted") {
        return Ok(());
    }
    let found = redact::find(&document.body_text(), &redact::RedactionRules::default());
    let Some(first) = found.first() else {
        return Ok(());
    };
    Err(refuse(
        &rule::CONSENT_REDACTED,
        &format!(
            "`X-Policy: pii_redacted` says that personal data was redacted, and the body has {} in it ({} in all)",
            first.kind.as_str(),
            found.len()
        ),
        "redact it (`crosstalk redact`), or leave the policy out and ask for consent",
    ))
}
