//! Input without an end, output without a reader, bytes that are no text.

use crate::run::{binary, run};
use crosstalk_cli::exit;
use std::io::{Read as _, Write as _};
use std::process::Stdio;

/// More than this a command never takes.
#[cfg(target_os = "linux")]
const MEMORY_KB: usize = 400 * 1024;

/// The most memory that a running process has had, in KB.
#[cfg(target_os = "linux")]
fn peak(pid: u32) -> Option<usize> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Feeds a gigabyte of one line to a command; what it said, and its peak memory as far as it was seen.
fn flood(arguments: &[&str], line: &[u8]) -> (i32, String, usize) {
    let mut child = binary()
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let chunk = line.repeat((1 << 16) / line.len() + 1);
    let mut sent = 0_usize;
    #[cfg_attr(
        not(target_os = "linux"),
        allow(unused_mut, reason = "seen on Linux only")
    )]
    let mut most = 0;
    while sent < 1 << 30 && pipe.write_all(&chunk).is_ok() {
        sent += chunk.len();
        #[cfg(target_os = "linux")]
        if sent % (1 << 22) < chunk.len() {
            most = peak(child.id()).unwrap_or(0).max(most);
        }
    }
    drop(pipe);
    #[cfg(target_os = "linux")]
    while let Some(now) = peak(child.id()) {
        most = now.max(most);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let mut err = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .unwrap();
    let code = child.wait().unwrap().code().unwrap();
    assert!(sent < 1 << 28, "{sent} bytes were read");
    (code, err, most)
}

#[test]
fn endless_input_ends_in_too_large_within_bounded_memory() {
    for arguments in [
        &["parse"][..],
        &["parse", "--strict"],
        &["parse", "--json"],
        &["lint"],
        &["fmt"],
        &["doctor"],
        &["canonical"],
        &["migrate"],
        &["build"],
        &["sign"],
        &["verify"],
        &["trust", "import", "-"],
    ] {
        for line in [&b"["[..], b"\n", b"meta:\n"] {
            let (code, err, most) = flood(arguments, line);
            assert_eq!(code, i32::from(exit::TOO_LARGE), "{arguments:?}: {err}");
            let silent =
                arguments.contains(&"--json") || ["lint", "doctor"].contains(&arguments[0]);
            assert!(silent || err.contains("67108864"), "{arguments:?}: {err}");
            #[cfg(target_os = "linux")]
            assert!(
                (10_000..MEMORY_KB).contains(&most),
                "{arguments:?}: {most} KB"
            );
            let _ = most;
        }
    }
}

#[test]
fn a_closed_pipe_is_quiet() {
    let mut child = binary()
        .args(["id", "new", "--count", "1000000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut [0; 27]).unwrap();
    drop(out);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn invalid_utf8_is_rejected_with_its_place() {
    for command in [
        "parse",
        "lint",
        "fmt",
        "doctor",
        "canonical",
        "migrate",
        "build",
        "sign",
        "verify",
    ] {
        let ended = run(&[command], b"one\ntwo \xe9t\xe9\n");
        assert_eq!(ended.code, i32::from(exit::FORMAT), "{command}");
        let all = ended.err + &ended.out;
        let place = if command == "doctor" {
            "Line 2:"
        } else {
            "stdin:2:5"
        };
        assert!(
            all.contains(place) && all.contains("UTF-8"),
            "{command}: {all}"
        );
    }
}

#[test]
fn colors_come_only_when_they_are_asked_for() {
    let envelope =
        "[[A=>B v1]]\nuser: u\nsession: s\ncontext: c\nintent: NOTE\nbody: |\n  x\n[[END]]";
    for command in ["parse", "lint", "doctor", "verify"] {
        assert!(
            !run(&[command], envelope).out.contains('\u{1b}'),
            "{command}"
        );
        assert!(
            run(&[command, "--color", "always"], envelope)
                .out
                .contains('\u{1b}'),
            "{command}"
        );
        assert!(
            !run(&[command, "--color", "never"], envelope)
                .out
                .contains('\u{1b}'),
            "{command}"
        );
    }
    let forced = |name: &str, value: &str| {
        let mut command = binary();
        let command = command
            .args(["explain", "ENV-001"])
            .env("CLICOLOR_FORCE", "1");
        let output = command.env(name, value).output().unwrap();
        output.stdout.contains(&0x1b)
    };
    assert!(forced("OTHER", "1"));
    assert!(!forced("NO_COLOR", "1"));
}

#[test]
fn only_stray_ends_are_no_success() {
    let ended = run(&["parse"], "[[END]]\n".repeat(5000));
    assert_eq!(ended.code, i32::from(exit::FORMAT));
}

#[test]
fn ids_are_made_in_order() {
    for flag in [&[][..], &["--uuid"]] {
        let ended = run(&[&["id", "new", "--count", "200"], flag].concat(), "");
        let ids: Vec<&str> = ended.out.lines().collect();
        assert_eq!(ids.len(), 200);
        assert!(ids.is_sorted_by(|a, b| a < b));
    }
}
