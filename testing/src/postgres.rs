//! PostgreSQL: a real server in a folder and on a port of its own, never the one of the machine. All tests of a process share
//! one; each has a database of its own.
//!
//! ```no_run
//! use crosstalk_testing::postgres::Database;
//!
//! let database = Database::new();
//! assert_eq!(database.sql("SELECT 1 + 1"), "2");
//! // postgres://crosstalk@127.0.0.1:54321/t1
//! let url = database.url();
//! ```

use crate::folder::Folder;
use crate::loopback::own_ip;
use crate::program::{Program, output};
use crate::wait::wait_for_ok;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

const PACKAGE: &str = "postgresql";
const CHOWN: Program = Program::new("chown", "coreutils");
const SHELL: Program = Program::new("sh", "dash");
/// The role that relays have.
const ROLE: &str = "crosstalk";

/// A server. It ends with the value, or with the process, however that ends.
#[derive(Debug)]
pub struct Postgres {
    folder: Folder,
    host: String,
    port: u16,
    /// Ends the server as soon as this process is gone.
    guard: Child,
}

/// Where the programs of the latest version of PostgreSQL are.
fn programs() -> PathBuf {
    let mut versions: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    versions.sort();
    let latest = versions.pop();
    let (_, folder) = latest.unwrap_or_else(|| {
        panic!(
            "PostgreSQL is not installed: `cargo xtask test` installs it (Debian package {PACKAGE})"
        )
    });
    folder
}

/// A program of PostgreSQL. The server does not run as root.
fn program(name: &str) -> Command {
    let file = programs().join(name);
    let is_root = output(
        Program::new("id", "coreutils").command().arg("-u"),
        Program::new("id", "coreutils"),
    );
    if is_root.trim() != "0" {
        return Command::new(file);
    }
    let mut command = Command::new("setpriv");
    command
        .args([
            "--reuid",
            "postgres",
            "--regid",
            "postgres",
            "--clear-groups",
        ])
        .arg(file);
    command.current_dir("/");
    command
}

impl Postgres {
    /// Starts a server. `settings` are further lines of its `postgresql.conf`.
    ///
    /// # Panics
    /// The server is not installed or does not come up.
    pub fn start(settings: &str) -> Self {
        for _ in 0..5 {
            if let Some(server) = Self::try_start(settings) {
                return server;
            }
        }
        panic!("PostgreSQL did not come up on any port");
    }

    fn try_start(settings: &str) -> Option<Self> {
        let folder = Folder::for_server("postgres");
        let listener = TcpListener::bind((own_ip(), 0)).expect("a free port");
        let address = listener.local_addr().expect("a free port");
        drop(listener);
        let (host, port) = (address.ip().to_string(), address.port());
        let place = folder.path().display().to_string();
        if fs::metadata("/root").is_ok() {
            let mut chown = CHOWN.command();
            // A server that runs as the same user needs no other owner.
            let _ = chown.arg("postgres").arg(folder.path()).output();
        }
        let data = folder.path().join("data");
        let mut init = program("initdb");
        init.args([
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "-N",
            "-D",
        ]);
        let shown = Program::new("initdb", PACKAGE);
        output(init.arg(&data), shown);
        let hba = "local all all trust\nhost all guest 127.0.0.0/8 scram-sha-256\nhost all all 127.0.0.0/8 trust\n\
             local replication all trust\nhost replication all 127.0.0.0/8 trust\n";
        fs::write(data.join("pg_hba.conf"), hba).expect("the configuration of PostgreSQL");
        let config = format!(
            "listen_addresses = '{host}'\nport = {port}\nunix_socket_directories = '{place}'\nfsync = off\n\
             max_connections = 400\nshared_buffers = 64MB\nautovacuum_naptime = 10s\n{settings}\n"
        );
        fs::write(data.join("postgresql.auto.conf"), config)
            .expect("the configuration of PostgreSQL");
        let mut server = Self {
            host,
            port,
            guard: guard(&data, folder.path()),
            folder,
        };
        server.launch().then_some(server)
    }

    /// Starts the processes of the server again, after [`stop`](Self::stop) or [`kill`](Self::kill). False if its port is taken.
    pub fn launch(&mut self) -> bool {
        let log = self.folder.path().join("log");
        let mut start = program("pg_ctl");
        start.args(["-w", "-t", "60", "-s", "-D"]).arg(self.data());
        let started = start.arg("-l").arg(&log).arg("start").output();
        let started = started.expect("pg_ctl of PostgreSQL");
        if started.status.success() {
            return true;
        }
        let log = fs::read_to_string(log).unwrap_or_default();
        assert!(
            log.contains("Address already in use"),
            "PostgreSQL did not come up: {}{log}",
            String::from_utf8_lossy(&started.stderr)
        );
        false
    }

    /// Where its files are.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Its host and its port.
    pub fn address(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    /// Ends it in an orderly way; sessions are closed.
    pub fn stop(&self) {
        self.end("fast");
    }

    /// Ends it as a crash does.
    pub fn kill(&self) {
        self.end("immediate");
    }

    fn end(&self, how: &str) {
        let mut stop = program("pg_ctl");
        stop.args(["-w", "-s", "-m", how, "-D"]).arg(self.data());
        output(stop.arg("stop"), Program::new("pg_ctl", PACKAGE));
    }

    /// Runs statements in a database as its superuser. The rows, with `|` between their columns.
    pub fn sql(&self, database: &str, statements: &str) -> String {
        let mut psql = Command::new(programs().join("psql"));
        psql.args([
            "-X",
            "-q",
            "-A",
            "-t",
            "-v",
            "ON_ERROR_STOP=1",
            "-U",
            "postgres",
        ])
        .args([
            "-h",
            &self.host,
            "-p",
            &self.port.to_string(),
            "-d",
            database,
        ])
        .args(["-c", statements]);
        let text = output(&mut psql, Program::new("psql", "postgresql-client"));
        text.trim_end().to_owned()
    }

    /// Makes an empty database, which belongs to the role of relays.
    pub fn create_database(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("t{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let made = wait_for_ok(|| {
            let role = format!(
                "DO $$ BEGIN CREATE ROLE {ROLE} LOGIN; EXCEPTION WHEN OTHERS THEN NULL; END $$"
            );
            self.sql("postgres", &role);
            Ok::<_, String>(self.sql("postgres", &format!("CREATE DATABASE {name} OWNER {ROLE}")))
        });
        assert_eq!(made, "");
        name
    }

    /// The URL of a database for a relay.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{ROLE}@{}:{}/{database}", self.host, self.port)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // The guard ends the server as soon as nobody holds its input any more.
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

/// A process that ends a server when its input is closed: by its owner, or by the system when the owner is gone.
fn guard(data: &Path, folder: &Path) -> Child {
    let stop = program("pg_ctl");
    let words: Vec<String> = std::iter::once(stop.get_program())
        .chain(stop.get_args())
        .map(|word| format!("'{}'", word.to_string_lossy()))
        .collect();
    let script = format!(
        "trap '' INT HUP TERM; read _; {} -s -m immediate -D '{}' stop; rm -rf '{}'",
        words.join(" "),
        data.display(),
        folder.display()
    );
    let mut command = SHELL.command();
    command
        .args(["-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    SHELL.spawn(&mut command)
}

/// A database for one test, on the server that the tests of a process share.
#[derive(Debug)]
pub struct Database {
    name: String,
}

impl Database {
    /// A new, empty one.
    ///
    /// # Panics
    /// The server is not installed or does not come up.
    #[expect(clippy::new_without_default, reason = "it starts a server")]
    pub fn new() -> Self {
        let name = Self::server().create_database();
        Self { name }
    }

    /// The server.
    pub fn server() -> &'static Postgres {
        static SERVER: OnceLock<Postgres> = OnceLock::new();
        SERVER.get_or_init(|| Postgres::start(""))
    }

    /// Its URL for a relay.
    pub fn url(&self) -> String {
        Self::server().url(&self.name)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs statements as the superuser. The rows, with `|` between their columns.
    pub fn sql(&self, statements: &str) -> String {
        Self::server().sql(&self.name, statements)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // The server goes with the process, and this database with it, if it can't go now.
        let name = &self.name;
        let mut psql = Command::new(programs().join("psql"));
        let server = Self::server();
        let _ = psql
            .args([
                "-X",
                "-q",
                "-U",
                "postgres",
                "-h",
                &server.host,
                "-d",
                "postgres",
            ])
            .args(["-p", &server.port.to_string(), "-c"])
            .arg(format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))
            .output();
    }
}
