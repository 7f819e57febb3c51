//! `sessions doctor`: reports where the agents keep their logs, what was found there, and what was
//! unknown in it.

use std::sync::Arc;

use ingest::provider::format::Places;

use crate::cli::context::Context;
use crate::cli::exit::{Failure, Outcome};
use crate::config::environment;
use crate::tools::Tools;

pub(in crate::cli) fn run(context: &Context<'_>) -> Result<Outcome, Failure> {
    let data = Tools::new(Arc::clone(&context.store))
        .doctor(&Places::new(&environment::home(), &environment::variable))?;
    context.printer.value(&data)?;
    Ok(Outcome::Done)
}
