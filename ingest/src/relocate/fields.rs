//! Rewrites the fields of a log that name the folder in which the session ran.
//!
//! A field is known by its key, the key of the object around it and its depth, so that a text or the
//! input of a tool that has a field of the same name stays as it is.

use std::borrow::Cow;

use memchr::memmem;
use schemas::Provider;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::folders::FolderMove;
use crate::provider::base_of;
use crate::provider::shared::file_uri::{file_uri_path, to_file_uri};
use crate::redact::json_strings::{decode_string, for_each_string};
use crate::text::names::encode_hex;

/// A field that names the folder.
pub(super) struct FolderField {
    /// The types of the records that have it; all if there is none.
    record_types: &'static [&'static str],
    /// The key of the object or list that the field is in; empty at the top.
    outer: &'static str,
    depth: usize,
    key: &'static str,
    form: FieldForm,
}

/// How a field names the folder.
#[derive(Clone, Copy)]
pub(super) enum FieldForm {
    Path,
    /// A `file:` URI.
    Uri,
    /// The SHA-256 of the path, in hexadecimal digits.
    Hash,
}

pub(super) const fn field(
    record_types: &'static [&'static str],
    outer: &'static str,
    depth: usize,
    key: &'static str,
    form: FieldForm,
) -> FolderField {
    FolderField { record_types, outer, depth, key, form }
}

/// Returns the fields of the logs of an agent that name the folder.
fn fields_of(provider: Provider) -> &'static [FolderField] {
    use FieldForm::{Hash, Path, Uri};

    const TOP: &[FolderField] = &[field(&[], "", 1, "cwd", Path)];
    const CODEX_TYPES: &[&str] = &["session_meta", "turn_context"];
    const CODEX: &[FolderField] = &[
        field(CODEX_TYPES, "payload", 2, "cwd", Path),
        field(CODEX_TYPES, "workspace_roots", 3, "workspace_roots", Path),
        field(CODEX_TYPES, "writable_roots", 4, "writable_roots", Path),
    ];
    const GEMINI: &[FolderField] = &[
        field(&[], "", 1, "projectHash", Hash),
        field(&[], "directories", 2, "directories", Path),
    ];
    const PI: &[FolderField] = &[field(&["session"], "", 1, "cwd", Path)];
    const DROID: &[FolderField] = &[field(&["session_start"], "", 1, "cwd", Path)];
    const COPILOT_TYPES: &[&str] = &["session.start", "session.resume", "session.context_changed"];
    const COPILOT: &[FolderField] = &[
        field(COPILOT_TYPES, "context", 3, "cwd", Path),
        field(COPILOT_TYPES, "context", 3, "gitRoot", Path),
    ];
    const AMP: &[FolderField] = &[field(&[], "trees", 5, "uri", Uri)];

    #[expect(clippy::wildcard_enum_match_arm, reason = "no field of other formats is known")]
    match base_of(provider) {
        Provider::Claude | Provider::Qwen => TOP,
        Provider::Codex => CODEX,
        Provider::Gemini => GEMINI,
        Provider::Pi => PI,
        Provider::Droid => DROID,
        Provider::Copilot => COPILOT,
        Provider::Amp => AMP,
        _ => &[],
    }
}

/// The type of a record.
#[derive(Deserialize)]
struct RecordType<'r> {
    #[serde(borrow, rename = "type", default)]
    name: Option<Cow<'r, str>>,
}

/// Returns the bytes of a log of an agent, or of a file next to it, with the folder of each record moved.
/// `has_lines` says whether it has a record in each line; see [`has_lines`](crate::provider::has_lines).
/// All other bytes stay.
pub fn rewrite_log<'l>(
    provider: Provider,
    has_lines: bool,
    bytes: &'l [u8],
    folders: &FolderMove,
) -> Cow<'l, [u8]> {
    let fields = fields_of(provider);
    if !has_lines {
        return rewrite_record(fields, bytes, folders);
    }
    let mut rewritten = Vec::with_capacity(bytes.len());
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        rewritten.extend_from_slice(&rewrite_record(fields, line, folders));
    }
    Cow::Owned(rewritten)
}

/// Returns a record with the folder in these fields moved. All other bytes stay.
pub(super) fn rewrite_record<'r>(
    fields: &[FolderField],
    record: &'r [u8],
    folders: &FolderMove,
) -> Cow<'r, [u8]> {
    let mut changed = Vec::new();
    let mut copied_end = 0;
    for (range, value) in find_values(fields, record, folders) {
        changed.extend_from_slice(&record[copied_end..range.start]);
        changed.extend_from_slice(value.as_bytes());
        copied_end = range.end;
    }
    if copied_end == 0 {
        return Cow::Borrowed(record);
    }
    changed.extend_from_slice(&record[copied_end..]);
    Cow::Owned(changed)
}

/// Returns the values of a record that change, in order: their place between the quotes, and what is
/// written there.
fn find_values(
    fields: &[FolderField],
    record: &[u8],
    folders: &FolderMove,
) -> Vec<(std::ops::Range<usize>, String)> {
    let mut found = Vec::new();
    // Most records have none of the fields.
    if !fields.iter().any(|field| memmem::find(record, field.key.as_bytes()).is_some()) {
        return found;
    }
    let record_type = if fields.iter().any(|field| !field.record_types.is_empty()) {
        serde_json::from_slice::<RecordType<'_>>(record).ok().and_then(|record| record.name)
    } else {
        None
    };
    let is_of_type = |field: &FolderField| {
        field.record_types.is_empty()
            || record_type.as_deref().is_some_and(|name| field.record_types.contains(&name))
    };
    for_each_string(record, &mut |string| {
        if string.is_key {
            return;
        }
        let field = fields.iter().find(|field| {
            field.depth == string.depth
                && field.key.as_bytes() == string.key
                && field.outer.as_bytes() == string.outer
                && is_of_type(field)
        });
        let Some(field) = field else { return };
        if let Some(value) = change_value(field.form, &decode_string(string.raw, None), folders) {
            let written = serde_json::to_string(&value).unwrap_or_default();
            let written = written.trim_start_matches('"').strip_suffix('"').unwrap_or_default();
            found.push((string.range, written.to_owned()));
        }
    });
    found
}

/// Returns the new value of a field. `None` if it stays.
fn change_value(form: FieldForm, value: &str, folders: &FolderMove) -> Option<String> {
    match form {
        FieldForm::Path => folders.map(value),
        FieldForm::Uri => folders.map(&file_uri_path(value)?).map(|path| to_file_uri(&path)),
        FieldForm::Hash => {
            let is_hash = value.len() == 64 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_hash.then(|| hash_of_folder(folders.target()))
        }
    }
}

/// Returns the name that Gemini CLI gave the folder of a project before it gave them short ones.
pub fn hash_of_folder(folder: &str) -> String {
    encode_hex(Sha256::digest(folder.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewrite(provider: Provider, log: &str) -> String {
        let folders = FolderMove::new(r"C:\code\harbor", "/home/mira/harb\"or");
        let bytes = rewrite_log(provider, log.contains('\n'), log.as_bytes(), &folders);
        String::from_utf8(bytes.into_owned()).expect("UTF-8")
    }

    #[test]
    fn only_the_fields_of_the_folder_change() {
        let to = r#"/home/mira/harb\"or"#;
        for (provider, log) in [
            (
                Provider::Claude,
                r#"{"cwd" : "FROM\\src","message":{"cwd":"FROM","content":"FROM"},"signature":"FROM"}"#,
            ),
            (Provider::Qwen, r#"{"cwd":"FROM\\src"}"#),
            (
                Provider::Codex,
                r#"{"type":"turn_context","payload":{"cwd":"FROM\\src","x":{"cwd":"FROM"},"workspace_roots":["FROM\\src"]}}"#,
            ),
            (
                Provider::Codex,
                r#"{"payload":{"cwd":"FROM\\src","sandbox_policy":{"writable_roots":["D:\\x","FROM\\src"]}},"type":"session_meta"}"#,
            ),
            (Provider::Codex, r#"{"type":"event_msg","payload":{"cwd":"FROM"}}"#),
            (Provider::Pi, r#"{"type":"session","cwd":"FROM\\src"}"#),
            (Provider::Pi, r#"{"type":"custom","cwd":"FROM"}"#),
            (Provider::Droid, r#"{"type":"session_start","cwd":"FROM\\src"}"#),
            (
                Provider::Copilot,
                r#"{"type":"session.start","data":{"context":{"cwd":"FROM\\src","gitRoot":"FROM\\src"},"cwd":"FROM"}}"#,
            ),
        ] {
            let log = format!("no JSON\n{log}\n");
            let wanted = log.replace(r"FROM\\src", &format!("{to}/src"));
            let [log, wanted] = [log, wanted].map(|text| text.replace("FROM", r"C:\\code\\harbor"));
            assert_eq!(rewrite(provider, &log), wanted);
        }
    }

    #[test]
    fn documents_name_the_folder_in_their_own_forms() {
        let hash = hash_of_folder("/home/mira/harb\"or");
        let old = "c".repeat(64);
        let log = format!(
            r#"{{"sessionId":"x","projectHash":"{old}","messages":[{{"projectHash":"{old}"}}],"directories":["C:\\code\\harbor","D:\\y"]}}"#
        );
        let wanted =
            log.replacen(&old, &hash, 1).replace(r"C:\\code\\harbor", r#"/home/mira/harb\"or"#);
        assert_eq!(rewrite(Provider::Gemini, &log), wanted);
        let log = r#"{"env":{"initial":{"trees":[{"uri":"file:///c%3A/code/harbor"},{"uri":"file:///d:/x"}]}}}"#;
        let wanted = log.replace("/c%3A/code/harbor", "/home/mira/harb%22or");
        assert_eq!(rewrite(Provider::Amp, log), wanted);
        assert_eq!(
            rewrite(Provider::Kimi, r#"{"cwd":"C:\\code\\harbor"}"#),
            r#"{"cwd":"C:\\code\\harbor"}"#
        );
    }
}
