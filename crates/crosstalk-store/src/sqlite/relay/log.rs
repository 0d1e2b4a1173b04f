//! The log of the store, moved into its file beside the one who writes, so that no message has to wait for it.

use rusqlite::Connection;
use rusqlite::hooks::Wal;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;

use crate::sqlite::connect;
use crate::sqlite::fault::SqlResult;

/// From how many pages on the log is moved.
const LONG: i32 = 4000;
/// After how many more it is tried again, if readers have kept the log from beginning anew.
const MORE: i32 = 1000;

/// Moves the log on a thread of its own, until it is dropped.
#[derive(Debug)]
pub(super) struct WalMover {
    tell: Sender<Order>,
    thread: Option<JoinHandle<()>>,
}

enum Order {
    Move,
    Stop,
}

/// What the one who writes knows about the log, after each transaction.
struct WalWatch {
    tell: Sender<Order>,
    moved: Receiver<()>,
    is_moving: bool,
    pages: i32,
    long: i32,
}

impl WalMover {
    /// Moves the log of the handle that writes from now on.
    pub(super) fn start(db: &mut Connection, path: &Path) -> SqlResult<Self> {
        let (own, _) = connect(path)?;
        let (tell, orders) = channel();
        let (done, moved) = channel();
        let thread = std::thread::spawn(move || {
            while let Ok(Order::Move) = orders.recv() {
                // If it fails, the one who writes finds the log as long as before, and has it moved again.
                let _ = passive(&own);
                if done.send(()).is_err() {
                    break;
                }
            }
        });
        let mut watch = WalWatch {
            tell: tell.clone(),
            moved,
            is_moving: false,
            pages: 0,
            long: LONG,
        };
        db.wal_hook(Some(move |log: &mut Wal, pages| {
            watch.look(log, pages);
            // An error would be taken for one of the transaction, which is committed.
            Ok(())
        }))?;
        Ok(Self {
            tell,
            thread: Some(thread),
        })
    }
}

impl Drop for WalMover {
    fn drop(&mut self) {
        // If it has ended, there is nothing to stop.
        let _ = self.tell.send(Order::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl WalWatch {
    fn look(&mut self, log: &mut Wal, pages: i32) {
        if self.is_moving {
            if self.moved.try_recv() == Err(TryRecvError::Empty) {
                return;
            }
            self.finish(log, pages);
        } else if pages < self.pages {
            // It has begun anew.
            self.long = LONG;
        } else if pages >= self.long {
            self.is_moving = self.tell.send(Order::Move).is_ok();
            if !self.is_moving {
                self.finish(log, pages);
            }
        }
        self.pages = pages;
    }

    /// Moves the rest, so that the log can begin anew with the next transaction.
    fn finish(&mut self, log: &mut Wal, pages: i32) {
        let _ = log.checkpoint();
        self.is_moving = false;
        self.long = pages.saturating_add(MORE);
    }
}

fn passive(db: &Connection) -> SqlResult<()> {
    db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}
