//! Waiting for a condition, never for a time.
//!
//! ```
//! use crosstalk_testing::wait::{wait_for, wait_until};
//!
//! let mut looks = 0;
//! wait_until("the third look", || {
//!     looks += 1;
//!     looks == 3
//! });
//! assert_eq!(wait_for("a value", || Some(7)), 7);
//! ```

use std::thread;
use std::time::{Duration, Instant};

/// How long a test waits for anything. A busy machine does not reach this; a program that hangs does.
pub const LIMIT: Duration = Duration::from_secs(300);
/// The time between two looks.
pub const PAUSE: Duration = Duration::from_millis(10);

/// Looks again and again until `look` returns a value, and returns it.
///
/// # Panics
/// If nothing comes within [`LIMIT`].
#[track_caller]
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    wait_for_ok(|| look().ok_or_else(|| what.to_owned()))
}

/// Looks again and again until `look` succeeds. Its error says what is waited for and what is there instead.
///
/// # Panics
/// If it does not within [`LIMIT`], with the last error.
#[track_caller]
pub fn wait_for_ok<T>(mut look: impl FnMut() -> Result<T, String>) -> T {
    let end = Instant::now() + LIMIT;
    loop {
        // The clock is read before the last look: a test that was not scheduled for a while still gets that look.
        let is_last = Instant::now() >= end;
        match look() {
            Ok(found) => return found,
            Err(what) => assert!(!is_last, "waited {LIMIT:?} for {what}"),
        }
        thread::sleep(PAUSE);
    }
}

/// Looks again and again until `is_so` returns `true`.
///
/// # Panics
/// If it does not within [`LIMIT`].
#[track_caller]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    wait_for(what, || is_so().then_some(()));
}
