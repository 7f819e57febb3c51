//! Writes tar archives in the ustar format, compressed with gzip.

use std::io::{self, Write};

use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

use super::entry::{ArchiveFile, FIXED_TIME};
use crate::failure::{Result, TaskFailure};

/// Returns a compressed tar archive of the files, in their order. A path with a slash at its end is a
/// folder.
pub(crate) fn pack_tar_gz(files: &[ArchiveFile], compression: u32) -> Result<Vec<u8>> {
    write_tar_gz(files, compression)
        .map_err(|error| TaskFailure::step(format!("cannot write a tar archive: {error}")))
}

fn write_tar_gz(files: &[ArchiveFile], compression: u32) -> io::Result<Vec<u8>> {
    let encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::new(compression));
    let mut archive = Builder::new(encoder);
    for file in files {
        append(&mut archive, file)?;
    }
    archive.into_inner()?.finish()
}

/// Appends an entry: owner root, and the fixed time.
fn append(archive: &mut Builder<impl Write>, file: &ArchiveFile) -> io::Result<()> {
    let is_folder = file.path.ends_with('/');
    let mut header = Header::new_ustar();
    header.set_mode(file.mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_username("root")?;
    header.set_groupname("root")?;
    header.set_mtime(FIXED_TIME);
    header.set_entry_type(if is_folder { EntryType::Directory } else { EntryType::Regular });
    header.set_size(file.bytes.len() as u64);
    archive.append_data(&mut header, &file.path, file.bytes.as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_paths_are_kept() {
        let path = format!("folder/{}", "x".repeat(101));
        let file = ArchiveFile::plain(path.as_str(), "");
        let archive = pack_tar_gz(&[file], 1).expect("packs");
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(archive.as_slice()));
        let entry = archive.entries().expect("reads").next().expect("an entry").expect("reads");
        assert_eq!(entry.path().expect("a path").to_str(), Some(path.as_str()));
    }
}
