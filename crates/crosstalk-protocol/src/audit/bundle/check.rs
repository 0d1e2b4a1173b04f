//! Checking a bundle: the signature, the tree, the messages, the details, the older checkpoints, in this order. The first
//! thing that is wrong ends it.

use super::{
    BundleFault, BundleFiles, CHAINS, CHECKPOINT, CONSISTENCY, DETAILS, ENTRIES, HEADER, KEY,
    PROOFS, Wrong, chain_folder, message_name,
};
use crate::audit::chain::ChainId;
use crate::audit::event::{EventKind, Leaf, detail_digest};
use crate::audit::note::{Checkpoint, Fork, Note, NoteError, NoteKey};
use crate::audit::proof::read_hash;
use crate::audit::tree::{Hash, Tree, extends, is_included, leaf_hash};
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::{Document, Reading, base64};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

/// What a bundle is checked against.
#[derive(Clone, Debug, Default)]
pub struct Against<'a> {
    /// The keys of chains, from somewhere else than the bundle.
    pub keys: BTreeMap<ChainId, NoteKey>,
    /// Checkpoints that were kept from before.
    pub held: &'a [String],
}

impl<'a> Against<'a> {
    /// The key of the first chain, if it is known, and checkpoints of any chain.
    pub fn new(key: Option<&NoteKey>, held: &'a [String]) -> Self {
        let first = key.map(|key| (ChainId::FIRST, key.clone()));
        Self {
            keys: first.into_iter().collect(),
            held,
        }
    }
}

/// What holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleReport {
    /// What the relay signed.
    pub checkpoint: Checkpoint,
    /// The key that it is signed with.
    pub key: NoteKey,
    /// Whether these are all entries.
    pub is_all: bool,
    /// How many of each kind.
    pub kinds: BTreeMap<EventKind, u64>,
    /// How many messages are there.
    pub messages: u64,
    /// How many messages were accepted, and are not there because they were erased.
    pub erased: u64,
    /// How many details are withheld or erased.
    pub withheld: u64,
    /// How many older checkpoints it extends.
    pub extended: usize,
    /// When the first and the last of these entries were written.
    pub span: Option<(crosstalk_envelope::Timestamp, crosstalk_envelope::Timestamp)>,
    /// What holds of the other chains, by their numbers.
    pub others: Vec<(ChainId, BundleReport)>,
}

/// Told how far it is: so many steps of so many.
pub type Progress<'p> = dyn FnMut(u64, u64) + 'p;

/// What a fault of an older checkpoint names in place of a file.
const HELD: &str = "the checkpoint that you hold";

const DAMAGED: &str = "Get the bundle again. If it is the same, it was changed: don't rely on it, and ask the relay operator";
const AGAIN: &str = "Get the bundle again, whole: all of its files and nothing else";
const OPERATOR: &str = "Keep both checkpoints, and ask the relay operator: the log was changed";

fn wrong(trouble: BundleFault, file: &str, line: Option<u64>, what: impl Into<String>) -> Wrong {
    let help = match trouble {
        BundleFault::Unread => "Check that the file can be read",
        BundleFault::Form => AGAIN,
        BundleFault::Broken => DAMAGED,
        BundleFault::Fork(_) => OPERATOR,
        BundleFault::Apart => {
            "Export a bundle that reaches this checkpoint, with `--checkpoint` if it is of a part of the log"
        }
    };
    Wrong {
        trouble,
        file: file.to_owned(),
        line,
        what: what.into(),
        help,
    }
}

fn text<'f>(bytes: &'f [u8], file: &str) -> Result<&'f str, Wrong> {
    std::str::from_utf8(bytes).map_err(|_| wrong(BundleFault::Form, file, None, "it is no text"))
}

fn needed<'f, F: BundleFiles + ?Sized>(files: &'f F, file: &str) -> Result<Cow<'f, [u8]>, Wrong> {
    let read = files.read(file);
    let read = read.map_err(|why| wrong(BundleFault::Unread, file, None, why))?;
    read.ok_or_else(|| wrong(BundleFault::Form, file, None, "it is missing"))
}

/// The lines of a file, each of which ends with a line feed.
fn lines<'f>(text: &'f str, file: &str) -> Result<impl Iterator<Item = (u64, &'f str)>, Wrong> {
    let body = match text.strip_suffix('\n') {
        Some(body) => Some(body),
        None if text.is_empty() => None,
        None => {
            return Err(wrong(
                BundleFault::Form,
                file,
                None,
                "its last line is cut off",
            ));
        }
    };
    Ok((1..).zip(body.into_iter().flat_map(|b| b.split('\n'))))
}

/// A number as it is written: no sign, no zeros in front.
fn number(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

struct BundleEntry<'b> {
    index: u64,
    leaf: Leaf,
    line: &'b str,
}

/// A message, as entries of several chains name it: its id and its canonical digest.
pub type MessageKey = (Option<String>, Option<Digest>);

/// The files of one chain.
struct ChainFiles<'f, F: ?Sized> {
    files: &'f F,
    chain: ChainId,
    /// The folders of the other chains; the first chain has all other files.
    folders: &'f [String],
}

impl<F: BundleFiles + ?Sized> BundleFiles for ChainFiles<'_, F> {
    fn names(&self) -> Vec<String> {
        let names = self.files.names().into_iter();
        if self.chain == ChainId::FIRST {
            let is_other = |name: &String| {
                name == CHAINS || self.folders.iter().any(|folder| name.starts_with(folder))
            };
            return names.filter(|name| !is_other(name)).collect();
        }
        let folder = chain_folder(self.chain);
        let own = names.filter_map(|name| name.strip_prefix(&folder).map(str::to_owned));
        own.collect()
    }

    fn read(&self, name: &str) -> Result<Option<Cow<'_, [u8]>>, String> {
        self.files
            .read(&format!("{}{name}", chain_folder(self.chain)))
    }
}

/// Checks a bundle: all of its chains.
pub fn check<F: BundleFiles + ?Sized>(
    files: &F,
    against: &Against<'_>,
    progress: &mut Progress<'_>,
) -> Result<BundleReport, Wrong> {
    let chains = chains(files)?;
    let folders: Vec<String> = chains
        .iter()
        .skip(1)
        .map(|(id, _)| chain_folder(*id))
        .collect();
    let view = |chain: ChainId| ChainFiles {
        files,
        chain,
        folders: &folders,
    };
    let placed = |chain: ChainId, mut wrong: Wrong| {
        if wrong.file != HELD {
            wrong.file = format!("{}{}", chain_folder(chain), wrong.file);
        }
        wrong
    };
    let mut known = Vec::new();
    if chains.len() > 1 {
        for (chain, _) in &chains {
            let messages = known_messages(&view(*chain)).map_err(|e| placed(*chain, e))?;
            known.push((*chain, messages));
        }
    }
    let mut reports = Vec::new();
    for (chain, listed) in &chains {
        let others = known.iter().filter(|(other, _)| other != chain);
        let elsewhere: HashSet<MessageKey> = others.flat_map(|(_, m)| m.iter().cloned()).collect();
        let own = ChainAgainst {
            key: against.keys.get(chain),
            held: held_of(*chain, &chains, against.held),
            elsewhere,
        };
        let report = check_chain(&view(*chain), &own, progress).map_err(|e| placed(*chain, e))?;
        if listed.as_ref().is_some_and(|key| *key != report.key) {
            let what = format!("the key of chain {chain} is not the one in its folder");
            return Err(wrong(BundleFault::Broken, CHAINS, None, what));
        }
        reports.push((*chain, report));
    }
    let mut reports = reports.into_iter();
    let (_, mut first) = reports
        .next()
        .ok_or_else(|| wrong(BundleFault::Form, CHAINS, None, "it lists no chain"))?;
    first.others = reports.collect();
    Ok(first)
}

/// The chains of a bundle by their numbers, with their keys where they are listed.
fn chains<F: BundleFiles + ?Sized>(files: &F) -> Result<Vec<(ChainId, Option<NoteKey>)>, Wrong> {
    let read = files.read(CHAINS);
    let read = read.map_err(|why| wrong(BundleFault::Unread, CHAINS, None, why))?;
    let Some(bytes) = read else {
        return Ok(vec![(ChainId::FIRST, None)]);
    };
    let mut chains: Vec<(ChainId, Option<NoteKey>)> = Vec::new();
    let mut relay = String::new();
    for (place, line) in lines(text(&bytes, CHAINS)?, CHAINS)? {
        let bad = |what: &str| wrong(BundleFault::Form, CHAINS, Some(place), what);
        let parsed = line
            .split_once(' ')
            .and_then(|(number, key)| Some((ChainId::parse(number)?, NoteKey::parse(key).ok()?)));
        let (chain, key) = parsed.ok_or_else(|| bad("this is no chain and its key"))?;
        match chains.last() {
            None if chain == ChainId::FIRST => key.name().clone_into(&mut relay),
            Some((last, _)) if *last < chain => {}
            _ => return Err(bad("the chains are not in their order, from 0 on")),
        }
        if key.name() != chain.origin(&relay) {
            return Err(bad("the name of the key is not the origin of the chain"));
        }
        chains.push((chain, Some(key)));
    }
    match chains.len() {
        0 | 1 => {
            let what = "it is there where there are several chains, and lists fewer";
            Err(wrong(BundleFault::Form, CHAINS, None, what))
        }
        _ => Ok(chains),
    }
}

/// The older checkpoints of a chain, by their origin. Those of no chain are compared with the first one.
fn held_of<'h>(
    chain: ChainId,
    chains: &[(ChainId, Option<NoteKey>)],
    held: &'h [String],
) -> Vec<&'h String> {
    let chain_of = |note: &&String| {
        let claim = Note::parse(note).and_then(|note| note.claim()).ok();
        let origin = claim.map(|claim| claim.origin).unwrap_or_default();
        let is_it = |key: &NoteKey| key.name() == origin;
        let mut named = chains
            .iter()
            .filter(|(_, key)| key.as_ref().is_some_and(is_it));
        named.next().map_or(ChainId::FIRST, |(chain, _)| *chain)
    };
    held.iter().filter(|note| chain_of(note) == chain).collect()
}

/// The messages that a chain says were erased, and those whose texts it has.
fn known_messages<F: BundleFiles + ?Sized>(files: &F) -> Result<HashSet<MessageKey>, Wrong> {
    let list = needed(files, ENTRIES)?;
    let (_, entries) = entries(text(&list, ENTRIES)?)?;
    let names: HashSet<String> = files.names().into_iter().collect();
    let is_known = |entry: &BundleEntry<'_>| match entry.leaf.kind {
        EventKind::Erased => true,
        EventKind::Accepted => names.contains(&message_name(entry.index)),
        _ => false,
    };
    let known = entries.into_iter().filter(is_known);
    Ok(known.map(|e| (e.leaf.id, e.leaf.canonical)).collect())
}

/// What a chain is checked against.
struct ChainAgainst<'a> {
    key: Option<&'a NoteKey>,
    held: Vec<&'a String>,
    /// Messages that other chains have, or say were erased.
    elsewhere: HashSet<MessageKey>,
}

/// Checks a chain.
fn check_chain<F: BundleFiles + ?Sized>(
    files: &F,
    against: &ChainAgainst<'_>,
    progress: &mut Progress<'_>,
) -> Result<BundleReport, Wrong> {
    let key = key(files, against)?;
    let note = needed(files, CHECKPOINT)?;
    let note = text(&note, CHECKPOINT)?;
    let checkpoint = opened(note, &key)
        .map_err(|e| wrong(BundleFault::Broken, CHECKPOINT, None, e.to_string()))?;
    let list = needed(files, ENTRIES)?;
    let (scope, entries) = entries(text(&list, ENTRIES)?)?;
    let is_all = scope == BundleScope::All;
    known_files(files, is_all)?;
    let mut checked = BundleReport {
        kinds: BTreeMap::new(),
        messages: 0,
        erased: 0,
        withheld: 0,
        extended: 0,
        span: entries
            .first()
            .zip(entries.last())
            .map(|(a, b)| (a.leaf.at, b.leaf.at)),
        checkpoint,
        key,
        is_all,
        others: Vec::new(),
    };
    for entry in &entries {
        *checked.kinds.entry(entry.leaf.kind).or_default() += 1;
    }
    let tree = match is_all {
        true => Some(whole(&entries, &checked.checkpoint)?),
        false => {
            proved(files, &entries, &checked.checkpoint)?;
            None
        }
    };
    messages(files, &entries, &against.elsewhere, &mut checked, progress)?;
    details(files, &entries, &mut checked)?;
    let roots = match scope {
        BundleScope::All => HashMap::new(),
        BundleScope::Some(count) => older(files, count, &checked.checkpoint)?,
    };
    for held in &against.held {
        extended(held, note, &checked, tree.as_ref(), &roots)?;
        checked.extended += 1;
    }
    Ok(checked)
}

/// The key to check with: the one from elsewhere, and the one of the bundle must be the same.
fn key<F: BundleFiles + ?Sized>(files: &F, against: &ChainAgainst<'_>) -> Result<NoteKey, Wrong> {
    let bytes = needed(files, KEY)?;
    let line = text(&bytes, KEY)?.strip_suffix('\n');
    let key = line.ok_or(NoteError::Key).and_then(NoteKey::parse);
    let key = key.map_err(|e| wrong(BundleFault::Form, KEY, None, e.to_string()))?;
    match against.key {
        Some(known) if *known != key => {
            let what = format!(
                "it is the key of `{}`, and not the one that you gave",
                key.name()
            );
            let mut wrong = wrong(BundleFault::Broken, KEY, None, what);
            wrong.help = "Compare the keys: the author of this bundle signed it with another one";
            Err(wrong)
        }
        _ => Ok(key),
    }
}

fn opened(note: &str, key: &NoteKey) -> Result<Checkpoint, NoteError> {
    Note::parse(note)?.open(key)
}

/// Which entries there are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BundleScope {
    All,
    /// A part, with so many proofs from older checkpoints.
    Some(u64),
}

fn entries(list: &str) -> Result<(BundleScope, Vec<BundleEntry<'_>>), Wrong> {
    let bad = |line, what: &str| wrong(BundleFault::Form, ENTRIES, Some(line), what);
    let mut all = lines(list, ENTRIES)?;
    let head = all.next().map_or("", |(_, line)| line);
    let words: Vec<&str> = head.split(' ').collect();
    let (scope, count) = match words.as_slice() {
        [HEADER, "all", count] => (Some(BundleScope::All), *count),
        [HEADER, "some", count, older] => (number(older).map(BundleScope::Some), *count),
        _ => (None, ""),
    };
    let scope = scope.ok_or_else(|| bad(1, "this is no list of entries"))?;
    let mut entries: Vec<BundleEntry<'_>> = Vec::new();
    for (place, text) in all {
        let parsed = text.split_once(' ').and_then(|(index, line)| {
            let (index, leaf) = (number(index)?, Leaf::parse(line).ok()?);
            Some(BundleEntry { index, leaf, line })
        });
        let entry = parsed.ok_or_else(|| bad(place, "this is no entry of a log"))?;
        let after = entries.last().map_or(0, |last| last.index + 1);
        if entry.index < after || (scope == BundleScope::All && entry.index != after) {
            return Err(bad(place, "the entries are not in their order"));
        }
        entries.push(entry);
    }
    let found = u64::try_from(entries.len()).ok();
    if number(count) != found {
        return Err(bad(1, "there are not as many entries as it says"));
    }
    Ok((scope, entries))
}

/// There is nothing in a bundle that is not checked.
fn known_files<F: BundleFiles + ?Sized>(files: &F, is_all: bool) -> Result<(), Wrong> {
    let parts: &[&str] = match is_all {
        true => &[KEY, CHECKPOINT, ENTRIES, DETAILS],
        false => &[KEY, CHECKPOINT, ENTRIES, DETAILS, PROOFS, CONSISTENCY],
    };
    let is_message = |name: &str| {
        let index = name.strip_prefix("messages/")?.strip_suffix(".aict")?;
        number(index)
    };
    let names = files.names();
    let mut others = names.iter().filter(|n| !parts.contains(&n.as_str()));
    match others.find(|n| is_message(n).is_none()) {
        Some(name) => Err(wrong(
            BundleFault::Form,
            name,
            None,
            "it does not belong to this bundle",
        )),
        None => Ok(()),
    }
}

/// All entries have the root that was signed.
fn whole(entries: &[BundleEntry<'_>], checkpoint: &Checkpoint) -> Result<Tree, Wrong> {
    let tree = Tree::of(entries.iter().map(|e| leaf_hash(e.line.as_bytes())));
    let found = tree.size();
    if found != checkpoint.size {
        let what = format!(
            "there are {found} entries, and {} were signed",
            checkpoint.size
        );
        return Err(wrong(BundleFault::Broken, ENTRIES, None, what));
    }
    match tree.root(found) == Some(checkpoint.root) {
        true => Ok(tree),
        false => {
            let what = "the entries are not those that were signed: their root is another one";
            Err(wrong(BundleFault::Broken, ENTRIES, None, what))
        }
    }
}

/// Each entry has a proof.
fn proved<F: BundleFiles + ?Sized>(
    files: &F,
    entries: &[BundleEntry<'_>],
    checkpoint: &Checkpoint,
) -> Result<(), Wrong> {
    let bytes = needed(files, PROOFS)?;
    let all = paths(text(&bytes, PROOFS)?, PROOFS)?;
    if all.len() != entries.len() {
        let what = "there are not as many proofs as entries";
        return Err(wrong(BundleFault::Form, PROOFS, None, what));
    }
    for ((place, index, path), entry) in all.iter().zip(entries) {
        let leaf = leaf_hash(entry.line.as_bytes());
        let Checkpoint { size, root, .. } = checkpoint;
        if *index != entry.index || !is_included(&leaf, *index, *size, path, root) {
            let what = format!("entry {} is not proved by this", entry.index);
            return Err(wrong(BundleFault::Broken, PROOFS, Some(*place), what));
        }
    }
    Ok(())
}

type Path = (u64, u64, Vec<Hash>);

/// Lines of numbers and hashes: the line, the number, the hashes.
fn paths(text: &str, file: &str) -> Result<Vec<Path>, Wrong> {
    let read = |(place, line): (u64, &str)| {
        let mut words = line.split(' ');
        let first = words.next().and_then(number);
        let path = words.map(read_hash).collect::<Option<Vec<Hash>>>();
        let found = first.zip(path).map(|(first, path)| (place, first, path));
        found.ok_or_else(|| wrong(BundleFault::Form, file, Some(place), "this is no proof"))
    };
    lines(text, file)?.map(read).collect()
}

/// The messages are those that were accepted; only what was erased, or is kept in a better text, is not there.
fn messages<F: BundleFiles + ?Sized>(
    files: &F,
    entries: &[BundleEntry<'_>],
    elsewhere: &HashSet<MessageKey>,
    checked: &mut BundleReport,
    progress: &mut Progress<'_>,
) -> Result<(), Wrong> {
    // The last event of each message, by its id and digest.
    let mut later = HashMap::new();
    for entry in entries {
        let leaf = &entry.leaf;
        if matches!(leaf.kind, EventKind::Accepted | EventKind::Erased) {
            later.insert((leaf.id.as_deref(), leaf.canonical), entry.index);
        }
    }
    let mut expected = BTreeMap::new();
    let total = u64::try_from(entries.len()).unwrap_or(u64::MAX);
    for (done, entry) in (1..).zip(entries) {
        let leaf = &entry.leaf;
        if leaf.kind != EventKind::Accepted {
            continue;
        }
        let name = message_name(entry.index);
        let read = files.read(&name);
        let read = read.map_err(|why| wrong(BundleFault::Unread, &name, None, why))?;
        let Some(bytes) = read else {
            let last = later.get(&(leaf.id.as_deref(), leaf.canonical));
            let is_elsewhere = elsewhere.contains(&(leaf.id.clone(), leaf.canonical));
            if last == Some(&entry.index) && !is_elsewhere {
                let what = "it is missing, and the log does not say that it was erased";
                return Err(wrong(BundleFault::Broken, &name, None, what));
            }
            checked.erased += 1;
            continue;
        };
        if leaf.raw != Some(Digest::of(&bytes)) {
            let what = "it is not the text that was accepted";
            return Err(wrong(BundleFault::Broken, &name, None, what));
        }
        checked.messages += 1;
        expected.insert(name, leaf.canonical);
        progress(done, total);
    }
    let names = files.names();
    let mut found = names.iter().filter(|n| n.starts_with("messages/"));
    if let Some(name) = found.find(|n| !expected.contains_key(*n)) {
        let what = "no entry says that it was accepted";
        return Err(wrong(BundleFault::Form, name, None, what));
    }
    for (name, canonical) in &expected {
        same(&needed(files, name)?, *canonical, name)?;
    }
    Ok(())
}

/// The canonical form is that of the message.
fn same(bytes: &[u8], canonical: Option<Digest>, name: &str) -> Result<(), Wrong> {
    let document = Document::parse(text(bytes, name)?, Reading::Strict);
    match document.digest().ok() == canonical {
        true => Ok(()),
        false => {
            let what = "its canonical form is not the one in the log";
            Err(wrong(BundleFault::Broken, name, None, what))
        }
    }
}

/// The details are those of the leaves: one line for each leaf that has one.
fn details<F: BundleFiles + ?Sized>(
    files: &F,
    entries: &[BundleEntry<'_>],
    checked: &mut BundleReport,
) -> Result<(), Wrong> {
    let bytes = needed(files, DETAILS)?;
    let mut all = lines(text(&bytes, DETAILS)?, DETAILS)?;
    let with = entries
        .iter()
        .filter_map(|e| Some((e.index, e.leaf.detail?)));
    let mut last = 0;
    for (index, digest) in with {
        let Some((place, line)) = all.next() else {
            let what = format!("the detail of entry {index} is missing");
            return Err(wrong(BundleFault::Form, DETAILS, Some(last + 1), what));
        };
        last = place;
        let rest = line
            .split_once(' ')
            .filter(|(i, _)| number(i) == Some(index));
        match rest {
            Some((_, "-")) => checked.withheld += 1,
            Some((_, rest)) => {
                let fits = rest.split_once(' ').and_then(|(salt, detail)| {
                    Some(detail_digest(&base64::decode(salt)?, detail) == digest)
                });
                if fits != Some(true) {
                    let what = format!("this is not the detail of entry {index}");
                    return Err(wrong(BundleFault::Broken, DETAILS, Some(place), what));
                }
            }
            None => {
                let what = format!("the detail of entry {index} should be here");
                return Err(wrong(BundleFault::Form, DETAILS, Some(place), what));
            }
        }
    }
    match all.next() {
        Some((place, _)) => {
            let what = "there is no entry with this detail";
            Err(wrong(BundleFault::Form, DETAILS, Some(place), what))
        }
        None => Ok(()),
    }
}

/// The roots at the sizes of older checkpoints, each of which is proved.
fn older<F: BundleFiles + ?Sized>(
    files: &F,
    count: u64,
    new: &Checkpoint,
) -> Result<HashMap<u64, Hash>, Wrong> {
    let bytes = needed(files, CONSISTENCY)?;
    let all = paths(text(&bytes, CONSISTENCY)?, CONSISTENCY)?;
    if u64::try_from(all.len()) != Ok(count) {
        let what = format!("there are {} proofs, and should be {count}", all.len());
        return Err(wrong(BundleFault::Form, CONSISTENCY, None, what));
    }
    let mut roots = HashMap::new();
    for (place, size, path) in all {
        let Some((root, path)) = path.split_first() else {
            let what = "this is no proof";
            return Err(wrong(BundleFault::Form, CONSISTENCY, Some(place), what));
        };
        if !extends(size, root, new.size, &new.root, path) {
            let what = format!("this does not prove what the first {size} entries are");
            return Err(wrong(BundleFault::Broken, CONSISTENCY, Some(place), what));
        }
        roots.insert(size, *root);
    }
    Ok(roots)
}

/// A checkpoint from before is the beginning of the one of the bundle.
fn extended(
    held: &str,
    note: &str,
    checked: &BundleReport,
    tree: Option<&Tree>,
    roots: &HashMap<u64, Hash>,
) -> Result<(), Wrong> {
    let file = HELD;
    let old = opened(held, &checked.key)
        .map_err(|e| wrong(BundleFault::Apart, file, None, e.to_string()))?;
    let new = &checked.checkpoint;
    if old.size > new.size {
        let what = format!(
            "it has {} entries and the bundle ends at {}: the log was cut, or the bundle is older",
            old.size, new.size
        );
        return Err(wrong(BundleFault::Apart, file, None, what));
    }
    let root = match tree {
        Some(tree) => tree.root(old.size),
        None if old.size == new.size => Some(new.root),
        None => roots.get(&old.size).copied(),
    };
    let Some(root) = root else {
        let what = format!(
            "the bundle has no proof that it extends the first {} entries",
            old.size
        );
        return Err(wrong(BundleFault::Apart, file, None, what));
    };
    match root == old.root {
        true => Ok(()),
        false => {
            let fork = Fork {
                held: held.to_owned(),
                shown: note.to_owned(),
            };
            let what = format!(
                "the log was rewritten: its first {} entries are not those that were signed before",
                old.size
            );
            Err(wrong(BundleFault::Fork(Box::new(fork)), file, None, what))
        }
    }
}
