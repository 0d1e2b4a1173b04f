//! Verification: from an envelope and the known keys to a verdict (TRU-001 to TRU-012, TRU-020 to TRU-025).
//!
//! Which keys may have signed comes first, in one order: the one that was given, the one that the id is, those that
//! the domain lists, those that are pinned, the one that came with the message. Then each is tried. Then the owner
//! of the matching key decides ([`fit`]).

mod fit;

use crate::dns::{DnsAnswer, Dnssec, domain_of};
use crate::trust::{KeyStanding, KnownKey, Origin, Trust};
use crate::verdict::{Head, Trusted, Verdict, VerdictDetail, VerdictWord};
use crosstalk_envelope::registry::{Rule, rule};
use crosstalk_envelope::{
    Algorithm, CoreHeader, Document, PublicKey, Signature, Timestamp, Unfit, authenticate,
    authenticate_and_restore,
};
use fit::Fit;

/// The question of a verification, and the facts that are known already.
#[derive(Clone, Copy, Debug)]
pub struct VerifyContext<'q> {
    /// The time that the answer is for.
    pub at: Timestamp,
    /// The only key that counts.
    pub key: Option<&'q PublicKey>,
    /// The answer of the domain of the key id, if it was asked.
    pub dns: Option<&'q DnsAnswer>,
    /// An answer of a domain without DNSSEC vouches for nothing.
    pub require_dnssec: bool,
    /// Whether to search for the signed form of a damaged body (SIG-016): for a person who looks at one message.
    pub restore: bool,
    /// Whether a relay asks. There, a did:key that is not pinned for its sender is one of a first contact, since everybody can
    /// make one (TRU-003), and the names that the operator listed are compared by the rules of the relay (HTP-030).
    pub at_relay: bool,
}

impl VerifyContext<'_> {
    /// The verdict at this time, from what is known here.
    pub const fn at(at: Timestamp) -> Self {
        Self {
            at,
            key: None,
            dns: None,
            require_dnssec: false,
            restore: false,
            at_relay: false,
        }
    }

    /// The verdict at this time, as a relay gives it.
    pub const fn of_relay(at: Timestamp) -> Self {
        Self {
            at_relay: true,
            ..Self::at(at)
        }
    }
}

/// The domain that can vouch for the key of a signed envelope.
pub fn domain_to_ask<'d>(document: &'d Document<'_>) -> Option<&'d str> {
    match Signature::parse(document.sig()?) {
        Ok(Signature::Signed { pkid, .. }) => domain_of(pkid),
        _ => None,
    }
}

/// Verifies an envelope. It never pins a key: that is a separate decision.
///
/// ```
/// use crosstalk_envelope::{Document, Reading, Timestamp};
/// use crosstalk_protocol::{VerifyContext, Trust, VerdictWord, verify};
/// let text = "[[A→B v1]]\nuser: u\nsession: s\ncontext: c\nintent: NOTE\nbody: |\n  x\nsig: none\n[[END]]\n";
/// let document = Document::parse(text, Reading::Paste);
/// let verdict = verify(&document, &Trust::default(), &VerifyContext::at(Timestamp::from_millis(0)));
/// assert_eq!(verdict.word(), VerdictWord::Unsigned);
/// ```
pub fn verify(document: &Document<'_>, trust: &Trust, question: &VerifyContext<'_>) -> Verdict {
    let case = Case {
        document,
        trust,
        question,
    };
    let signature = document.sig().map(Signature::parse);
    let (algorithm, pkid) = match signature {
        None | Some(Ok(Signature::None)) => return case.unsigned(),
        Some(Err(why)) => {
            return case.against(
                &rule::SIG_MALFORMED,
                VerdictDetail::Text(format!("The signature can't be read: {why}.")),
            );
        }
        Some(Ok(Signature::Signed {
            algorithm, pkid, ..
        })) => (algorithm, pkid),
    };
    let mut verdict = if Algorithm::parse(algorithm).is_none() {
        let what = format!("The message is signed with `{algorithm}`, which is not known here.");
        case.against(&rule::ALGORITHM_UNKNOWN, VerdictDetail::Text(what))
    } else {
        case.signed(pkid)
    };
    verdict.pkid = Some(pkid.to_owned());
    verdict.algorithm = Some(algorithm.to_owned());
    verdict
}

/// How many keys of an id or of a domain are tried.
pub(crate) const MAX_KEYS: usize = 16;

/// Where a key comes from.
#[derive(Clone)]
enum Source<'t> {
    Given,
    Did,
    Dns(String, Dnssec),
    Known(&'t KnownKey),
    Carried,
}

struct Case<'c> {
    document: &'c Document<'c>,
    trust: &'c Trust,
    question: &'c VerifyContext<'c>,
}

impl<'c> Case<'c> {
    /// The DNSSEC status, if the domain was asked now.
    fn dnssec(&self) -> Option<Dnssec> {
        match self.question.dns? {
            DnsAnswer::Keys { dnssec, .. } | DnsAnswer::Absent { dnssec } => Some(*dnssec),
            DnsAnswer::Wrong { .. } | DnsAnswer::Unavailable { .. } => None,
        }
    }

    fn unsigned(&self) -> Verdict {
        if self.document.block("integrity").is_some() {
            return self.against(&rule::SIGNATURE_STRIPPED, VerdictDetail::None);
        }
        Verdict {
            word: VerdictWord::Unsigned,
            trusted: Trusted::Unsigned,
            rule: None,
            ..self.against(&rule::VERDICT, VerdictDetail::None)
        }
    }

    /// The verdict against an envelope that no key was found to have signed.
    fn against(&self, rule: &'static Rule, detail: VerdictDetail) -> Verdict {
        Verdict {
            word: VerdictWord::NotVerified,
            trusted: Trusted::Nobody,
            rule: Some(rule),
            detail,
            retry: false,
            pkid: None,
            algorithm: None,
            key: None,
            body: None,
            authentic: None,
            head: head(self.document, None),
            revokes: None,
            ahead: false,
            dnssec: self.dnssec(),
        }
    }

    fn unknown(&self, rule: &'static Rule, detail: VerdictDetail, retry: bool) -> Verdict {
        Verdict {
            word: VerdictWord::UnknownKey,
            trusted: Trusted::UnknownKey,
            retry,
            ..self.against(rule, detail)
        }
    }

    fn signed(&self, pkid: &str) -> Verdict {
        let keys = match self.keys(pkid) {
            Ok(keys) => keys,
            Err(verdict) => return *verdict,
        };
        let mut unfit = None;
        for (key, source) in keys {
            if let Some(reason) = key.denied() {
                let text = format!("Nobody may trust the key of {pkid}: it was {reason}.");
                return self.against(&rule::KEY_DENIED, VerdictDetail::Text(text));
            }
            let authentic = match self.question.restore {
                true => authenticate_and_restore(self.document, &key),
                false => authenticate(self.document, &key),
            };
            match authentic {
                Ok(authentic) => return Fit::new(self, pkid, key, source, authentic).verdict(),
                Err(Unfit::Signature) if unfit.is_some() => {}
                Err(why) => {
                    // The first key that was tried is the one to talk about, unless a later one says more.
                    if unfit.is_none() || !matches!(why, Unfit::AlgorithmOfKey) {
                        unfit = Some((why, key, source));
                    }
                }
            }
        }
        match unfit {
            None => self.unknown(&rule::NO_KEY, VerdictDetail::None, false),
            Some((why, key, source)) => self.unfit(pkid, &why, &key, &source),
        }
    }

    /// The keys that may have signed, in the order in which they are tried.
    fn keys(&self, pkid: &str) -> Result<Vec<(PublicKey, Source<'c>)>, Box<Verdict>> {
        let carried = self.carried(pkid)?;
        if let Some(key) = self.question.key {
            return Ok(vec![(*key, Source::Given)]);
        }
        if let Some(did) = PublicKey::from_did(pkid) {
            return match did {
                Ok(key) => Ok(vec![(key, self.did(&key))]),
                Err(why) => {
                    let text = format!("The key id can't be read: {why}.");
                    Err(Box::new(self.against(why.rule, VerdictDetail::Text(text))))
                }
            };
        }
        if let Some(vouched) = self.vouched(pkid)? {
            return Ok(vouched);
        }
        let known = self.trust.keys_for(pkid, self.document.sender());
        let known = known.into_iter().take(MAX_KEYS);
        // A key that is only known as revoked vouches for nothing, before its revocation either.
        let source = |k: &'c KnownKey| match k.how {
            Origin::Revocation => Source::Carried,
            _ => Source::Known(k),
        };
        let mut keys: Vec<_> = known.map(|k| (k.key, source(k))).collect();
        keys.extend(carried.map(|key| (key, Source::Carried)));
        Ok(keys)
    }

    /// Where the key of a did:key comes from: the id is the key, in more than one spelling.
    fn did(&self, key: &PublicKey) -> Source<'c> {
        if !self.question.at_relay {
            return Source::Did;
        }
        let sender = self.document.sender();
        let is_pinned = |k: &&KnownKey| k.how != Origin::Revocation && k.binds(sender);
        let known = self.trust.of_key(key).find(is_pinned);
        known.map_or(Source::Carried, Source::Known)
    }

    /// The keys that the domain lists, where it was asked or has answered before.
    fn vouched(&self, pkid: &str) -> Result<Option<Vec<(PublicKey, Source<'c>)>>, Box<Verdict>> {
        let Some(domain) = domain_of(pkid) else {
            return Ok(None);
        };
        let against =
            |rule, text: String| Err(Box::new(self.against(rule, VerdictDetail::Text(text))));
        let has_answered = |a: &&DnsAnswer| !matches!(a, DnsAnswer::Unavailable { .. });
        let stripped = self.question.dns.filter(has_answered).is_some()
            && self.dnssec() != Some(Dnssec::Secure);
        if stripped && self.trust.was_secure(domain) {
            let text = format!(
                "the answers of {domain} were protected by DNSSEC before, and this one is not"
            );
            let verdict = self.unknown(&rule::DNS_UNAVAILABLE, VerdictDetail::Text(text), true);
            return Err(Box::new(verdict));
        }
        let (keys, dnssec) = match self.question.dns {
            Some(DnsAnswer::Keys { keys, dnssec, .. }) => (keys.clone(), *dnssec),
            Some(DnsAnswer::Absent { .. }) => {
                let text = format!("{domain} lists no key, so it does not vouch for {pkid}.");
                return against(&rule::DNS_ABSENT, text);
            }
            Some(DnsAnswer::Wrong { reason }) => {
                let text = format!("{domain} lists no key that can be read ({reason}).");
                return against(&rule::DNS_ABSENT, text);
            }
            Some(DnsAnswer::Unavailable { reason }) => {
                let detail = VerdictDetail::Text(reason.clone());
                return Err(Box::new(self.unknown(&rule::DNS_UNAVAILABLE, detail, true)));
            }
            None => match self.trust.domain(domain, self.question.at) {
                Some(known) => (known.keys.clone(), known.dnssec),
                None => return self.expired(pkid, domain),
            },
        };
        if self.question.require_dnssec && dnssec != Dnssec::Secure {
            let text = format!("The answer of {domain} is not protected by DNSSEC.");
            return against(&rule::DNSSEC_REQUIRED, text);
        }
        let source = Source::Dns(domain.to_owned(), dnssec);
        let keys = keys.into_iter().take(MAX_KEYS);
        Ok(Some(keys.map(|k| (k, source.clone())).collect()))
    }

    /// A domain that vouched before has to be asked again, unless a person compared the key.
    fn expired(
        &self,
        pkid: &str,
        domain: &str,
    ) -> Result<Option<Vec<(PublicKey, Source<'c>)>>, Box<Verdict>> {
        let by_hand = |k: &&KnownKey| k.how == Origin::Manual && k.standing == KeyStanding::Active;
        let is_pinned = self.trust.of_id(pkid).iter().any(by_hand);
        let knows = |d: &crate::trust::Domain| d.name.eq_ignore_ascii_case(domain);
        if is_pinned || !self.trust.domains().iter().any(knows) {
            return Ok(None);
        }
        let detail = VerdictDetail::Expired(domain.to_owned());
        Err(Box::new(self.unknown(&rule::DNS_UNAVAILABLE, detail, true)))
    }

    /// The key that came with the message; one of an algorithm that is not known here is none.
    fn carried(&self, pkid: &str) -> Result<Option<PublicKey>, Box<Verdict>> {
        let Some(block) = self.document.envelope().key() else {
            return Ok(None);
        };
        let against = |rule, text| Err(Box::new(self.against(rule, VerdictDetail::Text(text))));
        let (Some(record), true) = (block.public_key, block.key_id == Some(pkid)) else {
            let text = format!("The key that came with the message is not the one of {pkid}.");
            return against(&rule::KEY_BLOCK, text);
        };
        match PublicKey::parse_record(record) {
            Ok(key) => Ok(Some(key)),
            Err(why) if *why.rule == rule::ALGORITHM_UNKNOWN => Ok(None),
            Err(why) => {
                let text = format!("The key that came with the message can't be used: {why}.");
                against(why.rule, text)
            }
        }
    }

    /// No key fits.
    fn unfit(&self, pkid: &str, why: &Unfit, key: &PublicKey, source: &Source<'_>) -> Verdict {
        let rule = why.rule().unwrap_or(&rule::SIGNATURE_UNFIT);
        let detail = match (why, source) {
            (Unfit::Signature | Unfit::AlgorithmOfKey, Source::Dns(domain, _)) => {
                let text = format!(
                    "The signature fits none of the keys that {domain} lists: the head was changed, or somebody else signed."
                );
                return self.against(&rule::DNS_OTHER_KEY, VerdictDetail::Text(text));
            }
            (Unfit::AlgorithmOfKey, _) => VerdictDetail::Text(format!(
                "The key of {pkid} is of another kind ({}) than the signature.",
                key.algorithm()
            )),
            (Unfit::Malformed(why), _) => {
                VerdictDetail::Text(format!("The message can't be checked: {why}."))
            }
            (Unfit::Dropped(finding), _) => VerdictDetail::Text(format!(
                "The text holds more than {pkid} signed: {}.",
                finding.message
            )),
            _ => VerdictDetail::None,
        };
        self.against(rule, detail)
    }
}

/// What a head says about itself; when it was signed only if it is authentic.
fn head(document: &Document<'_>, signed_at: Option<Timestamp>) -> Head {
    Head {
        sender: document.sender().to_owned(),
        receiver: document.receiver().to_owned(),
        message: document.header(CoreHeader::Message).map(str::to_owned),
        signed_at,
    }
}
