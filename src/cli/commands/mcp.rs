//! `sessions mcp`: serves the tools over MCP, on stdin and stdout or over HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use schemas::envelope::MetadataLevel;
use schemas::tool::{ServedTools, label};
use schemas::{ErrorCode, ToolError, limits};

use crate::app;
use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandFailure, CommandOutcome, CommandResult};
use crate::config::readers::{Reader, read_readers};
use crate::config::{environment, http_token};
use crate::help::Help;
use crate::server::{self, HttpOptions, HttpReader};
use store::{SessionRule, Store};
use tools::Tools;

/// Maximum time limit of a call in milliseconds: a day.
const MAX_TIME_LIMIT_MS: u64 = 86_400_000;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct McpFlags {
    /// Serve only these tools instead of all
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', hide_possible_values = true, value_parser = PossibleValuesParser::new(ServedTools::servable_names()))]
    tools: Vec<String>,
    /// Serve one small tool instead of ten: memory
    #[arg(long, value_name = "NAME", conflicts_with = "tools", hide_possible_values = true)]
    profile: Option<Profile>,
    /// Let clients set labels and notes on sessions
    #[arg(long)]
    allow_labels: bool,
    /// Tool calls, resources, prompts, completions and ai_help per minute; 0 means no limit
    #[arg(long, value_name = "N", default_value_t = limits::RATE_LIMIT)]
    rate_limit: u32,
    /// How long a call may take, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = limits::CALL_MS, value_parser = clap::value_parser!(u64).range(..=MAX_TIME_LIMIT_MS))]
    time_limit: u64,
    /// Serve streamable HTTP on this address instead, such as 127.0.0.1:8765; port 0 picks a free port
    #[arg(long, value_name = "ADDR:PORT")]
    http: Option<SocketAddr>,
    /// File with the bearer token [default: SESSIONS_HTTP_TOKEN, else generated in the store]
    #[arg(long, value_name = "FILE", requires = "http")]
    token_file: Option<PathBuf>,
    /// File of readers, each with a token and its projects; other tokens are refused
    #[arg(long, value_name = "FILE", requires = "http", conflicts_with_all = ["token_file", "no_auth", "allow_labels"])]
    readers: Option<PathBuf>,
    /// Require no token; on loopback only
    #[arg(long, requires = "http", conflicts_with = "token_file")]
    no_auth: bool,
}

/// A set of tools with a name.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Profile {
    /// The small tool alone.
    Memory,
}

impl McpFlags {
    /// Returns the tools to serve.
    fn served_tools(&self) -> Result<ServedTools, ToolError> {
        match self.profile {
            Some(Profile::Memory) => return Ok(ServedTools::MEMORY),
            None if self.tools.is_empty() => return Ok(ServedTools::ALL),
            None => {}
        }
        let label = label::SPEC.name;
        if self.tools.iter().any(|name| name == label) && !self.allow_labels {
            let message = format!("--tools {label}: this tool needs --allow-labels");
            return Err(
                ToolError::new(ErrorCode::InvalidArgument, message).with_detail("field", "tools")
            );
        }
        Ok(ServedTools::from_names(&self.tools))
    }

    /// Returns the settings of a server of these tools.
    fn server_options(
        &self,
        served: ServedTools,
        metadata: MetadataLevel,
    ) -> server::ServerOptions {
        server::ServerOptions {
            served,
            allow_labels: self.allow_labels,
            rate_limit: self.rate_limit,
            time_limit: Duration::from_millis(self.time_limit),
            metadata,
        }
    }
}

/// Serves until the client leaves or the process is asked to end. `help` answers requests for the
/// manual.
pub(in crate::cli) fn run(
    flags: &McpFlags,
    metadata: MetadataLevel,
    help: Help,
    context: &CommandContext<'_>,
) -> CommandResult {
    let store = &context.store;
    let server_options = flags.server_options(flags.served_tools()?, metadata);
    if context.engine.is_some() && (flags.readers.is_some() || flags.allow_labels) {
        let message = "--readers and --allow-labels do not work with --engine. Import the lake with sessions pull, and serve it without --engine";
        return Err(ToolError::new(ErrorCode::InvalidArgument, message)
            .with_detail("field", "engine")
            .into());
    }
    let mut options = flags.http.map(|address| http_options(store, address, flags)).transpose()?;
    if let Some(path) = &flags.readers
        && let Some((options, how)) = &mut options
    {
        let readers = read_readers(path)?;
        *how = format!("readers with a token of their own: {}", readers.len());
        options.readers = create_readers(readers, &server_options, &help, store)?;
    }
    let parts = server::ServerParts {
        tools: create_tools(context, options.is_none())?,
        options: server_options,
        help,
        roots: environment::known_roots(),
    };
    match options {
        None => server::serve_stdio(parts).map_err(server_failure)?,
        Some((options, how)) => {
            server::serve_http(parts, options, |address| {
                let line = format!("serving http://{address}{}; {how}", server::MCP_PATH);
                let _ = context.printer.print_note(&line);
            })
            .map_err(server_failure)?;
        }
    }
    Ok(CommandOutcome::Done)
}

/// Returns the tools of the server. Over HTTP the folder of the server is not that of the agent.
fn create_tools(context: &CommandContext<'_>, is_local: bool) -> Result<Tools, ToolError> {
    let store = Arc::clone(&context.store);
    match &context.engine {
        Some(engine) => app::create_lake_tools(store, Arc::clone(engine), is_local),
        None => app::create_server_tools(store, is_local),
    }
}

fn new_http_options(address: SocketAddr, token: Option<String>) -> HttpOptions {
    HttpOptions { address, token, readers: Vec::new(), body_time: server::MAX_BODY_TIME }
}

/// Returns a server for each reader, whose tools have only the sessions that the reader may read.
fn create_readers(
    readers: Vec<Reader>,
    options: &server::ServerOptions,
    help: &Help,
    store: &Arc<Store>,
) -> Result<Vec<HttpReader>, ToolError> {
    let mut served = Vec::new();
    let refresh = app::create_reader_refresh(Arc::clone(store));
    for reader in readers {
        let token_sha256 = reader.token_sha256;
        let rule: SessionRule = Arc::new(move |row| reader.may_read(&row.origin));
        let part = Arc::new(Store::restricted(store, rule));
        let parts = server::ServerParts {
            tools: app::create_reader_tools(part, Arc::clone(&refresh))?,
            options: options.clone(),
            help: help.clone(),
            roots: Vec::new(),
        };
        served.push(HttpReader { token_sha256, parts });
    }
    Ok(served)
}

/// Returns the settings for serving over HTTP, and a remark about the token.
fn http_options(
    store: &Store,
    address: SocketAddr,
    flags: &McpFlags,
) -> Result<(HttpOptions, String), ToolError> {
    if flags.readers.is_some() {
        return Ok((new_http_options(address, None), String::new()));
    }
    if !flags.no_auth {
        let (token, file) = http_token::read_or_create_token(store, flags.token_file.as_deref())?;
        let place = match file {
            Some(file) => format!("the token is in {}", file.display()),
            None => "the token is that of SESSIONS_HTTP_TOKEN".to_owned(),
        };
        let options = new_http_options(address, Some(token));
        return Ok((options, place));
    }
    if !address.ip().is_loopback() {
        let message = format!(
            "--no-auth is allowed on loopback only, and {address} can be reached from other machines. Leave --no-auth out, or serve on 127.0.0.1"
        );
        return Err(
            ToolError::new(ErrorCode::InvalidArgument, message).with_detail("field", "no_auth")
        );
    }
    let options = new_http_options(address, None);
    Ok((options, "no token is required".to_owned()))
}

/// Returns the failure of a server that could not start or had to stop.
fn server_failure(error: std::io::Error) -> CommandFailure {
    CommandFailure::Tool(ToolError::new(
        ErrorCode::InternalError,
        format!("The MCP server ended: {error}"),
    ))
}
