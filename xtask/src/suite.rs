//! `cargo xtask test`: the whole test suite.

use std::env;
use std::path::Path;

use crate::cargo::Cargo;
use crate::failure::Result;
use crate::options::TaskOptions;
use crate::spark;

/// The environment variable that names a folder of real logs.
pub(crate) const REAL_LOGS: &str = "SESSIONS_REAL_LOGS";

/// The flag that adds the tests on Spark.
const SPARK_FLAG: &str = "--spark";

pub(crate) fn run(root: &Path, mut options: TaskOptions) -> Result<()> {
    let count = options.rest.len();
    options.rest.retain(|argument| argument != SPARK_FLAG);
    if options.rest.len() == count {
        eprintln!("Spark tests are left out: {SPARK_FLAG} runs them");
        return run_suite(&Cargo::new(root, options.bundled)?, &options);
    }
    let cargo = Cargo::new(root, options.bundled)?.with_spark(root)?;
    // It starts while the tests are compiled.
    spark::start(root)?;
    let result = run_suite(&cargo, &options);
    let stopped = spark::stop(root);
    result.and(stopped)
}

/// Runs the suite and reports what it leaves out.
fn run_suite(cargo: &Cargo<'_>, options: &TaskOptions) -> Result<()> {
    // A CI takes the runner's summary from the last lines, so there the notice comes first.
    let is_ci = env::var_os("CI").is_some();
    if is_ci {
        report_skipped_tests();
    }
    let result = if cargo.has_subcommand("nextest") {
        run_with_nextest(cargo, &options.rest)
    } else {
        cargo.run(&["test", "--workspace"], &options.rest)
    };
    if !is_ci {
        report_skipped_tests();
    }
    result
}

/// Runs the suite with nextest, which does not run the examples in the documentation. They run first,
/// unless `arguments` select other tests.
fn run_with_nextest(cargo: &Cargo, arguments: &[String]) -> Result<()> {
    if arguments.is_empty() {
        // With fewer packages, features of dependencies would differ, and they would be compiled twice.
        cargo.run(&["test", "--doc", "--workspace"], &[])?;
    }
    cargo.run(&["nextest", "run", "--workspace"], arguments)
}

/// Reports that the tests of real logs are skipped, if they are.
fn report_skipped_tests() {
    if env::var_os(REAL_LOGS).is_none_or(|value| value.is_empty()) {
        eprintln!("real-log tests were skipped: set {REAL_LOGS}=<dir> to run them");
    }
}
