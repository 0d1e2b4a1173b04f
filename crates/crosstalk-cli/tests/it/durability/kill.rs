//! SIGKILL under full load, again and again: nothing that the relay answered for is lost, nothing is there twice, nothing is
//! stuck, and every state is one that somebody was told.

use super::check::Checked;
use super::load::{self, Load};
use super::{Told, relay_on_disk};
use crosstalk_testing::folder::Folder;
use crosstalk_testing::relay::Relay;
use crosstalk_testing::tier;
use crosstalk_testing::wait::wait_until;
use std::io::Write as _;
use std::path::Path;

/// Kills in a run of all tests and in a full one; `cargo xtask relay-kill N` sets the variable for more.
const CYCLES: usize = 5;
const FULL_CYCLES: usize = 50;
/// Kills of one relay. The next one begins with an empty store, so that a long campaign does not fill the disk.
const OF_ONE_RELAY: usize = 25;
/// Messages that are answered for before the kill, at least.
const FEW: usize = 30;

#[test]
fn acknowledged_messages_survive_kills_under_load() {
    let wanted = std::env::var("CROSSTALK_KILL_CYCLES").ok();
    let cycles = wanted.map_or(tier::size(CYCLES, FULL_CYCLES), |c| c.parse().unwrap());
    for first in (0..cycles).step_by(OF_ONE_RELAY) {
        let data = Folder::within(Path::new(env!("CARGO_TARGET_TMPDIR")), "killed");
        let mut relay = load::prepare(relay_on_disk(), data.path()).start();
        let mut checked = Checked::new();
        for cycle in first..cycles.min(first + OF_ONE_RELAY) {
            let told = kill_under_load(&mut relay, cycle);
            assert!(told.refused.is_empty(), "{:?}", told.refused);
            relay.start();
            let (accepted, unsure) = (told.accepted.len(), told.unsure.len());
            let revoked = told.revocations.len();
            checked.check(&relay, told);
            if cycles > CYCLES {
                let _ = writeln!(
                    std::io::stderr(),
                    "kill {cycle}: {accepted} accepted, {unsure} unsure, {revoked} revoked"
                );
            }
        }
        checked.finish_all(&mut relay);
    }
}

/// Load, and a kill in the midst of it.
fn kill_under_load(relay: &mut Relay, cycle: usize) -> Told {
    let load = Load::new(relay, cycle);
    std::thread::scope(|scope| {
        let clients = scope.spawn(|| load.run());
        wait_until("the first answers", || {
            assert!(!clients.is_finished(), "{}", relay.log());
            load.accepted() >= FEW
        });
        std::thread::sleep(load::duration(cycle));
        relay.kill();
        load.stop();
        clients.join().unwrap()
    })
}
