//! Checking a bundle: the signature, the tree, the messages, the details, the older checkpoints, in this order. The first
//! thing that is wrong ends it.

use super::{
    BundleFault, BundleFiles, CHECKPOINT, CONSISTENCY, DETAILS, ENTRIES, HEADER, KEY, PROOFS,
    Wrong, message_name,
};
use crate::audit::event::{EventKind, Leaf, detail_digest};
use crate::audit::note::{Checkpoint, Fork, Note, NoteError, NoteKey};
use crate::audit::proof::read_hash;
use crate::audit::tree::{Hash, Tree, extends, is_included, leaf_hash};
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::{Document, Reading, base64};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

/// What a bundle is checked against.
#[derive(Clone, Debug, Default)]
pub struct Against<'a> {
    /// The key of the log, from somewhere else than the bundle.
    pub key: Option<&'a NoteKey>,
    /// Checkpoints that were kept from before.
    pub held: &'a [String],
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
}

/// Told how far it is: so many steps of so many.
pub type Progress<'p> = dyn FnMut(u64, u64) + 'p;

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

/// Checks a bundle.
pub fn check<F: BundleFiles + ?Sized>(
    files: &F,
    against: &Against<'_>,
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
    messages(files, &entries, &mut checked, progress)?;
    details(files, &entries, &mut checked)?;
    let roots = match scope {
        BundleScope::All => HashMap::new(),
        BundleScope::Some(count) => older(files, count, &checked.checkpoint)?,
    };
    for held in against.held {
        extended(held, note, &checked, tree.as_ref(), &roots)?;
        checked.extended += 1;
    }
    Ok(checked)
}

/// The key to check with: the one from elsewhere, and the one of the bundle must be the same.
fn key<F: BundleFiles + ?Sized>(files: &F, against: &Against<'_>) -> Result<NoteKey, Wrong> {
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
            if last == Some(&entry.index) {
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
    let file = "the checkpoint that you hold";
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
