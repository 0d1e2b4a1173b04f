//! Pauses before a relay is asked again that can't be reached: each twice as long as the one before.

use crate::console::{Console, DIM, styled};
use crate::failure::Failure;
use crate::service::relay::error::Trouble;
use std::time::{Duration, Instant};

/// The pauses of somebody who asks a relay again and again.
#[derive(Debug)]
pub(crate) struct Pause {
    /// The longest pause, in seconds.
    longest: u64,
    /// What is said behind the trouble.
    sentence: &'static str,
    seconds: u64,
    said: Option<Trouble>,
}

impl Pause {
    /// Pauses of at most so many seconds; `sentence` says what happens after one.
    pub(crate) const fn new(longest: u64, sentence: &'static str) -> Self {
        Self {
            longest,
            sentence,
            seconds: 0,
            said: None,
        }
    }

    /// Says what the trouble is, once, and sleeps; not past `end`.
    pub(crate) fn take(
        &mut self,
        console: &mut Console,
        trouble: &Trouble,
        end: Option<Instant>,
    ) -> Result<(), Failure> {
        self.seconds = (self.seconds * 2).clamp(1, self.longest);
        if self.said.as_ref() != Some(trouble) {
            console.note(&format!("{trouble}; {}", self.sentence))?;
            console.flush()?;
            self.said = Some(trouble.clone());
        }
        let asked = trouble.retry_after().unwrap_or(0).min(3600);
        let seconds = self.seconds.max(asked);
        // Not all who wait come back at the same moment.
        let part = random() >> 24;
        let pause = Duration::from_secs(seconds) / 2 + Duration::from_secs(seconds) * part / 512;
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        std::thread::sleep(left.map_or(pause, |left| left.min(pause)));
        Ok(())
    }

    /// Says that the trouble is over.
    pub(crate) fn over(&mut self, console: &mut Console) -> Result<(), Failure> {
        if self.said.take().is_some() {
            console.talk(&styled(DIM, "The relay is there again.\n"))?;
        }
        self.seconds = 0;
        Ok(())
    }
}

/// Anything from 0 to `u32::MAX`.
pub(crate) fn random() -> u32 {
    getrandom::u32().unwrap_or(u32::MAX / 2)
}
