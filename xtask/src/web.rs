//! `cargo xtask web`: builds the page of `sessions web` from its sources into the files that the
//! program embeds.
//!
//! The built files are committed, so `cargo build` needs no Node. `SOURCES` next to them has the hash
//! of the sources; a test of the workspace compares it, and `cargo xtask web --check` builds again
//! and compares the files themselves.

use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::failure::{Result, TaskFailure};
use crate::options::TaskOptions;
use crate::shell;

/// The sources of the page, with the lock file of npm.
const SOURCES: &str = "src/page/source";

/// The built files.
const BUNDLE: &str = "src/page/bundle";

/// The folder that the page is built in: npm puts its packages next to the sources.
const WORK: &str = "target/web";

/// The file with the hash of the sources.
const HASH_FILE: &str = "SOURCES";

/// The packages whose code is in the script, with the files of their licences.
const LIBRARIES: &[(&str, &str)] =
    &[("diff", "LICENSE"), ("marked", "LICENSE"), ("preact", "LICENSE")];

/// Maximum size of the script and the style together in bytes, compressed.
const MAX_COMPRESSED_BYTES: usize = 400_000;

pub(crate) fn run(root: &Path, options: TaskOptions) -> Result<()> {
    let is_check = match options.rest.as_slice() {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => return options.refuse_rest("web"),
    };
    let files = build(root)?;
    let bundle = root.join(BUNDLE);
    for (name, bytes) in files {
        let path = bundle.join(name);
        if !is_check {
            fs::write(&path, bytes).map_err(TaskFailure::io("write", &path))?;
            continue;
        }
        let there = fs::read(&path).map_err(TaskFailure::io("read", &path))?;
        if there != bytes {
            return Err(TaskFailure::step(format!(
                "{BUNDLE}/{name} differs from what its sources give: run `cargo xtask web` and commit the result"
            )));
        }
    }
    Ok(())
}

/// Builds the page in a folder of its own, and returns the files of the bundle.
fn build(root: &Path) -> Result<Vec<(&'static str, Vec<u8>)>> {
    let sources = read_sources(&root.join(SOURCES))?;
    let work = root.join(WORK);
    fs::create_dir_all(&work).map_err(TaskFailure::io("make", &work))?;
    for (name, bytes) in &sources {
        let path = work.join(name);
        fs::write(&path, bytes).map_err(TaskFailure::io("write", &path))?;
    }

    shell::run_program(&work, "npm", &["ci", "--no-audit", "--no-fund"])?;
    shell::run_program(&work, "npx", &["tsc", "-p", "tsconfig.json"])?;
    let script = [
        "esbuild",
        "main.tsx",
        "--bundle",
        "--minify",
        "--format=iife",
        "--target=es2022",
        "--jsx=automatic",
        "--jsx-import-source=preact",
        "--charset=utf8",
        "--legal-comments=none",
        "--outfile=out/page.js",
    ];
    shell::run_program(&work, "npx", &script)?;
    let style = [
        "esbuild",
        "page.css",
        "--minify",
        "--target=es2022",
        "--charset=utf8",
        "--outfile=out/page.css",
    ];
    shell::run_program(&work, "npx", &style)?;

    let read = |path: &str| {
        let path = work.join(path);
        fs::read(&path).map_err(TaskFailure::io("read", &path))
    };
    let files = vec![
        ("index.html", read("index.html")?),
        ("icon.svg", read("icon.svg")?),
        ("page.js", escape_comments(&read("out/page.js")?)),
        ("page.css", read("out/page.css")?),
        ("licences.txt", read_licences(&work)?),
        (HASH_FILE, format!("{}\n", hash_sources(&sources)).into_bytes()),
    ];
    check_size(&files)?;
    Ok(files)
}

/// Escapes what would begin a comment of HTML where the script is inside a document. It is in regular
/// expressions and texts only.
fn escape_comments(script: &[u8]) -> Vec<u8> {
    String::from_utf8_lossy(script).replace("<!--", r"<\!--").into_bytes()
}

/// Returns the licences of the libraries in the script, which have to go with it.
fn read_licences(work: &Path) -> Result<Vec<u8>> {
    let mut text = String::from("The script of the page contains these libraries.\n");
    for (name, file) in LIBRARIES {
        let path = work.join("node_modules").join(name).join(file);
        let licence = fs::read_to_string(&path).map_err(TaskFailure::io("read", &path))?;
        text.push_str(&format!("\n== {name}\n\n{}\n", licence.replace('\r', "").trim()));
    }
    Ok(text.into_bytes())
}

/// Reads the sources, in the order of their names.
fn read_sources(folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut sources = Vec::new();
    for entry in fs::read_dir(folder).map_err(TaskFailure::io("read", folder))? {
        let path = entry.map_err(TaskFailure::io("read", folder))?.path();
        if let (true, Some(name)) =
            (path.is_file(), path.file_name().and_then(|name| name.to_str()))
        {
            let bytes = fs::read(&path).map_err(TaskFailure::io("read", &path))?;
            sources.push((name.to_owned(), bytes));
        }
    }
    sources.sort();
    Ok(sources)
}

/// Returns the hash of the sources: of each name and its text, with a zero byte after both.
fn hash_sources(sources: &[(String, Vec<u8>)]) -> String {
    let mut hash = Sha256::new();
    for (name, bytes) in sources {
        hash.update(name.as_bytes());
        hash.update([0]);
        hash.update(bytes);
        hash.update([0]);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Refuses a bundle that is too large.
fn check_size(files: &[(&'static str, Vec<u8>)]) -> Result<()> {
    use std::io::Write as _;

    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for (_, bytes) in files {
        encoder.write_all(bytes).map_err(|error| {
            TaskFailure::step(format!("the page cannot be compressed: {error}"))
        })?;
    }
    let compressed = encoder
        .finish()
        .map_err(|error| TaskFailure::step(format!("the page cannot be compressed: {error}")))?;
    shell::print_line(&format!("the page has {} bytes compressed", compressed.len()));
    if compressed.len() > MAX_COMPRESSED_BYTES {
        return Err(TaskFailure::step(format!(
            "the page has {} bytes compressed, more than {MAX_COMPRESSED_BYTES}",
            compressed.len()
        )));
    }
    Ok(())
}
