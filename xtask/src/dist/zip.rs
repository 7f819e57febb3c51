//! Writes zip archives: deflated files, with Unix permissions.

use std::io::{Cursor, Write as _};

use zip::result::ZipResult;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, System, ZipWriter};

use super::entry::ArchiveFile;
use crate::failure::{Result, TaskFailure};

/// Returns a zip archive of the files, in their order.
pub(crate) fn pack_zip(files: &[ArchiveFile], compression: u32) -> Result<Vec<u8>> {
    write_zip(files, compression)
        .map_err(|error| TaskFailure::step(format!("cannot write a zip archive: {error}")))
}

fn write_zip(files: &[ArchiveFile], compression: u32) -> ZipResult<Vec<u8>> {
    // The time of the files is 1980-01-01.
    let mut options = SimpleFileOptions::DEFAULT.system(System::Unix);
    options = match compression {
        0 => options.compression_method(CompressionMethod::Stored),
        level => options
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(level.into())),
    };
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for file in files {
        archive.start_file(&file.path, options.unix_permissions(file.mode))?;
        archive.write_all(&file.bytes)?;
    }
    Ok(archive.finish()?.into_inner())
}
