//! `cargo xtask dist`: packages the program for everything that installs it.
//!
//! Builds are reproducible: archives have a fixed time, owner and order.

mod deb;
mod entry;
mod manifests;
mod mcpb;
pub(crate) mod names;
mod npm_package;
mod release;
mod sbom;
mod tar;
pub(crate) mod target;
mod wheel;
mod zip;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use self::entry::ArchiveFile;
use self::names::{REPOSITORY, SBOM_NAME, VERSION};
use self::release::{Artifact, Release, hex_sha256};
use self::tar::pack_tar_gz;
use self::target::{GLIBC_MINOR, Target, needed_glibc};
use crate::cargo::Cargo;
use crate::failure::{Result, TaskFailure};
use crate::options::TaskOptions;
use crate::scratch::create_scratch;
use crate::shell;
use crate::zig::{self, Zig};

const SUMS_NAME: &str = "SHA256SUMS";
const INSTALLER_NAME: &str = "install.sh";
const INSTALLER: &str = include_str!("files/install.sh");

/// The licences that every package contains.
const LICENCES: &[&str] = &["LICENSE", "LICENSE-APACHE", "LICENSE-MIT"];

/// The arguments of the command.
struct DistOptions {
    /// A program that is already built.
    binary: Option<PathBuf>,
    target: &'static Target,
    out: PathBuf,
    compression: u32,
    /// Only write what depends on the archives of all platforms.
    is_summary: bool,
}

pub(crate) fn run(root: &Path, options: TaskOptions) -> Result<()> {
    let dist = DistOptions::parse(root, &options.rest)?;
    fs::create_dir_all(&dist.out).map_err(TaskFailure::io("make", &dist.out))?;
    if !dist.is_summary {
        let program = match &dist.binary {
            Some(path) => path.clone(),
            None => compile_program(root, dist.target)?,
        };
        let release = read_release(root, &dist, &program)?;
        if dist.binary.is_none() {
            check_glibc(&release)?;
        }
        for artifact in pack_release(&release)? {
            write_artifact(&dist.out, &artifact)?;
        }
    }

    for artifact in summary_artifacts(&dist.out)? {
        write_artifact(&dist.out, &artifact)?;
    }
    write_artifact(&dist.out, &sums(&dist.out)?)
}

impl DistOptions {
    fn parse(root: &Path, args: &[String]) -> Result<Self> {
        let mut options = Self {
            binary: None,
            target: Target::for_host()?,
            out: root.join("target/dist-packages"),
            compression: 9,
            is_summary: false,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            if arg == "--summary" {
                options.is_summary = true;
                continue;
            }
            let value = args.next().ok_or_else(|| {
                TaskFailure::usage(format!(
                    "`{arg}` is unknown or needs a value; see `cargo xtask dist --help`"
                ))
            })?;
            match arg.as_str() {
                "--binary" => options.binary = Some(PathBuf::from(value)),
                "--target" => options.target = Target::find(value)?,
                "--out" => options.out = PathBuf::from(value),
                "--compression" => options.compression = parse_compression(value)?,
                _ => {
                    return Err(TaskFailure::usage(format!(
                        "`cargo xtask dist` does not take `{arg}`; see `cargo xtask dist --help`"
                    )));
                }
            }
        }
        Ok(options)
    }
}

fn parse_compression(text: &str) -> Result<u32> {
    text.parse().ok().filter(|level| *level <= 9).ok_or_else(|| {
        TaskFailure::usage(format!("`--compression` takes a number from 0 to 9, not `{text}`"))
    })
}

/// Returns the file names of the archives of all platforms.
pub(crate) fn archive_names() -> Vec<String> {
    target::TARGETS.iter().map(|target| target.archive_name(VERSION)).collect()
}

/// Reads everything that the packages contain.
fn read_release(root: &Path, dist: &DistOptions, program: &Path) -> Result<Release> {
    let read = |name: &str| {
        let path = root.join(name);
        fs::read_to_string(&path).map_err(TaskFailure::io("read", &path))
    };
    let mut licences = Vec::new();
    for name in LICENCES {
        licences.push(((*name).to_owned(), read(name)?));
    }
    Ok(Release {
        version: VERSION.to_owned(),
        target: dist.target,
        program: fs::read(program).map_err(TaskFailure::io("read", program))?,
        sbom: sbom::write_sbom(root, VERSION, dist.target)?,
        readme: read("README.md")?,
        licences,
        tools: read_tools(program)?,
        compression: dist.compression,
    })
}

/// Returns what names the archives and bundles in a folder: manifests and the installer.
pub(crate) fn summary_artifacts(out: &Path) -> Result<Vec<Artifact>> {
    let mut artifacts = manifests::write_manifests(out, VERSION)?;
    artifacts.push(installer(out, VERSION)?);
    Ok(artifacts)
}

/// Returns all packages for the platform.
fn pack_release(release: &Release) -> Result<Vec<Artifact>> {
    let mut artifacts = vec![
        pack_archive(release)?,
        wheel::pack_wheel(release)?,
        npm_package::pack_platform(release)?,
        npm_package::pack_launcher(release)?,
        mcpb::pack_bundle(release)?,
    ];
    artifacts.extend(deb::pack_deb(release)?);
    let sbom = format!("{}.cdx.json", release.target.archive_stem(&release.version));
    artifacts.push(Artifact::text(sbom, release.sbom.clone()));
    Ok(artifacts)
}

/// Returns the archive with the program, one folder deep.
fn pack_archive(release: &Release) -> Result<Artifact> {
    let folder = release.target.archive_stem(&release.version);
    let program = format!("{folder}/{}", release.target.program_name());
    let mut files = vec![
        ArchiveFile::program(program, &release.program),
        ArchiveFile::plain(format!("{folder}/README.md"), release.readme.as_str()),
        ArchiveFile::plain(format!("{folder}/{SBOM_NAME}"), release.sbom.as_str()),
    ];
    for (name, text) in &release.licences {
        files.push(ArchiveFile::plain(format!("{folder}/{name}"), text.as_str()));
    }
    let bytes = if release.target.is_windows() {
        zip::pack_zip(&files, release.compression)?
    } else {
        pack_tar_gz(&files, release.compression)?
    };
    Ok(Artifact { name: release.target.archive_name(&release.version), bytes })
}

/// Asks the program for its tools.
fn read_tools(program: &Path) -> Result<Value> {
    // The user's own store may be one that this program does not read.
    let scratch = create_scratch(&std::env::temp_dir())?;
    let mut command = Command::new(program);
    command.args(["tools", "--json", "--store"]).arg(scratch.path().join("store"));
    shell::read_json(command)
}

/// Compiles the program with DuckDB in it. On a Linux with a newer glibc than the packages name, zig
/// links it for theirs.
fn compile_program(root: &Path, target: &Target) -> Result<PathBuf> {
    let cargo = Cargo::new(root, true)?;
    if target.is_linux() && zig::host_glibc_minor().is_some_and(|minor| minor > GLIBC_MINOR) {
        let triple = format!("{}.2.{GLIBC_MINOR}", target.triple);
        return cargo.build_with_zig(&Zig::install(root)?, &triple);
    }
    cargo.build_for_release(target.triple)
}

/// Refuses a program for Linux that would not start on the systems that its packages name.
fn check_glibc(release: &Release) -> Result<()> {
    match needed_glibc(&release.program) {
        Some(minor) if release.target.is_linux() && minor > GLIBC_MINOR => {
            Err(TaskFailure::step(format!(
                "the program needs glibc 2.{minor}, but packages are for 2.{GLIBC_MINOR}: build it \
                 on an older system, and pass it with --binary"
            )))
        }
        _ => Ok(()),
    }
}

/// Returns the installer, with the sums of the archives in the folder.
fn installer(out: &Path, version: &str) -> Result<Artifact> {
    let mut sums = Vec::new();
    for target in target::TARGETS.iter().filter(|target| !target.is_windows()) {
        let path = out.join(target.archive_name(version));
        if path.exists() {
            let bytes = fs::read(&path).map_err(TaskFailure::io("read", &path))?;
            sums.push(format!("    {}) wanted={} ;;", target.triple, hex_sha256(&bytes)));
        }
    }
    let text = INSTALLER
        .replace("@VERSION@", version)
        .replace("@FROM@", &format!("{REPOSITORY}/releases/download/v{version}"))
        .replace("# @SUMS@", &sums.join("\n"));
    Ok(Artifact::text(INSTALLER_NAME, text))
}

/// Returns the sums of all files in the folder, as `sha256sum --check` reads them.
fn sums(out: &Path) -> Result<Artifact> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(out).map_err(TaskFailure::io("read", out))? {
        let path = entry.map_err(TaskFailure::io("read", out))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_file() && name != SUMS_NAME {
            let bytes = fs::read(&path).map_err(TaskFailure::io("read", &path))?;
            lines.push(format!("{}  {name}\n", hex_sha256(&bytes)));
        }
    }
    lines.sort_by(|a, b| a[64..].cmp(&b[64..]));
    Ok(Artifact::text(SUMS_NAME, lines.concat()))
}

fn write_artifact(out: &Path, artifact: &Artifact) -> Result<()> {
    let path = out.join(&artifact.name);
    fs::write(&path, &artifact.bytes).map_err(TaskFailure::io("write", &path))?;
    shell::print_line(&format!("{:>12}  {}", artifact.bytes.len(), path.display()));
    Ok(())
}
