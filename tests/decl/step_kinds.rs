//! Every key of every kind of step is in the fingerprint: another text, another value of a parameter that it mentions, and another
//! content of a file that it names. The kinds and their keys are those that the program has, so that a new one is checked as well.

use super::Files;
use milepost_core::decl::stage_schema;
use milepost_core::model::fingerprint::{FactKind, Facts, changes};
use milepost_core::model::keys::{KeySpec, ValueKind};
use milepost_core::model::step::KindName;
use milepost_core::plan::facts::shared;
use milepost_core::plan::settings::Settings;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Keys that are in no fingerprint, and why.
const LEFT_OUT: [(&str, &str); 6] = [
    (
        "timeout",
        "a longer limit changes no output of a step that ended in time",
    ),
    (
        "attempts",
        "another attempt changes no output of a step that succeeded",
    ),
    (
        "idempotent",
        "what becomes of a request without a reply changes no reply",
    ),
    ("role", "a name in the journal"),
    ("summary", "the text of records in the journal"),
    ("errors", "the names of failures"),
];

/// A value of a key, and another that means something else.
struct Sample {
    value: String,
    other: String,
    /// The file that it names.
    file: Option<(String, &'static str)>,
    /// Whether it mentions the parameter of its key.
    mentions: bool,
}

impl Sample {
    fn plain(value: &str, other: &str) -> Self {
        Self {
            value: value.to_owned(),
            other: other.to_owned(),
            file: None,
            mentions: false,
        }
    }

    fn mention(key: &str, text: &str) -> Self {
        let text = text.replace("PARAM", &format!("params.{key}"));
        Self {
            mentions: true,
            ..Self::plain(&text.replace("TEXT", "one"), &text.replace("TEXT", "two"))
        }
    }

    /// A key that names a file, which mentions the parameter of the key.
    fn file(key: &str, ending: &str, text: &'static str) -> Self {
        let path = |name: &str| format!("files/{key}_{name}.{ending}");
        Self {
            file: Some((path("one"), text)),
            mentions: true,
            ..Self::plain(
                &format!("\"{}\"", path("one")),
                &format!("\"{}\"", path("two")),
            )
        }
    }
}

/// What can stand behind a key: the first that the reader takes is used.
fn samples(name: &str, kind: ValueKind) -> Vec<Sample> {
    let mention = |text: &str| Sample::mention(name, text);
    match kind {
        // It accepts three words, and is checked with the default of its parameter.
        _ if name == "geometry" => vec![Sample {
            other: "\"all\"".to_owned(),
            ..mention(r#""{{ PARAM }}""#)
        }],
        ValueKind::Command => vec![mention(r#"["run", "{{ PARAM }}", "TEXT"]"#)],
        ValueKind::Text => vec![mention(r#""http://localhost/{{ PARAM }}/TEXT""#)],
        ValueKind::Path => vec![mention(r#""outbox/{{ PARAM }}/TEXT.pdf""#)],
        ValueKind::Strings => vec![mention(r#"{ x-name = "{{ PARAM }} TEXT" }"#)],
        ValueKind::Items => vec![mention(r#"{ item = '[$PARAM, "TEXT"][]' }"#)],
        ValueKind::Select => vec![mention(r#"".PARAM.TEXT[]""#)],
        ValueKind::Count => vec![Sample {
            other: format!("\"{{{{ params.{name} | int + 1 }}}}\""),
            ..mention(r#""{{ PARAM }}""#)
        }],
        ValueKind::Jq => vec![
            mention(r#"'[$PARAM, "TEXT"]'"#),
            Sample::file(name, "jq", "[$PARAM, \"TEXT\"]"),
        ],
        ValueKind::File if name == "schema" => vec![Sample {
            mentions: false,
            ..Sample::file(name, "schema.json", "{\"title\": \"TEXT\"}")
        }],
        ValueKind::File => vec![Sample::file(name, "txt", "{{ PARAM }} TEXT")],
        ValueKind::Name => vec![
            Sample::plain("\"first\"", "\"second\""),
            Sample::plain("\"asked\"", "\"other\""),
        ],
        ValueKind::Names => vec![
            Sample::plain("[\"first\"]", "[\"second\"]"),
            Sample::plain("[\"ONE\"]", "[\"TWO\"]"),
            Sample::plain("[\"builtin\"]", "[\"pdftotext\"]"),
            Sample::plain("[\"project:files/one.py\"]", "[\"project:files/*.py\"]"),
        ],
        ValueKind::Choice(words) => vec![Sample::plain(
            &format!("\"{}\"", words[0]),
            &format!("\"{}\"", words[1]),
        )],
        ValueKind::Number => vec![Sample::plain("0.1", "0.2")],
        ValueKind::Any if name == "idempotency_key" => {
            vec![Sample::plain("true", "\"x-request\"")]
        }
        ValueKind::Bool => vec![Sample::plain("true", "false")],
        ValueKind::Free => vec![Sample::plain("{ tone = \"one\" }", "{ tone = \"two\" }")],
        other => panic!("`{name}`: write a sample for keys like {other:?}"),
    }
}

/// Samples for the keys that any step may have.
fn shared_samples(name: &str) -> Vec<Sample> {
    match name {
        "out" => vec![Sample::plain("\"product\"", "\"other\"")],
        "when" => samples(name, ValueKind::Jq),
        "role" => vec![Sample::plain("\"one\"", "\"two\"")],
        "summary" => vec![Sample::plain("'1'", "'2'")],
        "timeout" => vec![Sample::mention(name, "\"{{ PARAM }}m\"")],
        "attempts" => vec![Sample::plain("2", "3")],
        "errors" => vec![Sample::plain("{ exit = \"ONE\" }", "{ exit = \"TWO\" }")],
        "schema" => samples(name, ValueKind::File),
        other => panic!("write a sample for `{other}`, a key of any step"),
    }
}

/// The names of all keys of a step, as published.
fn published() -> BTreeSet<String> {
    let schema = stage_schema();
    let step = schema["properties"]["step"].to_string();
    let step: Value = serde_json::from_str(&step).unwrap();
    let table = match step["properties"].as_object() {
        Some(_) => &step,
        None => ["anyOf", "oneOf"]
            .iter()
            .find_map(|of| step[of].as_array()?.first())
            .unwrap_or_else(|| panic!("{step:#}")),
    };
    table["properties"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect()
}

/// A stage with one step of a kind that has some keys.
struct Declared {
    kind: KindName,
    values: Vec<(String, String)>,
    files: Files,
}

impl Declared {
    /// A step of a kind with all keys that it can have, and the samples behind them.
    fn of(kind: KindName, alternative: usize) -> (Self, Vec<(String, Sample)>) {
        let own = kind.info().keys.iter();
        let mut own: Vec<String> = own.map(|key: &KeySpec| key.name.to_owned()).collect();
        // Of keys that exclude each other, each order has another one.
        if alternative > 0 {
            own[1..].reverse();
        }
        let all_kinds = KindName::ALL.iter().flat_map(|kind| kind.info().keys);
        let of_kinds: BTreeSet<&str> = all_kinds.map(|key| key.name).collect();
        let of_any = published();
        let of_any = of_any
            .into_iter()
            .filter(|name| !of_kinds.contains(name.as_str()));
        let mut params = String::new();
        for name in published() {
            let default = if name == "geometry" { "off" } else { "1" };
            params.push_str(&format!("{name} = \"{default}\"\n"));
        }
        let mut declared = Self {
            kind,
            values: Vec::new(),
            files: Files::of([
                (
                    "milepost.toml",
                    format!(
                        "name = \"kinds\"\n[params]\n{params}[env]\nONE = \"\"\nTWO = \"\"\n\
                         [agents.asked]\nanthropic = \"one\"\n[agents.other]\nanthropic = \"two\"\n"
                    )
                    .as_str(),
                ),
                ("files/one.py", ""),
            ]),
        };
        let mut chosen = Vec::new();
        // The key that declares the kind comes first: the others stand beside it.
        for name in own.into_iter().chain(of_any) {
            let found = kind.info().keys.iter().find(|key| key.name == name);
            let samples = match found {
                Some(key) => samples(&name, key.kind),
                None => shared_samples(&name),
            };
            let (last, start) = (samples.len() - 1, declared.values.len());
            let mut problem = String::new();
            let at = alternative.min(last);
            let order = samples.into_iter().enumerate();
            let mut order: Vec<_> = order.collect();
            order.rotate_left(at);
            for (_, sample) in order {
                let mut tried = declared.with_file(&sample, &name, "one");
                tried.values.push((name.clone(), sample.value.clone()));
                match tried.files().load() {
                    // `prompt` and `key` must stand beside what they belong to: they are tried with it.
                    Err(problems) if !only_lacks(&problems.render(false)) => {
                        problem = problems.render(false);
                    }
                    _ => {
                        declared = tried;
                        chosen.push((name.clone(), sample));
                        break;
                    }
                }
            }
            let is_beside = ["does not belong", "belongs to", "exclude each other"];
            let is_beside = is_beside.iter().any(|text| problem.contains(text));
            assert!(
                declared.values.len() > start || is_beside || name == "schema",
                "{}: no sample of `{name}` is right: {problem}",
                kind.info().name
            );
        }
        (declared, chosen)
    }

    fn with_file(&self, sample: &Sample, key: &str, text: &str) -> Self {
        let mut files = self.files.clone();
        if let Some((path, content)) = &sample.file {
            let content = content.replace("PARAM", &format!("params.{key}"));
            files = files.with(path, &content.replace("TEXT", text));
            files = files.with(&path.replace("_one.", "_two."), &content);
        }
        Self {
            kind: self.kind,
            values: self.values.clone(),
            files,
        }
    }

    fn with_value(&self, name: &str, value: &str) -> Self {
        let mut values = self.values.clone();
        for (key, old) in &mut values {
            if key == name {
                value.clone_into(old);
            }
        }
        Self {
            kind: self.kind,
            values,
            files: self.files.clone(),
        }
    }

    fn files(&self) -> Files {
        let keys: Vec<String> = self
            .values
            .iter()
            .map(|(key, value)| format!("{key} = {value}\n"))
            .collect();
        let has_out = self.values.iter().any(|(key, _)| key == "out");
        let out = if has_out { "" } else { "out = \"product\"\n" };
        self.files.clone().with(
            "stages/1_all.toml",
            &format!(
                "[inputs]\nfirst = \"inputs/first.json\"\nsecond = \"inputs/second.json\"\n[[step]]\n{}{out}\
                 [[step]]\njq = '1'\nout = \"made\"\n[outputs]\nmade = {{ path = \"outputs/made.json\", schema = false }}\n",
                keys.concat()
            ),
        )
    }

    /// The facts of its stage where the parameters have their defaults, but for one.
    fn facts(&self, changed: Option<&str>) -> Facts {
        let (pipeline, _) = self
            .files()
            .load()
            .unwrap_or_else(|problems| panic!("{}", problems.render(false)));
        let params: Map<String, Value> = published()
            .into_iter()
            .map(|name| {
                let value = if changed == Some(name.as_str()) {
                    "2"
                } else {
                    "1"
                };
                (name, value.into())
            })
            .collect();
        let settings = Settings {
            programs: std::collections::BTreeMap::new(),
            params,
            env: [("ONE", "1"), ("TWO", "2")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            workspace: Map::new(),
            agents: [].into(),
            version: "1".to_owned(),
            overrides: Vec::new(),
        };
        shared(&pipeline.stages[0], &pipeline, &settings)
    }
}

/// Returns true if nothing is wrong but keys that are not there yet.
fn only_lacks(problems: &str) -> bool {
    let mut errors = problems.lines().filter(|line| line.starts_with("error"));
    errors.all(|line| line.contains(" needs `"))
}

/// Returns true if a batch runs again for what differs.
fn reruns(before: &Facts, after: &Facts) -> bool {
    let none = Facts::default();
    let found = changes([before, &none], [after, &none]);
    found
        .iter()
        .any(|change| !change.fact.kind.only_validates())
}

/// Returns true if answers are checked again for what differs: the schema of an agent only judges.
fn rechecks(before: &Facts, after: &Facts) -> bool {
    let none = Facts::default();
    let found = changes([before, &none], [after, &none]);
    found
        .iter()
        .any(|change| change.fact.kind == FactKind::Schema)
}

#[test]
fn every_key_of_every_kind_is_in_the_fingerprint() {
    let mut unseen = Vec::new();
    for &kind in KindName::ALL {
        // Programs in files of their own are the second sample of a key.
        let has_program = kind
            .info()
            .keys
            .iter()
            .any(|key| matches!(key.kind, ValueKind::Jq));
        for alternative in 0..=usize::from(has_program) {
            let (declared, samples) = Declared::of(kind, alternative);
            let before = declared.facts(None);
            assert!(!reruns(&before, &declared.facts(None)));
            for (key, sample) in &samples {
                let other = declared.with_value(key, &sample.other).facts(None);
                let changed_param = declared.facts(Some(key));
                let text = reruns(&before, &other);
                let value = reruns(&before, &changed_param);
                let content = sample.file.is_some().then(|| {
                    let other = declared.with_file(sample, key, "two").facts(None);
                    reruns(&before, &other) || rechecks(&before, &other)
                });
                let is_left_out = LEFT_OUT.iter().any(|(name, _)| name == key);
                let is_right = if is_left_out {
                    !text && !value
                } else {
                    text && value == sample.mentions && content != Some(false)
                };
                if !is_right {
                    unseen.push(format!(
                        "{}: {key} = {}: text {text}, parameter {value}, content {content:?}",
                        kind.info().name,
                        sample.value
                    ));
                }
            }
        }
    }
    assert_eq!(unseen, Vec::<String>::new());
}

#[test]
fn every_key_of_every_kind_is_a_part() {
    for &kind in KindName::ALL {
        let (declared, samples) = Declared::of(kind, 0);
        let (pipeline, _) = declared.files().load().unwrap();
        let parts = pipeline.stages[0].steps[0].kind.parts();
        let parts: BTreeSet<&str> = parts.iter().map(|(key, _)| *key).collect();
        let mut keys: BTreeSet<&str> = kind.info().keys.iter().map(|key| key.name).collect();
        if samples.iter().any(|(name, _)| name == "schema") {
            keys.insert("schema");
        }
        assert_eq!(parts, keys, "{}", kind.info().name);
    }
}
