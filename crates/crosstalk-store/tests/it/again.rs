//! Tests that run a test of this binary again, in a process of its own: with another environment, or several at once.

use std::process::{Child, Command, Stdio};

const CHILD: &str = "CROSSTALK_STORE_TEST";

/// Whether this process was begun by a test, with a home of its own. Else whoever runs every test that is ignored would
/// write to the home of the user.
pub(crate) fn is_begun() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Begins a test that is ignored otherwise, with variables of the environment set or, where there is no value, unset.
pub(crate) fn begin(test: &str, umask: Option<&str>, variables: &[(&str, Option<&str>)]) -> Child {
    let program = std::env::current_exe().unwrap();
    let mut command = match umask {
        Some(umask) => {
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("umask {umask} && exec \"$@\""), "sh"]);
            shell.arg(program);
            shell
        }
        None => Command::new(program),
    };
    command.env(CHILD, "1");
    command.args(["--exact", test, "--ignored", "--nocapture"]);
    for (name, value) in variables {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for it, and shows what it said if it failed or never ran.
pub(crate) fn finish(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{complained}");
    assert!(said.contains("1 passed"), "{said}\n{complained}");
    said
}
