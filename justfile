# Recipes of the project. Each is one command that works without `just` as well.

# Runs the main pipeline on the sample model.
run *ARGS:
    cargo run --release -- run {{ARGS}}

# Shows what a run would do, and why.
dry-run *ARGS:
    cargo run --release -- run -n {{ARGS}}

# Runs all tests.
test *ARGS:
    cargo test {{ARGS}}

# What must pass before a change goes in.
ci:
    bash .ci/run

# Sets Milepost beside Ninja, Make and others on the same work: `just bench --batches 100000`, `just bench --help`.
bench *ARGS:
    cargo bench --bench beside -- {{ARGS}}

# Times the inner loops, each with the bytes or records that it gets through in a second.
bench-inner *ARGS:
    cargo bench --bench inner -- {{ARGS}}

# Times the main pipeline on a model of 100,000 elements, cold and again.
bench-model ELEMENTS="100000":
    #!/usr/bin/env bash
    set -euo pipefail
    cargo build --release --example model --bin milepost
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    target/release/examples/model "$folder/model.ifc" --elements {{ELEMENTS}}
    for round in cold again; do
        echo "== $round"
        time target/release/milepost run --quiet --workspace "$folder/workspace" --set model="$folder/model.ifc"
    done

# Every row of the table of situations, by name.
table:
    cargo test --test all situations::table

# Ends the program at every operation on the disk, and the run after it at every seventh, and lets the power fail thousands of times.
crash SEEDS="5000" PAIRS="7":
    cargo build --profile crash
    MILEPOST_TEST_BINARY=$PWD/target/crash/milepost MILEPOST_TEST_READS=1 MILEPOST_TEST_SEEDS={{SEEDS}} MILEPOST_TEST_PAIRS={{PAIRS}} \
        cargo test --test all crash

# Kills runs of the release build from outside.
kill KILLS="1000":
    cargo build --release
    MILEPOST_TEST_BINARY=$PWD/target/release/milepost MILEPOST_TEST_KILLS={{KILLS}} cargo test --test all crash::kill

# Fuzzes a reader: journal, checkpoint, manifest, stage, project or ifc. Needs cargo-fuzz and a nightly compiler.
fuzz TARGET SECONDS="600":
    cargo build
    bash fuzz/seeds.sh {{TARGET}}
    cargo +nightly fuzz run {{TARGET}} -- -max_total_time={{SECONDS}}

# Draws the first page of the report, for the README. Needs pdftoppm.
picture:
    #!/usr/bin/env bash
    set -euo pipefail
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    cargo run --release -- run --workspace "$folder/workspace" --set model=workspace/inputs/sample.ifc
    pdftoppm -r 80 -png -f 1 -l 1 -singlefile "$folder/workspace/outputs/report.pdf" assets/report
