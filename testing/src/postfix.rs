//! Postfix: a real mail server on loopback, with a queue, mailboxes and a configuration of its own. It needs the rights of root.
//!
//! ```no_run
//! use crosstalk_testing::postfix::Postfix;
//!
//! let postfix = Postfix::start(&["ann"], "");
//! // Mail to ann@people.test arrives in a mailbox; other recipients of this domain are rejected.
//! assert!(postfix.mails("ann").is_empty());
//! ```

use crate::certificate::make_certificate;
use crate::folder::Folder;
use crate::loopback::own_ip;
use crate::program::{Program, output};
use crate::wait::wait_for_ok;
use std::fs;
use std::io::Read as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

const POSTFIX: Program = Program::new("postfix", "postfix");
const CHOWN: Program = Program::new("chown", "coreutils");

/// The domain of the mailboxes.
pub const DOMAIN: &str = "people.test";

/// A running mail server.
#[derive(Debug)]
pub struct Postfix {
    process: Child,
    address: SocketAddr,
    folder: Folder,
}

impl Postfix {
    /// Starts a server with mailboxes for these users of [`DOMAIN`]. `settings` are further lines of its `main.cf`.
    ///
    /// # Panics
    /// The server is not installed or does not come up.
    pub fn start(users: &[&str], settings: &str) -> Self {
        for _ in 0..5 {
            if let Some(postfix) = Self::try_start(users, settings) {
                return postfix;
            }
        }
        panic!("Postfix did not come up on any port");
    }

    fn try_start(users: &[&str], settings: &str) -> Option<Self> {
        let folder = Folder::for_server("postfix");
        let listener = TcpListener::bind((own_ip(), 0)).expect("a free port");
        let address = listener.local_addr().expect("a free port");
        drop(listener);
        prepare(&folder, address, users, settings);
        let log = fs::File::create(folder.path().join("log")).expect("a log file");
        let mut command = POSTFIX.command();
        command
            .arg("-c")
            .arg(folder.path().join("conf"))
            .arg("start-fg")
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log file"))
            .stderr(log);
        let process = POSTFIX.spawn(&mut command);
        let mut postfix = Self {
            process,
            address,
            folder,
        };
        let is_up = wait_for_ok(|| {
            if greets(address) {
                return Ok(true);
            }
            match postfix.process.try_wait() {
                Ok(None) => Err(format!("a greeting of Postfix:\n{}", postfix.log())),
                // Somebody else took the port.
                _ if postfix.log().contains("Address already in use") => Ok(false),
                _ => panic!("Postfix ended:\n{}", postfix.log()),
            }
        });
        is_up.then_some(postfix)
    }

    /// Where it speaks SMTP, with STARTTLS.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificate authority of its certificate, PEM.
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("tls/ca.pem")
    }

    /// Rules for recipients, a regular expression and an answer on each line: `/^ann@/ 451 4.7.1 Come back later`. They replace
    /// those before, for connections that begin from now on.
    pub fn set_access(&self, rules: &str) {
        let place = self.folder.path().join("conf/access");
        fs::write(place.with_extension("new"), rules).expect("the rules of Postfix");
        fs::rename(place.with_extension("new"), &place).expect("the rules of Postfix");
        let mut reload = POSTFIX.command();
        reload
            .arg("-c")
            .arg(self.folder.path().join("conf"))
            .arg("reload");
        output(&mut reload, POSTFIX);
    }

    /// The mails in the mailbox of a user, the oldest first.
    pub fn mails(&self, user: &str) -> Vec<Vec<u8>> {
        let Ok(entries) = fs::read_dir(self.folder.path().join("mail").join(user).join("new"))
        else {
            return Vec::new();
        };
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        files.sort();
        files
            .iter()
            .filter_map(|file| fs::read(file).ok())
            .collect()
    }

    /// Its log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Postfix {
    fn drop(&mut self) {
        let mut stop = POSTFIX.command();
        stop.arg("-c")
            .arg(self.folder.path().join("conf"))
            .arg("abort")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // It has other processes below it, which this ends too.
        let _ = stop.status();
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn prepare(folder: &Folder, address: SocketAddr, users: &[&str], settings: &str) {
    let place = folder.path();
    for name in ["conf", "queue", "data", "mail", "tls"] {
        fs::create_dir(place.join(name)).expect("a folder of Postfix");
        fs::set_permissions(place.join(name), fs::Permissions::from_mode(0o755)).expect("a mode");
    }
    fs::set_permissions(place, fs::Permissions::from_mode(0o755)).expect("a mode");
    let mut chown = CHOWN.command();
    chown
        .arg("postfix")
        .arg(place.join("data"))
        .arg(place.join("mail"));
    output(&mut chown, CHOWN);
    make_certificate(folder, address.ip(), &format!("mail.{DOMAIN}"));
    let place = place.display();
    let ip = address.ip();
    let mailboxes: Vec<String> = users
        .iter()
        .map(|user| format!("{user}@{DOMAIN}={user}/"))
        .collect();
    let mailboxes = mailboxes.join(" ");
    let uid = output(
        Program::new("id", "coreutils")
            .command()
            .args(["-u", "postfix"]),
        POSTFIX,
    );
    let gid = output(
        Program::new("id", "coreutils")
            .command()
            .args(["-g", "postfix"]),
        POSTFIX,
    );
    let (uid, gid) = (uid.trim(), gid.trim());
    folder.write("conf/access", "");
    // A key that appears twice would make every process of the server warn, and its logger wait for itself.
    let is_replaced = |line: &&str| {
        let key = |line: &str| line.split('=').next().map(|key| key.trim().to_owned());
        !settings.lines().any(|own| key(own) == key(line))
    };
    let defaults = format!(
        "compatibility_level = 3.6\nqueue_directory = {place}/queue\ndata_directory = {place}/data\n\
         maillog_file = /dev/stdout\nmail_owner = postfix\nsetgid_group = postdrop\ncommand_directory = /usr/sbin\n\
         daemon_directory = /usr/lib/postfix/sbin\ninet_interfaces = all\ninet_protocols = ipv4\n\
         myhostname = mail.{DOMAIN}\nmydestination =\nmynetworks = 127.0.0.0/8\nalias_maps =\nalias_database =\n\
         local_recipient_maps =\nvirtual_mailbox_domains = {DOMAIN}\nvirtual_mailbox_base = {place}/mail\n\
         virtual_mailbox_maps = inline:{{ {mailboxes} }}\nvirtual_uid_maps = static:{uid}\n\
         virtual_gid_maps = static:{gid}\nvirtual_minimum_uid = 1\nsmtpd_tls_cert_file = {place}/tls/cert.pem\n\
         smtpd_tls_key_file = {place}/tls/key.pem\nsmtpd_tls_security_level = may\nsmtpd_recipient_restrictions = \
         check_recipient_access regexp:{place}/conf/access, permit_mynetworks, reject\nrecipient_delimiter = +\n\
         smtp_dns_support_level = disabled\nsmtp_host_lookup = native\ndefault_transport = error:5.4.4 no way out\n"
    );
    let kept: Vec<&str> = defaults.lines().filter(is_replaced).collect();
    folder.write(
        "conf/main.cf",
        &format!("{}\n{settings}\n", kept.join("\n")),
    );
    let port = address.port();
    folder.write(
        "conf/master.cf",
        &format!(
            "{ip}:{port} inet n - n - - smtpd\ncleanup unix n - n - 0 cleanup\nqmgr unix n - n 300 1 qmgr\n\
             rewrite unix - - n - - trivial-rewrite\nbounce unix - - n - 0 bounce\ndefer unix - - n - 0 bounce\n\
             trace unix - - n - 0 bounce\nvirtual unix - n n - - virtual\nerror unix - - n - - error\n\
             retry unix - - n - - error\nsmtp unix - - n - - smtp\nlmtp unix - - n - - lmtp\nanvil unix - - n - 1 anvil\n\
             tlsmgr unix - - n 1000? 1 tlsmgr\nproxymap unix - - n - - proxymap\npostlog unix-dgram n - n - 1 postlogd\n"
        ),
    );
}

fn greets(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect_timeout(&address, Duration::from_secs(1)) else {
        return false;
    };
    let mut greeting = [0; 3];
    let is_timed = stream
        .set_read_timeout(Some(Duration::from_secs(5)))
        .is_ok();
    is_timed && stream.read_exact(&mut greeting).is_ok() && &greeting == b"220"
}
