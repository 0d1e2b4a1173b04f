//! The binary `crosstalk`; everything it does is in the library beside it.

use std::process::ExitCode;

/// What one thread of a relay allocates, another one frees: for every message.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    crosstalk_cli::main()
}
