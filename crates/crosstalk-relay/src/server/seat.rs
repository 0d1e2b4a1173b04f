//! How many connections there may be at once, in all and from one place.

use super::Site;
use crate::rate::network;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The seats of a server.
#[derive(Clone)]
pub(super) struct Seats(Arc<Inner>);

struct Inner {
    most: usize,
    most_of_one: usize,
    taken: Mutex<Taken>,
    left: Notify,
}

#[derive(Default)]
struct Taken {
    all: usize,
    of: HashMap<IpAddr, usize>,
}

/// The place of one connection, free again when it is dropped.
pub(super) struct Seat {
    seats: Seats,
    site: Arc<Site>,
    of: IpAddr,
}

impl Seats {
    pub(super) fn new(most: usize, most_of_one: usize) -> Self {
        Self(Arc::new(Inner {
            most,
            most_of_one,
            taken: Mutex::default(),
            left: Notify::new(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A seat for a connection from an address, if there is one.
    pub(super) fn take(&self, from: IpAddr, site: &Arc<Site>) -> Option<Seat> {
        let of = network(from);
        let mut taken = self.lock();
        let own = taken.of.get(&of).copied().unwrap_or(0);
        if taken.all >= self.0.most || own >= self.0.most_of_one {
            return None;
        }
        taken.all += 1;
        taken.of.insert(of, own + 1);
        let open = &site.relay.metrics().connections;
        open.fetch_add(1, Ordering::Relaxed);
        Some(Seat {
            seats: self.clone(),
            site: Arc::clone(site),
            of,
        })
    }

    /// Waits until nobody sits any more.
    pub(super) async fn all_free(&self) {
        loop {
            let left = self.0.left.notified();
            tokio::pin!(left);
            left.as_mut().enable();
            if self.lock().all == 0 {
                return;
            }
            left.await;
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let open = &self.site.relay.metrics().connections;
        open.fetch_sub(1, Ordering::Relaxed);
        let mut taken = self.seats.lock();
        taken.all = taken.all.saturating_sub(1);
        if let Some(own) = taken.of.get_mut(&self.of) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                taken.of.remove(&self.of);
            }
        }
        if taken.all == 0 {
            self.seats.0.left.notify_waiters();
        }
    }
}
