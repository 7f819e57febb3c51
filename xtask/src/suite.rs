//! `cargo xtask test`: the test suite, and what it left out.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::cargo::Cargo;
use crate::failure::{Result, TaskFailure};
use crate::options::TaskOptions;
use crate::spark;

/// The environment variable that names a folder of real logs.
pub(crate) const REAL_LOGS: &str = "SESSIONS_REAL_LOGS";

/// The flag that adds the tests on Spark.
const SPARK_FLAG: &str = "--spark";

/// The flag that does all rounds of tests that try many cases.
const FULL_FLAG: &str = "--full";

/// The configuration of cargo that such a run compiles with.
const OPTIMISED: [&str; 2] = ["--config", ".config/optimised.toml"];

/// The variable with the percentage of rounds, and the one that names the file to which tests append
/// what they leave out (tests/it/left_out.rs).
const ROUNDS_VARIABLE: &str = "SESSIONS_TEST_ROUNDS";
const LEFT_OUT_VARIABLE: &str = "SESSIONS_TESTS_LEFT_OUT";

pub(crate) fn run(root: &Path, mut options: TaskOptions) -> Result<()> {
    let has_spark = options.take_flag(SPARK_FLAG);
    let is_full = options.take_flag(FULL_FLAG);
    let list = root.join("target/tests-left-out.txt");
    prepare_list(&list)?;
    let mut cargo =
        Cargo::new(root, options.bundled)?.with_variable(LEFT_OUT_VARIABLE, list.clone());
    if is_full {
        cargo = cargo.with_variable(ROUNDS_VARIABLE, "100");
    }
    let config: &[&str] = if is_full { &OPTIMISED } else { &[] };

    let result = if has_spark {
        let cargo = cargo.with_spark(root)?;
        // It starts while the tests are compiled.
        spark::start(root)?;
        let result = run_suite(&cargo, config, &options);
        result.and(spark::stop(root))
    } else {
        run_suite(&cargo, config, &options)
    };
    let mut left_out = read_list(&list);
    if !has_spark {
        left_out.entry(format!("{SPARK_FLAG} runs these tests")).or_default().push("spark".into());
    }
    print_left_out(&left_out);
    result
}

/// Runs the suite. `config` are the flags with the configuration of cargo.
fn run_suite(cargo: &Cargo<'_>, config: &[&str], options: &TaskOptions) -> Result<()> {
    if cargo.has_subcommand("nextest") {
        run_with_nextest(cargo, config, &options.rest)
    } else {
        cargo.run(&[&["test", "--workspace"], config].concat(), &options.rest)
    }
}

/// Runs the suite with nextest, which does not run the examples in the documentation. They run first,
/// unless `arguments` select other tests.
fn run_with_nextest(cargo: &Cargo, config: &[&str], arguments: &[String]) -> Result<()> {
    if arguments.is_empty() {
        // With fewer packages, features of dependencies would differ, and they would be compiled twice.
        cargo.run(&[&["test", "--doc", "--workspace"], config].concat(), &[])?;
    }
    cargo.run(&[&["nextest", "run", "--workspace"], config].concat(), arguments)
}

/// Empties the list of what tests leave out. They print it, too, but the runner hides the output of
/// tests that pass.
fn prepare_list(list: &Path) -> Result<()> {
    if let Some(folder) = list.parent() {
        fs::create_dir_all(folder).map_err(TaskFailure::io("create", folder))?;
    }
    fs::write(list, "").map_err(TaskFailure::io("write", list))
}

/// Reads the list: the tests by the reason why they are left out.
fn read_list(list: &Path) -> BTreeMap<String, Vec<String>> {
    let mut tests_by_reason: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in fs::read_to_string(list).unwrap_or_default().lines() {
        if let Some((reason, test)) = line.split_once('\t') {
            tests_by_reason.entry(reason.to_owned()).or_default().push(test.to_owned());
        }
    }
    tests_by_reason
}

/// Prints what tests left out, one line for each reason.
fn print_left_out(tests_by_reason: &BTreeMap<String, Vec<String>>) {
    for (reason, tests) in tests_by_reason {
        let mut tests = tests.clone();
        tests.sort_unstable();
        tests.dedup();
        eprintln!("left out: {reason}: {}", tests.join(", "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_listed_by_reason() {
        let folder = std::env::temp_dir().join(format!("xtask-left-out-{}", std::process::id()));
        let list = folder.join("list.txt");
        prepare_list(&list).expect("writes");
        assert!(read_list(&list).is_empty());
        fs::write(&list, "no bash\tb::c\nno logs\tx\nno bash\ta (zsh)\n").expect("writes");
        let found = read_list(&list);
        assert_eq!(found["no bash"], ["b::c", "a (zsh)"]);
        assert_eq!(found["no logs"], ["x"]);
        fs::remove_dir_all(folder).expect("removes");
    }
}
