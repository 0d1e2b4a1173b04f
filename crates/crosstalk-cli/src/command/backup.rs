//! `crosstalk backup`: a copy of everything that a relay keeps, while it runs.

use crate::console::{Console, GREEN, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::shown_path;
use crate::relay::archive;
use crate::relay::data::DataArgument;
use crate::relay::progress::Progress;
use clap::Args;
use crosstalk_store::SqliteStore;
use std::path::{Path, PathBuf};

/// Copy everything that a relay keeps into one file, while it runs
///
/// The store as it is at one moment, attachments, keys, trust and configuration, as a tar file for its owner alone. The copy
/// is checked before the file is there. Whoever has it has the messages, and the key of the relay.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk backup /var/backups/relay-$(date +%F).tar\n  crosstalk backup --data /var/lib/crosstalk relay.tar\n\nExit codes: 0 the backup is there and sound, 1 it is not."
)]
pub(crate) struct Backup {
    /// The file to write
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Replace a file that is there
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    data: DataArgument,
}

impl Backup {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let data = self.data.folder()?;
        data.require()?;
        let shown = self.file.to_string_lossy().into_owned();
        if self.file.exists() && !self.force {
            return Err(Failure::Failed(format!(
                "{shown} is there already: choose another name, or replace it with --force"
            )));
        }
        let folder = match self.file.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let at = |e| Failure::Io(folder.to_string_lossy().into_owned(), e);
        // Both are for their owner alone, and gone if anything fails.
        let place = tempfile::Builder::new()
            .prefix(".crosstalk-backup")
            .tempdir_in(folder)
            .map_err(at)?;
        let copy = place.path().join("relay.db");
        let progress = Progress::start("copying the store");
        let store = SqliteStore::open_existing(data.store())?
            .ok_or_else(|| Failure::Failed("the store is gone".into()))?;
        store.backup_to(&copy, &mut |done, all| progress.at(done, all))?;
        drop(store);
        progress.next("checking the copy");
        check(&copy)?;
        progress.next("packing");
        let file = tempfile::Builder::new()
            .prefix(".crosstalk-backup")
            .tempfile_in(folder)
            .map_err(at)?;
        let attachments = archive::write(&data, &copy, file.as_file(), &mut |n| progress.count(n))?;
        progress.end();
        file.persist(&self.file)
            .map_err(|e| Failure::Io(shown.clone(), e.error))?;
        sync(folder);
        let size = std::fs::metadata(&self.file).map_or(0, |m| m.len());
        console.talk(&format!(
            "{} in {}: {} KiB, {attachments} attachments. `crosstalk restore {} --data DIR` brings it back.\n",
            styled(GREEN, "Backed up"),
            shown_path(&shown),
            size.div_ceil(1024),
            shown_path(&shown)
        ))?;
        Ok(Exit::SUCCESS)
    }
}

/// A copy that is not sound is no backup.
pub(super) fn check(copy: &Path) -> Result<(), Failure> {
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

/// The name of the file is on disk, too, where that can be asked for.
fn sync(folder: &Path) {
    if let Ok(folder) = std::fs::File::open(folder) {
        let _ = folder.sync_all();
    }
}
