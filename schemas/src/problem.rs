//! Problems found while reading logs, each of a stable kind.

use serde::{Deserialize, Serialize};

use crate::closed_enum::closed_enum;

closed_enum! {
    /// The kind of a problem. The kinds are public, so a change is a change of the contract.
    ProblemKind {
        /// A line that is not JSON; only that line is lost.
        BadJson = "bad_json",
        /// Valid JSON that is not an object.
        NotAnObject = "not_an_object",
        /// Invalid UTF-8 inside a record; the bytes were replaced and the record was kept.
        InvalidUtf8 = "invalid_utf8",
        /// Raw control characters inside a record, such as NUL; they were escaped and the record was
        /// kept.
        ControlCharacters = "control_characters",
        /// Half a surrogate pair in an escape; it was replaced and the record was kept.
        LoneSurrogate = "lone_surrogate",
        /// A record larger than the decoder takes, or one of the largest of a session that is larger
        /// than that; it was kept as a notification that says where it is or how large.
        OversizedRecord = "oversized_record",
        /// Records of which the log has too many to show each: equal ones in a row, or ones of
        /// unknown types. They are counted.
        RecordsLeftOut = "records_left_out",
        /// A record without a field that all records of its kind have, or whose session or message
        /// is not in the log; the rest of it was kept, unless its session is missing.
        IncompleteRecord = "incomplete_record",
        /// A document larger than the decoder takes; it was not read.
        OversizedDocument = "oversized_document",
        /// A file or folder that could not be read.
        Unreadable = "unreadable",
        /// A compressed log that was read in part only: it is damaged, or unpacks to more than any
        /// log.
        UnpackedInPart = "unpacked_in_part",
        /// A log file that no decoder knows.
        UnknownFormat = "unknown_format",
        /// A record on which the decoder failed, which is a bug; the records around it were kept.
        DecoderFailed = "decoder_failed",
        /// The file ends inside a record; the record is read when the rest arrives.
        IncompleteLine = "incomplete_line",
    }
}

/// A problem found in a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The file as it was opened.
    pub path: String,
    /// 1-based line; 0 if the whole file is meant.
    pub line: u64,
    /// Byte offset of the record in the file.
    pub byte: u64,
    /// The kind of problem.
    pub kind: ProblemKind,
    /// What is wrong, without text from the log.
    pub message: String,
}
