//! `sessions plugin build`: writes the plugins for Claude Code, Codex, Gemini CLI and other clients.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::files::outfile::{file_error, require_folder, write_output};
use crate::help::Help;
use crate::output::Printer;
use crate::plugin::{PluginFile, PluginsWritten, plugin_files};

const REPLACE_ADVICE: &str = "It may be from an earlier version. Replace it with --force";

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct PluginFlags {
    #[command(subcommand)]
    action: PluginAction,
}

#[derive(Debug, clap::Subcommand)]
enum PluginAction {
    /// Write the plugins into a folder, from which the clients install them
    Build(BuildFlags),
}

#[derive(Debug, clap::Args)]
struct BuildFlags {
    /// The folder, which is created
    #[arg(value_name = "DIR")]
    output: PathBuf,
    /// Overwrite files that have other content
    #[arg(long)]
    force: bool,
}

pub(in crate::cli) fn run(flags: PluginFlags, help: &Help, printer: &Printer) -> CommandResult {
    let PluginAction::Build(flags) = flags.action;
    require_folder(&flags.output, "a plugin")?;

    let mut written = Vec::new();
    for file in plugin_files(&help.skill_text()) {
        let path = flags.output.join(&file.path);
        write_output(
            &path,
            || flags.force,
            REPLACE_ADVICE,
            |out| fill_file(out, &file).map_err(|error| file_error(&path, &error)),
        )?;
        written.push(file.path);
    }
    printer.print_report(&PluginsWritten { output: flags.output.clone(), files: written })?;
    let readme = Path::new(&flags.output).join("README.md");
    printer.print_note(&format!("Installation instructions: {}", readme.display()))?;
    Ok(CommandOutcome::Done)
}

/// Writes the text of a file, with the permissions that others need to install it.
fn fill_file(out: &mut File, file: &PluginFile) -> io::Result<()> {
    out.write_all(file.text.as_bytes())?;
    set_permissions(out, file.is_program)
}

#[cfg(unix)]
fn set_permissions(out: &File, is_program: bool) -> io::Result<()> {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    out.set_permissions(Permissions::from_mode(if is_program { 0o755 } else { 0o644 }))
}

#[cfg(not(unix))]
fn set_permissions(_: &File, _: bool) -> io::Result<()> {
    Ok(())
}
