//! Finds the id of a request that is not parsed: it is too long, or not JSON.

use rmcp::model::RequestId;
use serde_json::{Deserializer, Value};

/// Finds the id of a request from its beginning and its end: the id comes before the parameters or
/// after them.
pub(super) fn find_request_id(head: &[u8], tail: &[u8]) -> Option<RequestId> {
    let head = String::from_utf8_lossy(head);
    let before_params = head.split("\"params\"").next().unwrap_or_default();
    let first = before_params.find("\"id\"").and_then(|at| before_params.get(at..));
    if let Some((id, _)) = first.and_then(parse_id) {
        return Some(id);
    }

    let tail = String::from_utf8_lossy(tail);
    let last = tail.rfind("\"id\"").and_then(|at| tail.get(at..))?;
    let (id, rest) = parse_id(last)?;
    if rest.trim() == "}" { Some(id) } else { None }
}

/// Parses an object's member `"id": value` at the beginning of a text. Returns the id and the text
/// after it.
fn parse_id(text: &str) -> Option<(RequestId, &str)> {
    let value = text.strip_prefix("\"id\"")?.trim_start().strip_prefix(':')?;
    let mut values = Deserializer::from_str(value).into_iter::<Value>();
    let id = values.next()?.ok()?;
    let rest = value.get(values.byte_offset()..)?;
    if let Value::String(id) = id {
        return Some((RequestId::String(id.into()), rest));
    }
    Some((RequestId::Number(id.as_i64()?), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(head: &str, tail: &str, want: Option<RequestId>) {
        assert_eq!(find_request_id(head.as_bytes(), tail.as_bytes()), want, "{head} … {tail}");
    }

    #[test]
    fn ids_are_found_before_and_behind_the_parameters() {
        check(
            r#"{"jsonrpc":"2.0","id":7,"method":"x","params":{"#,
            "}}\n",
            Some(RequestId::Number(7)),
        );
        check(r#"{"id" : "a", "params":{"#, "}}", Some(RequestId::String("a".into())));
        check(r#"{"method":"x","params":{"id":3,"#, r#"x"},"id":9} "#, Some(RequestId::Number(9)));
        check(r#"{"method":"x","params":{"id":3,"#, r#""id":4}}"#, None);
        check("nothing", "here", None);
    }
}
