//! Accepts messages from a watched folder: each file once, then it is moved to `done` or `refused`.

use crate::config::Watch;
use crate::core::{Received, Relay};
use crosstalk_envelope::Explanation;
use crosstalk_envelope::{Reading, limit, scan, unicode};
use crosstalk_protocol::relay::{Pattern, Peer, Role};
use rustix::fs::{CWD, Mode, OFlags, RenameFlags, openat, renameat_with};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tokio::sync::watch as signal;

/// How often there is a look.
const LOOK: Duration = Duration::from_secs(1);
/// How many files are read in one look.
const FILES: usize = 1000;

/// The size and time of a file: if they are the same twice, it is complete.
type Seen = HashMap<OsString, (u64, Option<SystemTime>)>;

/// Looks into a folder until it is told to stop.
pub(super) async fn run(relay: Relay, watch: Watch, mut stop: signal::Receiver<Option<Duration>>) {
    let peer = Peer {
        name: format!("folder {}", watch.folder.display()),
        role: Role::Person,
        addresses: watch
            .addresses
            .iter()
            .filter_map(|a| Pattern::parse(a).ok())
            .collect(),
        domain: None,
        courier: Vec::new(),
        is_local: false,
    };
    let mut seen = Seen::new();
    let mut is_missing = false;
    loop {
        let (folder, before) = (watch.folder.clone(), std::mem::take(&mut seen));
        let look = move || ready(&folder, &before);
        let looked = tokio::task::spawn_blocking(look).await;
        match looked.unwrap_or_else(|e| Err(io::Error::other(e))) {
            Ok((files, now)) => {
                seen = now;
                is_missing = false;
                for file in files {
                    if stop.borrow().is_some() {
                        break;
                    }
                    take(&relay, &peer, file).await;
                }
            }
            Err(error) if !is_missing => {
                is_missing = true;
                tracing::warn!(folder = %watch.folder.display(), reason = %error, "a watched folder can't be read");
            }
            Err(_) => {}
        }
        tokio::select! {
            _ = stop.wait_for(Option::is_some) => return,
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

/// The files that did not change since the last look, and how all of them look now.
fn ready(folder: &Path, before: &Seen) -> io::Result<(Vec<PathBuf>, Seen)> {
    let (mut files, mut now) = (Vec::new(), Seen::new());
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let is_ours = path
            .extension()
            .is_some_and(|e| e.eq_ignore_ascii_case("aict") || e.eq_ignore_ascii_case("crosstalk"));
        let name = entry.file_name();
        if !is_ours || name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        // Not that of what a link points to.
        let Ok(data) = fs::symlink_metadata(&path) else {
            continue;
        };
        let look = (data.len(), data.modified().ok());
        if before.get(&name) == Some(&look) {
            files.push(path);
        }
        now.insert(name, look);
        if files.len() == FILES {
            break;
        }
    }
    files.sort();
    Ok((files, now))
}

/// Accepts the messages of a file, and moves it away.
async fn take(relay: &Relay, peer: &Peer, path: PathBuf) {
    let reading = path.clone();
    let read = tokio::task::spawn_blocking(move || read(&reading)).await;
    let text = match read.unwrap_or_else(|e| Err(Unread::Now(e.to_string()))) {
        Ok(text) => text,
        Err(Unread::Now(reason)) => {
            tracing::warn!(file = %path.display(), reason, "a file can't be read now");
            return;
        }
        Err(Unread::Never(reason)) => return put_away(&path, Some(reason)).await,
    };
    let mut faults = Vec::new();
    let envelopes: Vec<String> = {
        let found = scan(&text, Reading::Strict);
        for fault in found.rejected.iter().filter(|f| f.is_error()).take(20) {
            let place = fault.position(&text);
            let message = unicode::escape(&fault.message);
            faults.push(format!(
                "Line {}, column {}: {message}.",
                place.line, place.column
            ));
        }
        let texts = found.documents.iter();
        texts.map(|d| d.source().to_owned()).collect()
    };
    for (number, envelope) in (1..).zip(&envelopes) {
        match relay.take_in(envelope, peer).await {
            Received::Accepted { .. } => {}
            // Trouble that passes: accepted messages are known at the next look, and not accepted twice.
            Received::Rejected { status: 503, .. } => return,
            Received::Rejected { refusal, .. } => faults.push(format!(
                "Envelope {number}: {} {}",
                refusal.code.as_str(),
                unicode::escape(&refusal.detail())
            )),
        }
    }
    let reason = (!faults.is_empty()).then(|| faults.join("\n"));
    put_away(&path, reason).await;
}

enum Unread {
    /// It may work at the next look.
    Now(String),
    /// It is not a file that the relay accepts.
    Never(String),
}

/// The text of a file that is one, and not too large. A link is not followed.
fn read(path: &Path) -> Result<String, Unread> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let never = |what: &str, help: &str| Unread::Never(Explanation::new(what, help).detail());
    let file = match openat(CWD, path, flags, Mode::empty()) {
        Ok(file) => fs::File::from(file),
        Err(rustix::io::Errno::LOOP) => {
            return Err(never(
                "It is a link, which is not followed.",
                "put the file itself there.",
            ));
        }
        Err(error) => return Err(Unread::Now(error.to_string())),
    };
    let now = |e: io::Error| Unread::Now(e.to_string());
    if !file.metadata().map_err(now)?.is_file() {
        return Err(Unread::Never("It is no file.".into()));
    }
    let most = u64::try_from(limit::PASTE_BYTES).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(now)?;
    if bytes.len() > limit::PASTE_BYTES {
        return Err(never(
            &format!("It has more than {most} bytes."),
            "put it there in parts.",
        ));
    }
    String::from_utf8(bytes).map_err(|_| never("It is not UTF-8.", "save it as UTF-8."))
}

/// Moves a file to `done`, or to `refused` with the reason beside it.
async fn put_away(path: &Path, reason: Option<String>) {
    let moving = path.to_owned();
    let work = move || move_away(&moving, reason.as_deref());
    let moved = tokio::task::spawn_blocking(work).await;
    if let Err(error) = moved.unwrap_or_else(|e| Err(io::Error::other(e))) {
        tracing::warn!(file = %path.display(), reason = %error, "an accepted file can't be moved away");
    }
}

fn move_away(path: &Path, reason: Option<&str>) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let target = folder.join(if reason.is_some() { "refused" } else { "done" });
    match fs::create_dir(&target) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => made?,
    }
    if !fs::symlink_metadata(&target)?.is_dir() {
        let shown = target.display();
        return Err(io::Error::other(format!("{shown} is no folder")));
    }
    let name = path.file_name().unwrap_or_default();
    for number in 0..10_000 {
        let mut new = name.to_owned();
        if number > 0 {
            new = OsString::from(format!("{number}-"));
            new.push(name);
        }
        let to = target.join(&new);
        match renameat_with(CWD, path, CWD, &to, RenameFlags::NOREPLACE) {
            Ok(()) => {}
            Err(rustix::io::Errno::EXIST) => continue,
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) if !to.exists() => {
                fs::rename(path, &to)?;
            }
            Err(error) => return Err(error.into()),
        }
        if let Some(reason) = reason {
            new.push(".reason.txt");
            // `create_new` never writes through an existing file or link.
            let mut file = fs::File::create_new(target.join(new))?;
            writeln!(file, "{reason}")?;
            file.sync_all()?;
        }
        fs::File::open(&target)?.sync_all()?;
        return fs::File::open(folder)?.sync_all();
    }
    Err(io::Error::other("too many files of this name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_grows_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let look = |before: &Seen| ready(folder.path(), before).unwrap();
        fs::write(path("ready.aict"), "whole").unwrap();
        fs::write(path("slow.aict"), "the beginn").unwrap();
        let (files, seen) = look(&Seen::new());
        assert!(files.is_empty(), "seen for the first time: {files:?}");
        fs::write(path("slow.aict"), "the beginning, and the rest").unwrap();
        let (files, seen) = look(&seen);
        assert_eq!(files, [path("ready.aict")]);
        let (files, _) = look(&seen);
        assert_eq!(files, [path("ready.aict"), path("slow.aict")]);
    }
}
