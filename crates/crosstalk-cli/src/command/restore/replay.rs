//! Revocations that came after a backup, replayed into what was restored from it.
//!
//! They come from a newer data folder of the same relay, or from an audit bundle of it. The restored relay gets each signed
//! REVOKE, and verifies it as if it came for the first time. A REVOKE whose text is erased, or whose signer is not known to the
//! backup, is not needed: the log and the ledger of the relay prove what was revoked, and when. What the operator did to tokens
//! and to the trust file is taken from the log and the trust file of the operator.

use crate::clock;
use crate::failure::Failure;
use crate::paragraph::count;
use crate::service::audit_bundle::BundleFolder;
use crate::service::relay::data::DataFolder;
use crate::service::relay::start::{runtime, start_core};
use crosstalk_envelope::{Document, Intent, PublicKey, Reading, Signature};
use crosstalk_protocol::audit::bundle::{self, Against, BundleFiles};
use crosstalk_protocol::audit::{
    ChainId, EventDetail, EventKind, Leaf, LogEntry, LogQuery, NoteKey,
};
use crosstalk_protocol::consent::Revocation;
use crosstalk_protocol::relay::Peer;
use crosstalk_protocol::{KeyStanding, KnownKey, Origin, Trust};
use crosstalk_relay::core::Received;
use crosstalk_store::SqliteStore;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The name in the log for tokens that a restore revokes.
const BY: &str = "restore";
const PAGE: usize = 1000;

/// How many steps at most remove the traces of erased texts from the files of the store.
const MAX_SCRUBS: usize = 100_000;

#[derive(Debug)]
pub(super) enum RevocationSource {
    /// A newer data folder of the same relay.
    Folder(DataFolder),
    /// An audit bundle of it.
    Bundle(PathBuf),
}

/// Revocations after a backup.
#[derive(Debug, Default)]
pub(super) struct Revocations {
    /// REVOKEs, by their id, the oldest first.
    messages: Vec<(String, String)>,
    /// Names of consents, and how they were revoked.
    consents: BTreeMap<String, Revocation>,
    tokens: BTreeSet<String>,
    /// Keys that the operator or their owner revoked, and the trust file of the folder has.
    keys: Vec<KnownKey>,
    /// Ids of keys that a REVOKE names.
    key_ids: BTreeSet<String>,
    /// Keys that signed REVOKEs, and that the operator pinned after the backup.
    signers: Vec<KnownKey>,
}

/// The result of a replay.
#[derive(Debug, Default)]
pub(super) struct Replayed {
    /// How many REVOKEs the relay accepted now, or had accepted before.
    pub(super) messages: usize,
    pub(super) consents: usize,
    pub(super) tokens: usize,
    pub(super) keys: usize,
    /// The ids of keys that were pinned, because they signed a REVOKE.
    pub(super) pinned: Vec<String>,
    /// REVOKEs that the relay rejected, and their senders.
    pub(super) rejected: Vec<(String, String)>,
    /// Consents and keys that are still active.
    pub(super) left: Vec<String>,
}

impl RevocationSource {
    /// Detects whether a folder is a data folder or a bundle.
    pub(super) fn at(path: &Path) -> Result<Self, Failure> {
        let folder = std::path::absolute(path).map_err(|e| Failure::at(path, e))?;
        let data = DataFolder::at(folder.clone());
        if data.store().is_file() {
            Ok(Self::Folder(data))
        } else if folder.join(bundle::CHECKPOINT).is_file() {
            Ok(Self::Bundle(folder))
        } else {
            Err(Failure::usage(format!(
                "there is neither the data of a relay nor an audit bundle in {}",
                path.display()
            ))
            .help(
                "name the newer data folder, or a folder \
                 that `crosstalk audit export --out DIR` wrote",
            ))
        }
    }

    /// The revocations that a restored folder lacks.
    pub(super) fn missing_in(&self, restored: &DataFolder) -> Result<Revocations, Failure> {
        let store = store_of(restored)?;
        let mut found = match self {
            Self::Folder(newer) => from_folder(newer, &store)?,
            Self::Bundle(path) => from_bundle(path, restored, &store)?,
        };
        let trust = restored.trust().read()?;
        found.keep_missing(&store, &trust)?;
        Ok(found)
    }
}

impl Revocations {
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
            && self.consents.is_empty()
            && self.tokens.is_empty()
            && self.keys.is_empty()
    }

    /// The revoked items in words: counts and names.
    pub(super) fn describe(&self) -> String {
        let keys = self.keys.iter().map(|k| k.id.as_str());
        let keys: BTreeSet<&str> = keys
            .chain(self.key_ids.iter().map(String::as_str))
            .collect();
        let parts = [
            (
                "consent",
                self.consents.keys().map(String::as_str).collect(),
            ),
            ("key", keys.into_iter().collect::<Vec<_>>()),
            ("token", self.tokens.iter().map(String::as_str).collect()),
        ];
        let parts: Vec<String> = parts
            .into_iter()
            .filter(|(_, names)| !names.is_empty())
            .map(|(what, names)| {
                let names_of = names.join(", ");
                format!("{} ({names_of})", count(names.len(), what))
            })
            .collect();
        match parts.is_empty() {
            true => count(self.messages.len(), "REVOKE"),
            false => parts.join(", "),
        }
    }

    /// Adds the revocation in a log entry, if there is one.
    fn add(&mut self, leaf: &Leaf, detail: Option<&EventDetail>, text: Option<String>) {
        match leaf.kind {
            EventKind::Revoked => {
                let name = |key: &str| detail.and_then(|d| d.get(key)).map(str::to_owned);
                let revocation = Revocation {
                    at: leaf.at,
                    by: name("by").unwrap_or_default(),
                    message: leaf.id.clone().unwrap_or_default(),
                    reason: None,
                };
                self.consents
                    .extend(name("consent").map(|consent| (consent, revocation)));
                self.tokens.extend(name("token"));
            }
            EventKind::Accepted => {
                let (Some(text), Some(id)) = (text, &leaf.id) else {
                    return;
                };
                let document = Document::parse(&text, Reading::Strict);
                if document.envelope().meaning() == Some(Intent::Revoke) {
                    let key = document.meta("revocation", "Key-ID");
                    self.key_ids.extend(key.map(str::to_owned));
                    self.messages.push((id.clone(), text));
                }
            }
            _ => {}
        }
    }

    /// Removes revocations that are already in effect.
    fn keep_missing(&mut self, store: &SqliteStore, trust: &Trust) -> Result<(), Failure> {
        let mut messages = Vec::new();
        for (id, text) in std::mem::take(&mut self.messages) {
            if store.record(&id)?.is_none() {
                messages.push((id, text));
            }
        }
        self.messages = messages;
        let active = active_consents(store, &self.consents)?;
        self.consents.retain(|name, _| active.contains(name));
        let active = store.tokens()?;
        let active = active.into_iter().filter(|t| t.revoked_at.is_none());
        let active: BTreeSet<String> = active.map(|t| t.name).collect();
        self.tokens.retain(|name| active.contains(name));
        let is_refused = |k: &KnownKey| {
            let known = trust.entry(&k.id, &k.key);
            known.is_some_and(|known| known.standing.is_refused())
        };
        self.keys.retain(|k| !is_refused(k));
        self.signers
            .retain(|k| trust.entry(&k.id, &k.key).is_none());
        self.key_ids
            .retain(|id| trust.of_id(id).iter().any(|k| !k.standing.is_refused()));
        Ok(())
    }

    /// Replays them into a restored folder.
    pub(super) fn replay(&self, restored: &DataFolder) -> Result<Replayed, Failure> {
        let mut replayed = Replayed::default();
        self.pin_signers(restored, &mut replayed)?;
        self.replay_messages(restored, &mut replayed)?;
        let mut store = restored.open()?;
        let now = clock::now();
        // The time, and what no REVOKE could revoke.
        for (id, revocation) in &self.consents {
            let done = store.adopt_revocation(id, revocation, now)?;
            replayed.consents += usize::from(done.is_some());
        }
        // Of erased texts, nothing stays in the files of the store.
        for _ in 0..MAX_SCRUBS {
            if self.consents.is_empty() || store.scrub()? {
                break;
            }
        }
        for name in &self.tokens {
            // A REVOKE may have revoked it a moment ago.
            store.revoke_token(name, BY, now)?;
            replayed.tokens += 1;
        }
        if !self.keys.is_empty() {
            restored.trust().update(|trust| {
                for known in &self.keys {
                    trust.mark(&known.id, &known.key, known.since, known.standing.clone());
                }
                Ok::<(), Failure>(())
            })?;
        }
        let trust = restored.trust().read()?;
        let is_refused = |id: &str| {
            let keys = trust.of_id(id);
            !keys.is_empty() && keys.iter().all(|k| k.standing.is_refused())
        };
        let ids: BTreeSet<&String> = self
            .key_ids
            .iter()
            .chain(self.keys.iter().map(|k| &k.id))
            .collect();
        replayed.keys = ids.into_iter().filter(|id| is_refused(id)).count();
        let still_counts = |id: &&String| {
            let keys = trust.of_id(id);
            !keys.is_empty() && !keys.iter().any(|k| k.standing.is_refused())
        };
        let left = self.key_ids.iter().filter(still_counts);
        replayed
            .left
            .extend(active_consents(&store, &self.consents)?);
        replayed.left.extend(left.cloned());
        Ok(replayed)
    }

    /// Pins the keys that signed REVOKEs, as the operator did after the backup. A pin that contradicts the backup is left out.
    fn pin_signers(&self, restored: &DataFolder, replayed: &mut Replayed) -> Result<(), Failure> {
        if self.signers.is_empty() {
            return Ok(());
        }
        restored.trust().update(|trust| {
            for known in &self.signers {
                if trust.pin(known.clone()).is_ok() {
                    replayed.pinned.push(known.id.clone());
                }
            }
            Ok::<(), Failure>(())
        })?;
        Ok(())
    }

    /// Hands the REVOKEs to the restored relay as a stranger: only their signatures authorize them.
    fn replay_messages(
        &self,
        restored: &DataFolder,
        replayed: &mut Replayed,
    ) -> Result<(), Failure> {
        if self.messages.is_empty() {
            return Ok(());
        }
        let (config, _) = restored.read_config(None)?;
        // Without a key: what the relay signs, it signs when it runs.
        let runtime = runtime(Some(1))?;
        let relay = runtime.block_on(start_core(restored, config, None))?;
        let filed = runtime.block_on(async {
            for (id, text) in &self.messages {
                match relay.receive(text.as_bytes(), &Peer::stranger()).await {
                    Received::Accepted { .. } => replayed.messages += 1,
                    Received::Rejected { .. } => {
                        let document = Document::parse(text, Reading::Strict);
                        let sender = document.sender().to_owned();
                        replayed.rejected.push((id.clone(), sender));
                    }
                }
            }
            let filed = relay.store().caught_up().await;
            relay.stop().await;
            filed
        });
        runtime.shutdown_background();
        Ok(filed?)
    }
}

/// The consents that are on record and active.
fn active_consents(
    store: &SqliteStore,
    names: &BTreeMap<String, Revocation>,
) -> Result<BTreeSet<String>, Failure> {
    let mut active = BTreeSet::new();
    for name in names.keys() {
        if store.grant(name)?.is_some_and(|g| g.revoked.is_none()) {
            active.insert(name.clone());
        }
    }
    Ok(active)
}

fn store_of(data: &DataFolder) -> Result<SqliteStore, Failure> {
    SqliteStore::open_existing(data.store())?
        .ok_or_else(|| Failure::failed(format!("there is no store in {}", data.folder().display())))
}

/// The revocations in the log and the trust file of a newer folder.
fn from_folder(newer: &DataFolder, restored: &SqliteStore) -> Result<Revocations, Failure> {
    let store = store_of(newer)?;
    let size = restored.log_size()?;
    if size > 0 && store.log_root(size)? != restored.log_root(size)? {
        return Err(Failure::failed(format!(
            "the relay in {} is not a newer state of the one in the backup: its log does not begin with that of the backup",
            newer.folder().display()
        )));
    }
    let mut found = Revocations::default();
    let mut from = size;
    loop {
        let entries = store.log_entries(&LogQuery {
            from,
            kinds: vec![EventKind::Revoked, EventKind::Accepted],
            limit: PAGE,
            texts: Some(clock::now()),
            ..LogQuery::default()
        })?;
        let Some(last) = entries.last() else { break };
        from = last.index.saturating_add(1);
        for entry in entries {
            let detail = entry.detail.as_ref().map(|(_, detail)| detail);
            found.add(&entry.leaf, detail, entry.text);
        }
    }
    // The ledger knows more than the log.
    for (name, revocation) in &mut found.consents {
        if let Some(known) = store.grant(name)?.and_then(|grant| grant.revoked) {
            *revocation = known;
        }
    }
    let trust = newer.trust().read()?;
    for (_, text) in &found.messages {
        let document = Document::parse(text, Reading::Strict);
        let envelope = document.envelope();
        let Some(Signature::Signed { pkid, .. }) = envelope.signature else {
            continue;
        };
        let signers = trust.of_id(pkid).into_iter();
        let is_pinned = |k: &&KnownKey| k.how == Origin::Manual && !k.standing.is_refused();
        for known in signers.filter(is_pinned) {
            if !found.signers.contains(known) {
                found.signers.push(known.clone());
            }
        }
    }
    // A REVOKE that is replayed proves more than a copy of what followed from it.
    let ids: BTreeSet<&String> = found.messages.iter().map(|(id, _)| id).collect();
    let is_replayed = |k: &KnownKey| match &k.standing {
        KeyStanding::Revoked { by: Some(by), .. } => ids.contains(by),
        _ => false,
    };
    let refused = trust.keys().iter().filter(|k| k.standing.is_refused());
    let refused: Vec<KnownKey> = refused.filter(|k| !is_replayed(k)).cloned().collect();
    found.keys = refused;
    Ok(found)
}

/// The revocations in an audit bundle, which a key of the restored relay must have signed and which must extend its
/// log.
fn from_bundle(
    path: &Path,
    restored: &DataFolder,
    store: &SqliteStore,
) -> Result<Revocations, Failure> {
    let files = BundleFolder::at(path);
    let unusable = |what: String| {
        Failure::denied(format!(
            "the bundle {} can't be used, and nothing was changed: {what}",
            path.display()
        ))
    };
    let key = files.text(bundle::KEY).map_err(unusable)?;
    let key = key.ok_or_else(|| unusable(format!("{} is missing", bundle::KEY)))?;
    let key = NoteKey::parse(key.trim_end()).map_err(|e| unusable(e.to_string()))?;
    let is_own = |public: PublicKey| NoteKey::new(key.name(), public).is_ok_and(|own| own == key);
    if !restored.public_keys()?.into_iter().any(is_own) {
        return Err(unusable(format!(
            "it is signed by a key of `{}` that is none of the keys in the backup",
            key.name()
        )));
    }
    let held: Vec<String> = store.checkpoint()?.into_iter().map(|c| c.note).collect();
    let against = Against::new(Some(&key), &held);
    let checked = bundle::check(&files, &against, &mut |_, _| {})
        .map_err(|wrong| unusable(format!("{wrong}. {}", wrong.help)))?;
    if !checked.others.is_empty() {
        return Err(unusable(
            "it has the logs of several relays, and a data folder has that of one".to_owned(),
        ));
    }
    if !checked.is_all {
        return Err(unusable(
            "it has a part of the log only. Export all of it with `crosstalk audit export --out DIR`".to_owned(),
        ));
    }
    let mut found = Revocations::default();
    for LogEntry {
        index,
        leaf,
        detail,
        ..
    } in files.entries(ChainId::FIRST).map_err(unusable)?
    {
        if leaf.kind == EventKind::Revoked && detail.is_none() {
            return Err(unusable(format!(
                "it does not say what entry {index} revoked. Export it with its details, or name the newer data folder"
            )));
        }
        let text = match leaf.kind {
            EventKind::Accepted => files.read(&bundle::message_name(index)).map_err(unusable)?,
            _ => None,
        };
        let text = text.and_then(|bytes| String::from_utf8(bytes.into_owned()).ok());
        found.add(&leaf, detail.as_ref().map(|(_, detail)| detail), text);
    }
    Ok(found)
}
