//! A fault at every write, sync, change of length, new file and rename of the store of a relay, one after the other: no
//! acknowledged change is lost, no other one is half there, and the store stops when it can't be relied on.
//!
//! A process of its own does everything that a relay asks of its store, on a disk that fails once. Then the power is cut or the
//! process is just gone, and another process looks at the files.

use crate::letter::letter;
use crate::parcel::{Parcel as _, TakesParcels as _, parcel};
use crate::suite::consenting::{revoke, under};
use crate::suite::relay::{Relay, wait_for};
use crate::{again, at};
use crosstalk_protocol::audit::LogQuery;
use crosstalk_protocol::relay::port::{
    AttemptResult, HandedOut, MailboxChange, MaintenanceTask, RelayStore, SearchQuery,
    StoreContext, StoreEvent, StoreEvents, StoreFuture, StoreStop,
};
use crosstalk_protocol::relay::{AcceptOutcome, Admission, Attempt, DeliveryState, Handler};
use crosstalk_protocol::store::{Page, Search, StoreFault};
use crosstalk_store::{Home, SqliteRelay, SqliteStore};
use crosstalk_testing::disk::{
    Fault, FaultyCall, Loss, Operation, Random, RecordedDisk, make_room,
};
use crosstalk_testing::tier;
use crosstalk_testing::wait::wait_until;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Of so many operations, one fails in a sample.
const STEP: usize = 16;
const MESSAGES: [&str; 7] = ["M1", "M2", "H1", "H2", "S1", "R1", "M3"];

/// The name of a file that says that everything is acknowledged.
const STOPPING: &str = "stopping";

/// A message of the work, the same in every process. S1 is under a consent that R1 revokes.
fn message(id: &str) -> Admission {
    let seconds = MESSAGES.iter().position(|m| *m == id).unwrap();
    let letter = letter(id)
        .thread("T1")
        .at(i64::try_from(seconds).unwrap())
        .spare("spare-thread")
        .spare_message(&format!("spare-{id}"))
        .body(&format!("It is {}.", word_of(id)));
    match id {
        "S1" => under(letter, "C1"),
        "R1" => revoke("R1", &["C1"]),
        "H1" | "H2" => parcel(letter).to(&[("AGENT", Handler::Http)]),
        _ => parcel(letter),
    }
}

fn word_of(id: &str) -> String {
    format!("quokka{id}quokka").to_lowercase()
}

/// Notes why the store stopped. Somebody makes room as soon as work has to wait for it.
#[derive(Default)]
struct Watch(Mutex<Option<StoreStop>>);

impl StoreEvents for Watch {
    fn notify(&self, event: StoreEvent<'_>) {
        match event {
            StoreEvent::Delayed { error, .. } if error.fault == StoreFault::Full => make_room(),
            StoreEvent::Stopped(why) => *self.0.lock().unwrap() = Some(why),
            _ => {}
        }
    }
}

/// The store has stopped, because it can't be relied on.
struct Stopped;

/// A relay at work. It prints everything that was acknowledged.
struct Work {
    store: Arc<dyn RelayStore>,
    watch: Arc<Watch>,
    folder: PathBuf,
}

impl Work {
    /// Does one step; again, if there was no room. Everything else that goes wrong has to stop the store.
    fn does<'s, T>(
        &'s self,
        step: &str,
        ask: impl Fn(&'s dyn RelayStore) -> StoreFuture<'s, T>,
    ) -> Result<T, Stopped> {
        loop {
            let error = match wait_for(ask(self.store.as_ref())) {
                Ok(done) => {
                    println!("did {step}");
                    return Ok(done);
                }
                Err(error) => error,
            };
            println!("failed {step}: {error}");
            match error.fault {
                StoreFault::Full => make_room(),
                StoreFault::Busy => {}
                _ => {
                    wait_until("the store to stop", || {
                        self.watch.0.lock().unwrap().is_some()
                    });
                    return Err(Stopped);
                }
            }
        }
    }

    fn accept(&self, id: &str) -> Result<(), Stopped> {
        let accepted = self.does(id, |s| s.accept(Box::new(message(id))))?;
        let is_kept = matches!(
            accepted.outcome,
            AcceptOutcome::Accepted { .. } | AcceptOutcome::Known { .. }
        );
        assert!(is_kept, "{accepted:?}");
        Ok(())
    }

    fn run(&self) -> Result<(), Stopped> {
        for id in ["M1", "M2", "H1", "H2", "S1"] {
            self.accept(id)?;
        }
        self.does("index", |s| s.caught_up())?;
        let query = || SearchQuery {
            search: Search::parse(&word_of("S1")).unwrap(),
            page: Page::first(9),
            is_complete: false,
        };
        while self
            .does("search", |s| s.search(query()))?
            .found
            .items
            .is_empty()
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        let leased = self.does("lease", |s| s.lease(Duration::from_secs(60), 9))?;
        for due in leased {
            let result = AttemptResult {
                id: due.lease.id.clone(),
                to: due.lease.to.clone(),
                leased_at: Some(due.lease.at),
                attempt: Attempt::Delivered,
                at: at(20),
                notices: Vec::new(),
            };
            if due.lease.id == "H1" {
                assert!(self.does("finish", |s| s.finish(result.clone()))?);
            }
        }
        let marked = vec!["M1".to_owned()];
        let mark = || {
            MailboxChange::reach(
                "CLAUDE",
                marked.clone(),
                DeliveryState::Acknowledged,
                at(21),
            )
        };
        self.does("mark", |s| s.change_mailbox(mark()))?;
        self.store.hand_out(HandedOut {
            address: "CLAUDE".to_owned(),
            ids: vec!["M2".to_owned()],
            at: at(22),
        });
        self.does("hand out", |s| s.caught_up())?;
        self.accept("R1")?;
        while self
            .does("scrub", |s| s.maintain(MaintenanceTask::Scrub))?
            .more
        {}
        self.accept("M3")?;
        // The journal tells by it what failed after the last acknowledgement.
        let _ = std::fs::write(self.folder.join(STOPPING), "");
        self.does("stop", |s| s.stop())
    }
}

#[test]
#[ignore = "run by the other tests, in a process of its own"]
fn work() {
    if !again::is_begun() {
        return;
    }
    let path = Home::from_env().unwrap().store();
    let watch = Arc::new(Watch::default());
    let context = StoreContext {
        events: Arc::clone(&watch) as Arc<dyn StoreEvents>,
        clock: Arc::new(|| at(10)),
    };
    let store = match SqliteRelay::open(&path, context.clone()) {
        Err(error) if error.fault == StoreFault::Full => {
            make_room();
            SqliteRelay::open(&path, context).unwrap()
        }
        Err(error) => {
            println!("unopened {error}");
            return;
        }
        Ok(store) => store,
    };
    let folder = path.parent().unwrap().to_owned();
    let work = Work {
        store,
        watch,
        folder,
    };
    if work.run().is_err() {
        println!("stopped");
    }
}

/// What became of the work.
struct Outcome {
    /// The steps that were acknowledged.
    done: Vec<String>,
    /// Whether the store said that it stopped, or could not be opened.
    is_stopped: bool,
    /// The call that failed, and its file.
    fault: Option<(FaultyCall, PathBuf)>,
    /// Whether it failed after everything was acknowledged.
    is_late: bool,
    /// Everything that the process printed.
    said: String,
}

impl Outcome {
    fn has(&self, step: &str) -> bool {
        self.done.iter().any(|done| done == step)
    }
}

/// Lets a process do the work on a disk where one operation fails.
fn run(disk: &RecordedDisk, fault: Fault, number: usize) -> Outcome {
    let mut variables = disk.variables(Some((fault, number)));
    variables.push(("CROSSTALK_HOME", disk.data().to_str().unwrap().to_owned()));
    let variables: Vec<_> = variables
        .iter()
        .map(|(name, value)| (*name, Some(value.as_str())))
        .collect();
    let said = again::finish(again::begin("sqlite::fault::work", None, &variables));
    // The first line of a test begins on the line of its name.
    let after = |line: &str, word: &str| line.split_once(word).map(|(_, step)| step.to_owned());
    let (mut fault, mut is_late) = (None, false);
    for operation in disk.operations(disk.now()) {
        match operation {
            Operation::Create(_, path) if fault.is_none() => is_late |= path.ends_with(STOPPING),
            Operation::Fault(call, _, path) => fault = Some((call, path)),
            _ => {}
        }
    }
    Outcome {
        done: said.lines().filter_map(|l| after(l, "did ")).collect(),
        is_stopped: said
            .lines()
            .any(|l| l == "stopped" || l.contains("unopened ")),
        fault,
        is_late,
        said,
    }
}

/// Checks the files that the work left.
fn check(home: &Home, outcome: &Outcome) {
    let mut store = Relay::new(|context| SqliteRelay::open(home.store(), context).unwrap());
    store.set_clock(at(100));
    let is_revoked = outcome.has("R1");
    if is_revoked {
        assert!(store.search(&word_of("S1")).is_empty());
    }
    for id in MESSAGES {
        let accepted = store.log_entries(&LogQuery {
            id: Some(id.to_owned()),
            kinds: vec![crosstalk_protocol::audit::EventKind::Accepted],
            limit: 9,
            ..LogQuery::default()
        });
        let is_there = !accepted.is_empty();
        assert!(accepted.len() <= 1, "{id}: {accepted:?}");
        assert!(
            is_there || !outcome.has(id),
            "{id} was acknowledged and is lost"
        );
        // All of it, or nothing.
        assert_eq!(store.deliveries(id).len(), usize::from(is_there), "{id}");
        let is_erased = id == "S1" && store.grant("C1").is_some_and(|c| c.revoked.is_some());
        assert!(!(id == "S1" && is_revoked) || is_erased);
        let record = store.record(id);
        assert_eq!(record.is_some(), is_there && !is_erased, "{id}: {record:?}");
    }
    let state = |store: &Relay, id: &str| store.deliveries(id).pop().map(|d| d.state);
    if outcome.has("mark") {
        assert_eq!(state(&store, "M1"), Some(DeliveryState::Acknowledged));
    }
    if outcome.has("finish") {
        assert_eq!(state(&store, "H1"), Some(DeliveryState::Delivered));
    }
    // Clients that got no answer try again, and everything is as if nothing had happened.
    for id in MESSAGES {
        if id == "S1" && store.grant("C1").is_some_and(|c| c.revoked.is_some()) {
            continue;
        }
        let again = store.take_all(&[message(id)]).remove(0);
        let is_known = matches!(again, AcceptOutcome::Known { .. });
        let is_new = matches!(again, AcceptOutcome::Accepted { .. });
        assert!(is_known || (is_new && !outcome.has(id)), "{id}: {again:?}");
    }
    assert_eq!(store.file_all().left, 0);
    let mut thread = store.ids("T1");
    thread.sort();
    assert_eq!(thread, ["H1", "H2", "M1", "M2", "M3"]);
    for id in MESSAGES {
        let found: Vec<String> = store
            .search(&word_of(id))
            .into_iter()
            .map(|r| r.id)
            .collect();
        let expected = Some(id.to_owned()).filter(|id| *id != "S1" && *id != "R1");
        assert_eq!(found, Vec::from_iter(expected));
    }
    let due = store
        .due(at(200), at(300), 9)
        .into_iter()
        .map(|d| d.lease.id);
    let mut due: Vec<String> = due.collect();
    due.sort();
    let is_finished = state(&store, "H1") == Some(DeliveryState::Delivered);
    assert_eq!(
        due,
        if is_finished {
            &["H2"][..]
        } else {
            &["H1", "H2"]
        }
    );
    store.scrub();
    drop(store);
    assert_eq!(
        files_with(home.as_ref(), &word_of("S1")),
        Vec::<PathBuf>::new()
    );
    let store = SqliteStore::open_existing(home.store()).unwrap().unwrap();
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

/// The files of a folder in which a word stands.
fn files_with(folder: &Path, word: &str) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path());
    let has_it = |path: &PathBuf| {
        let bytes = std::fs::read(path).unwrap_or_default();
        bytes
            .windows(word.len())
            .any(|w| w.eq_ignore_ascii_case(word.as_bytes()))
    };
    files.filter(has_it).collect()
}

/// Lets every operation fail, one after the other, until the work ends before the fault. How many there were.
fn fail_everywhere(fault: Fault, first: usize) -> usize {
    let mut number = first;
    loop {
        let mut disk = RecordedDisk::within(Path::new(env!("CARGO_TARGET_TMPDIR")));
        let outcome = run(&disk, fault, number);
        let Some((call, path)) = &outcome.fault else {
            assert!(outcome.has("stop"), "{}", outcome.said);
            return number;
        };
        let is_log = path.to_string_lossy().ends_with("crosstalk.db-wal");
        if *call == FaultyCall::Sync && is_log && !outcome.is_late {
            // Later syncs would say that everything is on disk, and it would not be.
            assert!(outcome.is_stopped, "{fault:?} {number}: {}", outcome.said);
        }
        if !outcome.is_stopped {
            assert!(outcome.has("stop"), "{fault:?} {number}: {}", outcome.said);
        }
        let loss = match (number / STEP) % 2 {
            0 => Loss::Everything,
            _ => Loss::Nothing,
        };
        disk.cut(disk.now(), loss, &mut Random::new(0));
        let home = Home::at(disk.data());
        let checked = std::panic::catch_unwind(|| check(&home, &outcome));
        assert!(
            checked.is_ok(),
            "{fault:?} at operation {number}, {call:?} of {}, then {loss:?} lost:\n{}",
            path.display(),
            outcome.said
        );
        number += tier::size(STEP, 1);
    }
}

#[test]
fn no_acknowledged_change_is_lost_when_an_operation_fails() {
    assert!(fail_everywhere(Fault::Broken, 1) > 100);
}

#[test]
fn no_acknowledged_change_is_lost_when_the_disk_fills() {
    assert!(fail_everywhere(Fault::Full, 4) > 100);
}

#[test]
fn no_acknowledged_change_is_lost_when_a_write_is_short() {
    assert!(fail_everywhere(Fault::Short, 7) > 100);
}
