//! The layer rules of ARCHITECTURE.md, and that every file stays readable.

use std::path::{Path, PathBuf};

fn rust_files(dir: &str) -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    let mut open = vec![root.join(dir)];
    while let Some(dir) = open.pop() {
        for entry in
            std::fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()))
        {
            let path = entry.expect("entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                let text = std::fs::read_to_string(&path).expect("reads");
                files.push((path.strip_prefix(root).expect("below the root").to_owned(), text));
            }
        }
    }
    assert!(!files.is_empty(), "{dir}");
    files
}

/// Code without comments and the text of strings is not needed here: names with `::` are enough.
fn names(text: &str, word: &str) -> bool {
    text.lines().filter(|line| !line.trim_start().starts_with("//")).any(|line| line.contains(word))
}

#[test]
fn each_layer_names_only_what_it_may() {
    let rules: &[(&str, &[&str], &[&str])] = &[
        // word, folders searched, the only places that may name it
        ("duckdb::", &["src", "ingest/src", "schemas/src"], &["src/sql"]),
        ("rmcp::", &["src", "ingest/src", "schemas/src"], &["src/server"]),
        ("clap::", &["src", "ingest/src", "schemas/src"], &["src/cli"]),
        ("parquet::", &["src", "ingest/src", "schemas/src"], &["src/store"]),
        ("hyper::", &["src", "ingest/src", "schemas/src"], &["src/server"]),
        ("toml_edit::", &["src", "ingest/src", "schemas/src"], &["src/setup"]),
        ("jsonc_parser::", &["src", "ingest/src", "schemas/src"], &["src/setup"]),
        ("arrow::", &["schemas/src"], &[]),
        ("pulldown_cmark::", &["src", "ingest/src", "schemas/src"], &["src/export"]),
        ("crate::tools", &["src/store", "src/search", "src/sql"], &[]),
        ("crate::report", &["src/store", "src/search", "src/sql", "src/tools", "src/server"], &[]),
        ("crate::export", &["src/store", "src/search", "src/sql", "src/tools", "src/server"], &[]),
        ("crate::output", &["src/store", "src/search", "src/sql", "src/tools", "src/server"], &[]),
        ("crate::tools", &["src/help", "src/setup"], &[]),
        ("crate::server", &["src/help", "src/setup"], &[]),
        ("crate::cli", &["src/help", "src/setup"], &[]),
        ("crate::search", &["src/store", "src/sql"], &[]),
        ("crate::sql", &["src/store", "src/search"], &[]),
        ("crate::server", &["src/store", "src/search", "src/sql", "src/tools"], &[]),
        ("crate::cli", &["src/store", "src/search", "src/sql", "src/tools", "src/server"], &[]),
        (
            "std::env::",
            &["src", "ingest/src", "schemas/src"],
            &["src/app/environment.rs", "src/main.rs"],
        ),
        ("println!", &["src", "ingest/src", "schemas/src"], &[]),
        ("io::stdout", &["src", "ingest/src", "schemas/src"], &["src/output"]),
        ("io::stderr", &["src", "ingest/src", "schemas/src"], &["src/output"]),
    ];
    for (word, folders, allowed) in rules {
        for folder in *folders {
            for (path, text) in rust_files(folder) {
                let may = allowed.iter().any(|place| path.starts_with(place));
                assert!(may || !names(&text, word), "{} names {word}", path.display());
            }
        }
    }
}

#[test]
fn files_are_short_and_say_what_they_are_for() {
    for folder in
        ["src", "ingest/src", "schemas/src", "xtask/src", "tests", "ingest/tests", "benches"]
    {
        for (path, text) in rust_files(folder) {
            let limit =
                if path.components().any(|part| part.as_os_str() == "tests") { 600 } else { 450 };
            let lines = text.lines().count();
            assert!(lines <= limit, "{} has {lines} lines", path.display());
            assert!(
                text.starts_with("//!"),
                "{} does not begin with what it is for",
                path.display()
            );
        }
    }
}

#[test]
fn a_provider_is_a_folder_and_a_row() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("ingest/src/provider");
    let mut folders = std::fs::read_dir(&root)
        .expect("providers")
        .map(|entry| entry.expect("entry").path())
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().expect("name").to_string_lossy().into_owned())
        .collect::<Vec<_>>();
    let table = std::fs::read_to_string(root.join("mod.rs")).expect("reads");
    let mut rows = table
        .lines()
        .filter_map(|line| line.trim().strip_suffix("::FORMAT,"))
        .map(str::to_owned)
        .collect::<Vec<_>>();
    folders.sort();
    rows.sort();
    assert_eq!(rows, folders);
}

#[test]
fn arrow_has_one_version_and_schemas_stays_small() {
    let lock = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.lock"))
        .expect("lock");
    assert_eq!(lock.matches("name = \"arrow-schema\"").count(), 1);
    let manifest =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/Cargo.toml"))
            .expect("manifest");
    for word in ["arrow", "duckdb", "rmcp", "clap", "ingest"] {
        assert!(!manifest.contains(&format!("\n{word}")), "schemas depends on {word}");
    }
}

/// A file of tests that its binary does not name compiles nowhere and fails never.
#[test]
fn every_file_of_tests_is_in_its_binary() {
    for folder in ["tests/it", "ingest/tests/it"] {
        let files = rust_files(folder);
        let main = files.iter().find(|(path, _)| path.ends_with("main.rs")).expect("main.rs");
        for (path, _) in files.iter().filter(|(path, _)| path.parent() == main.0.parent()) {
            let name = path.file_stem().and_then(|stem| stem.to_str()).expect("a name");
            let is_named = main.1.lines().any(|line| line == format!("mod {name};"));
            assert!(is_named || name == "main", "{} is not in main.rs", path.display());
        }
    }
}

/// The code of a module that has parts lies beside them, in `mod.rs`.
#[test]
fn modules_with_parts_are_folders() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in ["src", "ingest/src", "schemas/src", "xtask/src", "tests/it", "ingest/tests/it"] {
        for (path, _) in rust_files(folder) {
            let parts = root.join(path.with_extension(""));
            assert!(
                !parts.join("mod.rs").exists() && !has_rust_files(&parts),
                "{}",
                path.display()
            );
        }
    }
}

fn has_rust_files(dir: &Path) -> bool {
    let files = std::fs::read_dir(dir).into_iter().flatten().flatten();
    files.map(|file| file.path()).any(|path| path.extension().is_some_and(|ext| ext == "rs"))
}
