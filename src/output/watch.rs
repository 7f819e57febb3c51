//! One line for what an ingest read while the program watches the logs.

use ingest::run::report::IngestReport;

use base::numbers::count_of;

/// Returns the line for a run that found changes: the events of each agent, and what failed.
pub fn watch_line(report: &IngestReport) -> String {
    let mut parts: Vec<String> = Vec::new();
    for (provider, numbers) in &report.by_provider {
        let events = count_of(numbers.events, "event");
        parts.push(format!("{provider}: {events} from {}", count_of(numbers.files, "log")));
    }
    if report.files_failed > 0 {
        parts.push(format!("{} unreadable", count_of(report.files_failed, "file")));
    }
    let problems: u64 = report.problems.values().sum();
    if problems > 0 {
        parts.push(format!("{}; see `sessions doctor`", count_of(problems, "problem")));
    }
    format!("{}\n", parts.join(", "))
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
