//! `crosstalk man`: manual pages.

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use clap::Args;
use clap_mangen::Man as Page;
use crosstalk_envelope::unicode::escape;
use std::path::PathBuf;

/// Print the manual page, or write one page a command
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk man > crosstalk.1 && man ./crosstalk.1\n  crosstalk man --out ~/.local/share/man/man1"
)]
pub(crate) struct Man {
    /// Write a page for each command into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Man {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let Some(folder) = self.out else {
            let mut page = Vec::new();
            Page::new(crate::command())
                .render(&mut page)
                .map_err(|e| Failure::io("the manual page", e))?;
            console.data(page)?;
            return Ok(Exit::SUCCESS);
        };
        let name = folder.to_string_lossy();
        std::fs::create_dir_all(&folder)
            .and_then(|()| clap_mangen::generate_to(crate::command(), &folder))
            .map_err(|e| Failure::io(name.to_string(), e))?;
        console.talk(&format!("pages written to {}\n", escape(&name)))?;
        Ok(Exit::SUCCESS)
    }
}
