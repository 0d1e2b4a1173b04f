//! Passphrases: from a file, from the environment, or from the terminal without echo. Never from the command line,
//! where every process could read them.

use clap::Args;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// The variable with the passphrase of a key.
pub(crate) const VARIABLE: &str = "CROSSTALK_PASSPHRASE";
/// The variable with the passphrase that a key is to have.
pub(crate) const NEW_VARIABLE: &str = "CROSSTALK_NEW_PASSPHRASE";

/// Where the passphrase of a key comes from.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Passphrase {
    /// Read the passphrase from the first line of this file; else from CROSSTALK_PASSPHRASE, else it is asked for
    #[arg(long, value_name = "FILE")]
    pub(crate) passphrase_file: Option<PathBuf>,
}

impl Passphrase {
    /// The passphrase of a key that has one.
    pub(crate) fn ask(&self, what: &str) -> io::Result<Zeroizing<String>> {
        match given(self.passphrase_file.as_deref(), VARIABLE)? {
            Some(passphrase) => Ok(passphrase),
            None => prompt(&format!("Passphrase of {what}: ")),
        }
    }

    /// A passphrase for something that has none yet.
    pub(crate) fn choose(&self, what: &str) -> io::Result<Zeroizing<String>> {
        chosen(self.passphrase_file.as_deref(), VARIABLE, what)
    }
}

/// The passphrase that takes the place of another one.
pub(crate) fn choose_new(file: Option<&Path>, what: &str) -> io::Result<Zeroizing<String>> {
    chosen(file, NEW_VARIABLE, what)
}

fn chosen(file: Option<&Path>, variable: &str, what: &str) -> io::Result<Zeroizing<String>> {
    if let Some(passphrase) = given(file, variable)? {
        return Ok(passphrase);
    }
    let first = prompt(&format!("New passphrase for {what}: "))?;
    let again = prompt("The same again: ")?;
    if *first == *again {
        Ok(first)
    } else {
        Err(io::Error::other("the two passphrases are not the same"))
    }
}

/// What a script gives.
fn given(file: Option<&Path>, variable: &str) -> io::Result<Option<Zeroizing<String>>> {
    if let Some(path) = file {
        let text = std::fs::read_to_string(path).map(Zeroizing::new);
        let text =
            text.map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))?;
        let line = text.lines().next().unwrap_or_default();
        return Ok(Some(Zeroizing::new(line.to_owned())));
    }
    let text = std::env::var_os(variable).map(OsString::into_string);
    match text.transpose() {
        Ok(text) => Ok(text.map(Zeroizing::new)),
        Err(_) => Err(io::Error::other(format!("{variable} is not UTF-8"))),
    }
}

fn prompt(question: &str) -> io::Result<Zeroizing<String>> {
    rpassword::prompt_password(question)
        .map(Zeroizing::new)
        .map_err(|e| {
            let advice = format!("use --passphrase-file or {VARIABLE} where there is no terminal");
            io::Error::new(
                e.kind(),
                format!("can't ask for the passphrase: {e}; {advice}"),
            )
        })
}
