//! `crosstalk forget`: a thread is erased, from the store and the index.

use crate::console::{BOLD, Console, styled};
use crate::desk::{self, Desk};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::paragraph::count;
use clap::Args;
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::store::Store as _;
use std::io::{IsTerminal as _, Write as _};

/// Erase a thread with all its messages, after a question
///
/// They are gone from the store and from the search index, and can't be brought back. What others have of them stays
/// with them; so do exported files and backups of the store.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk forget 01K74V6R0074\n  crosstalk forget 01K74V6R0074 --yes\n\nExit codes: 0 erased, 1 not found or not confirmed, 2 nobody to ask."
)]
pub(crate) struct Forget {
    /// The thread, one of its messages, or `last`
    #[arg(value_name = "THREAD")]
    thread: String,
    /// Don't ask
    #[arg(long, short)]
    yes: bool,
}

impl Forget {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let desk = Desk::open(console)?;
        let mut store = desk.kept(console)?;
        let thread = desk::thread(&store, &self.thread)?;
        let number = usize::try_from(thread.messages).unwrap_or(usize::MAX);
        let what = format!(
            "{} of {} ({})",
            count(number, "message"),
            styled(
                BOLD,
                &escape(thread.context.as_deref().unwrap_or("a thread"))
            ),
            escape(&thread.id)
        );
        if !self.yes && !confirmed(console, &what)? {
            console.talk("nothing was erased\n")?;
            return Ok(Exit::FAILURE);
        }
        store.forget(&thread.id)?;
        console.talk(&format!("Erased: {what}\n"))?;
        Ok(Exit::SUCCESS)
    }
}

fn confirmed(console: &mut Console, what: &str) -> Result<bool, Failure> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(Failure::Usage(
            "there is nobody to ask: say --yes to erase the thread".into(),
        ));
    }
    console.talk(&format!("Erase {what}? It can't be brought back. [y/N] "))?;
    std::io::stderr().flush().map_err(Failure::of_output)?;
    let mut answer = String::new();
    let read = stdin.read_line(&mut answer);
    read.map_err(|e| Failure::Io("stdin".into(), e))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes" | "Yes"))
}
