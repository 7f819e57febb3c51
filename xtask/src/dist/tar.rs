//! Writes tar archives in the ustar format, compressed with gzip.

use std::io::{self, Write};

use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

use super::entry::{ArchiveFile, FIXED_TIME, PROGRAM};
use crate::failure::{Result, TaskFailure};

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
    write_tar_gz(files, folders, compression)
        .map_err(|error| TaskFailure::step(format!("cannot write a tar archive: {error}")))
}

fn write_tar_gz(files: &[ArchiveFile], folders: Folders, compression: u32) -> io::Result<Vec<u8>> {
    let encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::new(compression));
    let mut archive = Builder::new(encoder);
    let mut known = Vec::new();
    for file in files {
        if folders == Folders::Listed {
            for folder in parent_folders(&file.path) {
                if !known.contains(&folder) {
                    append(&mut archive, &folder, PROGRAM, EntryType::Directory, b"")?;
                    known.push(folder);
                }
            }
        }
        append(&mut archive, &file.path, file.mode, EntryType::Regular, &file.bytes)?;
    }
    archive.into_inner()?.finish()
}

/// Returns the folders of a path, outermost first, each with a slash at its end.
fn parent_folders(path: &str) -> Vec<String> {
    path.match_indices('/').map(|(at, _)| path[..=at].to_owned()).collect()
}

/// Appends an entry: owner root, and the fixed time.
fn append(
    archive: &mut Builder<impl Write>,
    path: &str,
    mode: u32,
    kind: EntryType,
    bytes: &[u8],
) -> io::Result<()> {
    let mut header = Header::new_ustar();
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_username("root")?;
    header.set_groupname("root")?;
    header.set_mtime(FIXED_TIME);
    header.set_entry_type(kind);
    header.set_size(bytes.len() as u64);
    archive.append_data(&mut header, path, bytes)
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
    fn long_paths_are_kept() {
        let path = format!("folder/{}", "x".repeat(101));
        let file = ArchiveFile::plain(path.as_str(), "");
        let archive = pack_tar_gz(&[file], Folders::Implied, 1).expect("packs");
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(archive.as_slice()));
        let entry = archive.entries().expect("reads").next().expect("an entry").expect("reads");
        assert_eq!(entry.path().expect("a path").to_str(), Some(path.as_str()));
    }
}
