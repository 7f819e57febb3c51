//! `cargo xtask release --dry-run`: checks, without a network, that what a release needs is ready, and lists
//! what the maintainer does then.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::dist;
use crate::dist::names::{
    HOMEPAGE, LICENCE, PACKAGE, REPOSITORY, VERSION, WINGET_IDENTIFIER, owner, registry_name,
};
use crate::dist::target::TARGETS;
use crate::failure::{Result, TaskFailure};
use crate::options::TaskOptions;
use crate::scratch::create_scratch;
use crate::shell;

/// The page with the commands of a release, one under each heading.
const COMMANDS_PAGE: &str = include_str!("../../docs/releasing.md");

/// The longest description that the MCP registry takes, in characters.
const MAX_DESCRIPTION_CHARS: usize = 100;

/// One check. It returns what it found, in a few words.
struct ReleaseCheck {
    name: &'static str,
    run: fn(&Path) -> Result<String>,
}

const CHECKS: &[ReleaseCheck] = &[
    ReleaseCheck { name: "names", run: check_names },
    ReleaseCheck { name: "versions", run: check_versions },
    ReleaseCheck { name: "changelog", run: check_changelog },
    ReleaseCheck { name: "licences", run: check_licences },
    ReleaseCheck { name: "registry", run: check_registry },
    ReleaseCheck { name: "workflow", run: check_workflow },
    ReleaseCheck { name: "manifests", run: check_manifests },
];

pub(crate) fn run(root: &Path, mut options: TaskOptions) -> Result<()> {
    if !options.take_flag("--dry-run") {
        return Err(TaskFailure::usage(
            "releases are published by hand, as docs/releasing.md says; `--dry-run` checks what they need",
        ));
    }
    options.refuse_rest("release")?;

    let mut failures = 0;
    for check in CHECKS {
        let (state, found) = match (check.run)(root) {
            Ok(found) => ("ok", found),
            Err(failure) => {
                failures += 1;
                ("FAILED", failure.to_string())
            }
        };
        shell::print_line(&format!("{state:<7} {:<10} {found}", check.name));
    }
    shell::print_line(&format!("\nTo release {VERSION}, as docs/releasing.md describes:"));
    for heading in COMMANDS_PAGE.lines().filter_map(|line| line.strip_prefix("## ")) {
        shell::print_line(&format!("  {heading}"));
    }
    if failures == 0 {
        return Ok(());
    }
    Err(TaskFailure::step(format!("{failures} of {} checks failed", CHECKS.len())))
}

fn read(root: &Path, name: &str) -> Result<String> {
    let path = root.join(name);
    fs::read_to_string(&path).map_err(TaskFailure::io("read", &path))
}

/// Returns the failure that lists what is wrong, or `found` if nothing is.
fn refuse_wrong(wrong: Vec<String>, found: String) -> Result<String> {
    if wrong.is_empty() {
        return Ok(found);
    }
    Err(TaskFailure::step(wrong.join(&format!("\n{:19}", ""))))
}

/// Checks that no file names another owner of the repository than `Cargo.toml` does.
fn check_names(root: &Path) -> Result<String> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output();
    let listed = listed.map_err(|error| TaskFailure::step(format!("cannot run git: {error}")))?;
    if !listed.status.success() {
        let error = String::from_utf8_lossy(&listed.stderr);
        return Err(TaskFailure::step(format!("git lists no files: {}", error.trim())));
    }
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let mut wrong = Vec::new();
    let mut files = 0;
    for name in listed.split('\0').filter(|name| !name.starts_with("sample-sessions/")) {
        // Pictures are not text.
        let Ok(text) = fs::read_to_string(root.join(name)) else { continue };
        files += 1;
        for (at, line) in text.lines().enumerate() {
            for other in named_owners(line).into_iter().filter(|other| *other != owner()) {
                wrong.push(format!("{name}:{} names {other}, not {}", at + 1, owner()));
            }
        }
    }
    let publisher = WINGET_IDENTIFIER.split('.').next().unwrap_or_default();
    if !publisher.eq_ignore_ascii_case(&owner().replace('-', "")) {
        wrong.push(format!("{WINGET_IDENTIFIER}, the name for winget, is not of {}", owner()));
    }
    if !read(root, "src/setup/installation.rs")?.contains(WINGET_IDENTIFIER) {
        wrong.push(format!("src/setup/installation.rs does not name {WINGET_IDENTIFIER}"));
    }
    refuse_wrong(wrong, format!("{REPOSITORY}, in {files} files"))
}

/// Returns the owners of repositories called `sessions`, and of our names in registries, in a line.
fn named_owners(line: &str) -> Vec<&str> {
    const MARKS: &[(&str, &[&str])] = &[
        ("github.com/", &["/sessions"]),
        ("githubusercontent.com/", &["/sessions"]),
        ("--repo ", &["/sessions"]),
        ("io.github.", &["/sessions", "/dashdash"]),
    ];
    let is_in_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let mut owners = Vec::new();
    for (mark, endings) in MARKS {
        for (at, _) in line.match_indices(mark) {
            let rest = &line[at + mark.len()..];
            let (owner, rest) = rest.split_at(rest.find(|c| !is_in_name(c)).unwrap_or(rest.len()));
            let is_ours = endings.iter().any(|ending| {
                rest.strip_prefix(ending).is_some_and(|after| !after.starts_with(is_in_name))
            });
            if is_ours && !owner.is_empty() {
                owners.push(owner);
            }
        }
    }
    owners
}

/// Checks that all crates have one version, and that what names it agrees.
fn check_versions(root: &Path) -> Result<String> {
    let mut wrong = Vec::new();
    let packages = read_packages(root)?;
    let locks = [read(root, "Cargo.lock")?, read(root, "tests/fuzz/Cargo.lock")?];
    for package in &packages {
        let name = text(&package["name"]);
        if package["version"] != VERSION {
            wrong.push(format!("the crate {name} has version {}", package["version"]));
        }
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let is_ours = packages.iter().any(|other| other["name"] == dependency["name"]);
            if is_ours && dependency["req"] != format!("^{VERSION}") {
                let needs = format!("{} {}", dependency["name"], dependency["req"]);
                wrong.push(format!("{name} needs {needs}, not ^{VERSION}"));
            }
        }
        let head = format!("name = \"{name}\"\nversion = \"");
        for lock in &locks {
            let locked = lock.split_once(&head).map(|(_, rest)| rest);
            if locked.is_some_and(|rest| !rest.starts_with(&format!("{VERSION}\""))) {
                wrong.push(format!("a Cargo.lock has another version of {name}"));
            }
        }
    }
    refuse_wrong(wrong, format!("{VERSION}, in {} crates", packages.len()))
}

/// Returns the packages of the workspace as cargo describes them.
fn read_packages(root: &Path) -> Result<Vec<Value>> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    command.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]);
    command.current_dir(root);
    let metadata = shell::read_json(command)?;
    Ok(metadata["packages"].as_array().cloned().unwrap_or_default())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Checks that the changelog has a section for the version, or one to be dated.
fn check_changelog(root: &Path) -> Result<String> {
    describe_changelog(&read(root, "CHANGELOG.md")?, VERSION)
}

fn describe_changelog(changelog: &str, version: &str) -> Result<String> {
    let count_entries = |head: &str| {
        let mut lines = changelog.lines().skip_while(|line| !line.starts_with(head));
        let heading = lines.next()?;
        let section = lines.take_while(|line| !line.starts_with("## "));
        Some((heading, section.filter(|line| line.starts_with("- ")).count()))
    };
    match count_entries(&format!("## [{version}]")) {
        Some((heading, entries)) if entries > 0 && is_dated(heading) => {
            return Ok(format!("{entries} entries for {version}"));
        }
        Some((heading, _)) => {
            return Err(TaskFailure::step(format!("`{heading}` needs a date and entries")));
        }
        None => {}
    }
    match count_entries("## [Unreleased]") {
        Some((_, entries)) if entries > 0 => Ok(format!(
            "{entries} entries in `Unreleased`, whose heading becomes `## [{version}] - DATE`"
        )),
        Some(_) | None => {
            Err(TaskFailure::step(format!("CHANGELOG.md has no section for {version}")))
        }
    }
}

/// Returns true if a heading ends with a date: `## [0.1.0] - 2026-11-29`.
fn is_dated(heading: &str) -> bool {
    let Some((_, date)) = heading.split_once("] - ") else { return false };
    let parts: Vec<&str> = date.split('-').collect();
    parts.iter().map(|part| part.len()).eq([4, 2, 2])
        && date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

/// Checks the texts of the licences, and what crates.io wants of every crate.
fn check_licences(root: &Path) -> Result<String> {
    let mut wrong = Vec::new();
    if !read(root, "LICENSE")?.starts_with(LICENCE) {
        wrong.push(format!("LICENSE does not start with {LICENCE}"));
    }
    for licence in LICENCE.split(" OR ") {
        let short = licence.split('-').next().unwrap_or(licence).to_uppercase();
        if read(root, &format!("LICENSE-{short}"))?.trim().is_empty() {
            wrong.push(format!("LICENSE-{short} is empty"));
        }
    }
    let packages = read_packages(root)?;
    let is_published = |package: &&Value| package["publish"].is_null();
    let published: Vec<&Value> = packages.iter().filter(is_published).collect();
    for package in &published {
        let name = text(&package["name"]);
        if name != PACKAGE && !name.starts_with(&format!("{PACKAGE}-")) {
            wrong
                .push(format!("the crate {name} would be published under a name that is not ours"));
        }
        for (field, wanted) in
            [("license", Some(LICENCE)), ("repository", Some(REPOSITORY)), ("description", None)]
        {
            let value = text(&package[field]);
            if value.is_empty() || wanted.is_some_and(|wanted| wanted != value) {
                wrong.push(format!("{field} of the crate {name} is `{value}`"));
            }
        }
    }
    refuse_wrong(wrong, format!("{LICENCE}, in {} crates to publish", published.len()))
}

/// Checks the entry for the MCP registry. The test `packages` applies all rules of the registry.
fn check_registry(root: &Path) -> Result<String> {
    let entry: Value = serde_json::from_str(&read(root, "server.json")?)
        .map_err(|error| TaskFailure::step(format!("server.json is not JSON: {error}")))?;
    let mut wrong = Vec::new();
    for (pointer, wanted) in [
        ("/name", registry_name().as_str()),
        ("/version", VERSION),
        ("/repository/url", REPOSITORY),
        ("/websiteUrl", HOMEPAGE),
        ("/packages/0/registryType", "pypi"),
        ("/packages/1/registryType", "npm"),
    ] {
        let value = entry.pointer(pointer).map(text).unwrap_or_default();
        if value != wanted {
            wrong.push(format!("{pointer} of server.json is `{value}`, not `{wanted}`"));
        }
    }
    for package in entry["packages"].as_array().into_iter().flatten() {
        if package["identifier"] != PACKAGE || package["version"] != VERSION {
            wrong.push(format!(
                "server.json names {} {}",
                package["identifier"], package["version"]
            ));
        }
    }
    if !(1..=MAX_DESCRIPTION_CHARS).contains(&text(&entry["description"]).chars().count()) {
        wrong.push(format!(
            "/description of server.json has not 1 to {MAX_DESCRIPTION_CHARS} characters"
        ));
    }
    let icon = text(&entry["icons"][0]["src"]);
    let is_there =
        icon.split_once(&format!("/v{VERSION}/")).is_some_and(|(_, path)| root.join(path).exists());
    if !is_there {
        wrong.push(format!("the icon `{icon}` of server.json is not a file of this version"));
    }
    let line = format!("mcp-name: {}", registry_name());
    if !read(root, "README.md")?.lines().any(|known| known == line) {
        wrong.push(format!(
            "README.md has no line `{line}`, by which the registry verifies the owner"
        ));
    }
    refuse_wrong(wrong, format!("{}, whose bundles `cargo xtask dist` adds", registry_name()))
}

/// Checks that the workflow builds the platforms that `cargo xtask dist` packages, with the pinned Rust.
fn check_workflow(root: &Path) -> Result<String> {
    let workflow = read(root, ".github/workflows/release.yml")?;
    let built: BTreeSet<&str> =
        workflow.lines().filter_map(|line| line.trim().strip_prefix("- target: ")).collect();
    let packaged: BTreeSet<&str> = TARGETS.iter().map(|target| target.triple).collect();
    let mut wrong = Vec::new();
    for target in built.symmetric_difference(&packaged) {
        wrong.push(format!("{target} is in release.yml or in `cargo xtask dist`, but not in both"));
    }
    let toolchain = read(root, "rust-toolchain.toml")?;
    let channel = toolchain.lines().find_map(|line| line.strip_prefix("channel = "));
    for needed in [
        format!("toolchain: {}", channel.unwrap_or("of rust-toolchain.toml")),
        "cargo xtask dist --target ${{ matrix.target }} --out dist".to_owned(),
        "cargo xtask dist --summary --out dist".to_owned(),
        "\"$(jq -r .version server.json)\"".to_owned(),
    ] {
        if !workflow.contains(&needed) {
            wrong.push(format!("release.yml has no `{needed}`"));
        }
    }
    refuse_wrong(wrong, format!("{} platforms", packaged.len()))
}

/// Writes what is made of the archives of all platforms, from files with these names.
fn check_manifests(_: &Path) -> Result<String> {
    let scratch = create_scratch(&std::env::temp_dir())?;
    let mut names = dist::archive_names();
    names.extend(TARGETS.iter().map(|target| target.bundle_name(VERSION)));
    for name in &names {
        let path = scratch.path().join(name);
        fs::write(&path, name).map_err(TaskFailure::io("write", &path))?;
    }
    let written = dist::summary_artifacts(scratch.path())?;
    let texts: Vec<String> =
        written.iter().map(|file| String::from_utf8_lossy(&file.bytes).into_owned()).collect();
    let is_named = |name: &str| texts.iter().any(|text| text.contains(name));
    let wrong = names.iter().filter(|name| !is_named(name));
    let wrong = wrong.map(|name| format!("no manifest names {name}")).collect();
    let written: Vec<&str> = written.iter().map(|file| file.name.as_str()).collect();
    refuse_wrong(wrong, written.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_ready_for_a_release() {
        for check in CHECKS {
            if let Err(failure) = (check.run)(&crate::workspace_root()) {
                panic!("{}: {failure}", check.name);
            }
        }
    }

    #[test]
    fn the_page_has_ten_commands() {
        let headings = COMMANDS_PAGE.lines().filter(|line| line.starts_with("## "));
        assert_eq!(headings.count(), 10);
    }

    #[test]
    fn owners_are_found_where_they_are_named() {
        // This file is checked, too: the name is put in here.
        for (line, owners) in [
            ("git clone https://github.com/@/sessions.git", &["mira"][..]),
            ("mcp-name: io.github.@/sessions and --repo @/sessions", &["mira", "mira"]),
            ("https://github.com/@/sessions-viewer", &[]),
            ("https://github.com/rust-lang/rust", &[]),
        ] {
            assert_eq!(named_owners(&line.replace('@', "mira")), owners, "{line}");
        }
    }

    #[test]
    fn a_section_of_the_changelog_has_a_date_and_entries() {
        let describe = |text: &str| describe_changelog(text, "1.2.0").is_ok();
        assert!(describe("## [1.2.0] - 2026-11-29\n\n- one\n"));
        assert!(describe("## [Unreleased]\n### Added\n- one\n\n## [1.1.0] - 2026-10-01\n"));
        for text in [
            "## [1.2.0]\n- one\n",
            "## [1.2.0] - soon\n- one\n",
            "## [1.2.0] - 2026-11-29\n",
            "## [Unreleased]\n## [1.1.0] - 2026-10-01\n- one\n",
            "",
        ] {
            assert!(!describe(text), "{text}");
        }
    }
}
