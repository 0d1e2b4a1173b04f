//! Where a paste comes from: files, stdin, or the clipboard.

use super::Paste;
use crate::console::Console;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::input::Input;
use std::io::IsTerminal as _;
use std::path::Path;

/// The texts to take messages from.
pub(super) fn read(
    command: &Paste,
    console: &mut Console,
    desk: &Desk,
) -> Result<Vec<Input>, Failure> {
    if !command.files.is_empty() {
        let files = command.files.iter();
        return files.map(|f| Input::read(f, console)).collect();
    }
    if !command.clipboard && is_piped() {
        let input = Input::read(Path::new("-"), console)?;
        // Nothing at all in the pipe: whoever started this meant the clipboard.
        if !input.is_empty() {
            return Ok(vec![input]);
        }
    }
    let mut clipboard = desk.clipboard()?;
    Ok(vec![Input::of_text("clipboard", clipboard.read()?)])
}

/// Whether stdin brings something: a pipe or a file, and neither a terminal nor nothing.
fn is_piped() -> bool {
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
