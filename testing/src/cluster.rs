//! A database that survives its nodes: PostgreSQL under Patroni with etcd on three hosts, and HAProxy in front, with the
//! configuration of `deploy/ha`. Only for tests inside of [`crate::namespace::run`].

use crate::namespace::{Network, OWN};
use crate::program::{Program, output};
use crate::wait::{wait_for_ok, wait_until};
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const CHOWN: Program = Program::new("chown", "coreutils");

/// The hosts with a database, and a member of etcd beside each.
pub const NODES: [&str; 3] = ["node1", "node2", "node3"];
/// The hosts for relays.
pub const RELAYS: [&str; 3] = ["relay1", "relay2", "relay3"];
/// The host with the HAProxy that leads to any relay.
pub const BALANCER: &str = "balancer";
/// The port that leads to the primary, on the loopback address of each relay's host and of the test.
pub const DATABASE_PORT: u16 = 5000;
/// The port of the balancer and of each relay.
pub const RELAY_PORT: u16 = 8799;
/// The password of the database for relays.
pub const PASSWORD: &str = "test-database";

/// Everything is below this folder, which is gone with the namespaces.
const FOLDER: &str = "/run/cluster";
const PATRONI_PORT: u16 = 8008;
const ETCD_PORT: u16 = 2379;
/// How long a question to Patroni waits for its answer. It is asked again then.
const ANSWER: Duration = Duration::from_secs(1);

/// When a commit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replication {
    /// A standby has it on disk: as in `deploy/ha/patroni.yml`.
    Quorum,
    /// The primary alone has it: loses messages, which a check has to see.
    Asynchronous,
}

/// The cluster.
#[derive(Debug)]
pub struct Cluster {
    /// The network that its hosts are on.
    pub network: Network,
    replication: Replication,
    deploy: PathBuf,
    patroni: PathBuf,
    children: Vec<Child>,
}

impl Cluster {
    /// The network, its hosts and the balancer, and no database. `repository` is the root of the source tree: its `deploy/ha`
    /// has the configuration.
    ///
    /// # Panics
    /// A program is not installed.
    pub fn without_database(repository: &Path) -> Self {
        let hosts: Vec<&'static str> = NODES.into_iter().chain(RELAYS).chain([BALANCER]).collect();
        let mut cluster = Self {
            network: Network::new(&hosts),
            replication: Replication::Quorum,
            deploy: repository.join("deploy/ha"),
            patroni: PathBuf::new(),
            children: Vec::new(),
        };
        fs::create_dir(FOLDER).expect("a folder");
        for host in hosts.iter().chain([&OWN]) {
            fs::create_dir(cluster.home(host)).expect("a folder");
        }
        cluster.start_proxy(BALANCER, "balancer.cfg");
        cluster
    }

    /// Everything but relays. `patroni` is the program.
    ///
    /// # Panics
    /// A program is not installed, or the cluster is not whole after a long time.
    pub fn start(repository: &Path, patroni: &Path, replication: Replication) -> Self {
        assert!(
            patroni.is_file(),
            "{} is not there: `cargo xtask ha` or `cargo xtask test` installs it",
            patroni.display()
        );
        let mut cluster = Self::without_database(repository);
        cluster.replication = replication;
        patroni.clone_into(&mut cluster.patroni);
        cluster.write_patroni();
        for node in NODES {
            let home = cluster.home(node);
            output(CHOWN.command().arg("postgres:").arg(home), CHOWN);
            cluster.start_node(node);
        }
        for host in RELAYS.into_iter().chain([OWN]) {
            cluster.start_proxy(host, "database.cfg");
        }
        cluster.wait_until_whole();
        cluster
    }

    /// Starts HAProxy on a host, for the first time or again.
    pub fn start_proxy(&mut self, host: &str, configuration: &str) {
        let mut command = self.network.command(host, "/usr/sbin/haproxy");
        command
            .args(["-db", "-f"])
            .arg(self.deploy.join(configuration));
        self.spawn(host, "haproxy", command);
    }

    /// The folder of a host.
    pub fn home(&self, host: &str) -> PathBuf {
        Path::new(FOLDER).join(host)
    }

    /// The address of a port on a host.
    pub fn address(&self, host: &str, port: u16) -> SocketAddr {
        (self.network.address(host), port).into()
    }

    /// The settings of Patroni: those that are shipped, or a control that has to lose messages.
    fn write_patroni(&self) {
        let mut text = fs::read_to_string(self.deploy.join("patroni.yml")).expect("patroni.yml");
        if self.replication == Replication::Asynchronous {
            for (shipped, control) in [
                ("synchronous_mode: quorum", "synchronous_mode: false"),
                (
                    "synchronous_mode_strict: true",
                    "synchronous_mode_strict: false",
                ),
            ] {
                assert!(text.contains(shipped), "{shipped} is not in patroni.yml");
                text = text.replacen(shipped, control, 1);
            }
        }
        fs::write(Path::new(FOLDER).join("patroni.yml"), text).expect("a file");
    }

    /// Starts a program on a host. Its output goes to a file there.
    pub fn spawn(&mut self, host: &str, name: &str, mut command: Command) {
        let log = self.home(host).join(name).with_extension("log");
        let log = fs::OpenOptions::new().create(true).append(true).open(log);
        let log = log.expect("a log file");
        command
            .current_dir(self.home(host))
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log file"))
            .stderr(log);
        let started = command.spawn();
        self.children
            .push(started.unwrap_or_else(|error| panic!("{command:?}: {error}")));
    }

    /// Starts etcd and Patroni on a node, for the first time or again.
    pub fn start_node(&mut self, node: &str) {
        let home = self.home(node);
        let mut etcd = self.on_node(node, "etcd");
        let shared = fs::read_to_string(self.deploy.join("etcd.env")).expect("etcd.env");
        let settings = shared.lines().filter(|line| !line.starts_with('#'));
        etcd.envs(settings.filter_map(|line| line.split_once('=')))
            .env("ETCD_NAME", node)
            .env("ETCD_DATA_DIR", home.join("etcd"))
            .env(
                "ETCD_INITIAL_ADVERTISE_PEER_URLS",
                format!("http://{node}:2380"),
            )
            .env("ETCD_ADVERTISE_CLIENT_URLS", format!("http://{node}:2379"));
        self.spawn(node, "etcd", etcd);

        let mut patroni = self.on_node(node, &self.patroni.to_string_lossy());
        let path = std::env::var("PATH").unwrap_or_default();
        patroni
            .arg(Path::new(FOLDER).join("patroni.yml"))
            .env("PATH", format!("{}:{path}", self.deploy.display()))
            .env("HOME", &home)
            .env("PATRONI_NAME", node)
            .env(
                "PATRONI_RESTAPI_CONNECT_ADDRESS",
                format!("{node}:{PATRONI_PORT}"),
            )
            .env("PATRONI_POSTGRESQL_CONNECT_ADDRESS", format!("{node}:5432"))
            .env("PATRONI_POSTGRESQL_DATA_DIR", home.join("data"))
            .env("PATRONI_SUPERUSER_PASSWORD", "test-superuser")
            .env("PATRONI_REPLICATION_PASSWORD", "test-replication")
            .env("CROSSTALK_DATABASE_PASSWORD", PASSWORD);
        self.spawn(node, "patroni", patroni);
    }

    /// A command that runs as the user `postgres` on a node. It may read every file: this tree may be below a folder that only
    /// its owner can enter.
    fn on_node(&self, node: &str, program: &str) -> Command {
        let mut command = self.network.command(node, "setpriv");
        command
            .args(["--reuid=postgres", "--regid=postgres", "--init-groups"])
            .args([
                "--inh-caps=+dac_read_search",
                "--ambient-caps=+dac_read_search",
            ])
            .arg(program);
        command
    }

    /// The node that Patroni on it calls the primary, if exactly one does.
    pub fn primary(&self) -> Option<&'static str> {
        let is_primary = |node: &&str| self.says(node, "/primary");
        let mut primaries = NODES.into_iter().filter(is_primary);
        let first = primaries.next();
        first.filter(|_| primaries.next().is_none())
    }

    /// Whether Patroni on a node affirms a question of its HTTP API.
    fn says(&self, node: &str, question: &str) -> bool {
        let answer = ask(self.address(node, PATRONI_PORT), question);
        answer.is_ok_and(|answer| answer.split(' ').nth(1) == Some("200"))
    }

    /// How many standbys follow the primary, as PostgreSQL there sees it. With synchronous replication, those that count for
    /// commits, and that etcd lists as well: until it does, Patroni lets no other node become the primary.
    fn standbys(&self, primary: &str) -> usize {
        let answer = ask(self.address(primary, PATRONI_PORT), "/patroni").unwrap_or_default();
        match self.replication {
            Replication::Quorum => {
                let listed = NODES
                    .iter()
                    .filter(|node| self.says(node, "/quorum"))
                    .count();
                listed.min(answer.matches("\"sync_state\": \"quorum\"").count())
            }
            Replication::Asynchronous => answer.matches("\"sync_state\": \"async\"").count(),
        }
    }

    /// Whether there is a primary, and two standbys follow it.
    pub fn is_whole(&self) -> bool {
        self.primary()
            .is_some_and(|primary| self.standbys(primary) == 2)
    }

    /// Whether the member of etcd on a node is one of a majority.
    fn is_member(&self, node: &str) -> bool {
        let answer = ask(self.address(node, ETCD_PORT), "/health");
        answer.is_ok_and(|answer| answer.contains("\"health\":\"true\""))
    }

    /// Waits until there is a primary, and two standbys follow it.
    ///
    /// # Panics
    /// That does not come; the logs are told.
    pub fn wait_until_whole(&self) {
        wait_for_ok(|| {
            let primary = self.primary();
            let standbys = primary.map_or(0, |primary| self.standbys(primary));
            let missing = || {
                format!(
                    "a primary with two standbys and a whole etcd, not {primary:?} with {standbys}"
                )
            };
            let members = NODES.iter().filter(|node| self.is_member(node)).count();
            (standbys == 2 && members == 3)
                .then_some(())
                .ok_or_else(|| format!("{}:\n{}", missing(), self.logs()))
        });
    }

    /// The node that is the primary, as soon as there is one, and it is not `other`.
    ///
    /// # Panics
    /// There is none after a long time.
    pub fn wait_for_primary(&self, other: Option<&str>) -> &'static str {
        wait_for_ok(|| {
            let primary = self.primary().filter(|primary| Some(*primary) != other);
            primary.ok_or_else(|| format!("a primary that is not {other:?}:\n{}", self.logs()))
        })
    }

    /// Starts on this node again what [`Network::kill`] has ended.
    ///
    /// # Panics
    /// What ran there does not end.
    pub fn restart_node(&mut self, node: &str) {
        self.network.kill_any(node, None);
        // A process that ends still has its port for a moment.
        wait_until("the end of a node", || {
            self.reap();
            self.network.processes(node, None).is_empty()
        });
        self.start_node(node);
    }

    /// Forgets the processes that have ended.
    pub fn reap(&mut self) {
        self.children
            .retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }

    /// The end of each log.
    pub fn logs(&self) -> String {
        let mut text = String::new();
        for host in NODES.into_iter().chain(RELAYS).chain([BALANCER, OWN]) {
            for file in fs::read_dir(self.home(host))
                .into_iter()
                .flatten()
                .flatten()
            {
                let path = file.path();
                if path.extension().is_some_and(|extension| extension == "log") {
                    let log = fs::read_to_string(&path).unwrap_or_default();
                    let lines: Vec<&str> = log.lines().rev().take(12).collect();
                    let lines: Vec<&str> = lines.into_iter().rev().collect();
                    text += &format!("== {}\n{}\n", path.display(), lines.join("\n"));
                }
            }
        }
        text
    }
}

/// The answer to GET, with its head.
fn ask(address: SocketAddr, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER)?;
    stream.set_read_timeout(Some(ANSWER))?;
    stream.set_write_timeout(Some(ANSWER))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {OWN}\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
