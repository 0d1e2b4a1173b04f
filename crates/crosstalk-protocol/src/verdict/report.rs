//! A verdict for programs: `crosstalk.verify/1`.

use super::{Trusted, Verdict, VerdictDetail};
use crate::dns::Dnssec;
use crosstalk_envelope::{Diagnosis, ErrorCode};
use serde::Serialize;

/// The verdict as data for programs. The fields are written in this order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VerdictReport {
    /// `crosstalk.verify/1`.
    pub schema: &'static str,
    /// The verdict in a word.
    pub verdict: &'static str,
    /// The state of the body, where the envelope says what it was.
    pub body: Option<&'static str>,
    /// The lines that the state of the body names.
    pub lines: Vec<usize>,
    /// The last line before the first gap of a truncated body.
    pub after: Option<usize>,
    /// The id of the key.
    pub pkid: Option<String>,
    /// The algorithm of the signature.
    pub algorithm: Option<String>,
    /// The fingerprint of the key that fits.
    pub fingerprint: Option<String>,
    /// The authority that vouches for the key.
    pub trust: Option<&'static str>,
    /// Since when the key is pinned.
    pub since: Option<String>,
    /// The DNSSEC status of the answer of the domain.
    pub dnssec: Option<&'static str>,
    /// Of the authentic head where there is one, else as received.
    pub sender: String,
    /// As the sender.
    pub receiver: String,
    /// The id of the message, as the sender.
    pub message: Option<String>,
    /// When it was signed, by its own words.
    pub signed_at: Option<String>,
    /// The verdict as a sentence for people.
    pub sentence: String,
    /// The next step, as a sentence for people.
    pub next: String,
    /// The rule that decided against it.
    pub rule: Option<&'static str>,
    /// The code of that rule.
    pub code: Option<&'static str>,
    /// Whether another try later may end otherwise.
    pub retry: bool,
    /// The keys, if the key changed.
    pub key_change: Option<KeyChange>,
    /// The verified envelope, rebuilt from the verified bytes.
    pub envelope: Option<String>,
    /// The body as it was signed, where a search found it.
    pub restored: Option<String>,
}

/// Two keys for one id.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KeyChange {
    /// The fingerprint of the known key.
    pub known: String,
    /// The fingerprint of the key that was used.
    pub offered: String,
}

impl Verdict {
    /// The verdict for programs.
    pub fn report(&self) -> VerdictReport {
        let after = match self.body {
            Some(Diagnosis::Truncated { after, .. }) => Some(after),
            _ => None,
        };
        let since = match &self.trusted {
            Trusted::Pinned { since, .. } => Some(since.to_string()),
            _ => None,
        };
        let key_change = match &self.detail {
            VerdictDetail::KeyChanged { known, offered } => Some(KeyChange {
                known: known.to_string(),
                offered: offered.to_string(),
            }),
            _ => None,
        };
        VerdictReport {
            schema: "crosstalk.verify/1",
            verdict: self.word.as_str(),
            body: self.body.as_ref().map(Diagnosis::as_str),
            lines: self
                .body
                .as_ref()
                .map_or(Vec::new(), |b| b.lines().to_vec()),
            after,
            pkid: self.pkid.clone(),
            algorithm: self.algorithm.clone(),
            fingerprint: self.fingerprint().map(|f| f.to_string()),
            trust: self.trusted.as_str(),
            since,
            dnssec: self.dnssec.map(Dnssec::as_str),
            sender: self.head.sender.clone(),
            receiver: self.head.receiver.clone(),
            message: self.head.message.clone(),
            signed_at: self.head.signed_at.map(|t| t.to_string()),
            sentence: self.sentence(),
            next: self.next(),
            rule: self.rule.map(|r| r.id),
            code: self.code().map(ErrorCode::as_str),
            retry: self.retry,
            key_change,
            envelope: self.verified().map(|v| v.to_envelope()),
            restored: self.restored().map(str::to_owned),
        }
    }
}
