//! `sessions sql-worker`, which is hidden: runs a query that another process of this program hands
//! over on stdin.

use std::io::BufReader;

use crate::cli::exit::{Failure, Outcome};
use crate::output::Printer;
use crate::sql;

pub(in crate::cli) fn run(printer: &Printer) -> Result<Outcome, Failure> {
    let input = BufReader::new(std::io::stdin());
    sql::serve(input, printer.rows(), &mut printer.report())?;
    Ok(Outcome::Done)
}
