//! Runs the binary.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What a run left behind.
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// The binary, without the environment's wishes about colors.
pub(crate) fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crosstalk"));
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command
}

/// Runs it with some input on stdin.
pub(crate) fn run(arguments: &[&str], stdin: impl AsRef<[u8]>) -> Ended {
    let mut child = binary()
        .args(arguments)
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
