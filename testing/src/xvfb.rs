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
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// How long the server may take to come up.
const START: Duration = Duration::from_secs(30);

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
        let mut command = XVFB.command();
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
        let number = receive.recv_timeout(START).unwrap_or_default();
        let server = Self {
            process,
            display: format!(":{number}"),
        };
        assert!(!number.is_empty(), "Xvfb did not come up within {START:?}");
        server
    }

    /// The value of `DISPLAY`.
    pub fn display(&self) -> &str {
        &self.display
    }

    /// Copies, as the program xclip; it stays until something else is copied.
    ///
    /// # Panics
    /// xclip is not installed or fails.
    pub fn copy(&self, target: &str, bytes: &[u8]) {
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
    }

    /// What is on the clipboard, as the program xclip gets it; nothing if there is no text.
    ///
    /// # Panics
    /// xclip is not installed.
    pub fn pasted(&self) -> Vec<u8> {
        let mut command = self.xclip(&["-o", "-t", "UTF8_STRING"]);
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
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
