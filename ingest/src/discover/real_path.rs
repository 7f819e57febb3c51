//! The one spelling of a path by which the store knows a file.

use std::io;
use std::path::{Path, PathBuf};

/// Bytes of a path that every program of Windows takes without the prefix for long paths, and the
/// number that is too many.
const TOO_LONG_BYTES: usize = 260;

/// Returns the path of a file or folder without links. On Windows it has no prefix `\\?\`, which
/// users do not type and many programs do not understand.
///
/// # Errors
/// Fails if there is nothing at `path`, or if the system cannot tell.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    Ok(without_long_prefix(path.canonicalize()?))
}

/// Removes the prefix for long paths of Windows, unless the path means something else without it.
fn without_long_prefix(path: PathBuf) -> PathBuf {
    let Some(long) = path.to_str().and_then(|path| path.strip_prefix(r"\\?\")) else {
        return path;
    };
    let plain = match long.strip_prefix(r"UNC\") {
        Some(share) => format!(r"\\{share}"),
        None => long.to_owned(),
    };
    let is_drive = plain.as_bytes().get(1) == Some(&b':');
    // Windows removes dots and spaces at the end of a name, unless the path has the prefix.
    let is_changed = plain.split('\\').any(|name| name.ends_with(['.', ' ']));
    let is_usual = (is_drive || plain.starts_with(r"\\")) && plain.len() < TOO_LONG_BYTES;
    if is_usual && !is_changed { PathBuf::from(plain) } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_for_long_paths_is_removed_where_windows_needs_none() {
        let plain = |path: &str| without_long_prefix(PathBuf::from(path));
        assert_eq!(plain(r"\\?\C:\Users\mira\x.jsonl"), Path::new(r"C:\Users\mira\x.jsonl"));
        assert_eq!(plain(r"\\?\UNC\pier\logs"), Path::new(r"\\pier\logs"));
        let long = format!(r"\\?\C:\{}", "x".repeat(TOO_LONG_BYTES));
        for kept in ["/home/mira", r"C:\x", r"\\?\Volume{1}\x", r"\\?\C:\ends.", &long] {
            assert_eq!(plain(kept), Path::new(kept));
        }
    }

    #[test]
    fn what_does_not_exist_has_no_real_path() {
        let dir = tempfile::tempdir().expect("tempdir");
        assert!(real_path(dir.path()).is_ok());
        assert!(real_path(&dir.path().join("absent")).is_err());
    }
}
