//! A trace of system calls: the message is in the log of the store, and the log is on disk, before the first byte of a
//! 2xx goes out.

use super::load::letter;
use super::{relay_on_disk, skip};
use crosstalk_testing::folder::Folder;
use crosstalk_testing::relay::Setup;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Messages of a run.
const MESSAGES: usize = 25;
/// What is traced.
const CALLS: &str = "trace=fsync,fdatasync,pwrite64,pwritev,write,writev,sendto,sendmsg,read,readv,recvfrom,recvmsg";

/// What a run has found.
#[derive(Debug, Default, PartialEq, Eq)]
struct Trace {
    /// Messages that were answered for when they were on disk.
    sound: usize,
    /// What is wrong with the others.
    wrong: Vec<String>,
}

/// How far the message is that is being sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    Asked,
    Written,
    Synced,
}

/// Goes through a trace. Messages were sent one after the other.
fn read(trace: &str, ids: &[String]) -> Trace {
    let mut found = Trace::default();
    let mut stage = Stage::Idle;
    let mut number = 0;
    // Calls that others have interrupted, by thread: what they are, and how far the message was when they began.
    let mut begun: BTreeMap<&str, (&str, Stage)> = BTreeMap::new();
    for line in trace.lines() {
        let Some(id) = ids.get(number) else { break };
        let Some((thread, call)) = line.split_once(' ') else {
            continue;
        };
        let call = call.trim_start();
        let (call, since, end) = match call.strip_prefix("<... ") {
            Some(rest) => match begun.remove(thread) {
                Some((call, since)) => (call, since, rest),
                None => continue,
            },
            None => (call, stage, call),
        };
        let is_new = std::ptr::eq(call, end);
        let is_done = !end.ends_with("<unfinished ...>");
        if !is_done {
            begun.insert(thread, (call, since));
        }
        let is_log = call.contains("-wal>");
        let both = |what: &str| call.contains(what) || end.contains(what);
        // What is read is there at the end of the call, what is written at its beginning.
        if is_done && both("\"POST /crosstalk/receive") {
            stage = Stage::Asked;
        } else if is_new && is_log && call.starts_with("pwrite") && call.contains(id.as_str()) {
            // Filing writes it again, later.
            if stage == Stage::Asked {
                stage = Stage::Written;
            }
        } else if is_done && is_log && (call.starts_with("fsync") || call.starts_with("fdatasync"))
        {
            // It began after the message was written, and it worked.
            if since == Stage::Written && stage == Stage::Written && end.ends_with("= 0") {
                stage = Stage::Synced;
            }
        } else if is_new && call.contains("\"HTTP/1.1 2") {
            match stage {
                Stage::Idle => continue,
                Stage::Asked => found
                    .wrong
                    .push(format!("{id} was answered for before it was written")),
                Stage::Written => found
                    .wrong
                    .push(format!("{id} was answered for before it was synced")),
                Stage::Synced => found.sound += 1,
            }
            number += 1;
            stage = Stage::Idle;
        }
    }
    for id in ids.iter().skip(number) {
        found
            .wrong
            .push(format!("{id} was not answered in the trace"));
    }
    found
}

/// Whether processes can be traced here.
fn can_trace() -> bool {
    let tried = Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match tried {
        Ok(status) => status.success(),
        Err(error) => panic!(
            "strace is not installed: `cargo xtask test` installs it (Debian package strace): {error}"
        ),
    }
}

/// Sends messages one by one to a relay that is traced.
fn run(setup: Setup) -> Trace {
    let folder = Folder::new("trace");
    let file = folder.path().join("calls");
    // Paths of files, and whole pages of what is written.
    let words = ["strace", "-f", "-y", "-s", "9000", "-e", CALLS, "-o"];
    let words = words.map(PathBuf::from).into_iter().chain([file.clone()]);
    let mut relay = setup.under(words).start();
    let mut connection = relay.connect();
    let ids: Vec<String> = (0..MESSAGES).map(|n| format!("K0000-01-{n:06}")).collect();
    for id in &ids {
        let answer = connection.receive(&letter(id)).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    relay.stop();
    let trace = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
    read(&trace, &ids)
}

#[test]
fn an_fsync_precedes_every_2xx() {
    if !can_trace() {
        return skip(
            "an_fsync_precedes_every_2xx",
            "processes can't be traced here",
        );
    }
    let trace = run(relay_on_disk());
    assert_eq!(trace.wrong, Vec::<String>::new());
    assert_eq!(trace.sound, MESSAGES);
}

#[test]
fn the_trace_shows_what_is_answered_too_early() {
    if !can_trace() {
        return skip(
            "the_trace_shows_what_is_answered_too_early",
            "processes can't be traced here",
        );
    }
    if !cfg!(debug_assertions) {
        return skip(
            "the_trace_shows_what_is_answered_too_early",
            "only a build for tests can be told to break its promises",
        );
    }
    for fault in ["off", "early"] {
        let setup = relay_on_disk().env("CROSSTALK_TEST_DURABILITY", fault);
        let trace = run(setup);
        // A checkpoint of the index syncs the log of the database now and then, and a message in it with it.
        assert!(trace.wrong.len() > MESSAGES / 2, "{fault}: {trace:?}");
    }
}

const GOOD: &str = r#"7 recvfrom(12<socket:[1]>, "GET /readyz", 99, 0, NULL, NULL) = 9
8 sendto(12<socket:[1]>, "HTTP/1.1 200 OK\r\n", 9, 0, NULL, 0) = 9
7 recvfrom(12<socket:[1]>, "POST /crosstalk/receive", 99, 0, NULL, NULL) = 9
7 pwrite64(9</d/crosstalk.db-wal>, "\0..A1..", 4096, 56) = 4096
7 fdatasync(9</d/crosstalk.db-wal>) = 0
8 writev(12<socket:[1]>, [{iov_base="HTTP/1.1 200 OK\r\n", iov_len=9}], 1) = 9
7 read(12<socket:[1]>, <unfinished ...>
8 write(3<anon_inode:[eventfd]>, "\1", 8) = 8
7 <... read resumed>"POST /crosstalk/receive", 99) = 9
7 pwrite64(9</d/crosstalk.db-wal>, "\0..A2..", 4096, 56) = 4096
7 fdatasync(9</d/crosstalk.db-wal> <unfinished ...>
8 write(3<anon_inode:[eventfd]>, "\1", 8) = 8
7 <... fdatasync resumed>) = 0
8 sendto(12<socket:[1]>, "HTTP/1.1 200 OK\r\n", 9, 0, NULL, 0) = 9
"#;

#[test]
fn traces_are_read_call_by_call() {
    let ids = ["A1".to_owned(), "A2".to_owned()];
    assert_eq!(read(GOOD, &ids).sound, 2);
    assert_eq!(read(GOOD, &ids).wrong, [""; 0]);
    let wrong = |trace: &str| read(trace, &ids).wrong;
    let sync = "fdatasync(9</d/crosstalk.db-wal>";
    // Without a sync, with one of another file, or with one that failed.
    assert_eq!(wrong(&GOOD.replace("fdatasync", "nothing")).len(), 2);
    assert_eq!(
        wrong(&GOOD.replace(sync, "fdatasync(8</d/crosstalk.db>")).len(),
        2
    );
    let failed = GOOD.replace(&format!("{sync}) = 0"), &format!("{sync}) = -1 EIO"));
    assert_eq!(wrong(&failed), ["A1 was answered for before it was synced"]);
    // With lines in another order: the answer before the sync, the sync before the write, all before the answer.
    let moved = |from: usize, to: usize| {
        let mut lines: Vec<&str> = GOOD.lines().collect();
        let line = lines.remove(from);
        lines.insert(to, line);
        lines.join("\n")
    };
    assert_eq!(
        wrong(&moved(5, 4)),
        ["A1 was answered for before it was synced"]
    );
    assert_eq!(
        wrong(&moved(13, 11)),
        ["A2 was answered for before it was synced"]
    );
    assert_eq!(
        wrong(&moved(10, 9)),
        ["A2 was answered for before it was synced"]
    );
    assert_eq!(
        wrong(&moved(5, 3)),
        ["A1 was answered for before it was written"]
    );
    let short: String = GOOD.lines().take(6).map(|l| format!("{l}\n")).collect();
    assert_eq!(wrong(&short), ["A2 was not answered in the trace"]);
}
