//! The MCP server. Only this module uses rmcp; stdout carries only the protocol.

mod arguments;
mod cache;
mod complete;
mod connections;
mod dispatcher;
mod flow;
mod handler;
mod help;
mod host;
mod http;
mod lines;
mod outgoing;
mod progress;
mod prompts;
mod protocol_error;
mod request_id;
mod resources;
mod schema;
mod stdio;
mod tool_calls;
mod web;

pub use self::connections::MAX_BODY_TIME;
pub use self::dispatcher::ServerOptions;
pub use self::handler::ServerParts;
pub use self::http::{HttpOptions, HttpReader, MCP_PATH, serve_http};
pub use self::stdio::{serve_stdio, serve_streams};
pub use self::web::{WebOptions, serve_web};
