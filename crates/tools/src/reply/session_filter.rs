//! Selects sessions by project, provider and time, the same way for every tool.

use schemas::Provider;

use store::{SessionSummary, Snapshot};

/// Returns the filter that selects sessions. A criterion that is `None` selects all of them.
/// `since` selects the sessions whose last event is not before this time, in microseconds.
pub fn session_filter(
    project: Option<&str>,
    provider: Option<Provider>,
    since: Option<i64>,
) -> impl Fn(&SessionSummary) -> bool {
    // A folder may be given with a trailing slash, and with the separators of any system.
    let project = project
        .map(|project| project.trim_end_matches(['/', '\\']).replace('\\', "/").to_lowercase());
    move |session| {
        let is_in_project = project.as_ref().is_none_or(|wanted| {
            [&session.origin.cwd, &session.origin.project, &session.origin.repository]
                .into_iter()
                .flatten()
                .any(|place| contains_in_any_case(place, wanted))
        });
        is_in_project
            && provider.is_none_or(|wanted| session.provider == wanted)
            && since.is_none_or(|since| session.ended_at.is_some_and(|end| end >= since))
    }
}

/// Returns whether `text` contains `wanted`, which is in lower case, with slashes for backslashes. It is asked for every session of a
/// long history several times in a call.
fn contains_in_any_case(text: &str, wanted: &str) -> bool {
    if !text.is_ascii() || wanted.is_empty() || text.contains('\\') {
        return text.replace('\\', "/").to_lowercase().contains(wanted);
    }
    let text = text.as_bytes();
    let wanted = wanted.as_bytes();
    let mut starts = memchr::memchr2_iter(wanted[0], wanted[0].to_ascii_uppercase(), text);
    starts.any(|start| {
        let part = text.get(start..start + wanted.len());
        part.is_some_and(|part| part.eq_ignore_ascii_case(wanted))
    })
}

/// Returns the filter that selects sessions by a part of the name of their machine and of their user,
/// in any case. A criterion that is `None` selects all of them.
pub fn origin_filter(
    snapshot: &Snapshot,
    machine: Option<&str>,
    user: Option<&str>,
) -> impl Fn(&SessionSummary) -> bool {
    let local = snapshot.identity().clone();
    let machine = machine.map(|machine| machine.trim().to_lowercase());
    let user = user.map(|user| user.trim().to_lowercase());
    move |session| {
        let is_of_machine = machine
            .as_ref()
            .is_none_or(|wanted| local.machine_of(session).to_lowercase().contains(wanted));
        is_of_machine
            && user
                .as_ref()
                .is_none_or(|wanted| local.user_of(session).to_lowercase().contains(wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_found_in_any_case() {
        for (text, wanted, is_found) in [
            ("/home/Mira/Harbor", "harbor", true),
            ("/home/Mira/Harbor", "arbour", false),
            ("H\u{dc}TTE", "h\u{fc}tte", true),
            ("HARBOR", "h\u{fc}tte", false),
            ("x", "xy", false),
            ("x", "", true),
        ] {
            assert_eq!(contains_in_any_case(text, wanted), is_found, "{text} {wanted}");
        }
    }
}
