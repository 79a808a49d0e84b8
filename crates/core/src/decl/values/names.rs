//! The names that expressions of a stage can use, and the help for other names.

use crate::decl::problem::{Report, SourceFile};
use crate::decl::tables::tree::TomlKey;
use crate::expr::name::is_name;
use crate::expr::place::{listed, nearest};
use crate::model::stage::{FIXED_NAMES, OVERRIDES, ROUND_NAMES, RUN};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The names that an expression can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sees {
    Nothing,
    /// The names that are known before batches: `params`, `env`, `workspace`, `agents`, `milepost`.
    Start,
    /// These and the `each` names: what is known of a batch before it runs.
    Batch,
    /// These and `run`: what the path of an output can use.
    Place,
    /// The names of `Batch`, and the content of the inputs.
    Inputs,
    All,
    /// All names, and these.
    AllAnd(&'static [&'static str]),
}

/// Names that the project declares.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProjectNames {
    /// Of `[params]`.
    pub(crate) params: Vec<String>,
    /// Those among them that are files.
    pub(crate) files: Vec<String>,
    /// The defaults of parameters that are the same in every workspace, on every day.
    pub(crate) defaults: BTreeMap<String, Value>,
    /// Of `[env]`.
    pub(crate) env: Vec<String>,
    /// Of `[agents]`.
    pub(crate) agents: Vec<String>,
    /// Of `[services]`.
    pub(crate) services: Vec<String>,
    /// True if `milepost.toml` could not be read, so that names of the project are not checked.
    pub(crate) is_unknown: bool,
}

impl ProjectNames {
    /// Returns true if all of these dotted names are values of parameters that are not files.
    pub(crate) fn are_values(&self, names: &BTreeSet<String>) -> bool {
        let is_value = |name: &str| !self.files.iter().any(|file| file == name);
        names.iter().all(|dotted| {
            let param = dotted.strip_prefix("params.");
            param.is_some_and(|rest| rest.split('.').next().is_some_and(is_value))
        })
    }
}

/// Names that a stage declares, with those of its project.
#[derive(Debug, Clone)]
pub(crate) struct StageNames<'a> {
    /// The project's.
    pub(crate) project: &'a ProjectNames,
    /// Of `each`, and whether an item is a file.
    pub(crate) each: Vec<(String, bool)>,
    /// Of inputs.
    pub(crate) inputs: Vec<String>,
    /// Of outputs.
    pub(crate) outputs: Vec<String>,
    /// The `out` names of steps that are not outputs.
    pub(crate) outs: Vec<String>,
    /// True if the steps are repeated.
    pub(crate) is_refined: bool,
    /// True if `run` is out of reach: what is read must not differ at each run.
    pub(crate) hides_run: bool,
}

/// The mistake of a name.
#[derive(Debug)]
pub(crate) struct NameError {
    /// In one line.
    pub(crate) message: String,
    /// The label under the name.
    pub(crate) label: String,
    pub(crate) help: Option<String>,
}

/// Names known before there are batches.
pub(crate) const START: [&str; 5] = ["params", "env", "workspace", "agents", "milepost"];

/// Names known of a workspace.
const WORKSPACE: [&str; 5] = ["name", "created", "slug", "session_id", "today"];

/// Names known of the moment of an attempt.
const MOMENT: [&str; 3] = ["date", "time", "timestamp"];

/// A name that goes away, and what to write for it.
const DEPRECATED: (&str, &str) = (
    "workspace.today",
    "to print a date, write `run.date`; if the day affects results, declare `today = { type = \"date\", default = \"today\" }` in `[params]` and write `params.today`; the day when the workspace was created is in `workspace.created`",
);

/// The help for names of `[refine]`.
const REPEATED: &str = "it belongs to `[refine]`, with `until` below it";

/// Names known of a file that an `each` is at.
const FILE_ITEM: [&str; 4] = ["path", "stem", "number", "data"];

impl<'a> StageNames<'a> {
    /// Of a project, outside of any stage.
    pub(crate) fn of_project(project: &'a ProjectNames) -> Self {
        Self {
            project,
            each: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            outs: Vec::new(),
            is_refined: false,
            hides_run: false,
        }
    }

    /// Returns the names of jq variables, without `$`. For `All` in the order of `Stage::scope_names`.
    pub(crate) fn vars(&self, sees: Sees) -> Vec<String> {
        let owned = |names: &[&str]| {
            names
                .iter()
                .map(|&name| name.to_owned())
                .collect::<Vec<_>>()
        };
        let each = self.each.iter().map(|(name, _)| name.clone());
        match sees {
            Sees::Nothing => Vec::new(),
            Sees::Start => owned(&START),
            Sees::Batch => owned(&START).into_iter().chain(each).collect(),
            Sees::Inputs => {
                let inputs = self.inputs.iter().cloned();
                owned(&START)
                    .into_iter()
                    .chain(each)
                    .chain(inputs)
                    .collect()
            }
            Sees::Place => {
                let mut names: Vec<String> = owned(&START).into_iter().chain(each).collect();
                names.extend(self.sees_run().then(|| RUN.to_owned()));
                names
            }
            Sees::All | Sees::AllAnd(_) => {
                let mut names = owned(&FIXED_NAMES);
                names.extend(each);
                for more in [&self.inputs, &self.outputs, &self.outs] {
                    names.extend(more.iter().cloned());
                }
                if self.is_refined {
                    names.extend(owned(&ROUND_NAMES));
                }
                names.extend(self.sees_run().then(|| RUN.to_owned()));
                if !names.iter().any(|name| name == OVERRIDES) {
                    names.push(OVERRIDES.to_owned());
                }
                if let Sees::AllAnd(more) = sees {
                    // A name of the stage hides the id of the question, which came later.
                    let hidden =
                        |name: &&str| *name == "question" && names.iter().any(|own| own == name);
                    let more: Vec<&str> =
                        more.iter().copied().filter(|name| !hidden(name)).collect();
                    names.extend(owned(&more));
                }
                names
            }
        }
    }

    /// Returns true if `run` is the moment of the attempt, and not a name that the stage declares itself.
    fn sees_run(&self) -> bool {
        !self.hides_run && self.taken(RUN).is_none()
    }

    /// Returns a deprecated name and its replacement.
    pub(crate) fn deprecated(dotted: &str) -> Option<(&'static str, &'static str)> {
        let (name, _) = DEPRECATED;
        (dotted == name).then_some(DEPRECATED)
    }

    /// Whether a name of the stage's own is declared already, and as what.
    pub(crate) fn taken(&self, name: &str) -> Option<&'static str> {
        if FIXED_NAMES.contains(&name) || ROUND_NAMES.contains(&name) {
            return Some("a name that every stage has");
        }
        let has = |names: &[String]| names.iter().any(|known| known == name);
        match () {
            () if self.each.iter().any(|(known, _)| known == name) => Some("an `each`"),
            () if has(&self.inputs) => Some("an input"),
            () if has(&self.outputs) => Some("an output"),
            () if has(&self.outs) => Some("the `out` of a step"),
            () => None,
        }
    }

    /// Returns the mistake of a dotted name in a template, if there is one.
    pub(crate) fn wrong(&self, dotted: &str, sees: Sees) -> Option<NameError> {
        let mut parts = dotted.split('.');
        let first = parts.next().unwrap_or(dotted);
        let second = parts.next();
        let vars = self.vars(sees);
        if !vars.iter().any(|var| var == first) {
            return Some(self.unknown(first, &vars));
        }
        self.wrong_part(first, second?)
    }

    /// Returns the mistake of the first name of a plain path, if there is one.
    pub(crate) fn wrong_first(&self, first: &str) -> Option<NameError> {
        let vars = self.vars(Sees::All);
        (!vars.iter().any(|var| var == first)).then(|| self.unknown(first, &vars))
    }

    fn unknown(&self, first: &str, vars: &[String]) -> NameError {
        let label = "unknown name".to_owned();
        if first == "questions" {
            let message =
                "`questions` is available only in an agent step that reads a batch of `split`"
                    .to_owned();
            let help = "write questions = true at the step".to_owned();
            return NameError {
                message,
                label: "not available here".to_owned(),
                help: Some(help),
            };
        }
        if ROUND_NAMES.contains(&first) && !self.is_refined {
            let message = format!("`{first}` is available only in a stage with `[refine]`");
            return NameError {
                message,
                label: "not available here".to_owned(),
                help: Some(REPEATED.to_owned()),
            };
        }
        if first == RUN && self.taken(RUN).is_none() {
            return NameError {
                message: "`run` is not available here: it differs in each run".to_owned(),
                label: "not available here".to_owned(),
                help: Some("if the day affects results, declare `today = { type = \"date\", default = \"today\" }` in `[params]` and write `params.today`".to_owned()),
            };
        }
        if self.vars(Sees::All).iter().any(|name| name == first) {
            let message = format!("`{first}` is not available here yet");
            let help = format!(
                "available here: {}",
                listed(vars.iter().map(String::as_str))
            );
            return NameError {
                message,
                label: "not available here".to_owned(),
                help: Some(help),
            };
        }
        let help = match nearest(first, vars.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None if self.project.params.iter().any(|name| name == first) => {
                format!("it is a parameter: write `params.{first}`")
            }
            None if self.project.env.iter().any(|name| name == first) => {
                format!("it is an environment variable: write `env.{first}`")
            }
            None => format!(
                "available here: {}",
                listed(vars.iter().map(String::as_str))
            ),
        };
        NameError {
            message: format!("`{first}` is not a name of this stage"),
            label,
            help: Some(help),
        }
    }

    /// Returns true if a name is that of an `each` over files.
    pub(crate) fn is_file(&self, name: &str) -> bool {
        self.each
            .iter()
            .any(|(each, is_file)| each == name && *is_file)
    }

    fn wrong_part(&self, first: &str, second: &str) -> Option<NameError> {
        let own = |names: &[String]| names.to_vec();
        let words = |names: &[&str]| {
            names
                .iter()
                .map(|&name| name.to_owned())
                .collect::<Vec<_>>()
        };
        let files = || {
            let mut names: Vec<String> = self
                .each
                .iter()
                .filter(|(_, is_file)| *is_file)
                .map(|(name, _)| name.clone())
                .collect();
            names.extend(
                self.inputs
                    .iter()
                    .chain(&self.outputs)
                    .chain(&self.outs)
                    .cloned(),
            );
            names
        };
        if self.project.is_unknown && matches!(first, "params" | "env" | "agents") {
            return None;
        }
        let (known, what, add) = match first {
            "params" => (own(&self.project.params), "parameter", Some("[params]")),
            "env" => (
                own(&self.project.env),
                "environment variable",
                Some("[env]"),
            ),
            "agents" => (own(&self.project.agents), "agent", Some("[agents.NAME]")),
            "workspace" => (words(&WORKSPACE), "", None),
            "milepost" => (words(&["version"]), "", None),
            RUN if self.sees_run() => (words(&MOMENT), "", None),
            "paths" | "digests" => (files(), "", None),
            name if self.is_file(name) => (words(&FILE_ITEM), "", None),
            _ => return None,
        };
        if known.iter().any(|name| name == second) {
            return None;
        }
        let help = match (nearest(second, known.iter().map(String::as_str)), add) {
            (Some(near), _) => format!("did you mean `{first}.{near}`?"),
            (None, Some(table)) if known.is_empty() => {
                format!("declare it in milepost.toml, `{table}`")
            }
            (None, Some(table)) => {
                format!(
                    "available: {}; declare others in milepost.toml, `{table}`",
                    listed(known.iter().map(String::as_str))
                )
            }
            (None, None) => format!("it has {}", listed(known.iter().map(String::as_str))),
        };
        let message = if what.is_empty() {
            format!("`{first}` has no `{second}`")
        } else {
            format!("there is no {what} `{second}`")
        };
        Some(NameError {
            message,
            label: "unknown name".to_owned(),
            help: Some(help),
        })
    }

    /// Returns the help for an unknown `$name` that exists elsewhere.
    pub(crate) fn hint_in_jq(&self, message: &str) -> Option<String> {
        let name = message.strip_prefix("`$")?.split('`').next()?;
        let has = |names: &[String]| names.iter().any(|known| known == name);
        match () {
            () if ROUND_NAMES.contains(&name) && !self.is_refined => Some(REPEATED.to_owned()),
            () if has(&self.project.params) => {
                Some(format!("it is a parameter: write `$params.{name}`"))
            }
            () if has(&self.project.env) => Some(format!(
                "it is an environment variable: write `$env.{name}`"
            )),
            () if self.vars(Sees::All).iter().any(|known| known == name) => {
                Some("it is not available here yet".to_owned())
            }
            () => None,
        }
    }

    /// Wrong names behind `$params.`, `$env.`, `$workspace.`, `$agents.`, `$paths.` and `$digests.` in a jq program.
    pub(crate) fn wrong_in_jq(&self, source: &str) -> Vec<(Range<usize>, NameError)> {
        let is_part = |c: &char| c.is_alphanumeric() || *c == '_';
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(c) = source[at..].chars().next() {
            match c {
                '#' => at += source[at..].find('\n').unwrap_or(source.len() - at),
                '"' => at += 1 + string_end(&source[at + 1..]),
                '$' => {
                    let first: String = source[at + 1..].chars().take_while(is_part).collect();
                    let end = at + 1 + first.len();
                    let second: String = match source[end..].strip_prefix('.') {
                        Some(rest) => rest.chars().take_while(is_part).collect(),
                        None => String::new(),
                    };
                    let whole = end + 1 + second.len();
                    if !second.is_empty()
                        && (FIXED_NAMES.contains(&first.as_str()) || first == RUN)
                        && let Some(wrong) = self.wrong_part(&first, &second)
                    {
                        found.push((at..whole, wrong));
                    }
                    at = end;
                }
                c => at += c.len_utf8(),
            }
        }
        found
    }
}

/// Returns true if a declared name can be used in expressions; if not, that is reported.
pub(crate) fn check_name(file: &SourceFile, report: &mut Report, key: &TomlKey) -> bool {
    let right = is_name(&key.name);
    if !right {
        let proper: String = key
            .name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        let problem = file.problem(
            key.span.clone(),
            format!("`{}` cannot be a name in expressions", key.name),
        );
        report.add(
            problem
                .label("letters, digits and `_` only, a letter first")
                .help(format!("write `{proper}`")),
        );
    }
    right
}

/// Bytes to the end of a string whose opening quote is gone, with its closing quote.
fn string_end(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}
