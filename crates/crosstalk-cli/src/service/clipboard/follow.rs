//! Following the clipboard: each text that is copied after the first look, once.

use super::{Choice, Clipboard, ClipboardError};
use crosstalk_envelope::meta::Digest;

/// Looks at the clipboard again and again.
///
/// It opens the clipboard for each look: a display that can't be reached for a moment is looked at again.
#[derive(Debug)]
pub(crate) struct Follower {
    choice: Choice,
    seen: LastSeen,
}

/// The content of the clipboard at the last look that got an answer.
#[derive(Debug, PartialEq, Eq)]
enum LastSeen {
    /// No look got an answer yet: the text that comes first may have been there before.
    Unknown,
    Nothing,
    Text(Digest),
}

impl Follower {
    pub(crate) const fn new(choice: Choice) -> Self {
        Self {
            choice,
            seen: LastSeen::Unknown,
        }
    }

    /// Looks once. Returns the text that was copied since the last look, and nothing at the first one.
    pub(crate) fn look(&mut self) -> Result<Option<String>, ClipboardError> {
        let read = self.open_and_read();
        self.note(read)
    }

    /// Reads the text that is on the clipboard now, whether it was seen or not.
    pub(crate) fn read(&mut self) -> Result<String, ClipboardError> {
        let text = self.open_and_read()?;
        self.mark_copied(&text);
        Ok(text)
    }

    fn open_and_read(&mut self) -> Result<String, ClipboardError> {
        let mut clipboard = Clipboard::open(self.choice)?;
        if clipboard.is_system() {
            // A display that is gone for a moment is no reason to turn to the terminal.
            self.choice = Choice::System;
        }
        clipboard.read()
    }

    /// Whether a look got an answer: each text that is copied from now on is returned.
    pub(crate) fn has_looked(&self) -> bool {
        self.seen != LastSeen::Unknown
    }

    /// Takes a text for seen which this program has just copied.
    pub(crate) fn mark_copied(&mut self, text: &str) {
        self.seen = LastSeen::Text(Digest::of(text.as_bytes()));
    }

    fn note(
        &mut self,
        read: Result<String, ClipboardError>,
    ) -> Result<Option<String>, ClipboardError> {
        match read {
            Ok(text) => {
                let now = LastSeen::Text(Digest::of(text.as_bytes()));
                let is_new = self.has_looked() && self.seen != now;
                self.seen = now;
                Ok(is_new.then_some(text))
            }
            Err(fault) => {
                let has_no_text = matches!(
                    fault,
                    ClipboardError::Empty
                        | ClipboardError::Files
                        | ClipboardError::NotText
                        | ClipboardError::TooLarge
                );
                if has_no_text && !self.has_looked() {
                    self.seen = LastSeen::Nothing;
                }
                Err(fault)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(looks: &[Result<&str, ClipboardError>]) -> Vec<String> {
        let mut follower = Follower::new(Choice::None);
        let looks = looks.iter().cloned().map(|l| l.map(str::to_owned));
        looks
            .filter_map(|look| follower.note(look).ok().flatten())
            .collect()
    }

    #[test]
    fn texts_are_returned_once_and_the_first_one_never() {
        assert_eq!(after(&[Ok("old"), Ok("old")]), [""; 0]);
        assert_eq!(
            after(&[Ok("old"), Ok("a"), Ok("a"), Ok("old")]),
            ["a", "old"]
        );
        assert_eq!(after(&[Err(ClipboardError::Empty), Ok("a")]), ["a"]);
        assert_eq!(after(&[Err(ClipboardError::NotText), Ok("a")]), ["a"]);
    }

    #[test]
    fn looks_without_an_answer_change_nothing() {
        let (late, gone) = (
            || Err(ClipboardError::NoAnswer),
            || Err(ClipboardError::Missing("x".into())),
        );
        // A text that is found then may have been there all the time.
        assert_eq!(after(&[late(), gone(), Ok("old"), Ok("a")]), ["a"]);
        assert_eq!(
            after(&[Ok("old"), gone(), Ok("old"), late(), Ok("a")]),
            ["a"]
        );
    }

    #[test]
    fn texts_that_were_copied_here_are_not_returned() {
        let mut follower = Follower::new(Choice::None);
        follower.mark_copied("question");
        assert_eq!(follower.note(Ok("question".into())), Ok(None));
        assert_eq!(
            follower.note(Ok("answer".into())),
            Ok(Some("answer".into()))
        );
    }
}
