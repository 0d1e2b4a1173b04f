//! tmux: a real terminal of a known size, whose keys a test presses and whose screen it reads.
//!
//! ```
//! use crosstalk_testing::tmux::Tmux;
//!
//! let terminal = Tmux::start(40, 10);
//! terminal.type_text("echo $((6 * 7))");
//! terminal.send_keys(&["Enter"]);
//! terminal.wait_for("42");
//! ```

use crate::folder::Folder;
use crate::program::{Program, output};
use crate::wait::wait_for_ok;
use std::fmt::Write as _;
use std::process::{Command, Stdio};

const TMUX: Program = Program::new("tmux", "tmux");

/// A server with one window, where a shell waits.
#[derive(Debug)]
pub struct Tmux {
    folder: Folder,
}

impl Tmux {
    /// Starts a shell on a terminal with so many columns and rows. Its prompt is `$ `.
    ///
    /// # Panics
    /// tmux is not installed or does not start.
    pub fn start(columns: u16, rows: u16) -> Self {
        Self::start_with(columns, rows, &[])
    }

    /// Starts a shell with more of an environment. Displays, editors and connections of the person who runs the tests are not
    /// in it.
    ///
    /// # Panics
    /// tmux is not installed or does not start.
    pub fn start_with(columns: u16, rows: u16, environment: &[(&str, &str)]) -> Self {
        let folder = Folder::new("tmux");
        // No status line: the size is exact. Escape is a key, at once.
        folder.write(
            "tmux.conf",
            "set -g status off\nset -g default-terminal screen-256color\nset -g escape-time 0\n\
             set -g set-clipboard on\nset -g history-limit 10000\nset -g default-shell /bin/sh\nset -g default-command 'PS1=\"$ \" exec sh'\n",
        );
        let terminal = Self { folder };
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let mut command = terminal.command(&["new-session", "-d", "-x", &columns, "-y", &rows]);
        for name in [
            "TMUX",
            "ENV",
            "COLUMNS",
            "LINES",
            "DISPLAY",
            "WAYLAND_DISPLAY",
            "SSH_TTY",
            "SSH_CONNECTION",
            "VISUAL",
            "EDITOR",
            "NO_COLOR",
        ] {
            command.env_remove(name);
        }
        command
            .env("LC_ALL", "C.UTF-8")
            .envs(environment.iter().copied())
            // The server lives on, and would keep pipes open.
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let started = TMUX.spawn(&mut command).wait();
        assert!(started.is_ok_and(|s| s.success()), "tmux did not start");
        terminal.wait_for("$");
        terminal
    }

    /// Presses keys, by the names that tmux has for them: `Enter`, `Escape`, `C-c`, `Up`, `PageDown`.
    ///
    /// # Panics
    /// The terminal is gone.
    pub fn send_keys(&self, keys: &[&str]) {
        self.ask(&[&["send-keys"], keys].concat());
    }

    /// Types a text, character by character; a line feed is the key Enter.
    ///
    /// # Panics
    /// The terminal is gone.
    pub fn type_text(&self, text: &str) {
        for (number, line) in text.split('\n').enumerate() {
            if number > 0 {
                self.send_keys(&["Enter"]);
            }
            // A semicolon at the end would separate commands of tmux.
            match line.strip_suffix(';') {
                _ if line.is_empty() => {}
                Some(before) => {
                    self.ask(&["send-keys", "-l", "--", &format!("{before}\\;")]);
                }
                None => {
                    self.ask(&["send-keys", "-l", "--", line]);
                }
            }
        }
    }

    /// The rows of the screen as they are now, without trailing spaces.
    ///
    /// # Panics
    /// The terminal is gone.
    pub fn screen(&self) -> String {
        self.ask(&["capture-pane", "-p"])
    }

    /// Waits until a text is on the screen, and gives the screen.
    ///
    /// # Panics
    /// It does not appear in time; the screen is told.
    pub fn wait_for(&self, text: &str) -> String {
        self.wait_until(text, |screen| screen.contains(text))
    }

    /// Waits until the screen is as it should be, and gives it.
    ///
    /// # Panics
    /// It does not become so in time; the screen is told.
    pub fn wait_until(&self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        wait_for_ok(|| {
            let screen = self.screen();
            if is_there(&screen) {
                return Ok(screen);
            }
            let mut shown = String::new();
            for row in screen.lines() {
                let _ = writeln!(shown, "  |{row}");
            }
            Err(format!("{what:?}; the screen is\n{shown}"))
        })
    }

    /// Gives the terminal another size.
    ///
    /// # Panics
    /// The terminal is gone.
    pub fn resize(&self, columns: u16, rows: u16) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.ask(&["resize-window", "-x", &columns, "-y", &rows]);
    }

    /// The text that was copied to the terminal's clipboard last, if any.
    ///
    /// # Panics
    /// tmux can't be run.
    pub fn clipboard(&self) -> String {
        let mut command = self.command(&["show-buffer"]);
        let output = command.stdin(Stdio::null()).output().expect("tmux runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn ask(&self, words: &[&str]) -> String {
        output(self.command(words).stdin(Stdio::null()), TMUX)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = TMUX.command();
        command
            .arg("-u")
            .arg("-S")
            .arg(self.folder.path().join("socket"))
            .arg("-f")
            .arg(self.folder.path().join("tmux.conf"))
            .args(words)
            .env_remove("TMUX");
        command
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]).output();
    }
}
