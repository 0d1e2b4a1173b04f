//! Handing a message to a relay: its attachments, the message, and the answer if that is waited for.

use crate::console::Console;
use crate::failure::Failure;
use crate::service::relay::backoff::Pause;
use crate::service::relay::error::Trouble;
use crate::service::relay::remote::Remote;
use crosstalk_envelope::meta::Digest;
use crosstalk_relay::client::Sent;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The longest time that a relay holds one request for an answer, in seconds.
const LONGEST: u64 = 60;
/// The shortest; each one is twice as long as the one before.
const SHORTEST: u64 = 1;
/// The longest pause before a relay that can't be reached is asked again for the answer, in seconds.
const LONGEST_PAUSE: u64 = 5;
/// How long to wait after a relay has ended its wait before the time: it shuts down.
const CLOSING: Duration = Duration::from_millis(500);

/// A file that a message names.
#[derive(Clone, Debug)]
pub(crate) struct Attached {
    pub(crate) path: PathBuf,
    pub(crate) digest: Digest,
}

/// What is known about a message that was handed to a relay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Handed {
    /// Whether the relay said that it has the message.
    pub(crate) is_taken: bool,
    /// Whether it waits there for a person to approve it.
    pub(crate) is_held: bool,
    /// The answer to it.
    pub(crate) answer: Option<String>,
    /// Why the relay could not be asked in the end.
    pub(crate) trouble: Option<Trouble>,
}

impl Handed {
    /// Hands a message over, without waiting for its answer: from then on it is known whether the relay has it.
    pub(crate) fn over(remote: &Remote, text: &str) -> Self {
        let mut handed = Self::default();
        match remote.receive(text) {
            Ok(sent) => handed.note(sent),
            Err(trouble) => handed.trouble = Some(trouble),
        }
        handed
    }

    fn note(&mut self, sent: Sent) {
        self.is_taken = true;
        self.trouble = None;
        match sent.receipt {
            Some(receipt) => self.is_held = receipt.is_held,
            None => self.answer = Some(sent.answer),
        }
    }

    /// Whether it is not known if the relay has the message.
    pub(crate) fn is_unclear(&self) -> bool {
        let may_have_arrived = |trouble: &Trouble| trouble.may_have_arrived();
        !self.is_taken && self.trouble.as_ref().is_some_and(may_have_arrived)
    }

    /// Waits for the answer so many seconds. A relay that can't be reached meanwhile is waited for as well: the same message
    /// again is the same question, which the relay takes once. `tell` is called between requests, soon at first: what is known
    /// about the message by then is worth knowing before the time is over.
    pub(crate) fn wait(
        &mut self,
        console: &mut Console,
        (remote, text): (&Remote, &str),
        seconds: u64,
        mut tell: impl FnMut(&mut Console) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut slice = SHORTEST;
        let end = Instant::now() + Duration::from_secs(seconds);
        let mut pause = Pause::new(LONGEST_PAUSE, "waiting for the relay to come back");
        while self.answer.is_none() {
            let begun = Instant::now();
            let left = end.saturating_duration_since(begun);
            if left.is_zero() {
                break;
            }
            let held = left.as_secs().clamp(1, slice);
            slice = (slice * 2).min(LONGEST);
            match remote.receive_and_wait(text, held) {
                Ok(sent) => {
                    pause.over(console)?;
                    let has_waited = sent.has_waited;
                    self.note(sent);
                    if !has_waited {
                        break;
                    }
                    if self.answer.is_none() && begun.elapsed() < Duration::from_secs(held) {
                        std::thread::sleep(CLOSING.min(left));
                    }
                    if self.answer.is_none() {
                        tell(console)?;
                    }
                }
                Err(trouble) => {
                    let is_temporary = trouble.is_temporary();
                    if is_temporary {
                        pause.take(console, &trouble, Some(end))?;
                    }
                    self.trouble = Some(trouble);
                    if !is_temporary {
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Uploads the files of a message. What the relay has already stays as it is.
pub(crate) fn upload(remote: &Remote, files: &[Attached]) -> Result<(), Failure> {
    for file in files {
        let shown = || file.path.to_string_lossy().into_owned();
        let bytes = std::fs::read(&file.path).map_err(|e| Failure::Io(shown(), e))?;
        if Digest::of(&bytes) != file.digest {
            return Err(Failure::Failed(format!(
                "{} was changed since the message was written: send a new message",
                shown()
            )));
        }
        remote.put_blob(bytes)?;
    }
    Ok(())
}
