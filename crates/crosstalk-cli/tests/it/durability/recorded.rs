//! The power goes out on a recorded disk: of what was not synced, everything is lost, or some writes, or some sectors.
//!
//! The other test of power cuts (`power.rs`) needs root and shows what ext4 does. This one needs a C compiler, and makes states
//! that ext4 may leave once in a thousand cuts.

use super::check::{Checked, is_lost};
use super::load::{self, Load};
use super::{Told, relay_on_disk, skip};
use crosstalk_testing::disk::{Loss, Random, RecordedDisk};
use crosstalk_testing::relay::{Relay, Setup};
use crosstalk_testing::tier;
use crosstalk_testing::wait::wait_until;
use std::io::Write as _;
use std::path::Path;

/// Cuts that a sound relay has to survive, in a run of all tests and in a full one; `cargo xtask relay-power N` sets the
/// variable for more.
const CUTS: usize = 3;
const FULL_CUTS: usize = 20;
/// Cuts of one relay. The next one begins with an empty disk.
const OF_ONE_RELAY: usize = 20;
/// Cuts until a faulty one has to have lost something.
const TRIES: usize = 6;
/// Messages that are acknowledged before a cut, at least.
const FEW: usize = 40;
const LOSSES: [Loss; 4] = [Loss::Parts, Loss::Everything, Loss::Tail, Loss::Nothing];

/// A relay on a disk of its own.
fn start(setup: Setup) -> (RecordedDisk, Relay) {
    let mut disk = RecordedDisk::within(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let setup = load::prepare(disk.record(setup), disk.data());
    disk.begin();
    (disk, setup.start())
}

/// Load, and a cut in the midst of it: what clients were told.
fn cut(disk: &mut RecordedDisk, relay: &mut Relay, round: usize, loss: Loss) -> Told {
    let load = Load::new(relay, round);
    let (told, at) = std::thread::scope(|scope| {
        let clients = scope.spawn(|| load.run());
        wait_until("the first answers", || {
            assert!(!clients.is_finished(), "{}", relay.log());
            load.accepted() >= FEW
        });
        std::thread::sleep(load::duration(round));
        // Whatever was answered before this is in the journal before this point.
        load.darken();
        let at = disk.now();
        relay.kill();
        load.stop();
        (clients.join().unwrap(), at)
    });
    disk.cut(at, loss, &mut Random::new(round as u64));
    told
}

#[test]
fn acknowledged_messages_survive_power_cuts_that_tear_writes() {
    let wanted = std::env::var("CROSSTALK_POWER_CUTS").ok();
    let cuts = wanted.map_or(tier::size(CUTS, FULL_CUTS), |c| c.parse().unwrap());
    let losses: Vec<Loss> = LOSSES.into_iter().cycle().take(cuts).collect();
    let mut round = 0;
    for losses in losses.chunks(OF_ONE_RELAY) {
        let (mut disk, mut relay) = start(relay_on_disk());
        let mut checked = Checked::new();
        for loss in losses {
            let told = cut(&mut disk, &mut relay, round, *loss);
            assert!(told.refused.is_empty(), "{:?}", told.refused);
            relay.start();
            let (accepted, unsure) = (told.accepted.len(), told.unsure.len());
            let revoked = told.revocations.len();
            checked.check(&relay, told);
            if cuts > CUTS {
                let _ = writeln!(
                    std::io::stderr(),
                    "cut {round}, {loss:?}: {accepted} accepted, {unsure} unsure, {revoked} revoked"
                );
            }
            round += 1;
        }
        checked.finish_all(&mut relay);
    }
}

/// Whether a relay with a defect loses something within some cuts.
fn is_shown(defect: &str, loss: Loss) -> bool {
    (0..TRIES).any(|round| {
        let setup = relay_on_disk().env("CROSSTALK_TEST_DURABILITY", defect);
        let (mut disk, mut relay) = start(setup);
        let told = cut(&mut disk, &mut relay, round, loss);
        is_lost(&mut relay, told)
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
    assert!(is_shown("off", Loss::Everything));
    assert!(is_shown("early", Loss::Everything));
    // The cut is what finds it: a relay that does not sync loses nothing if nothing is dropped.
    assert!(!is_shown("off", Loss::Nothing));
}
