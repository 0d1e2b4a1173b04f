//! `crosstalk restore`: a relay out of its backup.

use super::backup::check;
use crate::clock;
use crate::console::{Console, GREEN, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::shown_path;
use crate::relay::archive;
use crate::relay::data::{Data, DataArgument, NotAlone, make_folder};
use crate::relay::progress::Progress;
use crate::relay::sound::check_blobs;
use clap::Args;
use std::path::{Path, PathBuf};

/// Bring a relay back out of a backup
///
/// The backup is unpacked beside the data folder and checked, and only then put in its place. With --force, what was there
/// is moved away, not erased.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk restore relay.tar --data /var/lib/crosstalk\n  crosstalk restore relay.tar --force\n\nExit codes: 0 it is back, 1 there is a relay already or the backup is damaged,\n12 this is no backup."
)]
pub(crate) struct Restore {
    /// The backup
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Put it in the place of a relay that is there; that one is moved away
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    data: DataArgument,
}

impl Restore {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let data = self.data.folder()?;
        let is_there = data.folder().exists() && has_something(data.folder())?;
        if is_there && !self.force {
            return Err(Failure::Failed(format!(
                "there is something in {} already: restore to another folder with --data, or move it away with --force",
                data.folder().display()
            )));
        }
        // A relay that runs would go on writing to what is moved away.
        let running = match is_there {
            true => Some(claim(&data)?),
            false => None,
        };
        let parent = data.folder().parent().unwrap_or(Path::new("."));
        let at = |path: &Path| {
            let shown = path.to_string_lossy().into_owned();
            move |e| Failure::Io(shown, e)
        };
        make_folder(parent).map_err(at(parent))?;
        let place = tempfile::Builder::new()
            .prefix(".crosstalk-restore")
            .permissions(own())
            .tempdir_in(parent)
            .map_err(at(parent))?;
        let progress = Progress::start("unpacking");
        let title = archive::unpack(&self.file, place.path())?;
        progress.next("checking");
        let new = Data::at(place.path().to_owned());
        check(&new.store())?;
        let blobs = check_blobs(&new.blobs(), &mut |n| progress.count(n))?;
        progress.end();
        if let Some(damaged) = blobs.damaged.first() {
            return Err(Failure::Failed(format!(
                "the backup is damaged, and nothing was changed: {}",
                damaged.message
            )));
        }
        let moved = match is_there {
            true => Some(move_away(data.folder())?),
            false => {
                // An empty folder may stand in the way.
                let _ = std::fs::remove_dir(data.folder());
                None
            }
        };
        let place = place.keep();
        if let Err(e) = std::fs::rename(&place, data.folder()) {
            if let Some(moved) = &moved {
                // What was there is put back.
                let _ = std::fs::rename(moved, data.folder());
            }
            let _ = std::fs::remove_dir_all(&place);
            return Err(Failure::Io(data.folder().to_string_lossy().into_owned(), e));
        }
        drop(running);
        data.make()?;
        console.talk(&format!(
            "{} in {}: as it was on {}, {} attachments.\n",
            styled(GREEN, "Restored"),
            data.shown(),
            crosstalk_envelope::unicode::escape(&title.made_at),
            blobs.count
        ))?;
        if let Some(moved) = moved {
            let moved = moved.to_string_lossy();
            console.talk(&format!(
                "What was there before is in {}.\n",
                shown_path(&moved)
            ))?;
        }
        Ok(Exit::SUCCESS)
    }
}

/// The rights of the owner alone.
#[cfg(unix)]
fn own() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o700)
}

fn claim(data: &Data) -> Result<crate::relay::data::Running, Failure> {
    data.claim().map_err(|fault| match fault {
        NotAlone::Running(said) => Failure::Failed(format!(
            "a relay runs on {} ({said}): stop it first",
            data.folder().display()
        )),
        NotAlone::Disk(e) => Failure::Io(data.folder().to_string_lossy().into_owned(), e),
    })
}

fn has_something(folder: &Path) -> Result<bool, Failure> {
    let mut entries = std::fs::read_dir(folder)
        .map_err(|e| Failure::Io(folder.to_string_lossy().into_owned(), e))?;
    Ok(entries.next().is_some())
}

/// Gives a folder another name beside.
fn move_away(folder: &Path) -> Result<PathBuf, Failure> {
    let stamp: String = clock::now()
        .to_string()
        .chars()
        .filter(|c| c.is_ascii_alphanumeric())
        .collect();
    let name = folder
        .file_name()
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_default();
    let mut away = folder.with_file_name(format!("{name}.before-{stamp}"));
    let mut number = 1;
    while away.exists() {
        number += 1;
        away = folder.with_file_name(format!("{name}.before-{stamp}-{number}"));
    }
    std::fs::rename(folder, &away)
        .map_err(|e| Failure::Io(folder.to_string_lossy().into_owned(), e))?;
    Ok(away)
}
