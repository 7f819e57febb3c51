//! `sessions hook`: answers the hooks of agents, and shows what was said.
//!
//! A hook never disturbs the agent: the exit code is 0, nothing is printed unless there is something
//! to say, and the process ends after a fixed time, whatever it is doing then.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use clap::Command;
use schemas::Timestamp;
use schemas::hook::{HookClient, HookName};
use serde_json::Value;

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::cli::typed_words::find_command_word;
use crate::config::environment;
use crate::config::user_settings::UserSettings;
use crate::hooks::{HookHistory, HookInput, ServedBefore, background, encode_reply, parse_input};
use crate::output::{HookLogList, Printer};
use crate::update::log_rules::{ForgottenRules, LogRules};
use crate::update::masking::has_text_of_other_rules;
use crate::update::refresher::Refresher;
use store::{HookLog, HookLogRow, Store};
use tools::Refresh as _;
use tools::error::store_error;

/// Maximum size of the input in bytes. A larger one is read to its end, and not answered.
const MAX_INPUT_BYTES: u64 = 4 << 20;

/// The part of the time that lookups may take, in percent. The rest is for the answer.
const LOOKUP_PERCENT: u32 = 85;

/// Time to wait before an ingest in the background: the agent may still be writing its log.
const SETTLE_TIME: Duration = Duration::from_millis(300);

/// Maximum duration of an ingest in the background.
const MAX_INGEST_TIME: Duration = Duration::from_secs(15 * 60);

/// Rows of the log that are shown if no number is given.
const DEFAULT_LOG_ROWS: usize = 50;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct HookFlags {
    #[command(subcommand)]
    command: HookCommand,
}

#[derive(Debug, clap::Subcommand)]
enum HookCommand {
    /// A session begins: where the last sessions in this project ended
    SessionStart(AgentFlags),
    /// A prompt was sent: what the history says, if it asks about the past or contains a known
    /// error
    Prompt(AgentFlags),
    /// A tool is about to run: what worked instead, if the same command always failed
    PreTool(AgentFlags),
    /// A tool failed: how the same error was fixed before
    PostToolFailure(AgentFlags),
    /// The context is compacted: reads new logs in the background
    PreCompact(AgentFlags),
    /// A session ended: reads new logs in the background
    SessionEnd(AgentFlags),
    /// List the answers of hooks, with times and reasons
    Log(LogFlags),
    /// Reads new logs, for a hook that does not wait for it
    #[command(hide = true)]
    Ingest,
}

#[derive(Debug, clap::Args)]
struct AgentFlags {
    /// The agent: claude, codex, gemini or copilot [default: detected from the input]
    #[arg(long)]
    client: Option<HookClient>,
}

#[derive(Debug, clap::Args)]
struct LogFlags {
    /// Rows to show, the newest first [default: 50]
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<usize>,
    /// Only what was said in this session
    #[arg(long, value_name = "ID")]
    session_id: Option<String>,
}

impl HookFlags {
    /// Returns the hook that an agent calls, and the agent that the command line names; `None` for
    /// the other commands.
    pub(in crate::cli) fn called_hook(&self) -> Option<(HookName, Option<HookClient>)> {
        match &self.command {
            HookCommand::SessionStart(flags) => Some((HookName::SessionStart, flags.client)),
            HookCommand::Prompt(flags) => Some((HookName::Prompt, flags.client)),
            HookCommand::PreTool(flags) => Some((HookName::PreTool, flags.client)),
            HookCommand::PostToolFailure(flags) => Some((HookName::PostToolFailure, flags.client)),
            HookCommand::PreCompact(flags) => Some((HookName::PreCompact, flags.client)),
            HookCommand::SessionEnd(flags) => Some((HookName::SessionEnd, flags.client)),
            HookCommand::Log(_) | HookCommand::Ingest => None,
        }
    }
}

/// Answers a hook that an agent calls. Whatever happens, the process then ends with success.
/// `started` is the time at which it began.
pub(in crate::cli) fn answer_agent(
    hook: HookName,
    client: Option<HookClient>,
    store: Option<PathBuf>,
    printer: &Printer,
    started: Instant,
) {
    // Settings that cannot be read may switch hooks off.
    let Ok(settings) = UserSettings::read().map(|settings| settings.hooks) else { return };
    if !settings.are_enabled() {
        return;
    }
    let call = HookCall {
        hook,
        client,
        store: Arc::new(Store::new(store.unwrap_or_else(environment::default_store))),
        may_speak: settings.may_speak(hook),
        machines: settings.machines.clone(),
        started,
        timeout: settings.timeout(),
    };
    let timeout = settings.timeout();
    let (send, receive) = channel();
    let thread = std::thread::Builder::new().name("hook".to_owned());
    // The thread is abandoned if it takes too long, and ends with the process.
    let spawned = thread.spawn(move || {
        let _ = send.send(call.run());
    });
    if spawned.is_err() {
        return;
    }
    let left = timeout.saturating_sub(started.elapsed());
    if let Ok(Some(reply)) = receive.recv_timeout(left) {
        // An agent that no longer listens is not an error.
        let _ = printer.print_json(&reply);
    }
}

/// A call of a hook.
struct HookCall {
    hook: HookName,
    client: Option<HookClient>,
    store: Arc<Store>,
    may_speak: bool,
    /// The other machines whose sessions may be quoted.
    machines: Vec<String>,
    started: Instant,
    timeout: Duration,
}

impl HookCall {
    /// Reads the input and returns the reply; `None` if there is nothing to say.
    fn run(&self) -> Option<Value> {
        let bytes = read_input()?;
        let input = parse_input(self.hook, self.client, &bytes)?;
        let reply = if self.may_speak { self.answer(&input) } else { None };
        match self.hook {
            // The logs of sessions that ended without a hook are read, too.
            HookName::SessionStart | HookName::PreCompact | HookName::SessionEnd => {
                let program = environment::running_program_path();
                let store = std::path::absolute(self.store.dir()).ok()?;
                if let Err(error) = background::start_ingest(&program, &store) {
                    tracing::warn!(%error, "the ingest could not be started");
                }
            }
            HookName::Prompt | HookName::PreTool | HookName::PostToolFailure => {}
        }
        reply
    }

    /// Returns the reply, and adds it to the log.
    fn answer(&self, input: &HookInput) -> Option<Value> {
        let snapshot = self.store.take_lazy_snapshot().ok()?;
        if snapshot.manifest().generation == 0 {
            return None;
        }
        let log = self.store.open_hook_log().ok()?;
        let home = environment::home_dir();
        let now = Timestamp::now().0;
        let rules = LogRules::read(ForgottenRules::default()).ok()?;
        let history = HookHistory {
            snapshot: &snapshot,
            home: &home,
            until: now,
            machines: &self.machines,
            is_excluded: &|folder| rules.excludes_project(folder),
            deadline: self.started + self.timeout * LOOKUP_PERCENT / 100,
        };
        let answer = history.answer(input, &served_before(&log, input.session_id.as_deref()))?;
        // What other rules masked may have what those in force mask. The ingest behind a hook masks it.
        if has_text_of_other_rules(&self.store).ok()? {
            return None;
        }
        let reply = encode_reply(input.client, self.hook, &answer.text)?;
        let row = HookLogRow {
            time: now,
            client: input.client.as_str().to_owned(),
            hook: self.hook.as_str().to_owned(),
            session: input.session_id.clone(),
            project: folder_name(&input.cwd),
            reason: answer.reason,
            ids: answer.ids,
            key: answer.key,
            bytes: answer.text.len(),
            ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
        };
        // What cannot be remembered might be said again, so it is not said.
        log.append(&row).ok()?;
        Some(reply)
    }
}

/// Returns what was already said in a session.
fn served_before(log: &HookLog, session: Option<&str>) -> ServedBefore {
    let mut before = ServedBefore::default();
    for row in log.rows().iter().filter(|row| row.session.as_deref() == session) {
        before.ids.extend(row.ids.iter().cloned());
        before.ids.insert(row.key.clone());
        before.bytes += row.bytes;
    }
    before
}

/// Returns the last part of a path.
fn folder_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Reads what the agent passes; `None` if stdin is a terminal, or if it is too long.
fn read_input() -> Option<Vec<u8>> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return None;
    }
    let mut stdin = stdin.lock();
    let mut bytes = Vec::new();
    (&mut stdin).take(MAX_INPUT_BYTES + 1).read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 > MAX_INPUT_BYTES {
        // An agent may report an error if its pipe closes early.
        io::copy(&mut stdin, &mut io::sink()).ok()?;
        return None;
    }
    Some(bytes)
}

/// Runs the commands that agents do not call.
pub(in crate::cli) fn run(flags: &HookFlags, context: &CommandContext<'_>) -> CommandResult {
    match &flags.command {
        HookCommand::Log(flags) => show_log(flags, context),
        HookCommand::Ingest => {
            std::thread::sleep(SETTLE_TIME);
            Refresher::for_server(Arc::clone(&context.store)).refresh(MAX_INGEST_TIME);
            Ok(CommandOutcome::Done)
        }
        HookCommand::SessionStart(_)
        | HookCommand::Prompt(_)
        | HookCommand::PreTool(_)
        | HookCommand::PostToolFailure(_)
        | HookCommand::PreCompact(_)
        | HookCommand::SessionEnd(_) => Ok(CommandOutcome::Done),
    }
}

/// Shows what hooks said, the newest first.
fn show_log(flags: &LogFlags, context: &CommandContext<'_>) -> CommandResult {
    let mut rows = context.store.read_hook_log().map_err(store_error)?;
    if let Some(id) = &flags.session_id {
        rows.retain(|row| row.session.as_ref().is_some_and(|session| session.starts_with(id)));
    }
    rows.reverse();
    rows.truncate(flags.limit.unwrap_or(DEFAULT_LOG_ROWS));
    let is_found = !rows.is_empty();
    context.printer.print_report(&HookLogList { rows })?;
    if !is_found {
        context.printer.print_note(
            "No hook has answered yet; `sessions setup CLIENT --hooks` installs them",
        )?;
    }
    Ok(CommandOutcome::from_found(is_found))
}

/// Returns true if the arguments call a hook, however wrong they are otherwise.
pub(in crate::cli) fn is_hook_call(program: &Command, arguments: &[OsString]) -> bool {
    let Some(at) = find_command_word(program, arguments) else { return false };
    arguments[at] == "hook" && arguments.get(at + 1).is_none_or(|hook| hook != "log")
}
