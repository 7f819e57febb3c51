//! Dispatches requests to the tools: applies rate and time limits, ingests logs that grew, serves
//! cached answers, catches panics, and adds the metadata that developers can enable.

use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use ratelimit::{Ratelimiter, TryWaitError};
use schemas::envelope::{
    DebugMetadata, ErrorAnswer, JsonAnswer, MetadataLevel, Severity, ToolContext, Warning,
    WarningCode,
};
use schemas::limits::{self, BYTES_PER_TOKEN};
use schemas::tool::{CONTRACT_VERSION, TOOLS, ToolAlias, label};
use schemas::{ErrorCode, Timestamp, ToolError};
use serde_json::Value;

use super::cache::AnswerCache;
use base::json_length::json_length;
use tools::{Call, Tools, encoding_error};

/// Maximum size in tokens of arguments whose answer is cached.
const MAX_KEY_TOKENS: usize = 16 << 10;

/// The settings of a server.
#[derive(Debug, Clone)]
pub struct ServerOptions {
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
            allow_labels: false,
            rate_limit: limits::RATE_LIMIT,
            time_limit: Duration::from_millis(limits::CALL_MS),
            metadata: MetadataLevel::Core,
        }
    }
}

/// A call of a tool.
pub(super) struct ToolCall {
    pub(super) id: String,
    /// The current name of the tool, not an alias.
    pub(super) tool: String,
    pub(super) arguments: Value,
    /// The earlier name by which the client called the tool, if it used one.
    pub(super) alias: Option<ToolAlias>,
}

impl ToolCall {
    /// Returns a key that identifies the call: the same for the same arguments in any order.
    fn cache_key(&self) -> String {
        let mut key = format!("{} ", self.tool);
        write_sorted(&self.arguments, &mut key);
        key
    }

    /// Returns a warning if the tool was called by an earlier name.
    fn rename_warning(&self) -> Option<Warning> {
        let ToolAlias { name, sunset } = self.alias?;
        let message = format!(
            "{name} was renamed to {}; the old name may stop working on {sunset}",
            self.tool
        );
        Some(Warning::new(WarningCode::ToolRenamed, Severity::Warning, message))
    }
}

/// The outcome of a call.
pub(super) struct CallOutcome {
    pub(super) result: Result<AnswerContent, ErrorAnswer>,
    pub(super) debug: DebugMetadata,
}

impl CallOutcome {
    /// Creates the outcome. `debug` describes a successful answer already; of an error, the size is
    /// added.
    fn new(result: Result<AnswerContent, ToolError>, mut debug: DebugMetadata) -> Self {
        let result = result.map_err(|error| {
            let error = ErrorAnswer::from(error);
            debug.tokens_output = json_length(&error).div_ceil(BYTES_PER_TOKEN);
            error
        });
        Self { result, debug }
    }
}

/// An answer in both forms of the protocol, with the same content: a client shows the model one or
/// the other.
pub(super) struct AnswerContent {
    pub(super) text: String,
    pub(super) structured: Value,
}

impl AnswerContent {
    fn new(answer: &JsonAnswer) -> Result<Self, ToolError> {
        // The data is JSON already: it is copied into the text and parsed from there.
        let text = serde_json::to_string(answer).map_err(encoding_error)?;
        let structured = serde_json::from_str(&text).map_err(encoding_error)?;
        Ok(Self { text, structured })
    }

    fn add_debug(&mut self, debug: &DebugMetadata) {
        debug.add_to_answer(&mut self.structured);
        self.text = self.structured.to_string();
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

    /// Answers a call; `run` runs the tool. It blocks, and it never panics.
    pub(super) fn dispatch_call(
        &self,
        tools: &Tools,
        tool_call: &ToolCall,
        stop: &(dyn Fn() -> bool + Sync),
        run: &dyn Fn(&Call<'_>) -> Result<JsonAnswer, ToolError>,
    ) -> CallOutcome {
        let start = Instant::now();
        let mut debug = self.debug_metadata(tool_call);
        let result = self.check_allowed(tool_call).and_then(|()| {
            // A bug in one call must not end the server.
            std::panic::catch_unwind(AssertUnwindSafe(|| {
                self.answer_or_reuse(tools, tool_call, stop, run, &mut debug)
            }))
            .unwrap_or_else(|_| Err(panic_error(&tool_call.tool)))
        });
        log_outcome(tool_call, start, &result);

        debug.rate_limit_remaining = self.limiter.as_ref().map(Ratelimiter::available);
        let result = result.and_then(|mut answer| {
            answer.warnings.extend(tool_call.rename_warning());
            debug.describe_answer(&answer.metadata);
            let mut content = AnswerContent::new(&answer)?;
            if self.options.metadata == MetadataLevel::Full {
                content.add_debug(&debug);
            }
            Ok(content)
        });
        CallOutcome::new(result, debug)
    }

    /// Returns the outcome of a call that did not finish in time.
    pub(super) fn late_outcome(&self, tool_call: &ToolCall) -> CallOutcome {
        let message = format!(
            "{} took longer than {} ms and was stopped. Narrow the request, or try again",
            tool_call.tool,
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
        if tool_call.tool == label::SPEC.name && !self.options.allow_labels {
            let message = "Labels cannot be changed through this server: it was not started with --allow-labels. Ask the user to add the flag to `sessions mcp` in the client's configuration, or to run `sessions label`";
            return Err(ToolError::new(ErrorCode::InvalidArgument, message)
                .with_detail("tool", tool_call.tool.as_str())
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
        run: &dyn Fn(&Call<'_>) -> Result<JsonAnswer, ToolError>,
        debug: &mut DebugMetadata,
    ) -> Result<JsonAnswer, ToolError> {
        let deadline = Instant::now() + self.options.time_limit;
        let call = Call::new(Timestamp::now(), stop).with_deadline(deadline);
        tools.refresh_store();
        let state = tools.answer_state(&call);
        debug.tool_context.generation = state.map(|(generation, _)| generation);

        let is_read_only = TOOLS.iter().any(|spec| spec.name == tool_call.tool && spec.read_only);
        let Some((_, state)) = state else { return run(&call) };
        // A key is the text of the arguments, of which large ones are rarely repeated.
        if !is_read_only || debug.tokens_input > MAX_KEY_TOKENS {
            return run(&call);
        }
        let key = tool_call.cache_key();
        if let Some(cached) = self.cache.get(state, &key) {
            return Ok(reuse_answer(&cached, &call));
        }
        let answer = run(&call)?;
        self.cache.insert(state, key, &answer);
        Ok(answer)
    }

    fn debug_metadata(&self, tool_call: &ToolCall) -> DebugMetadata {
        DebugMetadata {
            request_id: tool_call.id.clone(),
            tool_version: env!("CARGO_PKG_VERSION"),
            schema_version: CONTRACT_VERSION,
            adapter: self.adapter,
            tokens_input: json_length(&tool_call.arguments).div_ceil(BYTES_PER_TOKEN),
            tokens_output: 0,
            api_calls_made: 0,
            rate_limit_remaining: self.limiter.as_ref().map(Ratelimiter::available),
            confidence: 1.0,
            threshold: 0.0,
            tool_context: ToolContext { tool: tool_call.tool.clone(), generation: None },
        }
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

/// Writes JSON with the keys of objects sorted.
#[expect(clippy::wildcard_enum_match_arm, reason = "other values of JSON are alike here")]
fn write_sorted(value: &Value, out: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            out.push('{');
            for (name, value) in fields {
                out.push_str(&format!("{name:?}:"));
                write_sorted(value, out);
                out.push(',');
            }
            out.push('}');
        }
        Value::Array(values) => {
            out.push('[');
            for value in values {
                write_sorted(value, out);
                out.push(',');
            }
            out.push(']');
        }
        value => out.push_str(&value.to_string()),
    }
}

/// Logs the outcome of a call, but not its arguments.
fn log_outcome(tool_call: &ToolCall, start: Instant, result: &Result<JsonAnswer, ToolError>) {
    let tool = &tool_call.tool;
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use schemas::envelope::{EncodedData, Metadata, Status, ToolAnswer};
    use serde::{Serialize, Serializer};
    use serde_json::json;

    use super::*;

    fn call_with(arguments: Value, alias: Option<ToolAlias>) -> ToolCall {
        let tool = "list_sessions".to_owned();
        ToolCall { id: "1".to_owned(), tool, arguments, alias }
    }

    fn key(arguments: Value) -> String {
        call_with(arguments, None).cache_key()
    }

    /// Data that counts how often its JSON is written.
    struct CountedData(Rc<Cell<usize>>);

    impl Serialize for CountedData {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            self.0.set(self.0.get() + 1);
            serializer.serialize_str("data")
        }
    }

    #[test]
    fn the_json_of_an_answer_is_written_once() {
        let count = Rc::new(Cell::new(0));
        let data = EncodedData::new(CountedData(Rc::clone(&count))).expect("encodes");
        let metadata = Metadata::default();
        let answer = ToolAnswer {
            status: Status::Ok,
            data,
            pagination: None,
            hint: None,
            warnings: Vec::new(),
            metadata,
        };
        // What `run_and_wrap`, the cache and the two forms of a result do.
        serde_json::to_vec(&answer).expect("JSON");
        let kept = answer.into_json();
        let content = AnswerContent::new(&kept.clone()).expect("content");
        assert_eq!(content.structured["data"], "data");
        assert_eq!(content.structured.to_string(), content.text);
        assert_eq!(count.get(), 1);
    }

    #[test]
    fn an_answer_to_an_earlier_name_says_so() {
        assert_eq!(call_with(json!({}), None).rename_warning(), None);
        let alias = ToolAlias { name: "grep_sessions", sunset: "2027-06-01" };
        let warning = call_with(json!({}), Some(alias)).rename_warning().expect("a warning");
        assert_eq!(warning.code, WarningCode::ToolRenamed);
        assert!(warning.message.contains("2027-06-01"), "{}", warning.message);
    }

    #[test]
    fn the_order_of_arguments_makes_no_other_call() {
        let call =
            key(json!({ "limit": 1, "session_ids": ["a", "b"], "x": { "c": null, "d": 2 } }));
        assert_eq!(
            call,
            key(json!({ "x": { "d": 2, "c": null }, "session_ids": ["a", "b"], "limit": 1 }))
        );
        for other in [
            json!({ "limit": 1, "session_ids": ["b", "a"], "x": { "c": null, "d": 2 } }),
            json!({ "limit": "1", "session_ids": ["a", "b"], "x": { "c": null, "d": 2 } }),
            json!({ "limit": 1, "session_ids": ["a,b"], "x": { "c": null, "d": 2 } }),
            json!({ "limit": 1, "session_ids": ["a", "b"], "x": { "c": null }, "d": 2 }),
        ] {
            assert_ne!(call, key(other));
        }
    }
}
