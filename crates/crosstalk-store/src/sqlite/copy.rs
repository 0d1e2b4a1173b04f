//! A copy of the store while it is used.

use crosstalk_protocol::store::StoreError;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};
use std::fs::File;
use std::path::Path;
use std::time::Duration;

use super::fault::{self, SqlResult};
use super::migrate::{folder_of, label_of, on_disk};
use super::{SqliteStore, words};
use crate::disk;
use crate::fault::{DiskError, FileAction};

/// How many pages are copied between two reports.
const PAGES: i32 = 1024;
/// How long to wait where the new file is looked at by others.
const PAUSE: Duration = Duration::from_millis(20);

impl SqliteStore {
    /// Copies the store as it is now into a new file, for the owner alone, while others go on writing. `progress` hears how
    /// many pages are copied, and of how many. The file is complete, or not there. The index of words is not copied: the copy
    /// makes its own when it is searched.
    ///
    /// ```
    /// use crosstalk_store::SqliteStore;
    /// # let folder = tempfile::tempdir()?;
    /// let store = SqliteStore::open(folder.path().join("crosstalk.db"))?;
    /// let copy = folder.path().join("copy.db");
    /// store.backup_to(&copy, &mut |done, all| assert!(done <= all))?;
    /// assert!(SqliteStore::open_existing(&copy)?.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If there is a file of this name, the store can't be read, or the file can't be written.
    pub fn backup_to(
        &self,
        target: &Path,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), StoreError> {
        if target.symlink_metadata().is_ok() {
            return Err(fault::unavailable(
                format!(
                    "`{}` exists already, and was left as it is",
                    target.display()
                ),
                "choose another name, or move it away",
            ));
        }
        let (folder, label) = (folder_of(target), label_of(target));
        let temporary = disk::temporary(folder, &label).map_err(on_disk)?;
        let written = |e| on_disk(DiskError::new(FileAction::Write, target, e));
        disk::write_new(&temporary, "").map_err(written)?;
        let copied = self.copy(&temporary, progress);
        let copied = copied.map_err(|e| fault::at(target, &e)).and_then(|()| {
            let sync = || File::open(&temporary)?.sync_all();
            sync().map_err(written)?;
            disk::rename(&temporary, target).map_err(on_disk)
        });
        if copied.is_err() {
            // A leftover file does no harm.
            let _ = std::fs::remove_file(&temporary);
        }
        copied
    }

    fn copy(&self, target: &Path, progress: &mut dyn FnMut(u64, u64)) -> SqlResult<()> {
        // One state, however long it takes: without it, the copy would begin again whenever somebody writes.
        let state = self.db.unchecked_transaction()?;
        state.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut copy = Connection::open_with_flags(target, flags)?;
        let backup = Backup::new(&self.db, &mut copy)?;
        loop {
            let step = backup.step(PAGES)?;
            let now = backup.progress();
            let all = u64::try_from(now.pagecount).unwrap_or(0);
            let left = u64::try_from(now.remaining).unwrap_or(0);
            progress(all.saturating_sub(left), all);
            match step {
                StepResult::Done => break,
                StepResult::Busy | StepResult::Locked => std::thread::sleep(PAUSE),
                _ => {}
            }
        }
        drop(backup);
        // The words of the store are not those of its copy, once the two go on.
        words::start_again(&copy)?;
        copy.close().map_err(|(_, e)| e)
    }
}
