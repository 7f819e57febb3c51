//! The composition root: environment, default places, and ingest into a store.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ingest::discover::{Discovery, default_roots, discover};
use ingest::plan::plan;
use ingest::provider::Places;
use ingest::redact::Redactor;
use ingest::report::Report;
use ingest::run::Progress;
use schemas::price::PriceTable;
use schemas::{ErrorCode, ToolError};

use crate::error::store_error;
use crate::outfile::open_regular;
use crate::refresh::Refresher;
use crate::store::{Store, StoreError, Verify, Writer};
use crate::tools::{Caller, Refresh as _, Tools};
use crate::watch::{Changed, Watch};

/// Reads an environment variable; the only place that does.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The program that runs, as other programs can start it.
pub fn program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("sessions"))
}

/// This program, to be started again. Its file may have been replaced since; what runs is meant.
pub fn running() -> PathBuf {
    let running = Path::new("/proc/self/exe");
    if running.exists() { running.to_owned() } else { std::env::current_exe().unwrap_or_default() }
}

/// The user's home directory.
pub fn home() -> PathBuf {
    etcetera::home_dir().unwrap_or_default()
}

/// Where the store is when nobody says: the XDG data home + `sessions`.
pub fn default_store() -> PathBuf {
    let xdg = variable("XDG_DATA_HOME").map(PathBuf::from).filter(|dir| dir.is_absolute());
    xdg.unwrap_or_else(|| home().join(".local/share")).join("sessions")
}

/// The logs of every known agent on this machine.
pub fn known_roots() -> Vec<PathBuf> {
    default_roots(&Places::new(&home(), &variable))
}

/// How to ingest.
pub struct Options {
    pub verify: Verify,
    /// Masks secrets; `None` keeps them.
    pub redactor: Option<Arc<Redactor>>,
    /// How long another writer is waited for.
    pub patience: Duration,
}

/// The agent that started this process, as far as it tells: Claude Code names its session and its
/// project to the MCP servers and commands it starts, Codex its thread to commands.
pub fn caller() -> Caller {
    let ids = ["CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID"];
    let named = variable("CLAUDE_PROJECT_DIR").map(PathBuf::from);
    let folders = std::env::current_dir().ok().into_iter().chain(named);
    // Logs may hold the name with its links or without.
    let folders = folders.flat_map(|dir| [dir.canonicalize().ok(), Some(dir)]).flatten();
    Caller {
        session_ids: ids.into_iter().filter_map(variable).collect(),
        folders: folders.collect(),
    }
}

/// The tools over a store, knowing who calls.
pub fn tools(store: impl Into<Arc<Store>>) -> Tools {
    Tools::new(store).with_caller(caller()).with_masking(redactor)
}

/// The tools as a server has them: they keep the store up with the logs. `near` says that the
/// agent that calls started the server, so that its folder is the agent's.
pub fn serving_tools(store: Store, near: bool) -> Result<Tools, ToolError> {
    let store = Arc::new(store);
    let refresh = Arc::new(Refresher::new(Arc::clone(&store)));
    // Before anybody asks: the first call finds it done.
    refresh.refresh(Duration::ZERO);
    let tools = if near { tools(store) } else { Tools::new(store).with_masking(redactor) };
    Ok(tools.with_prices(prices()?).with_refresh(refresh).with_program(running()))
}

/// The price table: the built-in one with what the user's file adds or replaces.
pub fn prices() -> Result<PriceTable, ToolError> {
    let Some((path, text)) = own_file("SESSIONS_PRICES", "prices.toml")? else {
        return Ok(PriceTable::built_in());
    };
    PriceTable::with_overrides(&text).map_err(|error| wrong_file(&path, &error))
}

/// The masking of secrets: the built-in rules and those of the user's file.
pub fn redactor() -> Result<Arc<Redactor>, ToolError> {
    let rules = match own_file("SESSIONS_REDACT", "redact.toml")? {
        None => Vec::new(),
        Some((path, text)) => {
            ingest::redact::user_rules(&text).map_err(|error| wrong_file(&path, &error))?
        }
    };
    let redactor = Redactor::new(&rules).map_err(|error| {
        let message = format!("{error}. Mend the rule, then run the command again");
        ToolError::new(ErrorCode::InvalidArgument, message)
    })?;
    Ok(Arc::new(redactor))
}

/// A settings file of the user: the one that the variable names, else the usual one if it exists.
fn own_file(name: &str, usual: &str) -> Result<Option<(PathBuf, String)>, ToolError> {
    let path = variable(name).map(PathBuf::from);
    let named = path.is_some();
    let path = path.unwrap_or_else(|| {
        let xdg = variable("XDG_CONFIG_HOME").map(PathBuf::from).filter(|dir| dir.is_absolute());
        xdg.unwrap_or_else(|| home().join(".config")).join("sessions").join(usual)
    });
    match open_regular(&path).and_then(|file| read_text(file, SETTINGS_BYTES)) {
        Ok(text) => Ok(Some((path, text))),
        Err(error) if !named && error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(wrong_file(&path, &error)),
    }
}

/// What clients of the HTTP server have to show, and the file where it lies if it lies in one: the
/// file that was named, the variable `SESSIONS_HTTP_TOKEN`, or a file in the store that is made
/// when it is not there.
pub fn http_token(
    store: &Store,
    named: Option<&Path>,
) -> Result<(String, Option<PathBuf>), ToolError> {
    let check =
        |text: String, path: &Path| usable(&text).map_err(|reason| wrong_file(path, &reason));
    if let Some(path) = named {
        // What another program prints is as good as a file: `--token-file <(pass show sessions)`.
        let text = File::open(path).and_then(|file| read_text(file, TOKEN_BYTES));
        let text = text.map_err(|error| wrong_file(path, &error))?;
        return Ok((check(text, path)?, Some(path.to_owned())));
    }
    if let Some(token) = variable(TOKEN_VARIABLE) {
        return match usable(&token) {
            Ok(token) => Ok((token, None)),
            Err(reason) => Err(ToolError::new(
                ErrorCode::InvalidArgument,
                format!("{TOKEN_VARIABLE}: {reason}. Set another one, or none to have one made"),
            )),
        };
    }
    let kept = store.token_path();
    if let Some(text) = store.read_token().map_err(store_error)? {
        return Ok((check(text, &kept)?, Some(kept)));
    }
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        let message = format!("No token could be made ({error}). Name one with --token-file");
        ToolError::new(ErrorCode::InternalError, message)
    })?;
    let token = URL_SAFE_NO_PAD.encode(bytes);
    store.write_token(&token).map_err(store_error)?;
    Ok((token, Some(kept)))
}

/// Most bytes of a file with a token, and of a settings file: more is no such file.
const TOKEN_BYTES: u64 = 64 << 10;
const SETTINGS_BYTES: u64 = 4 << 20;

/// The text of a file that was opened, if it has at most `most` bytes.
fn read_text(file: File, most: u64) -> io::Result<String> {
    let mut text = String::new();
    file.take(most + 1).read_to_string(&mut text)?;
    if text.len() as u64 > most {
        return Err(io::Error::other(format!("it has more than {most} bytes")));
    }
    Ok(text)
}

const TOKEN_VARIABLE: &str = "SESSIONS_HTTP_TOKEN";

/// A token that can stand in a header and is long enough not to be guessed.
fn usable(text: &str) -> Result<String, &'static str> {
    let token = text.trim();
    if token.len() < 16 {
        Err("a token has at least 16 characters")
    } else if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        Err("a token has visible ASCII characters only")
    } else {
        Ok(token.to_owned())
    }
}

fn wrong_file(path: &Path, error: &dyn std::fmt::Display) -> ToolError {
    let message = format!("{}: {error}. Mend the file or remove it", path.display());
    ToolError::new(ErrorCode::InvalidArgument, message)
        .with("path", path.to_string_lossy().into_owned())
}

/// Ingests what is new below `paths`, or below the known roots when there are none.
pub fn ingest(
    store: &Store,
    paths: &[PathBuf],
    options: &Options,
    progress: &dyn Progress,
) -> Result<Report, ToolError> {
    let start = Instant::now();
    let roots = if paths.is_empty() { known_roots() } else { paths.to_vec() };
    if roots.is_empty() {
        let message =
            "No logs were found in the usual places. Name a file or folder: `sessions ingest PATH`";
        return Err(ToolError::new(ErrorCode::InvalidArgument, message));
    }
    for path in paths {
        std::fs::metadata(path).map_err(|error| unreadable_path(path, &error))?;
    }
    // To look for files and to read what is known of them takes about as long.
    let (found, known) = std::thread::scope(|scope| {
        let found = scope.spawn(|| discover(&roots).without(store.dir()));
        let known = writer(store, options).and_then(|writer| {
            let known = writer.known().map_err(store_error)?;
            Ok((writer, known))
        });
        (found.join(), known)
    });
    let found = found.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    missing_paths(paths, &found)?;
    let (writer, known) = known?;
    let redactor = options.redactor.as_ref();
    let mut plan = plan(found, &known, redactor.map(Arc::as_ref));
    let outdated = std::mem::take(&mut plan.outdated);
    let mut report = ingest::run::run(plan, &&writer, redactor, progress).map_err(store_error)?;
    report.segments_set_aside = writer.set_aside();
    report.notices.extend(writer.notice().map(str::to_owned));
    if let Some(redactor) = redactor.filter(|_| !outdated.is_empty()) {
        writer.mask_again(&outdated, redactor).map_err(store_error)?;
    }
    if report.files_rewritten > 0 || !outdated.is_empty() {
        writer.purge().map_err(store_error)?;
    }
    writer.compact().map_err(store_error)?;
    let elapsed = start.elapsed();
    report.elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let rate = report.bytes_read as f64 / 1e6 / elapsed.as_secs_f64().max(1e-9);
    report.mb_per_second = (rate * 10.0).round() / 10.0;
    Ok(report)
}

/// Takes the write lock, waiting for another writer as long as `options` say.
fn writer(store: &Store, options: &Options) -> Result<Writer, ToolError> {
    let until = Instant::now() + options.patience;
    loop {
        match store.writer(options.verify) {
            Err(StoreError::Busy { .. }) if Instant::now() < until => std::thread::sleep(BUSY),
            result => return result.map_err(store_error),
        }
    }
}

/// Ingests, and then whatever changes below `paths` (or the known roots), until `report` says
/// that it has seen enough. Another writer's turn is waited for.
pub fn watch(
    store: &Store,
    paths: &[PathBuf],
    options: &Options,
    mut report: impl FnMut(Report) -> bool,
) -> Result<(), ToolError> {
    let roots = if paths.is_empty() { known_roots() } else { paths.to_vec() };
    let mut watch = Watch::new(&roots);
    let mut next = roots.clone();
    loop {
        let anything = next == roots;
        match ingest(store, &next, options, &()) {
            Ok(done) => {
                if !report(done) {
                    return Ok(());
                }
            }
            Err(error) if error.code == ErrorCode::StoreBusy => {
                std::thread::sleep(BUSY);
                continue;
            }
            // A file may vanish between its change and its turn.
            Err(error) if !anything && error.code == ErrorCode::InvalidArgument => {}
            Err(error) => return Err(error),
        }
        next = match watch.wait() {
            Changed::Files(files) => files,
            Changed::Anything => roots.clone(),
        };
    }
}

/// How long is waited before another writer's turn is looked for again.
const BUSY: Duration = Duration::from_millis(200);

/// A path that was named and cannot be read at all is a wrong argument.
fn missing_paths(paths: &[PathBuf], found: &Discovery) -> Result<(), ToolError> {
    for path in paths {
        let of_path = found.problems.iter().find(|problem| Path::new(&problem.path) == path);
        if let Some(problem) = of_path {
            return Err(unreadable_path(path, &problem.message));
        }
    }
    Ok(())
}

fn unreadable_path(path: &Path, reason: &dyn Display) -> ToolError {
    let message =
        format!("{} cannot be read: {reason}. Check the path and its rights", path.display());
    ToolError::new(ErrorCode::InvalidArgument, message)
        .with("path", path.to_string_lossy().into_owned())
}
