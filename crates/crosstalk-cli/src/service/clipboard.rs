//! The clipboard: of the system, or of the terminal that a person looks at.
//!
//! ```text
//! System    read and written; what was written is read back before anybody is told that it is there
//!   hold    X11 and Wayland ask the program that copied: a process of our own stays and answers
//! Terminal  written only, by an escape sequence (OSC 52): the way over SSH. Nobody says whether it arrived
//! ```
//!
//! Text from the clipboard is untrusted like any other input: it is shown only escaped.

mod fault;
mod follow;
mod hold;
mod system;
mod terminal;

pub(crate) use fault::ClipboardError;
pub(crate) use follow::Follower;
pub(crate) use hold::{COMMAND as HOLD, hold};

use clap::ValueEnum;
use std::str::FromStr;
use system::System;
use terminal::Terminal;

/// The variable with a person's choice.
pub(crate) const VARIABLE: &str = "CROSSTALK_CLIPBOARD";

/// Which clipboard to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Choice {
    /// The system's if there is one, else over SSH the terminal's, else none
    #[default]
    Auto,
    /// The one of the desktop
    System,
    /// The one of the terminal, which can only be written (OSC 52)
    Terminal,
    /// None
    None,
}

impl Choice {
    /// All of them, in the order of the documentation.
    pub(crate) const ALL: [Self; 4] = [Self::Auto, Self::System, Self::Terminal, Self::None];

    /// The word of the configuration, of the variable and of the option.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::System => "system",
            Self::Terminal => "terminal",
            Self::None => "none",
        }
    }

    /// The choice of the command line, else of [`VARIABLE`], else of the configuration, else [`Choice::Auto`].
    pub(crate) fn of(
        asked: Option<Self>,
        configured: Option<Self>,
    ) -> Result<Self, ClipboardError> {
        Self::first(asked, std::env::var_os(VARIABLE), configured)
    }

    fn first(
        asked: Option<Self>,
        variable: Option<std::ffi::OsString>,
        configured: Option<Self>,
    ) -> Result<Self, ClipboardError> {
        if let Some(asked) = asked {
            return Ok(asked);
        }
        let said = variable.filter(|v| !v.is_empty());
        let said = said.map(|v| v.to_string_lossy().parse()).transpose()?;
        Ok(said.or(configured).unwrap_or_default())
    }
}

impl FromStr for Choice {
    type Err = ClipboardError;

    fn from_str(text: &str) -> Result<Self, ClipboardError> {
        let found = Self::ALL.into_iter().find(|c| c.as_str() == text);
        found.ok_or_else(|| ClipboardError::Setting(text.to_owned()))
    }
}

/// How a text was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copied {
    /// It is on the clipboard of the system: it was read back and is the same.
    System,
    /// The terminal was asked to take it, and does not say whether it did.
    Terminal,
}

impl Copied {
    /// A sentence for the person who copied, without a full stop.
    pub(crate) const fn sentence(self) -> &'static str {
        match self {
            Self::System => "copied to the clipboard",
            Self::Terminal => {
                "sent to the terminal for its clipboard; the terminal does not confirm it"
            }
        }
    }
}

/// A clipboard, or the reason why there is none.
#[derive(Debug)]
pub(crate) struct Clipboard(ClipboardBackend);

#[derive(Debug)]
enum ClipboardBackend {
    System(System),
    Terminal(Terminal),
    None(ClipboardError),
}

impl Clipboard {
    /// Opens it. With [`Choice::Auto`] and [`Choice::None`] this works always, and where there is no clipboard, reading
    /// and writing say why; what was asked for by name has to be there.
    pub(crate) fn open(choice: Choice) -> Result<Self, ClipboardError> {
        let way = match choice {
            Choice::System => ClipboardBackend::System(System::open()?),
            Choice::Terminal => ClipboardBackend::Terminal(Terminal::open()?),
            Choice::None => ClipboardBackend::None(ClipboardError::Off),
            Choice::Auto => match System::open() {
                Ok(system) => ClipboardBackend::System(system),
                Err(fault) if terminal::is_far() => Terminal::open()
                    .map_or(ClipboardBackend::None(fault), ClipboardBackend::Terminal),
                Err(fault) => ClipboardBackend::None(fault),
            },
        };
        Ok(Self(way))
    }

    /// Whether it is the clipboard of the system, which can be read.
    fn is_system(&self) -> bool {
        matches!(self.0, ClipboardBackend::System(_))
    }

    /// The text on it, as it is: with the line ends that it has, and never empty.
    pub(crate) fn read(&mut self) -> Result<String, ClipboardError> {
        match &mut self.0 {
            ClipboardBackend::System(system) => system.read(),
            ClipboardBackend::Terminal(_) => Err(ClipboardError::WriteOnly),
            ClipboardBackend::None(why) => Err(why.clone()),
        }
    }

    /// Copies a text, and says how. On Windows its lines end with CRLF then.
    pub(crate) fn write(&mut self, text: &str) -> Result<Copied, ClipboardError> {
        match &mut self.0 {
            ClipboardBackend::System(system) => system.write(text).map(|()| Copied::System),
            ClipboardBackend::Terminal(terminal) => terminal.write(text).map(|()| Copied::Terminal),
            ClipboardBackend::None(why) => Err(why.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_comes_before_the_variable_and_that_before_the_configuration() {
        let (terminal, none) = (Some(Choice::Terminal), Some(Choice::None));
        let first = |asked, variable: &str, configured| {
            Choice::first(asked, Some(variable.into()), configured)
        };
        assert_eq!(first(terminal, "none", none).unwrap(), Choice::Terminal);
        assert_eq!(first(None, "none", terminal).unwrap(), Choice::None);
        assert_eq!(first(None, "", terminal).unwrap(), Choice::Terminal);
        assert_eq!(Choice::first(None, None, None).unwrap(), Choice::Auto);
        let help = first(None, "Sistem", none).unwrap_err().help();
        assert!(help.contains("auto, system, terminal"), "{help}");
        // A wrong variable does not matter where it is not looked at.
        assert_eq!(first(none, "Sistem", None).unwrap(), Choice::None);
    }

    #[test]
    fn every_choice_has_the_word_of_its_option() {
        for choice in Choice::ALL {
            assert_eq!(choice.as_str().parse::<Choice>().unwrap(), choice);
            let option = choice.to_possible_value().unwrap();
            assert_eq!(option.get_name(), choice.as_str());
        }
    }

    #[test]
    fn a_clipboard_that_is_switched_off_says_so() {
        let mut off = Clipboard::open(Choice::None).unwrap();
        assert_eq!(off.read().unwrap_err(), ClipboardError::Off);
        assert_eq!(off.write("x").unwrap_err(), ClipboardError::Off);
    }
}
