//! The store: immutable Parquet segments and one catalog (docs/store.md).
//!
//! A reader takes a [`Snapshot`] and sees one generation. A [`StoreWriter`] holds the lock, adds
//! segments and commits to the catalog. Neither waits for the other. The store does not know about
//! searches, tools or formats of logs.

mod archive;
mod catalog;
mod compact;
mod condition;
mod damage;
mod disk;
mod error;
mod export;
mod folder;
mod forget;
mod forget_plan;
mod forgotten;
mod forgotten_rows;
mod hook_log;
mod identity;
mod index;
mod ingest_target;
mod labels;
mod lake;
mod lake_state;
mod large_segments;
mod latest_sessions;
mod lookup;
mod lost_logs;
mod manifest;
mod open_store;
mod out_of_force;
mod parquet_file;
mod redact_again;
mod reduce;
mod reduced_sessions;
mod reduced_writes;
mod responses;
mod retention;
mod rewrite;
mod scrubbed;
mod segment;
mod session_events;
mod session_rewriter;
mod short_id;
mod snapshot;
mod sources;
mod span_index;
mod table_file;
mod thrift;
mod user_file;
mod visible;
mod writer;

pub use archive::{
    ArchiveRules, ArchivedFile, ForeignLog, KeepLogs, LogArchive, LogOrigin, UnpackError,
};
pub use condition::{FoundFiles, StoreCondition};
pub use damage::Verify;
pub use error::{StoreError, UserFile};
pub use export::{LakeObject, encode_lake_objects, file_stem, write_arrow};
pub use folder::{LOG_BACKUP_FOLDER, is_store};
pub use forget_plan::{ForgetPlan, StoredCopy};
pub use forgotten::ForgottenLogs;
pub use hook_log::{HookLog, HookLogRow};
pub use identity::Identity;
pub use index::{
    Block, Grams, KnownRows, RowFacts, RowOutline, RowTags, SHORTEST_WORD, SkipIndex, WordLookup,
    WordPattern, needle_grams,
};
pub use labels::{LabelBook, LabelRow, SessionLabels};
pub use lake::continued::{ContinuingLog, LogCopies};
pub use lake::copies::{CopyMarks, OutdatedCopy};
pub use lake::decode::{
    MAX_OBJECT_BYTES, batch_bytes, check_events, decode_events, decode_joined, order_events,
    slice_joined,
};
pub use lake::encode::{LakeContent, LakeFile};
pub use lake::history::EventHistory;
pub use lake::import::{ImportOutcome, LakeImport};
pub use lake::imported_from::ImportedFrom;
pub use lake::joined::{JoinedFiles, JoinedWriter};
pub use lake::keys::{
    DAYS, KEY_DIGITS, LAKE_PATH, MACHINES, TOMBSTONES, day_folder, day_key, events_date,
    is_events_key, is_index_key, is_joined_key, is_log_key, is_session_key, joined_keys, json_name,
    key_with_hash, listing_key, log_key, row_publisher, session_folder, session_key, tombstone_key,
};
pub use lake::log_object::{MAX_LOG_BYTES, PublishedFile, PublishedLog, Repository};
pub use lake::open_lake_index;
pub use lake::session_object::PublishedSession;
pub use lake_state::LakeStateFile;
pub use large_segments::GROUP_BYTES;
pub use lookup::LookupError;
pub use manifest::{LostLogs, Manifest, SegmentEntry};
pub use open_store::{SessionRule, Store};
pub use parquet_file::ParquetFile;
pub use redact_again::{MaskedAgain, RowsToMask};
pub use reduced_sessions::{KeepLevel, KeepLevels, ReducedSessions};
pub use retention::{CompactionSums, DroppedTexts};
pub use segment::event_reader::{
    EventReader, RowSpan, column_of, flag_column, number_column, text_column, value_at,
};
pub use segment::events_footer::TextPage;
pub use segment::open_segment::{Segment, SessionSpan};
pub use segment::pages::{PageReader, TextValues};
pub use segment::session_summary::{SessionOrigin, SessionSummary};
pub use segment::session_table::StoredSession;
pub use segment::source_table::{SourceSummary, SourceTable};
pub use session_events::{ALL_EVENTS, SessionEvents, single_event_ranges};
pub use snapshot::Snapshot;
pub use sources::OwnLog;
pub use table_file::{TableFile, TableFileForm};
pub use writer::StoreWriter;
