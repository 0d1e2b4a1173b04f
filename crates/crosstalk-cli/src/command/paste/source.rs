//! Where a paste comes from: files, stdin, or the clipboard.

use super::Paste;
use crate::console::Console;
use crate::failure::Failure;
use crate::input::{Input, is_piped};
use crate::service::workspace::Desk;
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
