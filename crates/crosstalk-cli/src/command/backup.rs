//! `crosstalk backup`: copies the data of a running relay into one file.

use crate::console::{Console, GREEN, styled};
use crate::failure::Failure;
use crate::input::shown_path;
use crate::service::relay::archive;
use crate::service::relay::archive::check_copy;
use crate::service::relay::data::{DataArgument, DataFolder};
use crate::service::relay::progress::ProgressLine;
use crate::shell;
use clap::Args;
use crosstalk_relay::file::{MAX_FILE_BYTES, open_regular, read_bounded};
use crosstalk_store::SqliteStore;
use std::path::{Path, PathBuf};

/// Copy everything that a relay keeps into one file, while it runs
///
/// The backup has the store as it is at one moment, attachments, keys, trust and configuration, as a tar file for its owner alone.
/// A configuration that the relay was given with `serve --config` is in it as relay.toml; certificates and files with tokens that
/// it names are not. The command checks the copy before it puts the file in place. Protect the backup as you protect the messages
/// and the key of the relay: it contains them.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk backup /var/backups/relay-$(date +%F).tar\n  crosstalk backup --data /var/lib/crosstalk relay.tar\n  crosstalk backup --config /etc/crosstalk/relay.toml relay.tar\n\nExit codes: 0 the backup is there and sound, 1 it is not."
)]
pub(crate) struct Backup {
    /// The file to write
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Replace a file that is there
    #[arg(long)]
    force: bool,
    /// The configuration of the relay, if it is neither in the data folder nor the one that the relay was last started with
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    data: DataArgument,
}

impl Backup {
    pub(super) fn run(self, console: &mut Console) -> Result<(), Failure> {
        let data = self.data.folder()?;
        data.require()?;
        let config = Configuration::find(&data, self.config.as_deref())?;
        let shown = self.file.to_string_lossy().into_owned();
        if self.file.exists() && !self.force {
            return Err(Failure::failed(format!("{shown} already exists"))
                .help("choose another name, or replace it with --force"));
        }
        let folder = match self.file.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let at = |e| Failure::at(folder, e);
        // Both are for their owner alone, and gone if anything fails.
        let place = tempfile::Builder::new()
            .prefix(".crosstalk-backup")
            .tempdir_in(folder)
            .map_err(at)?;
        let copy = place.path().join("relay.db");
        let progress = ProgressLine::start("copying the store");
        let store = SqliteStore::open_existing(data.store())?
            .ok_or_else(|| Failure::failed("the store is gone"))?;
        store.backup_to(&copy, &mut |done, all| progress.at(done, all))?;
        drop(store);
        progress.next("checking the copy");
        check_copy(&copy)?;
        progress.next("packing");
        let file = tempfile::Builder::new()
            .prefix(".crosstalk-backup")
            .tempfile_in(folder)
            .map_err(at)?;
        let attachments = archive::write(&data, &copy, config.text(), file.as_file(), &mut |n| {
            progress.count(n)
        })?;
        progress.end();
        file.persist(&self.file)
            .map_err(|e| Failure::at(&self.file, e.error))?;
        sync(folder);
        let size = std::fs::metadata(&self.file).map_or(0, |m| m.len());
        console.talk(&format!(
            "{} in {}: {} KiB, {attachments} attachments. `crosstalk restore {} --data DIR` restores it.\n",
            styled(GREEN, "Backed up"),
            shown_path(&shown),
            size.div_ceil(1024),
            shown_path(&shown)
        ))?;
        config.tell(&data, console)?;
        if matches!(config, Configuration::Unknown) {
            let file = shell::word(&shown);
            let again = self
                .data
                .command(&format!("backup {file} --force --config CONFIG"));
            console.warning(&format!(
                "there is no configuration in this backup, and none is known: if the relay is started with `serve --config \
                 CONFIG`, run `{again}`"
            ))?;
        }
        Ok(())
    }
}

enum Configuration {
    /// The one in the data folder, or none because the relay has none.
    OfFolder,
    /// A file outside the data folder.
    Elsewhere(PathBuf, Vec<u8>),
    /// A file outside the data folder that can't be read, and why.
    Unreadable(PathBuf, Failure),
    /// No file in the folder, and no record of a start names one.
    Unknown,
}

impl Configuration {
    fn find(data: &DataFolder, named: Option<&Path>) -> Result<Self, Failure> {
        let read = |path: &Path| {
            let read = open_regular(path).and_then(|f| read_bounded(&f, MAX_FILE_BYTES));
            read.map_err(|e| Failure::at(path, e))
        };
        if let Some(path) = named {
            return Ok(Self::Elsewhere(path.to_owned(), read(path)?));
        }
        let last = data.last_start();
        Ok(match last.config {
            Some(path) => match read(&path) {
                Ok(text) => Self::Elsewhere(path, text),
                Err(fault) => Self::Unreadable(path, fault),
            },
            None if last.name.is_none() && !data.config().exists() => Self::Unknown,
            None => Self::OfFolder,
        })
    }

    fn text(&self) -> Option<&[u8]> {
        match self {
            Self::Elsewhere(_, text) => Some(text),
            _ => None,
        }
    }

    /// Says which configuration the backup has, if it is not the one in the folder.
    fn tell(&self, data: &DataFolder, console: &mut Console) -> Result<(), Failure> {
        match self {
            Self::Elsewhere(path, _) => {
                let path = path.to_string_lossy();
                let mut text = format!("The configuration {} is in it as relay.toml", shown_path(&path));
                if data.config().exists() {
                    text.push_str("; the relay.toml of the data folder, which the relay does not use, is not");
                }
                console.talk(&format!("{text}.\n"))
            }
            Self::Unreadable(path, fault) => console.warning(&format!(
                "the configuration {}, with which the relay was started, is not in this backup: {fault}. Copy it yourself, or \
                 back up again as a user who can read it",
                shown_path(&path.to_string_lossy()),
            )),
            Self::OfFolder | Self::Unknown => Ok(()),
        }
    }
}

/// Syncs the folder, so that the name of the file is on disk.
fn sync(folder: &Path) {
    if let Ok(folder) = std::fs::File::open(folder) {
        let _ = folder.sync_all();
    }
}
