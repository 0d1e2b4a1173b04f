//! The data folder of a relay: its store, attachments, keys, trust and settings.

use crate::failure::Failure;
use crate::input::shown_path;
use crate::service::relay::last_start::{self, FailedStart, LastStart};
use crate::service::signing::new_key;
use crate::{clock, shell};
use clap::Args;
use crosstalk_email::ReplyKey;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{Algorithm, Explanation, PrivateKey, PublicKey};
use crosstalk_protocol::audit::Note;
use crosstalk_relay::config::Config;
use crosstalk_relay::file::{MAX_FILE_BYTES, open_regular, read_bounded};
use crosstalk_relay::server::{CONSOLE_KEY, CONSOLE_LINK};
use crosstalk_store::{
    COPY_FOLDER, Home, KeyFileError, KeyStore, SqliteStore, TrustFile, require_own,
};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Which data folder is meant.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct DataArgument {
    /// The data folder of the relay; else the folder of CROSSTALK_HOME if a relay has its data there, or `relay` in it, or in
    /// the usual place of your system
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
}

impl DataArgument {
    /// A command that is recommended, on the folder that was named here.
    pub(crate) fn command(&self, words: &str) -> String {
        command(words, &[("--data", self.data.as_deref())])
    }

    /// The folder, whether or not it is there.
    pub(crate) fn folder(&self) -> Result<DataFolder, Failure> {
        let folder = match &self.data {
            Some(folder) => std::path::absolute(folder).map_err(|e| Failure::at(folder, e))?,
            None => within(Home::from_env()?.as_ref()),
        };
        Ok(DataFolder::at(folder))
    }
}

/// The data folder of the relay of a home: the home itself, if a relay has its data there, as on a server that runs nothing
/// else; otherwise `relay` in it.
fn within(home: &Path) -> PathBuf {
    let marks = ["relay.db", last_start::FILE];
    match marks.iter().any(|name| home.join(name).is_file()) {
        true => home.to_owned(),
        false => home.join("relay"),
    }
}

/// A command line that is recommended to the operator of a relay: what is to be done, and the files that it is about.
pub(crate) fn command(words: &str, options: &[(&str, Option<&Path>)]) -> String {
    let mut line = format!("crosstalk {words}");
    for (option, path) in options {
        if let Some(path) = path {
            line.push_str(&format!(
                " {option} {}",
                shell::word(&path.to_string_lossy())
            ));
        }
    }
    line
}

/// The data folder of a relay.
#[derive(Clone, Debug)]
pub(crate) struct DataFolder {
    folder: PathBuf,
}

/// What a relay makes in its folder besides its store.
#[cfg(unix)]
const OWN: [&str; 13] = [
    "blobs",
    COPY_FOLDER,
    REPLY_KEY,
    CONSOLE_KEY,
    CONSOLE_LINK,
    "keys",
    "relay.toml",
    "trust.toml",
    "contacts.toml",
    "serve.lock",
    last_start::FILE,
    "work",
    "damaged",
];

/// The key of the reply tokens in mails.
pub(crate) const REPLY_KEY: &str = "email.key";

/// How much of what a relay says about itself is read.
const MAX_SAID_BYTES: u64 = 512;

/// How often, and how many times, a claim is retried: other commands lock the folder for a moment to see whether a
/// relay runs.
const CLAIM_RHYTHM: Duration = Duration::from_millis(20);
const CLAIM_TRIES: u32 = 10;

/// The lock that says that a relay is running.
#[derive(Debug)]
pub(crate) struct FolderClaim {
    file: File,
}

/// Why a data folder can't be had alone.
#[derive(Debug)]
pub(crate) enum ClaimError {
    /// A relay runs on it; what it says about itself.
    Running(String),
    /// The disk says no.
    Disk(io::Error),
}

/// Resolves a relative path of a configuration in the folder of that file. Earlier versions used the working directory,
/// which still works for a file that exists only there.
fn placed(path: &Path, folder: &Path, working: &Path) -> PathBuf {
    let (own, former) = (folder.join(path), working.join(path));
    if own.exists() || !former.exists() {
        return own;
    }
    tracing::warn!(
        path = %path.display(),
        folder = %folder.display(),
        "a relative path in the configuration is found in the working directory alone; move it to the folder of the \
         configuration, or write an absolute path"
    );
    former
}

impl DataFolder {
    pub(crate) fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn shown(&self) -> String {
        shown_path(&self.folder.to_string_lossy()).into_owned()
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.folder.join("relay.db")
    }

    pub(crate) fn blobs(&self) -> PathBuf {
        self.folder.join("blobs")
    }

    /// The default configuration file.
    pub(crate) fn config(&self) -> PathBuf {
        self.folder.join("relay.toml")
    }

    /// A command that is recommended, on this folder: it works from any other one.
    pub(crate) fn command(&self, words: &str) -> String {
        command(words, &[("--data", Some(&self.folder))])
    }

    fn lock(&self) -> PathBuf {
        self.folder.join("serve.lock")
    }

    pub(crate) fn make(&self) -> Result<(), Failure> {
        for folder in [self.folder.clone(), self.blobs()] {
            make_folder(&folder).map_err(|e| Failure::at(&folder, e))?;
        }
        #[cfg(unix)]
        self.close_off().map_err(|e| Failure::at(&self.folder, e))?;
        Ok(())
    }

    /// Takes the rights of others away from a folder that was there before. One that holds anything else is left alone.
    #[cfg(unix)]
    fn close_off(&self) -> io::Result<()> {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&self.folder)?.permissions().mode();
        if mode & 0o1077 == 0 || mode & 0o1000 != 0 {
            return Ok(());
        }
        for entry in std::fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            let name = name.to_string_lossy();
            let is_store = ["relay.db", "relay.search.db"]
                .iter()
                .any(|s| name.starts_with(s));
            if !is_store && !OWN.contains(&&*name) {
                return Ok(());
            }
        }
        std::fs::set_permissions(&self.folder, std::fs::Permissions::from_mode(0o700))
    }

    /// A failure that says how to begin, if there is no store yet.
    pub(crate) fn require(&self) -> Result<(), Failure> {
        match self.store().is_file() {
            true => Ok(()),
            false => Err(Failure::failed(format!(
                "there is no relay in {}",
                self.folder.display()
            ))
            .help(format!(
                "`{}` creates one, and --data DIR names another folder",
                self.command("serve")
            ))),
        }
    }

    /// The store, to add to; it is made if there is none.
    pub(crate) fn open(&self) -> Result<SqliteStore, Failure> {
        self.make()?;
        let copying = self.folder.join(COPY_FOLDER);
        if copying.exists() {
            return Err(Failure::failed(format!(
                "a store is being copied into {}, or the copy was interrupted",
                self.shown()
            ))
            .help(format!(
                "start the same copy again, which goes on where it was, or remove {}",
                shell::word(&copying.to_string_lossy())
            )));
        }
        Ok(SqliteStore::open(self.store())?)
    }

    /// The configuration: the named file, else that of the folder, else the default.
    pub(crate) fn read_config(
        &self,
        named: Option<&Path>,
    ) -> Result<(Config, Option<PathBuf>), Failure> {
        let own = self.config();
        let file = match named {
            Some(file) => file,
            None if own.exists() => &own,
            None => return Ok((Config::default(), None)),
        };
        let shown = file.display();
        let at = |e| Failure::at(file, e);
        let opened = open_regular(file).map_err(at)?;
        // Anyone who can write the configuration can run programs.
        require_own(&opened, file).map_err(Failure::from)?;
        let text = read_bounded(&opened, MAX_FILE_BYTES).map_err(at)?;
        let text = String::from_utf8(text).map_err(|e| at(io::Error::other(e)))?;
        let mut config = Config::parse(&text).map_err(|fault| {
            let Explanation { what, help } = fault.explanation;
            Failure::malformed(format!("`{shown}`: {}", what.trim_end())).help(help)
        })?;
        let folder = file.parent().unwrap_or(Path::new(""));
        for path in config.paths_mut().filter(|p| p.is_relative()) {
            *path = placed(path, folder, Path::new(""));
        }
        Ok((config, Some(file.to_owned())))
    }

    /// The relay's own trust file.
    pub(crate) fn trust(&self) -> TrustFile {
        TrustFile::new(&Home::at(&self.folder))
    }

    fn keys(&self) -> KeyStore {
        KeyStore::new(&Home::at(&self.folder))
    }

    /// The key of the relay under a name; nothing if there is none.
    pub(crate) fn find_key(&self, name: &str) -> Result<Option<PrivateKey>, Failure> {
        let keys = self.keys();
        let stored = match keys.find(name) {
            Ok(stored) => stored,
            Err(KeyFileError::NotFound { .. }) => return Ok(None),
            Err(fault) => return Err(fault.into()),
        };
        let key = keys.load(&stored, || {
            let home = shell::word(&self.folder.to_string_lossy());
            Err(io::Error::other(format!(
                "the key of the relay is encrypted: decrypt it with `CROSSTALK_HOME={home} crosstalk key passphrase {name} \
                 --remove`"
            )))
        });
        Ok(Some(key?))
    }

    /// The key that a relay of this name starts with. It is made if there is none.
    pub(crate) fn find_or_make_key(&self, name: &str) -> Result<PrivateKey, Failure> {
        if let Some(key) = self.find_key(name)? {
            return Ok(key);
        }
        let made = new_key(Algorithm::Ed25519)?;
        self.keys().create(name, &made, None, clock::now())?;
        Ok(made)
    }

    /// A relay on a database of several does not make a key of its own: the others could not read its tokens.
    pub(crate) fn require_reply_key(&self) -> Result<(), Failure> {
        let path = self.folder.join(REPLY_KEY);
        match path.exists() {
            true => Ok(()),
            false => {
                let path = path.display();
                let what = format!("there is no {path}, which all relays on one database share");
                Err(Failure::failed(what).help(format!(
                    "copy it from the data folder of another relay; for the first one, make it: (umask 077; openssl rand -hex 32 > {path})"
                )))
            }
        }
    }

    /// The key of the reply tokens. It is made when the relay sends or receives mail for the first time.
    pub(crate) fn find_or_make_reply_key(&self) -> Result<ReplyKey, Failure> {
        let path = self.folder.join(REPLY_KEY);
        let at = |fault| Failure::at(&path, fault);
        match open_regular(&path) {
            Ok(file) => {
                require_private(&file, &path)?;
                let text = read_bounded(&file, MAX_FILE_BYTES).map_err(at)?;
                ReplyKey::parse(&String::from_utf8_lossy(&text)).ok_or_else(|| {
                    Failure::failed(format!("{} holds no key of reply tokens", path.display())).help(
                        "put it back from a backup, or remove it: then nobody can answer the mails that were sent before",
                    )
                })
            }
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => {
                let mut bytes = [0; 32];
                getrandom::fill(&mut bytes).map_err(|e| {
                    Failure::failed(format!("the system gives no random numbers: {e}"))
                })?;
                let key = ReplyKey::new(bytes);
                let mut file = private_file().create_new(true).open(&path).map_err(at)?;
                let written = file.write_all(key.to_text().as_bytes());
                written.and_then(|()| file.sync_all()).map_err(at)?;
                let folder = File::open(&self.folder).and_then(|folder| folder.sync_all());
                folder.map_err(at)?;
                Ok(key)
            }
            Err(fault) => Err(at(fault)),
        }
    }

    /// Fails if the log is signed in this name, and the key is gone. With a new key, those who watch the log would take the
    /// relay for another one.
    pub(crate) fn require_log_key(&self, name: &str, store: &SqliteStore) -> Result<(), Failure> {
        let sealed = store.checkpoint()?;
        let signed = sealed.and_then(|s| Note::parse(&s.note).and_then(|n| n.claim()).ok());
        if signed.is_none_or(|claim| claim.origin != name) || self.find_key(name)?.is_some() {
            return Ok(());
        }
        let (keys, home) = (self.folder.join("keys"), self.folder.to_string_lossy());
        let name = escape(name);
        Err(Failure::failed(format!(
            "the log of the relay is signed with the key of `{name}`, and that key is not in {}",
            keys.display()
        ))
        .help(format!(
            "put its files back from a backup of the relay. If the key is lost for good, create a \
             new one (`CROSSTALK_HOME={} crosstalk key new {name}`), and tell everyone who \
             watches the log or pinned the key",
            shell::word(&home),
        )))
    }

    /// The key that the relay of this folder has signed with. It is never created here: signatures of another key could
    /// not be checked.
    pub(crate) fn require_key(&self, name: &str) -> Result<PrivateKey, Failure> {
        self.find_key(name)?.ok_or_else(|| {
            Failure::failed(format!(
                "the key of the relay `{}` is not in {}, so its log can't be signed",
                escape(name),
                self.folder.join("keys").display()
            ))
            .help(format!(
                "put its files back from a backup of \
                 the relay; or start the relay once with its options (`{}`), if it never ran here",
                self.command("serve")
            ))
        })
    }

    /// The name of the relay of this folder: from the last start, else from the signed log, else from the
    /// configuration.
    pub(crate) fn relay_name(&self, store: &SqliteStore) -> Result<String, Failure> {
        if let Some(name) = self.last_start().name {
            return Ok(name);
        }
        let sealed = store.checkpoint()?;
        let signed = sealed.and_then(|s| Note::parse(&s.note).and_then(|n| n.claim()).ok());
        match signed {
            Some(claim) => Ok(claim.origin),
            None => Ok(self.read_config(None)?.0.name),
        }
    }

    /// What the last start of a relay on this folder left.
    pub(crate) fn last_start(&self) -> LastStart {
        LastStart::read(&self.folder)
    }

    /// Notes that a start failed, for `serve --health`. While a relay runs on the folder, its own start is what counts.
    pub(crate) fn note_failure(&self, failure: FailedStart) {
        if !self.folder.is_dir() {
            return;
        }
        if let Ok(_alone) = self.claim() {
            // Where it can't be written, the message of the failure is all there is.
            let _ = self.last_start().and_failed(failure).write(&self.folder);
        }
    }

    /// Reads every key and the trust file. Encrypted keys are not decrypted.
    pub(crate) fn check_keys(&self) -> Result<(), Failure> {
        let keys = self.keys();
        let listing = keys.list()?;
        if let Some(problem) = listing.problems.into_iter().next() {
            return Err(problem.into());
        }
        for key in &listing.keys {
            if !keys.is_encrypted(key)? {
                keys.load(key, || Err(io::Error::other("it is encrypted")))?;
            }
        }
        self.trust().read()?;
        Ok(())
    }

    /// The public keys of the relay: the one of now, and those before it.
    pub(crate) fn public_keys(&self) -> Result<Vec<PublicKey>, Failure> {
        let listing = self.keys().list()?;
        Ok(listing.keys.iter().map(|k| k.facts.public).collect())
    }

    /// The line that the last relay wrote into the lock file; the relay may have ended. Reading takes no lock, so that
    /// a starting relay is not blocked.
    pub(crate) fn last_said(&self) -> io::Result<Option<String>> {
        let mut said = String::new();
        match open_regular(&self.lock()) {
            Ok(file) => file.take(MAX_SAID_BYTES).read_to_string(&mut said)?,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(fault) => return Err(fault),
        };
        Ok(Some(said.trim().to_owned()))
    }

    /// Whether a relay runs on this folder.
    pub(crate) fn is_running(&self) -> io::Result<bool> {
        let file = match open_regular(&self.lock()) {
            Ok(file) => file,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(fault) => return Err(fault),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(fault)) => Err(fault),
        }
    }

    /// Claims the folder, or fails with `help` if a relay runs on it.
    pub(crate) fn require_stopped(&self, help: &str) -> Result<FolderClaim, Failure> {
        self.claim().map_err(|fault| match fault {
            ClaimError::Running(said) => {
                let process = match said.is_empty() {
                    true => String::new(),
                    false => format!(" ({said})"),
                };
                let folder = self.folder.display();
                Failure::failed(format!("a relay is already running on {folder}{process}"))
                    .help(help)
            }
            ClaimError::Disk(fault) => Failure::at(&self.folder, fault),
        })
    }

    /// Claims the folder for one relay, until the lock is dropped.
    pub(crate) fn claim(&self) -> Result<FolderClaim, ClaimError> {
        let path = self.lock();
        let mut options = private_file();
        let file = options.read(true).create(true).truncate(false).open(&path);
        let file = file.map_err(ClaimError::Disk)?;
        let mut locked = file.try_lock();
        for _ in 1..CLAIM_TRIES {
            if !matches!(locked, Err(TryLockError::WouldBlock)) {
                break;
            }
            std::thread::sleep(CLAIM_RHYTHM);
            locked = file.try_lock();
        }
        match locked {
            Ok(()) => {
                // What a relay that was killed said about itself.
                let _ = file.set_len(0);
                Ok(FolderClaim { file })
            }
            Err(TryLockError::WouldBlock) => {
                let mut said = String::new();
                // Where it can't be read, nothing is said.
                let _ = (&file).take(MAX_SAID_BYTES).read_to_string(&mut said);
                Err(ClaimError::Running(said.trim().to_owned()))
            }
            Err(TryLockError::Error(fault)) => Err(ClaimError::Disk(fault)),
        }
    }
}

impl FolderClaim {
    /// Says where it is, for others who try to start a relay here.
    pub(crate) fn tell(&mut self, text: &str) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(text.as_bytes())
    }
}

/// Fails if others can read a secret file.
fn require_private(file: &File, path: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = file.metadata().map_err(|e| Failure::at(path, e))?;
    let mode = mode.permissions().mode() & 0o777;
    match mode & 0o077 {
        0 => Ok(()),
        _ => Err(Failure::failed(format!(
            "{} has the mode {mode:o}: others on this machine can read it or write it",
            path.display()
        ))
        .help(format!(
            "chmod 600 {}",
            shell::word(&path.to_string_lossy())
        ))),
    }
}

/// How a file for its owner alone is written.
pub(crate) fn private_file() -> OpenOptions {
    let mut options = File::options();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Makes a folder for its owner alone.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_relay_at_a_time_and_the_second_hears_of_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::at(folder.path().join("relay"));
        assert!(data.require().is_err());
        data.make().unwrap();
        let mut first = data.claim().unwrap();
        first.tell("process 7, http://127.0.0.1:1").unwrap();
        match data.claim() {
            Err(ClaimError::Running(said)) => assert_eq!(said, "process 7, http://127.0.0.1:1"),
            other => panic!("{other:?}"),
        }
        drop(first);
        assert!(data.claim().is_ok());
    }

    #[test]
    fn home_that_is_a_data_folder_is_used_itself() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(within(home.path()), home.path().join("relay"));
        std::fs::write(home.path().join("relay.db"), "").unwrap();
        assert_eq!(within(home.path()), home.path());
    }

    #[test]
    fn a_key_is_made_once() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::at(folder.path().to_owned());
        let first = data.find_or_make_key("relay.example").unwrap();
        let again = data.find_or_make_key("relay.example").unwrap();
        assert_eq!(again.public(), first.public());
        let fault = data.require_key("other.example").unwrap_err().to_string();
        assert!(fault.contains("other.example"), "{fault}");
        let other = data.find_or_make_key("other.example").unwrap();
        assert_ne!(other.public(), first.public());
        assert_eq!(
            data.require_key("other.example").unwrap().public(),
            other.public()
        );
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let keys = std::fs::read_dir(folder.path().join("keys")).unwrap();
            let private: Vec<_> = keys
                .flatten()
                .filter(|e| e.file_name().to_string_lossy().ends_with(".pem"))
                .collect();
            assert_eq!(private.len(), 2);
            for file in private {
                assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
            }
        }
    }

    #[test]
    fn reply_key_is_made_once_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::at(folder.path().to_owned());
        let missing = data.require_reply_key().unwrap_err().to_string();
        assert!(
            missing.contains("all relays on one database share"),
            "{missing}"
        );
        let first = data.find_or_make_reply_key().unwrap();
        assert!(data.require_reply_key().is_ok());
        assert_eq!(data.find_or_make_reply_key().unwrap(), first);
        let path = folder.path().join(REPLY_KEY);
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let fault = data.find_or_make_reply_key().unwrap_err().to_string();
        assert!(fault.contains("chmod 600"), "{fault}");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "ab").unwrap();
        assert!(data.find_or_make_reply_key().is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_configuration_that_others_can_write_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::at(folder.path().to_owned());
        std::fs::write(data.config(), "name = \"a.example\"\n").unwrap();
        for mode in [0o622, 0o620, 0o666] {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(data.config(), mode).unwrap();
            let fault = data.read_config(None).unwrap_err().to_string();
            assert!(fault.contains("chmod 600"), "{fault}");
            assert!(data.read_config(Some(&data.config())).is_err());
        }
        let mode = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(data.config(), mode).unwrap();
        assert!(data.read_config(None).is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_was_there_is_closed_off_unless_it_is_shared_with_others() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::at(folder.path().join("relay"));
        let open = |mode| {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(data.folder(), mode).unwrap();
        };
        let mode = || {
            std::fs::metadata(data.folder())
                .unwrap()
                .permissions()
                .mode()
                & 0o7777
        };
        std::fs::create_dir(data.folder()).unwrap();
        open(0o755);
        data.make().unwrap();
        assert_eq!(mode(), 0o700);
        open(0o755);
        std::fs::write(data.store(), "").unwrap();
        std::fs::write(data.config(), "").unwrap();
        data.make().unwrap();
        assert_eq!(mode(), 0o700);
        open(0o1777);
        data.make().unwrap();
        assert_eq!(mode(), 0o1777);
        open(0o755);
        std::fs::write(data.folder().join("letter.txt"), "").unwrap();
        data.make().unwrap();
        assert_eq!(mode(), 0o755);
    }

    #[test]
    fn relative_paths_belong_to_the_folder_of_the_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let (own, working) = (folder.path().join("own"), folder.path().join("working"));
        for place in [&own, &working] {
            std::fs::create_dir(place).unwrap();
            std::fs::write(place.join("both"), "").unwrap();
        }
        std::fs::write(working.join("old"), "").unwrap();
        let place = |name: &str| placed(Path::new(name), &own, &working);
        assert_eq!(place("both"), own.join("both"));
        assert_eq!(place("neither"), own.join("neither"));
        assert_eq!(place("old"), working.join("old"));
        let data = DataFolder::at(own.clone());
        std::fs::write(
            data.config(),
            "[[watch]]\nfolder = \"drop\"\naddresses = [\"bot://x\"]\n",
        )
        .unwrap();
        let config = data.read_config(None).unwrap().0;
        assert_eq!(config.watches[0].folder, own.join("drop"));
    }

    #[test]
    fn the_configuration_of_the_folder_counts_if_no_other_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::at(folder.path().to_owned());
        assert_eq!(data.read_config(None).unwrap().0, Config::default());
        std::fs::write(data.config(), "name = \"a.example\"\n").unwrap();
        assert_eq!(data.read_config(None).unwrap().0.name, "a.example");
        let other = folder.path().join("other.toml");
        std::fs::write(&other, "nam = 3\n").unwrap();
        let fault = data.read_config(Some(&other)).unwrap_err();
        assert!(fault.to_string().contains("other.toml"), "{fault}");
        assert_eq!(fault.exit().code(), crate::exit::FORMAT);
    }
}
