//! Tells the linker where the programs find the prebuilt DuckDB library when they run.
//!
//! With the `bundled` feature DuckDB is inside the program and there is nothing to tell.

use std::env;
use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=DUCKDB_LIB_DIR");
    if env::var_os("CARGO_FEATURE_BUNDLED").is_some() {
        return;
    }
    // Next to the installed program, then where it was built.
    let (installed, library) = match env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("linux") => ("$ORIGIN/../lib/sessions", "libduckdb.so"),
        Ok("macos") => ("@executable_path/../lib/sessions", "libduckdb.dylib"),
        _ => return,
    };
    println!("cargo:rustc-link-arg=-Wl,-rpath,{installed}");
    let Ok(directory) = env::var("DUCKDB_LIB_DIR") else { return };
    println!("cargo:rustc-link-arg=-Wl,-rpath,{directory}");
    let library = Path::new(&directory).join(library);
    println!("cargo:rerun-if-changed={}", library.display());
    if !library.exists() {
        println!(
            "cargo:warning=there is no DuckDB library at {}: run `cargo xtask build`, which gets it",
            library.display()
        );
    }
}
