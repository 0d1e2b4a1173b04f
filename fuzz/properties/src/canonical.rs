//! The meaning of an envelope, and the way back to it from canonical bytes.

use crosstalk_envelope::canonical::{is_hop_key, is_hop_namespace};
use crosstalk_envelope::{CoreHeader, Document};

/// The content of an envelope, without the blocks of hops and without its signature.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Meaning {
    /// From whom.
    pub sender: String,
    /// To whom.
    pub receiver: String,
    /// Core headers in canonical order.
    pub core: Vec<(String, String)>,
    /// Unknown headers in the order of the text.
    pub unknown: Vec<(String, String)>,
    /// META blocks.
    pub blocks: Vec<(String, Vec<(String, String)>)>,
    /// `body` or `response`, and the digest of the text.
    pub body: (String, String),
}

fn owned(pair: (&str, &str)) -> (String, String) {
    (pair.0.to_owned(), pair.1.to_owned())
}

impl Meaning {
    /// The content of a document.
    pub fn of(document: &Document<'_>) -> Self {
        let mut blocks = Vec::new();
        for block in document
            .blocks()
            .filter(|b| !is_hop_namespace(b.namespace()))
        {
            let namespace = block.namespace();
            let fields: Vec<_> = block
                .fields()
                .filter(|(key, _)| !is_hop_key(namespace, key))
                .map(owned)
                .collect();
            // A routing block of hops alone, or an empty one, says nothing.
            if !(fields.is_empty() && namespace == "routing") {
                blocks.push((namespace.to_owned(), fields));
            }
        }
        let core = CoreHeader::ALL
            .iter()
            .filter_map(|c| Some((c.as_str(), document.header(*c)?)));
        let kind = document.body_kind().map_or("", |k| k.as_str());
        Self {
            sender: document.sender().to_owned(),
            receiver: document.receiver().to_owned(),
            core: core.map(owned).collect(),
            unknown: document
                .headers()
                .filter(|(n, _)| CoreHeader::from_name(n).is_none())
                .map(owned)
                .collect(),
            blocks,
            body: (kind.to_owned(), document.body_digest().to_string()),
        }
    }

    /// Reads canonical bytes back, with nothing but the rules of `spec/canonical.md`.
    pub fn decode(canonical: &str) -> Option<Self> {
        let mut lines = canonical.strip_suffix('\n')?.split('\n');
        let parties = lines.next()?.strip_prefix("[[")?.strip_suffix(" v1]]")?;
        let (sender, receiver) = parties.split_once('→')?;
        let mut meaning = Self {
            sender: sender.to_owned(),
            receiver: receiver.to_owned(),
            core: Vec::new(),
            unknown: Vec::new(),
            blocks: Vec::new(),
            body: Default::default(),
        };
        for line in lines {
            let (name, value) = owned(line.split_once(": ")?);
            match (name.as_str(), meaning.blocks.last_mut()) {
                _ if !meaning.body.0.is_empty() => return None,
                ("body" | "response", _) => meaning.body = (name, value),
                ("meta", _) => meaning.blocks.push((value, Vec::new())),
                (_, Some((_, fields))) => fields.push((name, value)),
                (core, None) if CoreHeader::from_name(core).is_some() => {
                    meaning.core.push((name, value))
                }
                (_, None) => meaning.unknown.push((name, value)),
            }
        }
        Some(meaning)
    }
}
