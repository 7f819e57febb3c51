//! `sessions sql-worker`, which is hidden: runs a query that another process of this program hands
//! over on stdin.

use std::io::BufReader;

use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::output::Printer;
use sql;

pub(in crate::cli) fn run(printer: &Printer) -> CommandResult {
    let input = BufReader::new(std::io::stdin());
    sql::serve_request(input, printer.row_writer(), &mut printer.report_writer())?;
    Ok(CommandOutcome::Done)
}
