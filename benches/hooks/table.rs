//! Counts what hooks said, and prints the counts.

use schemas::hook::HookName;
use sessions::hooks::{HookAnswer, ServedBefore};

use super::calls::SessionCalls;
use super::judge::Verdict;
use crate::measure::Times;

/// What one hook said.
pub(crate) struct Tally {
    pub(crate) hook: HookName,
    seconds: Vec<f64>,
    controls: usize,
    answered_controls: usize,
    verdicts: Vec<Verdict>,
    repeats: usize,
    bytes: Vec<usize>,
    /// The bytes that all hooks said, of each session.
    session_bytes: Vec<usize>,
}

impl Tally {
    pub(crate) fn new(hook: HookName) -> Self {
        Self {
            hook,
            seconds: Vec::new(),
            controls: 0,
            answered_controls: 0,
            verdicts: Vec::new(),
            repeats: 0,
            bytes: Vec::new(),
            session_bytes: Vec::new(),
        }
    }

    pub(crate) fn add_call(&mut self, seconds: f64) {
        self.seconds.push(seconds);
    }

    pub(crate) fn add_answer(
        &mut self,
        answer: &HookAnswer,
        before: &ServedBefore,
        verdict: Verdict,
    ) {
        let is_repeat =
            before.ids.contains(&answer.key) || answer.ids.iter().all(|id| before.ids.contains(id));
        self.repeats += usize::from(is_repeat);
        self.bytes.push(answer.text.len());
        self.verdicts.push(verdict);
    }

    pub(crate) fn add_control(&mut self, is_answered: bool) {
        self.controls += 1;
        self.answered_controls += usize::from(is_answered);
    }

    pub(crate) fn end_session(&mut self, bytes: usize) {
        self.session_bytes.push(bytes);
    }

    fn count(&self, is_so: impl Fn(&Verdict) -> bool) -> usize {
        self.verdicts.iter().filter(|verdict| is_so(verdict)).count()
    }
}

/// Prints the counts of all hooks.
pub(crate) fn print_tallies(tallies: &[Tally], sessions: &[SessionCalls]) {
    println!(
        "| hook | calls | spoke | related | fixed later | fixed this way | repeats | controls answered | bytes, mean and most | p50 ms | p99 ms |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for tally in tallies.iter().filter(|tally| !tally.seconds.is_empty()) {
        let spoke = tally.verdicts.len();
        let times = Times::of(tally.seconds.iter().copied());
        let total: usize = tally.bytes.iter().sum();
        println!(
            "| {} | {} | {spoke} ({:.1} %) | {} | {} | {} | {} | {} of {} | {}, {} | {:.2} | {:.2} |",
            tally.hook,
            tally.seconds.len(),
            percent(spoke, tally.seconds.len()),
            tally.count(|verdict| verdict.is_related),
            tally.count(|verdict| verdict.was_fixed),
            tally.count(|verdict| verdict.was_fixed_this_way),
            tally.repeats,
            tally.answered_controls,
            tally.controls,
            total / spoke.max(1),
            tally.bytes.iter().max().unwrap_or(&0),
            times.p50,
            times.p99,
        );
    }
    let bytes: &[usize] = tallies.first().map_or(&[], |tally| &tally.session_bytes);
    let total: usize = bytes.iter().sum();
    println!(
        "\n{} bytes a session, at most {}; {} of {} sessions heard nothing",
        total / sessions.len().max(1),
        bytes.iter().max().unwrap_or(&0),
        bytes.iter().filter(|bytes| **bytes == 0).count(),
        sessions.len(),
    );
}

fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}
