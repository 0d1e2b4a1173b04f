//! `crosstalk completions`, `man` and `schema`: generated references for shells, people and programs.

use crate::console::Console;
use crate::failure::Failure;
use crate::json;
use crate::schema::Form;
use clap::Args;
use clap_complete::Shell;
use clap_mangen::Man as Page;
use crosstalk_envelope::unicode::escape;
use std::path::PathBuf;

/// Print the completion script of a shell
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk completions bash > crosstalk.bash\n  crosstalk completions fish > ~/.config/fish/completions/crosstalk.fish"
)]
pub(crate) struct Completions {
    /// Which shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub(super) fn run(self, console: &mut Console) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut crate::command(), "crosstalk", &mut script);
        console.data(script)
    }
}

/// Print the manual page, or write one page per command
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
    pub(super) fn run(self, console: &mut Console) -> Result<(), Failure> {
        let Some(folder) = self.out else {
            let mut page = Vec::new();
            Page::new(crate::command())
                .render(&mut page)
                .map_err(|e| Failure::io("the manual page", e))?;
            return console.data(page);
        };
        let name = folder.to_string_lossy();
        std::fs::create_dir_all(&folder)
            .and_then(|()| clap_mangen::generate_to(crate::command(), &folder))
            .map_err(|e| Failure::at(&folder, e))?;
        console.talk(&format!("pages written to {}\n", escape(&name)))
    }
}

/// Print the JSON Schema of a JSON form
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk schema > crosstalk.parse.schema.json\n  crosstalk schema lint"
)]
pub(crate) struct Schema {
    /// Which form
    #[arg(value_enum, default_value_t = Form::Parse)]
    form: Form,
}

impl Schema {
    pub(super) fn run(self, console: &mut Console) -> Result<(), Failure> {
        console.data(json::pretty(&self.form.schema())?)
    }
}
