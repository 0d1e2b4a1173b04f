//! What a relay says while it runs: lines for people on a terminal, JSON for programs.

use crate::failure::Failure;
use clap::ValueEnum;
use std::io::IsTerminal as _;
use tracing_subscriber::EnvFilter;

/// The form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people
    Text,
    /// One JSON object a line
    Json,
}

impl LogFormat {
    /// The one that was asked for, else text on a terminal and JSON for programs.
    pub(crate) fn or_fitting(chosen: Option<Self>) -> Self {
        chosen.unwrap_or(match std::io::stderr().is_terminal() {
            true => Self::Text,
            false => Self::Json,
        })
    }
}

/// Starts the log on stderr: a level, or a filter such as `info,crosstalk_relay=debug`.
pub(crate) fn start(format: LogFormat, level: &str) -> Result<(), Failure> {
    let filter = EnvFilter::try_new(level).map_err(|e| {
        Failure::Usage(format!(
            "--log `{level}` is no level: write error, warn, info, debug or trace ({e})"
        ))
    })?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    let started = match format {
        LogFormat::Text => builder.with_ansi(false).with_target(false).try_init(),
        LogFormat::Json => builder
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .try_init(),
    };
    started.map_err(|e| Failure::Failed(format!("the log can't be started: {e}")))
}
