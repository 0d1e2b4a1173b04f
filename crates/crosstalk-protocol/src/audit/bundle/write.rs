//! Writing a bundle: the lines of its files.

use super::{
    CHAINS, CHECKPOINT, CONSISTENCY, DETAILS, ENTRIES, HEADER, KEY, PROOFS, chain_folder,
    message_name,
};
use crate::audit::chain::ChainId;
use crate::audit::log::LogEntry;
use crate::audit::note::NoteKey;
use crate::audit::tree::Hash;
use crosstalk_envelope::base64;
use std::fmt::Write as _;

/// The contents of a bundle.
#[derive(Clone, Debug)]
pub struct BundleContents<'c> {
    /// The public key of the log.
    pub key: &'c NoteKey,
    /// The signed checkpoint.
    pub note: &'c str,
    /// The entries with the texts of messages, in their order.
    pub entries: &'c [LogEntry],
    /// For each entry its proof; nothing if these are all entries of the checkpoint.
    pub proofs: Option<&'c [Vec<Hash>]>,
    /// For sizes of older checkpoints the root at that size, and the proof from there; only with proofs.
    pub consistency: &'c [(u64, Hash, Vec<Hash>)],
}

/// The files of a bundle: names and texts.
///
/// ```
/// use crosstalk_envelope::{Algorithm, PrivateKey};
/// use crosstalk_protocol::audit::{Checkpoint, NoteKey, Tree, bundle};
/// let key = PrivateKey::from_seed(Algorithm::Ed25519, &[7; 32]).unwrap();
/// let root = Tree::default().root(0).unwrap();
/// let note = Checkpoint { origin: "relay.example".into(), size: 0, root }.sign(&key).unwrap();
/// let key = NoteKey::new("relay.example", key.public()).unwrap();
/// let contents = bundle::BundleContents { key: &key, note: &note, entries: &[], proofs: None, consistency: &[] };
/// let files = bundle::write(&contents).into_iter().map(|(n, t)| (n, t.into_bytes())).collect();
/// let checked = bundle::check::<std::collections::BTreeMap<_, _>>(&files, &bundle::Against::default(), &mut |_, _| {});
/// assert_eq!(checked.unwrap().checkpoint.size, 0);
/// ```
pub fn write(contents: &BundleContents<'_>) -> Vec<(String, String)> {
    let BundleContents {
        key, note, entries, ..
    } = contents;
    let (count, older) = (entries.len(), contents.consistency.len());
    let mut lines = match contents.proofs {
        Some(_) => format!("{HEADER} some {count} {older}\n"),
        None => format!("{HEADER} all {count}\n"),
    };
    let mut details = String::new();
    let mut files = vec![
        (KEY.to_owned(), format!("{key}\n")),
        (CHECKPOINT.to_owned(), (*note).to_owned()),
    ];
    for entry in *entries {
        let index = entry.index;
        // Nothing can go wrong when a text is written to.
        let _ = writeln!(lines, "{index} {}", entry.leaf);
        if entry.leaf.detail.is_some() {
            let _ = match &entry.detail {
                Some((salt, d)) => writeln!(details, "{index} {} {d}", base64::encode(salt)),
                None => writeln!(details, "{index} -"),
            };
        }
        if let Some(text) = &entry.text {
            files.push((message_name(index), text.clone()));
        }
    }
    files.push((ENTRIES.to_owned(), lines));
    files.push((DETAILS.to_owned(), details));
    if let Some(proofs) = contents.proofs {
        let indices = entries.iter().map(|e| e.index);
        let all = indices.zip(proofs.iter().map(Vec::as_slice));
        files.push((PROOFS.to_owned(), paths(all)));
        let from = |(size, root, path): &(u64, Hash, Vec<Hash>)| {
            (*size, [&[*root], path.as_slice()].concat())
        };
        let all: Vec<(u64, Vec<Hash>)> = contents.consistency.iter().map(from).collect();
        let all = all.iter().map(|(size, path)| (*size, path.as_slice()));
        files.push((CONSISTENCY.to_owned(), paths(all)));
    }
    files
}

/// The files of the bundle of all chains of a store, by their numbers. With one chain, it is the bundle of that one.
pub fn write_chains(chains: &[(ChainId, BundleContents<'_>)]) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for (chain, contents) in chains {
        let folder = chain_folder(*chain);
        let own = write(contents).into_iter();
        files.extend(own.map(|(name, text)| (format!("{folder}{name}"), text)));
    }
    if chains.len() > 1 {
        let line = |(chain, contents): &(ChainId, BundleContents<'_>)| {
            format!("{chain} {}\n", contents.key)
        };
        files.push((CHAINS.to_owned(), chains.iter().map(line).collect()));
    }
    files
}

/// Paths, a line each, behind their numbers.
fn paths<'p>(all: impl Iterator<Item = (u64, &'p [Hash])>) -> String {
    let mut text = String::new();
    for (number, path) in all {
        text.push_str(&number.to_string());
        for hash in path {
            text.push(' ');
            text.push_str(&base64::encode(hash));
        }
        text.push('\n');
    }
    text
}
