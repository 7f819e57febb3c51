//! Judges what a hook said by what the session did next.

use std::collections::{HashMap, HashSet};

use schemas::hook::HookName;
use schemas::table::EventColumn;
use schemas::{EventId, EventType};
use sessions::hooks::HookAnswer;
use store::{ALL_EVENTS, Snapshot};
use tools::{KnownFix, find_fix_of_event};

use super::calls::ReplayedCall;

/// What became of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// The session that was quoted worked on a file of this session, or failed with the same error.
    pub(crate) is_related: bool,
    /// The session made the call work later on.
    pub(crate) was_fixed: bool,
    /// It did so in the way that was quoted.
    pub(crate) was_fixed_this_way: bool,
}

/// Compares answers with what happened.
pub(crate) struct Judge<'s> {
    snapshot: &'s Snapshot,
    /// The names of the files of each session.
    files: HashMap<usize, HashSet<String>>,
}

impl<'s> Judge<'s> {
    pub(crate) fn new(snapshot: &'s Snapshot) -> Self {
        Self { snapshot, files: HashMap::new() }
    }

    pub(crate) fn judge(&mut self, call: &ReplayedCall, answer: &HookAnswer) -> Verdict {
        match call.input.hook {
            HookName::PostToolFailure => {
                let live = self.fix_at(call.session, call.event_index);
                self.compare(live.as_ref(), answer)
            }
            HookName::PreTool => {
                let failed = self.find_failure_of(call);
                let live = failed.and_then(|result| self.fix_at(call.session, result));
                Verdict { is_related: failed.is_some(), ..self.compare(live.as_ref(), answer) }
            }
            HookName::SessionStart | HookName::Prompt => {
                Verdict { is_related: self.shares_file(call.session, answer), ..Verdict::default() }
            }
            HookName::PreCompact | HookName::SessionEnd => Verdict::default(),
        }
    }

    /// Compares how a failure was fixed with the fix in an answer.
    fn compare(&self, live: Option<&KnownFix>, answer: &HookAnswer) -> Verdict {
        let quoted = answer.ids.first().and_then(|id| id.parse::<EventId>().ok()).and_then(|id| {
            let session = self.snapshot.session_position(&id.session)?;
            self.fix_at(session, id.index)
        });
        let is_same =
            live.zip(quoted.as_ref()).is_some_and(|(live, quoted)| quoted.is_same_way(live));
        Verdict { is_related: true, was_fixed: live.is_some(), was_fixed_this_way: is_same }
    }

    fn fix_at(&self, session: usize, event_index: u32) -> Option<KnownFix> {
        find_fix_of_event(self.snapshot, session, event_index).expect("reads")
    }

    /// Returns the result of a call if it failed.
    fn find_failure_of(&self, call: &ReplayedCall) -> Option<u32> {
        let rows = self.snapshot.events_of(
            call.session,
            std::slice::from_ref(&(call.event_index..call.event_index + 60)),
            &[
                EventColumn::EventIndex,
                EventColumn::EventType,
                EventColumn::ToolCallId,
                EventColumn::IsError,
            ],
        );
        let rows = rows.read_rows().expect("reads");
        let id = rows.first()?.tool_call_id.clone()?;
        let result = rows.iter().find(|row| {
            row.event_type == EventType::ToolResult && row.tool_call_id.as_ref() == Some(&id)
        })?;
        (result.is_error == Some(true)).then(|| u32::try_from(result.event_index).unwrap_or(0))
    }

    /// Returns true if a quoted session worked on a file of the session that asked.
    fn shares_file(&mut self, session: usize, answer: &HookAnswer) -> bool {
        let mut quoted: Vec<usize> = Vec::new();
        for id in &answer.ids {
            let session = id.rsplit_once(':').map_or(id.as_str(), |(session, _)| session);
            quoted.extend(self.snapshot.session_position(session));
        }
        let own = self.files_of(session).clone();
        quoted.into_iter().any(|other| !self.files_of(other).is_disjoint(&own))
    }

    /// Returns the paths of the files that a session names, relative to its folder.
    fn files_of(&mut self, session: usize) -> &HashSet<String> {
        let snapshot = self.snapshot;
        self.files.entry(session).or_insert_with(|| {
            let folder = snapshot.sessions()[session].origin.cwd.clone().unwrap_or_default();
            let rows = snapshot.events_of(session, ALL_EVENTS, &[EventColumn::Files]);
            let rows = rows.read_rows().expect("reads");
            let files = rows.into_iter().flat_map(|row| row.files.unwrap_or_default());
            files.map(|file| file.trim_start_matches(&folder).to_owned()).collect()
        })
    }
}
