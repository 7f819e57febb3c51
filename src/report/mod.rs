//! `sessions report`: the sessions of a span of time as a page in one file, with sums, charts and
//! every conversation.
//!
//! The file has what the tools answer, and the page's script draws it as `sessions web` does. The
//! conversations are compressed. If they are too large for one file, the older ones are in files next
//! to it, which it links.

mod data;
mod talks;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use schemas::ToolError;
use schemas::price::PriceTable;
use schemas::tool::OneOrMany;
use schemas::tool::analyze::AnalyzeArgs;
use schemas::tool::list::Session;
use schemas::tool::stats::{Group, GroupKey, StatsArgs};

use self::data::{ReportData, TITLE, VolumeData};
use self::talks::{HourCount, RecentEdit, SessionTalk, TalkReader};
use crate::files::outfile::{self, WriteOutcome, file_error};
use crate::page::{FrozenDocument, FrozenView, PackedTalk, escape_html};
use base::numbers::{count_of, format_dollars};
use tools::{Call, Extent, SessionSelection, Tools};

/// Maximum size of the conversations in one file, in bytes. Browsers open a file of this size in
/// about a second.
const MAX_FILE_TALK_BYTES: usize = 32 << 20;

/// Maximum number of recurring errors.
const MAX_FINDINGS: u32 = 100;

/// Maximum number of edits.
const MAX_EDITS: usize = 200;

/// A report of the selected sessions.
pub struct SessionsReport {
    data: ReportData,
    talks: Vec<PackedTalk>,
}

impl SessionsReport {
    /// Reads the selected sessions. With `since` and `until`, the sums are of the events of that time.
    pub fn read(
        tools: &Tools,
        selection: &SessionSelection,
        prices: &PriceTable,
        call: &Call<'_>,
    ) -> Result<Self, ToolError> {
        tools.read_store(call, &mut || Self::read_snapshot(tools, selection, prices, call))
    }

    /// Reads the selected sessions of the snapshot of the call.
    fn read_snapshot(
        tools: &Tools,
        selection: &SessionSelection,
        prices: &PriceTable,
        call: &Call<'_>,
    ) -> Result<Self, ToolError> {
        let range = selection.parse_range(call)?;
        let snapshot = tools.snapshot(call)?;
        let selected = selection.select_sessions(snapshot, call)?;
        let reader = TalkReader::new(tools, snapshot, range, call);
        let (read, others) = reader.read_all(&selected)?;
        let findings = tools.analyze_session(
            &AnalyzeArgs {
                project: selection.project.clone(),
                provider: selection.provider,
                since: selection.since.clone(),
                until: selection.until.clone(),
                limit: Some(MAX_FINDINGS),
                ..AnalyzeArgs::default()
            },
            call,
        )?;
        let cells = |keys: &[GroupKey]| read_cells(tools, selection, keys, call);

        let mut report = Self {
            data: ReportData {
                version: env!("CARGO_PKG_VERSION"),
                generated_at: call.now().to_string(),
                timezone: call.zone().name().to_owned(),
                since: range.since.map(|since| since.to_string()),
                until: range.until.map(|until| until.to_string()),
                provider: selection.provider,
                project: selection.project.clone(),
                prices_as_of: prices.as_of().to_owned(),
                sessions: Vec::new(),
                others,
                days: cells(&[GroupKey::Day, GroupKey::Session, GroupKey::Model])?,
                tools: cells(&[GroupKey::Session, GroupKey::Model, GroupKey::Tool])?,
                spreads: cells(&[GroupKey::Tool])?,
                findings: findings.data.into_value().findings,
                hours: Vec::new(),
                edits: Vec::new(),
                spawned: BTreeMap::new(),
                files: Vec::new(),
                places: BTreeMap::new(),
            },
            talks: Vec::new(),
        };
        let mut edits = Vec::new();
        for talk in read {
            report.add_session(talk, &mut edits);
        }
        edits.sort_by(|a, b| b.timestamp.cmp(&a.timestamp));
        let latest = edits.into_iter().take(MAX_EDITS);
        report.data.edits = latest.map(|edit| (edit.event_id, edit.model)).collect();
        Ok(report)
    }

    /// Adds a session. The latest one comes first.
    fn add_session(&mut self, talk: SessionTalk, edits: &mut Vec<RecentEdit>) {
        let at = self.data.sessions.len();
        for HourCount { hour, events } in talk.hours {
            self.data.hours.push((at, hour, events));
        }
        edits.extend(talk.edits);
        self.data.spawned.extend(talk.spawned);
        self.data.sessions.push(talk.session);
        self.talks.push(talk.packed);
    }

    /// Returns the number of sessions in the report.
    pub fn session_count(&self) -> usize {
        self.data.sessions.len()
    }

    /// Renders the report as one page. Conversations that do not fit are left out.
    pub fn render_page(&self) -> Result<String, ToolError> {
        let first = self.split_talks().into_iter().next().unwrap_or_default();
        self.render_first(first)
    }

    /// Writes the report to a file, and conversations that do not fit to files next to it. Earlier
    /// reports there are replaced, other files are not. Returns the sizes of the files.
    pub fn save(&mut self, path: &Path) -> Result<Vec<u64>, ToolError> {
        let parts: Vec<usize> = self.split_talks().iter().map(|part| part.len()).collect();
        let mut first_talk = parts.first().copied().unwrap_or(0);
        for (at, count) in parts.iter().enumerate().skip(1) {
            self.data.files.push(file_name(&volume_path(path, at)));
            for talk in self.talks.iter().skip(first_talk).take(*count) {
                self.data.places.insert(talk.session.clone(), at - 1);
            }
            first_talk += count;
        }

        let mut sizes = Vec::new();
        for (at, part) in self.split_talks().into_iter().enumerate() {
            let html = if at == 0 {
                self.render_first(part)?
            } else {
                self.render_volume(part, &file_name(path))?
            };
            sizes.push(save_page(&html, &volume_path(path, at))?);
        }
        Ok(sizes)
    }

    /// Splits the conversations into those of each file.
    fn split_talks(&self) -> Vec<&[PackedTalk]> {
        let mut parts = Vec::new();
        let mut start = 0;
        let mut bytes = 0;
        for (at, talk) in self.talks.iter().enumerate() {
            if at > start && bytes + talk.len() > MAX_FILE_TALK_BYTES {
                parts.push(&self.talks[start..at]);
                start = at;
                bytes = 0;
            }
            bytes += talk.len();
        }
        parts.push(&self.talks[start..]);
        parts
    }

    fn render_first(&self, talks: &[PackedTalk]) -> Result<String, ToolError> {
        let plain = describe_report(&self.data);
        let view = FrozenView::Report;
        FrozenDocument { view, title: TITLE, data: &self.data, talks, plain: &plain }.render()
    }

    /// Renders a file with further conversations. `home` is the name of the first file.
    fn render_volume(&self, talks: &[PackedTalk], home: &str) -> Result<String, ToolError> {
        let data = &self.data;
        let is_here =
            |session: &&Session| talks.iter().any(|talk| talk.session == session.session_id);
        let volume = VolumeData {
            version: data.version,
            generated_at: &data.generated_at,
            timezone: &data.timezone,
            prices_as_of: &data.prices_as_of,
            home,
            sessions: data.sessions.iter().filter(is_here).collect(),
        };
        let plain = describe_volume();
        let view = FrozenView::Report;
        FrozenDocument { view, title: TITLE, data: &volume, talks, plain: &plain }.render()
    }
}

/// Returns the path of a file of a report: the first one is `path`, the second one has `-2` in its
/// name.
fn volume_path(path: &Path, at: usize) -> PathBuf {
    if at == 0 {
        return path.to_owned();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map(|name| format!(".{}", name.to_string_lossy()));
    path.with_file_name(format!("{stem}-{}{}", at + 1, extension.unwrap_or_default()))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Writes a page to a file. An earlier report there is replaced, any other file is not. Returns the
/// size of the page.
fn save_page(html: &str, path: &Path) -> Result<u64, ToolError> {
    let advice = "It is not a report of sessions, so it is not replaced. Name another file with -o";
    let put = outfile::write_output(
        path,
        || is_report(path),
        advice,
        |file| file.write_all(html.as_bytes()).map_err(|error| file_error(path, &error)),
    )?;
    Ok(match put {
        WriteOutcome::Written(bytes) => bytes,
        WriteOutcome::Unchanged => html.len() as u64,
    })
}

/// Returns true if the file begins as reports do.
fn is_report(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = outfile::open_target(path).and_then(|file| file.take(2048).read_to_end(&mut head));
    let tag = FrozenView::Report.generator_tag();
    read.is_ok() && String::from_utf8_lossy(&head).contains(tag)
}

/// Returns the groups of the selected sessions by these keys.
fn read_cells(
    tools: &Tools,
    selection: &SessionSelection,
    keys: &[GroupKey],
    call: &Call<'_>,
) -> Result<Vec<Group>, ToolError> {
    let args = StatsArgs {
        group_by: OneOrMany::Many(keys.to_vec()),
        provider: selection.provider,
        project: selection.project.clone(),
        since: selection.since.clone(),
        until: selection.until.clone(),
        ..StatsArgs::default()
    };
    let mut groups = tools.count_sessions(&args, Extent::Cells, call)?.data.into_value().groups;
    for group in &mut groups {
        // The title is in the row of the session, and a cell is too small for a trend.
        group.title = None;
        group.trend = Vec::new();
        group.models = Vec::new();
    }
    Ok(groups)
}

/// Returns the list of the sessions.
fn describe_report(data: &ReportData) -> String {
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
fn describe_volume() -> String {
    format!("<main>\n<h1>{TITLE}</h1>\n<p>These conversations need JavaScript.</p>\n</main>\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A report whose conversations need a file each.
    fn large_report() -> SessionsReport {
        let data = ReportData {
            version: "1",
            generated_at: String::new(),
            timezone: "UTC".to_owned(),
            since: None,
            until: None,
            provider: None,
            project: None,
            prices_as_of: String::new(),
            sessions: Vec::new(),
            others: Vec::new(),
            days: Vec::new(),
            tools: Vec::new(),
            spreads: Vec::new(),
            findings: Vec::new(),
            hours: Vec::new(),
            edits: Vec::new(),
            spawned: BTreeMap::new(),
            files: Vec::new(),
            places: BTreeMap::new(),
        };
        let talk = |session: &str| PackedTalk {
            session: session.to_owned(),
            base64: "A".repeat(MAX_FILE_TALK_BYTES / 2 + 1),
        };
        SessionsReport { data, talks: ["new", "old"].map(talk).into() }
    }

    #[test]
    fn further_files_replace_those_of_an_earlier_report_only() {
        let dir = tempfile::tempdir().expect("folder");
        let first = dir.path().join("report.html");
        let second = dir.path().join("report-2.html");
        for round in 0..2 {
            let sizes = large_report().save(&first).expect("saved");
            assert_eq!(sizes.len(), 2, "round {round}");
            let pages = [&first, &second].map(|path| fs::read_to_string(path).expect("there"));
            for (page, talk) in pages.iter().zip(["new", "old"]) {
                let talks: Vec<_> = page.split("data-talk=\"").skip(1).collect();
                assert_eq!(talks.len(), 1);
                assert!(talks[0].starts_with(talk), "{talk}");
            }
            assert!(pages[0].contains(r#""files":["report-2.html"],"places":{"old":0}"#));
            assert!(pages[1].contains(r#""home":"report.html""#));
        }
        fs::write(&second, "notes").expect("writes");
        let refused = large_report().save(&first).expect_err("another file is there");
        assert!(refused.message.contains("report-2.html"), "{}", refused.message);
        assert_eq!(fs::read_to_string(&second).expect("there"), "notes");
    }

    #[test]
    fn further_files_have_numbers() {
        let path = Path::new("out/report.html");
        assert_eq!(volume_path(path, 0), path);
        assert_eq!(volume_path(path, 1), Path::new("out/report-2.html"));
        assert_eq!(volume_path(Path::new("all"), 2), Path::new("all-3"));
    }
}
