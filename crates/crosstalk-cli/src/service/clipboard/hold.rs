//! Keeping a text on the clipboard after the command has ended.
//!
//! On X11 and Wayland the clipboard is a promise: the program that copied hands the text out when somebody pastes. So
//! a process of the same binary stays behind, in a session of its own and with nothing of the terminal open, and ends
//! when something else is copied or the display goes away. macOS and Windows keep the text themselves.

pub(crate) use platform::hold;
pub(super) use platform::put;

/// The hidden command that holds.
pub(crate) const COMMAND: &str = "clipboard-hold";

#[cfg(all(unix, not(target_os = "macos")))]
mod platform {
    use super::COMMAND;
    use crate::service::clipboard::fault::ClipboardError;
    use arboard::SetExtLinux as _;
    use std::io::{Read as _, Write as _};
    use std::process::{Child, Command, Stdio};
    use std::thread;
    use std::time::Duration;

    /// The variables that the holder needs to reach the display. It stays for days: nothing else of a
    /// session, passphrases least of all, stays with it.
    const ENVIRONMENT: [&str; 6] = [
        "DISPLAY",
        "XAUTHORITY",
        "WAYLAND_DISPLAY",
        "XDG_RUNTIME_DIR",
        "HOME",
        "LD_LIBRARY_PATH",
    ];
    /// How often the holder looks whether the display is still there.
    const LOOK: Duration = Duration::from_secs(2);

    /// A holder that was started; unless it is left alone, it ends with this value.
    #[derive(Debug)]
    pub(in crate::service::clipboard) struct Holder(Option<Child>);

    /// Starts a holder and hands it the text.
    pub(in crate::service::clipboard) fn put(
        _: &mut arboard::Clipboard,
        text: &str,
    ) -> Result<Holder, ClipboardError> {
        let failed = |what: &str, fault: std::io::Error| {
            ClipboardError::NotCopied(format!("{what}: {fault}"))
        };
        let own = std::env::current_exe()
            .map_err(|e| failed("this program can't find its own file", e))?;
        let mut child = Command::new(own)
            .arg(COMMAND)
            .env_clear()
            .envs(
                ENVIRONMENT
                    .iter()
                    .filter_map(|n| Some((n, std::env::var_os(n)?))),
            )
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| failed("no process could be started to hold it", e))?;
        let pipe = child.stdin.take();
        let mut held = Holder(Some(child));
        if let Some(mut pipe) = pipe
            && let Err(fault) = pipe.write_all(text.as_bytes())
        {
            // Its own words say more than a broken pipe.
            held.wait()?;
            return Err(failed("the process that holds it did not accept it", fault));
        }
        Ok(held)
    }

    impl Holder {
        /// Whether the holder has lost the clipboard; an error if it never had it.
        pub(in crate::service::clipboard) fn has_ended(&mut self) -> Result<bool, ClipboardError> {
            match self.0.as_mut().map(Child::try_wait) {
                Some(Ok(Some(_))) => self.wait().map(|()| true),
                Some(_) => Ok(false),
                None => Ok(true),
            }
        }

        fn wait(&mut self) -> Result<(), ClipboardError> {
            let Some(mut child) = self.0.take() else {
                return Ok(());
            };
            let mut words = String::new();
            if let Some(talk) = child.stderr.take() {
                let _ = talk.take(4096).read_to_string(&mut words);
            }
            match child.wait() {
                Ok(status) if status.success() => Ok(()),
                _ => {
                    let words = words.trim().trim_start_matches("error: ");
                    let why = format!("the process that holds it failed: {words}");
                    Err(ClipboardError::NotCopied(why))
                }
            }
        }

        /// Lets it go on alone.
        pub(in crate::service::clipboard) fn leave(mut self) {
            if let Some(mut child) = self.0.take() {
                // A command that goes on, and copies again, buries it.
                thread::spawn(move || child.wait());
            }
        }
    }

    impl Drop for Holder {
        fn drop(&mut self) {
            if let Some(mut child) = self.0.take() {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }

    /// Holds a text until something else is copied.
    pub(crate) fn hold(text: String) -> Result<(), ClipboardError> {
        // Away from the terminal and its signals. Where that is not possible, it is a session of our own already.
        let _ = rustix::process::setsid();
        let mut clipboard = arboard::Clipboard::new()?;
        thread::spawn(end_with_the_display);
        Ok(clipboard.set().wait().text(text)?)
    }

    /// Looks for a display that goes away, which wakes no waiting copy.
    fn end_with_the_display() {
        let Ok(mut clipboard) = arboard::Clipboard::new() else {
            return;
        };
        let mut faults = 0;
        while faults < 2 {
            thread::sleep(LOOK);
            // Costs a question to the display: what is held is text, and no HTML.
            match clipboard.get().html() {
                Err(arboard::Error::Unknown { .. }) => faults += 1,
                _ => faults = 0,
            }
        }
        std::process::exit(0);
    }
}

#[cfg(not(all(unix, not(target_os = "macos"))))]
mod platform {
    use crate::service::clipboard::fault::ClipboardError;

    /// Nothing to hold: the system keeps the text.
    #[derive(Debug)]
    pub(in crate::service::clipboard) struct KeptBySystem;

    /// Hands the text to the system.
    pub(in crate::service::clipboard) fn put(
        clipboard: &mut arboard::Clipboard,
        text: &str,
    ) -> Result<KeptBySystem, ClipboardError> {
        clipboard.set_text(text)?;
        Ok(KeptBySystem)
    }

    impl KeptBySystem {
        pub(in crate::service::clipboard) fn has_ended(&mut self) -> Result<bool, ClipboardError> {
            Ok(false)
        }

        pub(in crate::service::clipboard) fn leave(self) {}
    }

    /// Hands the text to the system.
    pub(crate) fn hold(text: String) -> Result<(), ClipboardError> {
        Ok(arboard::Clipboard::new()?.set_text(text)?)
    }
}
