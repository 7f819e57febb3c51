//! Writes tar archives in the ustar format, compressed with gzip.

use std::io::Write as _;

use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};

use super::entry::{ArchiveFile, FIXED_TIME, PROGRAM};
use crate::failure::{Result, TaskFailure};

/// Size of the blocks that tar archives are made of.
const BLOCK_BYTES: usize = 512;

/// Longest path that fits into the header. Ours are far shorter.
const MAX_PATH_BYTES: usize = 100;

/// Whether an archive has entries for the folders of its files. dpkg needs them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Folders {
    Listed,
    Implied,
}

/// Returns a compressed tar archive of the files, in their order.
pub(crate) fn pack_tar_gz(
    files: &[ArchiveFile],
    folders: Folders,
    compression: u32,
) -> Result<Vec<u8>> {
    let encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::new(compression));
    let mut archive = TarWriter { encoder };
    let mut known = Vec::new();
    for file in files {
        if folders == Folders::Listed {
            for folder in parent_folders(&file.path) {
                if !known.contains(&folder) {
                    archive.append(&folder, PROGRAM, b'5', b"")?;
                    known.push(folder);
                }
            }
        }
        archive.append(&file.path, file.mode, b'0', &file.bytes)?;
    }
    archive.finish()
}

/// Returns the folders of a path, outermost first, each with a slash at its end.
fn parent_folders(path: &str) -> Vec<String> {
    path.match_indices('/').map(|(at, _)| path[..=at].to_owned()).collect()
}

struct TarWriter {
    encoder: GzEncoder<Vec<u8>>,
}

impl TarWriter {
    fn append(&mut self, path: &str, mode: u32, kind: u8, bytes: &[u8]) -> Result<()> {
        let header = tar_header(path, mode, kind, bytes.len())?;
        self.write(&header)?;
        self.write(bytes)?;
        self.write(&vec![0; bytes.len().next_multiple_of(BLOCK_BYTES) - bytes.len()])
    }

    fn finish(mut self) -> Result<Vec<u8>> {
        self.write(&[0; 2 * BLOCK_BYTES])?;
        self.encoder.finish().map_err(packing_failure)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.encoder.write_all(bytes).map_err(packing_failure)
    }
}

fn packing_failure(error: std::io::Error) -> TaskFailure {
    TaskFailure::step(format!("cannot compress an archive: {error}"))
}

/// Returns the header of an entry: owner root, and the fixed time.
fn tar_header(path: &str, mode: u32, kind: u8, length: usize) -> Result<[u8; BLOCK_BYTES]> {
    if path.len() > MAX_PATH_BYTES {
        return Err(TaskFailure::step(format!("the path {path} is too long for a tar archive")));
    }
    let mut header = [0; BLOCK_BYTES];
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, path.as_bytes());
    put(100, format!("{mode:07o}").as_bytes());
    put(108, b"0000000");
    put(116, b"0000000");
    put(124, format!("{length:011o}").as_bytes());
    put(136, format!("{FIXED_TIME:011o}").as_bytes());
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    put(265, b"root");
    put(297, b"root");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_listed_before_their_files() {
        assert_eq!(parent_folders("./usr/bin/x"), ["./", "./usr/", "./usr/bin/"]);
        assert_eq!(parent_folders("x"), [""; 0]);
    }

    #[test]
    fn long_paths_are_refused() {
        let file = ArchiveFile::plain("x".repeat(101), "");
        assert!(pack_tar_gz(&[file], Folders::Implied, 1).is_err());
    }
}
