//! Knot DNS: an authoritative name server, with DNSSEC if wanted.
//!
//! ```
//! use crosstalk_testing::knot::{Knot, Zone};
//!
//! let knot = Knot::start([Zone::new("example.test").txt("_crosstalk-key", &["hello"])]);
//! assert!(knot.address().ip().is_loopback());
//! ```

mod zone;

pub use zone::{Signing, Zone};

use crate::folder::Folder;
use crate::loopback::own_ip;
use crate::program::{Program, output};
use crate::wait::wait_for_ok;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::time::Duration;

const KNOTD: Program = Program::new("knotd", "knot");
const KNOTC: Program = Program::new("knotc", "knot");
const KEYMGR: Program = Program::new("keymgr", "knot-dnsutils");

/// How long one question waits for its answer. It is asked again then.
const ANSWER: Duration = Duration::from_secs(1);

/// A running server.
#[derive(Debug)]
pub struct Knot {
    process: Child,
    address: SocketAddr,
    folder: Folder,
}

impl Knot {
    /// Starts a server for these zones, and waits until it answers. It knows nothing but them: anything else is
    /// REFUSED.
    ///
    /// # Panics
    /// The server is not installed or does not come up.
    pub fn start(zones: impl IntoIterator<Item = Zone>) -> Self {
        let zones: Vec<Zone> = zones.into_iter().collect();
        // Between finding a free port and taking it, somebody else may take it.
        for _ in 0..5 {
            if let Some(knot) = Self::try_start(&zones) {
                return knot;
            }
        }
        panic!("knotd did not come up on any port");
    }

    fn try_start(zones: &[Zone]) -> Option<Self> {
        let folder = Folder::new("knot");
        let address = free_port();
        folder.write("knot.conf", &configuration(folder.path(), address, zones));
        for zone in zones {
            folder.write(&zone.file(), &zone.text());
        }
        let log = fs::File::create(folder.path().join("log")).expect("a log file");
        let mut command = KNOTD.command();
        command
            .arg("-c")
            .arg(folder.path().join("knot.conf"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log file"))
            .stderr(log);
        let process = KNOTD.spawn(&mut command);
        let mut knot = Self {
            process,
            address,
            folder,
        };
        let is_up = wait_for_ok(|| {
            if answers(knot.address) {
                // Ours, and not somebody else's on the same port?
                return Ok(knot.is_running());
            }
            let log = fs::read_to_string(knot.folder.path().join("log")).unwrap_or_default();
            if knot.is_running() {
                return Err(format!("an answer of knotd:\n{log}"));
            }
            assert!(
                log.contains("address already in use") || log.contains("failed to bind"),
                "knotd ended:\n{log}"
            );
            Ok(false)
        });
        is_up.then_some(knot)
    }

    fn is_running(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// Where it listens, UDP and TCP.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Replaces the content of a zone that it was started with, and waits until it is served.
    ///
    /// # Panics
    /// The server does not take it.
    pub fn set(&self, zone: &Zone) {
        self.folder.write(&zone.file(), &zone.text());
        self.control(&["-b", "zone-reload", zone.name()]);
    }

    /// The records of a zone as they are served, one per line, signatures included.
    ///
    /// # Panics
    /// There is no such zone.
    pub fn served(&self, zone: &Zone) -> String {
        let prefix = format!("[{}] ", zone.name());
        let mut text = String::new();
        for line in self.control(&["zone-read", zone.name()]).lines() {
            if let Some(record) = line.strip_prefix(&prefix) {
                let _ = writeln!(text, "{record}");
            }
        }
        text
    }

    /// The DNSKEY records of a signed zone: its trust anchor.
    ///
    /// # Panics
    /// It is not signed.
    pub fn anchor(&self, zone: &Zone) -> String {
        let records = self.keys_of(zone, "dnskey");
        records.replace(" DNSKEY ", " IN DNSKEY ")
    }

    /// The DS record of a signed zone, for the zone above it.
    ///
    /// # Panics
    /// It is not signed.
    pub fn ds(&self, zone: &Zone) -> String {
        let records = self.keys_of(zone, "ds");
        let sha256 = records.lines().find(|l| l.split(' ').nth(4) == Some("2"));
        sha256.expect("a DS record with SHA-256").to_owned()
    }

    fn keys_of(&self, zone: &Zone, what: &str) -> String {
        let mut command = KEYMGR.command();
        command
            .arg("-c")
            .arg(self.folder.path().join("knot.conf"))
            .args([zone.name(), what]);
        output(&mut command, KEYMGR)
    }

    fn control(&self, words: &[&str]) -> String {
        let mut command = KNOTC.command();
        command
            .arg("-s")
            .arg(self.folder.path().join("knot.sock"))
            .args(words);
        output(&mut command, KNOTC)
    }
}

impl Drop for Knot {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn configuration(folder: &Path, address: SocketAddr, zones: &[Zone]) -> String {
    let (ip, port, folder) = (address.ip(), address.port(), folder.display());
    let mut text = format!(
        "server:\n  rundir: {folder}\n  listen: {ip}@{port}\n  udp-workers: 1\n  tcp-workers: 1\n  \
         background-workers: 1\ncontrol:\n  listen: {folder}/knot.sock\nlog:\n- target: stderr\n  any: info\n\
         database:\n  storage: {folder}\n  journal-db-max-size: 8M\n  kasp-db-max-size: 8M\n  timer-db-max-size: 1M\n\
         policy:\n"
    );
    for (id, more) in [
        ("nsec", ""),
        ("nsec3", "  nsec3: on\n"),
        (
            "minutes",
            "  rrsig-lifetime: 240s\n  rrsig-refresh: 120s\n  rrsig-pre-refresh: 0s\n  propagation-delay: 0s\n  \
             zone-max-ttl: 1s\n  dnskey-ttl: 1s\n",
        ),
        (
            "seconds",
            "  rrsig-lifetime: 3s\n  rrsig-refresh: 2s\n  rrsig-pre-refresh: 0s\n  propagation-delay: 0s\n  \
             zone-max-ttl: 1s\n  dnskey-ttl: 1s\n",
        ),
    ] {
        let _ = write!(
            text,
            "- id: {id}\n  algorithm: ecdsap256sha256\n  single-type-signing: on\n{more}"
        );
    }
    text.push_str("zone:\n");
    for zone in zones {
        let _ = write!(
            text,
            "- domain: {}\n  storage: {folder}\n  file: {}\n  zonefile-sync: -1\n",
            zone.name(),
            zone.file()
        );
        match zone.signing() {
            Some(signing) => {
                let policy = match signing {
                    Signing::Nsec => "nsec",
                    Signing::Nsec3 => "nsec3",
                    Signing::Minutes => "minutes",
                    Signing::Seconds => "seconds",
                };
                let _ = write!(
                    text,
                    "  zonefile-load: difference-no-serial\n  journal-content: all\n  dnssec-signing: on\n  \
                     dnssec-policy: {policy}\n"
                );
            }
            None => text.push_str("  zonefile-load: whole\n  journal-content: none\n"),
        }
    }
    text
}

/// A port that is free for UDP and TCP. Each is given out once: two servers share a port for UDP without an error.
fn free_port() -> SocketAddr {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let mut given = GIVEN.lock().expect("no panic in between");
    for _ in 0..100 {
        let udp = UdpSocket::bind((own_ip(), 0)).expect("a free port");
        let address = udp.local_addr().expect("a free port");
        if TcpListener::bind(address).is_ok() && given.insert(address.port()) {
            return address;
        }
    }
    panic!("no port is free for UDP and TCP");
}

/// Whether somebody answers a question there, whatever it says.
fn answers(address: SocketAddr) -> bool {
    const QUESTION: &[u8] =
        b"\x12\x34\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x02up\x00\x00\x10\x00\x01";
    let ask = || {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.set_read_timeout(Some(ANSWER))?;
        socket.connect(address)?;
        socket.send(QUESTION)?;
        socket.recv(&mut [0; 512])
    };
    ask().is_ok()
}
