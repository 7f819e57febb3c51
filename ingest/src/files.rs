//! The files that a tool call names: the arguments known to hold paths, and the heads of patches.

use crate::json::{Fields, Value, string};

/// Arguments that hold one path, in every provider's tools.
const PATHS: &[&str] =
    &["file_path", "notebook_path", "absolute_path", "filePath", "path", "relative_path"];

/// Arguments that hold several.
const LISTS: &[&str] = &["paths", "file_paths", "files"];

/// Lines of a patch (`apply_patch`) that name a file.
const HEADS: &[&str] =
    &["*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "];

/// Appends the paths in a call's arguments to `out`, one to a line, each once.
pub(crate) fn of_input(input: Value<'_>, out: &mut String) {
    PATHS.iter().filter_map(|name| input.non_empty(name)).for_each(|path| add(path, out));
    for list in LISTS.iter().filter_map(|name| input.field(name)) {
        let Some(items) = list.as_array() else { continue };
        items.iter().filter_map(string).for_each(|path| add(path, out));
    }
}

/// Appends the paths that the patches in a call's text name.
pub(crate) fn of_patches(text: &str, out: &mut String) {
    if memchr::memmem::find(text.as_bytes(), b"*** Begin Patch").is_none() {
        return;
    }
    for line in text.lines() {
        let path = HEADS.iter().find_map(|head| line.trim_start().strip_prefix(head));
        path.inspect(|path| add(path.trim(), out));
    }
}

fn add(path: &str, out: &mut String) {
    let fits = !path.is_empty() && path.len() < 4096 && !path.contains('\n');
    if fits && out.lines().all(|known| known != path) {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_name_their_files_once() {
        let mut out = String::new();
        of_patches("*** Update File: not/in/a/patch", &mut out);
        assert_eq!(out, "");
        let patch = "*** Begin Patch\n*** Update File: src/a.rs\n@@\n-x\n+y\n*** Move to: src/b.rs\n*** Update File: src/a.rs\n*** End Patch";
        of_patches(patch, &mut out);
        assert_eq!(out, "src/a.rs\nsrc/b.rs");
    }

    #[test]
    fn arguments_name_paths_and_lists_of_them() {
        let mut json = br#"{"file_path":"/a","pattern":"x","paths":["b c","/a",7]}"#.to_vec();
        let tape = simd_json::to_tape(&mut json).expect("json");
        let mut out = String::new();
        of_input(tape.as_value(), &mut out);
        assert_eq!(out, "/a\nb c");
    }
}
