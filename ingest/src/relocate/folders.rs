//! Maps the paths of one folder to those of another, from any system to any other.

use crate::text::names::is_windows_path;

/// Maps the folder in which a session ran, and what is above it in its repository, to folders of this
/// machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderMove {
    /// The deepest folder first.
    pairs: Vec<[String; 2]>,
}

impl FolderMove {
    /// Creates the move of the folder `from`, as the log names it, to the folder `to`. If both end with
    /// the same names, the folders above these are moved, too.
    pub fn new(from: &str, to: &str) -> Self {
        let mut pairs = vec![[from.to_owned(), to.to_owned()]];
        let (mut above_from, mut above_to) = (from, to);
        while let Some((from, name)) = split_name(above_from)
            && let Some((to, other)) = split_name(above_to)
            && name == other
        {
            pairs.push([from.to_owned(), to.to_owned()]);
            (above_from, above_to) = (from, to);
        }
        Self { pairs }
    }

    /// Returns the folder to which the session moves.
    pub fn target(&self) -> &str {
        &self.pairs[0][1]
    }

    /// Returns the path of this machine for a path of a log. `None` if it is neither in the folder nor
    /// one of the folders above it that move as well.
    pub fn map(&self, path: &str) -> Option<String> {
        let [from, to] = &self.pairs[0];
        if let Some(below) = strip_folder(path, from) {
            return join(to, &below);
        }
        let above = self.pairs[1..].iter().find(|[from, _]| is_same_folder(path, from));
        above.map(|[_, to]| to.clone())
    }
}

/// Returns the separators of a path.
fn separators(path: &str) -> &'static [char] {
    if is_windows_path(path) { &['/', '\\'] } else { &['/'] }
}

fn trim_end(path: &str) -> &str {
    path.trim_end_matches(separators(path))
}

/// Splits a path into the folder above it and its name. `None` at the top.
fn split_name(path: &str) -> Option<(&str, &str)> {
    let path = trim_end(path);
    let at = path.rfind(separators(path))?;
    let (above, name) = (trim_end(&path[..at]), &path[at + 1..]);
    let is_below = !above.is_empty() && !above.ends_with(':') && !name.is_empty();
    is_below.then_some((above, name))
}

/// Returns the names of a path.
fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split(separators(path)).filter(|name| !name.is_empty() && *name != ".")
}

/// Returns the names of a path below a folder; none for the folder itself. `None` if it is not below.
fn strip_folder<'p>(path: &'p str, folder: &str) -> Option<Vec<&'p str>> {
    let is_windows = is_windows_path(folder);
    if is_windows_path(path) != is_windows || path.starts_with('/') != folder.starts_with('/') {
        return None;
    }
    let mut below = names(path);
    for wanted in names(folder) {
        let name = below.next()?;
        // Windows does not distinguish the case of names.
        let is_same = name == wanted || is_windows && name.to_lowercase() == wanted.to_lowercase();
        if !is_same {
            return None;
        }
    }
    Some(below.collect())
}

fn is_same_folder(path: &str, folder: &str) -> bool {
    strip_folder(path, folder).is_some_and(|below| below.is_empty())
}

/// Returns a path below a folder, with its separators. `None` if a name leads out of it.
fn join(folder: &str, below: &[&str]) -> Option<String> {
    let separator = if is_windows_path(folder) && folder.contains('\\') { '\\' } else { '/' };
    let mut path = trim_end(folder).to_owned();
    for name in below {
        if *name == ".." {
            return None;
        }
        path.push(separator);
        path.push_str(name);
    }
    Some(if path.is_empty() { "/".to_owned() } else { path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_every_system_move_to_every_other() {
        for (from, to, path, wanted) in [
            ("/home/mira/harbor", "/srv/harbor", "/home/mira/harbor", Some("/srv/harbor")),
            ("/home/mira/harbor/", "/srv/x", "/home/mira/harbor/src/a", Some("/srv/x/src/a")),
            ("/home/mira/harbor", "/srv/x", "/home/mira/harbors", None),
            ("/home/mira/harbor", "/srv/x", "/home/mira/Harbor", None),
            ("/home/mira/harbor", "/srv/x", "/home/mira/harbor/../y", None),
            (r"C:\code\harbor", "/srv/x", r"c:\Code\harbor\src\a", Some("/srv/x/src/a")),
            (r"C:\code\harbor", "/srv/x", "C:/code/harbor/src", Some("/srv/x/src")),
            ("/Users/mira/harbor", r"D:\harbor", "/Users/mira/harbor/src", Some(r"D:\harbor\src")),
            ("/Users/mira/harbor", "D:/harbor", "/Users/mira/harbor/src", Some("D:/harbor/src")),
            (r"\\host\code", "/srv", r"\\host\code\a", Some("/srv/a")),
            ("/home/mira/harbor", "/srv/x", r"C:\home\mira\harbor", None),
            ("/home/mira/harbor", "/srv/x", "home/mira/harbor", None),
        ] {
            assert_eq!(FolderMove::new(from, to).map(path).as_deref(), wanted, "{from} {path}");
        }
    }

    #[test]
    fn folders_above_move_if_the_rest_is_the_same() {
        let moved = FolderMove::new("/home/mira/harbor/web/app", "/srv/pier/web/app");
        assert_eq!(moved.map("/home/mira/harbor").as_deref(), Some("/srv/pier"));
        assert_eq!(moved.map("/home/mira/harbor/web").as_deref(), Some("/srv/pier/web"));
        assert_eq!(moved.map("/home/mira/harbor/docs"), None);
        assert_eq!(moved.map("/home/mira"), None);
    }
}
