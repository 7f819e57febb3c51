//! Containers: any file under any name is looked at, and read if it is a log, without a panic; a
//! second scan finds nothing new.
//!
//! Input: the kind of file, three places to damage with what stands there then, the content.
#![no_main]

use std::io::Write;
use std::path::PathBuf;
use std::sync::LazyLock;

use flate2::Compression;
use flate2::write::GzEncoder;
use fuzz::{Memory, REDACTOR, check_events, mutate_log};
use ingest::discover::discover;
use ingest::plan::plan;
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

const NAMES: &[&str] = &[
    "log.jsonl",
    "log.json",
    "log.jsonl.zst",
    "log.jsonl.gz",
    "opencode.db",
    "log.jsonl.bak-1",
    "storage/session/project/ses_1.json",
    "chat_history.jsonl",
    "wire.jsonl",
    "a/1/ui_messages.json",
];

const HEAD: usize = 10;

static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| tempfile::tempdir().expect("tempdir").keep());

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate_log(data, size, max_size, seed, HEAD)
});

fuzz_target!(|input: &[u8]| {
    let Some((head, content)) = input.split_at_checked(HEAD) else { return };
    let name = NAMES[usize::from(head[0]) % NAMES.len()];
    // Half of the compressed files are compressed as they should be, before they are damaged.
    let packed = (usize::from(head[0]) / NAMES.len()).is_multiple_of(2);
    let mut bytes = match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("zst") if packed => zstd::encode_all(content, 1).expect("packs"),
        Some("gz") if packed => {
            let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
            packer.write_all(content).and_then(|()| packer.finish()).expect("packs")
        }
        _ => content.to_vec(),
    };
    for damage in head[1..].chunks_exact(3) {
        let place = usize::from(u16::from_be_bytes([damage[0], damage[1]]));
        // No damage more often than not: places beyond the end.
        if let Some(byte) = bytes.get_mut(place) {
            *byte ^= damage[2];
        }
    }
    let path = FOLDER.join(name);
    std::fs::create_dir_all(path.with_file_name("")).expect("creates");
    std::fs::write(&path, bytes).expect("writes");
    let memory = Memory::default();
    let rescan = || {
        let found = discover(std::slice::from_ref(&FOLDER));
        memory.run(plan(found, &memory.known(), Some(&REDACTOR)))
    };
    let first = rescan();
    for (session, events) in memory.sessions() {
        check_events(&session, &events, u64::MAX >> 1);
    }
    let again = rescan();
    assert_eq!(again.events, 0, "{first:?} {again:?}");
    std::fs::remove_file(&path).expect("removes");
});
