//! The log of a session as an object of a lake, so that its agent can continue it on another machine.
//!
//! ```text
//! zstd of: a line of JSON, then the files one after the other, the log first
//! {"version":1,"session":"9ae8..","provider":"claude","folder":"/home/mira/harbor",
//!  "repository":{"remote":"https://example.org/mira/harbor","first_commit":"5d1f..","below":""},
//!  "files":[{"below":"-home-mira-harbor/9ae8...jsonl","bytes":5120,"modified_us":1790000000000000}]}
//! ```
//!
//! Secrets are masked in it, whatever the archive of the publisher keeps.

use std::collections::HashSet;
use std::io::Read as _;

use ingest::relocate::is_safe_below;
use schemas::Provider;
use serde::{Deserialize, Serialize};

/// Version of the object. Newer ones are not read.
const VERSION: u32 = 1;

/// Maximum size in bytes of the files of an object, unpacked. Longer logs are not published.
pub const MAX_LOG_BYTES: u64 = 128 << 20;

/// Maximum length in bytes of the first line.
const MAX_HEAD_BYTES: usize = 256 << 10;

/// Maximum number of files.
const MAX_FILES: usize = 64;

/// Maximum length in bytes of a folder or an address.
const MAX_TEXT_BYTES: usize = 4096;

/// Level of compression, as in the archive.
const LEVEL: i32 = 3;

/// What makes a repository the same on every machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repository {
    /// The address of the remote in its normalized form, without credentials; see
    /// [`ingest::stream::normalize_address`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// The hash of the first commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_commit: Option<String>,
    /// The working folder below that of the repository, with slashes; empty if it is the same.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub below: String,
}

/// The log of a session, and what another machine needs to find a place for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedLog {
    /// The working folder of the session, as the log names it.
    pub folder: Option<String>,
    /// The repository at the working folder.
    pub repository: Option<Repository>,
    /// The log first.
    pub files: Vec<PublishedFile>,
}

/// The log, or a file next to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedFile {
    /// The place below the folder of the agent, with slashes.
    pub below: String,
    /// When the file changed last, in microseconds since the epoch.
    pub modified_us: i64,
    pub content: Vec<u8>,
}

/// The first line of the object.
#[derive(Serialize, Deserialize)]
struct Head {
    version: u32,
    session: String,
    provider: Provider,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    repository: Option<Repository>,
    files: Vec<FileHead>,
}

/// A file of the object.
#[derive(Serialize, Deserialize)]
struct FileHead {
    below: String,
    bytes: u64,
    modified_us: i64,
}

impl PublishedLog {
    /// Returns the object of a session with this id in the lake.
    ///
    /// # Errors
    /// Returns the reason if the log cannot be published.
    pub fn encode(&self, session: &str, provider: Provider) -> Result<Vec<u8>, String> {
        let heads = self.files.iter().map(|file| FileHead {
            below: file.below.clone(),
            bytes: file.content.len() as u64,
            modified_us: file.modified_us,
        });
        let head = Head {
            version: VERSION,
            session: session.to_owned(),
            provider,
            folder: self.folder.clone(),
            repository: self.repository.clone(),
            files: heads.collect(),
        };
        head.check(session, provider)?;
        let mut bytes = serde_json::to_vec(&head).map_err(|error| error.to_string())?;
        bytes.push(b'\n');
        for file in &self.files {
            bytes.extend_from_slice(&file.content);
        }
        zstd::bulk::compress(&bytes, LEVEL).map_err(|error| error.to_string())
    }

    /// Decodes an object.
    ///
    /// # Errors
    /// Returns the reason if it is not the log of a session of this id and provider, or has a place that
    /// could lead out of the folder of the agent.
    pub fn decode(bytes: &[u8], session: &str, provider: Provider) -> Result<Self, String> {
        let broken = |error: std::io::Error| format!("its data is broken: {error}");
        let mut unpacked = Vec::new();
        let limit = MAX_LOG_BYTES + MAX_HEAD_BYTES as u64;
        let decoder = zstd::Decoder::new(bytes).map_err(broken)?;
        decoder.take(limit + 1).read_to_end(&mut unpacked).map_err(broken)?;
        if unpacked.len() as u64 > limit {
            return Err(format!("it has more than {limit} bytes"));
        }
        let first = &unpacked[..unpacked.len().min(MAX_HEAD_BYTES)];
        let end = memchr::memchr(b'\n', first).ok_or("it has no first line")?;
        let head: Head = serde_json::from_slice(&unpacked[..end])
            .map_err(|error| format!("its first line: {error}"))?;
        head.check(session, provider)?;
        let mut rest = &unpacked[end + 1..];
        let mut files = Vec::with_capacity(head.files.len());
        for FileHead { below, bytes, modified_us } in head.files {
            let length = usize::try_from(bytes).unwrap_or(usize::MAX);
            let content = rest.split_off(..length).ok_or("its files are cut")?.to_vec();
            files.push(PublishedFile { below, modified_us, content });
        }
        if !rest.is_empty() {
            return Err("it has more than its files".to_owned());
        }
        Ok(Self { folder: head.folder, repository: head.repository, files })
    }
}

impl Head {
    /// Returns an error if the object is not one of this session, or names what no log has.
    fn check(&self, session: &str, provider: Provider) -> Result<(), String> {
        if self.version != VERSION {
            return Err(format!("it has version {}, not {VERSION}", self.version));
        }
        if self.session != session || self.provider != provider {
            return Err("it belongs to another session".to_owned());
        }
        if self.files.is_empty() || self.files.len() > MAX_FILES {
            return Err(format!("it has {} files", self.files.len()));
        }
        let mut bytes: u64 = 0;
        let mut places = HashSet::new();
        for file in &self.files {
            bytes = bytes.saturating_add(file.bytes);
            if !is_safe_below(&file.below) {
                return Err(format!("the place {:?} of a file is not valid", file.below));
            }
            // Some systems do not distinguish the case of names.
            if !places.insert(file.below.to_lowercase()) {
                return Err(format!("two files have the place {:?}", file.below));
            }
        }
        if bytes > MAX_LOG_BYTES {
            return Err(format!("its files have {bytes} bytes, more than {MAX_LOG_BYTES}"));
        }
        let repository = self.repository.iter();
        let repository = repository
            .flat_map(|it| [it.remote.as_deref(), it.first_commit.as_deref(), Some(&*it.below)]);
        let texts = repository.chain([self.folder.as_deref()]).flatten();
        for text in texts {
            if text.len() > MAX_TEXT_BYTES || text.chars().any(char::is_control) {
                return Err("a folder or an address in it is not valid".to_owned());
            }
        }
        let below = self.repository.as_ref().map_or("", |repository| &repository.below);
        if !below.is_empty() && !is_safe_below(below) {
            return Err(format!("the folder {below:?} in the repository is not valid"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(places: &[&str]) -> PublishedLog {
        let files = places.iter().map(|below| PublishedFile {
            below: (*below).to_owned(),
            modified_us: 5,
            content: format!("{below}\n").into_bytes(),
        });
        PublishedLog {
            folder: Some(r"C:\code\harbor".to_owned()),
            repository: Some(Repository {
                remote: Some("https://example.org/mira/harbor".to_owned()),
                first_commit: None,
                below: "web/app".to_owned(),
            }),
            files: files.collect(),
        }
    }

    #[test]
    fn a_log_comes_back_and_equal_logs_have_equal_bytes() {
        let log = log(&["x/s1.jsonl", "x/s1/state.json"]);
        let bytes = log.encode("s1", Provider::Claude).expect("encodes");
        assert_eq!(log.encode("s1", Provider::Claude).as_ref(), Ok(&bytes));
        assert_eq!(PublishedLog::decode(&bytes, "s1", Provider::Claude), Ok(log));
        for (session, provider) in [("s2", Provider::Claude), ("s1", Provider::Codex)] {
            assert!(PublishedLog::decode(&bytes, session, provider).is_err());
        }
    }

    #[test]
    fn hostile_objects_are_refused_without_a_panic() {
        for places in [
            &["../x"][..],
            &["/etc/passwd"],
            &["x\\y"],
            &["C:/x"],
            &["x/nul"],
            &[],
            &["x/a", "x/A"],
        ] {
            assert!(log(places).encode("s1", Provider::Claude).is_err(), "{places:?}");
        }
        let evil = PublishedLog { folder: Some("/x\u{1b}[2J".to_owned()), ..log(&["x/s"]) };
        assert!(evil.encode("s1", Provider::Claude).is_err());

        let bytes = log(&["x/s1.jsonl"]).encode("s1", Provider::Claude).expect("encodes");
        let plain = zstd::decode_all(&bytes[..]).expect("unpacks");
        for (from, to) in [
            (r#""below":"x/s1.jsonl""#, r#""below":"../s1.jsonl""#),
            (r#""bytes":11"#, r#""bytes":12"#),
            (r#""bytes":11"#, r#""bytes":10"#),
            (r#""bytes":11"#, r#""bytes":18446744073709551615"#),
            (r#""version":1"#, r#""version":2"#),
        ] {
            let text = String::from_utf8(plain.clone()).expect("UTF-8");
            assert!(text.contains(from), "{text}");
            let changed = zstd::bulk::compress(text.replace(from, to).as_bytes(), 1);
            let changed = changed.expect("packs");
            assert!(PublishedLog::decode(&changed, "s1", Provider::Claude).is_err(), "{to}");
        }
        for cut in 0..bytes.len() {
            assert!(PublishedLog::decode(&bytes[..cut], "s1", Provider::Claude).is_err(), "{cut}");
            let mut flipped = bytes.clone();
            flipped[cut] ^= 0xff;
            // It may be another log; the SHA-256 of the listing shows that.
            let _ = PublishedLog::decode(&flipped, "s1", Provider::Claude);
        }
        let bomb = zstd::bulk::compress(&vec![b' '; (MAX_LOG_BYTES as usize) + (1 << 20)], 1);
        let bomb = bomb.expect("packs");
        assert!(PublishedLog::decode(&bomb, "s1", Provider::Claude).is_err());
    }
}
