//! A progress bar on stderr, when that is a terminal.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ingest::run::Progress;

/// Shows how far an ingest is.
pub struct Bar(ProgressBar);

impl Bar {
    /// A bar that shows itself only where somebody can see it.
    pub fn new(quiet: bool) -> Self {
        let bar = ProgressBar::hidden();
        if !quiet && std::io::stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(20));
        }
        let template = "{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

impl Progress for Bar {
    fn planned(&self, _files: u64, bytes: u64) {
        self.0.set_length(bytes);
    }

    fn advanced(&self, bytes: u64) {
        self.0.inc(bytes);
    }
}
