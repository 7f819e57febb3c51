//! Sums up the ranks at which questions found their sessions.

/// The ranks of one question.
pub(crate) struct Ranks {
    /// For each session that answers the question, its rank from 0; `None` if it was not found.
    pub of_gold: Vec<Option<usize>>,
    /// Seconds that the question took; 0 if another program was asked.
    pub seconds: f64,
}

impl Ranks {
    /// Finds the sessions that answer a question in those that a program returned, best first.
    pub(crate) fn of(gold: &[String], found: &[String]) -> Self {
        let rank = |gold: &String| found.iter().position(|session| session == gold);
        Self { of_gold: gold.iter().map(rank).collect(), seconds: 0.0 }
    }

    /// True if one of the sessions is among the first `count`.
    fn has_any(&self, count: usize) -> bool {
        self.of_gold.iter().flatten().any(|rank| *rank < count)
    }

    /// True if all of the sessions are among the first `count`.
    fn has_all(&self, count: usize) -> bool {
        self.of_gold.iter().all(|rank| rank.is_some_and(|rank| rank < count))
    }
}

pub(crate) fn print_head() {
    println!(
        "| | questions | any gold hit@1 | hit@5 | hit@10 | all gold @5 | all gold @10 |\n|---|---|---|---|---|---|---|"
    );
}

/// Prints what share of the questions found their sessions, in percent.
pub(crate) fn print_row(name: &str, ranks: &[&Ranks]) {
    let share = |has: &dyn Fn(&Ranks) -> bool| {
        let hits = ranks.iter().filter(|ranks| has(ranks)).count();
        100.0 * hits as f64 / ranks.len().max(1) as f64
    };
    println!(
        "| {name} | {} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} |",
        ranks.len(),
        share(&|ranks| ranks.has_any(1)),
        share(&|ranks| ranks.has_any(5)),
        share(&|ranks| ranks.has_any(10)),
        share(&|ranks| ranks.has_all(5)),
        share(&|ranks| ranks.has_all(10)),
    );
}
