//! What went wrong while reading logs: stable kinds, one row per finding.

use serde::{Deserialize, Serialize};

use crate::closed_enum::closed_enum;

closed_enum! {
    /// Kinds of problems; public, so a change is a change of the contract.
    ProblemKind {
        /// A line that is no JSON; it costs that line only.
        BadJson = "bad_json",
        /// Valid JSON that is no object.
        NotAnObject = "not_an_object",
        /// Invalid UTF-8 inside a record; the bytes were replaced, the record kept.
        InvalidUtf8 = "invalid_utf8",
        /// Raw control characters inside a record, NUL among them; escaped, the record kept.
        ControlCharacters = "control_characters",
        /// Half a surrogate pair in an escape; replaced, the record kept.
        LoneSurrogate = "lone_surrogate",
        /// A record larger than the decoder takes; kept as a notification that says where it lies.
        OversizedRecord = "oversized_record",
        /// A document larger than the decoder takes; not read.
        OversizedDocument = "oversized_document",
        /// A file or folder that could not be read.
        Unreadable = "unreadable",
        /// A compressed log of which only the beginning was read: it is damaged, or unpacks to more
        /// than any log.
        UnpackedInPart = "unpacked_in_part",
        /// A log file that no decoder knows.
        UnknownFormat = "unknown_format",
        /// A record on which the decoder failed, which is a defect of it; the records around it are kept.
        DecoderFailed = "decoder_failed",
        /// The file ends inside a record; what is there is read when the rest arrives.
        IncompleteLine = "incomplete_line",
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The file as it was opened.
    pub path: String,
    /// 1-based line; 0 when the whole file is meant.
    pub line: u64,
    /// Byte offset of the record in the file.
    pub byte: u64,
    /// The kind of problem.
    pub kind: ProblemKind,
    /// What is wrong, without text from the log.
    pub message: String,
}
