//! The patterns by which settings select folders, also those of another platform: the folders in logs are
//! written as the machine writes them on which the agent ran.

use std::borrow::Cow;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use ingest::text::names::is_windows_path;
use schemas::{ErrorCode, ToolError};

use super::environment::home_dir;

/// The characters that mean something else after a backslash in a pattern.
const GLOB_CHARS: [char; 7] = ['*', '?', '[', ']', '{', '}', '!'];

/// The ends of the names of folders in which users keep the worktrees of the repository next to them.
const WORKTREE_ENDINGS: [&str; 2] = [".worktrees", "__worktrees"];

/// A set of patterns of folders.
#[derive(Debug)]
pub struct FolderPatterns {
    set: GlobSet,
    /// The same for folders of Windows, where the case of letters does not count.
    windows: GlobSet,
}

impl FolderPatterns {
    /// Builds the patterns of a setting. Each matches the folder that it names and everything below. A
    /// pattern of the home directory also matches the `~` in folders of other machines.
    pub fn of_setting(setting: &str, patterns: &[String]) -> Result<Self, ToolError> {
        let mut folders = Vec::new();
        for pattern in patterns {
            let folder = folder_of(pattern);
            // It would match everything, as `/**` does on purpose.
            if pattern.trim().is_empty() {
                let message = format!(
                    "{setting}: '{pattern}' names no folder. Name one, for example '~/clients/acme/**'"
                );
                return Err(ToolError::new(ErrorCode::InvalidArgument, message)
                    .with_detail("field", setting));
            }
            // A pattern that is wrong is named, and not the set.
            let wrong = |error| wrong_pattern(setting, pattern, &error);
            let mut of_pattern = vec![absolute_pattern(&folder)];
            if folder.starts_with('~') {
                of_pattern.push(folder);
            }
            Self::build(&of_pattern).map_err(wrong)?;
            folders.extend(of_pattern);
        }
        Self::build(&folders).map_err(|error| wrong_pattern(setting, "", &error))
    }

    /// Builds patterns of folders, each for the folder and everything below it.
    pub(super) fn build(folders: &[String]) -> Result<Self, globset::Error> {
        let build_set = |is_caseless: bool| {
            let mut set = GlobSetBuilder::new();
            for folder in folders {
                for text in [folder.clone(), format!("{folder}/**")] {
                    let mut glob = GlobBuilder::new(&text);
                    glob.literal_separator(true).backslash_escape(true);
                    set.add(glob.case_insensitive(is_caseless).build()?);
                }
            }
            set.build()
        };
        Ok(Self { set: build_set(false)?, windows: build_set(true)? })
    }

    /// Returns whether a pattern matches a folder, or the path of a file.
    pub fn is_match(&self, path: &str) -> bool {
        if is_windows_path(path) {
            let path = path.strip_prefix(r"\\?\").unwrap_or(path);
            return self.windows.is_match(path.replace('\\', "/"));
        }
        self.set.is_match(path)
    }

    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }
}

/// Patterns of folders that are left out, with the worktrees next to them.
#[derive(Debug)]
pub struct ExcludedFolders {
    folders: FolderPatterns,
    /// The patterns that may match the path of a log, too. A mere name is that of a project: agents keep
    /// their logs in folders such as `projects`, `sessions` and `2026`.
    logs: FolderPatterns,
}

impl ExcludedFolders {
    /// Builds the patterns of a setting; see [`FolderPatterns::of_setting`].
    pub fn of_setting(setting: &str, patterns: &[String]) -> Result<Self, ToolError> {
        let mut folders = patterns.to_vec();
        for folder in patterns.iter().map(|pattern| folder_of(pattern)) {
            folders.extend(WORKTREE_ENDINGS.map(|ending| format!("{folder}{ending}")));
        }
        let logs: Vec<String> =
            patterns.iter().filter(|pattern| folder_of(pattern).contains('/')).cloned().collect();
        Ok(Self {
            folders: FolderPatterns::of_setting(setting, &folders)?,
            logs: FolderPatterns::of_setting(setting, &logs)?,
        })
    }

    /// Returns whether the folder of a project is left out.
    pub fn has_folder(&self, folder: &str) -> bool {
        self.folders.is_match(folder)
    }

    /// Returns whether the path of a log is left out, whatever its project is. That of a session in a
    /// database is `<database>#<session>`.
    pub fn has_log(&self, path: &str) -> bool {
        let database = path.rsplit_once('#').filter(|(_, session)| !session.contains('/'));
        self.logs.is_match(path)
            || database.is_some_and(|(database, _)| self.logs.is_match(database))
    }

    pub fn is_empty(&self) -> bool {
        self.folders.is_empty()
    }
}

/// Returns the folder that a pattern names, without the ending for everything below it. Backslashes that
/// separate folders become slashes.
pub(super) fn folder_of(pattern: &str) -> String {
    let pattern = with_slashes(pattern.trim());
    pattern.strip_suffix("/**").unwrap_or(&pattern).trim_end_matches('/').to_owned()
}

/// Returns the pattern that matches a name as it is.
pub fn pattern_of_name(name: &str) -> String {
    globset::escape(name)
}

fn with_slashes(pattern: &str) -> Cow<'_, str> {
    if !pattern.contains('\\') {
        return Cow::Borrowed(pattern);
    }
    let mut out = String::new();
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        let is_escape = chars.peek().is_some_and(|next| GLOB_CHARS.contains(next));
        let is_separator = c == '\\' && (!is_escape || is_windows_path(pattern));
        out.push(if is_separator { '/' } else { c });
    }
    Cow::Owned(out)
}

/// Returns whether a pattern begins at the root, at the home directory or anywhere.
pub(super) fn is_whole(folder: &str) -> bool {
    folder.starts_with(['/', '~']) || folder.starts_with("**") || is_windows_path(folder)
}

/// Returns the pattern of a folder: `~` is the home directory, and a pattern that does not begin at the
/// root matches in any folder.
fn absolute_pattern(folder: &str) -> String {
    let below_home =
        folder.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    match below_home {
        Some(below) => {
            let home = home_dir().to_string_lossy().replace('\\', "/");
            format!("{}{below}", globset::escape(&home))
        }
        None if is_whole(folder) => folder.to_owned(),
        None => format!("**/{folder}"),
    }
}

/// Returns the error of a pattern that cannot be used.
fn wrong_pattern(setting: &str, pattern: &str, error: &globset::Error) -> ToolError {
    let message = format!(
        "{setting} in settings.toml: '{pattern}' is not a valid pattern: {}. Fix it, for example \
        as '~/clients/acme/**'",
        error.kind()
    );
    ToolError::new(ErrorCode::InvalidArgument, message).with_detail("field", setting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_excludes_projects_and_their_worktrees_but_no_folder_of_logs() {
        let excluded = |pattern: &str| {
            ExcludedFolders::of_setting("ingest.exclude", &[pattern.to_owned()]).expect("valid")
        };
        let name = excluded("sessions");
        for folder in
            ["/code/sessions", "/code/sessions.worktrees/fix", "/code/sessions__worktrees/a/src"]
        {
            assert!(name.has_folder(folder), "{folder}");
        }
        assert!(!name.has_folder("/code/sessions2") && !name.has_log("/h/.codex/sessions/a.jsonl"));
        assert!(excluded("/h/.codex/sessions").has_log("/h/.codex/sessions/a.jsonl"));
        let database = excluded("**/crush.db");
        assert!(database.has_log("/h/a/crush.db#7") && !database.has_log("/h/a/crush.db#/b/c"));
        let odd = pattern_of_name("my[app]*");
        assert!(
            excluded(&odd).has_folder("/code/my[app]*") && !excluded(&odd).has_folder("/code/mya")
        );
        for blank in ["", "  "] {
            let patterns = [blank.to_owned()];
            assert!(FolderPatterns::of_setting("ingest.exclude", &patterns).is_err(), "{blank}");
        }
    }

    /// Folders of Windows are compared on every platform, in any case.
    #[test]
    fn patterns_compare_folders_of_any_platform() {
        let folder = r"C:\Users\mira\git\starcar";
        for pattern in [
            "starcar",
            "**/starcar",
            "**/starcar/**",
            "git/starcar",
            r"git\starcar",
            "C:/Users/mira/git/starcar",
            "c:/users/*/git/**",
            folder,
            r"C:\Users\mira\git\starcar\**",
            r"C:\Users\*\git",
            "StarCar",
        ] {
            let patterns = FolderPatterns::of_setting("ingest.exclude", &[pattern.to_owned()]);
            let patterns = patterns.expect(pattern);
            for below in [folder.to_owned(), format!(r"{folder}\src"), folder.replace('\\', "/")] {
                assert!(patterns.is_match(&below), "{pattern} {below}");
            }
            assert!(patterns.is_match(&format!(r"\\?\{folder}")), "{pattern}");
            for other in [r"C:\Users\mira\gitx\starcar2", "/home/mira/starcar2", "/"] {
                assert!(!patterns.is_match(other), "{pattern} {other}");
            }
        }
        let here = FolderPatterns::of_setting("ingest.exclude", &["StarCar".to_owned()]);
        assert!(!here.expect("valid").is_match("/home/mira/starcar"), "case counts elsewhere");
        let share = FolderPatterns::of_setting("ingest.exclude", &[r"\\nas\work".to_owned()]);
        assert!(share.expect("valid").is_match(r"\\nas\work\acme"));
    }
}
