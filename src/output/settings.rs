//! Formats the settings as a table.

use super::columns::{Cell, Column, FittedTable};
use super::painted::{DIM, PLAIN, Painted, STRONG};

/// Formats the name, the value and the source of settings with at most `width` cells a line.
pub fn settings_table(rows: &[[&str; 3]], width: usize) -> Painted {
    let columns = [
        Column::text("setting"),
        Column::text("value").cut_to(20),
        Column::text("from").cut_to(12),
    ];
    let mut table = FittedTable::new(&columns);
    for [name, value, source] in rows {
        table.push(vec![Cell::new(STRONG, name), Cell::new(PLAIN, value), Cell::new(DIM, source)]);
    }
    table.paint(width)
}
