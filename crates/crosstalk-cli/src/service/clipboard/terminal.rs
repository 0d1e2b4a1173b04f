//! The clipboard of the terminal, which may be on another machine: the text goes there in an escape sequence, OSC 52.

use super::fault::ClipboardError;
use crosstalk_envelope::base64;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Most terminals take no more: with what stands around it, 100,000 bytes of base64.
const MOST: usize = 74_994;

#[cfg(unix)]
const DEVICE: &str = "/dev/tty";
#[cfg(not(unix))]
const DEVICE: &str = "CONOUT$";

/// The terminal that this command was started from. Stdout may lead elsewhere, the text has to arrive there.
#[derive(Debug)]
pub(super) struct Terminal(File);

impl Terminal {
    pub(super) fn open() -> Result<Self, ClipboardError> {
        match OpenOptions::new().read(true).write(true).open(DEVICE) {
            Ok(device) => Ok(Self(device)),
            Err(fault) => Err(ClipboardError::Missing(format!(
                "there is no terminal ({fault})"
            ))),
        }
    }

    /// Asks the terminal to take the text.
    pub(super) fn write(&mut self, text: &str) -> Result<(), ClipboardError> {
        if text.len() > MOST {
            return Err(ClipboardError::TooLong(text.len(), MOST));
        }
        let within_tmux = std::env::var_os("TMUX").is_some_and(|v| !v.is_empty());
        // tmux does not let sequences of programs through unless it is told to, but copies itself when asked.
        if within_tmux && given_to_tmux(text) {
            return Ok(());
        }
        let mut sequence = sequence(text);
        if within_tmux {
            sequence = wrapped(&sequence);
        }
        let written = self
            .0
            .write_all(sequence.as_bytes())
            .and_then(|()| self.0.flush());
        written
            .map_err(|e| ClipboardError::NotCopied(format!("the terminal accepted nothing: {e}")))
    }
}

/// Whether the terminal is somewhere else than this machine's desktop.
pub(super) fn is_far() -> bool {
    ["SSH_TTY", "SSH_CONNECTION"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|v| !v.is_empty()))
}

/// Set the clipboard `c` to this text.
fn sequence(text: &str) -> String {
    format!("\x1b]52;c;{}\x07", base64::encode(text.as_bytes()))
}

/// For the terminal around tmux: every escape twice.
fn wrapped(sequence: &str) -> String {
    format!("\x1bPtmux;{}\x1b\\", sequence.replace('\x1b', "\x1b\x1b"))
}

/// Puts the text into a buffer of tmux (3.2 and later), which sends it on to the terminal around it.
fn given_to_tmux(text: &str) -> bool {
    let child = Command::new("tmux")
        .args(["load-buffer", "-w", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else {
        return false;
    };
    let fed = child
        .stdin
        .take()
        .is_some_and(|mut pipe| pipe.write_all(text.as_bytes()).is_ok());
    child.wait().is_ok_and(|status| status.success()) && fed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_travels_in_base64() {
        assert_eq!(sequence("ä\n\x1b]"), "\x1b]52;c;w6QKG10=\x07");
        assert_eq!(
            wrapped("\x1b]52;c;\x07"),
            "\x1bPtmux;\x1b\x1b]52;c;\x07\x1b\\"
        );
        assert!(sequence(&"x".repeat(MOST)).len() <= 100_000);
        assert!(sequence(&"x".repeat(MOST + 6)).len() > 100_000);
    }
}
