//! The backup of a relay: one tar file with the store, attachments, keys, trust and configuration; and the checks of its
//! parts.

use crate::clock;
use crate::failure::Failure;
use crate::service::relay::data::{DataFolder, REPLY_KEY, make_folder, private_file};
use crosstalk_envelope::ErrorCode;
use crosstalk_store::SqliteStore;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};
use tar::{Builder, EntryType, Header};

/// The name and version of the form.
const FORM: &str = "crosstalk.backup/1";
/// The first file of a backup, which says what it is.
const TITLE: &str = "backup.json";
/// The longest first file, in bytes.
const TITLE_BYTES: u64 = 64 * 1024;

/// What a backup says about itself.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct BackupTitle {
    schema: String,
    pub(crate) made_at: String,
    pub(crate) version: String,
}

/// The files of the relay's folder that a backup holds besides the store.
const FILES: [&str; 4] = ["trust.toml", "contacts.toml", REPLY_KEY, CONFIG];
const FOLDERS: [&str; 2] = ["keys", "blobs"];

fn io_at(path: &Path) -> impl FnOnce(io::Error) -> Failure {
    |e| Failure::at(path, e)
}

/// The configuration in a backup.
pub(crate) const CONFIG: &str = "relay.toml";

/// Writes a backup: `store` is a copy of the store, `config` the text of a configuration that is not in the folder;
/// everything else comes from the folder. `told` is called for each attachment.
pub(crate) fn write(
    data: &DataFolder,
    store: &Path,
    config: Option<&[u8]>,
    to: &File,
    told: &mut dyn FnMut(u64),
) -> Result<u64, Failure> {
    let title = BackupTitle {
        schema: FORM.to_owned(),
        made_at: clock::now().to_string(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let title = serde_json::to_vec_pretty(&title).map_err(|e| Failure::io(TITLE, e.into()))?;
    let mut tar = Builder::new(io::BufWriter::new(to));
    let mut head = header(u64::try_from(title.len()).unwrap_or(0));
    tar.append_data(&mut head, TITLE, title.as_slice())
        .map_err(io_at(Path::new(TITLE)))?;
    append(&mut tar, store, Path::new("relay.db"))?;
    if let Some(config) = config {
        let mut head = header(u64::try_from(config.len()).unwrap_or(0));
        tar.append_data(&mut head, CONFIG, config)
            .map_err(io_at(Path::new(CONFIG)))?;
    }
    for name in FILES {
        let path = data.folder().join(name);
        let is_replaced = name == CONFIG && config.is_some();
        if path.is_file() && !is_replaced {
            append(&mut tar, &path, Path::new(name))?;
        }
    }
    let mut attachments = 0;
    for folder in FOLDERS {
        for path in files_below(&data.folder().join(folder))? {
            let Ok(name) = path.strip_prefix(data.folder()) else {
                continue;
            };
            if !is_wanted(name) {
                continue;
            }
            match append(&mut tar, &path, name) {
                Ok(()) => {}
                // An attachment that nobody needs any more may go while the copy is made.
                Err(fault)
                    if fault
                        .io_error()
                        .is_some_and(|e| e.kind() == io::ErrorKind::NotFound) =>
                {
                    continue;
                }
                Err(fault) => return Err(fault),
            }
            if folder == "blobs" {
                attachments += 1;
                told(attachments);
            }
        }
    }
    let out = tar
        .into_inner()
        .and_then(|b| b.into_inner().map_err(|e| e.into_error()));
    let out = out.map_err(|e| Failure::io("the backup", e))?;
    out.sync_all().map_err(|e| Failure::io("the backup", e))?;
    Ok(attachments)
}

fn header(size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_size(size);
    header.set_mode(0o600);
    header.set_mtime(u64::try_from(clock::now().as_millis() / 1000).unwrap_or(0));
    header
}

fn append(tar: &mut Builder<impl io::Write>, path: &Path, name: &Path) -> Result<(), Failure> {
    let file = File::open(path).map_err(io_at(path))?;
    let size = file.metadata().map_err(io_at(path))?.len();
    // A file that grows while it is read is not longer in the backup than its header says.
    tar.append_data(&mut header(size), name, file.take(size))
        .map_err(io_at(path))
}

/// All files below a folder, in order; none if it is not there.
pub(crate) fn files_below(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(io_at(&folder)(e)),
        };
        for entry in entries {
            let entry = entry.map_err(io_at(&folder))?;
            let kind = entry.file_type().map_err(io_at(&entry.path()))?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Whether a path may be in a backup: a file of the relay, and no way out of its folder.
fn is_wanted(path: &Path) -> bool {
    let parts: Option<Vec<&str>> = path
        .components()
        .map(|c| match c {
            Component::Normal(part) => part.to_str(),
            _ => None,
        })
        .collect();
    let is_plain = |part: &&str| !part.starts_with('.') && !part.is_empty();
    match parts.as_deref() {
        Some([only]) => *only == "relay.db" || FILES.contains(only),
        Some([folder, rest @ ..]) => {
            FOLDERS.contains(folder) && (1..=3).contains(&rest.len()) && rest.iter().all(is_plain)
        }
        _ => false,
    }
}

fn no_backup(what: &str) -> Failure {
    Failure::malformed(format!("this is no backup of a relay: {what}"))
}

/// Unpacks a backup into a folder that is empty.
pub(crate) fn unpack(from: &Path, into: &Path) -> Result<BackupTitle, Failure> {
    let file = File::open(from).map_err(io_at(from))?;
    let mut tar = tar::Archive::new(io::BufReader::new(file));
    let mut title = None;
    let mut has_store = false;
    let broken = |e: io::Error| no_backup(&format!("it can't be read ({e}); is it whole?"));
    for entry in tar.entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        let name = entry.path().map_err(broken)?.into_owned();
        if title.is_none() {
            let mut text = String::new();
            let read = entry.by_ref().take(TITLE_BYTES).read_to_string(&mut text);
            let found: Option<BackupTitle> =
                read.ok().and_then(|_| serde_json::from_str(&text).ok());
            match found.filter(|_| name == Path::new(TITLE)) {
                Some(found) if found.schema == FORM => title = Some(found),
                Some(found) => {
                    return Err(Failure::refused(
                        ErrorCode::Unsupported,
                        format!(
                            "the backup has the form {}, and this program reads {FORM}",
                            found.schema
                        ),
                    )
                    .help("use a newer one"));
                }
                None => return Err(no_backup("it does not begin like one")),
            }
            continue;
        }
        let is_file = entry.header().entry_type() == EntryType::Regular;
        if !is_file || !is_wanted(&name) {
            return Err(no_backup(&format!(
                "`{}` does not belong into one",
                name.display()
            )));
        }
        has_store |= name == Path::new("relay.db");
        let path = into.join(&name);
        if let Some(folder) = path.parent() {
            make_folder(folder).map_err(io_at(folder))?;
        }
        let out = private_file().create_new(true).open(&path);
        let mut out = out.map_err(io_at(&path))?;
        let size = entry.header().size().map_err(broken)?;
        let written = io::copy(&mut entry, &mut out).map_err(broken)?;
        if written != size {
            return Err(no_backup("it ends in the middle of a file"));
        }
        out.sync_all().map_err(io_at(&path))?;
    }
    match title {
        Some(title) if has_store => Ok(title),
        Some(_) => Err(no_backup("there is no store in it")),
        None => Err(no_backup("it is empty")),
    }
}

/// An attachment that is not what its name says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DamagedAttachment {
    pub(crate) path: PathBuf,
    pub(crate) message: String,
}

/// The result of checking a folder of attachments.
#[derive(Debug, Default)]
pub(crate) struct CheckedAttachments {
    /// How many attachments there are.
    pub(crate) count: u64,
    pub(crate) damaged: Vec<DamagedAttachment>,
}

/// The digest that the path of an attachment names: the last 64 hexadecimal digits of it.
fn named(path: &Path, folder: &Path) -> Option<String> {
    let inner = path.strip_prefix(folder).ok()?.to_str()?;
    let name = path.file_name()?.to_str()?;
    let is_hex = |text: &str| {
        text.len() == 64
            && text
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    let start = name.len().checked_sub(64).and_then(|at| name.get(at..));
    // The first digits may be the name of a folder.
    let joined: String = inner.chars().filter(|c| c.is_ascii_hexdigit()).collect();
    start
        .filter(|t| is_hex(t))
        .map(str::to_owned)
        .or_else(|| is_hex(&joined).then_some(joined))
}

/// A copy that is not sound is no backup.
pub(crate) fn check_copy(copy: &Path) -> Result<(), Failure> {
    let store =
        SqliteStore::open_existing(copy)?.ok_or_else(|| Failure::failed("the copy is gone"))?;
    match store.check()?.as_slice() {
        [] => Ok(()),
        found => Err(Failure::failed(format!(
            "the copy of the store is damaged: {}",
            found.join("; ")
        ))),
    }
}

/// Reads every attachment of a folder, and compares it with the digest in its name. `told` hears how many were read.
pub(crate) fn check_blobs(
    folder: &Path,
    told: &mut dyn FnMut(u64),
) -> Result<CheckedAttachments, Failure> {
    let mut found = CheckedAttachments::default();
    for path in files_below(folder)? {
        // A file that is still being written has another name.
        let Some(wanted) = named(&path, folder) else {
            continue;
        };
        let shown = path.to_string_lossy().into_owned();
        match digest(&path) {
            Ok(is) if is == format!("sha256:{wanted}") => {}
            Ok(is) => found.damaged.push(DamagedAttachment {
                message: format!(
                    "the attachment {shown} is damaged: its bytes have the digest {is}"
                ),
                path,
            }),
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(Failure::io(shown, e)),
        }
        found.count += 1;
        told(found.count);
    }
    Ok(found)
}

/// The digest of a file, whatever its size.
fn digest(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    let (mut file, mut buffer) = (File::open(path)?, vec![0; 1 << 16]);
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        hash.update(buffer.get(..count).unwrap_or_default());
    }
    let bytes: [u8; 32] = hash.finalize().into();
    let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    Ok(format!("sha256:{hex}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_a_relay_come_out_of_a_backup() {
        for name in [
            "relay.db",
            "trust.toml",
            "contacts.toml",
            "email.key",
            "keys/a.pem",
            "blobs/ab/cd",
            "blobs/sha256-ab",
        ] {
            assert!(is_wanted(Path::new(name)), "{name}");
        }
        for name in [
            "../x",
            "/etc/passwd",
            "keys/../../x",
            "other",
            "keys",
            "keys/.x",
            "relay.db/x",
            "blobs/a/b/c/d",
        ] {
            assert!(!is_wanted(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn archive_restores_its_files_and_detects_a_cut() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::at(folder.path().join("relay"));
        data.make().unwrap();
        std::fs::write(data.store(), "store").unwrap();
        std::fs::write(data.folder().join("trust.toml"), "x").unwrap();
        std::fs::write(
            data.config(),
            "# Another relay was started with --config.\n",
        )
        .unwrap();
        std::fs::create_dir_all(data.blobs().join("ab")).unwrap();
        std::fs::write(data.blobs().join("ab/cdef"), vec![7; 5000]).unwrap();
        let file = folder.path().join("backup.tar");
        let mut told = 0;
        let count = write(
            &data,
            &data.store(),
            Some(b"name = \"a.example\"\n"),
            &File::create(&file).unwrap(),
            &mut |n| told = n,
        )
        .unwrap();
        assert_eq!((count, told), (1, 1));
        let into = folder.path().join("new");
        std::fs::create_dir(&into).unwrap();
        unpack(&file, &into).unwrap();
        assert_eq!(
            std::fs::read(into.join("blobs/ab/cdef")).unwrap(),
            vec![7; 5000]
        );
        assert_eq!(
            std::fs::read_to_string(into.join("relay.db")).unwrap(),
            "store"
        );
        assert_eq!(
            std::fs::read_to_string(into.join(CONFIG)).unwrap(),
            "name = \"a.example\"\n"
        );
        let whole = std::fs::read(&file).unwrap();
        for cut in [0, 100, 700, 1500, 4000] {
            std::fs::write(&file, &whole[..cut]).unwrap();
            let into = tempfile::tempdir().unwrap();
            let fault = unpack(&file, into.path()).unwrap_err();
            assert_eq!(fault.exit(), ErrorCode::Format.into(), "{cut}: {fault}");
        }
    }
}

#[cfg(test)]
mod integrity_tests {
    use super::*;
    use crosstalk_envelope::meta::Digest;

    #[test]
    fn a_damaged_attachment_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let hex = Digest::of(b"hello").to_string().replace("sha256:", "");
        let one = folder.path().join(&hex);
        let (start, rest) = hex.split_at(2);
        let nested = folder.path().join(start).join(rest);
        std::fs::create_dir(folder.path().join(start)).unwrap();
        std::fs::write(&one, "hello").unwrap();
        std::fs::write(&nested, "hello").unwrap();
        std::fs::write(folder.path().join("upload.tmp"), "x").unwrap();
        let sound = check_blobs(folder.path(), &mut |_| {}).unwrap();
        assert_eq!((sound.count, sound.damaged.len()), (2, 0));
        std::fs::write(&nested, "hullo").unwrap();
        let found = check_blobs(folder.path(), &mut |_| {}).unwrap();
        assert_eq!((found.count, found.damaged.len()), (2, 1));
        assert_eq!(found.damaged[0].path, nested);
    }
}
