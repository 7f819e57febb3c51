//! Commands that connect agents with the program: serving, registering, the skill.

use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;

use ingest::provider::Places;
use schemas::envelope::MetadataLevel;
use schemas::{ErrorCode, Timestamp, ToolError};

use super::args::{McpFlags, SetupFlags, SkillFlags};
use super::files::file_named;
use super::{Failure, Outcome, reference};
use crate::app::{environment, http_token};
use crate::outfile::{self, file_error};
use crate::output::{Printer, Show};
use crate::server::{self, HttpOptions};
use crate::store::Store;
use crate::{app, setup};

/// `sessions mcp`.
pub(super) fn serve(
    store: Store,
    flags: &McpFlags,
    metadata: MetadataLevel,
    printer: &Printer,
) -> Result<Outcome, Failure> {
    let options = flags.http.map(|address| http_options(&store, address, flags)).transpose()?;
    let parts = server::Parts {
        // Over HTTP the folder of the server is not that of the agent.
        tools: app::serving_tools(store, options.is_none())?,
        options: flags.serving.options(metadata),
        help: reference::help(),
        roots: environment::known_roots(),
    };
    match options {
        None => server::serve_stdio(parts).map_err(internal)?,
        Some((options, how)) => {
            let ready = |address: SocketAddr| {
                let _ = printer.note(&format!("serving http://{address}{}; {how}", server::PATH));
            };
            server::serve_http(parts, options, ready).map_err(internal)?;
        }
    }
    Ok(Outcome::Done)
}

/// How to serve over HTTP, and what to say about the token.
fn http_options(
    store: &Store,
    address: SocketAddr,
    flags: &McpFlags,
) -> Result<(HttpOptions, String), ToolError> {
    if !flags.no_auth {
        let (token, file) = http_token::http_token(store, flags.token_file.as_deref())?;
        let place = file.map_or_else(
            || "the token is that of the environment".to_owned(),
            |file| format!("the token is in {}", file.display()),
        );
        let options = HttpOptions { address, token: Some(token), body_time: server::BODY_TIME };
        return Ok((options, place));
    }
    if !address.ip().is_loopback() {
        let message = format!(
            "--no-auth is allowed on loopback only, and {address} can be reached from other machines. Leave --no-auth out, or serve on 127.0.0.1"
        );
        return Err(ToolError::new(ErrorCode::InvalidArgument, message).with("field", "no_auth"));
    }
    let options = HttpOptions { address, token: None, body_time: server::BODY_TIME };
    Ok((options, "no token is asked for".to_owned()))
}

/// `sessions setup`.
pub(super) fn register(
    store: Option<&Path>,
    flags: &SetupFlags,
    printer: &Printer,
) -> Result<Outcome, Failure> {
    let mut arguments = Vec::new();
    if let Some(store) = store {
        // The client starts the server elsewhere, and without this environment.
        let store = std::path::absolute(store).unwrap_or_else(|_| store.to_owned());
        arguments.extend(["--store".to_owned(), store.to_string_lossy().into_owned()]);
    }
    arguments.push("mcp".to_owned());
    let (home, variable) = (environment::home(), environment::variable);
    let places = Places::new(&home, &variable);
    let registration =
        setup::registration(flags.client, &places, &environment::program(), &arguments);
    if flags.write {
        let written = registration.write(Timestamp::now())?;
        if printer.json {
            printer.json(&written)?;
        } else {
            printer.data(&written.show())?;
        }
        return Ok(Outcome::Done);
    }
    if printer.json {
        printer.json(&registration)?;
    } else {
        printer.data(&registration.config)?;
        let or = registration.command.map(|command| format!(", or run: {command}"));
        printer.note(&format!(
            "This belongs into {}; --write puts it there{}",
            registration.path.display(),
            or.unwrap_or_default()
        ))?;
    }
    Ok(Outcome::Done)
}

/// `sessions skill`.
pub(super) fn skill(flags: SkillFlags, printer: &Printer) -> Result<Outcome, Failure> {
    let text = reference::help().skill();
    let Some(path) = file_named(flags.output) else {
        printer.data(&text)?;
        return Ok(Outcome::Done);
    };
    let path = if path.is_dir() { path.join("SKILL.md") } else { path };
    let advice = "It holds something else, as that of an earlier version, so it stays. --force replaces it; or name another file with --output";
    let fill = |file: &mut File| {
        file.write_all(text.as_bytes()).map_err(|error| file_error(&path, &error))
    };
    outfile::put(&path, || flags.force, advice, fill)?;
    printer.note(&format!("wrote {}", path.display()))?;
    Ok(Outcome::Done)
}

fn internal(error: std::io::Error) -> Failure {
    Failure::Tool(ToolError::new(
        ErrorCode::InternalError,
        format!("The MCP server ended: {error}"),
    ))
}
