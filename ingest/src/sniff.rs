//! Tells from its beginning whose log a file is.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::provider::{Claim, FORMATS, Head};

/// First look at a file, and the most that is read to find one whole line.
const FIRST_LOOK: usize = 32 << 10;
const LAST_LOOK: usize = 8 << 20;

/// Objects looked at; the ones that name a session stand at the top.
const OBJECTS: usize = 12;

/// What the beginning of a file told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sniffed {
    Log(Claim),
    Empty,
    /// Nothing a decoder knows; the reason for the report.
    Unknown(&'static str),
}

/// Looks at the beginning of `path`. Errors are those of opening and reading it.
pub fn sniff(path: &Path) -> io::Result<Sniffed> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    let mut look = FIRST_LOOK;
    loop {
        file.by_ref().take((look - bytes.len()) as u64).read_to_end(&mut bytes)?;
        let at_end = bytes.len() < look;
        let whole_line = memchr::memchr(b'\n', &bytes).is_some();
        if at_end || whole_line || look >= LAST_LOOK {
            break;
        }
        look *= 4;
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Sniffed::Empty);
    }
    let head = head(path, &bytes);
    if head.objects.is_empty() && head.document.is_none() {
        return Ok(Sniffed::Unknown("holds no JSON object"));
    }
    let claim = FORMATS.iter().find_map(|format| (format.sniff)(&head));
    Ok(claim.map_or(Sniffed::Unknown("no known agent writes such records"), Sniffed::Log))
}

/// The objects on the first lines, or the fields at the top of a document over several lines.
fn head<'a>(path: &'a Path, bytes: &[u8]) -> Head<'a> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}');
    let mut objects = Vec::new();
    for line in text.lines().take(4 * OBJECTS) {
        let values = serde_json::Deserializer::from_str(line).into_iter::<serde_json::Value>();
        objects.extend(values.map_while(Result::ok).filter(serde_json::Value::is_object));
        if objects.len() >= OBJECTS {
            break;
        }
    }
    // A document on one line is an object with a list in it; one over several lines gives none.
    let single = objects.len() == 1 && text.trim_end().lines().count() == 1;
    let document = if objects.is_empty() || single { top_fields(text) } else { None };
    Head { path, objects, document }
}

/// The scalar fields at the top of a document that may be cut anywhere.
fn top_fields(text: &str) -> Option<serde_json::Map<String, serde_json::Value>> {
    struct Top<'m>(&'m mut serde_json::Map<String, serde_json::Value>);

    impl<'de> Visitor<'de> for Top<'_> {
        type Value = ();

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while let Some(key) = map.next_key::<String>()? {
                // The key alone tells something even when its value is cut.
                self.0.insert(key.clone(), serde_json::Value::Null);
                if key == "messages" {
                    map.next_value::<IgnoredAny>()?;
                } else {
                    self.0.insert(key, map.next_value()?);
                }
            }
            Ok(())
        }
    }

    let mut fields = serde_json::Map::new();
    let read = serde_json::Deserializer::from_str(text).deserialize_map(Top(&mut fields));
    (read.is_ok() || !fields.is_empty()).then_some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use schemas::Provider;

    fn check(name: &str, content: &str, want: Option<(Provider, &str)>) {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join(name);
        std::fs::write(&path, content).expect("writes");
        let got = match sniff(&path).expect("reads") {
            Sniffed::Log(claim) => Some((claim.provider, claim.native_id)),
            _ => None,
        };
        assert_eq!(got, want.map(|(provider, id)| (provider, id.to_owned())), "{content}");
    }

    #[test]
    fn provider_is_told_from_content() {
        let user = r#"{"type":"user","sessionId":"s1","message":{"role":"user","content":"x"}}"#;
        check("x.jsonl", user, Some((Provider::Claude, "s1")));
        check("x.jsonl", &format!("\u{feff}{{\"type\":\"mode\",\"sessionId\":\"s2\"}}\r\n{user}"), Some((Provider::Claude, "s2")));
        check("x.jsonl", r#"{"timestamp":"t","type":"session_meta","payload":{"id":"c1"}}"#, Some((Provider::Codex, "c1")));
        check("x.jsonl", r#"{"id":"c2","timestamp":"t","instructions":null}"#, Some((Provider::Codex, "c2")));
        check("x.json", "{\n \"sessionId\": \"g1\",\n \"projectHash\": \"h\",\n \"messages\": [ {\"id\": ", Some((Provider::Gemini, "g1")));
        check("x.json", r#"{"sessionId":"g2","startTime":"t","messages":[]}"#, Some((Provider::Gemini, "g2")));
        check("x.jsonl", "{\"sessionId\":\"g3\",\"projectHash\":\"h\"}\n{\"id\":\"1\"}", Some((Provider::Gemini, "g3")));
    }

    #[test]
    fn others_are_left_alone() {
        check("x.jsonl", r#"{"type":"session.start","data":{"sessionId":"x"},"id":"1"}"#, None);
        check("x.jsonl", r#"{"type":"session","version":3,"id":"x","cwd":"/"}"#, None);
        check("x.jsonl", r#"{"uuid":"u","sessionId":"s","type":"user","message":{"role":"user","parts":[]}}"#, None);
        check("package.json", "{\n \"name\": \"x\"\n}", None);
        check("x.jsonl", "\u{0}\u{1}binary", None);
        check("x.jsonl", " \n ", None);
    }
}
