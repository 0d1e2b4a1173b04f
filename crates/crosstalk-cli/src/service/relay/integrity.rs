//! Whether what a relay keeps is sound: its store, and its attachments against their digests.

use crate::failure::Failure;
use crate::service::relay::archive::files_below;
use crosstalk_store::SqliteStore;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// An attachment that is not what its name says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Damaged {
    pub(crate) path: PathBuf,
    pub(crate) message: String,
}

/// What was found in a folder of attachments.
#[derive(Debug, Default)]
pub(crate) struct Blobs {
    /// How many attachments there are.
    pub(crate) count: u64,
    pub(crate) damaged: Vec<Damaged>,
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
    let store = SqliteStore::open_existing(copy)?
        .ok_or_else(|| Failure::Failed("the copy is gone".into()))?;
    match store.check()?.as_slice() {
        [] => Ok(()),
        found => Err(Failure::Failed(format!(
            "the copy of the store is damaged: {}",
            found.join("; ")
        ))),
    }
}

/// Reads every attachment of a folder, and compares it with the digest in its name. `told` hears how many were read.
pub(crate) fn check_blobs(folder: &Path, told: &mut dyn FnMut(u64)) -> Result<Blobs, Failure> {
    let mut found = Blobs::default();
    for path in files_below(folder)? {
        // What is being written has another name.
        let Some(wanted) = named(&path, folder) else {
            continue;
        };
        let shown = path.to_string_lossy().into_owned();
        match digest(&path) {
            Ok(is) if is == format!("sha256:{wanted}") => {}
            Ok(is) => found.damaged.push(Damaged {
                message: format!(
                    "the attachment {shown} is damaged: its bytes have the digest {is}"
                ),
                path,
            }),
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(Failure::Io(shown, e)),
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
