//! The binary `crosstalk`; everything it does is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    crosstalk_cli::main()
}
