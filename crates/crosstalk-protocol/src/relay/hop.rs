//! The trace that a relay leaves: one `meta: audit` block, which says who had the message when, and is signed.

use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::{
    Diagnostic, Document, Edit, PrivateKey, PublicKey, Reading, Signature, Timestamp, base64, limit,
};

/// More hops than these are a loop. A hop adds nine lines, and an envelope has at most 256 (ENV-062): with this limit, a
/// loop is called a loop before it is called too large.
pub const HOPS: usize = 25;

/// What the digest of a hop begins with.
const PREAMBLE: &str = "ai-crosstalk-hop-v1.1";

/// One hop of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Its number, from 1.
    pub number: usize,
    /// When the message came to it.
    pub received_at: Timestamp,
    /// Who it is.
    pub received_by: String,
    /// From whom it came: the hop before, or the sender. It is there where `chain` is.
    pub previous_hop: Option<String>,
    /// Where the message is in the log of the hop: the origin of the log, `#`, and the index.
    pub chain: Option<String>,
    /// The digest of the hop before; for the first one, that of the message.
    pub previous: Digest,
}

impl Hop {
    /// The digest of the hop, over everything that it says and the message.
    pub fn digest(&self, message: Digest) -> Digest {
        let mut text = format!(
            "{PREAMBLE}\n{}\n{}\n{}\n{}\n{message}\n",
            self.number, self.received_at, self.received_by, self.previous
        );
        // A hop without them has the digest that it always had.
        let named = [("Previous-Hop", &self.previous_hop), ("Chain", &self.chain)];
        for (name, value) in named {
            if let Some(value) = value {
                text.push_str(&format!("{name}: {value}\n"));
            }
        }
        Digest::of(text.as_bytes())
    }
}

/// The key that a relay signs its hops with.
#[derive(Clone, Copy, Debug)]
pub struct HopKey<'k> {
    /// The key.
    pub key: &'k PrivateKey,
    /// Its id: the domain of the relay.
    pub pkid: &'k str,
}

/// Why a hop does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HopFault {
    /// The message has no hop.
    #[error("there is no hop")]
    None,
    /// A number, a time, a name or a digest is missing or can't be read.
    #[error("the hop is incomplete")]
    Incomplete,
    /// The digest is not that of what the hop says.
    #[error("the digest of the hop does not fit what it says")]
    Digest,
    /// It is not signed, or not in a form that is known.
    #[error("the hop is not signed")]
    Unsigned,
    /// The signature does not fit the key.
    #[error("the signature of the hop does not fit the key")]
    Signature,
}

/// The hops of a message so far, as they are written: nothing of it is checked.
pub fn hops_of(document: &Document<'_>) -> Vec<Option<Hop>> {
    document
        .envelope()
        .hops()
        .map(|h| {
            Some(Hop {
                number: usize::try_from(h.number?).ok()?,
                received_at: h.received_at?,
                received_by: h.received_by?.to_owned(),
                previous_hop: h.previous_hop.map(str::to_owned),
                chain: h.chain.map(str::to_owned),
                previous: h.previous?,
            })
        })
        .collect()
}

/// Adds a hop to a message, and the relay to its `X-Route`, where there is one. Every other byte stays.
///
/// # Errors
/// If the message or the name of the relay is invalid, or the hop would exceed a limit of an envelope.
pub fn add_hop(
    text: &str,
    received_at: Timestamp,
    received_by: &str,
    key: Option<HopKey<'_>>,
) -> Result<String, Diagnostic> {
    add_logged_hop(text, received_at, received_by, key, None)
}

/// The same, of a hop that keeps a log: with where the message is in it, and from whom it came.
///
/// # Errors
/// As [`add_hop`].
pub fn add_logged_hop(
    text: &str,
    received_at: Timestamp,
    received_by: &str,
    key: Option<HopKey<'_>>,
    chain: Option<&str>,
) -> Result<String, Diagnostic> {
    let document = Document::parse(text, Reading::Strict);
    let message = document.digest()?;
    let envelope = document.envelope();
    let last = envelope.hops().last();
    let before = last.as_ref().and_then(|h| h.received_by);
    let before = before.unwrap_or(document.sender());
    let hop = Hop {
        number: envelope.hops().count() + 1,
        received_at,
        received_by: received_by.to_owned(),
        previous_hop: chain.map(|_| before.to_owned()),
        chain: chain.map(str::to_owned),
        previous: last.as_ref().and_then(|h| h.digest).unwrap_or(message),
    };
    let digest = hop.digest(message);
    let number = hop.number.to_string();
    let at = received_at.to_string();
    let previous = hop.previous.to_string();
    let written = digest.to_string();
    let mut fields = vec![
        ("Hop", number.as_str()),
        ("Received-At", &at),
        ("Received-By", received_by),
    ];
    if let Some(chain) = chain {
        fields.push(("Previous-Hop", before));
        fields.push(("Chain", chain));
    }
    fields.push(("Previous-Digest", &previous));
    fields.push(("Hop-Digest", &written));
    let signature = key.map(|k| {
        let signed = k.key.sign(written.as_bytes());
        let algorithm = k.key.algorithm().as_str();
        format!(
            "{algorithm}:pkid={};sig={}",
            k.pkid,
            base64::encode(&signed)
        )
    });
    if let Some(signature) = &signature {
        fields.push(("Hop-Signature", signature));
    }
    let mut edit = Edit::new(&document)?.add_block("audit", &fields)?;
    if let Some(route) = envelope.routing().route {
        edit = edit.set_key("routing", "X-Route", &format!("{route} → {received_by}"))?;
    }
    let out = edit.finish();
    let keys = document.blocks().map(|b| 1 + b.fields().count());
    let lines = document.headers().count() + keys.sum::<usize>() + 1 + fields.len();
    // Only a text that is large, or has many lines, can have become too large.
    if (lines > limit::HEADERS || out.len() > limit::LINE_BYTES / 4)
        && let Some(fault) = first_error(&out)
    {
        return Err(fault);
    }
    Ok(out)
}

fn first_error(text: &str) -> Option<Diagnostic> {
    let document = Document::parse(text, Reading::Strict);
    let mut faults = document.diagnostics().iter();
    faults.find(|d| d.is_error()).cloned()
}

/// Checks the last hop of a message against a key. Who it was.
pub fn check_hop(document: &Document<'_>, key: &PublicKey) -> Result<Hop, HopFault> {
    let envelope = document.envelope();
    let written = envelope.hops().last().ok_or(HopFault::None)?;
    let hop = hops_of(document)
        .pop()
        .flatten()
        .ok_or(HopFault::Incomplete)?;
    let message = document.digest().map_err(|_| HopFault::Incomplete)?;
    let digest = hop.digest(message);
    if written.digest != Some(digest) {
        return Err(HopFault::Digest);
    }
    let signature = written.signature.map(Signature::parse);
    let Some(Ok(Signature::Signed {
        algorithm, base64, ..
    })) = signature
    else {
        return Err(HopFault::Unsigned);
    };
    let fits = algorithm == key.algorithm().as_str()
        && base64::decode(base64).is_some_and(|s| key.verifies(digest.to_string().as_bytes(), &s));
    fits.then_some(hop).ok_or(HopFault::Signature)
}
