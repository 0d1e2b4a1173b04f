//! A progress line on a terminal.

use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// A progress line on a terminal.
pub(crate) struct ProgressLine(ProgressBar);

impl ProgressLine {
    pub(crate) fn start(what: &'static str) -> Self {
        let bar = ProgressBar::no_length();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {pos}{len}") {
            bar.set_style(style.with_key(
                "len",
                |state: &indicatif::ProgressState, w: &mut dyn std::fmt::Write| {
                    if let Some(len) = state.len() {
                        let _ = write!(w, " of {len}");
                    }
                },
            ));
        }
        bar.set_message(what);
        bar.enable_steady_tick(Duration::from_millis(100));
        Self(bar)
    }

    pub(crate) fn at(&self, done: u64, all: u64) {
        self.0.set_length(all);
        self.0.set_position(done);
    }

    pub(crate) fn count(&self, done: u64) {
        self.0.set_position(done);
    }

    pub(crate) fn next(&self, what: &'static str) {
        self.0.unset_length();
        self.0.set_position(0);
        self.0.set_message(what);
    }

    pub(crate) fn end(&self) {
        self.0.finish_and_clear();
    }
}
