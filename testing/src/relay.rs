//! The relay itself: `crosstalk serve` as a process of its own, on a free port, with its data on a real disk.
//!
//! The program is whatever the test was built with: `Relay::of(env!("CARGO_BIN_EXE_crosstalk"))`.

use crate::folder::Folder;
use crate::http::Connection;
use crate::wait::wait_for_ok;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// How to start one.
#[derive(Clone, Debug)]
pub struct Setup {
    program: PathBuf,
    place: PathBuf,
    data: Option<PathBuf>,
    config: String,
    arguments: Vec<OsString>,
    environment: Vec<(String, String)>,
    under: Vec<OsString>,
}

impl Setup {
    /// Where its folder is made; the folder for temporary files unless something else is said.
    #[must_use]
    pub fn within(mut self, place: impl Into<PathBuf>) -> Self {
        self.place = place.into();
        self
    }

    /// Its data are in this folder, which stays when the value goes.
    #[must_use]
    pub fn data(mut self, folder: impl Into<PathBuf>) -> Self {
        self.data = Some(folder.into());
        self
    }

    /// The text of its configuration.
    #[must_use]
    pub fn config(mut self, text: impl Into<String>) -> Self {
        self.config = text.into();
        self
    }

    /// One more argument.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// One more variable of its environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// It is started by another program, such as a tracer.
    #[must_use]
    pub fn under<W: Into<OsString>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.under = words.into_iter().map(Into::into).collect();
        self
    }

    /// Starts it, and waits until it is ready.
    ///
    /// # Panics
    /// It does not come up; what it wrote is told.
    pub fn start(self) -> Relay {
        self.try_start().unwrap_or_else(|reason| panic!("{reason}"))
    }

    /// The same, where it may well not come up.
    ///
    /// # Errors
    /// The output before it ended.
    ///
    /// # Panics
    /// It neither comes up nor ends.
    pub fn try_start(self) -> Result<Relay, String> {
        let folder = Folder::within(&self.place, "relay");
        let mut relay = Relay {
            process: None,
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            setup: self,
            folder,
        };
        relay.try_start()?;
        Ok(relay)
    }
}

/// A relay. It is killed when the value goes.
#[derive(Debug)]
pub struct Relay {
    process: Option<Child>,
    address: SocketAddr,
    setup: Setup,
    folder: Folder,
}

impl Relay {
    /// How to start one of this program.
    pub fn of(program: impl Into<PathBuf>) -> Setup {
        Setup {
            program: program.into(),
            place: std::env::temp_dir(),
            data: None,
            config: String::new(),
            arguments: Vec::new(),
            environment: Vec::new(),
            under: Vec::new(),
        }
    }

    /// Starts it again, with the same data, on another port.
    ///
    /// # Panics
    /// It runs, or does not come up.
    pub fn start(&mut self) {
        if let Err(reason) = self.try_start() {
            panic!("{reason}");
        }
    }

    /// The same, where it may well not come up.
    ///
    /// # Errors
    /// The output before it ended.
    ///
    /// # Panics
    /// It runs, or neither comes up nor ends.
    pub fn try_start(&mut self) -> Result<(), String> {
        assert!(self.process.is_none(), "the relay runs already");
        let file = |name: &str| fs::File::create(self.folder.path().join(name)).expect("a file");
        let mut command = self.command();
        command
            .stdin(Stdio::null())
            .stdout(file("out"))
            .stderr(file("log"));
        let process = command.spawn();
        self.process = Some(process.unwrap_or_else(|e| panic!("{command:?}: {e}")));
        wait_for_ok(|| {
            if self.is_ready() {
                return Ok(Ok(()));
            }
            let log = self.log();
            match self.has_ended() {
                Some(status) => {
                    self.process = None;
                    Ok(Err(format!("the relay ended, {status}:\n{log}")))
                }
                None => Err(format!("the relay to be ready:\n{log}")),
            }
        })
    }

    /// Whether it has said where it listens, and takes messages there.
    fn is_ready(&mut self) -> bool {
        let out = fs::read_to_string(self.folder.path().join("out")).unwrap_or_default();
        let Some((line, _)) = out.split_once('\n') else {
            return false;
        };
        let address = line.trim().trim_start_matches("http://");
        let address = address.trim_end_matches('/').parse();
        self.address = address.unwrap_or_else(|e| panic!("it printed {line:?}: {e}"));
        let answer = Connection::open(self.address).and_then(|mut c| c.get("/readyz"));
        answer.is_ok_and(|answer| answer.status == 200)
    }

    fn command(&self) -> Command {
        let mut words = self.setup.under.iter().cloned();
        let program = self.setup.program.as_os_str();
        let mut command = match words.next() {
            Some(first) => {
                let mut command = Command::new(first);
                command.args(words).arg(program);
                command
            }
            None => Command::new(program),
        };
        let own = std::env::vars_os().map(|(name, _)| name);
        for name in own.filter(|n| n.to_string_lossy().starts_with("CROSSTALK_")) {
            command.env_remove(name);
        }
        let home = self.folder.path().join("home");
        command
            .arg("serve")
            .arg("--data")
            .arg(self.data())
            .args(["--listen", "127.0.0.1:0"])
            .args(&self.setup.arguments)
            .env("CROSSTALK_HOME", home)
            .envs(self.setup.environment.iter().cloned());
        if !self.setup.config.is_empty() {
            let file = self.folder.path().join("relay.toml");
            fs::write(&file, &self.setup.config).expect("a configuration");
            command.arg("--config").arg(file);
        }
        command
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where its data are.
    pub fn data(&self) -> PathBuf {
        let own = || self.folder.path().join("data");
        self.setup.data.clone().unwrap_or_else(own)
    }

    /// The file that its messages are in.
    pub fn store(&self) -> PathBuf {
        self.data().join("relay.db")
    }

    /// A connection to it.
    ///
    /// # Panics
    /// It takes none.
    pub fn connect(&self) -> Connection {
        Connection::open(self.address)
            .unwrap_or_else(|e| panic!("the relay takes no connection: {e}\n{}", self.log()))
    }

    /// The number of its process.
    ///
    /// # Panics
    /// It does not run.
    pub fn id(&self) -> u32 {
        let started = self.process.as_ref().expect("a process").id();
        // A tracer has it as its child.
        let children = fs::read_to_string(format!("/proc/{started}/task/{started}/children"));
        let children = children.ok().filter(|_| !self.setup.under.is_empty());
        let child = children.and_then(|c| c.split_whitespace().next()?.parse().ok());
        child.unwrap_or(started)
    }

    /// How it ended, if it has.
    pub fn has_ended(&mut self) -> Option<ExitStatus> {
        let process = self.process.as_mut()?;
        process.try_wait().expect("a process of ours")
    }

    /// Waits for its end, which something else has caused, and says how it ended.
    ///
    /// # Panics
    /// It does not end.
    pub fn wait_for_end(&mut self) -> ExitStatus {
        let status = wait_for_ok(|| {
            let ended = self.has_ended();
            ended.ok_or_else(|| format!("the end of the relay:\n{}", self.log()))
        });
        self.process = None;
        status
    }

    /// Ends it with SIGKILL, at once.
    pub fn kill(&mut self) {
        if self.process.is_some() && !self.setup.under.is_empty() {
            // A process goes on when its tracer leaves it.
            self.signal("-KILL");
        }
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    fn signal(&self, name: &str) -> bool {
        let number = self.id().to_string();
        let sent = Command::new("kill").args([name, &number]).status();
        sent.is_ok_and(|status| status.success())
    }

    /// Asks it to end, with SIGTERM, and waits.
    ///
    /// # Panics
    /// It does not end.
    pub fn stop(&mut self) -> ExitStatus {
        assert!(self.signal("-TERM"), "it can't be asked to end");
        self.wait_for_end()
    }

    /// The output since it was started.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// The memory that it has, in bytes, as the kernel counts it.
    pub fn memory(&self) -> Option<u64> {
        memory_of(self.id())
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The resident memory of a process, in bytes.
pub fn memory_of(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// The file system that a folder is on, by its name in the kernel: `ext4`, `tmpfs`.
pub fn file_system(folder: &Path) -> Option<String> {
    let folder = folder.canonicalize().ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mut best = None;
    for line in mounts.lines() {
        let (left, right) = line.split_once(" - ")?;
        let point = left.split(' ').nth(4)?;
        let is_better = best.as_ref().is_none_or(|(p, _): &(PathBuf, _)| {
            Path::new(point).components().count() >= p.components().count()
        });
        if folder.starts_with(point) && is_better {
            best = Some((PathBuf::from(point), right.split(' ').next()?.to_owned()));
        }
    }
    best.map(|(_, kind)| kind)
}

/// An envelope of about 1.1 KB.
pub fn envelope(id: &str, thread: &str, from: &str, to: &str) -> String {
    let mut text = format!(
        "[[{from}→{to} v1]]\nuser: kalle\nthread: {thread}\nmessage: {id}\ncontext: token-refresh\nintent: REQUEST\n\n\
         meta: privacy\nPII: redacted\nScope: general\n\nbody: |\n"
    );
    for number in 1..=9 {
        let _ = writeln!(
            text,
            "  {number}. Is rotation on every refresh worth the extra writes to the table of sessions under load?"
        );
    }
    text + "sig: none\n[[END]]\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_of_the_kernel_is_read() {
        assert!(memory_of(std::process::id()).is_some_and(|m| m > 100_000));
        assert_eq!(memory_of(u32::MAX), None);
        assert_eq!(file_system(Path::new("/proc")).as_deref(), Some("proc"));
        assert_eq!(file_system(Path::new("/no/such/folder")), None);
    }

    #[test]
    fn envelopes_have_their_size() {
        let text = envelope("M1", "T1", "A", "B");
        assert!((1000..1200).contains(&text.len()), "{}", text.len());
    }
}
