//! Tables that fit the width of a screen: less important columns are left out first, then wide ones
//! are cut. A rare long id takes the space of its own line only.

use anstyle::Style;

use super::painted::{DIM, Painted};
use base::cells::{text_width, truncate, truncate_end};
use base::sanitize::{clean_text, one_line};
use base::text_table::COLUMN_GAP;

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    /// True if the cells end at the same place, as numbers do.
    pub(crate) is_right: bool,
    /// The fewest cells to which the column may be cut; `None` if it is shown whole.
    pub(crate) min_width: Option<usize>,
    /// The rank in which columns are left out if the table is too wide, the highest first. Columns of
    /// rank 0 stay.
    pub(crate) drop_rank: u8,
    /// True if a cell that is much wider than others does not widen the column: it is shown whole, and
    /// what follows it in its line is moved and cut.
    pub(crate) may_spill: bool,
}

/// Maximum width of a column whose cells may spill, unless the screen is wide.
const MAX_SPILLING_WIDTH: usize = 13;

/// Minimum width of a text that is cut.
const MIN_CUT_WIDTH: usize = 4;

/// Minimum width of the last cell of a line with a cell that spills, before other cells are left out.
const MIN_LAST_WIDTH: usize = 12;

impl Column {
    /// A column of text that is shown whole.
    pub(crate) const fn text(name: &'static str) -> Self {
        Self { name, is_right: false, min_width: None, drop_rank: 0, may_spill: false }
    }

    /// A column of numbers.
    pub(crate) const fn number(name: &'static str) -> Self {
        Self { is_right: true, ..Self::text(name) }
    }

    /// Lets the column be cut to `min_width` cells.
    pub(crate) const fn cut_to(self, min_width: usize) -> Self {
        Self { min_width: Some(min_width), ..self }
    }

    /// Lets wide cells spill.
    pub(crate) const fn spill(self) -> Self {
        Self { may_spill: true, ..self }
    }

    /// Lets the column be left out.
    pub(crate) const fn drop_at(self, drop_rank: u8) -> Self {
        Self { drop_rank, ..self }
    }
}

/// A cell of a table.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    pub(crate) fn new(style: Style, text: &str) -> Self {
        Self { text: one_line(&clean_text(text)), style }
    }
}

/// A table of styled cells.
pub(crate) struct FittedTable {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl FittedTable {
    pub(crate) fn new(columns: &[Column]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row with a cell for each column.
    pub(crate) fn push(&mut self, row: Vec<Cell>) {
        self.rows.push(row);
    }

    /// Formats the table with at most `width` cells a line. Columns that are empty in every row are
    /// left out.
    pub(crate) fn paint(&self, width: usize) -> Painted {
        let mut kept: Vec<usize> = (0..self.columns.len()).collect();
        kept.retain(|at| self.cells_of(*at).any(|cell| !cell.text.is_empty()));
        let mut widths: Vec<usize> = Vec::new();
        for at in 0..self.columns.len() {
            widths.push(self.natural_width(at, width));
        }
        while self.least_width(&kept, &widths) > width {
            let droppable = kept.iter().filter(|at| self.columns[**at].drop_rank > 0);
            let Some(dropped) = droppable.max_by_key(|at| self.columns[**at].drop_rank).copied()
            else {
                break;
            };
            kept.retain(|at| *at != dropped);
        }
        self.cut_widest(&kept, &mut widths, width);

        let mut painted = Painted::new();
        let header = self.columns.iter().zip(&widths);
        let header: Vec<Cell> = header
            .map(|(column, width)| Cell::new(DIM, &truncate_end(column.name, *width)))
            .collect();
        for row in std::iter::once(&header).chain(&self.rows) {
            let line = if self.has_spilling_cell(row, &kept, &widths) {
                self.spilled_line(row, &kept, &widths, width)
            } else {
                self.parts(row, &kept, &widths).iter().map(LinePart::paint).collect()
            };
            painted.append_aligned(line.trim_end());
            painted.append_aligned("\n");
        }
        painted
    }

    /// Returns the cells of a row that are shown.
    fn parts<'a>(&self, row: &'a [Cell], kept: &[usize], widths: &[usize]) -> Vec<LinePart<'a>> {
        let cells = kept.iter().filter_map(|at| Some((*at, row.get(*at)?)));
        cells.map(|(at, cell)| LinePart::new(self.columns[at], cell, widths[at])).collect()
    }

    /// Returns true if a cell of the row is wider than its column and is not cut.
    fn has_spilling_cell(&self, row: &[Cell], kept: &[usize], widths: &[usize]) -> bool {
        kept.iter().any(|at| {
            self.columns[*at].may_spill
                && row.get(*at).is_some_and(|cell| text_width(&cell.text) > widths[*at])
        })
    }

    /// Formats the line of a row with a cell that spills. The last cell gets the remaining width. If that
    /// is too little, cells that can be cut are left out.
    fn spilled_line(&self, row: &[Cell], kept: &[usize], widths: &[usize], width: usize) -> String {
        let Some((last, others)) = kept.split_last() else { return String::new() };
        let mut parts = self.parts(row, others, widths);
        while total_width(&parts) + MIN_LAST_WIDTH > width
            && let Some(cut) = parts.iter().rposition(|part| part.column.min_width.is_some())
        {
            parts.remove(cut);
        }
        while parts.len() > 1 && total_width(&parts) > width {
            parts.pop();
        }

        let rest = width.saturating_sub(total_width(&parts));
        let mut line: String = parts.iter().map(LinePart::paint).collect();
        if let Some(cell) = row.get(*last)
            && rest >= MIN_CUT_WIDTH
        {
            line.push_str(&paint_cell(cell.style, &truncate(&cell.text, rest)));
        }
        line
    }

    fn cells_of(&self, column: usize) -> impl Iterator<Item = &Cell> {
        self.rows.iter().filter_map(move |row| row.get(column))
    }

    /// Returns the cells that a column takes on a screen of this width if nothing is cut.
    fn natural_width(&self, column: usize, screen_width: usize) -> usize {
        let name = text_width(self.columns[column].name);
        let most = if self.columns[column].may_spill {
            MAX_SPILLING_WIDTH.max(screen_width / 6)
        } else {
            usize::MAX
        };
        let cells = self.cells_of(column).map(|cell| text_width(&cell.text));
        cells.filter(|width| *width <= most).max().unwrap_or(0).max(name)
    }

    /// Returns the width of a table of the columns `kept` in which all that can be cut is cut.
    fn least_width(&self, kept: &[usize], widths: &[usize]) -> usize {
        let least = kept.iter().map(|at| {
            let natural = widths[*at];
            self.columns[*at].min_width.map_or(natural, |least| least.min(natural))
        });
        least.sum::<usize>() + COLUMN_GAP * kept.len().saturating_sub(1)
    }

    /// Cuts the widest columns until the table fits.
    fn cut_widest(&self, kept: &[usize], widths: &mut [usize], width: usize) {
        let gaps = COLUMN_GAP * kept.len().saturating_sub(1);
        loop {
            let total: usize = kept.iter().map(|at| widths[*at]).sum::<usize>() + gaps;
            if total <= width {
                return;
            }
            let can_cut = |at: &&usize| {
                self.columns[**at].min_width.is_some_and(|least| widths[**at] > least)
            };
            let Some(widest) = kept.iter().filter(can_cut).max_by_key(|at| widths[**at]).copied()
            else {
                return;
            };
            widths[widest] -= 1;
        }
    }
}

/// A cell of a line.
struct LinePart<'a> {
    column: Column,
    cell: &'a Cell,
    width: usize,
}

impl<'a> LinePart<'a> {
    fn new(column: Column, cell: &'a Cell, column_width: usize) -> Self {
        let own = if column.may_spill { text_width(&cell.text) } else { 0 };
        Self { column, cell, width: column_width.max(own) }
    }

    /// Formats the cell and the gap after it.
    fn paint(&self) -> String {
        let text = truncate(&self.cell.text, self.width);
        let padding = " ".repeat(self.width - text_width(&text).min(self.width));
        let gap = " ".repeat(COLUMN_GAP);
        let painted = paint_cell(self.cell.style, &text);
        if self.column.is_right {
            format!("{padding}{painted}{gap}")
        } else {
            format!("{painted}{padding}{gap}")
        }
    }
}

/// Returns the width of parts with the gaps after them.
fn total_width(parts: &[LinePart<'_>]) -> usize {
    parts.iter().map(|part| part.width + COLUMN_GAP).sum()
}

/// Returns a text with its style.
fn paint_cell(style: Style, text: &str) -> String {
    if text.is_empty() || style == Style::new() {
        return text.to_owned();
    }
    format!("{style}{text}{style:#}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::painted::PLAIN;

    #[test]
    fn columns_are_left_out_before_texts_are_cut() {
        let columns =
            [Column::text("id"), Column::number("n").drop_at(1), Column::text("title").cut_to(4)];
        let mut table = FittedTable::new(&columns);
        let cells = ["abcdefgh", "12", "日本語日本語"].map(|text| Cell::new(PLAIN, text));
        table.push(cells.to_vec());
        let lines = |width| {
            let painted = anstream::adapter::strip_str(table.paint(width).as_str()).to_string();
            painted.lines().skip(1).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(lines(80), "abcdefgh  12  日本語日本語");
        assert_eq!(lines(20), "abcdefgh  12  日本…");
        assert_eq!(lines(16), "abcdefgh  日本…");
    }

    #[test]
    fn a_long_id_takes_the_room_of_its_own_line_only() {
        let columns = [
            Column::text("id").spill(),
            Column::text("time"),
            Column::text("project").cut_to(4),
            Column::text("title").cut_to(12),
        ];
        let mut table = FittedTable::new(&columns);
        let long = "session-0123456789-0123456789-x";
        for id in ["abcdefgh", long] {
            let cells = [id, "21:00", "lighthouse", "Paint the door of the lighthouse red"];
            table.push(cells.map(|text| Cell::new(PLAIN, text)).to_vec());
        }
        let lines = |width| {
            let painted = anstream::adapter::strip_str(table.paint(width).as_str()).to_string();
            let lines: Vec<String> = painted.lines().skip(1).map(str::to_owned).collect();
            assert!(lines.iter().all(|line| text_width(line) <= width), "{lines:?}");
            lines
        };
        assert_eq!(
            lines(80),
            [
                "abcdefgh  21:00  lighthouse  Paint the door of the lighthouse red",
                "session-0123456789-0123456789-x  21:00  lighthouse  Paint the door of the light…",
            ]
        );
        // What can be cut is left out of a line in which the last cell would have no space.
        assert_eq!(
            lines(60),
            [
                "abcdefgh  21:00  lighthouse  Paint the door of the lighthou…",
                "session-0123456789-0123456789-x  21:00  Paint the door of t…",
            ]
        );
        assert_eq!(lines(40)[1], "session-0123456789-0123456789-x  21:00");
        assert_eq!(lines(35)[1], long);
    }
}
