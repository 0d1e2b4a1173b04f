//! The whole way of a message (AUD-050, AUD-051): every hop, whether it follows the one before, and who vouches for it.

use super::hop::hops_of;
use crosstalk_envelope::words;
use crosstalk_envelope::{Document, PublicKey, Signature, Timestamp, base64};

/// The result of checking one hop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HopStep {
    /// Its place, from 1.
    pub place: usize,
    /// The hop, as it is written: nothing if something that it needs is missing.
    pub hop: Option<super::Hop>,
    /// Its faults.
    pub faults: Vec<TraceFault>,
    /// The result of checking its signature.
    pub signed: HopSignature,
    /// Milliseconds since the hop before.
    pub since: Option<i64>,
}

words! {
    /// A fault of a hop.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum TraceFault {
        /// A number, a time, a name or a digest is missing or can't be read.
        Incomplete = "incomplete",
        /// Its number is not its position: a hop is missing, or occurs twice.
        Number = "number",
        /// Its `Previous-Digest` is not the digest of the hop before, or of the message.
        Broken = "broken",
        /// Its digest is not that of what it says.
        Digest = "digest",
        /// Its `Previous-Hop` is not the hop before, or the sender.
        Before = "before",
        /// It got the message before the hop before had it.
        Time = "time",
        /// Its signature does not fit the key that there is for it.
        Signature = "signature",
    }
}

impl TraceFault {
    /// What it means.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Incomplete => "something that a hop needs is missing or can't be read",
            Self::Number => "its number is not its place: a hop is missing, or was put in",
            Self::Broken => {
                "it does not follow what stands before it: a hop was changed or left out"
            }
            Self::Digest => "its digest does not fit what it says",
            Self::Before => "it says that the message came from somebody else than the hop before",
            Self::Time => "it had the message before the hop before had it",
            Self::Signature => "its signature does not fit the key",
        }
    }
}

/// The result of checking the signature of a hop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HopSignature {
    /// It fits a key that is known for this name.
    Verified(String),
    /// It is signed, and there is no key here to check it with.
    Unknown(String),
    /// It does not fit.
    Wrong(String),
    /// It is not signed.
    No,
}

impl HopSignature {
    /// The word for it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Verified(_) => "verified",
            Self::Unknown(_) => "unknown-key",
            Self::Wrong(_) => "wrong",
            Self::No => "unsigned",
        }
    }
}

/// Goes along the hops of a message. The keys of a name are whatever is known of it: pins, what its domain says.
///
/// ```
/// use crosstalk_envelope::{Algorithm, Document, PrivateKey, Reading, Timestamp};
/// use crosstalk_protocol::relay::{HopKey, HopSignature, add_logged_hop, trace};
/// let text = "[[A→B v1]]\nuser: a\nthread: T\ncontext: c\nintent: REQUEST\nbody: |\n  Go.\nsig: none\n[[END]]\n";
/// let key = PrivateKey::from_seed(Algorithm::Ed25519, &[7; 32]).unwrap();
/// let signer = HopKey { key: &key, pkid: "one.example" };
/// let at = Timestamp::parse("2026-11-16T12:00:00Z").unwrap();
/// let text = add_logged_hop(text, at, "one.example", Some(signer), Some("one.example#17")).unwrap();
/// let steps = trace(&Document::parse(&text, Reading::Strict), &|_| vec![key.public()]);
/// assert!(steps[0].faults.is_empty());
/// assert_eq!(steps[0].signed, HopSignature::Verified("one.example".into()));
/// ```
pub fn trace(document: &Document<'_>, keys: &dyn Fn(&str) -> Vec<PublicKey>) -> Vec<HopStep> {
    let message = document.digest().ok();
    let envelope = document.envelope();
    let written: Vec<_> = envelope.hops().collect();
    let (mut before, mut sender) = (message, Some(document.sender().to_owned()));
    let mut time: Option<Timestamp> = None;
    let mut steps = Vec::new();
    for (place, (hop, written)) in (1..).zip(hops_of(document).into_iter().zip(&written)) {
        let mut faults = Vec::new();
        let mut fault = |is_wrong: bool, what| {
            if is_wrong {
                faults.push(what);
            }
        };
        fault(hop.is_none() || message.is_none(), TraceFault::Incomplete);
        let digest = hop.as_ref().zip(message).map(|(h, m)| h.digest(m));
        if let Some(hop) = &hop {
            fault(hop.number != place, TraceFault::Number);
            fault(Some(hop.previous) != before, TraceFault::Broken);
            fault(written.digest != digest, TraceFault::Digest);
            let from = hop.previous_hop.as_ref();
            fault(
                from.is_some() && from != sender.as_ref(),
                TraceFault::Before,
            );
            fault(time.is_some_and(|t| hop.received_at < t), TraceFault::Time);
        }
        let said = written.digest.map(|d| d.to_string()).unwrap_or_default();
        let by = written.received_by.unwrap_or_default();
        let signed = signed(written.signature, by, &said, keys);
        fault(
            matches!(signed, HopSignature::Wrong(_)),
            TraceFault::Signature,
        );
        let at = hop.as_ref().map(|h| h.received_at);
        let since = time.zip(at).map(|(t, at)| at.as_millis() - t.as_millis());
        (before, sender) = (written.digest, written.received_by.map(str::to_owned));
        time = at.or(time);
        steps.push(HopStep {
            place,
            hop,
            faults,
            signed,
            since,
        });
    }
    steps
}

fn signed(
    written: Option<&str>,
    by: &str,
    digest: &str,
    keys: &dyn Fn(&str) -> Vec<PublicKey>,
) -> HopSignature {
    let Some(Ok(Signature::Signed {
        algorithm,
        pkid,
        base64: text,
    })) = written.map(Signature::parse)
    else {
        return HopSignature::No;
    };
    let known = keys(pkid);
    // A hop signs for itself.
    let is_own = pkid == by;
    let pkid = pkid.to_owned();
    if is_own && known.is_empty() {
        return HopSignature::Unknown(pkid);
    }
    let bytes = base64::decode(text).unwrap_or_default();
    let mut fitting = known.iter().filter(|k| k.algorithm().as_str() == algorithm);
    match is_own && fitting.any(|k| k.verifies(digest.as_bytes(), &bytes)) {
        true => HopSignature::Verified(pkid),
        false => HopSignature::Wrong(pkid),
    }
}
