//! The layer rules of ARCHITECTURE.md, and that every file says what it is for.

mod imports;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use self::imports::{CRATES, Imports, Names};

fn rust_files(dir: &str) -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = crate::env::files_below(&root.join(dir)).into_iter();
    let files: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|ext| ext == "rs"))
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("reads");
            (path.strip_prefix(root).expect("below the root").to_owned(), text)
        })
        .collect();
    assert!(!files.is_empty(), "{dir}");
    files
}

/// Returns the module of the map that a file belongs to: a crate of `crates/`, or the folder or file
/// at the top of another crate.
fn place_of(module: &Names) -> String {
    let depth = if is_in_crates(&module[0]) { 1 } else { 2 };
    module.iter().take(depth).map(String::as_str).collect::<Vec<_>>().join("::")
}

fn is_in_crates(name: &str) -> bool {
    CRATES.iter().any(|(other, folder)| *other == name && folder.starts_with("crates/"))
}

/// Returns the modules in the tables of ARCHITECTURE.md, each with the others that it uses.
fn places_on_the_map(root: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let map = std::fs::read_to_string(root.join("ARCHITECTURE.md")).expect("the map");
    let mut places = BTreeMap::new();
    for line in map.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [place, _, uses] = cells.as_slice() else { continue };
        let place = place.trim_matches('`').trim_end_matches('/').trim_end_matches(".rs");
        let own = |name: &str| {
            if is_in_crates(name) {
                name.to_owned()
            } else if place.starts_with("ingest/src/") {
                format!("ingest::{name}")
            } else {
                format!("sessions::{name}")
            }
        };
        let folders = ["src/", "ingest/src/", "crates/"];
        let Some(name) = folders.iter().find_map(|folder| place.strip_prefix(folder)) else {
            continue;
        };
        let uses = uses.split(',').map(str::trim).filter(|name| !name.is_empty());
        places.insert(own(name), uses.map(|name| own(name.trim_matches('`'))).collect());
    }
    places
}

#[test]
fn modules_use_each_other_as_the_map_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let is_on_the_map = |module: &Names| {
        is_in_crates(&module[0])
            || module.len() > 1
                && matches!(module[0].as_str(), "sessions" | "ingest")
                && module[1] != "main"
    };
    let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (module, uses) in &Imports::read(root).uses {
        if !is_on_the_map(module) {
            continue;
        }
        let place = place_of(module);
        let others = uses.modules.iter().filter(|other| is_on_the_map(other));
        // Every module may use the contract and, outside `ingest`, what reads logs.
        let others = others.filter(|other| other[0] == module[0] || other[0] != "ingest");
        let others = others.map(place_of).filter(|other| *other != place);
        places.entry(place.clone()).or_default().extend(others);
    }
    assert_eq!(places, places_on_the_map(root));
}

#[test]
fn no_modules_use_each_other_in_a_circle() {
    let imports = Imports::read(Path::new(env!("CARGO_MANIFEST_DIR")));
    assert!(imports.files.len() > 300, "{} files", imports.files.len());
    let cycles = imports.cycles();
    assert!(cycles.is_empty(), "{cycles:#?}");
}

#[test]
fn foreign_crates_are_used_where_the_map_says() {
    let rules: &[(&str, &[&str])] = &[
        // The beginning of a path, and the only modules that may use it.
        ("duckdb", &["sql"]),
        ("rmcp", &["sessions::server"]),
        ("clap", &["sessions::cli"]),
        ("parquet", &["store"]),
        ("getrandom", &["base"]),
        ("hyper", &["sessions::server"]),
        ("toml_edit", &["sessions::setup"]),
        ("jsonc_parser", &["sessions::setup"]),
        ("pulldown_cmark", &["sessions::export", "sessions::output"]),
        ("ratatui", &["sessions::output::printer", "sessions::screen"]),
        ("rustyline", &["sessions::screen"]),
        ("spark_connect_core", &["sessions::spark"]),
        ("spark_connect_proto", &["sessions::spark"]),
        (
            "rusqlite",
            &[
                "ingest::provider",
                "ingest::rows",
                "ingest::scrub::database",
                "store::archive",
                "store::catalog",
                "store::disk",
            ],
        ),
        ("std::env", &["sessions::config::environment", "sessions::main"]),
        ("std::io::stdout", &["sessions::output"]),
        ("std::io::stderr", &["sessions::output"]),
        ("println!", &[]),
        ("eprintln!", &[]),
    ];
    let imports = Imports::read(Path::new(env!("CARGO_MANIFEST_DIR")));
    let modules = imports.uses.iter().filter(|(module, _)| module[0] != "xtask");
    let mut used = BTreeSet::new();
    for (module, uses) in modules {
        let name = module.join("::");
        for (path, modules) in rules {
            let is_used = |other: &&String| {
                other
                    .strip_prefix(path)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
            };
            let Some(other) = uses.foreign.iter().find(is_used) else { continue };
            used.insert(path);
            assert!(modules.iter().any(|module| name.starts_with(module)), "{name} uses {other}");
        }
        assert!(
            module[0] != "schemas" || !uses.foreign.iter().any(|path| path.starts_with("arrow")),
            "{name} uses arrow"
        );
    }
    // A rule that matches nothing guards nothing.
    let unused: Vec<_> = rules
        .iter()
        .filter(|(path, modules)| !modules.is_empty() && !used.contains(path))
        .collect();
    assert!(unused.is_empty(), "{unused:?}");
}

#[test]
fn files_say_what_they_are_for() {
    for folder in [
        "src",
        "crates",
        "ingest/src",
        "schemas/src",
        "xtask/src",
        "tests",
        "ingest/tests",
        "benches",
    ] {
        for (path, text) in rust_files(folder) {
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
        .filter(|path| path.is_dir() && !path.ends_with("shared"))
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

#[test]
fn fuzz_targets_take_what_was_compiled_for_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let [own, fuzz] = ["Cargo.toml", "tests/fuzz/Cargo.toml"].map(|manifest| {
        let text = std::fs::read_to_string(root.join(manifest)).expect("reads");
        let value: toml::Table = toml::from_str(&text).expect("TOML");
        value["profile"]["dev"].clone()
    });
    assert_eq!(fuzz, own, "another profile would compile DuckDB's crate and C libraries again");
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

/// The code of a module that has parts is next to them, in `mod.rs`.
#[test]
fn modules_with_parts_are_folders() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in
        ["src", "crates", "ingest/src", "schemas/src", "xtask/src", "tests/it", "ingest/tests/it"]
    {
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
