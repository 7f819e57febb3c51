//! Files that a person asks for: readable by the owner only, there as a whole or not at all, and
//! never over another file unasked.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use schemas::{ErrorCode, ToolError};
use tempfile::NamedTempFile;

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Put {
    Written(u64),
    /// It was there already, byte for byte.
    Unchanged,
}

/// Writes a file by `fill` and puts it in its place. Where another one is, `replace` says whether
/// that may go; `instead` is the advice when it may not.
pub(crate) fn put(
    path: &Path,
    replace: impl FnOnce() -> bool,
    instead: &str,
    fill: impl FnOnce(&mut File) -> Result<(), ToolError>,
) -> Result<Put, ToolError> {
    let failed = |error: io::Error| file_error(path, &error);
    // A link stays one.
    let place = fs::canonicalize(path);
    let place = place.as_deref().unwrap_or(path);
    let dir = place.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(dir).map_err(failed)?;
    // tempfile creates with mode 0600; beside its place, so that it gets there in one step.
    let mut file = NamedTempFile::new_in(dir).map_err(failed)?;
    fill(file.as_file_mut())?;
    let bytes = fs::metadata(file.path()).map_err(failed)?.len();
    if path.is_file() && same(path, file.path()).map_err(failed)? {
        return Ok(Put::Unchanged);
    }
    if path.exists() && !replace() {
        let message = format!("{} is there already. {instead}", path.display());
        return Err(ToolError::new(ErrorCode::InvalidArgument, message)
            .with("path", path.to_string_lossy().into_owned()));
    }
    file.persist(place).map_err(|error| failed(error.error))?;
    Ok(Put::Written(bytes))
}

/// A file or folder that cannot be read or written.
pub(crate) fn file_error(path: &Path, error: &io::Error) -> ToolError {
    let message =
        format!("{}: {error}. Check the path, its rights and the room on the disk", path.display());
    ToolError::new(ErrorCode::InvalidArgument, message)
        .with("path", path.to_string_lossy().into_owned())
}

/// Whether two files hold the same bytes.
fn same(a: &Path, b: &Path) -> io::Result<bool> {
    let (a, b) = (File::open(a)?, File::open(b)?);
    if a.metadata()?.len() != b.metadata()?.len() {
        return Ok(false);
    }
    let (mut a, mut b) = (BufReader::new(a), BufReader::new(b));
    loop {
        let (left, right) = (a.fill_buf()?, b.fill_buf()?);
        let length = left.len().min(right.len());
        if left.get(..length) != right.get(..length) {
            return Ok(false);
        }
        if length == 0 {
            return Ok(left.len() == right.len());
        }
        a.consume(length);
        b.consume(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn write(path: &Path, text: &str, replace: bool) -> Result<Put, ToolError> {
        put(
            path,
            || replace,
            "Choose another.",
            |file| file.write_all(text.as_bytes()).map_err(|error| file_error(path, &error)),
        )
    }

    #[test]
    fn another_file_is_replaced_only_when_asked() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("below/a.txt");
        assert_eq!(write(&path, "one", false), Ok(Put::Written(3)));
        assert_eq!(write(&path, "one", false), Ok(Put::Unchanged));
        let error = write(&path, "two", false).expect_err("is there");
        assert!(error.message.contains("Choose another."), "{error}");
        assert_eq!(fs::read_to_string(&path).expect("reads"), "one");
        assert_eq!(write(&path, "two", true), Ok(Put::Written(3)));
        assert_eq!(fs::read_to_string(&path).expect("reads"), "two");
        assert_eq!(fs::read_dir(dir.path().join("below")).expect("lists").count(), 1);
        assert!(write(dir.path(), "x", false).is_err(), "a folder is no file");
    }
}
