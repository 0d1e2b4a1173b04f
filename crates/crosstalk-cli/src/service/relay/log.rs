//! The log of a running relay: text for people on a terminal, JSON for programs.

use crate::failure::Failure;
use clap::ValueEnum;
use std::io::IsTerminal as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layered, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry};

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
    let filter = require_filter(level)?;
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines: Box<dyn Layer<Layered<Targets, Registry>> + Send + Sync> = match format {
        LogFormat::Text => lines.with_ansi(false).with_target(false).boxed(),
        LogFormat::Json => lines
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .boxed(),
    };
    tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .try_init()
        .map_err(|e| Failure::failed(format!("the log can't be started: {e}")))
}

/// Whether a log could be started with this level or filter.
pub(crate) fn check(level: &str) -> Result<(), Failure> {
    require_filter(level).map(drop)
}

fn require_filter(level: &str) -> Result<Targets, Failure> {
    filter(level).ok_or_else(|| {
        Failure::usage(format!("--log `{level}` is no level")).help(
            "write off, error, warn, info, debug or trace, or levels for parts of the program \
             as in info,crosstalk_relay=debug",
        )
    })
}

/// The filter that a text describes, or nothing if it describes none.
fn filter(text: &str) -> Option<Targets> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '-');
    let is_good = |part: &&str| {
        match part.split_once('=') {
            Some((target, level)) => target.chars().all(is_name) && is_level(level),
            // A lone word that is no level would be taken for a part of the program that logs everything.
            None => is_level(part),
        }
    };
    match parts.iter().all(is_good) {
        true if parts.is_empty() => Some(Targets::new()),
        true => parts.join(",").parse().ok(),
        false => None,
    }
}

fn is_level(word: &str) -> bool {
    let levels = ["off", "error", "warn", "info", "debug", "trace"];
    levels.iter().any(|level| level.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::filter::LevelFilter;

    #[test]
    fn levels_and_targets_are_read() {
        let level = |text: &str| filter(text).and_then(|f| f.default_level());
        assert_eq!(level("info"), Some(LevelFilter::INFO));
        assert_eq!(
            level("info, ,crosstalk_relay=debug,"),
            Some(LevelFilter::INFO)
        );
        assert_eq!(level("OFF"), Some(LevelFilter::OFF));
        let relay = filter("warn, crosstalk_relay::core=trace").unwrap();
        let wants = |target| relay.would_enable(target, &tracing::Level::DEBUG);
        assert!(wants("crosstalk_relay::core") && !wants("hyper"));
        // Nothing is asked for.
        assert!(
            !filter("")
                .unwrap()
                .would_enable("crosstalk_relay", &tracing::Level::ERROR)
        );
    }

    #[test]
    fn texts_that_describe_no_filter_are_rejected() {
        for wrong in [
            "*",
            "x[span]=debug",
            "[{id=1}]=debug",
            "x=",
            "x=loud",
            "inof",
            "noisy",
            "crosstalk_relay",
            "info,hyper",
            "3",
            "x=3",
            "a b",
        ] {
            assert!(filter(wrong).is_none(), "{wrong}");
        }
    }
}
