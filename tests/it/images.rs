//! `sessions event ID --image` and `sessions export --images`: images are read from the log when they
//! are asked for.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

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
    fs::write(env.path("pictures.jsonl"), format!("{record}\n")).expect("writes");
    env.run(&["ingest", "--quiet", "pictures.jsonl"]).ok();
    env
}

#[test]
fn images_are_read_from_the_log_by_their_number() {
    let env = with_images();
    let with_image =
        env.rows("SELECT event_id FROM events WHERE text LIKE '%[image/png %' LIMIT 1");
    let id = with_image[0][0].as_str().expect("an event").to_owned();
    let said = env.run(&["event", &id, "--image", "-o", "one.png"]).ok();
    assert!(said.contains("image/png in one.png"), "{said}");
    assert_eq!(fs::read(env.path("one.png")).expect("written"), PNG);
    let all = env.rows("SELECT string_agg(text, ' ' ORDER BY event_index) FROM events");
    let text = all[0][0].as_str().expect("text");
    assert!(text.contains("[image/gif 22 bytes]"), "{text}");

    // A pipe gets the bytes.
    let output = env.command().args(["event", &id, "--image"]).output().expect("runs");
    assert_eq!(output.stdout, PNG);
    let again = env.run(&["event", &id, "--image=2", "-o", "one.png"]);
    assert_ne!(again.code, 0, "another file is not replaced, or there is no second image");
    let shown = env.run(&["show", "pictures", "--color", "always"]).ok();
    assert!(shown.contains("[image 29 B]") && shown.contains("--image -o FILE"), "{shown}");

    let missing = env.run(&["event", &id, "--image=9", "-o", "nine.png"]).fails(1);
    assert!(missing.contains("names no image of a known kind with this number"), "{missing}");
    let two = env.run(&["event", &id, "pictures:0", "--image", "-o", "x.png"]).fails(2);
    assert!(two.contains("--image takes one event ID"), "{two}");
    env.run(&["event", &id, "-o", "x.png"]).fails(2);
    fs::remove_file(env.path("pictures.jsonl")).expect("removes");
    let gone = env.run(&["event", &id, "--image", "-o", "gone.png"]).fails(1);
    assert!(gone.contains("its log cannot be read"), "{gone}");
}

#[test]
fn transcripts_have_the_images_of_the_log_when_asked() {
    let env = with_images();
    let html = ["export", "html", "pictures", "-o", "pictures.html"];
    let read = || fs::read_to_string(env.path("pictures.html")).expect("written");
    env.run(&html).ok();
    let without = read();
    assert!(!without.contains("data:image/") && without.contains("[image/gif 22 bytes]"));

    // The transcript with images is another file: it replaces the first one only when asked.
    let with_images = [&html[..], &["--images"]].concat();
    assert!(env.run(&with_images).fails(2).contains("--force"));
    assert_eq!(read(), without);
    env.run(&[&with_images[..], &["--force"]].concat()).ok();
    let with = read();
    let addresses: Vec<_> = with.split("src=\"data:image/").skip(1).collect();
    assert_eq!(addresses.len(), 2, "what is not an image is left out");
    for (address, (kind, bytes)) in addresses.iter().zip([("png", PNG), ("gif", GIF)]) {
        let address_begin = format!("{kind};base64,{}\"", STANDARD.encode(bytes));
        assert!(address.starts_with(&address_begin), "{}", &address[..80]);
    }
    // The same transcript again is not written, with and without the permission.
    for force in [&[][..], &["--force"]] {
        let again = env.json(&[&with_images[..], force].concat());
        assert_eq!((&again["files"], &again["files_unchanged"]), (&0.into(), &1.into()), "{again}");
    }

    let markdown = ["export", "md", "pictures", "-o", "pictures.md", "--images"];
    assert!(env.run(&markdown).fails(2).contains("--images"));
    fs::remove_file(env.path("pictures.jsonl")).expect("removes");
    env.run(&[&with_images[..], &["--force"]].concat()).ok();
    assert!(!read().contains("data:image/"), "the log has the images");
}
