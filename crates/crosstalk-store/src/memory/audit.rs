//! The audit log, and the ledger of consents.

use super::{MemoryRelay, State};
use crosstalk_envelope::Timestamp;
use crosstalk_protocol::audit::{
    ChainId, Event, EventDetail, EventKind, Hash, Leaf, LogEntry, LogQuery, SignedCheckpoint, Tree,
    leaf_hash,
};
use crosstalk_protocol::consent::Grant;
use crosstalk_protocol::relay::port::{
    AuditLog, ConsentLedger, GrantQuery, JoinedChain, LogChain, LogHead, LogProof, LogRoot,
    LogWriter, NewLogEntry, StoreFuture,
};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// An entry of the log.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) leaf: Leaf,
    detail: Option<(Vec<u8>, EventDetail)>,
    /// The message whose text it took.
    takes: Option<u64>,
}

pub(super) fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

impl AuditLog for MemoryRelay {
    fn join(&self, writer: LogWriter) -> StoreFuture<'_, JoinedChain> {
        self.with(|_| self.chain.join(writer))
    }

    fn chains(&self) -> StoreFuture<'_, Vec<LogChain>> {
        self.with(|_| self.chain.all())
    }

    fn log_head(&self, chain: ChainId) -> StoreFuture<'_, LogHead> {
        self.with(move |state| match chain {
            ChainId::FIRST => LogHead {
                size: number(state.log.len()),
                checkpoint: state.checkpoint.clone(),
            },
            _ => LogHead::default(),
        })
    }

    fn log_entries(&self, query: LogQuery) -> StoreFuture<'_, Vec<LogEntry>> {
        self.with(move |state| match query.chain {
            ChainId::FIRST => state.entries(&query),
            _ => Vec::new(),
        })
    }

    fn log_proof(&self, chain: ChainId, proof: LogProof) -> StoreFuture<'_, Option<Vec<Hash>>> {
        self.with(move |state| {
            if chain != ChainId::FIRST {
                return None;
            }
            let (tree, size) = (state.tree(), number(state.log.len()));
            match proof {
                LogProof::Inclusion { index, size: of } => {
                    (index < of && of <= size).then(|| tree.inclusion(index, of))
                }
                LogProof::Consistency { from, to } => {
                    (from <= to && to <= size).then(|| tree.consistency(from, to))
                }
            }
        })
    }

    fn hash_log(&self) -> StoreFuture<'_, LogRoot> {
        self.with(|state| {
            let size = number(state.log.len());
            let root = state.tree().root(size).unwrap_or_default();
            LogRoot { size, root }
        })
    }

    fn keep_checkpoint(&self, signed: SignedCheckpoint) -> StoreFuture<'_, SignedCheckpoint> {
        self.with(move |state| {
            let later = state.checkpoint.take().filter(|c| c.size >= signed.size);
            state.checkpoint.insert(later.unwrap_or(signed)).clone()
        })
    }

    fn log(&self, entries: Vec<NewLogEntry>) -> StoreFuture<'_, ()> {
        self.with(move |state| {
            for entry in &entries {
                state.append(&entry.event(), None);
            }
        })
    }
}

impl State {
    pub(super) fn append(&mut self, event: &Event<'_>, takes: Option<u64>) {
        // Nobody outside sees the log of a store in memory: the place is salt enough.
        let salt = number(self.log.len()).to_be_bytes().to_vec();
        self.log.push(Entry {
            leaf: event.leaf(&salt),
            detail: event.detail.clone().map(|detail| (salt, detail)),
            takes,
        });
    }

    fn tree(&self) -> Tree {
        let leaves = self.log.iter().map(|e| e.leaf.to_string());
        Tree::of(leaves.map(|leaf| leaf_hash(leaf.as_bytes())))
    }

    fn entries(&self, query: &LogQuery) -> Vec<LogEntry> {
        let of_id = query.id.as_ref().map(|id| {
            let seqs = self.seq_of(id).into_iter().collect();
            (seqs, BTreeSet::from([id.as_str()]))
        });
        let of_thread = query.thread.as_ref().map(|thread| {
            let messages = self.messages.iter().filter(|(_, m)| m.thread == *thread);
            messages.map(|(seq, m)| (*seq, m.id())).unzip()
        });
        let wanted: [Option<(BTreeSet<u64>, BTreeSet<&str>)>; 2] = [of_id, of_thread];
        let is_about =
            |place: u64, entry: &Entry, (seqs, ids): &(BTreeSet<u64>, BTreeSet<&str>)| {
                let mut messages = seqs.iter().filter_map(|seq| self.messages.get(seq));
                let id = entry.leaf.id.as_deref();
                let is_later = entry.leaf.kind != EventKind::Accepted;
                messages.any(|m| m.entries.contains(&place))
                    || (is_later && id.is_some_and(|id| ids.contains(id)))
            };
        let is_wanted = |(place, entry): &(u64, &Entry)| {
            let leaf = &entry.leaf;
            *place >= query.from
                && query.to.is_none_or(|to| *place < to)
                && query.since.is_none_or(|since| leaf.at >= since)
                && query.until.is_none_or(|until| leaf.at <= until)
                && (query.kinds.is_empty() || query.kinds.contains(&leaf.kind))
                && wanted.iter().flatten().all(|w| is_about(*place, entry, w))
        };
        let mut found: Vec<(u64, &Entry)> = (0..).zip(&self.log).filter(is_wanted).collect();
        if query.newest {
            let first = found.len().saturating_sub(query.limit);
            found.drain(..first);
        }
        found.truncate(query.limit);
        let entry = |(place, entry)| self.entry_at(place, entry, query.texts);
        found.into_iter().map(entry).collect()
    }

    fn entry_at(&self, index: u64, entry: &Entry, texts: Option<Timestamp>) -> LogEntry {
        let is_accepted = entry.leaf.kind == EventKind::Accepted;
        let takes = entry.takes.filter(|_| is_accepted);
        let message = takes.and_then(|seq| self.indexed.get(&seq));
        let record = takes.and_then(|seq| {
            let is_last = self.messages.get(&seq)?.entries.last() == Some(&index);
            self.record(seq).filter(|_| is_last)
        });
        let record = record.filter(|r| texts.is_some_and(|now| !r.is_expired(now)));
        LogEntry {
            index,
            leaf: entry.leaf.clone(),
            detail: entry.detail.clone(),
            text: record.map(|r| r.received.unwrap_or(r.text)),
            parties: message.map(|m| (m.sender.clone(), m.receiver.clone())),
        }
    }

    /// The consents with these names, and those that they go back to.
    pub(super) fn named_grants<'n>(&self, names: impl Iterator<Item = &'n str>) -> Vec<Grant> {
        let mut found = Vec::new();
        for grant in names.filter_map(|name| self.grants.get(name)) {
            let originals = grant.originals.iter();
            found.extend(originals.filter_map(|id| self.grants.get(id)).cloned());
            found.push(grant.clone());
        }
        found
    }
}

impl ConsentLedger for MemoryRelay {
    fn grants(&self, query: GrantQuery) -> StoreFuture<'_, Vec<Grant>> {
        self.with(move |state| match query {
            GrantQuery::Named(names) => state.named_grants(names.iter().map(String::as_str)),
            GrantQuery::Filtered(filter) => {
                let grants = state.grants.values().filter(|g| filter.fits(g));
                let mut found: Vec<Grant> = grants.cloned().collect();
                found.sort_by_key(|g| Reverse(g.since));
                if filter.limit > 0 {
                    found.truncate(filter.limit);
                }
                found
            }
        })
    }

    fn under(&self, consent: &str) -> StoreFuture<'_, Vec<(String, bool)>> {
        let consent = consent.to_owned();
        self.with(move |state| {
            let messages = state.messages.values();
            let under = messages.filter(|m| m.under.contains(&consent));
            under.map(|m| (m.id().to_owned(), !m.is_gone())).collect()
        })
    }
}
