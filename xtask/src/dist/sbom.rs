//! Writes the bill of materials: a CycloneDX 1.6 document with every crate that is compiled into
//! the program, from `cargo metadata` and `Cargo.lock`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::names::{LICENCE, PACKAGE};
use super::target::Target;
use crate::failure::{Result, TaskFailure};
use crate::shell;

/// Returns the document for a platform.
pub(crate) fn write_sbom(root: &Path, version: &str, target: &Target) -> Result<String> {
    let metadata = read_metadata(root, target)?;
    let lock = root.join("Cargo.lock");
    let lock = std::fs::read_to_string(&lock).map_err(TaskFailure::io("read", &lock))?;
    let document = sbom_document(&metadata, &lock, version)?;
    Ok(format!("{document:#}\n"))
}

/// Asks cargo for the packages of a platform.
fn read_metadata(root: &Path, target: &Target) -> Result<Value> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    command
        .args(["metadata", "--format-version", "1", "--locked", "--features", "bundled,cloud"])
        .args(["--filter-platform", target.triple])
        .current_dir(root);
    shell::read_json(command)
}

/// Makes the document. `lock` is the text of `Cargo.lock`.
fn sbom_document(metadata: &Value, lock: &str, version: &str) -> Result<Value> {
    let packages = collect_by_id(&metadata["packages"]);
    let nodes = collect_by_id(&metadata["resolve"]["nodes"]);
    let root_id = packages
        .iter()
        .find(|(_, package)| package["name"] == PACKAGE)
        .map(|(id, _)| *id)
        .ok_or_else(|| TaskFailure::step(format!("`cargo metadata` has no package {PACKAGE}")))?;

    let included = collect_compiled(&nodes, root_id);
    let checksums = lock_checksums(lock);
    let mut components = Vec::new();
    let mut dependencies = Vec::new();
    for id in &included {
        let Some(package) = packages.get(id) else { continue };
        if *id != root_id {
            components.push(crate_component(package, &checksums));
        }
        let needs: BTreeSet<String> = normal_dependencies(nodes.get(id).copied())
            .filter_map(|id| packages.get(id))
            .map(|package| package_url(package))
            .collect();
        dependencies.push(json!({ "ref": package_url(package), "dependsOn": needs }));
        if package["name"] == "libduckdb-sys"
            && let Some(version) = duckdb_version(text(&package["version"]))
        {
            components.push(duckdb_component(&version));
        }
    }
    components.sort_by_key(|component| text(&component["bom-ref"]).to_owned());

    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": format!("pkg:cargo/{PACKAGE}@{version}"),
                "name": PACKAGE,
                "version": version,
                "purl": format!("pkg:cargo/{PACKAGE}@{version}"),
                "licenses": [{ "expression": LICENCE }],
            },
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

/// Returns the members of a list by their `id`.
fn collect_by_id(list: &Value) -> BTreeMap<&str, &Value> {
    list.as_array().into_iter().flatten().map(|item| (text(&item["id"]), item)).collect()
}

/// Returns the ids of the packages that are compiled into the package `root_id`, with itself.
fn collect_compiled<'a>(
    nodes: &BTreeMap<&'a str, &'a Value>,
    root_id: &'a str,
) -> BTreeSet<&'a str> {
    let mut included = BTreeSet::new();
    let mut waiting = vec![root_id];
    while let Some(id) = waiting.pop() {
        if included.insert(id) {
            waiting.extend(normal_dependencies(nodes.get(id).copied()));
        }
    }
    included
}

/// Returns the dependencies of a node that are neither for tests nor for build scripts.
fn normal_dependencies(node: Option<&Value>) -> impl Iterator<Item = &str> {
    let list = node.and_then(|node| node["deps"].as_array()).into_iter().flatten();
    list.filter(|dependency| {
        let mut kinds = dependency["dep_kinds"].as_array().into_iter().flatten();
        kinds.any(|kind| kind["kind"].is_null())
    })
    .map(|dependency| text(&dependency["pkg"]))
}

fn crate_component(package: &Value, checksums: &BTreeMap<(&str, &str), &str>) -> Value {
    let (name, version) = (text(&package["name"]), text(&package["version"]));
    let url = package_url(package);
    let mut component = json!({
        "type": "library",
        "bom-ref": url,
        "name": name,
        "version": version,
        "scope": "required",
        "purl": url,
    });
    if let Some(licence) = package["license"].as_str() {
        // Some crates separate licences by a slash, which means `OR`.
        component["licenses"] = json!([{ "expression": licence.replace('/', " OR ") }]);
    }
    if let Some(checksum) = checksums.get(&(name, version)) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    component
}

/// Returns DuckDB's version for the version of its crate: `1.10506.0` is DuckDB `1.5.6`. The second
/// number contains three numbers of two digits.
fn duckdb_version(version: &str) -> Option<String> {
    let number: u32 = version.split('.').nth(1)?.parse().ok()?;
    Some(format!("{}.{}.{}", number / 10_000, number / 100 % 100, number % 100))
}

/// Returns the component of DuckDB, which is written in C++.
fn duckdb_component(version: &str) -> Value {
    json!({
        "type": "library",
        "bom-ref": format!("pkg:generic/duckdb@{version}"),
        "name": "duckdb",
        "version": version,
        "scope": "required",
        "purl": format!("pkg:generic/duckdb@{version}"),
        "licenses": [{ "license": { "id": "MIT" } }],
    })
}

fn package_url(package: &Value) -> String {
    format!("pkg:cargo/{}@{}", text(&package["name"]), text(&package["version"]))
}

/// Returns the SHA-256 of each crate by name and version. `Cargo.lock` has one `key = "value"` a
/// line.
fn lock_checksums(lock: &str) -> BTreeMap<(&str, &str), &str> {
    let mut checksums = BTreeMap::new();
    for package in lock.split("[[package]]") {
        let field = |name: &str| {
            package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""))
        };
        let fields = [field("name"), field("version"), field("checksum")];
        if let [Some(name), Some(version), Some(checksum)] =
            fields.map(|value| value.and_then(|value| value.strip_suffix('"')))
        {
            checksums.insert((name, version), checksum);
        }
    }
    checksums
}

/// Returns a string of JSON, or an empty one.
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_compiled_in_is_listed() {
        let metadata = json!({
            "packages": [
                { "id": "a", "name": PACKAGE, "version": "1.0.0" },
                { "id": "b", "name": "b", "version": "2.0.0", "license": "MIT/Apache-2.0" },
                { "id": "c", "name": "c", "version": "3.0.0" },
                { "id": "d", "name": "libduckdb-sys", "version": "1.10506.0" },
            ],
            "resolve": { "nodes": [
                { "id": "a", "deps": [
                    { "pkg": "b", "dep_kinds": [{ "kind": null }, { "kind": "dev" }] },
                    { "pkg": "c", "dep_kinds": [{ "kind": "dev" }] },
                ] },
                { "id": "b", "deps": [{ "pkg": "d", "dep_kinds": [{ "kind": null }] }] },
                { "id": "c", "deps": [] },
            ] },
        });
        let lock = "[[package]]\nname = \"b\"\nversion = \"2.0.0\"\nchecksum = \"ab12\"\n";
        let document = sbom_document(&metadata, lock, "1.0.0").expect("writes");
        let components = document["components"].as_array().expect("a list");
        let names: Vec<&str> = components.iter().map(|item| text(&item["name"])).collect();
        assert_eq!(names, ["b", "libduckdb-sys", "duckdb"]);
        assert_eq!(components[2]["version"], "1.5.6");
        assert_eq!(components[0]["hashes"][0]["content"], "ab12");
        assert_eq!(components[0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(document["dependencies"][0]["dependsOn"], json!(["pkg:cargo/b@2.0.0"]));
    }
}
