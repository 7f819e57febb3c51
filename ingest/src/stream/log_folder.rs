//! Finds the folder that a session belongs to among the working directories in its log.
//!
//! Agents name the folder of a project's logs after its directory:
//!
//! ```text
//! ~/.claude/projects/-home-mira-code-harbor/<session>/subagents/agent-<id>.jsonl
//! {"type":"user","cwd":"/home/mira/code/harbor/ui",...}
//! ```
//!
//! A subagent, a compaction or a fork may begin in another directory than its session.

use std::path::Path;

/// Returns the directory that a folder above the log is named after: `cwd` or a folder above it.
pub(super) fn find_log_folder<'c>(cwd: &'c str, log: &str) -> Option<&'c str> {
    let ends = cwd.char_indices().filter(|(_, sign)| matches!(sign, '/' | '\\'));
    let mut ends: Vec<usize> = ends.map(|(at, _)| at).chain([cwd.len()]).collect();
    ends.reverse();
    // The root alone is not a name.
    let folders = ends.into_iter().map(|end| &cwd[..end]).filter(|folder| folder.len() > 1);
    let names: Vec<&str> =
        Path::new(log).ancestors().skip(1).filter_map(|dir| dir.file_name()?.to_str()).collect();
    folders.into_iter().find(|folder| names.iter().any(|name| is_named_after(name, folder)))
}

/// Returns whether an agent gives the logs of `folder` a folder of this name: every sign but ASCII
/// letters and digits becomes a hyphen. Some agents write the name in lower case.
fn is_named_after(name: &str, folder: &str) -> bool {
    let hyphens = |sign: char| if sign.is_ascii_alphanumeric() { 0 } else { sign.len_utf16() };
    let mut rest = name;
    for sign in folder.chars() {
        let after = match hyphens(sign) {
            0 => rest.strip_prefix(|found: char| found.eq_ignore_ascii_case(&sign)),
            1 => rest.strip_prefix('-'),
            _ => rest.strip_prefix("--"),
        };
        let Some(after) = after else { return false };
        rest = after;
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_the_logs_names_the_directory() {
        let check = |cwd: &str, log: &str, want: Option<&str>| {
            assert_eq!(find_log_folder(cwd, log), want, "{cwd} in {log}");
        };
        let logs = "/home/mira/.claude/projects/-home-mira-my-harbor";
        let log = &format!("{logs}/1/subagents/agent-a.jsonl");
        check("/home/mira/my.harbor/ui/src", log, Some("/home/mira/my.harbor"));
        check("/home/mira/my.harbor", log, Some("/home/mira/my.harbor"));
        check("/home/mira", log, None);
        check("/tmp", log, None);
        check("/home/mira/work", "/home/mira/work/a.jsonl", None);
        check("/", "/-/a.jsonl", None);
        check(r"C:\Users\Mira\ünï\ui", "/p/C--Users-Mira--n-/a.jsonl", Some(r"C:\Users\Mira\ünï"));
        check("/w/\u{1f426}/ui", "/p/-w---/a.jsonl", Some("/w/\u{1f426}"));
        check("/w/Harbor", "/p/-w-harbor/chats/a.jsonl", Some("/w/Harbor"));
    }
}
