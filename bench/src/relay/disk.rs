//! The disk below the data folder: what kind it is, and how long it takes to be sure of something.

use std::fs::OpenOptions;
use std::io::{Result, Write as _};
use std::path::Path;
use std::time::Instant;

const TIMES: usize = 200;

/// Microseconds to append a page to a file and to have it on the disk, the shortest first.
pub fn sync_times(folder: &Path) -> Result<Vec<u32>> {
    let path = folder.join("sync");
    let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
    let page = [7; 4096];
    let mut times = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        let began = Instant::now();
        file.write_all(&page)?;
        file.sync_data()?;
        times.push(u32::try_from(began.elapsed().as_micros()).unwrap_or(u32::MAX));
    }
    std::fs::remove_file(path)?;
    times.sort_unstable();
    Ok(times)
}

/// Why a folder is no place to measure at.
pub fn refusal(folder: &Path) -> Option<String> {
    let kind = crosstalk_testing::relay::file_system(folder)?;
    matches!(kind.as_str(), "tmpfs" | "ramfs" | "overlay").then(|| {
        format!(
            "{} is on {kind}, where nothing is ever on disk: set CARGO_TARGET_DIR to a folder on a real disk",
            folder.display()
        )
    })
}
