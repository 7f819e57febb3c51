//! Writes the agents' own logs with their secrets masked, from the archive: what was forgotten, and what the
//! retention dropped, is not in it.

use std::path::Path;

use ingest::discover::is_log_file;
use ingest::provider::format::AgentFolders;
use ingest::redact::columns::mask_name;
use ingest::relocate::below_log_folder;
use schemas::ToolError;

use super::Exporter;
use crate::config::environment;
use crate::files::outfile::file_error;
use store::UnpackError;
use tools::Tools;
use tools::error::store_error;

/// Writes the log of each session that the archive has, and the files next to it, to the place below the folder
/// of its agent. A file whose name has a secret is left out, as are sessions in databases.
pub(super) fn write_logs(
    tools: &Tools,
    sessions: &[usize],
    dir: &Path,
    work: &mut Exporter<'_>,
) -> Result<(), ToolError> {
    let snapshot = work.snapshot;
    let archive = tools.store().open_archive().map_err(store_error)?;
    let redactor = tools.create_redactor()?;
    let home = environment::home_dir();
    let folders = AgentFolders::new(&home, &environment::read_variable);
    let mut without_log = 0;
    for at in sessions {
        let session = &snapshot.sessions()[*at];
        let files = archive
            .iter()
            .flat_map(|archive| archive.files_of(session.id()).map(move |file| (archive, file)));
        let mut is_written = false;
        for (archive, file) in files {
            let path = Path::new(&file.path);
            let below = below_log_folder(file.provider, path, &folders);
            let below = below.or_else(|| Some(path.file_name()?.to_str()?.to_owned()));
            let is_named = |below: &String| mask_name(Some(&redactor), below) == *below;
            let Some(below) = below.filter(is_named).filter(|_| is_log_file(&file.path)) else {
                continue;
            };
            let place = dir.join(file.provider.as_str()).join(below);
            work.write_file(&place, 0, |out| {
                archive.unpack_masked(file, &redactor, out).map_err(|error| match error {
                    UnpackError::Store(error) => store_error(error),
                    UnpackError::Write(error) => file_error(&place, &error),
                })?;
                Ok(())
            })?;
            is_written = true;
        }
        work.done.sessions += usize::from(is_written);
        without_log += usize::from(!is_written);
    }
    work.done.without_log = Some(without_log);
    Ok(())
}
