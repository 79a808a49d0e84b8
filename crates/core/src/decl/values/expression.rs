//! Reads the expressions of declarations: jq programs, templates, plain paths, durations and numbers.

use crate::base::duration::parse_duration;
use crate::base::path::RelPath;
use crate::decl::problem::SourceFile;
use crate::decl::tables::located_text::LocatedText;
use crate::decl::tables::tree::{TomlNode, Val};
use crate::decl::values::names::{ProjectNames, Sees, StageNames};
use crate::decl::values::reader::ValueReader;
use crate::expr::jq::Jq;
use crate::expr::place::{Place, nearest};
use crate::expr::select::{Select, SelectError};
use crate::expr::shell;
use crate::expr::template::Template;
use crate::model::pipeline::Asset;
use crate::model::stage::{Program, Templated};
use crate::model::step::{TemplateFile, Text, project_path};
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

impl ValueReader<'_> {
    /// Reads a jq program, inline or in a file; the key defines its `.`.
    pub(crate) fn jq(
        &mut self,
        spot: &LocatedText<'_>,
        names: &StageNames<'_>,
        sees: Sees,
    ) -> Option<Program> {
        let is_file =
            spot.text.strip_suffix(".jq").is_some() && !spot.text.contains(['|', '\n', ' ', '(']);
        let asset = if is_file {
            Some(self.asset(spot)?)
        } else {
            None
        };
        let whole = self.whole_program(spot, asset.as_ref())?;
        let source = Arc::clone(&whole.text);
        let vars = names.vars(sees);
        let name = asset.as_ref().map_or_else(
            || format!("{}: {}", spot.file.name, spot.key),
            |asset| asset.path.to_string(),
        );
        let refs: Vec<&str> = vars.iter().map(String::as_str).collect();
        match Jq::compile(&name, &source, &refs) {
            Ok(jq) => {
                for (range, wrong) in names.wrong_in_jq(&source) {
                    let at = Place::of(&source, range);
                    self.report.add(
                        whole
                            .problem(Some(&at), wrong.message)
                            .maybe_help(wrong.help),
                    );
                }
                for dotted in jq.mentions().dotted() {
                    if let Some((name, help)) = StageNames::deprecated(dotted) {
                        let at = Place::of(&source, find_name(&source, name));
                        let message = format!("`{name}` is deprecated");
                        self.report
                            .warn(whole.problem(Some(&at), message).help(help));
                    }
                }
                let included = whole.included.into();
                Some(Program {
                    asset,
                    included,
                    source,
                    vars: vars.into(),
                    jq: Arc::new(jq),
                })
            }
            Err(error) => {
                let hint = names
                    .hint_in_jq(&error.message)
                    .or_else(|| jq_hint(spot, asset.is_some(), &error.message))
                    .or(error.hint)
                    .or_else(|| {
                        (asset.is_none() && spot.is_escaped()).then(|| SINGLE_QUOTES.to_owned())
                    });
                let message = format!("`{}`: {}", spot.key, error.message);
                self.report.add(
                    whole
                        .problem(error.place.as_ref(), message)
                        .maybe_help(hint),
                );
                None
            }
        }
    }

    /// Reads an inline template as text.
    pub(crate) fn text(
        &mut self,
        spot: &LocatedText<'_>,
        names: &StageNames<'_>,
        sees: Sees,
    ) -> Option<Text> {
        let template = self.template(spot, names, sees)?;
        Some(Text {
            source: spot.text.to_owned(),
            template,
        })
    }

    /// Returns the environment variables that a list names. Those that the project does not declare are reported.
    pub(crate) fn variables(
        &mut self,
        file: &SourceFile,
        names: &ProjectNames,
        list: Option<&TomlNode>,
    ) -> Vec<String> {
        let mut found = Vec::new();
        for item in list.and_then(TomlNode::list).unwrap_or_default() {
            let Some(name) = item.text() else { continue };
            if names.is_unknown || names.env.iter().any(|known| known == name) {
                found.push(name.to_owned());
                continue;
            }
            let message = format!("there is no environment variable `{name}`");
            let help = nearest(name, names.env.iter().map(String::as_str)).map_or_else(
                || format!("declare it in milepost.toml, with a default: [env] and below it {name} = \"\""),
                |near| format!("did you mean `{near}`?"),
            );
            let problem = file.problem(item.span.clone(), message);
            let problem = problem.label("not declared in milepost.toml");
            self.report.add(problem.help(help));
        }
        found
    }

    /// Returns a program and its arguments, and whether they are one string for the shell. `sees` has the names that an argument sees, and
    /// those that the path of a file of the project sees.
    pub(crate) fn command(
        &mut self,
        file: &SourceFile,
        names: &StageNames<'_>,
        node: &TomlNode,
        sees: [Sees; 2],
    ) -> Option<(Vec<Text>, bool)> {
        let (items, shell) = match &node.value {
            Val::List(list) => (list.as_slice(), false),
            _ => (std::slice::from_ref(node), true),
        };
        let mut words = Vec::new();
        for item in items {
            let spot = LocatedText {
                file,
                key: "command",
                text: item.text()?,
                span: item.span.clone(),
            };
            let path = project_path(spot.text).filter(|_| !shell);
            words.push(self.text(&spot, names, sees[usize::from(path.is_some())]));
            if shell {
                self.script(&spot);
            }
            if let Some((before, path)) = path.filter(|(_, path)| !path.contains("{{")) {
                self.project_file(&spot, before, path);
            }
        }
        let words: Vec<Text> = words.into_iter().collect::<Option<_>>()?;
        self.list_script(file, &words, items, shell);
        Some((words, shell))
    }

    /// Reports a `{{ }}` of a shell script in a place where its value cannot become a quoted word.
    pub(crate) fn script(&mut self, spot: &LocatedText<'_>) {
        self.project_in_script(spot);
        if let Err(wrong) = shell::check(spot.text) {
            let problem = spot.problem_at(&wrong.range, wrong.message);
            self.report
                .add(problem.label("not a word by itself").help(shell::HELP));
        }
    }

    /// Reports a file of the project in a shell script, where nothing replaces `project:`.
    fn project_in_script(&mut self, spot: &LocatedText<'_>) {
        let words = shell::commands(spot.text).into_iter().flatten();
        for word in words {
            let Some((before, path)) = project_path(&word) else {
                continue;
            };
            let is_there = RelPath::parse(path).is_ok_and(|path| self.exists(&path));
            if before.is_empty() || is_there {
                let at = find_name(spot.text, &word);
                let problem = spot.problem_at(
                    &at,
                    format!(
                        "`{word}` is part of a shell script, in which `project:` is not replaced"
                    ),
                );
                self.report.add(problem.label("not replaced here").help(format!(
                    "pass it as an argument: command = [\"sh\", \"-ec\", '… \"$1\" …', \"sh\", \"{word}\"]"
                )));
                return;
            }
        }
    }

    /// Does the same for the script in a list of arguments: `["sh", "-c", SCRIPT]`.
    fn list_script(
        &mut self,
        file: &SourceFile,
        arguments: &[Text],
        items: &[TomlNode],
        shell: bool,
    ) {
        let sources = arguments.iter().map(|argument| argument.source.as_str());
        let Some(at) = shell::script_of(sources).filter(|_| !shell) else {
            return;
        };
        // A script that is a single value runs as it is.
        if let (Some(argument), Some(item)) = (arguments.get(at), items.get(at))
            && !argument.template.is_single()
        {
            let span = item.span.clone();
            self.script(&LocatedText {
                file,
                key: "command",
                text: &argument.source,
                span,
            });
        }
    }

    /// Compiles an inline template.
    pub(crate) fn template(
        &mut self,
        spot: &LocatedText<'_>,
        names: &StageNames<'_>,
        sees: Sees,
    ) -> Option<Arc<Template>> {
        let name = format!("{}: {}", spot.file.name, spot.key);
        match Template::compile(&name, spot.text) {
            Ok(template) => {
                let mut right = true;
                for dotted in template.names() {
                    let inserted = names.is_file(dotted).then(|| inserted(spot.text, dotted));
                    if let Some(wrong) = names.wrong(dotted, sees) {
                        let at = find_name(spot.text, dotted);
                        self.report.add(
                            spot.problem_at(&at, wrong.message)
                                .label(wrong.label)
                                .maybe_help(wrong.help),
                        );
                        right = false;
                    } else if let Some(at) = inserted.flatten() {
                        let message = format!(
                            "`{{{{ {dotted} }}}}` is an object with the properties of a file, expected text"
                        );
                        let problem = spot.problem_at(&at, message).label("not a path");
                        self.report
                            .add(problem.help(format!("did you mean `{dotted}.path`?")));
                        right = false;
                    } else if let Some((name, help)) = StageNames::deprecated(dotted) {
                        let at = find_name(spot.text, name);
                        let message = format!("`{name}` is deprecated");
                        self.report.warn(spot.problem_at(&at, message).help(help));
                    }
                }
                right.then(|| Arc::new(template))
            }
            Err(error) => {
                let message = format!("`{}`: {}", spot.key, error.message);
                let problem = match &error.place {
                    Some(place) => spot.problem_at(&place.range, message),
                    None => spot.problem(message),
                };
                self.report.add(problem.maybe_help(error.hint));
                None
            }
        }
    }

    /// A template in a file of the project, with the files that it includes.
    pub(crate) fn template_file(
        &mut self,
        spot: &LocatedText<'_>,
        names: &StageNames<'_>,
        sees: Sees,
    ) -> Option<TemplateFile> {
        let asset = self.asset(spot)?;
        let before = self.report.count();
        let found: RefCell<Vec<(String, Asset)>> = RefCell::default();
        let missing: RefCell<Option<String>> = RefCell::default();
        let load = |name: &str| {
            let from_root = RelPath::parse(name).ok();
            let beside = asset
                .path
                .parent()
                .and_then(|folder| folder.join(name).ok());
            let Some(Ok(read)) = from_root
                .clone()
                .into_iter()
                .chain(beside)
                .find_map(|path| self.find(&path))
            else {
                let near = from_root.and_then(|path| self.near_file(&path));
                *missing.borrow_mut() = near.map(|near| format!("did you mean `{near}`?"));
                return None;
            };
            let text = read.text.to_string();
            found.borrow_mut().push((name.to_owned(), read));
            Some(text)
        };
        let compiled = Template::compile_with(asset.path.as_str(), &asset.text, &load);
        let included = found.into_inner();
        let template = match compiled {
            Ok(template) => template,
            Err(error) => {
                let inner = included
                    .iter()
                    .find(|(name, _)| *name == error.template)
                    .map_or(&asset, |(_, inner)| inner);
                let at = SourceFile::new(inner.path.as_str(), inner.text.clone());
                let range = error
                    .place
                    .as_ref()
                    .map_or(0..at.text.len().min(1), |place| place.range.clone());
                let problem = at.problem(range, error.message).also(
                    spot.file,
                    spot.span.clone(),
                    "used here",
                );
                self.report
                    .add(problem.maybe_help(error.hint.or(missing.into_inner())));
                return None;
            }
        };
        for dotted in template.names() {
            let problem = |message: String| {
                let texts = std::iter::once(&asset).chain(included.iter().map(|(_, asset)| asset));
                let (found, at) = texts
                    .map(|asset| (asset, find_name(&asset.text, dotted)))
                    .find(|(_, at)| !at.is_empty())
                    .unwrap_or((&asset, 0..0));
                let file = SourceFile::new(found.path.as_str(), found.text.clone());
                file.problem(at, message)
                    .also(spot.file, spot.span.clone(), "used here")
            };
            if let Some(wrong) = names.wrong(dotted, sees) {
                let problem = problem(wrong.message).label(wrong.label);
                self.report.add(problem.maybe_help(wrong.help));
            } else if let Some((name, help)) = StageNames::deprecated(dotted) {
                let problem = problem(format!("`{name}` is deprecated"));
                self.report.warn(problem.help(help));
            }
        }
        let included = included.into_iter().map(|(_, asset)| asset).collect();
        (self.report.count() == before).then(|| TemplateFile {
            asset,
            included,
            template: Arc::new(template),
        })
    }

    /// Warns of a name that goes away, in a file whose programs are not compiled here.
    pub(crate) fn warn_of_deprecated(&mut self, asset: &Asset) {
        if let Some((name, help)) = StageNames::deprecated("workspace.today")
            && let at = find_name(&asset.text, name)
            && !at.is_empty()
            && asset.text[at.clone()] == *name
        {
            let file = SourceFile::new(asset.path.as_str(), asset.text.clone());
            let problem = file.problem(at, format!("`{name}` is deprecated"));
            self.report.warn(problem.help(help));
        }
    }

    /// A plain path of names over the scope (or over a file, when `names` is none).
    pub(crate) fn select(
        &mut self,
        spot: &LocatedText<'_>,
        names: Option<&StageNames<'_>>,
    ) -> Option<Select> {
        let select = match Select::parse(spot.text) {
            Ok(select) => select,
            Err(error) => {
                let problem = match error {
                    SelectError::Syntax {
                        place,
                        message,
                        hint,
                        ..
                    } => {
                        let is_bare = !spot.text.starts_with('.')
                            && spot
                                .text
                                .starts_with(|c: char| c.is_alphabetic() || c == '_');
                        let hint = if is_bare {
                            format!(
                                "a path begins with a dot: {} = \".{}\"",
                                spot.key, spot.text
                            )
                        } else {
                            hint
                        };
                        spot.problem_at(&place.range, format!("`{}`: {message}", spot.key))
                            .help(hint)
                    }
                    other => spot.problem(format!("`{}`: {other}", spot.key)),
                };
                self.report.add(problem);
                return None;
            }
        };
        if let Some(names) = names
            && let Some(wrong) = names.wrong_first(select.first())
        {
            let at = find_name(spot.text, select.first());
            self.report.add(
                spot.problem_at(&at, wrong.message)
                    .label(wrong.label)
                    .maybe_help(wrong.help),
            );
            return None;
        }
        Some(select)
    }

    /// Reads a duration, or a template for one.
    pub(crate) fn duration(
        &mut self,
        spot: &LocatedText<'_>,
        names: &StageNames<'_>,
        sees: Sees,
    ) -> Option<Templated<Duration>> {
        if spot.text.contains("{{") {
            let template = self.template(spot, names, sees)?;
            let template = Templated::Template(template);
            return self.checked_by_defaults(
                spot,
                names,
                template,
                Templated::<Duration>::duration,
            );
        }
        match parse_duration(spot.text) {
            Ok(duration) => Some(Templated::Fixed(duration)),
            Err(error) => {
                self.report.add(spot.problem(error.to_string()));
                None
            }
        }
    }

    /// Reads a number of at least 1, or a template for one.
    pub(crate) fn count(
        &mut self,
        file: &SourceFile,
        key: &str,
        node: &TomlNode,
        names: &StageNames<'_>,
        sees: Sees,
    ) -> Option<Templated<u64>> {
        match &node.value {
            Val::Int(number) => u64::try_from(*number).ok().map(Templated::Fixed),
            Val::Text(text) => {
                let spot = LocatedText {
                    file,
                    key,
                    text,
                    span: node.span.clone(),
                };
                let template = Templated::Template(self.template(&spot, names, sees)?);
                self.checked_by_defaults(&spot, names, template, Templated::<u64>::number)
            }
            _ => None,
        }
    }
}

const SINGLE_QUOTES: &str =
    "write jq in single quotes, '…': in double quotes TOML interprets backslashes";

/// Returns the help for a jq program that looks like a name of the scope.
fn jq_hint(spot: &LocatedText<'_>, is_file: bool, message: &str) -> Option<String> {
    let text = spot.text.trim();
    let is_word = !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_');
    let is_dotted = text
        .split('.')
        .all(|part| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_'));
    if is_file || !message.contains("filter") {
        return None;
    }
    if is_word {
        return Some(format!(
            "a field begins with a dot: {} = \".{text}\"",
            spot.key
        ));
    }
    if is_dotted {
        let first = text.split('.').next().unwrap_or(text);
        return Some(
            if first == "params" || first == "env" || first == "workspace" {
                format!("in jq a name of the scope is written with `$`: ${text}")
            } else {
                format!("a field begins with a dot: {} = \".{text}\"", spot.key)
            },
        );
    }
    let bare = ["params.", "env.", "workspace."].iter().find_map(|name| {
        text.match_indices(name).find(|(at, _)| {
            !text[..*at].ends_with(|c: char| c.is_alphanumeric() || "._$\"".contains(c))
        })
    });
    bare.filter(|(_, name)| message.contains(name.trim_end_matches('.')))
        .map(|(at, _)| {
            let name: String = text[at..]
                .chars()
                .take_while(|c| c.is_alphanumeric() || "._".contains(*c))
                .collect();
            format!("in jq a name of the scope is written with `$`: ${name}")
        })
}

/// Returns the place of a dotted name in a text, or of its first part; empty if it does not occur.
fn find_name(text: &str, dotted: &str) -> Range<usize> {
    let first = dotted.split('.').next().unwrap_or(dotted);
    for wanted in [dotted, first] {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let found = text.match_indices(wanted).find(|(at, _)| {
            !text[..*at].ends_with(|c| is_part(c) || c == '.')
                && !text[at + wanted.len()..].starts_with(is_part)
                || (wanted == first
                    && text[..*at].ends_with('.')
                    && !text[at + wanted.len()..].starts_with(is_part))
        });
        if let Some((at, _)) = found {
            return at..at + wanted.len();
        }
    }
    0..0
}

/// Returns the place of the first `{{ }}` of a template that inserts a name and nothing else.
fn inserted(source: &str, name: &str) -> Option<Range<usize>> {
    let mut starts = source.match_indices("{{");
    starts.find_map(|(start, _)| {
        let inner = &source[start + 2..];
        let inner = &inner[..inner.find("}}")?];
        let end = start + 2 + inner.len() + 2;
        (inner.trim_matches(['-', ' ']) == name).then_some(start..end)
    })
}
