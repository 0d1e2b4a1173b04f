//! The file of a draft: private, and gone with its value unless it is kept.

use crate::service::relay::data::private_file;
use crosstalk_envelope::{limit, unicode::escape};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const NOTE: &str = "# Everything below the line above is for reading, and is not sent.";

/// A text in a file that nobody else can read.
#[derive(Debug)]
pub(crate) struct Draft {
    folder: TempDir,
    path: PathBuf,
    /// The line that begins what is dropped.
    scissors: Option<String>,
    text: String,
}

impl Draft {
    /// Writes the draft and, below a line, the reference.
    pub(super) fn new(draft: &str, reference: &str) -> io::Result<Self> {
        // The folder is private (0700), so the file is; its mode says the same (0600).
        let mut folder = tempfile::Builder::new();
        #[cfg(unix)]
        folder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = folder.prefix("crosstalk-").tempdir()?;
        let path = folder.path().join("message.md");
        let scissors = (!reference.trim().is_empty()).then(|| scissors_for(draft));
        let mut content = draft.to_owned();
        if let Some(scissors) = &scissors {
            let reference = escape(reference);
            // Some editors obey what they read in the last lines of a file: those are ours.
            content = format!(
                "{}\n\n{scissors}\n{NOTE}\n\n{}\n\n{}",
                draft.trim_end(),
                reference.trim_end(),
                "#\n".repeat(6)
            );
        }
        private(&path)?.write_all(content.as_bytes())?;
        Ok(Self {
            folder,
            path,
            scissors,
            text: trimmed(draft),
        })
    }

    /// The file to open.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The written text, without trailing white space, its lines ended by LF.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Reads what is in the file now. Editors may have replaced it: it is found by its name.
    pub(super) fn read(&mut self) -> io::Result<()> {
        let most = u64::try_from(limit::PASTE_BYTES).unwrap_or(u64::MAX);
        let mut text = String::new();
        File::open(&self.path)?
            .take(most + 1)
            .read_to_string(&mut text)?;
        if text.len() > limit::PASTE_BYTES {
            let bytes = limit::PASTE_BYTES;
            return Err(io::Error::other(format!("it is larger than {bytes} bytes")));
        }
        self.text = trimmed(self.above_the_line(&text));
        Ok(())
    }

    fn above_the_line<'t>(&self, text: &'t str) -> &'t str {
        let Some(scissors) = &self.scissors else {
            return text;
        };
        let mut end = 0;
        for line in text.split_inclusive('\n') {
            if line.trim() == scissors {
                break;
            }
            end += line.len();
        }
        text.get(..end).unwrap_or(text)
    }

    /// Keeps the text in its file, without the reference, and says where that is.
    pub(crate) fn keep(self) -> io::Result<PathBuf> {
        // What could not be read as text is left as it is.
        if let Ok(there) = fs::read_to_string(&self.path)
            && trimmed(self.above_the_line(&there)) == self.text
        {
            fs::write(&self.path, format!("{}\n", self.text))?;
        } else if !self.path.exists() {
            private(&self.path)?.write_all(format!("{}\n", self.text).as_bytes())?;
        }
        let _ = self.folder.keep();
        Ok(self.path)
    }

    /// Keeps the file if there is anything in it.
    pub(super) fn keep_if_any(self) -> Option<PathBuf> {
        let readable = fs::read_to_string(&self.path).is_ok() || !self.path.exists();
        match readable && self.text.is_empty() {
            true => None,
            false => self.keep().ok(),
        }
    }
}

/// Trailing white space says nothing, and CRLF is how some editors write.
fn trimmed(text: &str) -> String {
    text.trim_start_matches('\u{feff}')
        .replace("\r\n", "\n")
        .trim_end()
        .to_owned()
}

/// A line that is not in the draft already.
fn scissors_for(draft: &str) -> String {
    let mut dashes = "-".repeat(24);
    loop {
        let line = format!("# {dashes} >8 {dashes}");
        if !draft.lines().any(|l| l.trim() == line) {
            return line;
        }
        dashes.push('-');
    }
}

/// A new file that its owner alone can read.
fn private(path: &Path) -> io::Result<File> {
    private_file().create_new(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_private_and_goes_away() {
        let draft = Draft::new("text", "reference").unwrap();
        let path = draft.path().to_owned();
        assert_eq!(path.extension().unwrap(), "md");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |p: &Path| fs::metadata(p).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(&path), 0o600);
            assert_eq!(mode(path.parent().unwrap()), 0o700);
        }
        drop(draft);
        assert!(!path.parent().unwrap().exists());
    }

    #[test]
    fn the_reference_is_below_the_line_and_escaped() {
        let draft = Draft::new("mine", "theirs\u{202e}\n# and more\n").unwrap();
        let content = fs::read_to_string(draft.path()).unwrap();
        assert_eq!(
            content,
            format!(
                "mine\n\n# ------------------------ >8 ------------------------\n{NOTE}\n\ntheirs\\u{{202e}}\n# and more\n\n#\n#\n#\n#\n#\n#\n"
            )
        );
        let plain = Draft::new("mine", "\n").unwrap();
        assert_eq!(fs::read_to_string(plain.path()).unwrap(), "mine");
    }

    #[test]
    fn a_draft_that_has_the_line_already_is_not_cut() {
        let own = "one\n# ------------------------ >8 ------------------------\ntwo";
        let mut draft = Draft::new(own, "reference").unwrap();
        draft.read().unwrap();
        assert_eq!(draft.text(), own);
    }

    #[test]
    fn the_line_is_found_with_other_line_ends_and_its_absence_drops_nothing() {
        let mut draft = Draft::new("", "reference").unwrap();
        let content = fs::read_to_string(draft.path()).unwrap();
        fs::write(
            draft.path(),
            format!("\u{feff}a\nb  {content}").replace('\n', "\r\n"),
        )
        .unwrap();
        draft.read().unwrap();
        assert_eq!(draft.text(), "a\nb");
        fs::write(draft.path(), "all of it\n# mine\n").unwrap();
        draft.read().unwrap();
        assert_eq!(draft.text(), "all of it\n# mine");
    }

    #[test]
    fn a_kept_draft_stays_without_its_reference() {
        let mut draft = Draft::new("kept", "reference").unwrap();
        draft.read().unwrap();
        let path = draft.keep().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "kept\n");
        fs::remove_file(&path).unwrap();
        let empty = path.parent().unwrap();
        fs::remove_dir(empty).unwrap();

        // An editor that removed the file: the draft is written again.
        let draft = Draft::new("kept", "reference").unwrap();
        fs::remove_file(draft.path()).unwrap();
        let path = draft.keep().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "kept\n");
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }
}
