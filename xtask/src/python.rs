//! Installs packages of Python into a virtual environment of the workspace.

use std::path::{Path, PathBuf};

use crate::failure::Result;
use crate::shell;

/// A virtual environment.
pub(crate) struct Venv {
    folder: PathBuf,
}

impl Venv {
    /// Installs packages with the interpreter `python`. `folder` is below the workspace's root, and
    /// `packages` are arguments of `pip install`.
    pub(crate) fn install(
        root: &Path,
        python: &str,
        folder: &str,
        packages: &[&str],
    ) -> Result<Self> {
        shell::run_program(root, python, &["-m", "venv", folder])?;
        let venv = Self { folder: root.join(folder) };
        let install = ["-m", "pip", "install", "--quiet"];
        shell::run_program(root, &venv.program("python"), &[&install, packages].concat())?;
        Ok(venv)
    }

    /// Returns the path of a program of the environment.
    pub(crate) fn program(&self, name: &str) -> String {
        self.folder.join("bin").join(name).to_string_lossy().into_owned()
    }
}
