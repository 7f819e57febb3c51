//! `sessions restore --file`: the content of a file as an agent last read or wrote it, and what of it is
//! certain.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::checks::JsonChecks;
use crate::env::TestEnv;

/// The full path of the file of the tests, which does not exist.
fn file(env: &TestEnv) -> PathBuf {
    fs::canonicalize(env.root.path()).expect("is there").join("work/notes.yaml")
}

/// The arguments of a call that writes the file.
fn write(file: &Path, content: &str) -> Value {
    json!({ "file_path": file, "content": content })
}

fn edit(file: &Path, old: &str, new: &str) -> Value {
    json!({ "file_path": file, "old_string": old, "new_string": new })
}

/// Ingests a session that writes the file, edits it, and reads another one.
fn ingest_edits(env: &TestEnv, edits: &[(&str, &str)]) -> PathBuf {
    let file = file(env);
    let mut log = env
        .log("writer")
        .cwd(file.parent().expect("a folder"))
        .user("Write the notes")
        .call("w", "Write", write(&file, "path: a\ndescription: b\nname: c\n"))
        .result("w", "File created successfully");
    for (old, new) in edits {
        log = log.call("e", "Edit", edit(&file, old, new)).result("e", "The file was updated.");
    }
    log.ingest();
    file
}

#[test]
fn a_written_file_comes_back_as_it_was_after_its_edits() {
    let env = TestEnv::new();
    let file = ingest_edits(&env, &[("name: c", "name: d"), ("path: a\n", "")]);
    let restored = env.run(["restore", "--file", &file.to_string_lossy()]);
    assert_eq!(restored.stdout, "description: b\nname: d\n");
    restored.says(["writer:1", "2 edits", "writer:5", "Certain"]).ok();

    // Before the last edit, and before the first one.
    for (event, content) in [
        ("writer:5", "path: a\ndescription: b\nname: d\n"),
        ("writer:3", "path: a\ndescription: b\nname: c\n"),
    ] {
        let restored = env.run(["restore", "--file", &file.to_string_lossy(), "--at", event]);
        assert_eq!(restored.ok(), content);
    }
    let nothing = ["restore", "--file", &file.to_string_lossy(), "--at", "writer:1"];
    env.run(nothing).fails(1).says("No session");
    env.json(["restore", "--file", &file.to_string_lossy()]).has(json!({
        "is_whole": true, "is_certain": true, "edits": 2, "masked_secrets": 0,
        "origin": { "event_id": "writer:1" }, "last": { "event_id": "writer:5" },
    }));
}

#[test]
fn what_is_not_certain_is_said() {
    let env = TestEnv::new();
    let file = ingest_edits(&env, &[("not there", "x"), (": ", "= ")]);
    let restored = env.run(["restore", "--file", &file.to_string_lossy()]);
    restored
        .says(["writer:3 could not be applied", "writer:5 could not be applied", "3 times"])
        .ok();

    // Without the log the end of an argument is not certain.
    let env = TestEnv::new();
    let file = ingest_edits(&env, &[]);
    env.remove("logs/writer.jsonl");
    env.ingest(env.root.path());
    let restored = env.run(["restore", "--file", &file.to_string_lossy()]);
    restored.says("the stored text").ok();
}

#[test]
fn the_edits_of_a_log_that_moved_are_read_where_it_is() {
    let env = TestEnv::new();
    let file = ingest_edits(&env, &[]);
    fs::create_dir(env.path("moved")).expect("a folder");
    fs::rename(env.path("logs/writer.jsonl"), env.path("moved/writer.jsonl")).expect("moves");
    env.ingest(env.root.path());
    let restored = env.run(["restore", "--file", &file.to_string_lossy()]);
    restored.says("Certain").lacks("the stored text").ok();
}

#[test]
fn a_file_that_a_patch_moved_is_no_longer_there() {
    let env = TestEnv::new();
    let file = file(&env);
    let [old, new] =
        [&file, &file.with_file_name("new.yaml")].map(|path| path.display().to_string());
    let patch = format!(
        "*** Begin Patch\n*** Update File: {old}\n*** Move to: {new}\n@@\n-name: c\n+name: d\n*** End Patch"
    );
    env.log("writer")
        .cwd(file.parent().expect("a folder"))
        .user("Rename the notes")
        .call("w", "Write", write(&file, "path: a\nname: c\n"))
        .result("w", "File created successfully")
        .call("p", "apply_patch", json!({ "input": patch }))
        .result("p", "Success")
        .ingest();
    env.json(["restore", "--file", &old]).has(json!({ "is_deleted": true, "is_certain": true }));
    env.json(["restore", "--file", &new])
        .has(json!({ "is_certain": false, "last": { "event_id": "writer:3" } }));
}

#[test]
fn lines_that_were_read_are_known_in_part() {
    let env = TestEnv::new();
    let file = file(&env);
    let read = |from: usize| json!({ "file_path": file, "offset": from, "limit": 2 });
    env.log("reader")
        .cwd(file.parent().expect("a folder"))
        .user("Look at the notes")
        .call("r", "Read", read(1))
        .result("r", "     1→a\n     2→b")
        .call("s", "Read", read(9))
        .result("s", "     9→y\n    10→z")
        .ingest();
    let restored = env.run(["restore", "--file", &file.to_string_lossy()]);
    assert_eq!(restored.stdout, "a\nb\ny\nz\n");
    restored.says(["1-2, 9-10", "missing"]).ok();
    env.json(["restore", "--file", &file.to_string_lossy()])
        .has(json!({ "is_whole": false, "lines": [[1, 2], [9, 10]] }));

    // They do not replace the whole file.
    env.write("out.yaml", "mine");
    let args = ["restore", "--file", &file.to_string_lossy(), "-o", "out.yaml", "--force"];
    env.run(args).fails(2).says("Only some lines");
    assert_eq!(env.read("out.yaml"), "mine");
    env.remove("out.yaml");
    env.run(args).ok();
}

#[cfg(unix)]
#[test]
fn a_file_that_is_replaced_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt as _;
    let env = TestEnv::new();
    let file = ingest_edits(&env, &[]);
    env.write("run.sh", "mine");
    let mode =
        |name: &str| fs::metadata(env.path(name)).expect("there").permissions().mode() & 0o777;
    fs::set_permissions(env.path("run.sh"), fs::Permissions::from_mode(0o754)).expect("sets");
    env.run(["restore", "--file", &file.to_string_lossy(), "-o", "run.sh", "--force"]).ok();
    assert_eq!([mode("run.sh"), mode("run.sh.bak")], [0o754; 2]);
}

#[test]
fn no_file_is_replaced_without_force() {
    let env = TestEnv::new();
    let file = ingest_edits(&env, &[]);
    let restore = |args: &[&str]| env.cli(["restore", "--file"]).args([&file]).args(args).run();
    let content = "path: a\ndescription: b\nname: c\n";
    restore(&["-o", "out.yaml"]).says("written to").ok();
    assert_eq!(env.read("out.yaml"), content);
    env.write("out.yaml", "mine");
    restore(&["-o", "out.yaml"]).fails(2).says("--force");
    assert_eq!(env.read("out.yaml"), "mine");
    restore(&["-o", "out.yaml", "--force"]).says("what it was is out.yaml.bak").ok();
    assert_eq!([env.read("out.yaml"), env.read("out.yaml.bak")], [content, "mine"]);
    env.write("out.yaml", "mine again");
    restore(&["-o", "out.yaml", "--force"]).says("out.yaml.bak2").ok();
    assert_eq!([env.read("out.yaml.bak"), env.read("out.yaml.bak2")], ["mine", "mine again"]);
    restore(&["--force"]).fails(2);
    env.run(["restore", "--file", "."]).fails(2).says("this is a folder");
    restore(&["--at", "nobody:3"]).fails(1);
}

#[test]
fn a_restored_file_has_masks() {
    let env = TestEnv::new();
    let file = file(&env);
    let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    env.log("writer")
        .cwd(file.parent().expect("a folder"))
        .call("w", "Write", write(&file, &format!("token {token}\n")))
        .result("w", "File created successfully")
        .ingest();
    let restored = env.run(["restore", "--file", &file.to_string_lossy()]);
    assert_eq!(restored.stdout, "token [REDACTED:github_token]\n");
    restored.says("not the original").ok();
}
