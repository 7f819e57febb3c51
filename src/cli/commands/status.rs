//! `sessions status`: reports what the store holds and how fresh it is.

use crate::cli::context::Context;
use crate::cli::exit::{Failure, Outcome};
use crate::config::environment;

pub(in crate::cli) fn run(context: &Context<'_>) -> Result<Outcome, Failure> {
    let status = context.tools().status(&environment::known_roots())?;
    context.printer.value(&status)?;
    Ok(Outcome::Done)
}
