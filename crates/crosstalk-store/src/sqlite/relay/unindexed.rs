//! Which messages of a conversation are not indexed, in memory: accepting a message that asks for the parties of its conversation
//! must not read everything that waits for the index.

use std::collections::hash_map::{Entry, RandomState};
use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher as _;

/// How many messages are remembered. With more, the file is asked until they are indexed.
const MAX_REMEMBERED: usize = 65_536;

/// A conversation in columns: its kind, and the name that envelopes use.
pub(super) type ConversationKey<'n> = (i64, &'n str);

/// The messages that this handle accepted and that are not indexed, by conversation.
///
/// Names are kept as hashes: the rows of the file say which conversation a message belongs to.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct UnindexedMessages {
    /// In the order of the positions: the position, and the conversations.
    rows: VecDeque<(i64, [Option<u64>; 2])>,
    seqs: HashMap<u64, VecDeque<i64>>,
    hasher: RandomState,
}

impl UnindexedMessages {
    /// Adds the message that was inserted last.
    pub(super) fn add(&mut self, seq: i64, conversations: [Option<ConversationKey<'_>>; 2]) {
        if self.rows.len() >= MAX_REMEMBERED {
            self.rows.clear();
            self.seqs.clear();
        }
        let keys = conversations.map(|known| known.map(|key| self.hasher.hash_one(key)));
        for key in keys.into_iter().flatten() {
            self.seqs.entry(key).or_default().push_back(seq);
        }
        self.rows.push_back((seq, keys));
    }

    /// Drops the messages up to a position: they are indexed.
    pub(super) fn drop_through(&mut self, through: i64) {
        while let Some((_, keys)) = self.rows.pop_front_if(|(seq, _)| *seq <= through) {
            self.remove(keys, VecDeque::pop_front);
        }
    }

    /// The position of the last one; 0 if there is none.
    pub(super) fn last(&self) -> i64 {
        self.rows.back().map_or(0, |(seq, _)| *seq)
    }

    /// Drops the messages after a position: their transaction was rolled back.
    pub(super) fn drop_after(&mut self, last: i64) {
        while let Some((_, keys)) = self.rows.pop_back_if(|(seq, _)| *seq > last) {
            self.remove(keys, VecDeque::pop_back);
        }
    }

    fn remove(&mut self, keys: [Option<u64>; 2], pop: fn(&mut VecDeque<i64>) -> Option<i64>) {
        for key in keys.into_iter().flatten() {
            if let Entry::Occupied(mut seqs) = self.seqs.entry(key) {
                pop(seqs.get_mut());
                if seqs.get().is_empty() {
                    seqs.remove();
                }
            }
        }
    }

    /// The positions that may belong to a conversation, of the messages after one position up to the last one; nothing if some of
    /// them are not remembered.
    pub(super) fn of(
        &self,
        conversation: ConversationKey<'_>,
        (through, last): (i64, i64),
    ) -> Option<Vec<i64>> {
        let up_to = |place: i64| self.rows.partition_point(|(seq, _)| *seq <= place);
        let known = up_to(last).saturating_sub(up_to(through));
        if known < usize::try_from(last.saturating_sub(through)).unwrap_or(0) {
            return None;
        }
        let seqs = self.seqs.get(&self.hasher.hash_one(conversation));
        let seqs = seqs.into_iter().flatten().copied();
        Some(seqs.filter(|seq| *seq > through).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T1: ConversationKey<'_> = (0, "T1");
    const T2: ConversationKey<'_> = (0, "T2");
    const S1: ConversationKey<'_> = (1, "T1");

    fn some() -> UnindexedMessages {
        let mut messages = UnindexedMessages::default();
        messages.add(4, [Some(T1), None]);
        messages.add(5, [Some(T2), Some(S1)]);
        messages.add(6, [Some(T1), None]);
        messages
    }

    #[test]
    fn messages_are_found_by_conversation() {
        let messages = some();
        assert_eq!(messages.of(T1, (3, 6)), Some(vec![4, 6]));
        assert_eq!(messages.of(S1, (3, 6)), Some(vec![5]));
        assert_eq!(messages.of((1, "T2"), (3, 6)), Some(vec![]));
        assert_eq!(messages.of(T1, (4, 6)), Some(vec![6]));
        assert_eq!(messages.of(T1, (6, 6)), Some(vec![]));
    }

    #[test]
    fn messages_that_are_not_known_are_noticed() {
        let messages = some();
        assert_eq!(messages.of(T1, (2, 6)), None);
        assert_eq!(messages.of(T1, (3, 7)), None);
        assert_eq!(UnindexedMessages::default().of(T1, (0, 1)), None);
        assert_eq!(UnindexedMessages::default().of(T1, (1, 1)), Some(vec![]));
    }

    #[test]
    fn indexed_messages_and_those_of_a_rollback_go() {
        let mut messages = some();
        messages.drop_after(5);
        assert_eq!(messages.of(T1, (3, 5)), Some(vec![4]));
        messages.add(6, [Some(T2), None]);
        messages.drop_through(4);
        assert_eq!(messages.of(T1, (4, 6)), Some(vec![]));
        assert_eq!(messages.of(T2, (4, 6)), Some(vec![5, 6]));
        messages.drop_through(9);
        assert_eq!((messages.rows.len(), messages.seqs.len()), (0, 0));
        assert_eq!(messages.last(), 0);
    }

    #[test]
    fn memory_is_bounded() {
        let mut messages = UnindexedMessages::default();
        let many = i64::try_from(MAX_REMEMBERED).unwrap();
        for seq in 1..=many + 1 {
            messages.add(seq, [Some(T1), None]);
        }
        assert_eq!(messages.rows.len(), 1);
        assert_eq!(messages.of(T1, (0, many + 1)), None);
        assert_eq!(messages.of(T1, (many, many + 1)), Some(vec![many + 1]));
    }
}
