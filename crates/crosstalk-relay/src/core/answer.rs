//! Senders that wait for the answer to their message.

use crosstalk_protocol::relay::port::Arrived;
use crosstalk_protocol::store::is_same_party;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// The sender of a question and those it asks, by the addresses that names stand for. If it asks none, all may answer.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) by: String,
    pub(super) of: Vec<String>,
}

impl Asked {
    /// Whether a message from an address answers it: anybody can name a message as the one that theirs
    /// answers.
    pub(super) fn is_answered_by(&self, speaker: &str, receiver: &str) -> bool {
        is_same_party(receiver, &self.by)
            && (self.of.is_empty() || self.of.iter().any(|asked| is_same_party(asked, speaker)))
    }
}

/// A sender that waits: the question, and where to send the seq of the answer.
type InLine = (Asked, oneshot::Sender<u64>);

/// Senders who wait for the answer to a message, by its id.
#[derive(Default)]
pub(super) struct Answers {
    waiting: Mutex<HashMap<String, Vec<InLine>>>,
    count: AtomicUsize,
}

impl Answers {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<InLine>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the place of the answer to a message.
    pub(super) fn wait_for(&self, id: &str, asked: Asked) -> Waiter<'_> {
        let (tell, told) = oneshot::channel();
        let mut waiting = self.lock();
        waiting
            .entry(id.to_owned())
            .or_default()
            .push((asked, tell));
        self.count.store(waiting.len(), Ordering::Release);
        Waiter {
            answers: self,
            id: id.to_owned(),
            told,
        }
    }

    /// Notifies senders of a message that may be the answer to theirs.
    pub(super) fn came(&self, answer: &Arrived<'_>) {
        let Some(id) = answer.answers else {
            return;
        };
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut waiting = self.lock();
        let Some(line) = waiting.get_mut(id) else {
            return;
        };
        let is_meant =
            |(asked, _): &mut InLine| asked.is_answered_by(answer.speaker, answer.receiver);
        for (_, tell) in line.extract_if(.., is_meant) {
            // A sender that gave up meanwhile finds it in the inbox.
            let _ = tell.send(answer.seq);
        }
        if line.is_empty() {
            waiting.remove(id);
        }
        self.count.store(waiting.len(), Ordering::Release);
    }

    /// Removes the senders that do not wait for the answer to a message any more.
    fn give_up(&self, id: &str) {
        let mut waiting = self.lock();
        if let Some(line) = waiting.get_mut(id) {
            line.retain(|(_, w)| !w.is_closed());
            if line.is_empty() {
                waiting.remove(id);
            }
        }
        self.count.store(waiting.len(), Ordering::Release);
    }
}

/// A sender that waits for the answer to a message, until it is dropped.
pub(super) struct Waiter<'a> {
    answers: &'a Answers,
    id: String,
    told: oneshot::Receiver<u64>,
}

impl Waiter<'_> {
    /// The place of the answer, when it has come.
    pub(super) async fn came(&mut self) -> Option<u64> {
        (&mut self.told).await.ok()
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.told.close();
        self.answers.give_up(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiter_that_gives_up_leaves_nothing_behind() {
        let answers = Answers::default();
        let asked = Asked {
            by: "ANN".into(),
            of: Vec::new(),
        };
        let wait = || answers.wait_for("M1", asked.clone());
        let (one, other) = (wait(), wait());
        drop(one);
        assert_eq!(answers.lock().get("M1").map(Vec::len), Some(1));
        drop(other);
        assert!(answers.lock().is_empty());
        assert_eq!(answers.count.load(Ordering::Acquire), 0);
    }
}
