//! A progress bar on stderr, if stderr is a terminal.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ingest::run::Progress;

/// A bar that shows the progress of an ingest.
pub struct IngestBar(ProgressBar);

impl IngestBar {
    /// Creates a bar that is visible only if stderr is a terminal and `quiet` is false.
    pub fn new(quiet: bool) -> Self {
        let bar = ProgressBar::hidden();
        if !quiet && std::io::stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(20));
        }
        let template = "{bar:30} {decimal_bytes} of {decimal_total_bytes}, {decimal_bytes_per_sec}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

impl Progress for IngestBar {
    fn set_total(&self, _files: u64, bytes: u64) {
        self.0.set_length(bytes);
    }

    fn add_bytes_read(&self, bytes: u64) {
        self.0.inc(bytes);
    }
}
