//! Finds the folder in which a session of Gemini CLI ran. The log does not record it, but files
//! around the log's folder do (docs/formats.md#gemini-cli).

use std::path::Path;

use crate::provider::shared::sidecar;
use crate::source::bounded_file::read_bounded_file;

/// Maximum size in bytes of such a file. Larger files are not read.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Returns the folder of the project to which the log `~/.gemini/tmp/<project>/chats/...` belongs.
pub(super) fn find_cwd(log: &Path) -> Option<String> {
    let chats = log.ancestors().find(|dir| dir.file_name().is_some_and(|name| name == "chats"))?;
    let project = chats.parent()?;
    read_project_root(project).or_else(|| find_listed_path(project))
}

/// Returns the content of `.project_root`, trimmed. `None` if the file is missing, empty, too large
/// or not UTF-8.
fn read_project_root(project: &Path) -> Option<String> {
    let bytes = read_bounded_file(&project.join(".project_root"), MAX_FILE_BYTES)?;
    let root = String::from_utf8(bytes).ok()?.trim().to_owned();
    (!root.is_empty()).then_some(root)
}

/// Returns the path that `~/.gemini/projects.json` lists for the name of the project's folder.
fn find_listed_path(project: &Path) -> Option<String> {
    let list_path = project.parent()?.parent()?.join("projects.json");
    let list = sidecar::read_json(&list_path, MAX_FILE_BYTES)?;
    let name = project.file_name()?.to_str()?;
    let mut projects = list["projects"].as_object()?.iter();
    let (path, _) = projects.find(|(_, slug)| slug.as_str() == Some(name))?;
    Some(path.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_folder_is_found_next_to_the_log() {
        let dir = tempfile::tempdir().expect("tempdir");
        let project = dir.path().join("tmp/harbor");
        let log = project.join("chats/9c1e/a.json");
        fs::create_dir_all(&project).expect("creates");
        assert_eq!(find_cwd(&log), None);
        let list =
            r#"{"projects":{"/home/mira/code/quay":"quay","/home/mira/code/harbor":"harbor"}}"#;
        fs::write(dir.path().join("projects.json"), list).expect("writes");
        assert_eq!(find_cwd(&log).as_deref(), Some("/home/mira/code/harbor"));
        fs::write(project.join(".project_root"), "/srv/harbor\n").expect("writes");
        assert_eq!(find_cwd(&log).as_deref(), Some("/srv/harbor"));
        assert_eq!(find_cwd(Path::new("/tmp/session.json")), None);
    }
}
