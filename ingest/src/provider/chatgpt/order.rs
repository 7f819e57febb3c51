//! Orders the nodes of a conversation's tree by the time at which they were written, so that a later
//! export only adds nodes at the end.

use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::text::damaged_json::field_text;

/// A node of the tree.
struct Node {
    id: String,
    parent: Option<usize>,
    children: Vec<usize>,
    /// Seconds since 1970; that of its parent if the node has none, or an earlier one.
    time: f64,
}

/// Returns the nodes in the order in which they were written, each after its parent. Nodes that are
/// their own ancestors come last.
pub(super) fn order_nodes(raw: Vec<&RawValue>) -> Vec<&RawValue> {
    let nodes = read_nodes(&raw);
    let mut times: Vec<f64> = nodes.iter().map(|node| node.time).collect();
    let mut order = Vec::with_capacity(raw.len());
    let roots = (0..nodes.len()).rev().filter(|at| nodes[*at].parent.is_none());
    let mut open: Vec<usize> = roots.collect();
    while let Some(at) = open.pop() {
        if let Some(parent) = nodes[at].parent {
            times[at] = times[at].max(times[parent]);
        }
        order.push(at);
        open.extend(nodes[at].children.iter().rev());
    }
    // Parents are before their children, and stay there if the times are equal.
    order.sort_by(|a, b| times[*a].total_cmp(&times[*b]));

    let mut is_ordered = vec![false; nodes.len()];
    for at in &order {
        is_ordered[*at] = true;
    }
    order.extend((0..nodes.len()).filter(|at| !is_ordered[*at]));
    order.into_iter().map(|at| raw[at]).collect()
}

/// Reads the places of the nodes in the tree.
fn read_nodes(raw: &[&RawValue]) -> Vec<Node> {
    let mut parents = Vec::with_capacity(raw.len());
    let mut nodes = Vec::with_capacity(raw.len());
    for node in raw {
        let node = node.get();
        let text = |key: &str| serde_json::from_str::<String>(field_text(node, key)?).ok();
        let time = field_text(node, "message")
            .and_then(|message| serde_json::from_str(field_text(message, "create_time")?).ok());
        parents.push(text("parent"));
        nodes.push(Node {
            id: text("id").unwrap_or_default(),
            parent: None,
            children: Vec::new(),
            time: time.unwrap_or(0.0),
        });
    }
    let rows: HashMap<String, usize> =
        nodes.iter().enumerate().map(|(at, node)| (node.id.clone(), at)).collect();
    for (at, parent) in parents.iter().enumerate() {
        let parent = parent.as_ref().and_then(|parent| rows.get(parent).copied());
        if let Some(parent) = parent {
            nodes[at].parent = Some(parent);
            nodes[parent].children.push(at);
        }
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value as Json;

    /// The order of nodes, given as id, parent and time.
    fn order(nodes: &[(&str, Option<&str>, Option<f64>)]) -> String {
        let raw: Vec<Box<RawValue>> = nodes
            .iter()
            .map(|(id, parent, time)| {
                let message = serde_json::json!({ "create_time": time });
                let node = serde_json::json!({ "id": id, "parent": parent, "message": message });
                RawValue::from_string(node.to_string()).expect("JSON")
            })
            .collect();
        let ordered = order_nodes(raw.iter().map(AsRef::as_ref).collect());
        let id = |raw: &RawValue| {
            let node: Json = serde_json::from_str(raw.get()).expect("JSON");
            node["id"].as_str().unwrap_or_default().to_owned()
        };
        ordered.into_iter().map(id).collect()
    }

    #[test]
    fn nodes_are_in_the_order_of_their_times_and_after_their_parents() {
        let tree = [
            ("d", Some("b"), Some(4.0)),
            ("b", Some("a"), Some(2.0)),
            ("a", None, None),
            ("c", Some("a"), Some(3.0)),
            ("e", Some("c"), None),
            ("f", Some("d"), Some(3.5)),
        ];
        assert_eq!(order(&tree), "abcedf");
        let loops = [("a", Some("b"), None), ("b", Some("a"), None), ("c", Some("x"), Some(1.0))];
        assert_eq!(order(&loops), "cab");
        assert_eq!(order(&[("a", Some("a"), None)]), "a");
    }

    #[test]
    fn a_node_has_its_place_however_deep_it_is_nested() {
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        let node = |id: &str, parent: &str, time: u32| {
            let json = format!(
                r#"{{"message":{{"content":{deep},"create_time":{time}}},"id":"{id}","parent":"{parent}"}}"#
            );
            RawValue::from_string(json).expect("JSON")
        };
        let nodes = [node("c", "b", 3), node("b", "a", 2), node("a", "", 1)];
        let ordered = order_nodes(nodes.iter().map(AsRef::as_ref).collect());
        let ids: Vec<_> = ordered.iter().map(|node| field_text(node.get(), "id")).collect();
        assert_eq!(ids, [Some("\"a\""), Some("\"b\""), Some("\"c\"")]);
    }
}
