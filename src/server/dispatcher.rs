//! Dispatches requests to the tools: applies rate and time limits, ingests logs that grew, serves
//! cached answers, catches panics, and adds the metadata that developers can enable.

use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use ratelimit::{Ratelimiter, TryWaitError};
use schemas::envelope::{DebugMetadata, ErrorAnswer, JsonAnswer, MetadataLevel};
use schemas::limits::{self, BYTES_PER_TOKEN};
use schemas::tool::{ServedTools, label};
use schemas::{ErrorCode, Timestamp, ToolError};

use super::cache::AnswerCache;
use super::tool_calls::ToolCall;
use base::json_length::json_length;
use tools::{Call, Tools};

/// Maximum size in tokens of arguments whose answer is cached.
const MAX_KEY_TOKENS: usize = 16 << 10;

/// The settings of a server.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// The tools that clients can call.
    pub served: ServedTools,
    /// True if clients may set labels and notes.
    pub allow_labels: bool,
    /// Maximum number of requests a minute that cost work (`CallDispatcher::take_request` lists
    /// them); 0 means no limit.
    pub rate_limit: u32,
    /// The maximum duration of a call.
    pub time_limit: Duration,
    pub metadata: MetadataLevel,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            served: ServedTools::ALL,
            allow_labels: false,
            rate_limit: limits::RATE_LIMIT,
            time_limit: Duration::from_millis(limits::CALL_MS),
            metadata: MetadataLevel::Core,
        }
    }
}

/// The outcome of a call.
pub(super) struct CallOutcome {
    pub(super) result: Result<JsonAnswer, ErrorAnswer>,
    pub(super) debug: DebugMetadata,
}

impl CallOutcome {
    /// Creates the outcome. `debug` describes a successful answer already; of an error, the size is
    /// added.
    fn new(result: Result<JsonAnswer, ToolError>, mut debug: DebugMetadata) -> Self {
        let result = result.map_err(|error| {
            let error = ErrorAnswer::from(error);
            debug.tokens_output = json_length(&error).div_ceil(BYTES_PER_TOKEN);
            error
        });
        Self { result, debug }
    }
}

/// The dispatcher of a server, shared by all its clients.
pub(super) struct CallDispatcher {
    options: ServerOptions,
    /// The transport, as the debug metadata names it.
    adapter: &'static str,
    limiter: Option<Ratelimiter>,
    cache: AnswerCache,
}

impl CallDispatcher {
    pub(super) fn new(options: ServerOptions, adapter: &'static str) -> Self {
        let rate = u64::from(options.rate_limit);
        let limiter = if rate == 0 {
            None
        } else {
            // All calls of a minute may come at once.
            Ratelimiter::builder(rate)
                .period(Duration::from_secs(60))
                .max_tokens(rate)
                .initial_available(rate)
                .build()
                .ok()
        };
        let cache = AnswerCache::new(Duration::from_secs(limits::CACHE_SECONDS));
        Self { options, adapter, limiter, cache }
    }

    pub(super) fn time_limit(&self) -> Duration {
        self.options.time_limit
    }

    /// Answers a call. It blocks, and it never panics.
    pub(super) fn dispatch_call(
        &self,
        tools: &Tools,
        tool_call: &ToolCall,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> CallOutcome {
        let start = Instant::now();
        let mut debug = self.debug_metadata(tool_call);
        let result = self.check_allowed(tool_call).and_then(|()| {
            // A bug in one call must not end the server.
            std::panic::catch_unwind(AssertUnwindSafe(|| {
                self.answer_or_reuse(tools, tool_call, stop, &mut debug)
            }))
            .unwrap_or_else(|_| Err(panic_error(tool_call.spec.name)))
        });
        log_outcome(tool_call, start, &result);

        debug.rate_limit_remaining = self.limiter.as_ref().map(Ratelimiter::available);
        let result = result.map(|mut answer| {
            debug.describe_answer(&answer.metadata);
            if self.options.metadata == MetadataLevel::Full {
                answer.metadata = answer.metadata.with_debug(debug.clone());
            }
            answer
        });
        CallOutcome::new(result, debug)
    }

    /// Returns the outcome of a call that did not finish in time.
    pub(super) fn late_outcome(&self, tool_call: &ToolCall) -> CallOutcome {
        let message = format!(
            "{} took longer than {} ms and was stopped. Narrow the request, or try again",
            tool_call.spec.name,
            self.options.time_limit.as_millis()
        );
        let error = ToolError::new(ErrorCode::SearchTimeout, message);
        CallOutcome::new(Err(error), self.debug_metadata(tool_call))
    }

    /// Takes one request from the number that remains for this minute. Tool calls, resource reads,
    /// prompts, completions and `ai_help` count alike.
    ///
    /// # Errors
    ///
    /// `rate_limit_exceeded` if none is left.
    pub(super) fn take_request(&self) -> Result<(), ToolError> {
        let limited = self.limiter.as_ref().map(Ratelimiter::try_wait);
        let Some(Err(TryWaitError::Insufficient(wait))) = limited else { return Ok(()) };
        let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
        let message = format!(
            "More than {} calls a minute. Wait {wait} ms, and ask for more at once: most tools take lists of ids",
            self.options.rate_limit
        );
        Err(ToolError::new(ErrorCode::RateLimitExceeded, message)
            .with_detail("retry_after_ms", wait)
            .with_detail("limit_per_minute", self.options.rate_limit))
    }

    /// Returns an error if the call is above the rate limit, or if it changes labels and the server
    /// may not.
    fn check_allowed(&self, tool_call: &ToolCall) -> Result<(), ToolError> {
        self.take_request()?;
        if tool_call.spec.name == label::SPEC.name && !self.options.allow_labels {
            let message = "Labels cannot be changed through this server: it was not started with --allow-labels. Ask the user to add the flag to `sessions mcp` in the client's configuration, or to run `sessions label`";
            return Err(ToolError::new(ErrorCode::InvalidArgument, message)
                .with_detail("tool", tool_call.spec.name)
                .with_detail("needs", "--allow-labels"));
        }
        Ok(())
    }

    /// Ingests logs that grew, then answers from the cache or by running the tool.
    fn answer_or_reuse(
        &self,
        tools: &Tools,
        tool_call: &ToolCall,
        stop: &(dyn Fn() -> bool + Sync),
        debug: &mut DebugMetadata,
    ) -> Result<JsonAnswer, ToolError> {
        let deadline = Instant::now() + self.options.time_limit;
        let call = Call::new(Timestamp::now(), stop).with_deadline(deadline);
        tools.refresh_store();
        let state = tools.answer_state(&call);
        debug.tool_context.generation = state.map(|(generation, _)| generation);

        let Some((_, state)) = state else { return tool_call.answer(tools, &call) };
        // A key is the text of the arguments, of which large ones are rarely repeated.
        if !tool_call.spec.is_read_only() || debug.tokens_input > MAX_KEY_TOKENS {
            return tool_call.answer(tools, &call);
        }
        let key = tool_call.cache_key();
        if let Some(cached) = self.cache.get(state, &key) {
            return Ok(reuse_answer(&cached, &call));
        }
        let answer = tool_call.answer(tools, &call)?;
        self.cache.insert(state, key, &answer);
        Ok(answer)
    }

    fn debug_metadata(&self, tool_call: &ToolCall) -> DebugMetadata {
        let bytes = json_length(&tool_call.arguments);
        let tool = tool_call.spec.name.to_owned();
        let debug = DebugMetadata::new(tool_call.id.clone(), self.adapter, tool, bytes);
        let rate_limit_remaining = self.limiter.as_ref().map(Ratelimiter::available);
        DebugMetadata { rate_limit_remaining, ..debug }
    }
}

/// Returns a cached answer as the answer to another, identical call.
fn reuse_answer(cached: &JsonAnswer, call: &Call<'_>) -> JsonAnswer {
    let mut answer = cached.clone();
    answer.metadata.cached = true;
    answer.metadata.timestamp = call.now.to_string();
    answer.metadata.duration_ms = u64::try_from(call.elapsed().as_millis()).unwrap_or(u64::MAX);
    answer
}

/// Logs the outcome of a call, but not its arguments.
fn log_outcome(tool_call: &ToolCall, start: Instant, result: &Result<JsonAnswer, ToolError>) {
    let tool = tool_call.spec.name;
    let ms = start.elapsed().as_millis();
    match result {
        Ok(JsonAnswer { metadata, .. }) => {
            tracing::debug!(
                tool,
                ms,
                cached = metadata.cached,
                tokens = metadata.tokens,
                "answered"
            );
        }
        Err(error) if error.code == ErrorCode::InternalError => {
            tracing::error!(tool, ms, "internal error");
        }
        Err(error) => tracing::debug!(tool, ms, code = error.code.as_str(), "refused"),
    }
}

/// Returns the error of a call that panicked.
fn panic_error(tool: &str) -> ToolError {
    let message = format!(
        "{tool} failed because of an internal error. Other calls are not affected; please report this with the arguments"
    );
    ToolError::new(ErrorCode::InternalError, message)
}
