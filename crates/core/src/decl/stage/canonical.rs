//! The declaration of a stage as canonical JSON for the fingerprint, without keys that change no output.

use crate::decl::step::{MAX_ELEMENTS, SIZE};
use crate::decl::tables::tree::TomlTable;
use crate::expr::scope::{Columns, Format};
use crate::model::stage::{EachSource, InputSource, Program, Stage, Templated};
use crate::model::step::StepKind;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Keys of a step that do not affect its outputs, only how it runs.
const NOT_MADE: [&str; 6] = [
    "timeout",
    "attempts",
    "idempotent",
    "role",
    "summary",
    "errors",
];

/// Returns the parts of a stage: `step`, `each`, `inputs`, `outputs`, `refine`, `conserve`, `requires`, `checks`, `summary`,
/// `verdict`; those that it has.
pub(crate) fn of(stage: &Stage, steps: &[&TomlTable]) -> BTreeMap<String, Value> {
    let mut parts = BTreeMap::new();
    let mut add = |name: &str, value: Value| {
        let is_empty = value.as_array().is_some_and(Vec::is_empty)
            || value.as_object().is_some_and(Map::is_empty)
            || value.is_null();
        if !is_empty {
            parts.insert(name.to_owned(), canonical(value));
        }
    };
    let declared = steps.iter().zip(&stage.steps).map(|(table, step)| {
        let mut map: Map<String, Value> = table
            .entries
            .iter()
            .filter(|(key, _)| !NOT_MADE.contains(&key.name.as_str()))
            .map(|(key, node)| (key.name.clone(), node.to_json()))
            .collect();
        // what is left out means the same as its default written down
        map.insert("out".to_owned(), step.out.as_str().into());
        if map.contains_key("split") {
            map.entry("size").or_insert(SIZE.into());
            map.entry("max_elements").or_insert(MAX_ELEMENTS.into());
        }
        if let StepKind::Http(call) = &step.kind {
            map.insert("method".to_owned(), call.method.as_str().into());
        }
        if map.get("questions") == Some(&Value::Bool(false)) {
            map.remove("questions");
        }
        Value::Object(map)
    });
    add("step", declared.collect());
    add(
        "each",
        stage
            .each
            .iter()
            .map(|each| {
                (
                    each.name.clone(),
                    each_part(&each.source, each.key.as_ref()),
                )
            })
            .collect(),
    );
    add(
        "inputs",
        stage
            .inputs
            .iter()
            .map(|input| (input.name.clone(), input_part(input)))
            .collect(),
    );
    add(
        "outputs",
        stage
            .outputs
            .iter()
            .map(|output| {
                let stream = output.stream.as_ref().map(ToString::to_string);
                let mut value = json!({ "path": output.path.shown(), "format": format_name(output.format), "stream": stream });
                add_columns(&mut value, output.columns.as_deref());
                (output.name.clone(), value)
            })
            .collect(),
    );
    if let Some(marker) = &stage.marker {
        add("marker", marker.shown().into());
    }
    if let Some(refine) = &stage.refine {
        let most = match &refine.max_iterations {
            Templated::Fixed(most) => Value::from(*most),
            Templated::Template(template) => template.source().into(),
        };
        let score = refine.score.as_ref().map(source);
        add(
            "refine",
            json!({ "until": source(&refine.until), "max_iterations": most, "best": refine.best, "score": score }),
        );
    }
    if let Some(conserve) = &stage.conserve {
        add(
            "conserve",
            json!({ "in": conserve.input.to_string(), "out": conserve.output.to_string() }),
        );
    }
    for (name, checks) in [("requires", &stage.requires), ("checks", &stage.checks)] {
        let tests = checks.iter().map(|check| Value::from(source(&check.test)));
        add(name, tests.collect());
    }
    for (name, said) in [("summary", &stage.summary), ("verdict", &stage.verdict)] {
        if let Some(program) = said {
            add(name, source(program).into());
        }
    }
    parts
}

fn each_part(from: &EachSource, key: Option<&Program>) -> Value {
    let mut value = match from {
        EachSource::Path(path) => json!({ "path": path.shown() }),
        EachSource::From {
            file,
            select,
            columns,
        } => {
            let mut value = json!({ "from": file.shown(), "select": source(select) });
            add_columns(&mut value, columns.as_deref());
            value
        }
        EachSource::Values(values) => json!({ "values": values }),
        EachSource::Count(Templated::Fixed(count)) => json!({ "count": count }),
        EachSource::Count(Templated::Template(template)) => json!({ "count": template.source() }),
    };
    if let Some(key) = key {
        value["key"] = source(key).into();
    }
    value
}

fn input_part(input: &crate::model::stage::Input) -> Value {
    let mut value = match &input.source {
        InputSource::Path(path) => json!({ "path": path.shown() }),
        InputSource::From {
            file,
            select,
            base,
            whole,
        } => {
            let base = if *whole {
                format!("{:?}", base.root)
            } else {
                base.to_string()
            };
            json!({ "from": file.shown(), "select": source(select), "base": base })
        }
    };
    if let Some(format) = input.format {
        value["format"] = format_name(format).into();
    }
    add_columns(&mut value, input.columns.as_deref());
    value
}

/// Declared columns in their order, which is that of a row's fields.
fn add_columns(value: &mut Value, columns: Option<&Columns>) {
    if let Some(columns) = columns {
        let columns = columns
            .iter()
            .map(|column| json!([column.name, column.type_name()]));
        value["columns"] = columns.collect();
    }
}

fn format_name(format: Format) -> &'static str {
    match format {
        Format::Json => "json",
        Format::Ndjson => "ndjson",
        Format::Csv => "csv",
        Format::Toml => "toml",
        Format::Text => "text",
        Format::Binary => "binary",
    }
}

/// Returns the text of a program, whether it is inline or in a file.
fn source(program: &Program) -> &str {
    program.source.trim()
}

/// Returns the same value with its keys in order.
fn canonical(mut value: Value) -> Value {
    value.sort_all_objects();
    value
}
