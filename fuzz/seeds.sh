#!/usr/bin/env bash
# Lays real files into `fuzz/corpus/TARGET`, for the fuzzer to begin with. Needs a build of the program: `cargo build`.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$1
seeds=fuzz/corpus/$target
mkdir -p "$seeds"

# A run of the main pipeline over six elements.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp -r milepost.toml stages schemas rules filters prompts templates "$folder"
mkdir -p "$folder/workspace/inputs"
cp tests/crash/six_elements.ifc "$folder/workspace/inputs/sample.ifc"
"${CARGO_TARGET_DIR:-target}/debug/milepost" run -q -C "$folder" --set batch_size=3
made=$folder/workspace

case $target in
    journal) head -n 4 "$made/.milepost/journal/000001.jsonl" > "$seeds/start"; cp "$made/.milepost/journal/000001.jsonl" "$seeds/segment" ;;
    checkpoint) cp "$made"/stage_*_complete.json "$seeds" ;;
    manifest) for stage in "$made"/manifests/*; do cp "$stage/page_0001.sha256" "$seeds/$(basename "$stage")"; done ;;
    stage) cp stages/*.toml "$seeds" ;;
    project) cp milepost.toml "$seeds" ;;
    ifc) cp tests/crash/six_elements.ifc tests/hostile/files/*.ifc "$seeds" ;;
    pdf) cp tests/hostile/files/*.pdf "$seeds" ;;
    # Any bytes are decisions about a structure.
    pdf_structure | ifc_structure) head -c 2000 milepost.toml > "$seeds/decisions" ;;
    *) echo "no target is called $target" >&2; exit 2 ;;
esac
