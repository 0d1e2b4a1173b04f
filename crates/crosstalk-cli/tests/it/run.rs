//! Runs the binary.

use crosstalk_envelope::Timestamp;
use crosstalk_testing::folder::Folder;
use crosstalk_testing::wait::wait_until;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

/// What a run left behind.
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// The binary, without the environment's wishes about colors, editors and width, and without anybody's keys, settings,
/// clipboard and desktop.
pub(crate) fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crosstalk"));
    let own = std::env::vars_os().map(|(name, _)| name);
    let own = own.filter(|n| n.to_string_lossy().starts_with("CROSSTALK_"));
    let wishes = [
        "NO_COLOR",
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "SSH_TTY",
        "SSH_CONNECTION",
        "VISUAL",
        "EDITOR",
        "COLUMNS",
        "LINES",
    ];
    for name in own.chain(wishes.map(Into::into)) {
        command.env_remove(name);
    }
    let nobody = format!("crosstalk-nobody-{}", std::process::id());
    command.env("CROSSTALK_HOME", std::env::temp_dir().join(nobody));
    command
}

/// A home of one's own for a test, empty at first. It goes away with the value.
pub(crate) struct Home(Folder);

impl Home {
    pub(crate) fn new(name: &str) -> Self {
        Self(Folder::new(name))
    }

    /// Where a file of the test may be.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs the binary in this home, with more of an environment.
    pub(crate) fn run_with(
        &self,
        environment: &[(&str, &str)],
        arguments: &[&str],
        stdin: impl AsRef<[u8]>,
    ) -> Ended {
        let mut command = binary();
        command.env("CROSSTALK_HOME", self.path("crosstalk"));
        command.envs(environment.iter().copied());
        ended(command.args(arguments), stdin)
    }

    /// Runs the binary in this home.
    pub(crate) fn run(&self, arguments: &[&str], stdin: impl AsRef<[u8]>) -> Ended {
        self.run_with(&[], arguments, stdin)
    }
}

/// Runs it with some input on stdin.
pub(crate) fn run(arguments: &[&str], stdin: impl AsRef<[u8]>) -> Ended {
    ended(binary().args(arguments), stdin)
}

fn ended(command: &mut Command, stdin: impl AsRef<[u8]>) -> Ended {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let input = stdin.as_ref().to_vec();
    // A command that stops reading closes the pipe: not a fault of the test.
    let writer = std::thread::spawn(move || drop(pipe.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let code = output.status.code().unwrap();
    assert_ne!(code, 101, "it panicked: {output:?}");
    Ended {
        code,
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Does something with an end that comes soon, and waits for that end. An attempt that fails because the end came first
/// gets more time.
pub(crate) fn with_end_ahead<T>(mut attempt: impl FnMut(&str) -> Option<T>) -> T {
    let now = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        i64::try_from(since.as_millis()).unwrap()
    };
    for seconds in [2, 8, 32, 128] {
        // The program counts whole seconds.
        let end = (now() / 1000 + seconds) * 1000;
        let done = attempt(&Timestamp::from_millis(end).to_string());
        assert!(done.is_some() || now() >= end, "it failed before its end");
        if let Some(done) = done {
            wait_until("the end", || now() > end);
            return done;
        }
    }
    panic!("each end came first");
}

/// A folder of this crate.
pub(crate) fn folder(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Every file below `tests/cmd`, transcripts aside.
pub(crate) fn fixtures() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder("tests/cmd")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_none_or(|e| e != "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
