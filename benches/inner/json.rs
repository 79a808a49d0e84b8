//! What is done to bytes and records: hashing, parsing, validation, selection, jq.

use crate::elements;
use criterion::{Criterion, Throughput};
use milepost_core::base::digest::Digest;
use milepost_core::expr::jq::{EvaluationInput, Jq};
use milepost_core::expr::select::Select;
use milepost_store::check::schema::Schema;
use serde_json::Value;
use std::convert::Infallible;
use std::hint::black_box;
use std::path::Path;

/// All of them.
pub fn benches(criterion: &mut Criterion) {
    sha256(criterion);
    let text = elements::document();
    parse(criterion, &text);
    validate(criterion, &text);
    jq(criterion);
}

fn sha256(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sha256");
    for (name, size) in [("4 KB", 4096), ("1 MB", 1 << 20)] {
        let bytes = vec![7_u8; size];
        group.throughput(Throughput::Bytes(size as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| Digest::of(black_box(&bytes)));
        });
    }
    group.finish();
}

/// The rates are of bytes; the document holds 1,000 elements.
fn parse(criterion: &mut Criterion, text: &str) {
    let mut group = criterion.benchmark_group("json");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("serde_json, whole", |bencher| {
        bencher.iter(|| serde_json::from_str::<Value>(black_box(text)).unwrap());
    });
    let items = Select::parse(".elements[]").unwrap();
    group.bench_function("select .elements[], values", |bencher| {
        bencher.iter(|| {
            let mut each = |value: Value| {
                black_box(value);
                Ok::<(), Infallible>(())
            };
            items.read(black_box(text.as_bytes()), &mut each).unwrap()
        });
    });
    group.bench_function("select .elements[], texts", |bencher| {
        bencher.iter(|| {
            let mut each = |text: &str, _| {
                black_box(text);
                Ok::<(), Infallible>(())
            };
            items
                .read_text(black_box(text.as_bytes()), &mut each)
                .unwrap()
        });
    });
    let keys = Select::parse(".elements[].global_id").unwrap();
    group.bench_function("select .elements[].global_id", |bencher| {
        bencher.iter(|| {
            let mut each = |text: &str, _| {
                black_box(text);
                Ok::<(), Infallible>(())
            };
            keys.read_text(black_box(text.as_bytes()), &mut each)
                .unwrap()
        });
    });
    group.finish();
}

fn validate(criterion: &mut Criterion, text: &str) {
    let read = |path: &str| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(root.join(path)).ok()
    };
    let name = "schemas/parsed.schema.json";
    let schema = Schema::compile(name, &read(name).unwrap(), &read).unwrap();
    let select = Select::parse(".elements").unwrap();
    let validated = schema
        .validate_stream(text.as_bytes(), Some(&select), 10)
        .unwrap();
    assert_eq!(validated.violations, []);
    let value: Value = serde_json::from_str(text).unwrap();

    let mut group = criterion.benchmark_group("schema");
    group.throughput(Throughput::Elements(elements::COUNT));
    group.bench_function("values in memory", |bencher| {
        bencher.iter(|| schema.is_valid(black_box(&value)));
    });
    group.bench_function("a file, whole", |bencher| {
        bencher.iter(|| {
            schema
                .validate_stream(black_box(text.as_bytes()), None, 10)
                .unwrap()
        });
    });
    group.bench_function("a file, item by item", |bencher| {
        bencher.iter(|| {
            schema
                .validate_stream(black_box(text.as_bytes()), Some(&select), 10)
                .unwrap()
        });
    });
    group.finish();
}

/// `filters/record.jq`, as the main pipeline runs it for every element.
fn jq(criterion: &mut Criterion) {
    let source = include_str!("../../filters/record.jq");
    let jq = Jq::compile("filters/record.jq", source, &["element", "question"]).unwrap();
    let texts: Vec<String> = elements::elements().iter().map(Value::to_string).collect();
    let answer = elements::answer();
    let mut group = criterion.benchmark_group("jq");
    group.throughput(Throughput::Elements(elements::COUNT));
    group.bench_function("record.jq", |bencher| {
        let mut bound = jq.bind(&[Value::Null, Value::Null]).unwrap();
        bencher.iter(|| {
            for text in &texts {
                let input = EvaluationInput {
                    value: answer.as_str().into(),
                    variables: vec![text.as_str().into()],
                };
                black_box(bound.values_of_text(&["element"], &input, true).unwrap());
            }
        });
    });
    group.finish();
}
