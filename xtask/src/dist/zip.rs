//! Writes zip archives: deflated files, with Unix permissions.

use std::io::Write as _;

use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};

use super::entry::ArchiveFile;
use crate::failure::{Result, TaskFailure};

/// 1980-01-01 as MS-DOS writes a date; the time of day is zero.
const FIXED_DATE: u16 = 0x21;

/// Version of the format that deflated files need.
const VERSION: u16 = 20;

/// Made by version 2.0 of the format, on Unix.
const MADE_BY: u16 = 3 << 8 | VERSION;

/// Paths are UTF-8.
const FLAGS: u16 = 1 << 11;

const DEFLATED: u16 = 8;

/// Marks a regular file in the permissions of Unix.
const REGULAR_FILE: u32 = 0o100_000;

/// Returns a zip archive of the files, in their order.
pub(crate) fn pack_zip(files: &[ArchiveFile], compression: u32) -> Result<Vec<u8>> {
    let mut archive = Vec::new();
    let mut directory = Vec::new();
    for file in files {
        let offset = fit(archive.len())?;
        let mut crc = Crc::new();
        crc.update(&file.bytes);
        let packed = deflate(&file.bytes, compression)?;

        // The part that the local header and the central directory share.
        let mut common = Vec::new();
        for number in [VERSION, FLAGS, DEFLATED, 0, FIXED_DATE] {
            common.extend(number.to_le_bytes());
        }
        for number in [crc.sum(), fit(packed.len())?, fit(file.bytes.len())?] {
            common.extend(number.to_le_bytes());
        }
        common.extend((fit(file.path.len())? as u16).to_le_bytes());
        common.extend([0; 2]);

        archive.extend(b"PK\x03\x04");
        archive.extend(&common);
        archive.extend(file.path.as_bytes());
        archive.extend(packed);

        directory.extend(b"PK\x01\x02");
        directory.extend(MADE_BY.to_le_bytes());
        directory.extend(common);
        // No comment, first disk, no internal attributes.
        directory.extend([0; 6]);
        directory.extend(((REGULAR_FILE | file.mode) << 16).to_le_bytes());
        directory.extend(offset.to_le_bytes());
        directory.extend(file.path.as_bytes());
    }

    let count = fit(files.len())? as u16;
    let start = fit(archive.len())?;
    let length = fit(directory.len())?;
    archive.extend(directory);
    archive.extend(b"PK\x05\x06\0\0\0\0");
    archive.extend(count.to_le_bytes());
    archive.extend(count.to_le_bytes());
    archive.extend(length.to_le_bytes());
    archive.extend(start.to_le_bytes());
    archive.extend([0; 2]);
    Ok(archive)
}

fn deflate(bytes: &[u8], compression: u32) -> Result<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(compression));
    let packed = encoder.write_all(bytes).and_then(|()| encoder.finish());
    packed.map_err(|error| TaskFailure::step(format!("cannot compress an archive: {error}")))
}

/// Returns a size as the format writes it, which ends at 4 GB.
fn fit(size: usize) -> Result<u32> {
    u32::try_from(size)
        .map_err(|_| TaskFailure::step(format!("{size} bytes are too many for a zip archive")))
}
