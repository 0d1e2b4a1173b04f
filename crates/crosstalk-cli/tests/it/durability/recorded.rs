//! The power goes out on a recorded disk: of what was not synced, everything is lost, or some writes, or some sectors.
//!
//! The other test of power cuts (`power.rs`) needs root and shows what ext4 does. This one needs a C compiler, and makes states
//! that ext4 may leave once in a thousand cuts.

use super::{
    INBOXES, Told, check_store, faults, inbox, letter, listed, load, relay_on_disk, sender_of, skip,
};
use crosstalk_testing::disk::{Loss, Random, RecordedDisk};
use crosstalk_testing::relay::Relay;
use crosstalk_testing::tier;
use crosstalk_testing::wait::wait_until;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Cuts that a sound relay has to survive, in a run of all tests and in a full one.
const CUTS: usize = 3;
const FULL_CUTS: usize = 100;
/// Cuts until a faulty one has to have lost something.
const TRIES: usize = 6;
/// Messages that are acknowledged before a cut, at least.
const FEW: usize = 40;
const LOSSES: [Loss; 4] = [Loss::Parts, Loss::Everything, Loss::Tail, Loss::Nothing];

fn new_disk() -> RecordedDisk {
    RecordedDisk::within(Path::new(env!("CARGO_TARGET_TMPDIR")))
}

/// What is in all inboxes.
fn all_listed(relay: &Relay) -> Vec<String> {
    let mut connection = relay.connect();
    (0..INBOXES)
        .flat_map(|number| listed(&mut connection, &inbox(number), None).0)
        .collect()
}

/// Load, and a cut in the midst of it: what senders were told.
fn cut(disk: &mut RecordedDisk, relay: &mut Relay, round: usize, loss: Loss) -> Told {
    let (stop, dark) = (AtomicBool::new(false), AtomicBool::new(false));
    let taken = AtomicUsize::new(0);
    let address = relay.address();
    let (told, at) = std::thread::scope(|scope| {
        let senders = scope.spawn(|| load(address, round, &stop, &dark, &taken));
        wait_until("the first answers", || {
            assert!(!senders.is_finished(), "{}", relay.log());
            taken.load(Ordering::Relaxed) >= FEW
        });
        std::thread::sleep(Duration::from_micros((round as u64 * 7919) % 150_000));
        // Whatever was answered before this is in the journal before this point.
        dark.store(true, Ordering::SeqCst);
        let at = disk.now();
        relay.kill();
        stop.store(true, Ordering::Relaxed);
        (senders.join().unwrap(), at)
    });
    disk.cut(at, loss, &mut Random::new(round as u64));
    told
}

/// Sends what got no answer again, as a sender would do.
fn send_unsure(relay: &Relay, told: &mut Told) {
    let mut connection = relay.connect();
    for id in std::mem::take(&mut told.unsure) {
        let answer = connection.receive(&letter(&id, sender_of(&id))).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
        told.taken.insert(id, answer.text());
    }
}

#[test]
fn acknowledged_messages_survive_power_cuts_that_tear_writes() {
    let wanted = std::env::var("CROSSTALK_POWER_CUTS").ok();
    let cuts = wanted.map_or(tier::size(CUTS, FULL_CUTS), |c| c.parse().unwrap());
    let mut disk = new_disk();
    let mut relay = disk.record(relay_on_disk()).start();
    let mut all = Told::default();
    for (round, loss) in LOSSES.into_iter().cycle().take(cuts).enumerate() {
        let mut told = cut(&mut disk, &mut relay, round, loss);
        assert!(told.refused.is_empty(), "{:?}", told.refused);
        relay.start();
        let begins = format!("K{round:04}-");
        let mut there = all_listed(&relay);
        there.retain(|id| id.starts_with(&begins));
        let wrong = faults(&told, &there);
        assert!(wrong.is_empty(), "cut {round}, {loss:?}: {wrong:?}");
        let unsure = told.unsure.len();
        send_unsure(&relay, &mut told);
        if cuts > CUTS {
            let taken = told.taken.len();
            let _ = writeln!(
                std::io::stderr(),
                "cut {round}, {loss:?}: {taken} taken, {unsure} unsure"
            );
        }
        all.add(told);
    }
    let wrong = faults(&all, &all_listed(&relay));
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(relay.stop().success(), "{}", relay.log());
    check_store(&relay);
}

/// Whether a relay with a defect loses something within some cuts.
fn is_lost(defect: &str, loss: Loss) -> bool {
    (0..TRIES).any(|round| {
        let mut disk = new_disk();
        let setup = relay_on_disk().env("CROSSTALK_TEST_DURABILITY", defect);
        let mut relay = disk.record(setup).start();
        let told = cut(&mut disk, &mut relay, round, loss);
        match relay.try_start() {
            Ok(()) => !faults(&told, &all_listed(&relay)).is_empty(),
            Err(_) => true,
        }
    })
}

#[test]
fn recorded_power_cut_shows_a_relay_that_answers_too_early() {
    if !cfg!(debug_assertions) {
        return skip(
            "recorded_power_cut_shows_a_relay_that_answers_too_early",
            "only a build for tests can be told to break its promises",
        );
    }
    assert!(is_lost("off", Loss::Everything));
    assert!(is_lost("early", Loss::Everything));
    // The cut is what finds it: a relay that does not sync loses nothing if nothing is dropped.
    assert!(!is_lost("off", Loss::Nothing));
}
