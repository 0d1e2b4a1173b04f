//! The Rust crates as a program behind `crosstalk conform --program`: one question per line, one answer per line.

use std::io::{self, BufRead as _, Write as _};

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        writeln!(out, "{}", crosstalk_conformance::answer(&line?))?;
        out.flush()?;
    }
    Ok(())
}
