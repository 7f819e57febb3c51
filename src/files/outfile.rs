//! Writes files that the user requested: readable by the owner only, whole or not at all, never
//! over another file without consent, and never in place of anything that is not a regular file.

use std::fs::{self, File, Metadata};
use std::io::{self, BufRead, BufReader};
use std::path::{Component, Path, PathBuf};

use ingest::discover::real_path;
use schemas::ToolError;
use tempfile::NamedTempFile;

use crate::files::leftovers::create_temporary;
use base::files::open_for_reading;
use store::is_store;
use tools::error::unusable_path;

/// The outcome of writing a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteOutcome {
    Written(u64),
    /// The file already existed with the same bytes.
    Unchanged,
}

/// Writes a file with `fill` and moves it to its place. If a file with other content is there,
/// `replace` returns whether it may be replaced; `advice` is the next step if not. A place that
/// holds anything but a regular file is refused before `fill` runs, whatever `replace` returns, and
/// so is a place inside a store.
pub(crate) fn write_output(
    path: &Path,
    replace: impl FnOnce() -> bool,
    advice: &str,
    fill: impl FnOnce(&mut File) -> Result<(), ToolError>,
) -> Result<WriteOutcome, ToolError> {
    let place = find_place(path)?;
    refuse_store(path, &place)?;
    let mut file = create_next_to(&place).map_err(|error| file_error(path, &error))?;
    fill(file.as_file_mut())?;

    // Filling may take minutes, and the place may have changed meanwhile.
    let place = find_place(path)?;
    match move_to_place(file, &place, replace) {
        Ok(Some(outcome)) => Ok(outcome),
        Ok(None) => {
            let what = format_args!("another file already exists there. {advice}");
            Err(unusable_path(path, what))
        }
        Err(error) => Err(file_error(path, &error)),
    }
}

/// Creates a temporary file in the folder of `place`, so that one step moves it there.
pub(crate) fn create_next_to(place: &Path) -> io::Result<NamedTempFile> {
    let dir = place.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(dir)?;
    create_temporary(dir)
}

/// Copies a file to one next to it with this end after its name, or this end and the next number that
/// is free. Returns the path of the copy.
pub(crate) fn keep_copy(path: &Path, end: &str) -> io::Result<PathBuf> {
    let mut content = open_target(path)?;
    // Private until it is complete.
    let mut copy = create_next_to(path)?;
    io::copy(&mut content, &mut copy)?;
    copy.as_file().set_permissions(content.metadata()?.permissions())?;
    copy.as_file().sync_all()?;
    let mut number = 1;
    loop {
        let mut kept = path.as_os_str().to_owned();
        kept.push(if number == 1 { end.to_owned() } else { format!("{end}{number}") });
        match copy.persist_noclobber(&kept) {
            Ok(_) => return Ok(kept.into()),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => copy = error.file,
            Err(error) => return Err(error.error),
        }
        number += 1;
    }
}

/// Moves a file to its place. Returns `None` if a file with other content is there and `replace`
/// returns false.
fn move_to_place(
    file: NamedTempFile,
    place: &Path,
    replace: impl FnOnce() -> bool,
) -> io::Result<Option<WriteOutcome>> {
    let bytes = fs::metadata(file.path())?.len();
    if !place.exists() {
        file.persist_noclobber(place)?;
        return Ok(Some(WriteOutcome::Written(bytes)));
    }
    if has_same_content(place, file.path())? {
        return Ok(Some(WriteOutcome::Unchanged));
    }
    if !replace() {
        return Ok(None);
    }
    file.persist(place)?;
    Ok(Some(WriteOutcome::Written(bytes)))
}

/// Returns the place of an output to `path`: the file to which a link leads, else `path` itself.
///
/// # Errors
///
/// If something that is not a regular file is there, or a broken link: replacing it
/// would remove a device, a pipe or a link that other programs use. Also if `path` cannot be
/// examined.
pub(crate) fn find_place(path: &Path) -> Result<PathBuf, ToolError> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => {
            real_path(path).map_err(|error| file_error(path, &error))
        }
        Ok(metadata) => Err(special_file_error(path, describe_kind(&metadata))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if fs::symlink_metadata(path).is_ok() {
                return Err(special_file_error(path, "a broken link"));
            }
            Ok(path.to_owned())
        }
        Err(error) => Err(file_error(path, &error)),
    }
}

/// Refuses a place inside a store: only an ingest writes files there, and a reader treats any other
/// content as damage.
fn refuse_store(path: &Path, place: &Path) -> Result<(), ToolError> {
    let place = resolve_path(place).map_err(|error| file_error(path, &error))?;
    let Some(store) = place.ancestors().skip(1).find(|dir| is_store(dir)) else { return Ok(()) };
    let store = store.display();
    let what = format_args!(
        "this is inside the store {store}, which holds its own files only. Name a file outside it"
    );
    Err(unusable_path(path, what))
}

/// Returns the place to which a path leads once its folders are created: links are followed, and
/// `..` also leaves a folder that does not exist yet.
fn resolve_path(path: &Path) -> io::Result<PathBuf> {
    let mut place = PathBuf::new();
    for part in std::path::absolute(path)?.components() {
        if part == Component::ParentDir {
            place.pop();
        } else {
            place.push(part);
        }
        place = real_path(&place).unwrap_or(place);
    }
    Ok(place)
}

/// Refuses `dir` if it cannot be the folder of an output: it, or a part of its path, is there and is
/// not a folder. `content` is what would be written into it.
pub(crate) fn require_folder(dir: &Path, content: &str) -> Result<(), ToolError> {
    for part in dir.ancestors() {
        match fs::metadata(part) {
            Ok(metadata) if metadata.is_dir() => return Ok(()),
            Ok(metadata) => {
                let kind = describe_kind(&metadata);
                let what = format_args!(
                    "this is {kind}, and {content} needs a folder for its files. Name a folder with -o"
                );
                return Err(unusable_path(part, what));
            }
            // This part is created, or a part above it explains the error.
            Err(_) => {}
        }
    }
    Ok(())
}

/// Names the kind of a file.
fn describe_kind(metadata: &Metadata) -> &'static str {
    if metadata.is_dir() {
        return "a folder";
    }
    if metadata.is_file() {
        return "a file";
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

/// Returns the error for a place that holds something that is never replaced.
fn special_file_error(path: &Path, kind: &str) -> ToolError {
    let what = format_args!(
        "this is {kind}, not a regular file, and it is not replaced. Name another file"
    );
    unusable_path(path, what)
}

/// Opens the regular file at `path`, or at the target of a link, without waiting for another
/// process.
pub(crate) fn open_target(path: &Path) -> io::Result<File> {
    open_for_reading(&real_path(path)?)
}

/// Creates the error for a file or folder that cannot be read or written.
pub(crate) fn file_error(path: &Path, error: &io::Error) -> ToolError {
    let what = format_args!("{error}. Check the path, its permissions and the free disk space");
    unusable_path(path, what)
}

/// Returns true if two files hold the same bytes.
fn has_same_content(a: &Path, b: &Path) -> io::Result<bool> {
    let a = open_target(a)?;
    let b = open_target(b)?;
    if a.metadata()?.len() != b.metadata()?.len() {
        return Ok(false);
    }

    let mut a = BufReader::new(a);
    let mut b = BufReader::new(b);
    loop {
        let left = a.fill_buf()?;
        let right = b.fill_buf()?;
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

    fn write(path: &Path, text: &str, replace: bool) -> Result<WriteOutcome, ToolError> {
        write_output(
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
        assert_eq!(write(&path, "one", false), Ok(WriteOutcome::Written(3)));
        assert_eq!(write(&path, "one", false), Ok(WriteOutcome::Unchanged));
        let error = write(&path, "two", false).expect_err("is there");
        assert!(error.message.contains("Choose another."), "{error}");
        assert_eq!(fs::read_to_string(&path).expect("reads"), "one");
        assert_eq!(write(&path, "two", true), Ok(WriteOutcome::Written(3)));
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
            (&dangling, "a broken link"),
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
        assert_eq!(write(&link, "two", true), Ok(WriteOutcome::Written(3)));
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        assert_eq!(fs::read_to_string(&path).expect("reads"), "two");
    }
}
