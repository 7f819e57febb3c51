//! Writes files that the user requested: readable by the owner only, whole or not at all, never
//! over another file without consent, and never in place of anything that is not a regular file.

use std::fs::{self, File, Metadata};
use std::io::{self, BufRead, BufReader};
use std::path::{Component, Path, PathBuf};

use schemas::ToolError;

use crate::error::unusable_path;
use crate::files::leftovers::{create_temporary, open_without_waiting};
use crate::store::is_store;

/// The outcome of writing a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Put {
    Written(u64),
    /// The file already existed with the same bytes.
    Unchanged,
}

/// Writes a file with `fill` and moves it to its place. If another file is there, `replace` decides
/// whether it may be replaced; `instead` is the advice if not. A place that holds anything but a
/// regular file is refused before `fill` runs, whatever `replace` returns, and so is a place inside
/// a store.
pub(crate) fn put(
    path: &Path,
    replace: impl FnOnce() -> bool,
    instead: &str,
    fill: impl FnOnce(&mut File) -> Result<(), ToolError>,
) -> Result<Put, ToolError> {
    let failed = |error: io::Error| file_error(path, &error);
    let place = find_place(path)?;
    refuse_store(path, &place)?;
    let dir = place.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(dir).map_err(failed)?;

    // The temporary file is next to its place, so that one step moves it there.
    let mut file = create_temporary(dir).map_err(failed)?;
    fill(file.as_file_mut())?;
    let bytes = fs::metadata(file.path()).map_err(failed)?.len();

    // Filling may take minutes, and the place may have changed meanwhile.
    let place = find_place(path)?;
    if !place.exists() {
        file.persist_noclobber(&place).map_err(|error| failed(error.error))?;
        return Ok(Put::Written(bytes));
    }
    if is_same(&place, file.path()).map_err(failed)? {
        return Ok(Put::Unchanged);
    }
    if !replace() {
        return Err(unusable_path(path, format_args!("a file is there already. {instead}")));
    }
    file.persist(&place).map_err(|error| failed(error.error))?;
    Ok(Put::Written(bytes))
}

/// Returns the place of an output to `path`: the file to which a link leads, else `path` itself.
///
/// # Errors
///
/// If something that is not a regular file is there, or a link that leads nowhere: replacing it
/// would remove a device, a pipe or a link that other programs use.
pub(crate) fn find_place(path: &Path) -> Result<PathBuf, ToolError> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => {
            fs::canonicalize(path).map_err(|error| file_error(path, &error))
        }
        Ok(metadata) => Err(not_a_file(path, describe_kind(&metadata))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if fs::symlink_metadata(path).is_ok() {
                return Err(not_a_file(path, "a link that leads nowhere"));
            }
            Ok(path.to_owned())
        }
        Err(error) => Err(file_error(path, &error)),
    }
}

/// Refuses a place inside a store: only an ingest writes files there, and a reader treats any other
/// content as damage.
fn refuse_store(path: &Path, place: &Path) -> Result<(), ToolError> {
    let place = resolve(place).map_err(|error| file_error(path, &error))?;
    let Some(store) = place.ancestors().skip(1).find(|dir| is_store(dir)) else { return Ok(()) };
    let store = store.display();
    let what = format_args!(
        "this is inside the store {store}, which holds its own files only. Name a file outside it"
    );
    Err(unusable_path(path, what))
}

/// Returns the place to which a path leads once its folders are created: links are followed, and
/// `..` also leaves a folder that does not exist yet.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut place = PathBuf::new();
    for part in std::path::absolute(path)?.components() {
        if part == Component::ParentDir {
            place.pop();
        } else {
            place.push(part);
        }
        place = place.canonicalize().unwrap_or(place);
    }
    Ok(place)
}

/// Names the kind of a file that is not a regular one.
fn describe_kind(metadata: &Metadata) -> &'static str {
    if metadata.is_dir() {
        return "a folder";
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt as _;
        let kind = metadata.file_type();
        if kind.is_fifo() {
            return "a named pipe";
        }
        if kind.is_socket() {
            return "a socket";
        }
        if kind.is_char_device() || kind.is_block_device() {
            return "a device";
        }
    }
    "something else"
}

fn not_a_file(path: &Path, kind: &str) -> ToolError {
    let what =
        format_args!("this is {kind}, not a regular file, so it stays as it is. Name another file");
    unusable_path(path, what)
}

/// Opens the regular file at `path`, or at the target of a link, without waiting for another
/// process.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let file = open_without_waiting(&fs::canonicalize(path)?)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    Ok(file)
}

/// Creates the error for a file or folder that cannot be read or written.
pub(crate) fn file_error(path: &Path, error: &io::Error) -> ToolError {
    let what = format_args!("{error}. Check the path, its rights and the room on the disk");
    unusable_path(path, what)
}

/// True if two files hold the same bytes.
fn is_same(a: &Path, b: &Path) -> io::Result<bool> {
    let a = open_regular(a)?;
    let b = open_regular(b)?;
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

    #[cfg(unix)]
    #[test]
    fn what_is_not_a_regular_file_is_never_replaced() {
        use std::os::unix::fs::{FileTypeExt as _, symlink};
        let dir = tempfile::tempdir().expect("tempdir");
        let pipe = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("runs");
        assert!(made.success());
        let socket = dir.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("binds");
        let link = dir.path().join("link");
        symlink(&pipe, &link).expect("links");
        let dangling = dir.path().join("dangling");
        symlink(dir.path().join("nowhere"), &dangling).expect("links");
        for (path, kind) in [
            (&pipe, "a named pipe"),
            (&link, "a named pipe"),
            (&socket, "a socket"),
            (&dangling, "a link that leads nowhere"),
        ] {
            let error = write(path, "x", true).expect_err("refused");
            assert!(error.message.contains(kind), "{error}");
        }
        assert!(fs::metadata(&pipe).expect("there").file_type().is_fifo());
        assert!(fs::metadata(&socket).expect("there").file_type().is_socket());
        assert!(fs::symlink_metadata(&dangling).expect("there").is_symlink());
        assert!(!dir.path().join("nowhere").exists());
        assert_eq!(fs::read_dir(dir.path()).expect("lists").count(), 4, "nothing is left over");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_a_file_stays_a_link() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("a.txt");
        let link = dir.path().join("link");
        fs::write(&path, "one").expect("writes");
        std::os::unix::fs::symlink("a.txt", &link).expect("links");
        assert_eq!(write(&link, "two", true), Ok(Put::Written(3)));
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        assert_eq!(fs::read_to_string(&path).expect("reads"), "two");
    }
}
