//! Runs `tool_metadata`, which returns the descriptions of the served tools.

use schemas::tool::metadata::{MetadataArgs, MetadataData, ToolMetadata};
use schemas::tool::{OneOrMany, ServedTools};
use schemas::{ErrorCode, ToolError, limits, nearest};

use super::reply::answer::{Reply, RowTotal};
use super::reply::budget::echoed_name;

pub(super) fn run(
    args: &MetadataArgs,
    served: ServedTools,
) -> Result<Reply<MetadataData>, ToolError> {
    let names = args.tools.as_ref().map(OneOrMany::to_vec).unwrap_or_default();
    if names.len() > limits::TOOL_NAMES_MAX {
        let valid = format!("at most {} names", limits::TOOL_NAMES_MAX);
        return Err(ToolError::invalid_value(
            "tools",
            &format!("{} names", names.len()),
            &[&valid],
        ));
    }

    let mut data = MetadataData { tools: Vec::new(), not_found: Vec::new() };
    for name in &names {
        match served.find(name) {
            Some(spec) => data.tools.push(ToolMetadata::from(spec)),
            None => data.not_found.push(echoed_name(name)),
        }
    }
    if names.is_empty() {
        data.tools = served.specs().map(ToolMetadata::from).collect();
    }

    let known: Vec<_> = served.specs().map(|tool| tool.name).collect();
    let unknown =
        data.not_found.first().map(|first| describe_unknown(first, &data.not_found, &known));
    if data.tools.is_empty()
        && let Some(message) = &unknown
    {
        return Err(ToolError::new(ErrorCode::InvalidArgument, message.as_str())
            .with_detail("field", "tools")
            .with_detail("value", data.not_found)
            .with_detail("valid", known));
    }

    let returned = data.tools.len();
    let mut reply = Reply::new(data, returned);
    reply.total = Some(RowTotal::Exact(returned));
    reply.hint = unknown;
    Ok(reply)
}

/// Describes the names that are not tools, and suggests the tool that is nearest to the first one.
fn describe_unknown(first: &str, not_found: &[String], known: &[&str]) -> String {
    let nearest = nearest(first, known.iter().copied());
    let suggestion = nearest.map(|name| format!(". Did you mean {name}?")).unwrap_or_default();
    format!("No such tool: {}. Tools: {}{suggestion}", not_found.join(", "), known.join(", "))
}
