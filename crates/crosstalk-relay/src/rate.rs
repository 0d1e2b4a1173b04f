//! Rate limits: one token bucket for each key.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// How many buckets are remembered. A key that is forgotten begins with a full one.
const BUCKETS: usize = 1 << 16;

/// The key that a rate limit counts by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RateKey {
    /// That of a token, by the hash of its secret.
    Token([u8; 32]),
    /// That of an address of the network; one organisation has a whole range of the new ones.
    Peer(IpAddr),
}

impl RateKey {
    /// The bucket of an address of the network.
    pub(crate) fn peer(ip: IpAddr) -> Self {
        Self::Peer(network(ip))
    }
}

/// The part of an address that one subscriber has to itself.
pub fn network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => {
            let [a, b, c, d, ..] = ip.segments();
            [a, b, c, d, 0, 0, 0, 0].into()
        }
        ip => ip,
    }
}

/// The buckets.
pub struct RateLimiter {
    buckets: Mutex<HashMap<u64, Bucket>>,
    hasher: RandomState,
}

#[derive(Clone, Copy)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Default for RateLimiter {
    fn default() -> Self {
        Self::new()
    }
}

impl RateLimiter {
    /// Full buckets.
    pub fn new() -> Self {
        Self {
            buckets: Mutex::default(),
            hasher: RandomState::new(),
        }
    }

    /// Takes one request out of a bucket that gets so many a minute.
    ///
    /// # Errors
    /// If it is empty: after how many seconds to try again.
    pub fn acquire(&self, key_of: &impl Hash, a_minute: u32, now: Instant) -> Result<(), u32> {
        if a_minute == 0 {
            return Ok(());
        }
        let (most, a_second) = (f64::from(a_minute), f64::from(a_minute) / 60.0);
        let key = self.hasher.hash_one(key_of);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= BUCKETS && !buckets.contains_key(&key) {
            let fills = |b: &Bucket| b.left + now.duration_since(b.at).as_secs_f64() * a_second;
            buckets.retain(|_, b| fills(b) < most);
            if buckets.len() >= BUCKETS {
                buckets.clear();
            }
        }
        let bucket = buckets.entry(key).or_insert(Bucket {
            left: most,
            at: now,
        });
        let since = now.saturating_duration_since(bucket.at).as_secs_f64();
        bucket.left = (bucket.left + since * a_second).min(most);
        bucket.at = now;
        if bucket.left >= 1.0 {
            bucket.left -= 1.0;
            return Ok(());
        }
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a minute at most"
        )]
        Err(((1.0 - bucket.left) / a_second).ceil().max(1.0) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_bucket_is_emptied_and_fills_again() {
        let limiter = RateLimiter::new();
        let (one, other) = (
            RateKey::Token([1; 32]),
            RateKey::peer([192, 0, 2, 1].into()),
        );
        let now = Instant::now();
        for _ in 0..6 {
            assert_eq!(limiter.acquire(&one, 6, now), Ok(()));
        }
        assert_eq!(limiter.acquire(&one, 6, now), Err(10));
        assert_eq!(limiter.acquire(&other, 6, now), Ok(()));
        let later = now + Duration::from_secs(10);
        assert_eq!(limiter.acquire(&one, 6, later), Ok(()));
        assert_eq!(limiter.acquire(&one, 6, later), Err(10));
        let much_later = now + Duration::from_secs(1000);
        let taken = (0..10).filter(|_| limiter.acquire(&one, 6, much_later).is_ok());
        assert_eq!(taken.count(), 6);
        assert_eq!(limiter.acquire(&one, 0, now), Ok(()));
    }

    #[test]
    fn the_memory_is_bounded() {
        let limiter = RateLimiter::new();
        let now = Instant::now();
        for n in 0..u32::try_from(BUCKETS + 10).unwrap() {
            let ip = std::net::Ipv4Addr::from(n);
            let _ = limiter.acquire(&RateKey::peer(ip.into()), 1, now);
        }
        assert!(limiter.buckets.lock().unwrap().len() <= BUCKETS);
    }

    #[test]
    fn a_subscriber_has_one_bucket() {
        let one = RateKey::peer("2001:db8:1:2:3::4".parse().unwrap());
        let same = RateKey::peer("2001:db8:1:2::9".parse().unwrap());
        let other = RateKey::peer("2001:db8:1:3::9".parse().unwrap());
        assert!(one == same && one != other);
        let mapped = RateKey::peer("::ffff:192.0.2.1".parse().unwrap());
        assert_eq!(mapped, RateKey::peer("192.0.2.1".parse().unwrap()));
    }
}
