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

# Times the main pipeline on a model of 100,000 elements, cold and again.
bench ELEMENTS="100000":
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
