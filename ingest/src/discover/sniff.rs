//! Recognises from the beginning of a file which agent's log it is.

use std::fs::File;
use std::io::{self, Read as _};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::log_head::read_head;
use crate::provider::alias::alias_at;
use crate::provider::format::{LogFormat, LogHead, LogReader, SessionClaim};
use crate::provider::{FORMATS, format_of};
use crate::redact::Redactor;
use crate::source::candidate::Container;
use crate::source::candidate::LogCandidate;
use crate::source::container::{self, Content, lock_giant_document};
use crate::source::panics::catch_panic;

/// Number of files for which one more thread is started.
const FILES_PER_THREAD: usize = 16;

/// A plain file of at most this many bytes is read whole when it is examined. To open and read it
/// again would take as long as to decode it.
const SMALL_FILE_BYTES: u64 = 4 << 10;

/// Maximum number of bytes of small files that are kept until they are decoded. Further ones are
/// opened again.
const MAX_KEPT_BYTES: usize = 48 << 20;

/// The result of examining the beginning of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sniffed {
    /// The file is a log, which says this about itself.
    Log(SessionClaim),
    /// The file holds nothing but whitespace.
    Empty,
    /// No decoder recognises the file; the text is the reason for the report.
    Unknown(&'static str),
}

/// Files that were examined, in their order.
#[derive(Default)]
pub(crate) struct SniffedFiles {
    pub(crate) logs: Vec<ClaimedLog>,
    /// The files that are not read as logs: also documents that are too large. With the result, or
    /// the error of opening or reading the file.
    pub(crate) others: Vec<(LogCandidate, io::Result<Sniffed>)>,
}

/// A log, with what it says about itself.
pub(crate) struct ClaimedLog {
    pub(crate) file: LogCandidate,
    pub(crate) claim: SessionClaim,
    /// The whole content of a small log. `None` if the file must be opened again.
    pub(crate) content: Option<Vec<u8>>,
}

/// Examines the beginning of a log. The ids that it names are cleaned and masked by `redactor`.
///
/// # Errors
/// Returns the errors of opening and reading the file.
///
/// ```rust
/// use ingest::discover::discover;
/// use ingest::discover::sniff::{Sniffed, sniff};
/// use schemas::Provider;
///
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("s1.jsonl");
/// let record = r#"{"type":"user","sessionId":"s1","message":{"role":"user","content":"Hi"}}"#;
/// std::fs::write(&path, record)?;
///
/// let found = discover(&[path]);
/// let Sniffed::Log(claim) = sniff(&found.files[0], None)? else {
///     panic!("not recognised");
/// };
/// assert_eq!(claim.provider, Provider::Claude);
/// assert_eq!(claim.native_id, "s1");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn sniff(file: &LogCandidate, redactor: Option<&Redactor>) -> io::Result<Sniffed> {
    Ok(redact_claim(catch_examine_panic(|| examine_file(file, None))?, redactor))
}

/// Examines the content of an open file in place of that of the log `file`.
///
/// # Errors
/// Returns the errors of reading.
pub(crate) fn sniff_open_file(
    file: &LogCandidate,
    content: &File,
    redactor: Option<&Redactor>,
) -> io::Result<Sniffed> {
    let examine = || {
        let Some(head) = read_head(file, content.try_clone()?)? else { return Ok(Sniffed::Empty) };
        let claim = claim_head(&head);
        Ok(claim.map_or(Sniffed::Unknown("no known agent writes such records"), Sniffed::Log))
    };
    Ok(redact_claim(catch_examine_panic(examine)?, redactor))
}

/// Examines a log whose whole content is known.
pub(crate) fn sniff_content(
    file: &LogCandidate,
    content: &[u8],
    redactor: Option<&Redactor>,
) -> io::Result<Sniffed> {
    Ok(redact_claim(catch_examine_panic(|| examine_file(file, Some(content)))?, redactor))
}

/// Cleans and masks the ids that a log names.
fn redact_claim(sniffed: Sniffed, redactor: Option<&Redactor>) -> Sniffed {
    match sniffed {
        Sniffed::Log(claim) => Sniffed::Log(claim.with_redacted_ids(redactor)),
        Sniffed::Empty => Sniffed::Empty,
        Sniffed::Unknown(reason) => Sniffed::Unknown(reason),
    }
}

/// Sniffs many files on all cores. Returns the results in the order of `files`, in several parts.
pub(crate) fn sniff_all(
    files: Vec<LogCandidate>,
    redactor: Option<&Redactor>,
) -> Vec<SniffedFiles> {
    let threads = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(files.len().div_ceil(FILES_PER_THREAD))
        .max(1);
    let chunk_files = files.len().div_ceil(threads).max(1);

    let mut results = Vec::with_capacity(threads);
    let kept_bytes = &AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let mut others = Vec::with_capacity(threads);
        let mut files = files.into_iter();
        let first: Vec<_> = files.by_ref().take(chunk_files).collect();
        while files.len() > 0 {
            let chunk: Vec<_> = files.by_ref().take(chunk_files).collect();
            others.push(scope.spawn(move || sniff_chunk(chunk, redactor, kept_bytes)));
        }
        results.push(sniff_chunk(first, redactor, kept_bytes));
        for handle in others {
            results.push(handle.join().unwrap_or_default());
        }
    });
    results
}

/// Sniffs logs one after the other. `kept_bytes` is the size of the contents kept so far.
fn sniff_chunk(
    files: Vec<LogCandidate>,
    redactor: Option<&Redactor>,
    kept_bytes: &AtomicUsize,
) -> SniffedFiles {
    let mut results = SniffedFiles { logs: Vec::with_capacity(files.len()), others: Vec::new() };
    for file in files {
        let (sniffed, content) = match read_small_file(&file) {
            Ok(Some(content)) => (sniff_content(&file, &content, redactor), Some(content)),
            Ok(None) => (sniff(&file, redactor), None),
            Err(error) => (Err(error), None),
        };
        match sniffed {
            Ok(Sniffed::Log(claim)) if !is_too_large(&file, &claim) => {
                let content = content.filter(|content| {
                    kept_bytes.fetch_add(content.len(), Ordering::Relaxed) < MAX_KEPT_BYTES
                });
                results.logs.push(ClaimedLog { file, claim, content });
            }
            sniffed => results.others.push((file, sniffed)),
        }
    }
    results
}

/// Returns whether a log is a document that is too large to read.
fn is_too_large(file: &LogCandidate, claim: &SessionClaim) -> bool {
    file.size > container::MAX_DOCUMENT_BYTES
        && matches!(format_of(claim.provider).reader, LogReader::Document(_))
}

/// Returns the content of a small plain file; `None` for all other files.
fn read_small_file(file: &LogCandidate) -> io::Result<Option<Vec<u8>>> {
    if file.container != Container::Plain || file.size > SMALL_FILE_BYTES {
        return Ok(None);
    }
    // What was appended since the file was found is read in the next run.
    let mut content = vec![0; usize::try_from(file.size).unwrap_or(0)];
    match File::open(&file.path)?.read_exact(&mut content) {
        Ok(()) => Ok(Some(content)),
        // The file was cut off meanwhile.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// Runs `examine` and turns a panic, which is a bug in the code, into an error of this file, so that
/// the other files are still read.
fn catch_examine_panic(examine: impl FnOnce() -> io::Result<Sniffed>) -> io::Result<Sniffed> {
    let failed = "examining the file failed, which is a bug in sessions; please report it";
    catch_panic(examine).unwrap_or_else(|| Err(io::Error::other(failed)))
}

/// Offers the beginning of a file to every format. The file is opened unless its whole `content` is
/// given.
fn examine_file(file: &LogCandidate, content: Option<&[u8]>) -> io::Result<Sniffed> {
    let is_assembled = matches!(file.container, Container::Assembled(_));
    let _turn = if is_assembled { lock_giant_document(file.size) } else { None };
    let head = match content {
        Some(content) => read_head(file, content)?,
        None => read_head(file, Content::open_stream(file)?)?,
    };
    let Some(head) = head else { return Ok(Sniffed::Empty) };
    if head.objects.is_empty() && head.document().is_none() {
        return Ok(Sniffed::Unknown("holds no JSON object"));
    }

    let claim = claim_head(&head);
    Ok(claim.map_or(Sniffed::Unknown("no known agent writes such records"), Sniffed::Log))
}

/// Returns the claim of the first format that recognizes the beginning of a file. The names of the
/// folders above the file tell which of the agents with this format wrote it.
pub(super) fn claim_head(head: &LogHead<'_>) -> Option<SessionClaim> {
    let mut readers = FORMATS.iter().filter(|format| may_read(format, head));
    let claim = readers.find_map(|format| (format.sniff)(head))?;
    let provider =
        alias_at(claim.provider, head.path).map_or(claim.provider, |alias| alias.provider);
    Some(SessionClaim { provider, ..claim })
}

/// Returns whether a format may read a file. A list is a document, which no reader of lines can
/// read.
fn may_read(format: &LogFormat, head: &LogHead<'_>) -> bool {
    !head.is_list || matches!(format.reader, LogReader::Document(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use schemas::Provider;

    fn check(name: &str, content: &str, want: Option<(Provider, &str)>) {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join(name);
        std::fs::write(&path, content).expect("writes");
        let got = match sniff(&LogCandidate::from_path(path).expect("there"), None).expect("reads")
        {
            Sniffed::Log(claim) => Some((claim.provider, claim.native_id)),
            Sniffed::Empty | Sniffed::Unknown(_) => None,
        };
        assert_eq!(got, want.map(|(provider, id)| (provider, id.to_owned())), "{content}");
    }

    #[test]
    fn provider_is_told_from_content() {
        let user = r#"{"type":"user","sessionId":"s1","message":{"role":"user","content":"x"}}"#;
        check("x.jsonl", user, Some((Provider::Claude, "s1")));
        check(
            "x.jsonl",
            &format!("\u{feff}{{\"type\":\"mode\",\"sessionId\":\"s2\"}}\r\n{user}"),
            Some((Provider::Claude, "s2")),
        );
        check(
            "x.jsonl",
            r#"{"timestamp":"t","type":"session_meta","payload":{"id":"c1"}}"#,
            Some((Provider::Codex, "c1")),
        );
        check(
            "x.jsonl",
            r#"{"id":"c2","timestamp":"t","instructions":null}"#,
            Some((Provider::Codex, "c2")),
        );
        check(
            "x.json",
            "{\n \"sessionId\": \"g1\",\n \"projectHash\": \"h\",\n \"messages\": [ {\"id\": ",
            Some((Provider::Gemini, "g1")),
        );
        check(
            "x.json",
            r#"{"sessionId":"g2","startTime":"t","messages":[]}"#,
            Some((Provider::Gemini, "g2")),
        );
        check(
            "x.jsonl",
            "{\"sessionId\":\"g3\",\"projectHash\":\"h\"}\n{\"id\":\"1\"}",
            Some((Provider::Gemini, "g3")),
        );
    }

    #[test]
    fn agents_that_borrowed_each_others_shapes_are_told_apart() {
        let check = |line: &str, want| check("x.jsonl", line, Some(want));
        check(
            r#"{"type":"session.start","data":{"sessionId":"x"},"id":"1","timestamp":"t","parentId":null}"#,
            (Provider::Copilot, "x"),
        );
        check(
            r#"{"type":"session","version":3,"id":"x","timestamp":"t","cwd":"/"}"#,
            (Provider::Pi, "x"),
        );
        check(
            r#"{"uuid":"u","sessionId":"s","type":"user","message":{"role":"user","parts":[]}}"#,
            (Provider::Qwen, "s"),
        );
    }

    #[test]
    fn names_that_other_programs_use_do_not_tell_an_agent() {
        let timed = r#"{"role":"user","content":"Hello","timestamp":"2026-06-13T10:00:01Z"}"#;
        let identified = r#"{"role":"user","content":"Hello","message_id":"1"}"#;
        let plain = r#"{"role":"user","content":"Hello"}"#;
        for (path, line, want) in [
            ("runs/42/conversation.jsonl", timed, Provider::Generic),
            ("runs/42/branches/b.jsonl", timed, Provider::Generic),
            ("logs/42/conversation.jsonl", timed, Provider::Gptme),
            ("runs/43/messages.jsonl", identified, Provider::Generic),
            ("session_20261027_081500_b4f0a1c7/messages.jsonl", identified, Provider::Vibe),
            ("runs/44/x.history.jsonl", plain, Provider::Generic),
            ("cortex/conversations/x.history.jsonl", plain, Provider::Cortex),
        ] {
            let dir = tempfile::tempdir().expect("tempdir");
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("creates");
            std::fs::write(path.with_file_name("conversation.jsonl"), timed).expect("writes");
            std::fs::write(&path, format!("{line}\n{}", line.replace("user", "assistant")))
                .expect("writes");
            let file = LogCandidate::from_path(path.clone()).expect("there");
            let Sniffed::Log(claim) = sniff(&file, None).expect("reads") else {
                panic!("{} is a log", path.display())
            };
            assert_eq!(claim.provider, want, "{}", path.display());
        }
    }

    #[test]
    fn a_look_that_fails_costs_one_file() {
        let error = catch_examine_panic(|| panic!("a defect")).expect_err("an error");
        assert!(error.to_string().contains("please report it"), "{error}");
        assert_eq!(catch_examine_panic(|| Ok(Sniffed::Empty)).expect("as it was"), Sniffed::Empty);
    }

    #[test]
    fn others_are_left_alone() {
        check("package.json", "{\n \"name\": \"x\"\n}", None);
        check("x.jsonl", "\u{0}\u{1}binary", None);
        check("x.jsonl", " \n ", None);
    }
}
