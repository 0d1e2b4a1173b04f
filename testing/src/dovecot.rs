//! Dovecot: a real IMAP server on loopback, with mailboxes and a configuration of its own. It needs the rights of root.
//!
//! ```no_run
//! use crosstalk_testing::dovecot::Dovecot;
//!
//! let dovecot = Dovecot::start(&["ann"]);
//! dovecot.deliver("ann", b"From: x@y.example\r\n\r\nhello\r\n");
//! ```

use crate::certificate::make_certificate;
use crate::folder::Folder;
use crate::loopback::own_ip;
use crate::program::Program;
use crate::wait::wait_for_ok;
use std::fs;
use std::io::Read as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const DOVECOT: Program = Program::new("dovecot", "dovecot-imapd");
const CHOWN: Program = Program::new("chown", "coreutils");

/// The password of every user.
pub const PASSWORD: &str = "secret of the mailbox";
/// How long the greeting of the server may take.
const GREETING: Duration = Duration::from_secs(2);

static NEXT: AtomicU64 = AtomicU64::new(1);

/// A running server.
#[derive(Debug)]
pub struct Dovecot {
    process: Option<Child>,
    imap: SocketAddr,
    imaps: SocketAddr,
    lmtp: SocketAddr,
    auth: SocketAddr,
    folder: Folder,
}

impl Dovecot {
    /// Starts a server with a mailbox for each user.
    ///
    /// # Panics
    /// The server is not installed or does not come up.
    pub fn start(users: &[&str]) -> Self {
        Self::start_with(users, "")
    }

    /// The same with further lines of its configuration.
    ///
    /// # Panics
    /// The server is not installed or does not come up.
    pub fn start_with(users: &[&str], settings: &str) -> Self {
        Self::start_in(Folder::for_server("dovecot"), users, settings)
    }

    /// The same, with its mailboxes inside of a folder.
    ///
    /// # Panics
    /// The server is not installed or does not come up.
    pub fn start_within(place: &Path, users: &[&str]) -> Self {
        let place = place.canonicalize().expect("a folder");
        Self::start_in(Folder::within(&place, "dovecot"), users, "")
    }

    fn start_in(folder: Folder, users: &[&str], settings: &str) -> Self {
        let port = || {
            let listener = TcpListener::bind((own_ip(), 0)).expect("a free port");
            listener.local_addr().expect("a free port")
        };
        let mut this = Self {
            process: None,
            imap: port(),
            imaps: port(),
            lmtp: port(),
            auth: port(),
            folder,
        };
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(this.folder.path(), open).expect("the folder of Dovecot");
        for user in users {
            let folder = this.folder.path().join("mail").join(user);
            for part in ["new", "cur", "tmp"] {
                fs::create_dir_all(folder.join(part)).expect("a mailbox");
            }
        }
        fs::create_dir_all(this.folder.path().join("mail")).expect("the mailboxes");
        this.own(&this.folder.path().join("mail"));
        this.folder.write(
            "users",
            &users
                .iter()
                .map(|user| format!("{user}:{{PLAIN}}{PASSWORD}\n"))
                .collect::<String>(),
        );
        fs::create_dir(this.folder.path().join("tls")).expect("the certificate");
        make_certificate(&this.folder, this.imaps.ip(), "imap.test");
        let text = format!("{}{settings}\n", this.settings());
        this.folder.write("dovecot.conf", &text);
        this.begin();
        this
    }

    fn settings(&self) -> String {
        let base = self.folder.path().display();
        let (ip, imap, lmtp) = (self.imap.ip(), self.imap.port(), self.lmtp.port());
        let (imaps, auth) = (self.imaps.port(), self.auth.port());
        format!(
            "base_dir = {base}/run\nstate_dir = {base}/state\nlog_path = {base}/log\nprotocols = imap lmtp\nlisten = {ip}\n\
             ssl = yes\nssl_cert = <{base}/tls/cert.pem\nssl_key = <{base}/tls/key.pem\ndisable_plaintext_auth = no\nmail_location = maildir:{base}/mail/%n\nfirst_valid_uid = 1\n\
             default_internal_user = dovecot\ndefault_login_user = dovenull\nauth_mechanisms = plain\n\
             lda_mailbox_autocreate = yes\nmail_fsync = always\n\
             passdb {{\n driver = passwd-file\n args = username_format=%n {base}/users\n}}\n\
             userdb {{\n driver = static\n args = uid=mail gid=mail home={base}/mail/%n allow_all_users=yes\n}}\n\
             service imap-login {{\n chroot =\n inet_listener imap {{\n  address = {ip}\n  port = {imap}\n }}\n inet_listener imaps {{\n  address = {ip}\n  port = {imaps}\n  ssl = yes\n }}\n}}\n\
             service auth {{\n inet_listener {{\n  address = {ip}\n  port = {auth}\n }}\n}}\n\
             service anvil {{\n chroot =\n}}\n\
             service lmtp {{\n inet_listener lmtp {{\n  address = {ip}\n  port = {lmtp}\n }}\n}}\n"
        )
    }

    fn own(&self, path: &Path) {
        let mut command = CHOWN.command();
        command.arg("-R").arg("mail:mail").arg(path);
        crate::program::output(&mut command, CHOWN);
    }

    fn begin(&mut self) {
        let mut command = DOVECOT.command();
        command
            .arg("-F")
            .arg("-c")
            .arg(self.folder.path().join("dovecot.conf"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.process = Some(DOVECOT.spawn(&mut command));
        wait_for_ok(|| match greets(self.imap) {
            true => Ok(()),
            false => Err(format!("a greeting of Dovecot:\n{}", self.log())),
        });
    }

    /// Where it speaks IMAP, without TLS.
    pub fn imap(&self) -> SocketAddr {
        self.imap
    }

    /// Where it speaks IMAP over TLS.
    pub fn imaps(&self) -> SocketAddr {
        self.imaps
    }

    /// The certificate authority of its certificate, PEM.
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("tls/ca.pem")
    }

    /// Where other servers ask whether a password is right.
    pub fn auth(&self) -> SocketAddr {
        self.auth
    }

    /// Where it speaks LMTP.
    pub fn lmtp(&self) -> SocketAddr {
        self.lmtp
    }

    /// Puts a mail into the mailbox of a user.
    pub fn deliver(&self, user: &str, mail: &[u8]) {
        let folder = self.folder.path().join("mail").join(user);
        let name = format!("{}.crosstalk.test", NEXT.fetch_add(1, Ordering::Relaxed));
        let place = folder.join("tmp").join(&name);
        fs::write(&place, mail).expect("a mail");
        self.own(&place);
        fs::rename(place, folder.join("new").join(name)).expect("a mail");
    }

    /// Makes a folder in the mailbox of a user.
    pub fn make_folder(&self, user: &str, name: &str) {
        let folder = self.folder.path().join("mail").join(user);
        let folder = folder.join(format!(".{name}"));
        for part in ["new", "cur", "tmp"] {
            fs::create_dir_all(folder.join(part)).expect("a folder");
        }
        self.own(&folder);
    }

    /// The mails of a user, seen or not, in the order of their names.
    pub fn mails(&self, user: &str) -> Vec<Vec<u8>> {
        Self::mails_at(&self.folder.path().join("mail").join(user))
    }

    /// The same of another folder of the user.
    pub fn mails_in(&self, user: &str, name: &str) -> Vec<Vec<u8>> {
        let folder = self.folder.path().join("mail").join(user);
        Self::mails_at(&folder.join(format!(".{name}")))
    }

    fn mails_at(folder: &Path) -> Vec<Vec<u8>> {
        let entries = ["cur", "new"].map(|part| fs::read_dir(folder.join(part)));
        let entries = entries.into_iter().flatten().flatten().flatten();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        files.sort_by(|one, other| one.file_name().cmp(&other.file_name()));
        let read = files.iter().filter_map(|file| fs::read(file).ok());
        read.collect()
    }

    /// The names of the mails of a user that were seen, with their flags.
    pub fn seen(&self, user: &str) -> Vec<String> {
        let folder = self.folder.path().join("mail").join(user).join("cur");
        let names = fs::read_dir(folder).into_iter().flatten().flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let is_seen = |name: &String| {
            name.split_once(":2,")
                .is_some_and(|(_, flags)| flags.contains('S'))
        };
        names.filter(is_seen).collect()
    }

    /// Takes the marks from the mails of a user that were seen.
    pub fn unsee(&self, user: &str) {
        let folder = self.folder.path().join("mail").join(user).join("cur");
        for name in self.seen(user) {
            let (base, _) = name.split_once(":2,").unwrap_or((&name, ""));
            let unseen = folder.join(format!("{base}:2,"));
            fs::rename(folder.join(&name), unseen).expect("a mail");
        }
    }

    /// Ends the server, and every connection with it.
    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // The processes of the server end when their master does.
            let pid = process.id().to_string();
            let _ = std::process::Command::new("kill").arg(pid).status();
            let _ = process.wait();
        }
    }

    /// Starts it again, on the same mailboxes.
    pub fn restart(&mut self) {
        self.stop();
        self.begin();
    }

    /// The password in a file for its owner alone.
    pub fn password_file(&self) -> PathBuf {
        let path = self.folder.path().join("password");
        fs::write(&path, format!("{PASSWORD}\n")).expect("a file");
        let private = fs::Permissions::from_mode(0o600);
        fs::set_permissions(&path, private).expect("a file");
        path
    }

    /// What it logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Dovecot {
    fn drop(&mut self) {
        self.stop();
    }
}

fn greets(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect_timeout(&address, GREETING) else {
        return false;
    };
    let _ = stream.set_read_timeout(Some(GREETING));
    let mut start = [0; 4];
    stream.read_exact(&mut start).is_ok() && start == *b"* OK"
}
