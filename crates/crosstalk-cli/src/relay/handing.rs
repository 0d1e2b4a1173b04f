//! Handing a message to a relay: its attachments, the message, and the answer if that is waited for.

use crate::failure::Failure;
use crate::relay::remote::Remote;
use crate::relay::trouble::Trouble;
use crosstalk_envelope::meta::Digest;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The longest time that a relay holds one request for an answer, in seconds.
const LONGEST: u64 = 60;

/// A file that a message names.
#[derive(Clone, Debug)]
pub(crate) struct Attached {
    pub(crate) path: PathBuf,
    pub(crate) digest: Digest,
}

/// What a relay answered to a message that it took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Handed {
    /// It is there.
    Taken,
    /// It is there, and waits for a person.
    Held,
    /// It is there, and this is the answer to it.
    Answered(String),
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

/// Hands over a message, and waits for the answer so many seconds.
pub(crate) fn hand(remote: &Remote, text: &str, wait: Option<u64>) -> Result<Handed, Trouble> {
    let end = wait.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    loop {
        let left = end.map(|end| end.saturating_duration_since(Instant::now()).as_secs());
        let held = left.map(|left| left.clamp(1, LONGEST));
        let sent = remote.receive(text, held)?;
        let Some(receipt) = sent.receipt else {
            return Ok(Handed::Answered(sent.answer));
        };
        // The same message again is the same question: the relay takes it once, and waits on.
        if left.is_none_or(|left| left <= LONGEST) {
            return Ok(match receipt.is_held {
                true => Handed::Held,
                false => Handed::Taken,
            });
        }
    }
}
