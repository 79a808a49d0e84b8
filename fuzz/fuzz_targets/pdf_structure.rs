//! Fuzzes the target `pdf_structure` of `tests/mutated/targets.rs`.
#![no_main]

#[allow(dead_code)]
#[path = "../../tests/mutated/structures.rs"]
mod structures;
#[allow(dead_code)]
#[path = "../../tests/mutated/targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    thread_local!(static FOLDER: tempfile::TempDir = tempfile::tempdir_in("/dev/shm").unwrap());
    FOLDER.with(|folder| {
        let inside = folder.path().join("x");
        let _ = std::fs::remove_dir_all(&inside);
        std::fs::create_dir(&inside).unwrap();
        targets::pdf_structure(&inside, bytes);
    });
});
