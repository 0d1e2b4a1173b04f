//! `crosstalk audit receipt`: the signed receipt of a message.

use super::source::Where;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use clap::Args;
use std::path::PathBuf;

/// Get the signed receipt of a message: proof that the relay took it, and when
///
/// It is text: the entry, its way to the root of the log, and the signed checkpoint. `crosstalk audit verify` checks it against
/// the message.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk audit receipt 01K74V8QF857CTA8MBHN4ZW0ZK --relay https://relay.acme.example --out r.tlog-proof\n  crosstalk audit verify r.tlog-proof --message sent.aict --key relay.key\n\nExit codes: 0 written, 10 the relay does not know the message or can't be reached."
)]
pub(super) struct Receipt {
    /// The id of the message, or the beginning of one that is kept here
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    place: Where,
    /// The file; else stdout
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Receipt {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let mut source = self.place.open(console)?;
        let id = source.message(console, Some(&self.id))?;
        let receipt = source.receipt(id.as_deref().unwrap_or(&self.id))?;
        match &self.out {
            None => console.text(&receipt.to_string())?,
            Some(file) => {
                std::fs::write(file, receipt.to_string()).map_err(|e| Failure::at(file, e))?
            }
        }
        Ok(Exit::SUCCESS)
    }
}
