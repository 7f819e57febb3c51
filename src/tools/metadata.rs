//! Runs `tool_metadata`, which returns the descriptions of the tools.

use schemas::tool::metadata::{MetadataArgs, MetadataData, ToolMetadata};
use schemas::tool::{OneOrMany, TOOLS, find};
use schemas::{ErrorCode, ToolError, limits, nearest};

use super::reply::answer::Reply;
use super::reply::budget::echoed;

pub(super) fn run(args: &MetadataArgs) -> Result<Reply<MetadataData>, ToolError> {
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
        match find(TOOLS, name) {
            Some((spec, _)) => data.tools.push(ToolMetadata::from(spec)),
            None => data.not_found.push(echoed(name)),
        }
    }
    if names.is_empty() {
        data.tools = TOOLS.iter().map(ToolMetadata::from).collect();
    }
    let known: Vec<_> = TOOLS.iter().map(|tool| tool.name).collect();
    let unknown = data.not_found.first().map(|first| {
        let meant = nearest(first, known.iter().copied());
        let meant = meant.map(|name| format!(". Did you mean {name}?")).unwrap_or_default();
        format!("No such tool: {}. Tools: {}{meant}", data.not_found.join(", "), known.join(", "))
    });
    if let (true, Some(message)) = (data.tools.is_empty(), &unknown) {
        return Err(ToolError::new(ErrorCode::InvalidArgument, message.as_str())
            .with("field", "tools")
            .with("value", data.not_found)
            .with("valid", known));
    }
    let returned = data.tools.len();
    let mut reply = Reply::new(data, returned);
    reply.total = Some((returned, true));
    reply.hint = unknown;
    Ok(reply)
}
