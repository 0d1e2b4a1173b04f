//! `crosstalk relay fetch`: a file that a message names.

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::shown_path;
use crate::paragraph::count;
use crate::service::relay::remote::Through;
use crate::service::settings::Config;
use clap::Args;
use crosstalk_envelope::meta::Digest;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Fetch a file that a message names from a relay
///
/// `meta: attachments` of the message has its digest; what comes is checked against it. The name that a message gives a
/// file is not used: say where it goes.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk show 01K74V8Q --envelope | grep digest=\n  crosstalk relay fetch sha256:2cf24dba… --out plan.md\n  crosstalk relay fetch sha256:2cf24dba… | less\n\nExit codes: 0 fetched, 1 the file of --out is there already, 10 to 17 what the\nrelay refuses."
)]
pub(super) struct Fetch {
    /// The digest: sha256: and 64 hex digits
    #[arg(value_name = "DIGEST", value_parser = digest)]
    digest: Digest,
    /// Write it to this new file; else to stdout
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    through: Through,
}

fn digest(text: &str) -> Result<Digest, String> {
    Digest::parse(text).ok_or_else(|| "write it as sha256: and 64 hex digits".to_owned())
}

impl Fetch {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let config = Config::open(console)?;
        let remote = self.through.connect(&config, None)?;
        let bytes = remote.blob(self.digest)?;
        match &self.out {
            Some(path) => {
                write(path, &bytes).map_err(|e| Failure::at(path, e))?;
                console.talk(&format!(
                    "{}: {}, as the digest says\n",
                    shown_path(&path.to_string_lossy()),
                    count(bytes.len(), "byte")
                ))?;
            }
            None if console.is_terminal() => console.text(&String::from_utf8_lossy(&bytes))?,
            None => console.data(&bytes)?,
        }
        Ok(Exit::SUCCESS)
    }
}

fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::options().write(true).create_new(true).open(path)?;
    file.write_all(bytes)
}
