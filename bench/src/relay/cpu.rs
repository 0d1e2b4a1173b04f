//! The processor time of a server and of the load. Server and load share the machine, so that a rate alone does not tell what a
//! message costs: the time of its threads does.

use std::fs;
use std::path::Path;

/// The names of the threads that serve requests: those of the relay, and those of a runtime that names none.
const RUNTIMES: [&str; 2] = ["relay", "tokio-rt-worker"];

/// Microseconds of processor time that a message takes.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuCost {
    /// On the threads of the server that serve requests.
    pub serving: f64,
    /// On all threads of the server.
    pub server: f64,
    /// On the thread of the load.
    pub load: f64,
}

/// Measures while this thread puts a load on a server.
pub struct CpuWatch {
    process: u32,
    server: CpuTime,
    load: f64,
}

impl CpuWatch {
    /// Begins.
    pub fn start(process: u32) -> Self {
        Self {
            process,
            server: CpuTime::of(process),
            load: of_this_thread(),
        }
    }

    /// What each of so many messages has taken since the start.
    pub fn cost(&self, messages: u64) -> CpuCost {
        let (server, load) = (
            CpuTime::of(self.process).since(self.server),
            of_this_thread() - self.load,
        );
        let each = |seconds: f64| seconds * 1e6 / messages as f64;
        CpuCost {
            serving: each(server.serving),
            server: each(server.all),
            load: each(load),
        }
    }
}

/// Seconds of processor time that the threads of a process have used.
#[derive(Clone, Copy, Debug, Default)]
struct CpuTime {
    /// Threads that serve requests: those of the runtime, and the first one.
    serving: f64,
    /// All threads that are still there.
    all: f64,
}

impl CpuTime {
    /// The time that a process has used.
    fn of(process: u32) -> Self {
        let tasks = fs::read_dir(format!("/proc/{process}/task"));
        let mut time = Self::default();
        for task in tasks.into_iter().flatten().flatten() {
            let seconds = seconds(&task.path().join("schedstat"));
            let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            let is_first = task.file_name().to_str() == Some(process.to_string().as_str());
            time.all += seconds;
            if is_first || RUNTIMES.contains(&name.trim_end()) {
                time.serving += seconds;
            }
        }
        time
    }

    /// What it has used since then.
    fn since(self, before: Self) -> Self {
        Self {
            serving: self.serving - before.serving,
            all: self.all - before.all,
        }
    }
}

/// Seconds of processor time that this thread has used.
fn of_this_thread() -> f64 {
    seconds(Path::new("/proc/thread-self/schedstat"))
}

/// The first number of such a file is the time on a processor, in nanoseconds.
fn seconds(file: &Path) -> f64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    let nanoseconds = text.split_whitespace().next();
    let nanoseconds = nanoseconds.and_then(|n| n.parse::<f64>().ok());
    nanoseconds.unwrap_or(f64::NAN) / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn work_of_another_thread_counts_for_the_process_alone() {
        let process = std::process::id();
        let (before, own) = (CpuTime::of(process), of_this_thread());
        let (done, wait) = std::sync::mpsc::channel::<()>();
        let (told, tell) = std::sync::mpsc::channel();
        let worker = std::thread::spawn(move || {
            let began = of_this_thread();
            let end = Instant::now() + Duration::from_secs(60);
            while of_this_thread() - began < 0.05 && Instant::now() < end {}
            let _ = told.send(());
            // A thread that has ended is not counted.
            let _ = wait.recv();
        });
        tell.recv().unwrap();
        let used = CpuTime::of(process).since(before);
        drop(done);
        worker.join().unwrap();
        assert!(used.all >= 0.05, "{used:?}");
        assert!(used.serving < used.all, "{used:?}");
        assert!(of_this_thread() - own < 0.05);
    }
}
