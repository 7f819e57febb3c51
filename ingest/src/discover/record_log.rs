//! Recognises small logs of one record. Most need no tree of JSON values for that, which takes
//! longer to make than to decode the record.

use std::path::Path;

use crate::provider::FORMATS;
use crate::provider::format::SessionClaim;
use crate::text::json::{LineItem, Parser};

/// Claims a log by its whole `content`. `None` if that is not one record, or not one that decides
/// alone whose log it is.
pub(super) fn claim_record_log(
    path: &Path,
    content: &[u8],
    parser: &mut Parser,
) -> Option<SessionClaim> {
    let line = content.strip_suffix(b"\n").unwrap_or(content);
    // An object over several lines is a document.
    if !line.starts_with(b"{") || !line.ends_with(b"}") || memchr::memchr(b'\n', line).is_some() {
        return None;
    }

    let mut claim = None;
    let mut is_one_record = true;
    parser.for_each_item(line, &mut |item| match item {
        LineItem::Object(record, at) if at.len() == line.len() => {
            let mut claimers = FORMATS.iter().filter_map(|format| format.quirks.claim_record);
            claim = claimers.find_map(|claim_record| claim_record(path, record));
        }
        LineItem::Object(..) | LineItem::Problem(..) => is_one_record = false,
    });
    if is_one_record { claim } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::sniff::{Sniffed, sniff};
    use crate::source::candidate::LogCandidate;

    const ID: &str = "0d4c1a2b-0000-4000-8000-00000000000a";

    /// Checks whether the record of a log decides whose log it is, and that the log is claimed as
    /// if it were examined like all others.
    fn check(name: &str, content: &str, decides: bool) {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join(name);
        std::fs::write(&path, content).expect("writes");
        let claim = claim_record_log(&path, content.as_bytes(), &mut Parser::default());
        assert_eq!(claim.is_some(), decides, "{content}");
        if let Some(claim) = claim {
            let file = LogCandidate::from_path(path).expect("there");
            assert_eq!(sniff(&file, None).expect("reads"), Sniffed::Log(claim), "{content}");
        }
    }

    #[test]
    fn a_prompt_decides_alone_and_gives_the_same_claim() {
        let own = format!("{ID}.jsonl");
        let message = r#""message":{"role":"user","content":"x"}"#;
        let ids = format!(r#""uuid":"{ID}","parentUuid":null,"sessionId":"{ID}""#);
        let prompt = format!(r#"{{"type":"user",{ids},"isSidechain":false,{message}}}"#);
        for name in [&own, "1d4c1a2b-0000-4000-8000-00000000000a.jsonl", "log.jsonl"] {
            check(name, &prompt, true);
            check(name, &format!("{prompt}\n"), true);
            let without_uuid =
                format!(r#"{{"cwd":"/p","sessionId":"{ID}","type":"user",{message}}}"#);
            check(name, &without_uuid, true);
            let details = r#""slug":"a-b","todos":[],"permissionMode":"default""#;
            check(name, &prompt.replace("\"isSidechain\":false", details), true);
        }
        for other in [
            format!("{prompt}\n{prompt}"),
            format!("{prompt} {prompt}"),
            format!("\u{feff}{prompt}"),
            prompt.replace("\"type\"", "\n\"type\""),
            prompt.replace("user", "assistant"),
            prompt.replace("false", "true"),
            prompt.replace("\"isSidechain\":false", "\"agentSlug\":\"a\""),
            prompt.replace("\"isSidechain\":false", "\"forkedFrom\":{}"),
            prompt.replace("\"isSidechain\":false", "\"sessionId\":\"0\""),
            prompt.replace("\"content\":\"x\"", "\"parts\":[]"),
            prompt.replace("\"content\":\"x\"", "\"content\":[]"),
            prompt.replace("\"role\":\"user\",", ""),
            format!(r#"{{"type":"user","sessionId":"session-1","uuid":"{ID}",{message}}}"#),
            format!(r#"{{"sessionId":"{ID}","uuid":"{ID}",{message}}}"#),
            format!(r#"{{"type":"user",{ids}}}"#),
            "{}".to_owned(),
            String::new(),
        ] {
            check(&own, &other, false);
        }
    }
}
