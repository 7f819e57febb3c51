//! Finds the folder in which a session of Gemini CLI ran. The log does not record it, but files
//! around the log's folder do (docs/formats.md#gemini-cli).

use std::path::Path;

use crate::provider::shared::beside;

/// Maximum size in bytes of such a file. Larger files are not read.
const BYTES: u64 = 4 << 20;

/// Returns the folder of the project to which the log `~/.gemini/tmp/<project>/chats/...` belongs.
pub(super) fn cwd(log: &Path) -> Option<String> {
    let chats = log.ancestors().find(|dir| dir.file_name().is_some_and(|name| name == "chats"))?;
    let project = chats.parent()?;
    let root = beside::read(&project.join(".project_root"), BYTES);
    let root = root.and_then(|root| Some(String::from_utf8(root).ok()?.trim().to_owned()));
    root.filter(|root| !root.is_empty()).or_else(|| {
        let list = beside::json(&project.parent()?.parent()?.join("projects.json"), BYTES)?;
        let mut projects = list["projects"].as_object()?.iter();
        let name = project.file_name()?.to_str()?;
        projects.find(|(_, slug)| slug.as_str() == Some(name)).map(|(path, _)| path.clone())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_folder_is_told_beside_the_log() {
        let dir = tempfile::tempdir().expect("tempdir");
        let project = dir.path().join("tmp/harbor");
        let log = project.join("chats/9c1e/a.json");
        fs::create_dir_all(&project).expect("creates");
        assert_eq!(cwd(&log), None);
        let list =
            r#"{"projects":{"/home/mira/code/quay":"quay","/home/mira/code/harbor":"harbor"}}"#;
        fs::write(dir.path().join("projects.json"), list).expect("writes");
        assert_eq!(cwd(&log).as_deref(), Some("/home/mira/code/harbor"));
        fs::write(project.join(".project_root"), "/srv/harbor\n").expect("writes");
        assert_eq!(cwd(&log).as_deref(), Some("/srv/harbor"));
        assert_eq!(cwd(Path::new("/tmp/session.json")), None);
    }
}
