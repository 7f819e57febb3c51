//! Describes sessions that do not have a file to themselves: they are spread over several files, or
//! share a database with others. Each is assembled into one document, which is then read like a
//! file.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use schemas::problem::ProblemKind;

/// One way in which an agent stores sessions that do not have a file to themselves. A format lists
/// the fields that differ from [`Assembly::NONE`].
pub struct Assembly {
    /// Name that distinguishes this assembly from others.
    pub name: &'static str,
    /// Whether several sessions share a file. The path of such a session is `<file>#<session id>`.
    pub shares_file: bool,
    /// The end of the names of all files that contain such sessions. Most files of a scan have
    /// another one, and are not examined further.
    pub source_suffix: &'static str,
    /// Returns whether the file at a path, whose name has this end, contains such sessions.
    pub is_source: fn(&Path) -> bool,
    /// Returns whether a folder contains only parts of sessions. Such folders are not searched.
    pub is_part: fn(&Path) -> bool,
    /// Lists the sessions in a file, and what is wrong with the file.
    pub sessions: fn(&Path) -> io::Result<SessionList>,
    /// Returns what the reader of a file leaves out without an error, in a sentence. `None` if it
    /// reads all of the file.
    pub find_defect: fn(&Path) -> Option<String>,
    /// Returns the document of the session at a path. The same session gives the same bytes.
    pub assemble: fn(&Path) -> io::Result<Vec<u8>>,
    /// The tables with the rows of a session. `None` if the rows cannot be put back or replaced.
    pub rows: Option<RowTables>,
}

/// The tables with the rows of a session. All tables with a column `session_id` have some, too.
#[derive(Debug)]
pub struct RowTables {
    /// The name of the program that keeps the database.
    pub agent: &'static str,
    /// The tables whose rows are the session itself, and the column with its id.
    pub sessions: &'static [(&'static str, &'static str)],
    /// The other tables whose rows name the session in another column than `session_id`, and this column.
    pub named: &'static [(&'static str, &'static str)],
    /// Tables with a row that several sessions need, its key, and the column of the session that names it.
    pub shared: &'static [(&'static str, &'static str, &'static str)],
    /// The table of values with the session in their keys, the column of the key, and the beginnings of
    /// these keys before the id.
    pub values: Option<(&'static str, &'static str, &'static [&'static str])>,
}

impl RowTables {
    /// Returns the tables of a database with one row of a session in a table, by the column `id`.
    pub const fn new(
        agent: &'static str,
        sessions: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self { agent, sessions, named: &[], shared: &[], values: None }
    }
}

impl Assembly {
    /// Files of several sessions, none of which has parts, defects or rows that are known.
    pub(crate) const NONE: Self = Self {
        name: "",
        shares_file: true,
        source_suffix: "",
        is_source: |_| false,
        is_part: |_| false,
        sessions: |_| Ok(SessionList { sessions: Vec::new(), defects: Vec::new() }),
        find_defect: |_| None,
        assemble: |_| Err(io::ErrorKind::NotFound.into()),
        rows: None,
    };

    /// Returns whether the file at a path contains such sessions.
    pub fn has_source(&self, path: &Path) -> bool {
        path.as_os_str().as_encoded_bytes().ends_with(self.source_suffix.as_bytes())
            && (self.is_source)(path)
    }
}

/// The sessions in a file.
pub struct SessionList {
    /// The sessions that were found.
    pub sessions: Vec<AssembledSession>,
    /// What is wrong with the file, if that shows without reading the sessions.
    pub defects: Vec<SourceDefect>,
}

impl From<Vec<AssembledSession>> for SessionList {
    /// Returns the list of a file without defects.
    fn from(sessions: Vec<AssembledSession>) -> Self {
        Self { sessions, defects: Vec::new() }
    }
}

/// Something that is wrong with a file of several sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceDefect {
    /// The kind of problem. Sessions that are missing in a file with a defect of the kind
    /// [`ProblemKind::Unreadable`] do not count as deleted.
    pub kind: ProblemKind,
    /// What is wrong and what to do, in a sentence.
    pub message: String,
}

/// A session that does not have a file to itself.
pub struct AssembledSession {
    /// The path under which the session is known.
    pub path: PathBuf,
    /// Approximate size of the document in bytes.
    pub bytes: u64,
    /// Time of the latest change, in microseconds since 1970.
    pub updated_us: i64,
}

impl PartialEq for Assembly {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Assembly {}

impl fmt::Debug for Assembly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
