//! `sessions event ID --image` and `sessions export --images`: images are read from the log when they
//! are asked for.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::checks::{Checks, JsonChecks};
use crate::env::TestEnv;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nthe rest of a picture";
const GIF: &[u8] = b"GIF89a of a lighthouse";

/// A store with a prompt that has two images and a file that is not an image.
fn with_images() -> TestEnv {
    let env = TestEnv::new();
    let image = |kind: &str, bytes: &[u8]| {
        let source =
            json!({ "type": "base64", "media_type": kind, "data": STANDARD.encode(bytes) });
        json!({ "type": "image", "source": source })
    };
    let content = json!([
        { "type": "text", "text": "What is on these?" },
        image("image/png", PNG),
        image("image/gif", GIF),
        image("image/png", b"not a picture at all"),
    ]);
    let record = json!({
        "type": "user", "sessionId": "pictures", "cwd": "/home/mira/pier", "uuid": "a-1",
        "timestamp": "2026-10-01T10:00:00.000Z", "version": "2.1.0",
        "message": { "role": "user", "content": content },
    });
    env.write("pictures.jsonl", format!("{record}\n"));
    env.ingest("pictures.jsonl");
    env
}

#[test]
fn images_of_a_log_that_moved_are_read_where_it_is() {
    let env = with_images();
    env.run(["event", "pictures:0", "--image", "-o", "one.png"]).shows("image/png in one.png");
    fs::create_dir(env.path("moved")).expect("a folder");
    fs::rename(env.path("pictures.jsonl"), env.path("moved/pictures.jsonl")).expect("moves");
    env.ingest("moved");
    env.run(["event", "pictures:0", "--image", "-o", "two.png"]).shows("image/png in two.png");
}

#[test]
fn images_are_read_from_the_log_by_their_number() {
    let env = with_images();
    let with_image =
        env.rows("SELECT event_id FROM events WHERE text LIKE '%[image/png %' LIMIT 1");
    let id = with_image[0][0].text().to_owned();
    env.run(["event", &id, "--image", "-o", "one.png"]).shows("image/png in one.png");
    assert_eq!(fs::read(env.path("one.png")).expect("written"), PNG);
    let all = env.rows("SELECT string_agg(text, ' ' ORDER BY event_index) FROM events");
    all[0][0].shows("[image/gif 22 bytes]");

    // A pipe gets the bytes.
    let output = env.command().args(["event", &id, "--image"]).output().expect("runs");
    assert_eq!(output.stdout, PNG);
    let again = env.run(["event", &id, "--image=2", "-o", "one.png"]);
    assert_ne!(again.code, 0, "another file is not replaced, or there is no second image");
    env.run(["show", "pictures", "--color", "always"]).shows(["[image 29 B]", "--image -o FILE"]);

    env.run(["event", &id, "--image=9", "-o", "nine.png"])
        .fails(1)
        .says("names no image of a known kind with this number");
    env.run(["event", &id, "pictures:0", "--image", "-o", "x.png"])
        .fails(2)
        .says("--image takes one event ID");
    env.run(["event", &id, "-o", "x.png"]).fails(2);
    env.remove("pictures.jsonl");
    env.run(["event", &id, "--image", "-o", "gone.png"]).fails(1).says("its log cannot be read");
}

#[test]
fn transcripts_have_the_images_of_the_log_when_asked() {
    let env = with_images();
    let html = ["export", "html", "pictures", "-o", "pictures.html"];
    let read = || env.read("pictures.html");
    env.run(html).ok();
    let without = read();
    without.shows("[image/gif 22 bytes]").lacks("data:image/");

    // The transcript with images is another file: it replaces the first one only when asked.
    let with_images = [&html[..], &["--images"]].concat();
    env.run(&with_images).fails(2).says("--force");
    assert_eq!(read(), without);
    env.run([&with_images[..], &["--force"]].concat()).ok();
    let with = read();
    let addresses: Vec<_> = with.split("src=\"data:image/").skip(1).collect();
    assert_eq!(addresses.len(), 2, "what is not an image is left out");
    for (address, (kind, bytes)) in addresses.iter().zip([("png", PNG), ("gif", GIF)]) {
        let address_begin = format!("{kind};base64,{}\"", STANDARD.encode(bytes));
        assert!(address.starts_with(&address_begin), "{}", &address[..80]);
    }
    // The same transcript again is not written, with and without the permission.
    for force in [&[][..], &["--force"]] {
        env.json([&with_images[..], force].concat()).has(json!({
            "files": 0, "files_unchanged": 1,
        }));
    }

    let markdown = ["export", "md", "pictures", "-o", "pictures.md", "--images"];
    env.run(markdown).fails(2).says("--images");
    env.remove("pictures.jsonl");
    env.run([&with_images[..], &["--force"]].concat()).ok();
    assert!(!read().contains("data:image/"), "the log has the images");
}
