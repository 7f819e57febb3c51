//! The connection to a Spark Connect server: runs queries, interrupts those that are not wanted any
//! more, and connects again after the server was gone.

use std::future::Future;
use std::io::Cursor;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::ipc::reader::StreamReader;
use schemas::{ErrorCode, ToolError};
use spark_connect_core::channel::ChannelBuilder;
use spark_connect_core::client::SparkConnectClient;
use spark_connect_core::error::SparkError;
use spark_connect_core::retries::RetryPolicy;
use spark_connect_proto::config_request::operation::OpType;
use spark_connect_proto::execute_plan_response::ResponseType;
use spark_connect_proto::{
    ConfigRequest, ExecutePlanRequest, ExecutePlanResponse, KeyValue, Plan, ReattachExecuteRequest,
    Relation, UserContext, config_request, plan,
};
use tokio::runtime::{Builder, Runtime};

use super::failure::{describe_failure, is_session_lost, is_unavailable};
use base::random::random_bytes;

/// The beginning of the addresses of engines.
pub(super) const SCHEME: &str = "spark://";

/// The user whose sessions of Spark this program opens.
const USER: &str = "sessions";

/// How often the caller is asked whether the answer is still wanted.
const POLL: Duration = Duration::from_millis(50);

/// Attempts to interrupt a query that the server does not know yet, [`POLL`] apart: five seconds.
const INTERRUPT_ATTEMPTS: u32 = 100;

/// Attempts to reach the server again within one request, a fifth of a second apart at first.
const RETRIES: u32 = 3;

/// Settings of every session: times are in UTC, a query cannot name files, and the driver lists the
/// files that it is given instead of running a job for them.
const SETTINGS: [(&str, &str); 6] = [
    ("spark.sql.session.timeZone", "UTC"),
    ("spark.sql.runSQLOnFiles", "false"),
    // ${env:NAME} in a statement would be the environment of the server.
    ("spark.sql.variable.substitute", "false"),
    ("spark.sql.ansi.enabled", "true"),
    ("spark.sql.sources.parallelPartitionDiscovery.threshold", "100000"),
    ("spark.sql.execution.arrow.maxRecordsPerBatch", "20000"),
];

/// A connection, which is made at the first query.
pub(super) struct SparkConnection {
    /// The address as the user wrote it.
    address: String,
    builder: ChannelBuilder,
    runtime: Runtime,
    session: Mutex<Option<Arc<SparkSession>>>,
}

/// A session of the server, with its settings.
struct SparkSession {
    client: SparkConnectClient,
    /// The name that the server gives the session. A server that was started again gives another
    /// one, and refuses queries that name this one. Without it, the new server would run them in a
    /// session without the settings.
    server_id: String,
}

/// The reason why a query ended without its rows.
pub(super) enum RunError {
    /// The server reported it.
    Spark(Box<SparkError>),
    Tool(ToolError),
}

impl From<SparkError> for RunError {
    fn from(error: SparkError) -> Self {
        Self::Spark(Box::new(error))
    }
}

impl From<ToolError> for RunError {
    fn from(error: ToolError) -> Self {
        Self::Tool(error)
    }
}

impl SparkConnection {
    /// Prepares a connection to `spark://HOST:PORT`. Nothing is sent yet.
    ///
    /// # Errors
    /// Fails if the address has another form.
    pub(super) fn new(address: &str) -> Result<Self, ToolError> {
        let invalid = |reason: &str| {
            let message = format!(
                "engine: '{address}' is not valid: {reason}. Give spark://HOST:PORT, the address of a Spark Connect server, such as spark://127.0.0.1:15002"
            );
            ToolError::new(ErrorCode::InvalidArgument, message).with_detail("field", "engine")
        };
        let host = address.strip_prefix(SCHEME).ok_or_else(|| invalid("it has another scheme"))?;
        let parameters = if host.contains("/;") { ";" } else { "/;" };
        let url = format!("sc://{host}{parameters}user_id={USER}");
        let builder = ChannelBuilder::parse(&url).map_err(|error| invalid(&error.get_message()))?;
        if builder.host().is_empty() {
            return Err(invalid("it names no host"));
        }
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("spark")
            .enable_all()
            .build()
            .map_err(|error| {
                let message = format!("The threads for Spark could not be started: {error}");
                ToolError::new(ErrorCode::InternalError, message)
            })?;
        Ok(Self { address: address.to_owned(), builder, runtime, session: Mutex::new(None) })
    }

    /// Returns the address as the user wrote it.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Runs a query and calls `take` with its rows until it returns false. `stop` is polled; true
    /// interrupts the query.
    ///
    /// # Errors
    /// Fails with `store_unavailable` if the server cannot be reached, with `cancelled` if `stop`
    /// returned true, and with what `take` returns.
    pub(super) fn run(
        &self,
        relation: &Relation,
        stop: &(dyn Fn() -> bool + Sync),
        take: &mut dyn FnMut(RecordBatch) -> Result<bool, ToolError>,
    ) -> Result<(), ToolError> {
        match self.try_run(relation, stop, take) {
            Ok(()) => Ok(()),
            Err(RunError::Tool(error)) => Err(error),
            Err(RunError::Spark(error)) => Err(describe_failure(&self.address, &error)),
        }
    }

    /// Runs a query like [`Self::run`]. The server may have been started again since the last query:
    /// then the session is opened again, once.
    pub(super) fn try_run(
        &self,
        relation: &Relation,
        stop: &(dyn Fn() -> bool + Sync),
        take: &mut dyn FnMut(RecordBatch) -> Result<bool, ToolError>,
    ) -> Result<(), RunError> {
        let mut has_rows = false;
        let mut count = |batch: RecordBatch| {
            has_rows = true;
            take(batch)
        };
        let result = self.run_once(relation, stop, &mut count);
        match result {
            Err(RunError::Spark(error)) if is_unavailable(&error) || is_session_lost(&error) => {
                self.forget_session();
                if has_rows || !is_session_lost(&error) {
                    return Err(RunError::Spark(error));
                }
                self.run_once(relation, stop, take)
            }
            result => result,
        }
    }

    fn run_once(
        &self,
        relation: &Relation,
        stop: &(dyn Fn() -> bool + Sync),
        take: &mut dyn FnMut(RecordBatch) -> Result<bool, ToolError>,
    ) -> Result<(), RunError> {
        let session = self.session(stop)?;
        let client = &session.client;
        let operation = new_operation_id()?;
        let request = ExecutePlanRequest {
            session_id: client.session_id().to_owned(),
            client_observed_server_side_session_id: Some(session.server_id.clone()),
            operation_id: Some(operation.clone()),
            user_context: Some(UserContext { user_id: USER.to_owned(), ..UserContext::default() }),
            plan: Some(Plan { op_type: Some(plan::OpType::Root(relation.clone())) }),
            ..ExecutePlanRequest::default()
        };
        let mut reader = ResponseReader { take, last_response: None, is_complete: false };
        let result = self.read_rows(client, request, &mut reader, stop);
        if matches!(result, Ok(false) | Err(RunError::Tool(_))) {
            // The rest of the rows is not needed.
            self.runtime.block_on(interrupt(client, &operation));
        }
        result.map(|_| ())
    }

    /// Reads the rows of a query. Returns false if no more were wanted.
    fn read_rows(
        &self,
        client: &SparkConnectClient,
        request: ExecutePlanRequest,
        reader: &mut ResponseReader<'_>,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<bool, RunError> {
        let mut again = ReattachExecuteRequest {
            session_id: request.session_id.clone(),
            user_context: request.user_context.clone(),
            operation_id: request.operation_id.clone().unwrap_or_default(),
            client_observed_server_side_session_id: request
                .client_observed_server_side_session_id
                .clone(),
            ..ReattachExecuteRequest::default()
        };
        let mut stream = self.wait(stop, client.execute_plan_reattachable(request))??;
        while let Some(response) = self.wait(stop, stream.message())?? {
            if !reader.read_response(response)? {
                return Ok(false);
            }
        }
        // The server ends a stream after two minutes, also if the query continues.
        while !reader.is_complete {
            again.last_response_id.clone_from(&reader.last_response);
            let mut stream = self.wait(stop, client.reattach_execute(again.clone()))??;
            while let Some(response) =
                self.wait(stop, stream.message())?.map_err(SparkError::from_grpc_status)?
            {
                if !reader.read_response(response)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Waits for a future, and asks from time to time whether its result is still wanted.
    fn wait<T>(
        &self,
        stop: &(dyn Fn() -> bool + Sync),
        future: impl Future<Output = T>,
    ) -> Result<T, ToolError> {
        self.runtime.block_on(async {
            tokio::pin!(future);
            loop {
                if let Ok(result) = tokio::time::timeout(POLL, &mut future).await {
                    return Ok(result);
                }
                if stop() {
                    return Err(ToolError::new(ErrorCode::Cancelled, "The call was cancelled"));
                }
            }
        })
    }

    /// Returns the session, which is opened if there is none.
    fn session(&self, stop: &(dyn Fn() -> bool + Sync)) -> Result<Arc<SparkSession>, RunError> {
        let known = self.session.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(session) = known {
            return Ok(session);
        }
        let mut client = self.wait(stop, SparkConnectClient::connect(&self.builder))??;
        client.set_retry_policy(RetryPolicy {
            max_retries: Some(RETRIES),
            initial_backoff_ms: 200,
            ..RetryPolicy::default()
        });
        let applied = self.wait(stop, client.config(settings_request(client.session_id())))??;
        let session = Arc::new(SparkSession { client, server_id: applied.server_side_session_id });
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&session));
        Ok(session)
    }

    /// The next query opens another session.
    fn forget_session(&self) {
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Returns the request that applies the settings to a session.
fn settings_request(session_id: &str) -> ConfigRequest {
    let pairs = SETTINGS.iter().map(|(name, value)| KeyValue {
        key: (*name).to_owned(),
        value: Some((*value).to_owned()),
    });
    let set = config_request::Set { pairs: pairs.collect(), ..config_request::Set::default() };
    ConfigRequest {
        session_id: session_id.to_owned(),
        user_context: Some(UserContext { user_id: USER.to_owned(), ..UserContext::default() }),
        operation: Some(config_request::Operation { op_type: Some(OpType::Set(set)) }),
        ..ConfigRequest::default()
    }
}

/// Interrupts a query. The server may not know it yet if it was sent a moment ago.
async fn interrupt(client: &SparkConnectClient, operation: &str) {
    for _ in 0..INTERRUPT_ATTEMPTS {
        let interrupted = client.interrupt_operation(operation).await;
        if interrupted.map_or(true, |ids| !ids.is_empty()) {
            return;
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Reads the responses to one query.
struct ResponseReader<'t> {
    /// Gets the rows; false ends the query.
    take: &'t mut dyn FnMut(RecordBatch) -> Result<bool, ToolError>,
    /// The id of the last response, after which a new stream continues.
    last_response: Option<String>,
    /// True if all responses were read.
    is_complete: bool,
}

impl ResponseReader<'_> {
    /// Reads a response. Returns false if no more rows are wanted.
    fn read_response(&mut self, response: ExecutePlanResponse) -> Result<bool, ToolError> {
        self.last_response = Some(response.response_id);
        let rows = match response.response_type {
            Some(ResponseType::ArrowBatch(rows)) => rows,
            Some(ResponseType::ResultComplete(_)) => {
                self.is_complete = true;
                return Ok(true);
            }
            // Schemas, metrics and progress.
            Some(_) | None => return Ok(true),
        };
        let reader = StreamReader::try_new(Cursor::new(rows.data), None);
        for batch in reader.map_err(|error| broken_rows(&error.to_string()))? {
            let batch = batch.map_err(|error| broken_rows(&error.to_string()))?;
            if !(self.take)(batch)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Returns a random id, by which a running query can be interrupted: a UUID of version 4.
fn new_operation_id() -> Result<String, ToolError> {
    let mut bytes = random_bytes::<16>().map_err(|error| {
        let message = format!("An id for the query could not be created: {error}. Try again");
        ToolError::new(ErrorCode::InternalError, message)
    })?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let digits = format!("{:032x}", u128::from_be_bytes(bytes));
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    Ok(parts.join("-"))
}

fn broken_rows(reason: &str) -> ToolError {
    let message = format!("Spark sent rows that cannot be read: {reason}");
    ToolError::new(ErrorCode::InternalError, message)
}
