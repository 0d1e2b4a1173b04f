//! `crosstalk trust export`.

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::shown_path;
use crate::paragraph::count;
use crate::service::home::Rooms;
use clap::Args;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;

/// Write the keys that are known, for another machine or another person
///
/// Answers of DNS are not among them. Everyone who imports the file trusts the keys that you trust.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk trust export > trust.toml\n  crosstalk trust export /media/stick/trust.toml"
)]
pub(super) struct Export {
    /// The file to write, which must not be there yet; `-` or none is stdout
    #[arg(value_name = "FILE", default_value = "-", hide_default_value = true)]
    file: PathBuf,
}

impl Export {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let trust = Rooms::open()?.trust()?;
        let text = trust.to_export();
        if self.file.as_os_str() == "-" {
            console.text(&text)?;
            return Ok(Exit::SUCCESS);
        }
        let name = self.file.to_string_lossy();
        let mut options = OpenOptions::new();
        options
            .write(true)
            .create_new(true)
            .open(&self.file)
            .and_then(|mut file| {
                file.write_all(text.as_bytes())
                    .and_then(|()| file.sync_all())
            })
            .map_err(|e| Failure::Io(name.to_string(), e))?;
        let keys = count(trust.keys().len(), "key");
        console.talk(&format!("{}: {keys} written\n", shown_path(&name)))?;
        Ok(Exit::SUCCESS)
    }
}
