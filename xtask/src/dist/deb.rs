//! Writes the Debian package: an ar archive of two tar archives.

use super::entry::{ArchiveFile, FIXED_TIME};
use super::names::{DESCRIPTION, HOMEPAGE, MAINTAINER, PACKAGE, SBOM_NAME};
use super::release::{Artifact, Release};
use super::tar::pack_tar_gz;
use super::target::needed_glibc;
use crate::failure::Result;

/// Returns the package, or `None` if the platform has none.
pub(super) fn pack_deb(release: &Release) -> Result<Option<Artifact>> {
    let Some(architecture) = release.target.debian else { return Ok(None) };
    let documents = format!("./usr/share/doc/{PACKAGE}");
    let mut copyright = String::new();
    for (_, text) in &release.licences {
        copyright.push_str(text);
        copyright.push('\n');
    }
    let folders = ["./", "./usr/", "./usr/bin/", "./usr/share/", "./usr/share/doc/"];
    let mut files: Vec<_> = folders.iter().map(|path| ArchiveFile::program(*path, b"")).collect();
    files.extend([
        ArchiveFile::program(format!("{documents}/"), b""),
        ArchiveFile::program("./usr/bin/sessions", &release.program),
        ArchiveFile::plain(format!("{documents}/copyright"), copyright),
        ArchiveFile::plain(format!("{documents}/{SBOM_NAME}"), release.sbom.as_str()),
    ]);
    let kilobytes = files.iter().map(|file| file.bytes.len().div_ceil(1024)).sum::<usize>();
    let glibc = needed_glibc(&release.program).unwrap_or_default();
    let control = format!(
        "Package: {PACKAGE}\nVersion: {}\nArchitecture: {architecture}\n\
         Maintainer: {MAINTAINER}\n\
         Installed-Size: {kilobytes}\n\
         Depends: libc6 (>= 2.{glibc}), libgcc-s1, libstdc++6\n\
         Section: devel\nPriority: optional\nHomepage: {HOMEPAGE}\nDescription: {DESCRIPTION}\n",
        release.version
    );
    let control = [ArchiveFile::program("./", b""), ArchiveFile::plain("./control", control)];

    let mut archive = b"!<arch>\n".to_vec();
    append_member(&mut archive, "debian-binary", b"2.0\n");
    let control = pack_tar_gz(&control, release.compression)?;
    append_member(&mut archive, "control.tar.gz", &control);
    let data = pack_tar_gz(&files, release.compression)?;
    append_member(&mut archive, "data.tar.gz", &data);
    let name = format!("{PACKAGE}_{}_{architecture}.deb", release.version);
    Ok(Some(Artifact { name, bytes: archive }))
}

/// Appends a file to an ar archive, at an even offset.
fn append_member(archive: &mut Vec<u8>, name: &str, bytes: &[u8]) {
    let header =
        format!("{name:<16}{FIXED_TIME:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, "100644", bytes.len());
    archive.extend(header.as_bytes());
    archive.extend(bytes);
    if bytes.len() % 2 == 1 {
        archive.push(b'\n');
    }
}
