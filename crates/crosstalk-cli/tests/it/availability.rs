//! A cluster that is broken under load: the database, its nodes, the relays and the lines between them. Nothing that was
//! acknowledged may be lost, come twice without a mark, or wait forever.

mod fault;
mod history;
mod load;
mod sql;

use crosstalk_testing::cluster::{Cluster, Replication};
use crosstalk_testing::namespace;
use crosstalk_testing::tier;
use crosstalk_testing::wait::wait_for_ok;
use fault::{Breakage, Repair};
use history::{Breach, Fault, History, Verdict, judge};
use load::{Load, SENDERS};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::thread;

/// Where `xtask` installs Patroni.
const PATRONI: &str = "target/tools/patroni/bin/patroni";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn tell(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Runs a load, breaks and repairs one thing after the other, and judges.
fn campaign(replication: Replication, plan: &[Breakage]) -> Verdict {
    let repository = repository();
    let mut cluster = Cluster::start(&repository, &repository.join(PATRONI), replication);
    sql::prepare(&cluster);
    let load = Load::new();
    let mut faults = Vec::new();
    thread::scope(|scope| {
        for sender in 0..SENDERS {
            let load = &load;
            scope.spawn(move || load.send(sender, sql::Session::default()));
        }
        wait_until_served(&cluster, &load);
        for breakage in plan {
            let primary = cluster.wait_for_primary(None);
            let at = load.now();
            let (name, repair) = breakage.inflict(&cluster, primary);
            tell(&format!("{:>6.1} s  {name}", at.as_secs_f64()));
            faults.push(Fault { at, name });
            if breakage.deposes() {
                cluster.wait_for_primary(Some(primary));
            }
            wait_until_served(&cluster, &load);
            tell(&format!(
                "{:>6.1} s  every sender is served",
                load.now().as_secs_f64()
            ));
            match repair {
                Repair::Nothing => {}
                Repair::StartNode(node) => cluster.restart_node(node),
                Repair::StartRelay(number) => unimplemented!("{number}"),
                Repair::Heal => cluster.network.heal(),
            }
            cluster.wait_until_whole();
            tell(&format!(
                "{:>6.1} s  the cluster is whole",
                load.now().as_secs_f64()
            ));
        }
        wait_until_served(&cluster, &load);
        load.stop();
    });
    let present = sql::present();
    judge(&History {
        logs: load.into_logs(),
        faults,
        present,
        is_followed: false,
    })
}

/// Waits until each sender was told that a message is accepted which it sent from now on.
fn wait_until_served(cluster: &Cluster, load: &Load) {
    let before = load.accepted();
    wait_for_ok(|| {
        let now = load.accepted();
        // The next one may have been sent before.
        let is_served = before
            .iter()
            .zip(&now)
            .all(|(before, now)| *now > before + 1);
        is_served.then_some(()).ok_or_else(|| {
            let (trouble, logs) = (load.trouble(), cluster.logs());
            format!("every sender to be served: {before:?}, now {now:?}: {trouble}\n{logs}")
        })
    });
}

fn told(verdict: &Verdict) -> String {
    let mut text = format!(
        "{} messages accepted, {} lost, {} breaches\n",
        verdict.accepted,
        verdict.lost(),
        verdict.breaches.len()
    );
    for (name, wait) in &verdict.waits {
        text += &format!("  {:>5.1} s  {name}\n", wait.as_secs_f64());
    }
    text
}

/// Runs a campaign in namespaces of its own.
fn in_namespaces(test: &str, work: impl FnOnce()) {
    let name = format!("availability::{test}");
    if let Err(reason) = namespace::run(&name, work) {
        tell(&format!("{test}: skipped: {reason}"));
    }
}

/// How many faults of a kind: `cargo xtask ha` sets the variable for a campaign.
fn wanted(variable: &str, full: usize) -> usize {
    let wanted = std::env::var(variable).ok();
    wanted.map_or(tier::size(1, full), |count| count.parse().unwrap())
}

/// So many faults, in turns.
fn in_turns(faults: &[Breakage], count: usize) -> impl Iterator<Item = Breakage> {
    let possible = faults.iter().filter(|fault| !fault.is_about_relays());
    possible.cycle().copied().take(count)
}

#[test]
fn fail_overs_and_partitions_lose_nothing() {
    in_namespaces("fail_overs_and_partitions_lose_nothing", || {
        let fail_overs = in_turns(&Breakage::FAIL_OVERS, wanted("CROSSTALK_FAILOVERS", 6));
        let partitions = in_turns(&Breakage::PARTITIONS, wanted("CROSSTALK_PARTITIONS", 4));
        let plan: Vec<Breakage> = fail_overs.chain(partitions).collect();
        let verdict = campaign(Replication::Quorum, &plan);
        tell(&told(&verdict));
        assert_eq!(verdict.breaches, []);
    });
}

#[test]
fn without_synchronous_replication_messages_are_lost_and_found_missing() {
    in_namespaces(
        "without_synchronous_replication_messages_are_lost_and_found_missing",
        || {
            let verdict = campaign(Replication::Asynchronous, &[Breakage::PrimaryFromNodes]);
            tell(&told(&verdict));
            assert!(verdict.lost() > 0, "{}", told(&verdict));
            let others = |breach: &&Breach| !matches!(breach, Breach::Lost(_));
            assert_eq!(verdict.breaches.iter().find(others), None);
        },
    );
}
