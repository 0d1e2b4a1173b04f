//! Connection permits: limits how many connections are open, in all and from one network. Each of them needs a file descriptor.

use super::Server;
use crate::rate::network;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The permits of a server.
#[derive(Clone)]
pub(super) struct ConnectionPermits(Arc<PermitLimits>);

struct PermitLimits {
    most: usize,
    most_of_one: usize,
    taken: Mutex<OpenConnections>,
    left: Notify,
}

#[derive(Default)]
struct OpenConnections {
    all: usize,
    of: HashMap<IpAddr, usize>,
}

/// The right of one connection to be open, free again when it is dropped.
pub(super) struct ConnectionPermit {
    permits: ConnectionPermits,
    server: Arc<Server>,
    of: IpAddr,
}

impl ConnectionPermits {
    pub(super) fn new(most: usize, most_of_one: usize) -> Self {
        Self(Arc::new(PermitLimits {
            most,
            most_of_one,
            taken: Mutex::default(),
            left: Notify::new(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A permit for a connection from an address, unless the limits are reached.
    pub(super) fn acquire(&self, from: IpAddr, server: &Arc<Server>) -> Option<ConnectionPermit> {
        let of = network(from);
        let mut taken = self.lock();
        let own = taken.of.get(&of).copied().unwrap_or(0);
        if taken.all >= self.0.most || own >= self.0.most_of_one {
            return None;
        }
        taken.all += 1;
        taken.of.insert(of, own + 1);
        let open = &server.relay.metrics().connections;
        open.fetch_add(1, Ordering::Relaxed);
        Some(ConnectionPermit {
            permits: self.clone(),
            server: Arc::clone(server),
            of,
        })
    }

    /// Waits until every connection is closed.
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

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let open = &self.server.relay.metrics().connections;
        open.fetch_sub(1, Ordering::Relaxed);
        let mut taken = self.permits.lock();
        taken.all = taken.all.saturating_sub(1);
        if let Some(own) = taken.of.get_mut(&self.of) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                taken.of.remove(&self.of);
            }
        }
        if taken.all == 0 {
            self.permits.0.left.notify_waiters();
        }
    }
}

/// Raises the limit of this process as far as it may. How many there may be; nothing if there is no limit.
pub(super) fn raise_descriptor_limit() -> Option<usize> {
    let limit = getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let now = match setrlimit(Resource::Nofile, wanted) {
        Ok(()) => wanted,
        Err(error) => {
            tracing::warn!(reason = %error, "the limit of open files stays as it is");
            limit
        }
    };
    now.current.and_then(|n| usize::try_from(n).ok())
}

/// How many connections fit: files, attachments that come in and the ways to others need some descriptors, too.
pub(super) fn max_connections(wanted: usize, descriptors: Option<usize>) -> usize {
    let most = descriptors.map_or(wanted, |n| n - n / 4);
    if most < wanted {
        tracing::warn!(
            wanted,
            most,
            "fewer connections than configured: too few files may be open"
        );
    }
    wanted.min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_as_far_as_it_may() {
        let maximum = getrlimit(Resource::Nofile).maximum;
        let current = maximum.map_or(Some(4096), |n| Some(n - 1));
        setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
        let most = raise_descriptor_limit();
        assert_eq!(getrlimit(Resource::Nofile).current, maximum);
        assert_eq!(most, maximum.map(|n| n.try_into().unwrap()));
    }

    #[test]
    fn there_are_never_more_connections_than_descriptors() {
        assert_eq!(max_connections(4096, None), 4096);
        assert_eq!(max_connections(4096, Some(20_000)), 4096);
        assert_eq!(max_connections(4096, Some(1024)), 768);
    }
}
