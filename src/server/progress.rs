//! Waits for a call, tells the client meanwhile that it goes on, and gives up when it takes too
//! long.

use std::time::Duration;

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::{Peer, RoleServer};
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval_at, sleep};

/// The client hears of a call that takes long this often.
const PERIOD: Duration = Duration::from_secs(1);

/// A call ends itself when its time is over; this much later it is not waited for any more.
const GRACE: Duration = Duration::from_secs(2);

/// The result of `work`; `None` when it does not come. `token` is what the client knows the call
/// by, if it wants to hear of it.
pub(super) async fn wait<T>(
    mut work: JoinHandle<T>,
    client: &Peer<RoleServer>,
    token: Option<ProgressToken>,
    tool: &str,
    limit: Duration,
) -> Option<T> {
    let mut ticks = interval_at(Instant::now() + PERIOD, PERIOD);
    let end = sleep(limit + GRACE);
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
                    // A client that is gone needs none.
                    let _ = client.notify_progress(progress).await;
                }
            }
        }
    }
}
