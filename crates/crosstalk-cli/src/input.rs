//! Files and stdin, read up to the limit of a paste and no further (ENV-063).

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::shell;
use clap::Args;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{Diagnostic, Reading, Scan, decode, limit, scan};
use std::borrow::Cow;
use std::fs::File;
use std::io::{IsTerminal as _, Read};
use std::path::{Path, PathBuf};

/// The files that a command reads.
#[derive(Args, Debug)]
pub(crate) struct Files {
    /// Files to read; `-` or none is stdin
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
}

impl Files {
    /// Whether findings have to say which file they are about.
    pub(crate) fn several(&self) -> bool {
        self.files.len() > 1
    }

    /// Reads one file after the other. One that can't be read is told about, and the others go on.
    pub(crate) fn each(
        &self,
        console: &mut Console,
        mut work: impl FnMut(&mut Console, &Input) -> Result<Exit, Failure>,
    ) -> Result<Exit, Failure> {
        let stdin = [PathBuf::from("-")];
        let files = if self.files.is_empty() {
            stdin.as_slice()
        } else {
            &self.files
        };
        let mut worst = Exit::SUCCESS;
        for path in files {
            let result = Input::read(path, console).and_then(|input| work(console, &input));
            let exit = match result {
                Ok(exit) => exit,
                Err(closed) if closed.is_closed_pipe() => return Err(closed),
                Err(failure) => {
                    console.failure(&failure)?;
                    failure.exit()
                }
            };
            worst = worst.worst(exit);
        }
        Ok(worst)
    }
}

/// The bytes of one file or of stdin.
#[derive(Debug)]
pub(crate) struct Input {
    /// Its name as it was given; `-` is stdin.
    pub(crate) name: String,
    /// Where it is, if it is a file.
    pub(crate) path: Option<PathBuf>,
    bytes: Vec<u8>,
}

impl Input {
    /// Reads a file, or stdin for `-`.
    pub(crate) fn read(path: &Path, console: &mut Console) -> Result<Self, Failure> {
        let name = path.to_string_lossy().into_owned();
        if path.as_os_str() == "-" {
            let stdin = std::io::stdin();
            if stdin.is_terminal() {
                let end = if cfg!(windows) {
                    "Enter, Ctrl-Z, Enter"
                } else {
                    "Ctrl-D"
                };
                console.talk(&format!(
                    "reading from the terminal: paste the text, end with {end}\n"
                ))?;
            }
            let bytes = bounded(stdin.lock()).map_err(|e| Failure::io("stdin", e))?;
            return Ok(Self {
                name,
                path: None,
                bytes,
            });
        }
        let bytes = File::open(path)
            .and_then(bounded)
            .map_err(|e| Failure::io(name.clone(), e))?;
        Ok(Self {
            name,
            path: Some(path.to_owned()),
            bytes,
        })
    }

    /// A text that came another way than from a file, under a name to show.
    pub(crate) fn of_text(name: &str, text: String) -> Self {
        Self {
            name: name.to_owned(),
            path: Some(PathBuf::from(name)),
            bytes: text.into_bytes(),
        }
    }

    /// The bytes as they were read.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether nothing was read.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The name as it is shown: `stdin` for `-`.
    pub(crate) fn shown_name(&self) -> Cow<'_, str> {
        match self.path {
            Some(_) => shown_path(&self.name),
            None => "stdin".into(),
        }
    }

    /// Where it is from, as it is typed in a command: a file, or `-` for stdin; nothing for the clipboard.
    pub(crate) fn file_argument(&self) -> Option<String> {
        let Some(path) = self.path.as_deref() else {
            return Some("-".to_owned());
        };
        path.to_str().filter(|_| path.exists()).map(shell::word)
    }

    /// The same behind a space, for the end of a command; empty for the clipboard.
    pub(crate) fn further_argument(&self) -> String {
        self.file_argument()
            .map_or_else(String::new, |file| format!(" {file}"))
    }

    /// The text, or what stands before the fault, and the fault.
    pub(crate) fn text(&self) -> Result<&str, (Cow<'_, str>, Diagnostic)> {
        decode(&self.bytes).map_err(|fault| {
            let end = fault.span.start.saturating_add(80);
            let head = self.bytes.get(..end).unwrap_or(&self.bytes);
            let head = if self.bytes.len() > limit::PASTE_BYTES {
                "".into()
            } else {
                String::from_utf8_lossy(head)
            };
            (head, fault)
        })
    }

    /// Finds the envelopes; the text is the one that places are in.
    pub(crate) fn scan(&self, reading: Reading) -> (Cow<'_, str>, Scan<'_>) {
        match self.text() {
            Ok(text) => (text.into(), scan(text, reading)),
            Err((text, fault)) => {
                let mut scan = Scan::default();
                scan.rejected.push(fault);
                (text, scan)
            }
        }
    }
}

/// At most one byte more than a paste may have: enough to see that it is too large.
fn bounded(source: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = u64::try_from(limit::PASTE_BYTES).unwrap_or(u64::MAX);
    source
        .take(most.saturating_add(1))
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The name of a file on one line, with nothing that a terminal would act on.
pub(crate) fn shown_path(name: &str) -> Cow<'_, str> {
    match escape(name) {
        shown if shown.contains('\n') => shown.replace('\n', "\\n").into(),
        shown => shown,
    }
}

/// The reading that `--strict` asks for.
pub(crate) const fn reading(strict: bool) -> Reading {
    if strict {
        Reading::Strict
    } else {
        Reading::Paste
    }
}

/// Whether stdin brings something: a pipe or a file, and neither a terminal nor nothing.
pub(crate) fn is_piped() -> bool {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return false;
    }
    #[cfg(unix)]
    {
        use std::os::fd::AsFd as _;
        use std::os::unix::fs::FileTypeExt as _;
        let file = stdin.as_fd().try_clone_to_owned().map(std::fs::File::from);
        let kind = file.and_then(|f| f.metadata()).map(|m| m.file_type());
        kind.is_ok_and(|k| k.is_fifo() || k.is_file() || k.is_socket())
    }
    #[cfg(not(unix))]
    true
}

/// A text of the command line; `-` is all of stdin.
pub(crate) fn typed_text(console: &mut Console, typed: &str) -> Result<String, Failure> {
    match typed {
        "-" => {
            let input = Input::read(Path::new("-"), console)?;
            let text = input.text().map(str::to_owned);
            text.map_err(|(_, fault)| Failure::of_rule(fault.rule, &fault.message))
        }
        text => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(bytes: &[u8]) -> Input {
        Input {
            name: "x".into(),
            path: None,
            bytes: bytes.into(),
        }
    }

    #[test]
    fn never_more_than_one_byte_beyond_the_limit() {
        assert_eq!(
            bounded(std::io::repeat(b'[')).unwrap().len(),
            limit::PASTE_BYTES + 1
        );
    }

    #[test]
    fn invalid_utf8_has_a_place() {
        let input = input(b"one\ntw\xffo");
        let (text, fault) = input.text().unwrap_err();
        let place = fault.position(&text);
        assert_eq!((place.line, place.column), (2, 3));
    }
}
