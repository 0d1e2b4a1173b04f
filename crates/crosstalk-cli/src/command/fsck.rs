//! `crosstalk fsck`: checks stores, logs and attachments.

use crate::console::{Console, GREEN, RED, YELLOW, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::paragraph::wrap;
use crate::report::{FsckPlaceReport, FsckReport, QuarantineReport};
use crate::schema::FSCK;
use crate::service::relay::archive::{DamagedAttachment, check_blobs};
use crate::service::relay::data::{DataArgument, DataFolder};
use crate::service::relay::progress::ProgressLine;
use clap::Args;
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::audit::{Note, NoteKey};
use crosstalk_protocol::relay::Quarantined;
use crosstalk_store::{Home, SqliteStore};
use std::path::Path;

/// Check the store: every page and index, the search index, and attachments against their digests
///
/// For a relay, checks the log as well: entries, hashes and checkpoints, with the keys in its folder. With --data, checks the relay
/// of that folder; else your own messages, and the relay in the usual place if there is one. A relay may run meanwhile, unless
/// --repair is given.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk fsck\n  crosstalk fsck --data /var/lib/crosstalk\n  crosstalk fsck --data /var/lib/crosstalk --repair\n\nExit codes: 0 everything is sound, or was repaired; 1 something is damaged."
)]
pub(crate) struct Fsck {
    #[command(flatten)]
    data: DataArgument,
    /// Rebuild everything that is derived from the messages, and move damaged attachments away
    #[arg(long)]
    repair: bool,
    /// Print JSON of the form crosstalk.fsck/1
    #[arg(long)]
    json: bool,
}

/// The result of one place, and its messages that could not be indexed.
#[derive(Default)]
struct FsckResult {
    found: FsckPlaceReport,
    quarantine: Vec<Quarantined>,
}

impl Fsck {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let mut reports = Vec::new();
        if self.data.data.is_none() {
            let store = Home::from_env()?.store();
            if store.exists() {
                reports.push(self.store(&store)?);
            }
        }
        let relay = self.data.folder()?;
        if self.data.data.is_some() {
            relay.require()?;
        }
        if relay.store().exists() {
            reports.push(self.relay(&relay)?);
        }
        let is_sound = reports.iter().all(|r| r.found.findings.is_empty());
        match self.json {
            true => {
                let quarantined = reports.iter().flat_map(|r| &r.quarantine);
                let quarantined = quarantined.map(|q| QuarantineReport {
                    id: q.id.clone(),
                    seq: q.seq,
                    reason: q.reason.clone(),
                });
                let report = FsckReport {
                    sound: is_sound,
                    quarantine: quarantined.collect(),
                    places: reports.into_iter().map(|r| r.found).collect(),
                };
                console.report(FSCK, &report)?;
            }
            false if reports.is_empty() => console.talk("nothing is kept here yet\n")?,
            false => {
                for report in &reports {
                    report.show(console)?;
                }
                if !is_sound {
                    let restore = self.data.command("restore FILE --force");
                    console.talk(&match self.repair {
                        false => format!(
                            "--repair rebuilds derived data, and moves damaged attachments away. \
                             `{restore}` restores a relay from your last backup.\n"
                        ),
                        true => format!(
                            "The damage is not in derived data: `{restore}` restores a relay from \
                             a backup.\n"
                        ),
                    })?;
                }
            }
        }
        Ok(Exit::of_check(is_sound))
    }

    fn store(&self, path: &Path) -> Result<FsckResult, Failure> {
        let mut report = FsckResult::default();
        report.found.place = path.to_string_lossy().into_owned();
        let progress = ProgressLine::start("checking the store");
        let mut store = match SqliteStore::open_existing(path) {
            Ok(Some(store)) => store,
            Ok(None) => return Ok(report),
            // So damaged that it can't be opened.
            Err(fault) => {
                report.found.findings.push(fault.to_string());
                return Ok(report);
            }
        };
        match store.check() {
            Ok(found) => report.found.findings = found,
            Err(fault) => report.found.findings.push(fault.to_string()),
        }
        let quarantined = store.quarantine().unwrap_or_default();
        if self.repair && (!report.found.findings.is_empty() || !quarantined.is_empty()) {
            progress.next("deriving again");
            store.rebuild()?;
            report.found.repaired = std::mem::take(&mut report.found.findings);
            report.found.findings = store.check()?;
            report.quarantine = store.quarantine()?;
            let is_left = |q: &&Quarantined| !report.quarantine.iter().any(|r| r.seq == q.seq);
            for released in quarantined.iter().filter(is_left) {
                let what = format!(
                    "the message {} was quarantined and is indexed now",
                    released.id
                );
                report.found.repaired.push(what);
            }
        } else {
            report.quarantine = quarantined;
        }
        progress.end();
        Ok(report)
    }

    /// Checks a relay: its store and its attachments.
    fn relay(&self, data: &DataFolder) -> Result<FsckResult, Failure> {
        let running = match self.repair {
            true => Some(data.require_stopped("stop it before a repair")?),
            false => None,
        };
        let mut report = self.store(&data.store())?;
        report.found.place = data.folder().to_string_lossy().into_owned();
        if report.found.findings.is_empty() {
            signatures(data, &mut report)?;
        }
        let progress = ProgressLine::start("reading attachments");
        let blobs = check_blobs(&data.blobs(), &mut |n| progress.count(n))?;
        progress.end();
        report.found.attachments = blobs.count;
        for damaged in blobs.damaged {
            match self.repair {
                true => {
                    move_away(data, &damaged)?;
                    report.found.repaired.push(damaged.message);
                }
                false => report.found.findings.push(damaged.message),
            }
        }
        drop(running);
        Ok(report)
    }
}

/// Checks that each checkpoint is signed by a current or former key of the relay.
fn signatures(data: &DataFolder, report: &mut FsckResult) -> Result<(), Failure> {
    let checkpoints = data.open()?.checkpoints()?;
    let keys = data.public_keys()?;
    if keys.is_empty() && !checkpoints.is_empty() {
        let what = "the signatures of checkpoints were not checked: there is no key of the relay in its folder";
        report.found.unchecked.push(what.into());
        return Ok(());
    }
    for sealed in checkpoints {
        let is_signed = Note::parse(&sealed.note).is_ok_and(|note| {
            let origin = note.claim().map(|c| c.origin).unwrap_or_default();
            let mut keys = keys.iter().filter_map(|k| NoteKey::new(&origin, *k).ok());
            keys.any(|key| note.open(&key).is_ok())
        });
        if !is_signed {
            report.found.findings.push(format!(
                "the checkpoint of {} entries is not signed by a key of the relay",
                sealed.size
            ));
        }
    }
    Ok(())
}

/// Moves a damaged attachment away, so that the relay reports it as missing and it can be uploaded again.
fn move_away(data: &DataFolder, damaged: &DamagedAttachment) -> Result<(), Failure> {
    let folder = data.folder().join("damaged");
    let at = |e| Failure::at(&damaged.path, e);
    crate::service::relay::data::make_folder(&folder).map_err(at)?;
    let name = damaged
        .path
        .strip_prefix(data.blobs())
        .unwrap_or(&damaged.path);
    let name = name
        .to_string_lossy()
        .replace(std::path::MAIN_SEPARATOR, "-");
    std::fs::rename(&damaged.path, folder.join(name)).map_err(at)
}

impl FsckResult {
    fn show(&self, console: &mut Console) -> Result<(), Failure> {
        let word = match self.found.findings.as_slice() {
            [] => styled(GREEN, "sound"),
            _ => styled(RED, "damaged"),
        };
        console.show(&format!("{word}  {}\n", escape(&self.found.place)))?;
        for finding in &self.found.findings {
            console.show(&format!("  {}\n", wrap(&escape(finding), 2, 4)))?;
        }
        for repaired in &self.found.repaired {
            let word = styled(YELLOW, "repaired");
            console.show(&format!("  {word}: {}\n", wrap(&escape(repaired), 12, 4)))?;
        }
        for quarantined in &self.quarantine {
            let word = styled(YELLOW, "quarantined");
            let what = format!(
                "{} (number {}) could not be indexed: {}",
                quarantined.id, quarantined.seq, quarantined.reason
            );
            console.show(&format!("  {word}: {}\n", wrap(&escape(&what), 15, 4)))?;
        }
        for unchecked in &self.found.unchecked {
            console.show(&format!("  {}\n", wrap(&escape(unchecked), 2, 4)))?;
        }
        Ok(())
    }
}
