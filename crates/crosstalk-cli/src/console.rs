//! The two streams: data goes to stdout, talk to stderr.
//!
//! Both carry UTF-8. On Windows, the standard library turns it into UTF-16 for a console, whatever its code page is;
//! into a pipe or a file the bytes go as they are. Nothing here may write to a console around it.

use crate::cli::Color;
use crate::failure::Failure;
use crate::json;
use crate::paragraph::{self, wrap};
use crate::schema::NamedForm;
use crate::screen;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use crosstalk_envelope::Severity;
use crosstalk_envelope::unicode::escape;
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use std::io::{BufRead as _, IsTerminal as _, Stderr, Stdout, Write as _};

/// The style of a fault.
pub(crate) const RED: Style = AnsiColor::Red.on_default().bold();
/// The style of a caution.
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
/// The style of something that went well.
pub(crate) const GREEN: Style = AnsiColor::Green.on_default().bold();
/// The style of a repair.
pub(crate) const CYAN: Style = AnsiColor::Cyan.on_default();
/// The style of secondary text.
pub(crate) const DIM: Style = Style::new().dimmed();
/// The style of emphasis.
pub(crate) const BOLD: Style = Style::new().bold();

/// The style of what is drawn around text.
pub(crate) const BLUE: Style = AnsiColor::Blue.on_default().bold();

/// The style of a finding.
pub(crate) const fn severity_style(severity: Severity) -> Style {
    match severity {
        Severity::Error => RED,
        Severity::Warning => YELLOW,
        Severity::Repair => CYAN,
        Severity::Note => DIM,
    }
}

/// Some text in a style.
pub(crate) fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// A text whose lines are not wider than the terminal, if there is one.
pub(crate) fn fitted(text: &str, columns: Option<usize>) -> Cow<'_, str> {
    match columns {
        Some(columns) => screen::fit(text, columns),
        None => Cow::Borrowed(text),
    }
}

fn is_yes(answer: &str) -> bool {
    ["y", "yes"]
        .iter()
        .any(|yes| answer.eq_ignore_ascii_case(yes))
}

/// Stdout and stderr. Neither is locked between two writes: other threads of a command may have something to say.
pub(crate) struct Console {
    out: Stdout,
    err: Stderr,
    out_color: ColorChoice,
    err_color: ColorChoice,
    /// The columns that a line of each may have, where that is known.
    out_columns: Option<usize>,
    err_columns: Option<usize>,
    profile: Option<String>,
    /// Nothing is written: the streams belong to a protocol.
    is_muted: bool,
}

impl Console {
    pub(crate) fn new(color: Color, profile: Option<String>) -> Self {
        let (out, err) = (std::io::stdout(), std::io::stderr());
        let choose = |auto| match color {
            Color::Auto => auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        };
        let (out_columns, err_columns) = (screen::stdout_columns(), screen::stderr_columns());
        if let Some(narrower) = out_columns.into_iter().chain(err_columns).min() {
            paragraph::set_columns(narrower);
        }
        Self {
            out_columns,
            err_columns,
            out_color: choose(AutoStream::choice(&out)),
            err_color: choose(AutoStream::choice(&err)),
            out,
            err,
            profile,
            is_muted: false,
        }
    }

    /// One that writes nothing, for work on behalf of a client that owns the streams.
    pub(crate) fn muted(profile: Option<String>) -> Self {
        Self {
            is_muted: true,
            ..Self::new(Color::Never, profile)
        }
    }

    /// The profile of the settings that the command was called with.
    pub(crate) fn profile(&self) -> Option<&str> {
        self.profile.as_deref()
    }

    /// Whether somebody looks at stdout.
    pub(crate) fn is_terminal(&self) -> bool {
        self.out.is_terminal()
    }

    /// The columns that a line on stdout may have; nothing where lines stay whole.
    pub(crate) const fn columns(&self) -> Option<usize> {
        self.out_columns
    }

    /// Writes data to stdout, byte for byte.
    pub(crate) fn data(&mut self, data: impl AsRef<[u8]>) -> Result<(), Failure> {
        if self.is_muted {
            return Ok(());
        }
        self.out
            .write_all(data.as_ref())
            .map_err(Failure::of_output)
    }

    /// Writes an answer for programs to stdout, with the name of its form.
    pub(crate) fn report<T: Serialize + JsonSchema>(
        &mut self,
        form: &'static str,
        answer: &T,
    ) -> Result<(), Failure> {
        self.data(json::pretty(&NamedForm::new(form, answer))?)
    }

    /// Writes an envelope or another text to stdout: as it is for a program, and for a terminal without anything that it
    /// would act on.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), Failure> {
        match self.is_terminal() {
            true => self.data(escape(text).as_bytes()),
            false => self.data(text),
        }
    }

    /// Writes text for people to stdout; its styles are dropped where they don't belong, and lines that are too wide for
    /// the terminal are broken.
    pub(crate) fn show(&mut self, text: &str) -> Result<(), Failure> {
        if self.is_muted {
            return Ok(());
        }
        let text = fitted(text, self.out_columns);
        AutoStream::new(&mut self.out, self.out_color)
            .write_all(text.as_bytes())
            .map_err(Failure::of_output)
    }

    /// Writes text for people to stderr, as [`Self::show`] does to stdout.
    pub(crate) fn talk(&mut self, text: &str) -> Result<(), Failure> {
        if self.is_muted {
            return Ok(());
        }
        let text = fitted(text, self.err_columns);
        AutoStream::new(&mut self.err, self.err_color)
            .write_all(text.as_bytes())
            .map_err(Failure::of_output)
    }

    /// Writes a paragraph to stderr.
    pub(crate) fn tell(&mut self, text: &str) -> Result<(), Failure> {
        self.talk(&format!("{}\n", wrap(text, 0, 0)))
    }

    /// Tells on stderr what is worth knowing.
    pub(crate) fn note(&mut self, text: &str) -> Result<(), Failure> {
        let text = wrap(&escape(text), 6, 0);
        self.talk(&format!("{}: {text}\n", styled(YELLOW, "note")))
    }

    /// Tells on stderr what to be careful about.
    pub(crate) fn warning(&mut self, text: &str) -> Result<(), Failure> {
        let text = wrap(&escape(text), 9, 0);
        self.talk(&format!("{}: {text}\n", styled(YELLOW, "warning")))
    }

    /// Tells about a failure on stderr.
    pub(crate) fn failure(&mut self, failure: &Failure) -> Result<(), Failure> {
        match failure.is_closed_pipe() {
            true => Ok(()),
            false => self.talk(&format!("{}: {failure}\n", styled(RED, "error"))),
        }
    }

    /// Whether a person can be asked: they see the question on stderr and type the answer.
    pub(crate) fn can_ask(&self) -> bool {
        !self.is_muted && std::io::stdin().is_terminal() && self.err.is_terminal()
    }

    /// Asks a person for a line, which comes without the spaces around it. Nothing if nobody can be asked, or the input
    /// has ended.
    pub(crate) fn ask(&mut self, question: &str) -> Result<Option<String>, Failure> {
        if !self.can_ask() {
            return Ok(None);
        }
        self.talk(question)?;
        self.err.flush().map_err(Failure::of_output)?;
        let mut line = Vec::new();
        let read = std::io::stdin().lock().read_until(b'\n', &mut line);
        let read = read.map_err(|e| Failure::io("stdin", e))?;
        let line = String::from_utf8_lossy(&line).trim().to_owned();
        Ok((read > 0).then_some(line))
    }

    /// Asks a person to confirm what can't be undone; Enter alone means no. Where nobody can be asked, the failure says that
    /// `--yes` does what `action` names.
    pub(crate) fn confirm(&mut self, question: &str, action: &str) -> Result<bool, Failure> {
        if !self.can_ask() {
            return Err(Failure::usage("not a terminal").help(format!("pass --yes to {action}")));
        }
        let answer = self.ask(&format!("{} [y/N] ", wrap(question, 0, 0)))?;
        Ok(answer.is_some_and(|a| is_yes(&a)))
    }

    /// Offers something to a person; Enter alone means yes. Where nobody can be asked, the answer is no.
    pub(crate) fn offer(&mut self, question: &str) -> Result<bool, Failure> {
        let answer = self.ask(&format!("{question} [Y/n] "))?;
        Ok(answer.is_some_and(|a| a.is_empty() || is_yes(&a)))
    }

    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.out.flush().map_err(Failure::of_output)
    }
}
