//! Says what is certain of a restored file.

use base::numbers::count_of;
use base::sanitize::one_line;
use tools::{RestoredFile, WrittenBy};

/// Maximum number of doubts that are listed.
const MAX_DOUBTS: usize = 10;

/// Returns the lines that say where a restored file comes from, and what is certain of it.
pub(crate) fn describe_restored_file(file: &RestoredFile) -> Vec<String> {
    let mut lines = Vec::new();
    let origin = file.origin.as_ref().map(describe_event).unwrap_or_default();
    if file.is_deleted {
        lines.push(format!("An agent deleted the file: {origin}."));
        lines.push("hint: --at EVENT names the call before which it is restored".to_owned());
        return lines;
    }
    if file.content.is_none() {
        lines.push(format!(
            "No session in the store read or wrote {} as a whole.",
            one_line(&file.path)
        ));
        lines
            .push("hint: `sessions search 'file:NAME'` finds the sessions that name it".to_owned());
        return lines;
    }
    if file.is_whole {
        lines.push(format!("The file as a whole: {origin}."));
    } else {
        let ranges: Vec<String> =
            file.lines.iter().map(|[first, last]| format!("{first}-{last}")).collect();
        lines.push(format!(
            "Only the lines {} are known, since {origin}; what is between and after them is missing.",
            ranges.join(", ")
        ));
    }
    if file.edits > 0 {
        let last = file.last.as_ref().map(describe_event).unwrap_or_default();
        lines.push(format!("With {} since, the last one: {last}.", count_of(file.edits, "edit")));
    }
    lines.extend(file.doubts.iter().take(MAX_DOUBTS).map(|doubt| format!("Not certain: {doubt}.")));
    if file.doubts.len() > MAX_DOUBTS {
        let more = file.doubts.len() - MAX_DOUBTS;
        lines.push(format!("Not certain: {more} more reasons, which --json lists."));
    }
    if file.is_certain {
        lines.push(
            "Certain, unless another program changed the file after the agent saw it.".to_owned(),
        );
    }
    if file.masked_secrets > 0 {
        lines.push(format!(
            "It is not the original: {} masked.",
            if file.masked_secrets == 1 {
                "a secret is".to_owned()
            } else {
                format!("{} are", count_of(file.masked_secrets, "secret"))
            }
        ));
    }
    lines
}

fn describe_event(event: &WrittenBy) -> String {
    let time = event.timestamp.as_deref().unwrap_or("at an unknown time");
    format!("{} by {}, {time}", event.event_id, event.provider)
}
