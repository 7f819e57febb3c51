//! Replays the log of operations of a chat (docs/formats.md#vs-code-chat).
//!
//! ```text
//! {"kind":0,"v":{...}}                               the chat as it was
//! {"kind":1,"k":["requests",0,"modelId"],"v":"..."}  sets the value at a path
//! {"kind":2,"k":["requests"],"v":[{...}],"i":3}      removes elements from `i` on, and appends
//! {"kind":3,"k":["requests",0,"vote"]}               deletes the value at a path
//! ```
//!
//! Requests that an operation removes are kept in their place. They are the turns that the user
//! took back, and a log that is read while it grows has them, too.

use std::collections::HashMap;

use schemas::problem::ProblemKind;
use serde_json::{Map, Value as Json};

use crate::provider::format::RecordOutcome;
use crate::stream::{RecordAt, Stream};
use crate::text::json::legible_json;

/// The field of a chat that holds its requests.
pub(super) const REQUESTS: &str = "requests";

/// The fields of a chat that are read besides its requests.
pub(super) const HEADER: &[&str] =
    &["creationDate", "lastMessageDate", "customTitle", "computedTitle", "workingDirectory"];

/// Most keys of the path of an operation. Real ones have six. It limits how deep a chat becomes: values
/// of operations are nested into those of earlier ones.
const MAX_PATH_KEYS: usize = 16;

/// A request of a chat.
pub(super) struct ReplayedRequest {
    pub(super) value: Json,
    /// The operation that added it.
    pub(super) at: RecordAt,
    /// Whether a later operation removed it.
    pub(super) is_removed: bool,
}

/// The chat after the operations so far.
#[derive(Default)]
pub(super) struct ChatReplay {
    header: Map<String, Json>,
    /// All requests in the order in which they were added.
    requests: Vec<ReplayedRequest>,
    /// The requests in the list of the chat, as indexes into `requests`.
    live: Vec<usize>,
    /// The requests that were removed, by their ids.
    removed: HashMap<String, usize>,
    /// True once there was a chat to change.
    has_begun: bool,
}

impl ChatReplay {
    /// The fields of the chat that are read, as JSON.
    pub(super) fn header(&self) -> String {
        Json::Object(self.header.clone()).to_string()
    }

    pub(super) fn requests(&self) -> &[ReplayedRequest] {
        &self.requests
    }

    /// Applies the operation on a line.
    pub(super) fn apply_line(
        &mut self,
        line: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let operation: Json = match serde_json::from_str(&legible_json(line)) {
            Ok(operation) => operation,
            Err(error) => {
                let message = format!("an operation was not applied: {error}");
                out.push_problem(at, ProblemKind::BadJson, message);
                return RecordOutcome::Merged("unreadable_operation");
            }
        };
        let known = self.requests.len();
        if !self.apply(operation, at) {
            let message = "an operation does not fit the chat before it, so a part of the chat is \
                missing; compare the log with a copy of it";
            out.push_problem(at, ProblemKind::IncompleteRecord, message);
            return RecordOutcome::Merged("misplaced_operation");
        }
        if self.requests.len() > known {
            RecordOutcome::Events
        } else {
            RecordOutcome::Merged("operation")
        }
    }

    /// Applies an operation. Returns false if it does not fit the chat.
    fn apply(&mut self, mut operation: Json, at: RecordAt) -> bool {
        let value = operation.get_mut("v").map(Json::take);
        let path = match operation.get_mut("k").map(Json::take) {
            Some(Json::Array(path)) => path,
            _ => Vec::new(),
        };
        if path.len() > MAX_PATH_KEYS {
            return false;
        }
        let index = operation["i"].as_u64().and_then(|index| usize::try_from(index).ok());
        match (operation["kind"].as_u64(), value) {
            (Some(0), Some(Json::Object(chat))) => {
                self.has_begun = true;
                self.replace_chat(chat, at);
                true
            }
            (Some(1..=3), _) if !self.has_begun => false,
            (Some(1), value) => self.set_value(&path, value, at),
            (Some(2), value) => {
                let items = match value {
                    Some(Json::Array(items)) => items,
                    _ => Vec::new(),
                };
                self.push_values(&path, items, index, at)
            }
            (Some(3), _) => self.set_value(&path, None, at),
            _ => false,
        }
    }

    /// Replaces the whole chat.
    fn replace_chat(&mut self, mut chat: Map<String, Json>, at: RecordAt) {
        let requests = match chat.remove(REQUESTS) {
            Some(Json::Array(requests)) => requests,
            _ => Vec::new(),
        };
        chat.retain(|key, _| HEADER.contains(&key.as_str()));
        self.header = chat;
        self.replace_requests(requests, 0, at);
    }

    /// Sets or deletes the value at a path.
    fn set_value(&mut self, path: &[Json], value: Option<Json>, at: RecordAt) -> bool {
        let Some((first, rest)) = path.split_first() else { return false };
        let Some(key) = first.as_str() else { return false };
        if key != REQUESTS {
            // Fields inside others describe the input box, which nothing shows.
            if rest.is_empty() && HEADER.contains(&key) {
                match value {
                    Some(value) => self.header.insert(key.to_owned(), value),
                    None => self.header.shift_remove(key),
                };
            }
            return true;
        }
        match rest.split_first() {
            None => {
                let requests = match value {
                    Some(Json::Array(requests)) => requests,
                    _ => Vec::new(),
                };
                self.replace_requests(requests, 0, at);
                true
            }
            Some((index, [])) => {
                let Some(index) = list_index(index) else { return false };
                let Some(value) = value.filter(|_| index <= self.live.len()) else { return false };
                let later = self.live.split_off(self.live.len().min(index + 1));
                self.replace_requests(vec![value], index, at);
                self.live.extend(later);
                true
            }
            Some((index, rest)) => match self.request_at(index) {
                Some(request) => set_at(request, rest, value),
                None => false,
            },
        }
    }

    /// Removes the elements of a list from `index` on, and appends others.
    fn push_values(
        &mut self,
        path: &[Json],
        items: Vec<Json>,
        index: Option<usize>,
        at: RecordAt,
    ) -> bool {
        let Some((first, rest)) = path.split_first() else { return false };
        if first != REQUESTS {
            return first.is_string();
        }
        match rest.split_first() {
            None => {
                let index = index.unwrap_or(self.live.len());
                if index > self.live.len() {
                    return false;
                }
                self.replace_requests(items, index, at);
                true
            }
            Some((request, rest)) => {
                let Some(mut list) = self.request_at(request) else { return false };
                for key in rest {
                    let Some(inner) = child_of(list, key) else { return false };
                    list = inner;
                }
                if list.is_null() {
                    *list = Json::Array(Vec::new());
                }
                let Some(list) = list.as_array_mut() else { return false };
                if let Some(index) = index {
                    list.truncate(index);
                }
                list.extend(items);
                true
            }
        }
    }

    /// Replaces the requests in the list from `index` on. Requests that are there again under the
    /// same id keep their place.
    fn replace_requests(&mut self, requests: Vec<Json>, index: usize, at: RecordAt) {
        for place in self.live.split_off(index) {
            let Some(request) = self.requests.get_mut(place) else { continue };
            request.is_removed = true;
            if let Some(id) = request.value["requestId"].as_str() {
                self.removed.insert(id.to_owned(), place);
            }
        }
        for value in requests {
            let known = value["requestId"].as_str().and_then(|id| self.removed.remove(id));
            match known.and_then(|place| Some((place, self.requests.get_mut(place)?))) {
                Some((place, request)) => {
                    request.value = value;
                    request.is_removed = false;
                    self.live.push(place);
                }
                None => {
                    self.live.push(self.requests.len());
                    self.requests.push(ReplayedRequest { value, at, is_removed: false });
                }
            }
        }
    }

    /// Returns the request at an index of the list.
    fn request_at(&mut self, index: &Json) -> Option<&mut Json> {
        let place = *self.live.get(list_index(index)?)?;
        self.requests.get_mut(place).map(|request| &mut request.value)
    }
}

/// Returns the index of an element of a list.
fn list_index(index: &Json) -> Option<usize> {
    usize::try_from(index.as_u64()?).ok()
}

/// Sets or deletes the value at a path below a value. Returns false if the path does not exist.
fn set_at(mut owner: &mut Json, path: &[Json], value: Option<Json>) -> bool {
    let Some((last, parents)) = path.split_last() else { return false };
    for key in parents {
        let Some(inner) = child_of(owner, key) else { return false };
        owner = inner;
    }
    match (owner, value) {
        (Json::Object(fields), Some(value)) => {
            let Some(key) = last.as_str() else { return false };
            fields.insert(key.to_owned(), value);
        }
        (Json::Object(fields), None) => {
            let Some(key) = last.as_str() else { return false };
            fields.swap_remove(key);
        }
        (Json::Array(items), value) => {
            let Some(index) = list_index(last) else { return false };
            let value = value.unwrap_or(Json::Null);
            if index == items.len() {
                items.push(value);
            } else if let Some(item) = items.get_mut(index) {
                *item = value;
            } else {
                return false;
            }
        }
        (Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_), _) => return false,
    }
    true
}

/// Returns the value under a key or at an index. A missing field is null, so that an operation may
/// create it.
fn child_of<'j>(owner: &'j mut Json, key: &Json) -> Option<&'j mut Json> {
    match owner {
        Json::Object(fields) => Some(fields.entry(key.as_str()?).or_insert(Json::Null)),
        Json::Array(items) => items.get_mut(list_index(key)?),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The requests after some operations, removed ones in brackets, and whether all fitted.
    fn replay(operations: &[Json]) -> (String, bool) {
        let mut replay = ChatReplay::default();
        let mut fits = true;
        for operation in operations {
            fits &= replay.apply(operation.clone(), RecordAt::default());
        }
        let describe = |request: &ReplayedRequest| {
            let id = request.value["requestId"].as_str().unwrap_or("?");
            if request.is_removed { format!("[{id}]") } else { id.to_owned() }
        };
        (replay.requests.iter().map(describe).collect::<Vec<_>>().join(" "), fits)
    }

    fn request(id: &str) -> Json {
        json!({ "requestId": id })
    }

    #[test]
    fn requests_that_are_taken_back_keep_their_place() {
        let start = json!({"kind": 0, "v": {"requests": [request("a"), request("b")]}});
        let push = |i: Option<u64>, ids: &[&str]| {
            let ids: Vec<_> = ids.iter().map(|id| request(id)).collect();
            json!({"kind": 2, "k": ["requests"], "v": ids, "i": i})
        };
        assert_eq!(replay(&[start.clone(), push(None, &["c"])]), ("a b c".into(), true));
        assert_eq!(replay(&[start.clone(), push(Some(1), &["c"])]), ("a [b] c".into(), true));
        // The first request was removed, and the others are listed again.
        assert_eq!(replay(&[start.clone(), push(Some(0), &["b"])]), ("[a] b".into(), true));
        let set = json!({"kind": 1, "k": ["requests", 0], "v": request("c")});
        assert_eq!(replay(&[start.clone(), set]), ("[a] b c".into(), true));
        assert_eq!(replay(&[start, push(Some(9), &["c"])]), ("a b".into(), false));
    }

    #[test]
    fn values_inside_requests_are_changed() {
        let mut replay = ChatReplay::default();
        for operation in [
            json!({"kind": 0, "v": {"customTitle": "x", "inputState": {}, "requests": [{}]}}),
            json!({"kind": 2, "k": ["requests", 0, "response"], "v": [1, 2, 3]}),
            json!({"kind": 2, "k": ["requests", 0, "response"], "v": [4], "i": 1}),
            json!({"kind": 1, "k": ["requests", 0, "response", 0], "v": {"value": "y"}}),
            json!({"kind": 1, "k": ["requests", 0, "result"], "v": {"a": 1}}),
            json!({"kind": 3, "k": ["requests", 0, "result", "a"]}),
            json!({"kind": 1, "k": ["inputState", "inputText"], "v": "z"}),
            json!({"kind": 1, "k": ["customTitle"], "v": "t"}),
        ] {
            assert!(replay.apply(operation.clone(), RecordAt::default()), "{operation}");
        }
        let want = json!({"response": [{"value": "y"}, 4], "result": {}});
        assert_eq!(replay.requests[0].value, want);
        assert_eq!(replay.header(), r#"{"customTitle":"t"}"#);
    }

    #[test]
    fn operations_that_do_not_fit_change_nothing() {
        for operation in [
            json!({"kind": 1, "k": ["requests", 5, "x"], "v": 1}),
            json!({"kind": 1, "k": ["requests", "0", "x"], "v": 1}),
            json!({"kind": 1, "k": ["requests", 0, "list", 9_000_000_000_u64], "v": 1}),
            json!({"kind": 2, "k": ["requests", 0, "requestId"], "v": [1]}),
            json!({"kind": 1, "k": [], "v": 1}),
            json!({"kind": 1, "k": vec!["requests"; MAX_PATH_KEYS + 1], "v": 1}),
            json!({"kind": 1, "k": "requests", "v": 1}),
            json!({"kind": 9}),
            json!({}),
        ] {
            let start = json!({"kind": 0, "v": {"requests": [{"requestId": "a", "list": []}]}});
            assert_eq!(replay(&[start, operation.clone()]), ("a".into(), false), "{operation}");
            assert!(!replay(&[operation]).1);
        }
    }
}
