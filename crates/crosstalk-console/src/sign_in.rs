//! Sign-ins: who is signed in in which browser. A browser has a random secret in a cookie; the relay keeps its hash, in memory, so
//! that a restart signs everybody out.

use crate::host::ConsoleCredential;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;

/// After how long without a request of the person a sign-in ends.
const IDLE_MILLIS: i64 = 12 * 60 * 60 * 1000;
/// After how long every sign-in ends.
const LONGEST_MILLIS: i64 = 14 * 24 * 60 * 60 * 1000;
/// How many sign-ins there are at most; the one that was idle for the longest time ends first.
const MOST: usize = 10_000;
/// How many of these one credential has.
const MOST_OF_ONE: usize = 20;
/// How many pages of a sign-in are told about changes at the same time.
const MAX_STREAMS: usize = 8;

/// The sign-ins of a relay.
#[derive(Default)]
pub(crate) struct SignIns(Mutex<HashMap<[u8; 32], SignIn>>);

/// One browser in which somebody is signed in.
#[derive(Clone, Debug)]
pub(crate) struct SignIn {
    pub(crate) credential: ConsoleCredential,
    /// The token that forms of this sign-in have to send along.
    pub(crate) csrf: String,
    /// The address whose inbox the person looks at, where the credential names none.
    pub(crate) address: Option<String>,
    /// For the streams of its pages.
    pub(crate) streams: Arc<Semaphore>,
    since: Timestamp,
    used: Timestamp,
}

impl SignIn {
    fn counts(&self, now: Timestamp) -> bool {
        let age = |at: Timestamp| now.as_millis().saturating_sub(at.as_millis());
        age(self.used) < IDLE_MILLIS && age(self.since) < LONGEST_MILLIS
    }
}

/// A secret of 256 random bits, as text.
pub(crate) fn random_secret() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

fn hash(secret: &str) -> [u8; 32] {
    Digest::of(secret.as_bytes()).0
}

/// Ends the sign-in that was idle for the longest time, of those that are meant.
fn remove_oldest(all: &mut HashMap<[u8; 32], SignIn>, is_meant: impl Fn(&SignIn) -> bool) {
    let meant = all.iter().filter(|(_, s)| is_meant(s));
    let oldest = meant.min_by_key(|(_, s)| s.used).map(|(key, _)| *key);
    oldest.and_then(|key| all.remove(&key));
}

impl SignIns {
    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], SignIn>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Signs somebody in. The secret is a new one, whatever the browser had before.
    pub(crate) fn begin(
        &self,
        credential: ConsoleCredential,
        now: Timestamp,
    ) -> Result<String, getrandom::Error> {
        let (secret, csrf) = (random_secret()?, random_secret()?);
        let mut all = self.lock();
        all.retain(|_, s| s.counts(now));
        let own = |s: &SignIn| s.credential == credential;
        if all.values().filter(|s| own(s)).count() >= MOST_OF_ONE {
            remove_oldest(&mut all, own);
        } else if all.len() >= MOST {
            remove_oldest(&mut all, |_| true);
        }
        let sign_in = SignIn {
            credential,
            csrf,
            address: None,
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
            since: now,
            used: now,
        };
        all.insert(hash(&secret), sign_in);
        Ok(secret)
    }

    /// The sign-in of a secret. A request of the person keeps it from ending; one that a page makes by itself does not.
    pub(crate) fn find(&self, secret: &str, now: Timestamp, is_used: bool) -> Option<SignIn> {
        let mut all = self.lock();
        let key = hash(secret);
        let sign_in = all.get_mut(&key)?;
        if !sign_in.counts(now) {
            all.remove(&key);
            return None;
        }
        if is_used {
            sign_in.used = now;
        }
        Some(sign_in.clone())
    }

    /// Remembers whose inbox is looked at.
    pub(crate) fn set_address(&self, secret: &str, address: Option<String>) {
        if let Some(sign_in) = self.lock().get_mut(&hash(secret)) {
            sign_in.address = address;
        }
    }

    /// Signs this browser out.
    pub(crate) fn end(&self, secret: &str) {
        self.lock().remove(&hash(secret));
    }

    /// Signs a credential out in every browser.
    pub(crate) fn end_all(&self, credential: ConsoleCredential) {
        self.lock().retain(|_, s| s.credential != credential);
    }

    /// In how many browsers a credential is signed in.
    pub(crate) fn count(&self, credential: ConsoleCredential, now: Timestamp) -> usize {
        let all = self.lock();
        let own = all.values().filter(|s| s.credential == credential);
        own.filter(|s| s.counts(now)).count()
    }
}

/// Whether two secrets are the same. Their hashes are compared, so that the time tells nothing about them.
pub(crate) fn is_same_secret(one: &str, other: &str) -> bool {
    hash(one) == hash(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn a_sign_in_ends_when_nobody_uses_it() {
        let all = SignIns::default();
        let secret = all.begin(ConsoleCredential::Local, at(0)).unwrap();
        assert!(all.find(&secret, at(11 * HOUR), true).is_some());
        assert!(all.find(&secret, at(22 * HOUR), false).is_some());
        // The page looked by itself, which does not count.
        assert!(all.find(&secret, at(24 * HOUR), false).is_none());
        assert!(all.find(&secret, at(1), true).is_none(), "it came back");
    }

    #[test]
    fn no_sign_in_lasts_for_ever() {
        let all = SignIns::default();
        let secret = all.begin(ConsoleCredential::Local, at(0)).unwrap();
        for hours in (6..14 * 24).step_by(6) {
            assert!(
                all.find(&secret, at(hours * HOUR), true).is_some(),
                "{hours}"
            );
        }
        assert!(all.find(&secret, at(14 * 24 * HOUR), true).is_none());
    }

    #[test]
    fn a_credential_has_a_few_sign_ins_and_ends_its_own_ones_only() {
        let all = SignIns::default();
        let (ann, bob) = (
            ConsoleCredential::Token([1; 32]),
            ConsoleCredential::Token([2; 32]),
        );
        let of_bob = all.begin(bob, at(0)).unwrap();
        let secrets: Vec<String> = (1..=25).map(|n| all.begin(ann, at(n)).unwrap()).collect();
        assert_eq!((all.count(ann, at(30)), all.count(bob, at(30))), (20, 1));
        assert!(all.find(&of_bob, at(30), true).is_some());
        let left = secrets.iter().map(|s| all.find(s, at(30), true).is_some());
        assert_eq!(
            left.collect::<Vec<_>>(),
            [vec![false; 5], vec![true; 20]].concat()
        );
    }

    #[test]
    fn signing_out_everywhere_ends_the_sign_ins_of_this_credential_only() {
        let (all, now) = (SignIns::default(), at(0));
        let (ann, bob) = (
            ConsoleCredential::Token([1; 32]),
            ConsoleCredential::Token([2; 32]),
        );
        let secrets = [ann, ann, bob].map(|c| all.begin(c, now).unwrap());
        assert_eq!((all.count(ann, now), all.count(bob, now)), (2, 1));
        all.end_all(ann);
        let left = secrets.map(|s| all.find(&s, now, true).is_some());
        assert_eq!(left, [false, false, true]);
        assert!(
            !all.lock()
                .keys()
                .any(|key| URL_SAFE_NO_PAD.encode(key) == "secret")
        );
    }
}
