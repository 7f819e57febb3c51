//! Formats the sessions that wrote a file, and the edits that changed it.

use super::columns::{Cell, Column, FittedTable};
use super::layout::Layout;
use super::painted::{AGENT, DIM, FAILED, ID, PLAIN, Painted, STRONG, SUCCEEDED};
use super::show::Show;
use base::numbers::count_of;
use tools::{BlameData, BlameSpan, CountedEdit, WrittenBy};

/// The columns of the lines of a file.
const LINE_COLUMNS: &[Column] = &[
    Column::number("lines"),
    Column::text("event"),
    Column::text("when"),
    Column::text("agent").drop_at(1),
    Column::text("session").cut_to(16),
];

/// The columns of the edits of a file.
const EDIT_COLUMNS: &[Column] = &[
    Column::text("event"),
    Column::text("when"),
    Column::text("agent").drop_at(1),
    Column::number("added"),
    Column::number("removed"),
    Column::text("session").cut_to(16),
];

impl Show for BlameData {
    fn paint(&self, layout: &Layout) -> Painted {
        let mut painted = Painted::new();
        if let Some(edits) = &self.edits {
            let mut table = FittedTable::new(EDIT_COLUMNS);
            for edit in edits {
                table.push(edit_row(edit, layout));
            }
            if edits.is_empty() {
                painted.push(DIM, "no session in the store is known to have edited the file");
                painted.end_line();
            } else {
                painted.append(&table.paint(layout.width));
            }
            return painted;
        }
        let mut table = FittedTable::new(LINE_COLUMNS);
        for span in &self.spans {
            table.push(line_row(span, layout));
        }
        if !self.spans.is_empty() {
            painted.append(&table.paint(layout.width));
        }
        let known =
            format!("{} of {} by a known session", self.known_lines, count_of(self.lines, "line"));
        painted.push(DIM, &known);
        painted.end_line();
        painted
    }
}

/// Formats the lines of a span: `3`, `3-9`.
fn format_lines(span: &BlameSpan) -> String {
    let [first, last] = span.lines;
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

fn line_row(span: &BlameSpan, layout: &Layout) -> Vec<Cell> {
    let lines = Cell::new(STRONG, &format_lines(span));
    let Some(writer) = &span.written_by else {
        let empty = Cell::new(PLAIN, "");
        return vec![lines, Cell::new(DIM, "none"), empty.clone(), empty.clone(), empty];
    };
    let mut row = vec![lines];
    row.extend(writer_cells(writer, layout));
    row.push(Cell::new(PLAIN, writer.title.as_deref().unwrap_or("")));
    row
}

fn edit_row(edit: &CountedEdit, layout: &Layout) -> Vec<Cell> {
    let mut row = writer_cells(&edit.edit, layout).to_vec();
    row.push(Cell::new(SUCCEEDED, &format!("+{}", edit.added)));
    row.push(Cell::new(FAILED, &format!("-{}", edit.removed)));
    row.push(Cell::new(PLAIN, edit.edit.title.as_deref().unwrap_or("")));
    row
}

/// Returns the event, the time and the agent of an edit.
fn writer_cells(writer: &WrittenBy, layout: &Layout) -> [Cell; 3] {
    [
        Cell::new(ID, &layout.event_id(&writer.event_id)),
        Cell::new(DIM, &layout.time(writer.timestamp.as_deref())),
        Cell::new(AGENT, writer.provider.as_str()),
    ]
}
