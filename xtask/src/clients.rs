//! `cargo xtask clients`: tests the server with the official clients and the conformance suite of
//! MCP.

use std::path::Path;

use crate::cargo::Cargo;
use crate::failure::Result;
use crate::options::TaskOptions;
use crate::shell;

/// The environment that the Python client is installed into. npm installs next to the script.
const VENV: &str = "target/clients";

pub(crate) fn run(root: &Path, options: TaskOptions) -> Result<()> {
    options.refuse_rest("clients")?;
    let program = Cargo::new(root, options.bundled)?.build_program(false)?;
    let program = program.to_string_lossy();
    let python = root.join(VENV).join("bin/python");
    let python = python.to_string_lossy();
    let node = root.join("tests/clients/typescript/node_modules/.bin/node");
    let node = node.to_string_lossy();
    let step = |program: &str, args: &[&str]| shell::run_program(root, program, args);

    step("python3", &["-m", "venv", VENV])?;
    step(&python, &["-m", "pip", "install", "--quiet", "-r", "tests/clients/requirements.txt"])?;
    step("npm", &["ci", "--prefix", "tests/clients/typescript"])?;
    step(&python, &["tests/clients/python.py", &program])?;
    step(&node, &["tests/clients/typescript/client.mjs", &program])?;
    step(&python, &["tests/clients/conformance.py", &program])
}
