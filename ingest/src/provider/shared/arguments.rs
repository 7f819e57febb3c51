//! Extracts readable text, file paths and the command line from the arguments of a tool call.

use schemas::EventType;

use crate::stream::tool_kind::PATCH_BEGIN;
use crate::stream::{DecodedEvent, Stream};
use crate::text::json::{JsonFields, Parser, Value, decode_embedded, string_value};
use crate::text::render;

/// Names of arguments that hold one path, in the tools of all providers.
const PATH_KEYS: &[&str] = &[
    "file_path",
    "notebook_path",
    "absolute_path",
    "filePath",
    "path",
    "relative_path",
    "target_file",
    "TargetFile",
    "AbsolutePath",
    "relative_workspace_path",
    "relativeWorkspacePath",
    "targetFile",
    "dir_path",
    "DirectoryPath",
];

/// Names of arguments that hold several paths.
const PATH_LIST_KEYS: &[&str] = &["paths", "file_paths", "files"];

/// Names of arguments that hold a command line, as text or as a list of words.
const COMMAND_KEYS: &[&str] =
    &["command", "cmd", "CommandLine", "commandLine", "script", "commands"];

/// Beginnings of the lines of an `apply_patch` patch that name a file.
const PATCH_FILE_PREFIXES: &[&str] =
    &["*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "];

/// Maximum length in bytes of a command line in its column. The text of the call has all of it.
const MAX_COMMAND_BYTES: usize = 4096;

/// Maximum length in bytes of the list of files in its column. The bound exists because answers
/// repeat the list.
const MAX_FILES_BYTES: usize = 32 << 10;

/// Length in bytes from which a text is not taken for a path.
const PATH_BYTES_LIMIT: usize = 4096;

/// Text, files and command line of a call.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    text: String,
    /// Paths, each once.
    files: Vec<String>,
    files_bytes: usize,
    command: String,
}

impl Arguments {
    /// Reads arguments that are a JSON value; a string is text.
    pub(crate) fn of_value(input: Option<Value<'_>>) -> Self {
        let mut arguments = Self::default();
        if let Some(input) = input {
            arguments.read_value(input);
        }
        arguments
    }

    /// Reads arguments that are a JSON value, or a string with JSON or other text.
    pub(crate) fn of_input(input: Option<Value<'_>>, parser: &mut Parser) -> Self {
        match input.and_then(string_value) {
            Some(text) => {
                let mut arguments = Self::default();
                arguments.read_json_text(text, parser);
                arguments
            }
            None => Self::of_value(input),
        }
    }

    /// Pushes a call that has only a name and an id besides its arguments, to the present step.
    pub(crate) fn push_call(&self, name: Option<&str>, id: Option<&str>, out: &mut Stream) {
        let decoded = DecodedEvent { tool_name: name, tool_call_id: id, ..self.decoded() };
        out.push(EventType::ToolCall, decoded);
    }

    /// Pushes a call like [`Self::push_call`], to a given step.
    pub(crate) fn push_call_in_step(
        &self,
        name: Option<&str>,
        id: Option<&str>,
        step: i32,
        out: &mut Stream,
    ) {
        let decoded = DecodedEvent { tool_name: name, tool_call_id: id, ..self.decoded() };
        out.push_in_step(EventType::ToolCall, step, decoded);
    }

    /// Reads arguments that are a JSON value.
    pub(crate) fn read_value(&mut self, input: Value<'_>) {
        render::append_value(input, &mut self.text);

        for path in PATH_KEYS.iter().filter_map(|key| input.non_empty(key)) {
            self.add_file(path);
        }
        for list in PATH_LIST_KEYS.iter().filter_map(|key| input.field(key)) {
            let Some(items) = list.as_array() else { continue };
            for item in &items {
                // Cline's `read_files` takes objects.
                if let Some(path) = string_value(item).or_else(|| item.non_empty("path")) {
                    self.add_file(path);
                }
            }
        }

        if let Some(command) = COMMAND_KEYS.iter().find_map(|key| input.field(key)) {
            self.append_command(command);
        }
        self.finish();
    }

    /// Reads a call whose only argument is a command line, as text or as a list of words.
    pub(crate) fn read_command_line(&mut self, command: Value<'_>) {
        self.append_command(command);
        self.text.push_str(&self.command);
        self.finish();
    }

    /// Reads changes that are keyed by the path of the file.
    pub(crate) fn read_changes(&mut self, changes: Value<'_>) {
        render::append_value(changes, &mut self.text);
        let Some(changes) = changes.as_object() else { return };
        for (path, _) in &changes {
            self.add_file(path);
        }
    }

    /// Appends a command line that is text or a list of words.
    fn append_command(&mut self, command: Value<'_>) {
        if let Some(line) = string_value(command) {
            self.command.push_str(line);
        } else if let Some(words) = command.as_array() {
            self.append_command_words(words.iter().filter_map(string_value));
        }
    }

    /// Reads arguments that are JSON inside a string, or else plain text.
    pub(crate) fn read_json_text(&mut self, text: &str, parser: &mut Parser) {
        if !decode_embedded(text, parser, |value| self.read_value(value)) {
            self.read_plain_text(text);
        }
    }

    /// Reads arguments that are plain text.
    pub(crate) fn read_plain_text(&mut self, text: &str) {
        self.text.push_str(text);
        self.finish();
    }

    /// Returns a decoded event of the call.
    pub(crate) fn decoded(&self) -> DecodedEvent<'_> {
        DecodedEvent {
            text: &self.text,
            files: &self.files,
            command: &self.command,
            ..DecodedEvent::default()
        }
    }

    /// Appends a command given as words. The command of `bash -lc 'x'` is `x`; the words of other
    /// commands are joined by spaces.
    fn append_command_words<'w>(&mut self, words: impl Iterator<Item = &'w str>) {
        let words: Vec<_> = words.collect();
        let line = match words.as_slice() {
            [shell, "-lc" | "-c", script]
                if ["bash", "sh", "zsh"].iter().any(|name| shell.ends_with(name)) =>
            {
                (*script).to_owned()
            }
            words => words.join(" "),
        };
        self.command.push_str(&line);
    }

    /// Limits the length of the command, and adds the paths of a patch in the text.
    fn finish(&mut self) {
        if self.command.len() > MAX_COMMAND_BYTES {
            self.command.truncate(render::truncation_point(&self.command, MAX_COMMAND_BYTES));
            self.command.push('…');
        }
        if memchr::memmem::find(self.text.as_bytes(), PATCH_BEGIN.as_bytes()).is_some() {
            self.add_patch_files();
        }
    }

    /// Adds the paths that the text names as a patch.
    pub(crate) fn add_patch_files(&mut self) {
        let text = std::mem::take(&mut self.text);
        for line in text.lines() {
            // In the argument `patch`, a file header may be on the first line, after the argument's
            // name.
            let line = line.trim_start().trim_start_matches("patch: ");
            let path = PATCH_FILE_PREFIXES.iter().find_map(|prefix| line.strip_prefix(prefix));
            if let Some(path) = path {
                self.add_file(path.trim());
            }
        }
        self.text = text;
    }

    /// Adds a path to the files unless it is already there or exceeds the bounds.
    fn add_file(&mut self, path: &str) {
        let room = MAX_FILES_BYTES.saturating_sub(self.files_bytes);
        let is_path =
            !path.is_empty() && path.len() < room.min(PATH_BYTES_LIMIT) && !path.contains('\n');
        if is_path && self.files.iter().all(|known| known != path) {
            // One byte more for the separator between two paths.
            self.files_bytes += path.len() + 1;
            self.files.push(path.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, files: &[&str], command: &str) {
        let mut arguments = Arguments::default();
        arguments.read_json_text(json, &mut Parser::default());
        let decoded = arguments.decoded();
        assert_eq!(decoded.files, files, "{json}");
        assert_eq!(decoded.command, command, "{json}");
    }

    #[test]
    fn a_list_of_files_has_an_end() {
        let paths: Vec<_> = (0..5000).map(|file| format!("\"src/a/folder/{file}.rs\"")).collect();
        let mut arguments = Arguments::default();
        let json = format!("{{\"files\":[{}]}}", paths.join(","));
        arguments.read_json_text(&json, &mut Parser::default());
        let files = arguments.decoded().files;
        let bytes = files.join("\n").len();
        assert!((30_000..=MAX_FILES_BYTES).contains(&bytes), "{bytes}");
        assert_eq!(files[0], "src/a/folder/0.rs");
    }

    #[test]
    fn patches_name_their_files_once() {
        check("*** Update File: not/in/a/patch", &[], "");
        let patch = "*** Begin Patch\n*** Update File: src/a.rs\n@@\n-x\n+y\n*** Move to: src/b.rs\n*** Update File: src/a.rs\n*** End Patch";
        check(patch, &["src/a.rs", "src/b.rs"], "");
    }

    #[test]
    fn arguments_name_paths_and_lists_of_them() {
        check(r#"{"file_path":"/a","pattern":"x","paths":["b c","/a",7]}"#, &["/a", "b c"], "");
        check(r#"{"files":[{"path":"/a","start_line":3},{"path":"b"},{}]}"#, &["/a", "b"], "");
    }

    #[test]
    fn a_command_that_is_cut_says_so() {
        let mut arguments = Arguments::default();
        let json = format!(r#"{{"cmd":"{}"}}"#, "é".repeat(MAX_COMMAND_BYTES));
        arguments.read_json_text(&json, &mut Parser::default());
        let command = arguments.decoded().command;
        assert_eq!(command, "é".repeat(MAX_COMMAND_BYTES / 2) + "…");
    }

    #[test]
    fn command_lines_are_texts_or_words() {
        check(r#"{"command":"ls -l","timeout":3}"#, &[], "ls -l");
        check(r#"{"command":["bash","-lc","cargo test | tail"]}"#, &[], "cargo test | tail");
        check(r#"{"cmd":["git","status"]}"#, &[], "git status");
        check(r#"{"command":{"odd":1}}"#, &[], "");
    }
}
