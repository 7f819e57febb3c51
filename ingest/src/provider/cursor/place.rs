//! Finds what the place of a transcript says about its session: the project's folder, and the time
//! of the file (docs/formats.md#cursor).

use std::path::{Path, PathBuf};

/// Name of the folder with the transcripts of one project. Its parent is named after the project.
const TRANSCRIPTS: &str = "agent-transcripts";

/// Maximum number of folders whose entries are listed to find a project.
const MAX_LISTED_FOLDERS: usize = 64;

/// Returns the folder of the project that a transcript belongs to, if it exists on this machine.
/// `None` if several folders have the name.
pub(super) fn project_folder(transcript: &Path) -> Option<PathBuf> {
    let transcripts = transcript.ancestors().find(|dir| dir.ends_with(TRANSCRIPTS))?;
    let slug = transcripts.parent()?.file_name()?.to_str()?;
    find_folder(Path::new("/"), slug)
}

/// Returns the folder below `root` whose path has the given slug.
fn find_folder(root: &Path, slug: &str) -> Option<PathBuf> {
    let mut search = FolderSearch { found: Vec::new(), listed: 0 };
    search.visit(root, &slug_of(slug));
    match search.found.as_slice() {
        [folder] => Some(folder.clone()),
        _ => None,
    }
}

/// Returns a name as it is in the slug of a path: every character that is not an ASCII letter or
/// digit is a dash. Versions differ in whether they write several dashes in a row, so one stands
/// for all.
fn slug_of(name: &str) -> String {
    let mut slug = String::with_capacity(name.len());
    for character in name.chars() {
        if character.is_ascii_alphanumeric() {
            slug.push(character);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.truncate(slug.trim_end_matches('-').len());
    slug
}

/// A search for the folders whose path has a slug. A dash may be a separator or part of a name.
struct FolderSearch {
    found: Vec<PathBuf>,
    listed: usize,
}

impl FolderSearch {
    /// Searches the folders below `dir`, of whose path `slug` remains.
    fn visit(&mut self, dir: &Path, slug: &str) {
        if self.listed == MAX_LISTED_FOLDERS {
            return;
        }
        self.listed += 1;
        let Ok(entries) = std::fs::read_dir(dir) else { return };
        for entry in entries.flatten() {
            let name = slug_of(&entry.file_name().to_string_lossy());
            let Some(rest) = slug.strip_prefix(&name).filter(|_| !name.is_empty()) else {
                continue;
            };
            if !entry.path().is_dir() {
                continue;
            }
            if rest.is_empty() {
                self.found.push(entry.path());
            } else if let Some(rest) = rest.strip_prefix('-') {
                self.visit(&entry.path(), rest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_name_folders_that_exist() {
        let root = tempfile::tempdir().expect("tempdir");
        for folder in ["home/My Project", "home/deja-vu", "home/a/b", "home/a-b", "home/.config/x"]
        {
            std::fs::create_dir_all(root.path().join(folder)).expect("creates");
        }
        let check = |slug: &str, want: Option<&str>| {
            let want = want.map(|folder| root.path().join(folder));
            assert_eq!(find_folder(root.path(), slug), want, "{slug}");
        };
        check("home-My-Project", Some("home/My Project"));
        check("home-deja-vu", Some("home/deja-vu"));
        check("home--config-x", Some("home/.config/x"));
        check("home-a-b", None);
        check("home-gone", None);
        check("", None);
    }
}
