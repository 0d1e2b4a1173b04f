//! Namespaces of Linux: a test with a network, processes and mounts of its own. The kernel ends all of it with the test,
//! however the test ends.

use crate::program::{Program, output};
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};

const SETPRIV: Program = Program::new("setpriv", "util-linux");
const IP: Program = Program::new("ip", "iproute2");
const MOUNT: Program = Program::new("mount", "mount");
const KILL: Program = Program::new("kill", "procps");

/// Tells a test that it runs inside: the variable has its name.
const INSIDE: &str = "CROSSTALK_INSIDE_NAMESPACES";
/// A hardware address that no interface has. Packets to it vanish without a word, as on a broken line.
const NOBODY: &str = "02:00:00:00:00:01";
/// The host in which the test itself is.
pub const OWN: &str = "client";

/// Runs `work` in namespaces of its own: starts this test program again for this one test, whose full name is `test`.
///
/// # Errors
/// The reason why this machine permits no namespaces.
///
/// # Panics
/// The work panics, or there is no test with this name.
pub fn run(test: &str, work: impl FnOnce()) -> Result<(), String> {
    if env::var(INSIDE).is_ok_and(|inside| inside == test) {
        work();
        return Ok(());
    }
    let probe = unshare("true").output();
    let probe = probe.map_err(|error| format!("setpriv and unshare can't be started: {error}"))?;
    if !probe.status.success() {
        let reason = String::from_utf8_lossy(&probe.stderr);
        return Err(format!("namespaces are not permitted: {}", reason.trim()));
    }
    let program = env::current_exe().expect("a test program");
    let ended = unshare(&program.to_string_lossy())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, test)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .expect("it could be started just now");
    let out = String::from_utf8_lossy(&ended.stdout);
    // A misspelled name would be a success of no tests.
    assert!(
        ended.status.success() && out.contains("1 passed"),
        "{test} in namespaces: {}\n{out}",
        ended.status
    );
    Ok(())
}

/// A command in new namespaces. Everything there ends with it, and it ends with this thread.
fn unshare(program: &str) -> Command {
    let mut command = SETPRIV.command();
    command.args(["--pdeathsig", "KILL", "unshare", "--net", "--mount"]);
    command.args(["--pid", "--fork", "--kill-child", "--mount-proc"]);
    command.args(["--propagation", "private"]);
    // The first process is a shell, because it has to reap every orphan: Patroni takes an unreaped PostgreSQL for a running one.
    command.args(["sh", "-c", "\"$0\" \"$@\"; exit $?", program]);
    command
}

/// Hosts on one network, in network namespaces inside those of the test. They know each other by name.
#[derive(Debug)]
pub struct Network {
    hosts: Vec<(&'static str, Ipv4Addr)>,
}

impl Network {
    /// Makes hosts with these names. `/run` is empty from now on, and gone with the test.
    ///
    /// # Panics
    /// The test is not inside of [`run`].
    pub fn new(names: &[&'static str]) -> Self {
        assert!(env::var_os(INSIDE).is_some(), "not inside of namespaces");
        output(
            MOUNT
                .command()
                .args(["-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run"]),
            MOUNT,
        );
        fs::create_dir("/run/netns").expect("a folder");
        let mut hosts = vec![(OWN, Ipv4Addr::new(10, 77, 0, 1))];
        for (number, name) in (11..).zip(names) {
            hosts.push((name, Ipv4Addr::new(10, 77, 0, number)));
        }
        ip("link set lo up");
        ip("link add bridge type bridge");
        ip("addr add 10.77.0.1/24 dev bridge");
        ip("link set bridge up");
        let mut names = "127.0.0.1 localhost\n".to_owned();
        for (name, address) in &hosts {
            let _ = writeln!(names, "{address} {name}");
            if *name != OWN {
                ip(&format!("netns add {name}"));
                ip(&format!(
                    "link add port-{name} type veth peer name wire netns {name}"
                ));
                ip(&format!("link set port-{name} master bridge up"));
                ip(&format!("-n {name} link set lo up"));
                ip(&format!("-n {name} addr add {address}/24 dev wire"));
                ip(&format!("-n {name} link set wire up"));
            }
        }
        fs::write("/run/hosts", names).expect("a file");
        output(
            MOUNT.command().args(["--bind", "/run/hosts", "/etc/hosts"]),
            MOUNT,
        );
        Self { hosts }
    }

    /// The address of a host.
    ///
    /// # Panics
    /// There is none with this name.
    pub fn address(&self, name: &str) -> Ipv4Addr {
        let host = self.hosts.iter().find(|(host, _)| *host == name);
        host.unwrap_or_else(|| panic!("there is no host {name}")).1
    }

    /// A command that runs a program on a host.
    pub fn command(&self, host: &str, program: &str) -> Command {
        if host == OWN {
            return Command::new(program);
        }
        let mut command = IP.command();
        command.args(["netns", "exec", host, program]);
        command
    }

    /// From now on, nothing that `from` sends arrives at `to`.
    pub fn cut(&self, from: &str, to: &str) {
        let to = self.address(to);
        let (host, wire) = place(from);
        ip(&format!(
            "{host} neigh replace {to} lladdr {NOBODY} dev {wire} nud permanent"
        ));
    }

    /// Nothing arrives between this host and these others, in both directions.
    pub fn part(&self, host: &str, others: &[&str]) {
        for other in others {
            self.cut(host, other);
            self.cut(other, host);
        }
    }

    /// Everything arrives again.
    pub fn heal(&self) {
        for (name, _) in &self.hosts {
            let (host, wire) = place(name);
            ip(&format!("{host} neigh flush dev {wire} nud permanent"));
        }
    }

    /// The processes on a host whose program has this name, or all of them.
    pub fn processes(&self, host: &str, program: Option<&str>) -> Vec<u32> {
        let listed = output(IP.command().args(["netns", "pids", host]), IP);
        let numbers = listed.lines().filter_map(|line| line.trim().parse().ok());
        let is_wanted = |number: &u32| {
            let name = fs::read_to_string(format!("/proc/{number}/comm")).unwrap_or_default();
            program.is_none_or(|program| name.trim_end() == program)
        };
        numbers.filter(is_wanted).collect()
    }

    /// Ends processes on a host with SIGKILL: those whose program has this name, or all of them.
    ///
    /// # Panics
    /// There are none.
    pub fn kill(&self, host: &str, program: Option<&str>) {
        let killed = self.kill_any(host, program);
        assert!(killed > 0, "there is nothing to kill on {host}");
    }

    /// The same where there may be none; how many there were.
    pub fn kill_any(&self, host: &str, program: Option<&str>) -> usize {
        let processes = self.processes(host, program);
        if !processes.is_empty() {
            let numbers = processes.iter().map(u32::to_string);
            // One of them may end by itself meanwhile.
            let _ = KILL.command().arg("-KILL").args(numbers).output();
        }
        processes.len()
    }
}

/// How `ip` names the namespace and the interface of a host.
fn place(host: &str) -> (String, &'static str) {
    match host {
        OWN => (String::new(), "bridge"),
        name => (format!("-n {name}"), "wire"),
    }
}

fn ip(words: &str) {
    output(IP.command().args(words.split_whitespace()), IP);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::time::Duration;

    /// Whether a host reaches the port of this test.
    fn reaches(network: &Network, host: &str, port: u16) -> bool {
        let line = format!("echo > /dev/tcp/{OWN}/{port}");
        let mut command = network.command(host, "timeout");
        command
            .args(["1", "bash", "-c", &line])
            .stderr(Stdio::null());
        command.status().expect("a shell").success()
    }

    #[test]
    fn cut_lines_are_silent_in_one_direction_or_both_and_can_be_healed() {
        let test =
            "namespace::tests::cut_lines_are_silent_in_one_direction_or_both_and_can_be_healed";
        let ended = run(test, || {
            let network = Network::new(&["one", "two"]);
            let server = TcpListener::bind("0.0.0.0:0").expect("a port");
            let port = server.local_addr().expect("a port").port();
            assert!(reaches(&network, "one", port) && reaches(&network, "two", port));
            // The answer has to come back, too.
            network.cut(OWN, "one");
            assert!(!reaches(&network, "one", port) && reaches(&network, "two", port));
            network.heal();
            network.part("two", &[OWN]);
            assert!(reaches(&network, "one", port) && !reaches(&network, "two", port));
            network.heal();
            assert!(reaches(&network, "one", port) && reaches(&network, "two", port));

            let mut sleeper = network
                .command("one", "sleep")
                .arg("1000")
                .spawn()
                .expect("sleep");
            crate::wait::wait_until("a process", || {
                network.processes("one", Some("sleep")) == [sleeper.id()]
            });
            network.kill("one", None);
            assert!(!sleeper.wait().expect("our child").success());
            let nowhere = SocketAddr::from((network.address("two"), 9));
            assert!(TcpStream::connect_timeout(&nowhere, Duration::from_secs(1)).is_err());
        });
        if let Err(reason) = ended {
            eprintln!("{test}: skipped: {reason}");
        }
    }
}
