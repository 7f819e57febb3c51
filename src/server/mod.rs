//! The MCP server. Only this room uses rmcp; stdout carries only the protocol.

mod arguments;
mod cache;
mod complete;
mod dispatcher;
mod flow;
mod handler;
mod help;
mod host;
mod http;
mod lines;
mod progress;
mod prompts;
mod protocol_error;
mod resources;
mod schema;
mod stdio;
mod tool_calls;

pub use self::dispatcher::Options;
pub use self::handler::Parts;
pub use self::http::{BODY_TIME, HttpOptions, PATH, serve_http};
pub use self::stdio::{serve, serve_stdio};
