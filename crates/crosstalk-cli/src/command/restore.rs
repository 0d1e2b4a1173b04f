//! `crosstalk restore`: restores a relay from a backup.

mod replay;

use crate::console::{Console, GREEN, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::shown_path;
use crate::paragraph::{count, wrap};
use crate::service::relay::archive;
use crate::service::relay::archive::{check_blobs, check_copy};
use crate::service::relay::data::{DataArgument, DataFolder, make_folder};
use crate::service::relay::progress::ProgressLine;
use crate::{clock, shell, view};
use clap::Args;
use crosstalk_envelope::unicode::escape;
use replay::{Replayed, RevocationSource, Revocations};
use std::path::{Path, PathBuf};

/// Restore a relay from a backup
///
/// Unpacks the backup beside the data folder, checks it, and only then puts it in its place. --force moves the existing folder
/// away, and does not erase it.
///
/// Consents, keys and tokens that were revoked after the backup are active again in it. --replay-from replays those revocations
/// before the relay is put in its place: each REVOKE by its signature, the others by the log and the trust file of the newer
/// folder, or by an audit bundle that the relay signed. With --force, the command looks for revocations in the folder that it moves
/// away, and asks you.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk restore relay.tar --data /var/lib/crosstalk\n  crosstalk restore relay.tar --force\n  crosstalk restore relay.tar --data new --replay-from /var/lib/crosstalk\n  crosstalk restore relay.tar --data new --replay-from bundle/\n\nExit codes: 0 it is back, 1 there is a relay already, the backup is damaged, or\nsomething that was revoked still counts (it is listed), 12 this is no backup, 14 the audit bundle can't be used."
)]
pub(crate) struct Restore {
    /// The backup
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Replace an existing relay; its folder is moved away
    #[arg(long)]
    force: bool,
    /// Replay what was revoked after the backup, from a newer data folder of this relay or an audit bundle of it
    #[arg(long, value_name = "DIR")]
    replay_from: Option<PathBuf>,
    #[command(flatten)]
    data: DataArgument,
}

impl Restore {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let data = self.data.folder()?;
        let is_there = data.folder().exists() && has_something(data.folder())?;
        if is_there && !self.force {
            return Err(
                Failure::failed(format!("{} is not empty", data.folder().display()))
                    .help("restore to another folder with --data, or move it away with --force"),
            );
        }
        // A relay that runs would go on writing to what is moved away.
        let running = match is_there {
            true => Some(data.require_stopped("stop it first")?),
            false => None,
        };
        let source = self
            .replay_from
            .as_deref()
            .map(RevocationSource::at)
            .transpose()?;
        let parent = data.folder().parent().unwrap_or(Path::new("."));
        make_folder(parent).map_err(|e| Failure::at(parent, e))?;
        let place = tempfile::Builder::new()
            .prefix(".crosstalk-restore")
            .permissions(own())
            .tempdir_in(parent)
            .map_err(|e| Failure::at(parent, e))?;
        let progress = ProgressLine::start("unpacking");
        let title = archive::unpack(&self.file, place.path())?;
        progress.next("checking");
        let new = DataFolder::at(place.path().to_owned());
        check_copy(&new.store())?;
        let blobs = check_blobs(&new.blobs(), &mut |n| progress.count(n))?;
        progress.end();
        let is_damaged = |what: &str| {
            Failure::failed(format!(
                "the backup is damaged, and nothing was changed: {what}"
            ))
        };
        if let Some(damaged) = blobs.damaged.first() {
            return Err(is_damaged(&damaged.message));
        }
        new.check_keys()
            .map_err(|fault| is_damaged(&fault.to_string()))?;
        let mut unreplayed = None;
        let mut is_complete = true;
        match &source {
            Some(source) => {
                is_complete = replay(console, &source.missing_in(&new)?, &new)?;
                if let RevocationSource::Bundle(_) = source {
                    console.warning(&format!(
                        "a bundle has no trust file: keys that you distrusted after the backup count again. Look at them with \
                         `CROSSTALK_HOME={} crosstalk trust list` before you start the relay",
                        shell::word(&data.folder().to_string_lossy())
                    ))?;
                }
            }
            None if is_there && data.store().is_file() => {
                (unreplayed, is_complete) = self.offer(console, &data, &new)?;
            }
            None => {}
        }
        let moved = match is_there {
            true => Some(move_away(data.folder())?),
            false => {
                // An empty folder would block the rename.
                let _ = std::fs::remove_dir(data.folder());
                None
            }
        };
        let place = place.keep();
        if let Err(e) = std::fs::rename(&place, data.folder()) {
            if let Some(moved) = &moved {
                // Restores the earlier folder.
                let _ = std::fs::rename(moved, data.folder());
            }
            let _ = std::fs::remove_dir_all(&place);
            return Err(Failure::at(data.folder(), e));
        }
        drop(running);
        data.make()?;
        console.talk(&format!(
            "{} in {}: as it was on {}, {} attachments.\n",
            styled(GREEN, "Restored"),
            data.shown(),
            escape(&title.made_at),
            blobs.count
        ))?;
        let moved = moved.map(|moved| moved.to_string_lossy().into_owned());
        if let Some(moved) = &moved {
            let moved = shown_path(moved);
            console.talk(&format!("The previous folder is now {moved}.\n"))?;
        }
        match (unreplayed, moved) {
            (Some(what), Some(moved)) => {
                let file = self.file.to_string_lossy();
                let words = format!(
                    "restore {} --force --replay-from {}",
                    shell::word(&file),
                    shell::word(&moved)
                );
                console.warning(&format!(
                    "after this backup was made, these were revoked, and are active again now: {what}. Replay the revocations \
                     before you start the relay: `{}`",
                    self.data.command(&words),
                ))?;
            }
            _ if source.is_none() && !is_there => console.warning(
                "revocations after this backup are undone: if there is a newer data folder of this relay or an audit \
                 bundle, restore with --replay-from and its folder",
            )?,
            _ => {}
        }
        Ok(Exit::of_check(is_complete))
    }

    /// Offers to replay the revocations that the replaced folder has and the backup lacks. Returns those that were
    /// declined, in words, and whether all that were replayed count now.
    fn offer(
        &self,
        console: &mut Console,
        newer: &DataFolder,
        restored: &DataFolder,
    ) -> Result<(Option<String>, bool), Failure> {
        // The folder may be damaged, which is why it is replaced: that must not keep the backup from coming back.
        let found = match RevocationSource::Folder(newer.clone()).missing_in(restored) {
            Ok(found) => found,
            Err(fault) => {
                console.warning(&format!(
                    "can't look for later revocations in {}: {fault}",
                    newer.shown()
                ))?;
                return Ok((None, true));
            }
        };
        if found.is_empty() {
            return Ok((None, true));
        }
        let what = found.describe();
        let told = format!("After this backup was made, these were revoked: {what}.");
        let told = wrap(&escape(&told), 0, 0);
        match console.offer(&format!("{told}\nReplay the revocations?"))? {
            true => replay(console, &found, restored).map(|is_complete| (None, is_complete)),
            false => Ok((Some(what), true)),
        }
    }
}

/// Replays revocations and reports the result. Returns whether all of them count now.
fn replay(
    console: &mut Console,
    found: &Revocations,
    restored: &DataFolder,
) -> Result<bool, Failure> {
    if found.is_empty() {
        console.talk("No revocation after this backup affects it.\n")?;
        return Ok(true);
    }
    let Replayed {
        messages,
        consents,
        tokens,
        keys,
        pinned,
        rejected,
        left,
    } = found.replay(restored)?;
    console.talk(&format!(
        "{} what was revoked after the backup ({}, {}, {}, {}): {}\n",
        styled(GREEN, "Replayed"),
        count(messages, "REVOKE"),
        count(consents, "consent"),
        count(keys, "key"),
        count(tokens, "token"),
        escape(&found.describe()),
    ))?;
    if !pinned.is_empty() {
        console.talk(&format!(
            "Pinned, as in the newer trust.toml, the keys that signed them: {}.\n",
            view::names(&pinned)
        ))?;
    }
    for (id, sender) in rejected {
        console.warning(&format!(
            "the REVOKE {} of {} was not accepted, because no key is pinned for its sender in the \
             backup. The consent is revoked by the log; recipients of copies are not told again",
            view::line(&id),
            view::line(&sender)
        ))?;
    }
    if !left.is_empty() {
        console.warning(&format!(
            "these were revoked after the backup, and are still active: {}. Revoke them before you start the relay",
            view::names(&left)
        ))?;
    }
    Ok(left.is_empty())
}

/// Permissions for the owner only.
#[cfg(unix)]
fn own() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o700)
}

fn has_something(folder: &Path) -> Result<bool, Failure> {
    let mut entries = std::fs::read_dir(folder).map_err(|e| Failure::at(folder, e))?;
    Ok(entries.next().is_some())
}

/// Renames a folder to a free name beside it.
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
    std::fs::rename(folder, &away).map_err(|e| Failure::at(folder, e))?;
    Ok(away)
}
