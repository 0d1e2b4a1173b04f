//! A cluster that is broken under load: the database, its nodes, the relays and the lines between them. Nothing that was
//! acknowledged may be lost, come twice without a mark, or wait forever.

mod fault;
mod history;
mod load;
mod manifest;
mod relays;
mod sql;

use crosstalk_testing::cluster::{Cluster, DATABASE_PORT, PASSWORD, Replication};
use crosstalk_testing::namespace;
use crosstalk_testing::tier;
use crosstalk_testing::wait::{wait_for_ok, wait_until};
use fault::{Breakage, Repair};
use history::{Breach, Fault, History, Verdict, judge};
use load::{Load, SENDERS, Service};
use relays::Relays;
use sql::Table;
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

/// A cluster with its database.
fn start(replication: Replication) -> Cluster {
    let repository = repository();
    Cluster::start(&repository, &repository.join(PATRONI), replication)
}

/// Runs a load, breaks and repairs one thing after the other, and judges.
fn campaign<S: Service>(cluster: &mut Cluster, service: &S, plan: &[Breakage]) -> Verdict {
    let load = Load::new();
    let mut faults = Vec::new();
    thread::scope(|scope| {
        let load = &load;
        for sender in 0..SENDERS {
            scope.spawn(move || load.send(sender, service.door()));
        }
        for reader in 0..S::READERS {
            scope.spawn(move || service.read(reader, load));
        }
        wait_until_served(cluster, load);
        for breakage in plan {
            let fault = break_and_repair(cluster, service, load, *breakage);
            faults.push(fault);
        }
        load.stop();
    });
    let present = service.present();
    judge(&History {
        logs: load.into_logs(),
        faults,
        present,
        is_followed: S::READERS > 0,
    })
}

/// Breaks one thing, waits until every sender is served all the same, and repairs it.
fn break_and_repair(
    cluster: &mut Cluster,
    service: &impl Service,
    load: &Load,
    breakage: Breakage,
) -> Fault {
    let told = |text: &str| tell(&format!("{:>6.1} s  {text}", load.now().as_secs_f64()));
    let primary = breakage
        .is_about_database()
        .then(|| cluster.wait_for_primary(None));
    let at = load.now();
    load.forget_trouble();
    let (name, repair) = breakage.inflict(cluster, primary.unwrap_or_default());
    told(&name);
    if breakage.deposes() {
        cluster.wait_for_primary(primary);
    }
    if breakage == Breakage::StandbyAlone {
        wait_until("a standby to be missed", || !cluster.is_whole());
    }
    if breakage.stops_everything() {
        wait_until("a sender without an answer", || load.is_in_trouble());
    } else {
        wait_until_served(cluster, load);
        told("every sender is served");
    }
    match repair {
        Repair::Nothing => {}
        Repair::StartNode(node) => cluster.restart_node(node),
        Repair::StartRelay(relay) => service.restart(cluster, relay),
        Repair::Heal => cluster.network.heal(),
    }
    if primary.is_some() {
        cluster.wait_until_whole();
        told("the cluster is whole");
    }
    wait_until_served(cluster, load);
    Fault { at, name }
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

/// `cargo xtask ha` sets these variables.
const FAIL_OVERS: &str = "CROSSTALK_FAILOVERS";
const PARTITIONS: &str = "CROSSTALK_PARTITIONS";

/// Whether there is time for the control.
fn is_campaign() -> bool {
    tier::is_full() || std::env::var_os(FAIL_OVERS).is_some()
}

/// How many faults of a kind.
fn wanted(variable: &str, full: usize) -> usize {
    let wanted = std::env::var(variable).ok();
    wanted.map_or(tier::size(1, full), |count| count.parse().unwrap())
}

/// So many faults, in turns.
fn in_turns(faults: &[Breakage], count: usize) -> impl Iterator<Item = Breakage> {
    faults.iter().cycle().copied().take(count)
}

/// The database as relays reach it.
fn store() -> String {
    format!("postgres://crosstalk:{PASSWORD}@127.0.0.1:{DATABASE_PORT}/crosstalk")
}

#[test]
fn fail_overs_and_partitions_lose_nothing() {
    in_namespaces("fail_overs_and_partitions_lose_nothing", || {
        let fail_overs = in_turns(&Breakage::FAIL_OVERS, wanted(FAIL_OVERS, 6));
        let partitions = in_turns(&Breakage::PARTITIONS, wanted(PARTITIONS, 4));
        let plan: Vec<Breakage> = fail_overs.chain(partitions).collect();
        let mut cluster = start(Replication::Quorum);
        let relays = Relays::start(&mut cluster, 3, &["--store", &store()]);
        let verdict = campaign(&mut cluster, &relays, &plan);
        tell(&told(&verdict));
        assert_eq!(verdict.breaches, []);
    });
}

#[test]
fn without_synchronous_replication_messages_are_lost_and_found_missing() {
    if !is_campaign() {
        return;
    }
    in_namespaces(
        "without_synchronous_replication_messages_are_lost_and_found_missing",
        || {
            let mut cluster = start(Replication::Asynchronous);
            let table = Table::make(&cluster);
            let plan = [Breakage::PrimaryFromNodes];
            let verdict = campaign(&mut cluster, &table, &plan);
            tell(&told(&verdict));
            assert!(verdict.lost() > 0, "{}", told(&verdict));
            let others = |breach: &&Breach| !matches!(breach, Breach::Lost(_));
            assert_eq!(verdict.breaches.iter().find(others), None);
        },
    );
}

#[test]
fn relays_behind_the_balancer_are_killed_and_cut_off() {
    in_namespaces("relays_behind_the_balancer_are_killed_and_cut_off", || {
        let mut cluster = Cluster::without_database(&repository());
        let relays = Relays::start(&mut cluster, 1, &[]);
        let plan = [Breakage::OnlyRelayKilled, Breakage::OnlyRelayFromBalancer];
        let verdict = campaign(&mut cluster, &relays, &plan);
        tell(&told(&verdict));
        assert_eq!(verdict.breaches, []);
    });
}
