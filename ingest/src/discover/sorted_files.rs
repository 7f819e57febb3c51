//! Sorts the files of a walk, which come in runs of one folder.

use std::collections::HashMap;
use std::path::MAIN_SEPARATOR;

use crate::source::candidate::LogCandidate;

/// A file with the beginning of its name as a number, by which most names are compared.
struct NamedFile {
    prefix: u64,
    file: LogCandidate,
}

/// Sorts files by folder and name. This is their order by path, except where a file and a folder
/// next to each other begin alike. To sort such a list takes one comparison of paths for each file,
/// instead of the fifteen that a list of tens of thousands takes.
pub(super) fn group_by_folder(files: Vec<LogCandidate>) -> Vec<LogCandidate> {
    let count = files.len();
    let mut folders: HashMap<Vec<u8>, Vec<NamedFile>> = HashMap::new();
    let mut run: Vec<NamedFile> = Vec::new();
    for file in files {
        let is_of_run = run.last().is_none_or(|last| folder_of(&last.file) == folder_of(&file));
        if !is_of_run {
            add_run(&mut folders, &mut run);
        }
        run.push(NamedFile { prefix: name_prefix(&file), file });
    }
    add_run(&mut folders, &mut run);

    let mut folders: Vec<_> = folders.into_iter().collect();
    folders.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    let mut sorted = Vec::with_capacity(count);
    for (_, mut files) in folders {
        files.sort_unstable_by(|a, b| {
            a.prefix.cmp(&b.prefix).then_with(|| path_bytes(&a.file).cmp(path_bytes(&b.file)))
        });
        sorted.extend(files.into_iter().map(|named| named.file));
    }
    sorted
}

/// Adds files of one folder to it. Leaves `run` empty.
fn add_run(folders: &mut HashMap<Vec<u8>, Vec<NamedFile>>, run: &mut Vec<NamedFile>) {
    let Some(first) = run.first() else { return };
    let folder = folder_of(&first.file).to_owned();
    folders.entry(folder).or_default().append(run);
}

fn path_bytes(file: &LogCandidate) -> &[u8] {
    file.path.as_os_str().as_encoded_bytes()
}

/// Returns the position of a file's name in its path.
fn name_start(path: &[u8]) -> usize {
    path.iter().rposition(|byte| char::from(*byte) == MAIN_SEPARATOR).map_or(0, |at| at + 1)
}

/// Returns the path of the folder of a file, with the separator at its end.
fn folder_of(file: &LogCandidate) -> &[u8] {
    let path = path_bytes(file);
    &path[..name_start(path)]
}

/// Returns the first eight bytes of a file's name, which have the order of the names.
fn name_prefix(file: &LogCandidate) -> u64 {
    let path = path_bytes(file);
    let mut prefix = [0; size_of::<u64>()];
    for (to, from) in prefix.iter_mut().zip(&path[name_start(path)..]) {
        *to = *from;
    }
    u64::from_be_bytes(prefix)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::path::PathBuf;

    use super::*;
    use crate::source::candidate::Container;

    #[test]
    fn files_are_sorted_by_folder_and_name() {
        let paths = [
            "/b/2.jsonl",
            "/b/1.jsonl",
            "/a/long-name-2",
            "/a/long-name-1",
            "/b/0",
            "/a/b/x",
            "/a/b",
            "/",
            "x",
        ];
        let files = paths.map(|path| LogCandidate {
            path: PathBuf::from(path),
            size: 0,
            modified_us: 0,
            container: Container::Plain,
        });
        let sorted = group_by_folder(files.into());
        let sorted: Vec<&OsStr> = sorted.iter().map(|file| file.path.as_os_str()).collect();
        let expected = [
            "x",
            "/",
            "/a/b",
            "/a/long-name-1",
            "/a/long-name-2",
            "/a/b/x",
            "/b/0",
            "/b/1.jsonl",
            "/b/2.jsonl",
        ];
        assert_eq!(sorted, expected);
    }
}
