//! Layers inside a package, purity, one printer, one file with `unsafe`. The packages themselves are kept apart by the compiler.

use super::source::Source;

/// A layer: the folder that holds it, whether it is pure, and the layers of its package that it may import.
struct Layer {
    folder: &'static str,
    pure: bool,
    imports: &'static [&'static str],
}

const fn layer(folder: &'static str, pure: bool, imports: &'static [&'static str]) -> Layer {
    Layer {
        folder,
        pure,
        imports,
    }
}

/// `docs/explanation/design.md` says why.
const LAYERS: &[Layer] = &[
    layer("crates/core/src/base", true, &[]),
    layer("crates/core/src/expr", true, &["base"]),
    layer("crates/core/src/model", true, &["base", "expr"]),
    layer("crates/core/src/decl", true, &["base", "expr", "model"]),
    layer("crates/core/src/plan", true, &["base", "expr", "model"]),
    layer("crates/formats/src/ifc", false, &[]),
    layer("crates/formats/src/pdf", false, &[]),
    layer("crates/formats/src/pdf_text", false, &[]),
    layer("crates/formats/src/xlsx", false, &[]),
    layer("crates/store/src/store", false, &[]),
    layer("crates/store/src/check", false, &[]),
    layer("crates/engine/src/steps", false, &[]),
    layer("crates/engine/src/run", false, &["steps"]),
    layer("crates/engine/src/ops", false, &["run"]),
    layer("src/view", true, &[]),
    layer("src/page", true, &["view"]),
    layer("src/watch", false, &["view"]),
    layer("src/serve", false, &[]),
    layer("src/mcp", false, &["view", "serve"]),
    layer("src/web", false, &["view", "page", "serve"]),
    layer("src/cli", false, &["view", "page", "mcp", "watch", "web"]),
];

/// Packages without layers.
const FLAT: &[&str] = &["crates/agents"];

/// What pure layers do not use, and what they do instead.
const IMPURE: &[(&[&str], &str)] = &[
    (
        &["std", ":", ":", "fs"],
        "take a `base::source` trait, or do it in the store",
    ),
    (
        &["std", ":", ":", "process"],
        "start programs in `steps::command`",
    ),
    (
        &["std", ":", ":", "env"],
        "read settings in `cli` and pass them as values",
    ),
    (
        &["std", ":", ":", "net"],
        "talk to the network in `crates/agents`",
    ),
    (
        &["SystemTime"],
        "take the time as a value or by the trait `Clock`",
    ),
    (
        &["Instant", ":", ":", "now"],
        "take the time as a value or by the trait `Clock`",
    ),
    (
        &["Timestamp", ":", ":", "now"],
        "take the time as a value or by the trait `Clock`",
    ),
    (
        &["Zoned", ":", ":", "now"],
        "take the time as a value or by the trait `Clock`",
    ),
];

const PRINTING: &[&[&str]] = &[
    &["println", "!"],
    &["print", "!"],
    &["eprintln", "!"],
    &["eprint", "!"],
    &["dbg", "!"],
    &["io", ":", ":", "stdout"],
    &["io", ":", ":", "stderr"],
];

/// The only file with `unsafe`: it maps files into memory.
const MAPS_FILES: &str = "crates/formats/src/ifc/map.rs";

pub fn check(source: &Source, found: &mut Vec<String>) {
    let path = &source.path;
    let found_layer = LAYERS
        .iter()
        .find(|layer| path.starts_with(&format!("{}/", layer.folder)));
    let entry = source.module.is_empty() || FLAT.contains(&source.package.as_str());
    if found_layer.is_none() && !entry {
        found.push(format!(
            "{path}:1: the file is in no layer; move it into a folder that tests/architecture/layers.rs lists"
        ));
    }
    if let Some(layer) = found_layer {
        check_imports(source, layer, found);
        if layer.pure {
            check_purity(source, found);
        }
    }
    if !path.starts_with("src/cli/") && path != "src/main.rs" {
        for words in PRINTING {
            for (_, line) in source.find(words) {
                let words = words.concat();
                found.push(format!(
                    "{path}:{line}: `{words}` outside `cli`; return data, and let `cli` print it"
                ));
            }
        }
    }
    if path != MAPS_FILES {
        for (_, line) in source.find(&["unsafe"]) {
            found.push(format!(
                "{path}:{line}: `unsafe` outside {MAPS_FILES}; use safe code or a crate"
            ));
        }
    }
}

fn check_imports(source: &Source, layer: &Layer, found: &mut Vec<String>) {
    let path = &source.path;
    let name = &source.module[0];
    for (line, names) in source.paths("crate") {
        let Some(other) = names.first() else { continue };
        let siblings = LAYERS.iter().any(|layer| {
            layer
                .folder
                .starts_with(&format!("{}/", source_folder(source)))
                && layer.folder.ends_with(&format!("/{other}"))
        });
        if siblings && other != name && !layer.imports.contains(&other.as_str()) {
            found.push(format!(
                "{path}:{line}: `{name}` imports `{other}`, but may import only {:?}; move shared code down, or pass it as a value or trait",
                layer.imports
            ));
        }
    }
    let depth = source.module.len();
    let supers: Vec<&str> = std::iter::repeat_n(["super", ":", ":"], depth)
        .flatten()
        .collect();
    for (_, line) in source.find(&supers) {
        found.push(format!(
            "{path}:{line}: `super` leaves the layer; write `crate::`, so that the import can be seen"
        ));
    }
}

fn source_folder(source: &Source) -> String {
    match source.package.as_str() {
        "" => "src".to_owned(),
        package => format!("{package}/src"),
    }
}

fn check_purity(source: &Source, found: &mut Vec<String>) {
    let path = &source.path;
    let mut report = |line: usize, words: &str, instead: &str| {
        found.push(format!(
            "{path}:{line}: `{words}` in a pure layer; {instead}"
        ));
    };
    for (words, instead) in IMPURE {
        if let ["std", _, _, module] = words {
            for (line, names) in source.paths("std") {
                if names.first().is_some_and(|name| name == module) {
                    report(line, &words.concat(), instead);
                }
            }
        } else {
            for (_, line) in source.find(words) {
                report(line, &words.concat(), instead);
            }
        }
    }
}
