//! Debian packages with the programs that tests talk to, installed when they are missing.

use crate::ending::{Ending, Failure};
use crate::invocation::Invocation;
use std::env;
use std::path::{Path, PathBuf};

/// A program, and the packages that it comes with.
type Program = (&'static str, &'static [&'static str]);

const DOVECOT: Program = ("dovecot", &["dovecot-imapd", "dovecot-lmtpd"]);

/// Its own programs are in no search path.
const POSTGRESQL: Program = ("pg_ctlcluster", &["postgresql"]);
const PYTHON: Program = ("python3", &["python3", "python3-venv"]);
const ETCD: Program = ("etcd", &["etcd-server"]);
const HAPROXY: Program = ("haproxy", &["haproxy"]);
const IP: Program = ("ip", &["iproute2"]);

const PROGRAMS: &[Program] = &[
    ("vi", &["vim-tiny"]),
    ("knotd", &["knot", "knot-dnsutils"]),
    DOVECOT,
    ("swaks", &["swaks"]),
    ("postfix", &["postfix"]),
    ("openssl", &["openssl"]),
    ("Xvfb", &["xvfb", "xauth"]),
    ("xclip", &["xclip"]),
    ("tmux", &["tmux"]),
    ("nano", &["nano"]),
    ("strace", &["strace"]),
    ("mkfs.ext4", &["e2fsprogs"]),
    ("systemd-analyze", &["systemd"]),
    ("promtool", &["prometheus"]),
    PYTHON,
    POSTGRESQL,
    ETCD,
    HAPROXY,
    IP,
    ("curl", &["curl"]),
    ("node", &["nodejs"]),
    ("npm", &["npm"]),
    ("chromium", &["chromium"]),
    ("firefox-esr", &["firefox-esr"]),
];

/// The servers that benches measure the relay beside. PostgreSQL's own programs are in no search path.
const PEERS: &[Program] = &[
    DOVECOT,
    ("redis-server", &["redis-server"]),
    ("postfix", &["postfix"]),
    POSTGRESQL,
    PYTHON,
];

/// The servers of a highly available cluster, and what makes its networks.
const CLUSTER: &[Program] = &[POSTGRESQL, PYTHON, ETCD, HAPROXY, IP];

/// Installs what tests need and the machine does not have.
pub fn step(root: &Path) -> Result<Ending, Failure> {
    install_missing(root, PROGRAMS)
}

/// Installs the servers that benches measure the relay beside.
pub fn install_peers(root: &Path) -> Result<Ending, Failure> {
    install_missing(root, PEERS)
}

/// Installs the servers of a highly available cluster.
pub fn install_cluster(root: &Path) -> Result<Ending, Failure> {
    install_missing(root, CLUSTER)
}

fn install_missing(root: &Path, programs: &[Program]) -> Result<Ending, Failure> {
    let missing = missing(programs, &folders());
    if missing.is_empty() {
        return Ok(Ending::Done(String::new()));
    }
    install(root, &missing)?;
    let still = self::missing(programs, &folders());
    if still.is_empty() {
        Ok(Ending::Done(format!("installed {}", missing.join(", "))))
    } else {
        let again = format!("apt-get install --reinstall {}", still.join(" "));
        let message = "the packages are installed, and their programs are not there";
        Err(Failure::new(message, again))
    }
}

/// Installs packages.
pub fn install(root: &Path, packages: &[&str]) -> Result<(), Failure> {
    let prefix = privilege(root).ok_or_else(|| not_possible(packages))?;
    for line in commands(prefix, packages) {
        Invocation::new(&line)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .run(root)?;
    }
    Ok(())
}

/// The packages whose programs are in none of these folders.
fn missing(programs: &[Program], folders: &[PathBuf]) -> Vec<&'static str> {
    programs
        .iter()
        .filter(|(program, _)| !folders.iter().any(|f| f.join(program).is_file()))
        .flat_map(|(_, packages)| packages.iter().copied())
        .collect()
}

/// The search path, and the folders of servers, which not everyone has in it.
fn folders() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from))
        .collect()
}

/// The prefix that lets a command install packages; `None` if there is none.
fn privilege(root: &Path) -> Option<&'static str> {
    if !Invocation::new("apt-get --version").succeeds(root) {
        return None;
    }
    let user = Invocation::new("id -u").output(root).unwrap_or_default();
    if user.trim() == "0" {
        Some("")
    } else if Invocation::new("sudo -n true").succeeds(root) {
        Some("sudo -n ")
    } else {
        None
    }
}

fn commands(prefix: &str, packages: &[&str]) -> [String; 2] {
    // Another installation may be under way: wait for it.
    let apt = format!("{prefix}apt-get -o DPkg::Lock::Timeout=500");
    let names = packages.join(" ");
    [
        format!("{apt} update"),
        format!("{apt} install -y --no-install-recommends {names}"),
    ]
}

fn not_possible(packages: &[&str]) -> Failure {
    let names = packages.join(" ");
    Failure::new(
        format!(
            "the tests need programs that this machine does not have, and they can't be installed without \
             apt-get and the rights of root (or sudo without a password): install the Debian packages {names}"
        ),
        format!("apt-get install {names}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    const TWO: &[Program] = &[("alphad", &["alpha", "alpha-tools"]), ("betad", &["beta"])];

    #[test]
    fn only_what_is_missing_is_installed() {
        let (one, two) = (Scratch::new(), Scratch::new());
        let folders = [one.path().to_path_buf(), two.path().to_path_buf()];
        assert_eq!(missing(TWO, &folders), ["alpha", "alpha-tools", "beta"]);
        two.write("alphad", "");
        assert_eq!(missing(TWO, &folders), ["beta"]);
        one.write("betad", "");
        assert_eq!(missing(TWO, &folders), [""; 0]);
    }

    #[test]
    fn packages_are_installed_after_one_update() {
        assert_eq!(
            commands("sudo -n ", &["alpha", "beta"]),
            [
                "sudo -n apt-get -o DPkg::Lock::Timeout=500 update",
                "sudo -n apt-get -o DPkg::Lock::Timeout=500 install -y --no-install-recommends alpha beta",
            ]
        );
    }

    #[test]
    fn a_user_without_rights_gets_the_list_of_packages() {
        let failure = not_possible(&["alpha", "beta"]);
        assert!(failure.message.ends_with("the Debian packages alpha beta"));
        assert_eq!(failure.again.as_deref(), Some("apt-get install alpha beta"));
    }
}
