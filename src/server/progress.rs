//! Waits for a call, sends the client progress notifications in the meantime, and gives up when the
//! call takes too long.

use std::time::Duration;

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::{Peer, RoleServer};
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval_at, sleep};

/// Interval between the progress notifications of a long call.
const NOTIFICATION_PERIOD: Duration = Duration::from_secs(1);

/// A call ends itself at its time limit. The server waits for this much longer, then gives up.
const MAX_OVERRUN: Duration = Duration::from_secs(2);

/// Returns the result of `work`, or `None` if it panics or does not finish in time. `token`
/// identifies the call to the client, if it wants progress notifications.
pub(super) async fn wait_with_progress<T>(
    mut work: JoinHandle<T>,
    client: &Peer<RoleServer>,
    token: Option<ProgressToken>,
    tool: &str,
    limit: Duration,
) -> Option<T> {
    let mut ticks = interval_at(Instant::now() + NOTIFICATION_PERIOD, NOTIFICATION_PERIOD);
    let end = sleep(limit + MAX_OVERRUN);
    tokio::pin!(end);
    let mut seconds = 0_u32;

    loop {
        tokio::select! {
            result = &mut work => return result.ok(),
            () = &mut end => return None,
            _ = ticks.tick(), if token.is_some() => {
                seconds += 1;
                if let Some(token) = &token {
                    let progress = ProgressNotificationParam::new(token.clone(), f64::from(seconds))
                        .with_total(limit.as_secs_f64())
                        .with_message(format!("{tool} has been running for {seconds} s"));
                    // A client that left needs no notification.
                    let _ = client.notify_progress(progress).await;
                }
            }
        }
    }
}
