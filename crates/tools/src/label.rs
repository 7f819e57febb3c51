//! Runs `update_session_labels`, which applies or refuses each update independently.

use ingest::redact::columns::mask_name;
use ingest::redact::{Redactor, SecretCounts};
use schemas::envelope::{Severity, Warning, WarningCode};
use schemas::tool::label::{LabelArgs, LabelData, LabelUpdate, Labelled, Unlabelled};
use schemas::{ErrorCode, ToolError, limits};

use super::reply::answer::{Reply, RowTotal};
use super::reply::budget::Budget;
use super::reply::call::Call;
use super::reply::tools::Tools;
use crate::error::store_error;
use base::sanitize::clean_text;
use store::{LabelBook, SessionLabels, Snapshot};

/// Applies the updates. `notice` is what the user should know about the store's folder.
pub(super) fn run(
    tools: &Tools,
    snapshot: &Snapshot,
    args: &LabelArgs,
    notice: Option<String>,
    call: &Call<'_>,
) -> Result<Reply<LabelData>, ToolError> {
    let count = args.updates.len();
    if !(1..=limits::LABEL_UPDATES_MAX).contains(&count) {
        let valid = format!("1-{} updates", limits::LABEL_UPDATES_MAX);
        return Err(ToolError::invalid_value("updates", &format!("{count} updates"), &[&valid]));
    }
    let redactor = tools.masking.map(|masking| masking()).transpose()?;
    let redactor = redactor.as_deref();
    let checked = args.updates.iter().map(|update| check_update(tools, snapshot, redactor, update));
    let changes: Vec<Result<LabelUpdate, ToolError>> = checked.collect();
    call.ensure_running()?;
    let results: Vec<Result<Labelled, ToolError>> = tools
        .store
        .update_labels(|labels| {
            if let Some(redactor) = redactor {
                labels.mask_again(redactor);
            }
            let changes = changes.into_iter();
            changes.map(|change| change_labels(labels, change?, call.now.0)).collect()
        })
        .map_err(store_error)?;

    let mut data = LabelData::default();
    let mut budget = Budget::new(limits::ANSWER_BYTES);
    let mut has_cut_labels = false;
    for (result, update) in results.into_iter().zip(&args.updates) {
        match result {
            Ok(mut labelled) => {
                if !budget.take(&labelled) {
                    labelled.labels = Vec::new();
                    has_cut_labels = true;
                }
                data.succeeded.push(labelled);
            }
            Err(error) => data.failed.push(Unlabelled {
                session_id: clean_text(&update.session_id).chars().take(100).collect(),
                code: error.code,
                message: error.message.chars().take(300).collect(),
            }),
        }
    }

    let mut reply = Reply::new(data, count);
    reply.total = Some(RowTotal::Exact(count));
    let interface = tools.caller.interface;
    reply.hint = Some(format!(
        "{} lists labelled sessions; label:name limits a search to them.",
        interface.format_call("list_sessions", &[("label", "...")])
    ));
    if let Some(notice) = notice {
        let code = WarningCode::StoreNotPrivate;
        reply.warnings.push(Warning::new(code, Severity::Warning, notice));
    }
    if has_cut_labels {
        let list = interface.format_call("list_sessions", &[("session_ids", "[...]")]);
        let message = format!("Not all labels are shown; {list} shows them");
        let warning = Warning::new(WarningCode::ResultsTruncated, Severity::Info, message);
        reply.warnings.push(warning);
    }
    Ok(reply)
}

/// Changes the labels of one session in the book, and returns all its labels.
fn change_labels(
    book: &mut LabelBook,
    change: LabelUpdate,
    now: i64,
) -> Result<Labelled, ToolError> {
    let session_labels = book.entry(&change.session_id);
    *session_labels = apply_change(session_labels, &change, now)?;
    Ok(Labelled { session_id: change.session_id, labels: session_labels.labels.clone() })
}

/// Returns an update with the whole id of its session and with its words as they are stored.
fn check_update(
    tools: &Tools,
    snapshot: &Snapshot,
    redactor: Option<&Redactor>,
    update: &LabelUpdate,
) -> Result<LabelUpdate, ToolError> {
    let session = tools.caller.find_session(snapshot, &update.session_id)?;
    if update.add.is_none() && update.remove.is_none() && update.note.is_none() {
        let message = "Nothing to do: give add, remove or note";
        return Err(ToolError::new(ErrorCode::InvalidArgument, message));
    }
    Ok(LabelUpdate {
        session_id: snapshot.sessions()[session].id().to_owned(),
        add: checked_labels("add", redactor, update.add.as_deref())?,
        remove: checked_labels("remove", redactor, update.remove.as_deref())?,
        note: update.note.as_deref().map(|text| checked_note(redactor, text)).transpose()?,
    })
}

/// Returns the labels of one list of an update, as they are stored.
fn checked_labels(
    field: &str,
    redactor: Option<&Redactor>,
    labels: Option<&[String]>,
) -> Result<Option<Vec<String>>, ToolError> {
    let Some(labels) = labels else { return Ok(None) };
    labels
        .iter()
        .map(|label| checked_label(field, redactor, label))
        .collect::<Result<_, _>>()
        .map(Some)
}

/// Returns a label as it is stored. Secrets are masked before the length is checked, because an agent
/// may write down a secret that it read in a log. Commas and quotes are refused because they would end
/// the label in a query.
fn checked_label(
    field: &str,
    redactor: Option<&Redactor>,
    text: &str,
) -> Result<String, ToolError> {
    let word = clean_text(text).trim().to_owned();
    let masked = mask_name(redactor, &word);
    let length = masked.chars().count();
    if (1..=limits::LABEL_CHARS).contains(&length) && !word.contains([',', '"', '\n', '\t']) {
        return Ok(masked);
    }
    let valid =
        format!("1-{} characters without commas, quotes and line breaks", limits::LABEL_CHARS);
    Err(ToolError::invalid_value(field, &masked, &[&valid]))
}

/// Returns a note as it is stored, with its secrets masked.
fn checked_note(redactor: Option<&Redactor>, text: &str) -> Result<String, ToolError> {
    let mut note = clean_text(text).trim().to_owned();
    if let Some(redactor) = redactor {
        note = redactor.mask(&note, &mut SecretCounts::default()).into_owned();
    }
    match note.chars().count() {
        0..=limits::NOTE_CHARS => Ok(note),
        length => {
            let valid = format!("up to {} characters", limits::NOTE_CHARS);
            Err(ToolError::invalid_value("note", &format!("{length} characters"), &[&valid]))
        }
    }
}

/// Returns the labels of a session after a change.
fn apply_change(
    session_labels: &SessionLabels,
    change: &LabelUpdate,
    now: i64,
) -> Result<SessionLabels, ToolError> {
    let mut next = session_labels.clone();
    for label in change.remove.iter().flatten() {
        let label = label.to_lowercase();
        next.labels.retain(|own| own.to_lowercase() != label);
    }
    for label in change.add.iter().flatten() {
        if !next.has_label(label) {
            next.labels.push(label.clone());
        }
    }
    if next.labels.len() > limits::LABELS_MAX {
        let valid = format!("at most {} labels on a session", limits::LABELS_MAX);
        let count = format!("{} labels", next.labels.len());
        return Err(ToolError::invalid_value("add", &count, &[&valid]));
    }
    next.labels.sort_unstable();
    if let Some(note) = &change.note {
        next.note = (!note.is_empty()).then(|| note.clone());
    }
    if next != *session_labels {
        next.updated_at = now;
    }
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(add: &[&str], remove: &[&str], note: Option<&str>) -> LabelUpdate {
        let own = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect());
        let note = note.map(str::to_owned);
        LabelUpdate { session_id: String::new(), add: own(add), remove: own(remove), note }
    }

    #[test]
    fn labels_are_a_set_and_what_is_removed_goes_first() {
        let none = SessionLabels::default();
        let one = apply_change(&none, &change(&["b", "a", "A"], &[], Some("why")), 7).expect("few");
        assert_eq!((one.labels.join(" ").as_str(), one.updated_at), ("a b", 7));
        let same = apply_change(&one, &change(&["B"], &["c"], None), 9).expect("few");
        assert_eq!(same, one, "nothing changed, so its time stays too");
        let two = apply_change(&one, &change(&["a"], &["A", "b"], Some("")), 9).expect("few");
        assert_eq!((two.labels.join(" ").as_str(), two.note), ("a", None));
        let many: Vec<String> = (0..21).map(|n| n.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(apply_change(&none, &change(&many, &[], None), 0).is_err());
    }

    #[test]
    fn words_are_clean_and_short() {
        assert_eq!(
            checked_label("add", None, " needs\u{200b} review ").ok().as_deref(),
            Some("needs review")
        );
        let long = "x".repeat(41);
        for text in ["", " ", "a,b", "a\nb", "\"a\"", long.as_str()] {
            let error = checked_label("add", None, text).expect_err(text);
            assert_eq!(error.details["field"], "add");
        }
        assert!(checked_note(None, &"x".repeat(1001)).is_err() && checked_note(None, "").is_ok());
    }
}
