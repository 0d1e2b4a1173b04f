//! `crosstalk store`: copies what a relay keeps from its data folder into a database, and back.

use crate::console::{Console, GREEN, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::relay::data::DataFolder;
use crate::service::relay::progress::ProgressLine;
use clap::Args;
use crosstalk_store::{CopyProgress, PostgresPlace, StorePlace, copy_store};
use std::path::{Path, PathBuf};

group! {
    /// Copy what a relay keeps from its data folder into PostgreSQL, or back
    #[command(
        after_help = "Example:\n  crosstalk store copy --from /var/lib/crosstalk --to postgres://crosstalk@db1/crosstalk"
    )]
    StoreCommand {
        Copy(CopyStore),
    }
}

/// Copy everything that relays keep between a data folder and a PostgreSQL database
///
/// No relay may run on either of them. The command copies messages, attachments, inboxes, deliveries, consents, tokens and the audit log, reads
/// all of it again on both sides, and compares: the number and the digest of the rows of each table, and the audit log with its
/// checkpoints. Until it has done so, no relay starts on the copy. If it is interrupted, run it again: it goes on where it was.
///
/// The keys of the relay and relay.toml are files of the data folder, and stay there. The trusted keys of a database are added to the
/// trust.toml of the folder.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk store copy --from /var/lib/crosstalk --to postgres://crosstalk@db1/crosstalk\n  crosstalk store copy --from postgres://crosstalk@db1/crosstalk --to new\n\nExit codes: 0 everything is copied and compared, 1 it is not."
)]
struct CopyStore {
    /// The data folder, or the URL of the database, to copy
    #[arg(long, value_name = "DIR|URL")]
    from: String,
    /// The URL of an empty database, or a data folder without a store
    #[arg(long, value_name = "DIR|URL")]
    to: String,
}

/// A data folder or a database.
fn place(text: &str) -> Result<StorePlace, Failure> {
    match PostgresPlace::is_url(text) {
        true => Ok(StorePlace::Database(PostgresPlace::parse(text)?)),
        false => {
            let folder = PathBuf::from(text);
            let folder = std::path::absolute(&folder).map_err(|e| Failure::at(&folder, e))?;
            Ok(StorePlace::Folder(folder))
        }
    }
}

fn data(folder: &Path) -> DataFolder {
    DataFolder::at(folder.to_owned())
}

impl CopyStore {
    fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let (from, to) = (place(&self.from)?, place(&self.to)?);
        if let StorePlace::Folder(folder) = &from {
            data(folder).require()?;
        }
        if let StorePlace::Folder(folder) = &to {
            data(folder).make()?;
        }
        let folders = [&from, &to].into_iter().filter_map(|place| match place {
            StorePlace::Folder(folder) => Some(data(folder)),
            StorePlace::Database(_) => None,
        });
        let claims = folders.map(|folder| folder.require_stopped("stop it first"));
        let claims = claims.collect::<Result<Vec<_>, _>>()?;
        let line = ProgressLine::start("copying");
        let (mut rows, mut is_check) = (0, false);
        let copied = copy_store(&from, &to, &mut |step: CopyProgress<'_>| {
            if step.is_check && !is_check {
                is_check = true;
                rows = 0;
                line.next("comparing");
            }
            line.at(rows + step.done, rows + step.total);
            if step.done >= step.total {
                rows += step.total;
            }
        });
        line.end();
        let report = copied?;
        drop(claims);
        let resumed = match report.resumed {
            0 => String::new(),
            rows => format!(" {rows} of them were there from a copy that was interrupted."),
        };
        console.talk(&format!(
            "{} {} messages and {} attachments in {} rows from {from} to {to}.{resumed}\n\
             Both have the same rows. The audit log has {} entries, and {} checkpoints fit them.\n",
            styled(GREEN, "Copied"),
            report.messages(),
            report.attachments,
            report.rows(),
            report.log_entries,
            report.checkpoints,
        ))?;
        if report.missing > 0 {
            console.warning(&format!(
                "{} attachments have no bytes in {from}, and none in the copy",
                report.missing
            ))?;
        }
        Ok(Exit::SUCCESS)
    }
}
