//! How the content of a log is reached: a plain file, a compressed one, or one put together from
//! other files (FORMATS.md section 12: Codex compresses what is older than a week).

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

use tempfile::SpooledTempFile;

use crate::discover::Candidate;
use crate::provider::opencode::database::assemble_database;
use crate::provider::opencode::store::assemble_tree;

/// Decompressed content up to this is held in memory; more goes to a temporary file without a name.
const IN_MEMORY: usize = 16 << 20;

/// What a candidate's content is kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    Plain,
    Zstd,
    Gzip,
    /// A session of OpenCode in a tree of files; the path is that of its own file.
    OpenCodeTree,
    /// A session in a database of OpenCode; the path is `<database>#<session id>`.
    OpenCodeDatabase,
}

impl Container {
    /// The compression that a file's name tells, and the name without it.
    pub(crate) fn of_name(name: &str) -> (Self, &str) {
        match (name.strip_suffix(".zst"), name.strip_suffix(".gz")) {
            (Some(plain), _) => (Self::Zstd, plain),
            (None, Some(plain)) => (Self::Gzip, plain),
            (None, None) => (Self::Plain, name),
        }
    }
}

/// The content of a log, which can be read from any place.
pub(crate) enum Content {
    File(File),
    Spooled(SpooledTempFile),
    /// Put together.
    Memory(Cursor<Vec<u8>>),
}

impl Content {
    /// Opens a candidate's content. What a damaged compressed file holds before the damage is
    /// content; only when that is nothing it is an error.
    pub(crate) fn open(file: &Candidate) -> io::Result<Self> {
        match file.container {
            Container::Plain => Ok(Self::File(File::open(&file.path)?)),
            Container::Zstd | Container::Gzip => {
                let mut spool = SpooledTempFile::new(IN_MEMORY);
                let copied = io::copy(&mut Self::stream(file)?, &mut spool);
                if let Err(error) = copied
                    && spool.stream_position()? == 0
                {
                    return Err(error);
                }
                spool.rewind()?;
                Ok(Self::Spooled(spool))
            }
            Container::OpenCodeTree | Container::OpenCodeDatabase => {
                Ok(Self::Memory(Cursor::new(assemble(file)?)))
            }
        }
    }

    /// The content from its beginning, for those who need no more than that.
    pub(crate) fn stream(file: &Candidate) -> io::Result<Box<dyn Read>> {
        Ok(match file.container {
            Container::Plain => Box::new(File::open(&file.path)?),
            Container::Zstd => Box::new(zstd::Decoder::new(File::open(&file.path)?)?),
            Container::OpenCodeTree | Container::OpenCodeDatabase => {
                Box::new(Cursor::new(assemble(file)?))
            }
            Container::Gzip => Box::new(flate2::read::MultiGzDecoder::new(File::open(&file.path)?)),
        })
    }

    /// Bytes of the content.
    pub(crate) fn length(&mut self) -> io::Result<u64> {
        match self {
            Self::File(file) => Ok(file.metadata()?.len()),
            Self::Spooled(_) | Self::Memory(_) => {
                let at = self.stream_position()?;
                let end = self.seek(SeekFrom::End(0))?;
                self.seek(SeekFrom::Start(at))?;
                Ok(end)
            }
        }
    }
}

/// The document of a session that lies in several places.
fn assemble(file: &Candidate) -> io::Result<Vec<u8>> {
    let path = file.path.to_string_lossy();
    match path.rsplit_once('#').filter(|_| file.container == Container::OpenCodeDatabase) {
        Some((database, session)) => assemble_database(Path::new(database), session),
        None => assemble_tree(&file.path),
    }
}

impl Read for Content {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(buffer),
            Self::Spooled(spool) => spool.read(buffer),
            Self::Memory(bytes) => bytes.read(buffer),
        }
    }
}

impl Seek for Content {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Self::File(file) => file.seek(to),
            Self::Spooled(spool) => spool.seek(to),
            Self::Memory(bytes) => bytes.seek(to),
        }
    }
}
