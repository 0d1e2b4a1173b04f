//! `crosstalk completions`: what a shell completes.

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use clap::Args;
use clap_complete::Shell;

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
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut crate::command(), "crosstalk", &mut script);
        console.data(script)?;
        Ok(Exit::SUCCESS)
    }
}
