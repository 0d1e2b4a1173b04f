//! The thread that hears of other relays: what they accepted and indexed is reported here as well.

use crosstalk_protocol::relay::Recipient;
use crosstalk_protocol::relay::port::{Arrived, StoreEvent};
use crosstalk_protocol::store::StoreError;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use super::intake::{INTAKE_ROW, PgIntakeRow, intake_row};
use super::session::PgSession;
use super::sql::{number, params, value};
use super::writer::PgJob;
use super::{PgShared, delivery, index};

/// A notification may be lost: so often it is looked anyway.
const LOOK: Duration = Duration::from_secs(1);
/// How many messages are read together.
const ROWS: i64 = 256;

pub(super) struct PgFollower {
    session: PgSession,
    shared: Arc<PgShared>,
    jobs: SyncSender<PgJob>,
    /// The last message that was looked at.
    last: u64,
    /// How far indexing was, and how much was left, when it was last looked at.
    indexed: (u64, u64),
}

impl PgFollower {
    pub(super) fn new(
        mut session: PgSession,
        shared: Arc<PgShared>,
        jobs: SyncSender<PgJob>,
    ) -> Result<Self, StoreError> {
        let last = session.read(|db| db.one("SELECT seq FROM turn", params![], value::<i64>))?;
        Ok(Self {
            session,
            shared,
            jobs,
            last: last.unsigned_abs(),
            indexed: (0, 0),
        })
    }

    /// Looks whenever it is woken, and from time to time, until the store is closed.
    pub(super) fn follow(mut self, woken: &Receiver<()>) {
        loop {
            let is_woken = match woken.recv_timeout(LOOK) {
                Ok(()) => true,
                Err(RecvTimeoutError::Timeout) => false,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if self.shared.is_over.load(Ordering::SeqCst) {
                return;
            }
            if self.shared.has_news.swap(false, Ordering::SeqCst) {
                let tell = format!("NOTIFY crosstalk, '{}'", self.shared.origin);
                // The others look from time to time.
                let _ = self.session.read(|db| db.batch(&tell));
            }
            if let Err(error) = self.look(is_woken) {
                self.shared.note_reached(false);
                let what = "what other relays wrote";
                let error = &error;
                self.shared.notify(StoreEvent::Delayed { what, error });
                std::thread::sleep(LOOK);
            }
        }
    }

    fn look(&mut self, is_woken: bool) -> Result<(), StoreError> {
        loop {
            let last = number(self.last);
            let sql = format!(
                "SELECT origin, speaker, {INTAKE_ROW} FROM intake WHERE seq > $1 ORDER BY seq LIMIT $2"
            );
            let rows = self.session.read(|db| {
                db.all(&sql, params![last, ROWS], |row| {
                    let routes: String = row.try_get("routes")?;
                    let origin: i64 = row.try_get("origin")?;
                    let speaker: String = row.try_get("speaker")?;
                    Ok((origin, speaker, routes, intake_row(row)?))
                })
            })?;
            self.shared.note_reached(true);
            let count = rows.len();
            for (origin, speaker, routes, row) in rows {
                self.last = row.seq.unsigned_abs();
                if origin != self.shared.origin {
                    self.report(&speaker, &routes, &row);
                }
            }
            if number(count) < ROWS {
                break;
            }
        }
        let progress = self.session.read(|db| index::indexing(db, 0))?;
        let now = (progress.through, progress.left);
        if now != self.indexed {
            self.shared.notify(StoreEvent::Indexed(progress));
            let through = progress.through;
            self.shared.notify(StoreEvent::Searchable(through));
        } else if progress.left > 0 && !is_woken {
            // Nobody has indexed it for a while: the relay that accepted it may be gone.
            let _ = self.jobs.try_send(PgJob::Index);
        }
        self.indexed = now;
        self.shared.notify(StoreEvent::Work);
        Ok(())
    }

    /// Reports a message that another relay accepted.
    fn report(&self, speaker: &str, routes: &str, row: &PgIntakeRow) {
        let arrival = &row.arrival;
        let to = delivery::read_recipients(routes, &arrival.receiver).unwrap_or_default();
        let to = to.into_iter().map(|(address, by)| Recipient {
            address: address.to_owned(),
            by,
        });
        let recipients: Vec<Recipient> = to.collect();
        self.shared.notify(StoreEvent::Arrived(Arrived {
            seq: row.seq.unsigned_abs(),
            recipients: &recipients,
            speaker,
            receiver: &arrival.receiver,
            meaning: arrival.meaning,
            answers: arrival.answered(),
            thread: arrival.thread.as_deref(),
        }));
    }
}
