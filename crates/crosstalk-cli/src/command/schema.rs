//! `crosstalk schema`: the JSON Schema of an answer.

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::json;
use crate::schema::Form;
use clap::Args;

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
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        console.data(json::pretty(&self.form.schema())?)?;
        Ok(Exit::SUCCESS)
    }
}
