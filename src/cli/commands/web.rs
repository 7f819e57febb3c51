//! `sessions web`: serves the page for the browser on loopback, and ingests logs while they grow.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use schemas::envelope::MetadataLevel;
use schemas::tool::ServedTools;
use schemas::{ErrorCode, ToolError, limits};

use crate::app;
use crate::cli::browser::{find_browser, open_link};
use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::cli::heap::restart_with_one_heap;
use crate::config::{environment, settings};
use crate::help::Help;
use crate::output::Printer;
use crate::server::{self, ServerParts, WebOptions};
use crate::update::ingest_logs::IngestOptions;
use crate::update::watch::watch_logs;
use store::Store;

/// The port that is tried first, so that the page has the same address every day.
const DEFAULT_PORT: u16 = 8766;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct WebFlags {
    /// Serve here, on loopback only; port 0 takes a free one [default: 127.0.0.1:8766 or a free port]
    #[arg(long, value_name = "ADDR:PORT")]
    http: Option<SocketAddr>,
    /// Do not open the browser
    #[arg(long)]
    no_open: bool,
    /// Tool calls per minute; 0 means no limit
    #[arg(long, value_name = "N", default_value_t = limits::RATE_LIMIT)]
    rate_limit: u32,
}

/// Serves until the process is asked to end.
pub(in crate::cli) fn run(
    flags: &WebFlags,
    metadata: MetadataLevel,
    help: Help,
    context: &CommandContext<'_>,
) -> CommandResult {
    let address = flags.http.unwrap_or((Ipv4Addr::LOCALHOST, DEFAULT_PORT).into());
    if !address.ip().is_loopback() {
        let message = format!(
            "The page is served on loopback only, and {address} can be reached from other machines. Use 127.0.0.1 and an SSH tunnel to read it from another machine"
        );
        let error = ToolError::new(ErrorCode::InvalidArgument, message);
        return Err(error.with_detail("field", "http").into());
    }
    restart_with_one_heap();
    let parts = ServerParts {
        tools: app::create_server_tools(Arc::clone(&context.store), false)?,
        options: server::ServerOptions {
            served: ServedTools::ALL,
            // The user who opened the page may label.
            allow_labels: true,
            rate_limit: flags.rate_limit,
            time_limit: Duration::from_millis(limits::CALL_MS),
            metadata,
        },
        help,
        roots: environment::known_roots(),
    };
    watch_in_background(Arc::clone(&context.store))?;
    let notes = Printer {
        is_json: context.printer.is_json,
        is_quiet: context.printer.is_quiet,
        debug: None,
        terminal: context.printer.terminal,
        pager: None,
    };
    let is_at_terminal = context.printer.is_interactive() && !context.printer.is_json;
    let browser = find_browser().filter(|_| is_at_terminal && !flags.no_open);
    // The first link is opened. The file that leads to it goes when the next link is shown.
    let opened = Mutex::new((browser, None));
    let options = WebOptions {
        address,
        may_change_port: flags.http.is_none(),
        show_link: Arc::new(move |link| {
            let mut opened = opened.lock().unwrap_or_else(PoisonError::into_inner);
            let (browser, file) = &mut *opened;
            *file = browser.take().and_then(|browser| open_link(browser, link).ok());
            let verb = if file.is_some() { "opening" } else { "open" };
            let _ = notes.print_note(&format!("{verb} {link}"));
        }),
    };
    server::serve_web(parts, options).map_err(|error| {
        let message = format!("The page cannot be served on {address}: {error}");
        ToolError::new(ErrorCode::InternalError, message)
    })?;
    Ok(CommandOutcome::Done)
}

/// Ingests logs as they grow, until the process ends. A store that cannot be written is read as it
/// is, and the answers of the tools say so.
fn watch_in_background(store: Arc<Store>) -> Result<(), ToolError> {
    let create_options = || IngestOptions::in_background(Some(settings::create_redactor()?));
    // Invalid rules end the command before the page is served.
    create_options()?;
    let thread = std::thread::Builder::new().name("watch".to_owned());
    let spawned = thread.spawn(move || {
        if let Err(error) = watch_logs(&store, &[], &create_options, |_| true) {
            tracing::warn!(%error, "the logs are not watched");
        }
    });
    if let Err(error) = spawned {
        tracing::warn!(%error, "the logs are not watched");
    }
    Ok(())
}
