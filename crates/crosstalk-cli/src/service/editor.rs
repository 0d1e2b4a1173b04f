//! A text that a person writes in an editor of their choice.
//!
//! The file is private, and is there until the text has become a message: whatever fails, nothing that was written is
//! lost, and its place is named.

mod draft;
mod program;

pub(crate) use draft::Draft;
pub(crate) use program::Editor;

use crate::failure::Failure;
use std::io;
use std::path::PathBuf;

/// The result of the editor.
#[derive(Debug)]
pub(crate) enum Composed {
    /// A text; its file is there until the draft is dropped.
    Text(Draft),
    /// Nothing was written: the person does not want to.
    Empty,
}

/// Why there is no text.
#[derive(Debug)]
pub(crate) enum EditorError {
    /// No editor was chosen, and there is no terminal for one.
    NoTerminal,
    /// No editor was chosen, and none is installed.
    NoEditor,
    /// The editor could not be started, or failed: which, why, and where the text is.
    Failed(String, String, Option<PathBuf>),
    /// The file can't be written or read: where the text is.
    File(io::Error, Option<PathBuf>),
}

/// Opens an editor on a draft and gives what was written. The reference stands below a line in the file, for looking
/// at, and never gets into the text; it is escaped here. `configured` is the editor of the configuration, which comes
/// before `VISUAL` and `EDITOR`.
pub(crate) fn compose(
    draft: &str,
    reference: &str,
    configured: Option<&str>,
) -> Result<Composed, EditorError> {
    let program = Editor::find(configured)?;
    let mut draft = Draft::new(draft, reference).map_err(|e| EditorError::File(e, None))?;
    let ran = program.run(draft.path());
    // An editor that failed may have written before: what is in the file now is what is to be kept.
    let read = draft.read();
    if let Err(why) = ran {
        let name = program.name().to_owned();
        return Err(EditorError::Failed(name, why, draft.keep_if_any()));
    }
    match read {
        Err(fault) => Err(EditorError::File(fault, draft.keep_if_any())),
        Ok(()) if draft.text().is_empty() => Ok(Composed::Empty),
        Ok(()) => Ok(Composed::Text(draft)),
    }
}

impl From<EditorError> for Failure {
    fn from(fault: EditorError) -> Self {
        let (what, help, kept) = match fault {
            EditorError::NoTerminal => {
                return Self::usage("there is no terminal to write the text on")
                    .help("give it with --body, or name an editor in VISUAL or EDITOR");
            }
            EditorError::NoEditor => {
                return Self::usage("no editor found")
                    .help("name one in VISUAL or EDITOR, or give the text with --body");
            }
            EditorError::Failed(name, why, kept) => (
                format!("the editor `{name}` {why}"),
                "name another one in VISUAL or EDITOR",
                kept,
            ),
            EditorError::File(fault, kept) => (
                format!("the file of the draft can't be used: {fault}"),
                "",
                kept,
            ),
        };
        let kept = kept.map(|path| format!("the draft is kept in {}", path.display()));
        let help = [Some(help.to_owned()).filter(|h| !h.is_empty()), kept];
        let help: Vec<String> = help.into_iter().flatten().collect();
        Self::failed(what).help(help.join("; "))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn composed(draft: &str, reference: &str, editor: &str) -> Result<Composed, EditorError> {
        compose(draft, reference, Some(editor))
    }

    /// The text; it may be empty.
    fn text(composed: Composed) -> String {
        match composed {
            Composed::Text(draft) => draft.text().to_owned(),
            Composed::Empty => String::new(),
        }
    }

    #[test]
    fn what_is_written_comes_back_without_the_reference() {
        let editor = "printf 'Yes,\\r\\nthey did.  \\n\\n' >";
        let written = text(composed("Did they?", "secret", editor).unwrap());
        assert_eq!(written, "Yes,\nthey did.");
        // An editor that is closed at once leaves the draft as it was.
        let left = text(composed("Did they?\n", "line one\nline two", "true").unwrap());
        assert_eq!(left, "Did they?");
        let empty = composed("", "[[A→B v1]]", "true").unwrap();
        assert!(matches!(empty, Composed::Empty));
    }

    #[test]
    fn an_editor_may_have_arguments_and_quotes() {
        let editor = "sh -c 'printf \"%s\" \"two  words\" > \"$1\"' sh";
        assert_eq!(text(composed("", "", editor).unwrap()), "two  words");
    }

    #[test]
    fn a_failing_editor_loses_nothing() {
        let fault = composed("", "", "printf written > \"$1\"; false").unwrap_err();
        let EditorError::Failed(_, why, Some(path)) = &fault else {
            panic!("{fault:?}");
        };
        assert_eq!(why, "ended with exit code 1");
        let path = path.clone();
        let told = Failure::from(fault).to_string();
        assert!(told.contains(&path.display().to_string()), "{told}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "written\n");
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();

        let fault = composed("a draft", "", "no-such-editor-anywhere").unwrap_err();
        let EditorError::Failed(name, why, Some(path)) = fault else {
            panic!("it was started");
        };
        assert_eq!(
            (name.as_str(), why.as_str()),
            ("no-such-editor-anywhere", "is not found")
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a draft\n");
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();

        // With nothing written there is nothing to keep.
        let fault = composed("", "a reference", "false").unwrap_err();
        assert!(matches!(fault, EditorError::Failed(_, _, None)));
    }

    #[test]
    fn a_file_that_is_no_text_any_more_is_kept_as_it_is() {
        let fault = composed("", "", "printf 'a\\377b' >").unwrap_err();
        let EditorError::File(_, Some(path)) = fault else {
            panic!("{fault:?}");
        };
        assert_eq!(std::fs::read(&path).unwrap(), b"a\xffb");
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    /// Where the result of [`on_a_terminal`] goes.
    const RESULT: &str = "CROSSTALK_TEST_COMPOSED";

    /// Not a test of its own: what runs on the terminal of the test below.
    #[test]
    #[ignore = "runs on the terminal of another test"]
    fn on_a_terminal() {
        // As a command does, and with data still on its way.
        let mut console = crate::console::Console::new(crate::cli::Color::Never, None);
        console.data("before ").unwrap();
        let result = compose("a draft", "the question\u{202e}", None).unwrap();
        console.data("after\n").unwrap();
        std::fs::write(std::env::var_os(RESULT).unwrap(), text(result)).unwrap();
    }

    #[test]
    fn a_real_editor_has_the_terminal() {
        let folder = tempfile::tempdir().unwrap();
        let own = std::env::current_exe().unwrap();
        let command = format!(
            "{} --ignored --exact --nocapture service::editor::tests::on_a_terminal",
            own.display()
        );
        let terminal = crosstalk_testing::tmux::Tmux::start(80, 24);
        for (number, more) in ["", " | cat", " > data"].into_iter().enumerate() {
            let result = folder.path().join(number.to_string());
            terminal.type_text(&format!(
                "cd {}; clear; {RESULT}={} EDITOR='nano -R -I' {command}{more}; echo all done\n",
                folder.path().display(),
                result.display(),
            ));
            // The reference is below the line, escaped.
            let screen = terminal.wait_for("the question\\u{202e}");
            assert!(screen.contains(">8"), "{screen}");
            terminal.type_text("Yes, ");
            terminal.wait_for("Yes, a draft");
            terminal.send_keys(&["C-s", "C-x"]);
            terminal.wait_for("all done");
            assert_eq!(std::fs::read_to_string(&result).unwrap(), "Yes, a draft");
        }
        // The drawing of the editor is not among the data.
        let data = std::fs::read_to_string(folder.path().join("data")).unwrap();
        assert!(
            data.contains("before after\n") && !data.contains('\u{1b}'),
            "{data:?}"
        );
    }
}
