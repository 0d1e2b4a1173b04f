//! Xvfb: a real X server without a screen, with its own clipboard.
//!
//! ```
//! use crosstalk_testing::xvfb::Xvfb;
//!
//! let server = Xvfb::start();
//! server.copy("UTF8_STRING", b"hello");
//! assert_eq!(server.pasted(), b"hello");
//! ```

use crate::program::Program;
use crate::wait::{LIMIT, wait_until};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{self, Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;

const XVFB: Program = Program::new("Xvfb", "xvfb");
const XCLIP: Program = Program::new("xclip", "xclip");

/// A running server.
#[derive(Debug)]
pub struct Xvfb {
    process: Child,
    display: String,
}

impl Xvfb {
    /// Starts a server on a free display, and waits until it takes clients.
    ///
    /// # Panics
    /// It is not installed or does not come up.
    pub fn start() -> Self {
        Self::start_on(None)
    }

    /// Starts a server on a display of this name, which nobody else has.
    fn start_on(display: Option<&str>) -> Self {
        let mut command = XVFB.command();
        command.args(display);
        // It writes the number of the display when it is ready. It would start anew whenever its last client leaves.
        command
            .args(["-displayfd", "1", "-screen", "0", "320x240x24"])
            .args(["-nolisten", "tcp", "-noreset"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = XVFB.spawn(&mut command);
        let mut number = BufReader::new(process.stdout.take().expect("a pipe"));
        let (send, receive) = channel();
        thread::spawn(move || {
            let mut line = String::new();
            let _ = number.read_line(&mut line);
            let _ = send.send(line.trim().to_owned());
        });
        let number = receive.recv_timeout(LIMIT).unwrap_or_default();
        let server = Self {
            process,
            display: format!(":{number}"),
        };
        assert!(!number.is_empty(), "Xvfb did not come up within {LIMIT:?}");
        server
    }

    /// Starts a server on a display that stays free while the server is restarted: others take the lowest number.
    ///
    /// # Panics
    /// It is not installed or does not come up.
    pub fn start_apart() -> Self {
        Self::start_on(Some(&format!(":{}", 10_000 + process::id() % 40_000)))
    }

    /// Ends the server, with everything on its clipboard, and starts another one on the same display.
    ///
    /// # Panics
    /// It does not come up.
    pub fn restart(&mut self) {
        let display = self.display.clone();
        self.end();
        *self = Self::start_on(Some(&display));
    }

    fn end(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// The value of `DISPLAY`.
    pub fn display(&self) -> &str {
        &self.display
    }

    /// Copies, as the program xclip; it stays until something else is copied. A program that pastes from now on gets it.
    ///
    /// # Panics
    /// xclip is not installed or fails.
    pub fn copy(&self, target: &str, bytes: &[u8]) {
        let before = self.pasted_as(target);
        let mut command = self.xclip(&["-i", "-t", target]);
        // It goes to the background by itself, and keeps what it has open.
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut process = XCLIP.spawn(&mut command);
        let mut pipe = process.stdin.take().expect("a pipe");
        pipe.write_all(bytes).expect("xclip reads");
        drop(pipe);
        assert!(process.wait().is_ok_and(|s| s.success()), "xclip failed");
        // It may go to the background before the display has heard of it. The program under test may copy something else
        // as soon as it sees this text.
        wait_until("xclip to own the clipboard", || {
            let now = self.pasted_as(target);
            now == bytes || (!now.is_empty() && now != before)
        });
    }

    /// The text on the clipboard, as the program xclip reads it, if there is any.
    ///
    /// # Panics
    /// xclip is not installed.
    pub fn pasted(&self) -> Vec<u8> {
        self.pasted_as("UTF8_STRING")
    }

    fn pasted_as(&self, target: &str) -> Vec<u8> {
        let mut command = self.xclip(&["-o", "-t", target]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let output = XCLIP.spawn(&mut command).wait_with_output();
        output.expect("xclip ends").stdout
    }

    fn xclip(&self, arguments: &[&str]) -> Command {
        let mut command = XCLIP.command();
        command
            .args(["-display", &self.display, "-selection", "clipboard"])
            .args(arguments);
        command
    }
}

impl Drop for Xvfb {
    fn drop(&mut self) {
        self.end();
    }
}
