//! What a report shows without its script: the list of its sessions.

use std::fmt::Write as _;

use super::data::{ReportData, TITLE};
use crate::page::escape_html;
use base::numbers::{count_of, format_dollars};

/// Returns the list of the sessions.
pub(super) fn describe_report(data: &ReportData) -> String {
    let mut out = format!(
        "<main>\n<h1>{TITLE}</h1>\n<p>Generated {} by sessions {}. The charts and the \
         conversations need JavaScript.</p>\n<ul>\n",
        data.generated_at, data.version
    );
    for session in &data.sessions {
        let title = session.title.as_deref().unwrap_or(&session.session_id);
        let mut facts = vec![session.provider.to_string()];
        facts.extend(session.project.clone());
        facts.extend(
            session.started_at.as_deref().and_then(|time| time.get(..10)).map(str::to_owned),
        );
        facts.extend(session.counts.map(|counts| count_of(counts.turns, "turn")));
        let cost = session.tokens.as_ref().and_then(|tokens| tokens.cost_usd);
        facts.extend(cost.map(format_dollars));
        let facts = escape_html(&facts.join(" · "));
        let _ = writeln!(out, "<li>{} <span class=\"dim\">{facts}</span></li>", escape_html(title));
    }
    out.push_str("</ul>\n</main>\n");
    out
}

/// Returns what a file with further conversations shows.
pub(super) fn describe_volume() -> String {
    format!("<main>\n<h1>{TITLE}</h1>\n<p>These conversations need JavaScript.</p>\n</main>\n")
}
