//! The rules of the code base that the compiler cannot check: layers inside a package, purity, one printer, and sizes.

#[path = "architecture/circles.rs"]
mod circles;
#[path = "architecture/layers.rs"]
mod layers;
#[path = "architecture/names.rs"]
mod names;
#[path = "architecture/sizes.rs"]
mod sizes;
#[path = "architecture/skipped.rs"]
mod skipped;
#[path = "architecture/source.rs"]
mod source;

use source::Source;
use std::path::Path;

#[test]
fn the_code_base_keeps_its_rules() {
    let sources = source::read(Path::new(env!("CARGO_MANIFEST_DIR")));
    let found = violations(&sources);
    assert!(
        found.is_empty(),
        "{} violations:\n{}",
        found.len(),
        found.join("\n")
    );
}

/// Prints the lines of code of each package: `cargo test --test all lines_of_code -- --nocapture`.
#[test]
fn lines_of_code_stay_below_their_numbers() {
    let sources = source::read(Path::new(env!("CARGO_MANIFEST_DIR")));
    let found = sizes::code(&sources);
    for (name, lines) in &found {
        eprintln!("    (\"{name}\", {lines}),");
    }
    let mut violations = Vec::new();
    sizes::check_code(&found, &mut violations);
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

#[test]
fn no_further_function_is_too_long() {
    let sources = source::read(Path::new(env!("CARGO_MANIFEST_DIR")));
    let mut violations = Vec::new();
    sizes::check_lints(&sources, &mut violations);
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

/// Returns each violation as `file:line: what is wrong; what to do`, sorted.
fn violations(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources {
        sizes::check_file(source, &mut found);
        layers::check(source, &mut found);
    }
    sizes::check_folders(sources, &mut found);
    names::check_types(sources, &mut found);
    names::check_errors(sources, &mut found);
    names::check_suggestions(sources, &mut found);
    circles::check(sources, &mut found);
    found.sort();
    found.dedup();
    found
}

/// Returns the violations of files given as path and text.
fn violations_of(files: &[(&str, &str)]) -> Vec<String> {
    let sources: Vec<Source> = files
        .iter()
        .map(|(path, text)| Source::parse(path, text))
        .collect();
    violations(&sources)
}

#[test]
fn a_good_tree_has_no_violations() {
    let files = [
        (
            "crates/core/src/lib.rs",
            "//! A library.\npub mod base;\npub mod plan;\n",
        ),
        (
            "src/main.rs",
            "//! A program.\nfn main() {\n    eprintln!(\"{}\", 1);\n}\n",
        ),
        (
            "crates/core/src/base/mod.rs",
            "//! Shared values.\nuse std::io;\n",
        ),
        (
            "crates/core/src/plan/mod.rs",
            "//! Decides. Not by std::fs, nor by [`crate::decl`].\nuse crate::{base::digest, model};\n\
             // crate::decl would be wrong\nconst HINT: &str = \"std::fs and println! and unsafe\";\n\
             #[cfg(test)]\n#[path = \"tests.rs\"]\nmod tests;\n#[cfg(test)]\nmod more {\n    use crate::decl;\n    use std::fs;\n}\n",
        ),
        (
            "crates/core/src/plan/tests.rs",
            "//! Tests of the plan.\nuse crate::decl;\nuse std::fs;\n",
        ),
        (
            "src/cli/mod.rs",
            "//! Prints.\nfn say() {\n    println!(\"done\");\n}\n",
        ),
        (
            "crates/formats/src/ifc/map.rs",
            "//! Maps a file.\n#[allow(unsafe_code)]\nfn map() {\n    unsafe { core() }\n}\n",
        ),
        (
            "crates/store/src/store/disk.rs",
            "//! Writes.\nuse std::fs;\nuse super::layout;\n",
        ),
        (
            "crates/store/src/store/layout.rs",
            "//! Paths.\npub use super::disk::Disk;\npub fn f() -> Result<String, Error> {}\nfn g() -> Result<u8, String> {}\n",
        ),
    ];
    assert_eq!(violations_of(&files), Vec::<String>::new());
}

#[test]
fn a_wrong_tree_is_reported() {
    let long = "//! Long.\n".to_owned() + &"\n".repeat(600);
    let files = [
        ("crates/core/src/base/mod.rs", "use crate::model;\n"),
        ("crates/core/src/extra.rs", "//! Is in no layer.\n"),
        (
            "crates/core/src/plan/decide.rs",
            "//! Decides.\nuse crate::{\n    base::digest,\n    decl::{Disk, lock},\n};\n\nfn f() -> crate::decl::Run {}\n",
        ),
        (
            "crates/core/src/plan/mod.rs",
            "//! Plans.\n#[cfg(test)]\nmod tests {\n    use crate::decl;\n}\nuse super::decl;\n",
        ),
        (
            "crates/engine/src/run/utils.rs",
            "//! All sorts.\nfn f() {\n    println!(\"x\"); // said\n}\n",
        ),
        (
            "crates/engine/src/steps/fast.rs",
            "//! Fast.\npub fn f() -> Result<u8, String> {\n    unsafe { g() }\n}\n",
        ),
        ("crates/store/src/store/long.rs", long.as_str()),
        (
            "src/view/mod.rs",
            "//! Shows.\nuse std::{fs::File, io};\nfn f() {\n    let now = std::time::SystemTime::now();\n    assert!(std::env::var(\"HOME\").is_ok());\n}\n",
        ),
    ];
    let expected = [
        "crates/core/src/base/mod.rs:1: `base` imports `model`, but may import only []; move shared code down, or pass it as a value or trait",
        "crates/core/src/base/mod.rs:1: the first line must be `//! ` and what the file holds",
        "crates/core/src/extra.rs:1: the file is in no layer; move it into a folder that tests/architecture/layers.rs lists",
        "crates/core/src/plan/decide.rs:4: `plan` imports `decl`, but may import only [\"base\", \"expr\", \"model\"]; move shared code down, or pass it as a value or trait",
        "crates/core/src/plan/decide.rs:7: `plan` imports `decl`, but may import only [\"base\", \"expr\", \"model\"]; move shared code down, or pass it as a value or trait",
        "crates/core/src/plan/mod.rs:6: `super` leaves the layer; write `crate::`, so that the import can be seen",
        "crates/engine/src/run/utils.rs:1: `utils` says nothing; name the file after its one idea, and keep errors beside their code",
        "crates/engine/src/run/utils.rs:3: `println!` outside `cli`; return data, and let `cli` print it",
        "crates/engine/src/steps/fast.rs:2: `f` returns a `String` as its error; return an error type",
        "crates/engine/src/steps/fast.rs:3: `unsafe` outside crates/formats/src/ifc/map.rs; use safe code or a crate",
        "crates/store/src/store/long.rs:600: 601 lines, at most 600; split the file by its ideas",
        "src/view/mod.rs:2: `std::fs` in a pure layer; take a `base::source` trait, or do it in the store",
        "src/view/mod.rs:4: `SystemTime` in a pure layer; take the time as a value or by the trait `Clock`",
        "src/view/mod.rs:5: `std::env` in a pure layer; read settings in `cli` and pass them as values",
    ];
    assert_eq!(violations_of(&files), expected);
}
