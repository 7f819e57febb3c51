//! Resolves paths as logs write them: relative ones, and ones with `.` and `..`.

use ingest::text::names::{has_drive, is_windows_path};

/// Returns the full form of `path`, which may be relative to `folder`. Without a folder a relative
/// path stays relative. No file system is consulted, because the log may be from another machine.
pub fn resolve_path(folder: Option<&str>, path: &str) -> String {
    let path = path.trim();
    if path.contains("://") {
        return path.to_owned();
    }
    let whole = match folder {
        Some(folder) if !is_absolute(path) => format!("{folder}/{path}"),
        _ => path.to_owned(),
    };
    let is_windows = has_drive(&whole);
    let separator = if is_windows { '\\' } else { '/' };
    let is_separator = |c: char| c == '/' || (is_windows && c == '\\');
    let is_rooted = whole.starts_with('/');

    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split(is_separator) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if is_rooted => {}
            part => parts.push(part),
        }
    }
    let joined = parts.join(&separator.to_string());
    if is_rooted { format!("/{joined}") } else { joined }
}

/// Returns the part of a path below a folder, both in their full form; `None` for the folder itself, for
/// a path elsewhere, and in the root.
pub fn path_below(folder: &str, path: &str) -> Option<String> {
    let full = resolve_path(Some(folder), path);
    let folder = resolve_path(None, folder);
    let separator = if has_drive(&full) { '\\' } else { '/' };
    let below = full.strip_prefix(&folder)?.strip_prefix(separator)?;
    Some(below.to_owned())
}

/// Returns the last part of a path of any system.
pub fn last_part(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Returns true for a path that does not depend on a folder: from the root, from a home folder, or
/// with a drive.
fn is_absolute(path: &str) -> bool {
    path.starts_with(['/', '~']) || is_windows_path(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_and_full_paths_of_one_file_are_equal() {
        for (folder, path, full) in [
            (Some("/home/m/harbor"), "src/main.rs", "/home/m/harbor/src/main.rs"),
            (Some("/home/m/harbor/"), "./src/../src/main.rs", "/home/m/harbor/src/main.rs"),
            (Some("/home/m/harbor"), "/home/m/harbor/src/main.rs", "/home/m/harbor/src/main.rs"),
            (Some("/home/m/harbor"), "../pier/x", "/home/m/pier/x"),
            (Some("/x"), "../../y", "/y"),
            (Some("/x"), "~/notes.md", "~/notes.md"),
            (Some("C:\\Users\\m"), "src/a.rs", "C:\\Users\\m\\src\\a.rs"),
            (Some("/x"), "C:/Users/m/a.rs", "C:\\Users\\m\\a.rs"),
            (Some("/x"), "a\\b", "/x/a\\b"),
            (None, "./src/main.rs", "src/main.rs"),
            (None, "../a", "../a"),
        ] {
            assert_eq!(resolve_path(folder, path), full, "{folder:?} {path}");
        }
    }

    #[test]
    fn a_path_below_a_folder_is_relative() {
        for (folder, path, below) in [
            ("/home/mira/pier", "/home/mira/pier/src/lamp.rs", Some("src/lamp.rs")),
            ("/home/mira/pier/", "src/lamp.rs", Some("src/lamp.rs")),
            ("/home/mira/pier", "/home/mira/pier/", None),
            ("/home/mira/pier", "/home/mira/pier-2/x", None),
            ("/home/mira/pier", "/mnt/home/mira/pier/x", None),
            ("/home/mira/pier", "https://x/home/mira/pier/y", None),
            ("/", "/etc/hosts", None),
            ("C:\\code\\app", "src\\a.rs", Some("src\\a.rs")),
            ("C:\\code\\app", "C:/code/app/src/a.rs", Some("src\\a.rs")),
            ("C:/code/app/", "C:\\code\\app2\\a.rs", None),
        ] {
            assert_eq!(path_below(folder, path).as_deref(), below, "{folder} {path}");
        }
    }
}
