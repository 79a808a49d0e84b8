# Recipes of the project. Each recipe also works as a plain command, without `just`.

# Runs the main pipeline on the sample model.
run *ARGS:
    cargo run --release -- run {{ARGS}}

# Shows what a run would do, and why.
dry-run *ARGS:
    cargo run --release -- run -n {{ARGS}}

# Runs all tests, with a sample of the crashes.
test *ARGS:
    cargo test {{ARGS}}

# Runs everything that must pass before a change is merged.
ci:
    bash .ci/run

# Compares Milepost with Ninja, Make and others on the same work: `just bench --batches 100000`, `just bench --help`.
bench *ARGS:
    cargo bench --bench beside -- {{ARGS}}

# Measures the inner loops in bytes or records per second.
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

# Runs the table of situations: kills, changes, deletions, misleading clocks.
table:
    cargo test --test all situations::table

# Runs the full sweep of crashes: at every operation on the disk, at pairs of them, and thousands of power failures.
crash SEEDS="5000" PAIRS="7":
    cargo build --profile crash --features faults
    MILEPOST_TEST_BINARY=$PWD/target/crash/milepost MILEPOST_TEST_SWEEP=full MILEPOST_TEST_SEEDS={{SEEDS}} MILEPOST_TEST_PAIRS={{PAIRS}} \
        cargo test --test all crash

# Kills runs of the release build from outside.
kill KILLS="1000":
    cargo build --release
    MILEPOST_TEST_BINARY=$PWD/target/release/milepost MILEPOST_TEST_KILLS={{KILLS}} cargo test --test all crash::kill

# Runs the tests with jobs, also those that take minutes: a lost node, a job that runs twice, many kills of the runner. Slurm's tests
# need root and slurmctld, slurmd, slurm-client and munge, and say so where they are missing.
cluster KILLS="50":
    MILEPOST_TEST_KILLS={{KILLS}} MILEPOST_TEST_SWEEP=full cargo test --test all remote -- --include-ignored --nocapture

# Fuzzes a reader: journal, checkpoint, manifest, stage, project, ifc, pdf, ifc_structure or pdf_structure. Needs cargo-fuzz and a nightly compiler.
fuzz TARGET SECONDS="600":
    cargo build
    bash fuzz/seeds.sh {{TARGET}}
    cargo +nightly fuzz run {{TARGET}} -- -max_total_time={{SECONDS}}

# Opens every page of `milepost ui` in Chromium, and saves pictures of the pages. Needs Node.js; `PARTS=ifc,live just pages` runs some parts only.
pages PICTURES="target/pages":
    #!/usr/bin/env bash
    set -euo pipefail
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    cargo build --release
    .ci/browser target/release/milepost "$folder" {{PICTURES}}

# Draws the pictures of pages in the README and the docs. Needs Node.js, Chromium and ImageMagick.
page-pictures:
    PARTS=study-plan just pages target/pages
    convert target/pages/study-plan-overview.png -crop 1280x860+0+0 +repage assets/overview.png
    convert target/pages/study-plan-timeline.png -crop 1280x945+0+0 +repage assets/timeline.png

# Draws the first page of the report, for the README. Needs pdftoppm.
picture:
    #!/usr/bin/env bash
    set -euo pipefail
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    cargo run --release -- run --workspace "$folder/workspace" --set model=workspace/inputs/sample.ifc
    pdftoppm -r 80 -png -f 1 -l 1 -singlefile "$folder/workspace/outputs/report.pdf" assets/report
