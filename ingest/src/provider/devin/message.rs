//! Decodes the messages of Devin CLI (docs/formats.md#devin).

use std::collections::{HashMap, HashSet};

use schemas::{EventType, Usage};
use xxhash_rust::xxh3::xxh3_64;

use crate::provider::format::RecordOutcome;
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::chat;
use crate::provider::shared::database::size_limit::{OVERSIZED_RECORD, push_oversized};
use crate::provider::shared::document::Document;
use crate::provider::shared::identity::begin_identified_record;
use crate::stream::{DecodedEvent, RecordAt, Stream, parse_micros};
use crate::text::json::{JsonFields, LineItem, Parser, Value, string_value};

/// The table of the last messages of subagents.
pub(super) const HEADS: &str = "subagent_heads";

/// Decodes the nodes of one session in order.
#[derive(Default)]
pub(super) struct DevinDecoder {
    /// The subagent that a node belongs to, by the number of the node.
    subagents: HashMap<i64, String>,
    /// The first node with a message, by the id of the message.
    first_nodes: HashMap<String, i64>,
    /// The node in whose place the events of a node are, if they are those of an earlier one.
    same_nodes: HashMap<i64, i64>,
    text: String,
    inner: Parser,
}

impl DevinDecoder {
    pub(super) fn new(session: &Document<'_>) -> Self {
        Self { subagents: find_subagents(session), ..Self::default() }
    }

    /// Decodes one node. Devin writes messages again when it sends them again.
    pub(super) fn decode_node(
        &mut self,
        node: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        if node.text("table") == Some(HEADS) {
            return RecordOutcome::Merged("subagent_head");
        }
        let number = node.int("node_id").unwrap_or(-1);
        let message = node.object("chat_message");
        let id = message.and_then(|message| message.non_empty("message_id"));
        let first = id.map(|id| *self.first_nodes.entry(id.to_owned()).or_insert(number));
        if let Some(first) = first.filter(|first| *first != number) {
            self.same_nodes.insert(number, first);
            return RecordOutcome::Merged("repeated_message");
        }

        let metadata = message.and_then(|message| message.object("metadata"));
        let time = metadata.and_then(|metadata| parse_micros(metadata.text("created_at")));
        let time = time.or_else(|| node.field("created_at").and_then(chat::parse_time));
        out.begin_message(id);
        let identity = id.map(|id| message_identity(id, out));
        begin_identified_record((id, identity), raw, at, time, out);
        match self.subagents.get(&number) {
            Some(agent) => out.set_sidechain(Some(agent)),
            None => self.add_to_tree(number, node.int("parent_node_id"), out),
        }
        match message {
            Some(message) => self.decode_message(message, metadata, number, out),
            None if node.text("type") == Some(OVERSIZED_RECORD) => {
                push_oversized("message", node.int("bytes").unwrap_or(0), at, out);
            }
            None => {
                out.count_unknown("field", "chat_message");
                let text = node.field("chat_message").and_then(string_value).unwrap_or("");
                out.push_notification("untyped", text);
            }
        }
        RecordOutcome::Events
    }

    /// Adds a node to the tree of the session. Branches that were left are abandoned.
    fn add_to_tree(&self, number: i64, parent: Option<i64>, out: &mut Stream) {
        let parent = parent.map(|parent| *self.same_nodes.get(&parent).unwrap_or(&parent));
        let entry = |number: i64| xxh3_64(&number.to_le_bytes()) | 1;
        out.add_tree_entry(entry(number), parent.map_or(0, entry));
    }

    fn decode_message(
        &mut self,
        message: Value<'_>,
        metadata: Option<Value<'_>>,
        number: i64,
        out: &mut Stream,
    ) {
        let role = message.text("role").unwrap_or("untyped");
        self.text.clear();
        chat::append_field(message, "content", &mut self.text);
        match role {
            "user" if self.subagents.contains_key(&number) => {
                out.push_text(EventType::User, &self.text);
            }
            "user" if metadata.is_none_or(is_typed) => out.push_prompt(&self.text),
            "assistant" | "agent" => self.decode_response(message, metadata, out),
            "tool" => self.push_result(message, metadata, out),
            role => {
                if !matches!(role, "user" | "system") {
                    out.count_unknown("record", role);
                }
                let subtype = if role == "user" { "machine" } else { role };
                out.push_shortened(subtype, &self.text);
            }
        }
    }

    fn decode_response(
        &mut self,
        message: Value<'_>,
        metadata: Option<Value<'_>>,
        out: &mut Stream,
    ) {
        out.set_model(metadata.and_then(|metadata| metadata.non_empty("generation_model")));
        out.begin_step();
        let thinking = message.field("thinking");
        let thinking = thinking
            .and_then(|thinking| string_value(thinking).or_else(|| thinking.non_empty("thinking")));
        if let Some(thinking) = thinking.filter(|thinking| !thinking.is_empty()) {
            out.push_text(EventType::Reasoning, thinking);
        }
        if !self.text.is_empty() {
            out.push_text(EventType::Message, &self.text);
        }
        for call in message.items("tool_calls") {
            let function = call.object("function").unwrap_or(call);
            let arguments = Arguments::of_input(function.field("arguments"), &mut self.inner);
            arguments.push_call(function.text("name"), call.non_empty("id"), out);
        }
        if let Some(metrics) = metadata.and_then(|metadata| metadata.object("metrics")) {
            let usage = Usage {
                input: metrics.int("input_tokens"),
                output: metrics.int("output_tokens"),
                cache_read: metrics.int("cache_read_tokens"),
                cache_write: metrics.int("cache_creation_tokens"),
                ..Usage::default()
            };
            out.push_usage(usage, None, metadata.and_then(|it| it.non_empty("request_id")));
        }
    }

    fn push_result(&mut self, message: Value<'_>, metadata: Option<Value<'_>>, out: &mut Stream) {
        let extensions = metadata.and_then(|metadata| metadata.object("extensions"));
        let extension = |name: &str| extensions.and_then(|all| all.object(name));
        let success = extension("chisel/tool_result_meta").and_then(|meta| meta.flag("success"));
        let timing = extension("chisel/tool_call_timing");
        let decoded = DecodedEvent {
            text: &self.text,
            tool_call_id: message.non_empty("tool_call_id"),
            is_error: success.map(|success| !success),
            duration_ms: timing.and_then(|timing| timing.int("duration_ms")),
            ..DecodedEvent::default()
        };
        out.push(EventType::ToolResult, decoded);
    }
}

/// Returns whether a message of the user's role was typed. Older versions do not say so.
fn is_typed(metadata: Value<'_>) -> bool {
    let is_input =
        metadata.field("is_user_input").is_none() || metadata.flag("is_user_input") == Some(true);
    let source = metadata.object("telemetry").and_then(|telemetry| telemetry.text("source"));
    is_input && source != Some("cache_keepalive")
}

/// Returns the identity of a message. Ids of other sessions may be equal.
fn message_identity(id: &str, out: &Stream) -> u64 {
    let session = out.session.native_id.as_deref().unwrap_or_default();
    xxh3_64(format!("{session} {id}").as_bytes()) | 1
}

/// Finds the nodes of subagents: those above their heads that are not above another head.
fn find_subagents(session: &Document<'_>) -> HashMap<i64, String> {
    let is_head = |record: Value<'_>| record.text("table") == Some(HEADS);
    if !session.has_record(HEADS, is_head) {
        return HashMap::new();
    }
    let mut heads: Vec<(i64, String)> = Vec::new();
    let mut parents: HashMap<i64, i64> = HashMap::new();
    let mut nodes: Vec<i64> = Vec::new();
    let mut parser = Parser::default();
    for raw in session.raw_records() {
        parser.for_each_item(raw, &mut |found| {
            let LineItem::Object(record, _) = found else { return };
            if let Some(head) = record.int("chain_node_id") {
                heads.push((head, record.text("agent_id").unwrap_or_default().to_owned()));
            } else if let Some(node) = record.int("node_id") {
                nodes.push(node);
                parents.extend(record.int("parent_node_id").map(|parent| (node, parent)));
            }
        });
    }

    assign_subagents(&heads, &parents, &nodes)
}

/// Returns the subagents of the nodes above `heads`, each node with that of its last head. The session
/// ends with the last of `nodes` that is above no head, and the nodes above that one are its own.
fn assign_subagents(
    heads: &[(i64, String)],
    parents: &HashMap<i64, i64>,
    nodes: &[i64],
) -> HashMap<i64, String> {
    // The nodes above a node that was visited were visited, too.
    let climb = |end: i64, visit: &mut dyn FnMut(i64) -> bool| {
        let mut node = Some(end);
        while let Some(number) = node.filter(|number| visit(*number)) {
            node = parents.get(&number).copied();
        }
    };
    let mut above_heads = HashSet::new();
    for (head, _) in heads {
        climb(*head, &mut |node| above_heads.insert(node));
    }
    let mut main = HashSet::new();
    if let Some(end) = nodes.iter().rev().find(|node| !above_heads.contains(node)) {
        climb(*end, &mut |node| main.insert(node));
    }
    let mut subagents = HashMap::new();
    for (head, agent) in heads.iter().rev() {
        climb(*head, &mut |node| {
            let is_new = !main.contains(&node) && !subagents.contains_key(&node);
            if is_new {
                subagents.insert(node, agent.clone());
            }
            is_new
        });
    }
    subagents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_above_many_heads_are_visited_once() {
        const COUNT: i64 = 50_000;
        let mut parents: HashMap<i64, i64> = (2..COUNT).map(|node| (node, node - 1)).collect();
        // The session itself ends at a node next to the chain; one parent leads back.
        parents.extend([(COUNT, 100), (1, 100)]);
        let nodes: Vec<i64> = (1..=COUNT).collect();
        let heads: Vec<_> = (101..COUNT).map(|node| (node, format!("agent {node}"))).collect();
        let found = assign_subagents(&heads, &parents, &nodes);
        assert_eq!(found.len(), heads.len());
        assert_eq!(found[&101], format!("agent {}", COUNT - 1));
        assert!(!found.contains_key(&100) && !found.contains_key(&COUNT));
    }
}
