//! The clipboard of the desktop.

use super::fault::ClipboardError;
use crosstalk_envelope::limit;
use std::borrow::Cow;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long the program that copied may take to hand its text out.
const READING: Duration = Duration::from_secs(10);
/// How long a text may take until it is on the clipboard.
const WRITING: Duration = Duration::from_secs(10);
/// The least that a look may take.
const LAST_LOOK: Duration = Duration::from_millis(500);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(10);
/// A large text comes in pieces, and arboard takes a pause of this length between two of them for the end: whatever
/// failed after such a time is asked for again.
const CUT: Duration = Duration::from_millis(10);
/// For how long it is asked for again.
const PATIENCE: Duration = Duration::from_secs(8);
/// For how long an empty text is asked for again.
const EMPTY: Duration = Duration::from_secs(2);
/// How often a refusal that came at once is asked about again.
const ATTEMPTS: usize = 5;

/// A connection to it.
pub(super) struct System(arboard::Clipboard);

impl std::fmt::Debug for System {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("System")
    }
}

impl System {
    pub(super) fn open() -> Result<Self, ClipboardError> {
        #[cfg(all(unix, not(target_os = "macos")))]
        if !is_display(&std::env::var("DISPLAY").unwrap_or_default()) {
            return Err(ClipboardError::Missing(UNREACHABLE.into()));
        }
        match arboard::Clipboard::new() {
            Ok(clipboard) => Ok(Self(clipboard)),
            Err(fault) => Err(ClipboardError::Missing(why_missing(&fault))),
        }
    }

    /// The text on it.
    pub(super) fn read(&mut self) -> Result<String, ClipboardError> {
        within(READING, ask).and_then(checked)
    }

    /// Puts a text on it, and looks whether it is there.
    pub(super) fn write(&mut self, text: &str) -> Result<(), ClipboardError> {
        let text = with_line_ends_of_the_system(text);
        let mut held = super::hold::put(&mut self.0, &text)?;
        let end = Instant::now() + WRITING;
        loop {
            // A holder that has ended has lost the clipboard to somebody: look once more, that may be a clipboard
            // manager which keeps the text.
            let ended = held.has_ended()?;
            let left = end.saturating_duration_since(Instant::now());
            let why = match within(left.max(LAST_LOOK), look) {
                Ok(there) if there == text => {
                    held.leave();
                    return Ok(());
                }
                Ok(_) if ended => "another program copied something else".into(),
                // The previous owner may still have it, or may have been asked.
                _ if !left.is_zero() => {
                    thread::sleep(PAUSE);
                    continue;
                }
                Ok(_) => "something else stays on it".into(),
                Err(_) => format!("it can't be read back within {WRITING:?}"),
            };
            return Err(ClipboardError::NotCopied(why));
        }
    }
}

/// A text that may be read on.
fn checked(text: String) -> Result<String, ClipboardError> {
    match text.len() {
        0 => Err(ClipboardError::Empty),
        length if length > limit::PASTE_BYTES => Err(ClipboardError::TooLarge),
        _ => Ok(text),
    }
}

/// One look at the text.
fn look() -> Result<String, ClipboardError> {
    Ok(arboard::Clipboard::new()?.get_text()?)
}

/// Asks for the text, with a connection of its own; more than once where an answer may have been cut short.
fn ask() -> Result<String, ClipboardError> {
    let mut clipboard = arboard::Clipboard::new()?;
    let begun = Instant::now();
    let end = begun + PATIENCE;
    let mut refusals = 0;
    loop {
        let asked = Instant::now();
        let fault = match clipboard.get_text() {
            // The announcement of pieces can be taken for the last one: no text is believed after a while only.
            Ok(text) if text.is_empty() && asked < begun + EMPTY => {
                thread::sleep(PAUSE);
                continue;
            }
            Ok(text) => return Ok(text),
            Err(fault) => fault,
        };
        let was_cut = asked.elapsed() >= CUT;
        refusals += usize::from(!was_cut);
        if refusals == ATTEMPTS || asked >= end {
            return match clipboard.get().file_list() {
                Ok(_) => Err(ClipboardError::Files),
                Err(_) if was_cut => Err(ClipboardError::NoAnswer),
                Err(_) => Err(fault.into()),
            };
        }
        thread::sleep(PAUSE);
    }
}

/// Does something that may wait for another program, and abandons it in time. Abandoned work ends with the
/// process.
fn within<T: Send + 'static>(
    time: Duration,
    work: impl FnOnce() -> Result<T, ClipboardError> + Send + 'static,
) -> Result<T, ClipboardError> {
    let (send, receive) = channel();
    thread::spawn(move || drop(send.send(work())));
    match receive.recv_timeout(time) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => Err(ClipboardError::NoAnswer),
        Err(RecvTimeoutError::Disconnected) => {
            Err(ClipboardError::Other("its connection broke".into()))
        }
    }
}

/// Windows programs expect CRLF; what was pasted is read with either.
fn with_line_ends_of_the_system(text: &str) -> Cow<'_, str> {
    if cfg!(windows) {
        crlf(text).into()
    } else {
        text.into()
    }
}

fn crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

#[cfg(all(unix, not(target_os = "macos")))]
const UNREACHABLE: &str = "the display that DISPLAY names can't be reached";

/// A display beyond the last port has no address; the part that connects would stumble over it.
#[cfg(all(unix, not(target_os = "macos")))]
fn is_display(name: &str) -> bool {
    let number = name.rsplit_once(':').map_or("", |(_, number)| number);
    let number = number.split('.').next().unwrap_or_default();
    number.parse::<u64>().map_or(true, |n| n <= 59_535)
}

#[cfg(all(unix, not(target_os = "macos")))]
fn why_missing(fault: &arboard::Error) -> String {
    let is_set = |name| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    match (is_set("WAYLAND_DISPLAY"), is_set("DISPLAY")) {
        (false, false) => "neither DISPLAY nor WAYLAND_DISPLAY is set".into(),
        (true, false) => {
            "the Wayland desktop can't be reached or does not let programs use its clipboard (no data-control \
             protocol), and DISPLAY is not set"
                .into()
        }
        (_, true) => match fault {
            arboard::Error::Unknown { .. } => UNREACHABLE.into(),
            fault => fault.to_string(),
        },
    }
}

#[cfg(not(all(unix, not(target_os = "macos"))))]
fn why_missing(fault: &arboard::Error) -> String {
    fault.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_with_crlf_once() {
        assert_eq!(crlf("a\nb\r\nc"), "a\r\nb\r\nc");
        let kept = with_line_ends_of_the_system("a\nb");
        assert_eq!(kept, if cfg!(windows) { "a\r\nb" } else { "a\nb" });
    }

    #[test]
    fn a_text_is_neither_empty_nor_larger_than_a_paste() {
        assert_eq!(checked(String::new()), Err(ClipboardError::Empty));
        let most = "x".repeat(limit::PASTE_BYTES);
        assert_eq!(checked(most.clone() + "x"), Err(ClipboardError::TooLarge));
        assert!(checked(most).is_ok());
    }

    #[cfg(all(unix, not(target_os = "macos")))]
    #[test]
    fn displays_have_numbers_that_fit_a_port() {
        for name in [
            "",
            ":0",
            ":59535.1",
            "localhost:10.0",
            "/tmp/launch/x:0",
            "::",
        ] {
            assert!(is_display(name), "{name}");
        }
        for name in [":59536", "host:65535.0", ":4294967296"] {
            assert!(!is_display(name), "{name}");
        }
    }

    #[test]
    fn unresponsive_clipboard_owner_is_not_waited_for() {
        let (stop, stopped) = channel::<()>();
        let waits = move || {
            let _ = stopped.recv();
            Ok(())
        };
        let fault = within(Duration::from_millis(1), waits).unwrap_err();
        assert_eq!(fault, ClipboardError::NoAnswer);
        drop(stop);
        assert_eq!(within(Duration::from_secs(60), || Ok(7)), Ok(7));
    }
}
