//! Reads the path that `-o` names: `-` is the standard output.

use std::path::{Path, PathBuf};

/// The path that names the standard output instead of a file.
const STDOUT: &str = "-";

/// True if the path names the standard output.
pub(super) fn is_stdout(path: &Path) -> bool {
    path == Path::new(STDOUT)
}

/// Returns the file that `-o` names; `None` if it names the standard output.
pub(super) fn output_file(output: Option<PathBuf>) -> Option<PathBuf> {
    output.filter(|path| !is_stdout(path))
}
