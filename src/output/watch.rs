//! One line for what an ingest read while the program watches the logs.

use ingest::run::report::IngestReport;

/// Returns the line for a run that found changes: the events of each agent, and what failed.
pub fn watch_line(report: &IngestReport) -> String {
    let mut parts: Vec<String> = Vec::new();
    for (provider, numbers) in &report.by_provider {
        let events = count_noun(numbers.events, "event");
        parts.push(format!("{provider}: {events} from {}", count_noun(numbers.files, "log")));
    }
    if report.files_failed > 0 {
        parts.push(format!("{} unreadable", count_noun(report.files_failed, "file")));
    }
    let problems: u64 = report.problems.values().sum();
    if problems > 0 {
        parts.push(format!("{}; see `sessions doctor`", count_noun(problems, "problem")));
    }
    format!("{}\n", parts.join(", "))
}

fn count_noun(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use ingest::run::report::ProviderReport;

    use super::*;

    #[test]
    fn a_change_is_one_line() {
        let mut report = IngestReport { files_failed: 1, ..IngestReport::default() };
        let numbers = ProviderReport { files: 1, events: 12, ..ProviderReport::default() };
        report.by_provider.insert("claude".to_owned(), numbers);
        let line = watch_line(&report);
        assert_eq!(line, "claude: 12 events from 1 log, 1 file unreadable\n");
    }
}
