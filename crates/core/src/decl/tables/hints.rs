//! Help for common mistakes: keys in the wrong table, singular for plural, and typing errors.

use crate::decl::keys::{self, AGENT, Need, PROJECT, STAGE, TableSpec};
use crate::decl::problem::{Problem, SourceFile};
use crate::decl::tables::tree::{TomlKey, TomlNode};
use crate::expr::place::nearest;

/// Words that people know from elsewhere, and ours.
const OTHER_WORDS: &[(&str, &str)] = &[
    ("cmd", "command"),
    ("run", "command"),
    ("script", "command"),
    ("shell", "command"),
    ("foreach", "each"),
    ("for_each", "each"),
    ("if", "when"),
    ("retries", "attempts"),
    ("retry", "attempts"),
    ("template", "render"),
    ("batch_size", "size"),
    ("url", "http"),
    ("curl", "http"),
    ("request", "http"),
    ("wait_for", "wait"),
    ("watch", "wait"),
    ("outs", "outputs"),
    ("produces", "outputs"),
    ("target", "outputs"),
    ("targets", "outputs"),
    ("source", "inputs"),
    ("sources", "inputs"),
    ("recipe", "command"),
    ("threads", "concurrency"),
];

/// Keys by which other tools declare what runs first.
const ORDER_WORDS: &[&str] = &[
    "after",
    "before",
    "dependencies",
    "dependency",
    "depend",
    "depends",
    "depends_on",
    "deps",
    "follows",
    "input_from",
    "inputs_from",
    "need",
    "needs",
    "parents",
    "prerequisites",
    "prereqs",
    "require",
    "requires",
    "runs_after",
    "upstream",
];

/// Returns the key of the table that an unknown name most likely means.
pub(crate) fn meant(name: &str, spec: &'static TableSpec) -> Option<&'static str> {
    let keys = || spec.keys.iter().map(|key| key.name);
    let ours = OTHER_WORDS
        .iter()
        .find(|(other, _)| *other == name)
        .map(|(_, ours)| *ours);
    keys()
        .find(|key| name.strip_suffix('s') == Some(key) || key.strip_suffix('s') == Some(name))
        .or_else(|| ours.filter(|ours| spec.key(ours).is_some()))
        .or_else(|| nearest(name, keys()))
}

/// `a`, `b` or `c`.
pub(crate) fn or<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => String::new(),
    }
}

/// Reports a key beside a key that it does not belong to.
pub(crate) fn misplaced(
    file: &SourceFile,
    key: &keys::KeySpec,
    at: &TomlKey,
    beside: &[&str],
    what: &str,
) -> Problem {
    file.problem(
        at.span.clone(),
        format!(
            "`{}` is allowed only beside {}",
            key.name,
            or(beside.iter().copied())
        ),
    )
    .label(format!("this one is `{what}`"))
    .help(format!("{}: {}", key.name, key.doc))
}

/// A key that the table has not.
pub(crate) fn unknown_key(
    file: &SourceFile,
    spec: &'static TableSpec,
    header: &str,
    key: &TomlKey,
    node: &TomlNode,
) -> Problem {
    let name = key.name.as_str();
    let problem = file.problem(
        key.span.clone(),
        format!("`{name}` is not a key {}", of(spec, header)),
    );
    let is_project = std::ptr::eq(spec, &raw const PROJECT) || std::ptr::eq(spec, &raw const AGENT);
    let help = order(name, spec, node)
        .or_else(|| identity(name, spec, header))
        .or_else(|| other_number(name, spec, node))
        .or_else(|| elsewhere(name, spec, header, is_project))
        .or_else(|| meant(name, spec).map(|near| format!("did you mean `{near}`?")))
        .or_else(|| {
            let ours = OTHER_WORDS.iter().find(|(other, _)| *other == name)?.1;
            elsewhere(ours, spec, header, is_project)
                .map(|help| format!("here this is `{ours}`: {help}"))
        })
        .unwrap_or_else(|| format!("it has {}", or(spec.keys.iter().map(|key| key.name))));
    problem.label("unknown key").help(help)
}

fn of(spec: &TableSpec, header: &str) -> String {
    if header.is_empty() {
        format!("of a {}", spec.what)
    } else {
        format!("of `{header}`")
    }
}

/// Returns the help for a key that declares an order.
fn order(name: &str, spec: &'static TableSpec, node: &TomlNode) -> Option<String> {
    let is_of_a_stage = std::ptr::eq(spec, &raw const STAGE) || spec.what == "step";
    let word = name.to_lowercase().replace('-', "_");
    let is_table = |node: &TomlNode| node.table().is_some();
    let names_stages = !node.list().is_some_and(|list| list.iter().any(is_table));
    (is_of_a_stage && names_stages && ORDER_WORDS.contains(&word.as_str())).then(|| {
        format!(
            "order follows from files and stage numbers: remove `{name}`, and declare the files that the stage reads in `[inputs]`; stages with a smaller number write them"
        )
    })
}

/// Returns the help for a key that repeats the name of a stage's file.
fn identity(name: &str, spec: &'static TableSpec, header: &str) -> Option<String> {
    let is_top = std::ptr::eq(spec, &raw const STAGE) && header.is_empty();
    (is_top && ["name", "number", "id", "order"].contains(&name)).then(|| {
        format!("remove `{name}`: number and name of a stage are in the name of its file, `stages/NUMBER_NAME.toml`")
    })
}

/// `[steps]` for `[step]`, `[input]` for `[inputs]`.
fn other_number(name: &str, spec: &'static TableSpec, node: &TomlNode) -> Option<String> {
    let plural = format!("{name}s");
    if let Some(key) = spec.keys.iter().find(|key| key.name == plural) {
        let example = node
            .table()
            .and_then(|table| table.entries.first())
            .filter(|(_, inner)| inner.table().is_some())
            .map_or_else(
                || key.name.to_owned(),
                |(inner, _)| format!("{}.{}", key.name, inner.name),
            );
        return Some(format!("tables of names are plural: write `[{example}]`"));
    }
    let key = spec
        .keys
        .iter()
        .find(|key| name.strip_suffix('s') == Some(key.name))?;
    Some(match key.name {
        "step" => {
            "lists are singular: write `[step]`, or `[[step]]` for each of several".to_owned()
        }
        "check" => "lists are singular: write `[[check]]` for each".to_owned(),
        single => format!("single things are singular: write `[{single}]`"),
    })
}

/// Returns the table that does have this key.
fn elsewhere(
    name: &str,
    spec: &'static TableSpec,
    header: &str,
    is_project: bool,
) -> Option<String> {
    if is_project {
        if STAGE.key(name).is_some() && PROJECT.key(name).is_none() {
            return Some(format!(
                "`{name}` belongs in a stage's file, such as `stages/1_name.toml`"
            ));
        }
        if !header.is_empty() && PROJECT.key(name).is_some() {
            return Some(format!(
                "`{name}` belongs at the top of the file, above `{header}`"
            ));
        }
        return None;
    }
    let at_top = STAGE.key(name);
    if !header.is_empty()
        && let Some(key) = at_top
    {
        return Some(
            if matches!(
                key.kind,
                keys::ValueKind::Jq
                    | keys::ValueKind::Plain
                    | keys::ValueKind::Bool
                    | keys::ValueKind::Choice(_)
                    | keys::ValueKind::Place
                    | keys::ValueKind::FileName
            ) {
                format!(
                    "`{name}` is a key of the stage itself: move it to the top of the file, above `{header}` and every other table"
                )
            } else {
                format!("`[{name}]` is a table of its own")
            },
        );
    }
    let owners: Vec<&str> = keys::stage_tables()
        .into_iter()
        .filter(|table| {
            !std::ptr::eq(*table, spec) && !table.header.is_empty() && table.key(name).is_some()
        })
        .map(|table| table.header)
        .collect();
    if !owners.is_empty() {
        return Some(format!("`{name}` is a key of {}", or(owners)));
    }
    (PROJECT.key(name).is_some() && at_top.is_none())
        .then(|| format!("`{name}` belongs in `milepost.toml`"))
}

/// Returns the help for an output or input that has the name of a key of the stage and does not look like a path: the key was
/// probably written below the header of a table of names.
pub(crate) fn slipped(name: &str, value: &str, header: &str) -> Option<String> {
    let key = STAGE.key(name).filter(|key| key.need == Need::Optional)?;
    let looks_like_a_path = value.contains('/')
        || value.rsplit_once('.').is_some_and(|(stem, end)| {
            !stem.is_empty()
                && !value.starts_with('.')
                && !end.is_empty()
                && end.chars().all(char::is_alphanumeric)
        });
    (!looks_like_a_path || value.starts_with('.')).then(|| {
        format!("if `{}` is meant as the key of the stage, move it to the top of the file, above `{header}`", key.name)
    })
}
