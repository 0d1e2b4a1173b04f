//! The power goes out: a file system is shut down in the midst of the load, without what it has not written yet.
//!
//! The data are on ext4 on a loop device. `EXT4_IOC_SHUTDOWN` drops everything that is in memory alone, at once, as a
//! power cut does. Then it is mounted again, and everything that was answered for has to be there. A relay that does not
//! sync, or that answers first, must lose something, else the test would show nothing.

use super::check::{Checked, is_lost};
use super::load::{self, Load};
use super::{Told, as_unsure, relay_on_disk, skip};
use crosstalk_testing::folder::Folder;
use crosstalk_testing::relay::{Relay, Setup};
use crosstalk_testing::tier;
use crosstalk_testing::wait::wait_until;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// Cuts that a sound relay has to survive, in a run of all tests and in a full one.
const CUTS: usize = 2;
const FULL_CUTS: usize = 5;
/// Cuts until a faulty one has to have lost something.
const TRIES: usize = 12;
/// Messages that are answered for before a cut, at least.
const FEW: usize = 40;
/// The size of the disk.
const DISK: &str = "256M";

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
    fn cut(&self, load: &Load) {
        let mut cut = Command::new("python3")
            .args(["-c", CUT, "at"])
            .current_dir(self.0.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = [0; 6];
        cut.stdout.take().unwrap().read_exact(&mut ready).unwrap();
        load.darken();
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
struct StopOnDrop<'s>(&'s Load);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Load, and a cut in the midst of it: what clients were told. The relay has ended then.
fn cut(disk: &Disk, relay: &mut Relay, round: usize) -> Told {
    let load = Load::new(relay, round);
    let told: Told = std::thread::scope(|scope| {
        let clients = scope.spawn(|| load.run());
        // Clients end, too, when this thread panics.
        let end = StopOnDrop(&load);
        wait_until("the first answers", || {
            assert!(!clients.is_finished(), "{}", relay.log());
            load.accepted() >= FEW
        });
        std::thread::sleep(load::duration(round));
        disk.cut(&load);
        // A relay that can't be sure of the disk any more stops, and says so.
        let ended = relay.wait_for_end();
        drop(end);
        let told = clients.join().unwrap();
        assert!(!ended.success(), "{ended:?}\n{}", relay.log());
        told
    });
    for status in told.refused.values() {
        assert_eq!(*status, 503);
    }
    disk.shell("umount at");
    disk.mount();
    as_unsure(told)
}

fn start(setup: Setup, disk: &Disk) -> Relay {
    load::prepare(setup, &disk.place().join("data")).start()
}

#[test]
#[ignore = "run by the other tests, where it may mount file systems"]
fn sound() {
    if !is_begun() {
        return;
    }
    let disk = Disk::new();
    let mut relay = start(relay_on_disk(), &disk);
    let mut checked = Checked::new();
    for round in 0..tier::size(CUTS, FULL_CUTS) {
        let told = cut(&disk, &mut relay, round);
        relay.start();
        checked.check(&relay, told);
    }
    checked.finish_all(&mut relay);
}

#[test]
fn acknowledged_messages_survive_a_power_cut() {
    mounted("sound");
}

/// How many cuts it takes until something is lost that was answered for.
fn cuts_to_lose(fault: &str) -> Option<usize> {
    (0..TRIES).find(|round| {
        let disk = Disk::new();
        let setup = relay_on_disk().env("CROSSTALK_TEST_DURABILITY", fault);
        let mut relay = start(setup, &disk);
        let told = cut(&disk, &mut relay, *round);
        is_lost(&mut relay, told)
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
