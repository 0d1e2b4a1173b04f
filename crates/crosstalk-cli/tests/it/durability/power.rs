//! The power goes out: a file system is shut down in the midst of the load, without what it has not written yet.
//!
//! The data are on ext4 on a loop device. `EXT4_IOC_SHUTDOWN` drops everything that is in memory alone, at once, as a
//! power cut does. Then it is mounted again, and everything that was answered for has to be there. A relay that does not
//! sync, or that answers first, must lose something, else the test would show nothing.

use super::{INBOXES, Told, as_unsure, faults, inbox, listed, load, relay_on_disk, skip};
use crosstalk_store::SqliteStore;
use crosstalk_testing::folder::Folder;
use crosstalk_testing::relay::{Relay, Setup};
use crosstalk_testing::tier;
use crosstalk_testing::wait::wait_until;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Cuts that a sound relay has to survive, in a run of all tests and in a full one.
const CUTS: usize = 2;
const FULL_CUTS: usize = 5;
/// Cuts until a faulty one has to have lost something.
const TRIES: usize = 12;
/// Messages that are answered for before a cut, at least.
const FEW: usize = 40;
/// The size of the disk.
const DISK: &str = "256M";

/// What is said of a store that can't be opened any more.
const LOST: &str = "everything that was answered for is lost";

/// Shuts a file system down, without its journal being written (`EXT4_GOING_FLAGS_NOLOGFLUSH`).
const CUT: &str = "\
import fcntl, os, struct, sys
place = os.open(sys.argv[1], os.O_RDONLY)
print('ready', flush=True)
sys.stdin.read(1)
fcntl.ioctl(place, 0x8004587d, struct.pack('I', 2))
";

/// Runs one of the tests below where it may mount file systems, or says why it can't.
fn mounted(test: &str) {
    let trial = Folder::within(Path::new(env!("CARGO_TARGET_TMPDIR")), "trial");
    let script = format!(
        "cd '{}' && truncate -s 16M disk && mkfs.ext4 -q -F disk && mkdir -p at && mount -o loop disk at && \
         echo | python3 -c \"{CUT}\" at && umount at",
        trial.path().display()
    );
    let tried = Command::new("unshare")
        .args(["-m", "sh", "-euc", &script])
        .output();
    match tried {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            return skip(
                test,
                &format!(
                    "no file system can be mounted and shut down: {}",
                    said.trim()
                ),
            );
        }
        Err(error) => return skip(test, &format!("unshare: {error}")),
    }
    let output = Command::new("unshare")
        .arg("-m")
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            &format!("durability::power::{test}"),
            "--ignored",
            "--nocapture",
        ])
        .env("CROSSTALK_POWER_TEST", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}\n{complained}"
    );
}

fn is_begun() -> bool {
    std::env::var_os("CROSSTALK_POWER_TEST").is_some()
}

/// A disk that can lose its power.
struct Disk(Folder);

impl Disk {
    fn new() -> Self {
        let disk = Self(Folder::within(
            Path::new(env!("CARGO_TARGET_TMPDIR")),
            "disk",
        ));
        disk.shell(&format!(
            "truncate -s {DISK} disk && mkfs.ext4 -q -F disk && mkdir at"
        ));
        disk.mount();
        disk
    }

    fn shell(&self, script: &str) {
        let done = Command::new("sh")
            .args(["-euc", script])
            .current_dir(self.0.path())
            .stdin(Stdio::null())
            .status();
        assert!(done.unwrap().success(), "{script}");
    }

    fn mount(&self) {
        self.shell("mount -o loop disk at");
    }

    /// What was not written is lost, and nothing can be written any more. What is answered from the first moment on
    /// counts for nothing: a computer without power answers nobody.
    fn cut(&self, dark: &AtomicBool) {
        let mut cut = Command::new("python3")
            .args(["-c", CUT, "at"])
            .current_dir(self.0.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = [0; 6];
        cut.stdout.take().unwrap().read_exact(&mut ready).unwrap();
        dark.store(true, Ordering::SeqCst);
        cut.stdin.take().unwrap().write_all(b"!").unwrap();
        assert!(cut.wait().unwrap().success());
    }

    fn place(&self) -> std::path::PathBuf {
        self.0.path().join("at")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let at = self.place();
        let _ = Command::new("umount")
            .arg(at)
            .stderr(Stdio::null())
            .status();
    }
}

/// Ends the load.
struct StopOnDrop<'s>(&'s AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Load, a cut in the midst of it, and what is wrong afterwards. The relay runs again then.
fn cut(disk: &Disk, relay: &mut Relay, round: usize) -> Vec<String> {
    let (stop, dark) = (AtomicBool::new(false), AtomicBool::new(false));
    let taken = AtomicUsize::new(0);
    let address = relay.address();
    let told: Told = std::thread::scope(|scope| {
        let senders = scope.spawn(|| load(address, round, &stop, &dark, &taken));
        // Senders end, too, when this thread panics.
        let end = StopOnDrop(&stop);
        wait_until("the first answers", || {
            assert!(!senders.is_finished(), "{}", relay.log());
            taken.load(Ordering::Relaxed) >= FEW
        });
        std::thread::sleep(Duration::from_micros((round as u64 * 7919) % 120_000));
        disk.cut(&dark);
        // A relay that can't be sure of the disk any more stops, and says so.
        let ended = relay.wait_for_end();
        drop(end);
        let told = senders.join().unwrap();
        assert!(!ended.success(), "{ended:?}\n{}", relay.log());
        told
    });
    for status in told.refused.values() {
        assert_eq!(*status, 503);
    }
    disk.shell("umount at");
    disk.mount();
    if let Err(reason) = relay.try_start() {
        return vec![format!("{LOST}: {reason}")];
    }
    let mut connection = relay.connect();
    let there: Vec<String> = (0..INBOXES)
        .flat_map(|number| listed(&mut connection, &inbox(number), None).0)
        .filter(|id| id.starts_with(&format!("K{round:04}-")))
        .collect();
    let told = as_unsure(told);
    let mut wrong = faults(&told, &there);
    let store = SqliteStore::open_existing(relay.store());
    wrong.extend(store.unwrap().unwrap().check().unwrap());
    wrong
}

fn start(setup: Setup, disk: &Disk) -> Relay {
    setup.data(disk.place().join("data")).start()
}

#[test]
#[ignore = "run by the other tests, where it may mount file systems"]
fn sound() {
    if !is_begun() {
        return;
    }
    let disk = Disk::new();
    let mut relay = start(relay_on_disk(), &disk);
    for round in 0..tier::size(CUTS, FULL_CUTS) {
        let wrong = cut(&disk, &mut relay, round);
        assert!(wrong.is_empty(), "cut {round}: {wrong:?}");
    }
    relay.kill();
}

#[test]
fn what_was_answered_for_survives_a_power_cut() {
    mounted("sound");
}

/// How many cuts it takes until something is lost that was answered for.
fn cuts_to_lose(fault: &str) -> Option<usize> {
    (0..TRIES).find(|round| {
        let disk = Disk::new();
        let setup = relay_on_disk().env("CROSSTALK_TEST_DURABILITY", fault);
        let mut relay = start(setup, &disk);
        let wrong = cut(&disk, &mut relay, *round);
        relay.kill();
        wrong
            .iter()
            .any(|w| w.contains("answered for and is lost") || w.starts_with(LOST))
    })
}

#[test]
#[ignore = "run by the other tests, where it may mount file systems"]
fn unsound() {
    if !is_begun() {
        return;
    }
    if !cfg!(debug_assertions) {
        return skip(
            "unsound",
            "only a build for tests can be told to break its promises",
        );
    }
    for fault in ["off", "early"] {
        let cuts = cuts_to_lose(fault);
        assert!(cuts.is_some(), "{fault}: {TRIES} cuts, and nothing is lost");
    }
}

#[test]
fn a_power_cut_shows_a_relay_that_answers_too_early() {
    mounted("unsound");
}
