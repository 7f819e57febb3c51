//! The texts by which the picker finds sessions in memory: title, project, branch and id, in lower case.
//! They are prepared once for each generation of the store, and not at each key.

use std::cmp::Reverse;

use schemas::session::SessionRow;

use store::{Snapshot, StoreError};

/// The texts of the sessions that the picker lists, the newest session first.
#[derive(Default)]
pub(super) struct TitleIndex {
    /// The generation of the store and its number of sessions, which differs if the store was replaced;
    /// `None` before the first use.
    prepared: Option<(u64, usize)>,
    titles: Vec<Title>,
}

struct Title {
    /// The position of the session in the snapshot.
    session: usize,
    text: String,
}

impl TitleIndex {
    /// Prepares the texts of a snapshot, unless they are those of its generation already.
    pub(super) fn update(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
        let sessions = snapshot.sessions();
        let current = Some((snapshot.manifest().generation, sessions.len()));
        if self.prepared == current {
            return Ok(());
        }
        let rows = snapshot.read_rows()?.into_iter().enumerate();
        let own = rows.filter(|(_, row)| row.is_conversation() && !row.is_subagent());
        self.titles = own.map(|(session, row)| Title { session, text: title_text(row) }).collect();
        self.titles.sort_by_key(|title| Reverse(sessions[title.session].ended_at));
        self.prepared = current;
        Ok(())
    }

    /// Returns the positions of the sessions whose text has all words, the newest first. The words are
    /// in lower case.
    pub(super) fn find<'t>(&'t self, words: &'t [String]) -> impl Iterator<Item = usize> + 't {
        let has_words = |title: &&Title| words.iter().all(|word| title.text.contains(word));
        self.titles.iter().filter(has_words).map(|title| title.session)
    }
}

/// Returns what a session is found by, in lower case.
fn title_text(row: &SessionRow) -> String {
    let mut text = row.session_id.to_lowercase();
    for place in [&row.title, &row.project, &row.git_branch].into_iter().flatten() {
        text.push('\n');
        text.push_str(&place.to_lowercase());
    }
    text
}
