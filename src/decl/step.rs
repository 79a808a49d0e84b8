//! Reads the steps of a stage.

use super::keys::STEP;
use super::names::{Names, Sees};
use super::problem::File;
use super::project::Project;
use super::reader::{Reader, Spot};
use super::shape::{self, Fields};
use super::tree::{Node, Table, Val};
use crate::expr::place::{listed, nearest};
use crate::expr::scope::Format;
use crate::expr::select::Select;
use crate::model::pipeline::Asset;
use crate::model::stage::{Output, Program, Templated};
use crate::model::step::{Step, StepKind, Text};
use std::ops::Range;
use std::time::Duration;

/// Time for one try of a step that starts a program or asks an agent.
const TIMEOUT: Duration = Duration::from_secs(600);
/// Tries of a step that asks an agent.
const AGENT_ATTEMPTS: u32 = 3;
/// Questions of a batch.
pub const SIZE: u64 = 50;
/// Elements of a batch.
pub const MAX_ELEMENTS: u64 = 1000;

/// Reads the steps. `outputs` are those that could be read.
pub fn read(
    reader: &mut Reader<'_>,
    project: &Project,
    file: &File,
    names: &Names<'_>,
    steps: &[(&Table, Range<usize>)],
    outputs: &[Output],
) -> Vec<Step> {
    let header = if steps.len() > 1 {
        "[[step]]"
    } else {
        "[step]"
    };
    let mut built = Vec::new();
    let mut made: Vec<Made> = Vec::new();
    for (table, span) in steps {
        let fields = shape::check(file, &mut reader.report, &STEP, header, span.clone(), table);
        let mut one = One {
            reader,
            file,
            names,
            project,
            outputs,
            made: &made,
            fields: &fields,
        };
        let kind = one.kind();
        let out = one.out(steps.len());
        let when = one.jq("when", Sees::All);
        let timeout = one.timeout();
        let attempts = match fields.get("attempts").map(|node| &node.value) {
            Some(Val::Int(number)) => u32::try_from(*number).unwrap_or(u32::MAX),
            _ if fields.what == Some("agent") => AGENT_ATTEMPTS,
            _ => 1,
        };
        let role = fields.text("role").map(|(text, _)| text.to_owned());
        if let Some((out, span)) = &out {
            one.check_out(out, span);
            let what = fields.what.unwrap_or_default();
            made.push(Made {
                out: out.clone(),
                span: span.clone(),
                what,
            });
        }
        if let (Some(kind), Some((out, _))) = (kind, out) {
            built.push(Step {
                kind,
                out,
                when,
                role,
                timeout,
                attempts,
            });
        }
    }
    check_all_made(reader, file, names, steps, &made);
    built
}

/// What an earlier step makes.
struct Made {
    out: String,
    span: Range<usize>,
    what: &'static str,
}

struct One<'r, 'a> {
    reader: &'r mut Reader<'a>,
    file: &'r File,
    names: &'r Names<'r>,
    project: &'r Project,
    outputs: &'r [Output],
    made: &'r [Made],
    fields: &'r Fields<'r>,
}

impl One<'_, '_> {
    fn spot(&self, key: &'static str) -> Option<Spot<'_>> {
        let (text, span) = self.fields.text(key)?;
        Some(Spot {
            file: self.file,
            key,
            text,
            span,
        })
    }

    fn kind(&mut self) -> Option<StepKind> {
        Some(match self.fields.what? {
            "command" => {
                let (arguments, shell) = self.arguments()?;
                let env = self
                    .fields
                    .get("env")
                    .and_then(Node::list)
                    .unwrap_or_default();
                let env = env
                    .iter()
                    .filter_map(|name| name.text().map(str::to_owned))
                    .collect();
                let stdin = match self.fields.get("stdin") {
                    Some(_) => Some(self.file_name("stdin")?),
                    None => None,
                };
                StepKind::Command {
                    arguments,
                    shell,
                    env,
                    stdin,
                }
            }
            "agent" => self.agent()?,
            "jq" => {
                let program = self.jq("jq", Sees::All);
                let stream = self.select("stream");
                StepKind::Jq {
                    program: program?,
                    stream: stream?,
                }
            }
            "render" => {
                let (text, span) = self.fields.text("render")?;
                let spot = Spot {
                    file: self.file,
                    key: "render",
                    text,
                    span,
                };
                StepKind::Render {
                    template: self.reader.template_file(&spot, self.names, Sees::All)?,
                }
            }
            "xlsx" => {
                let (text, span) = self.fields.text("xlsx")?;
                StepKind::Xlsx {
                    workbook: self.reader.asset(&Spot {
                        file: self.file,
                        key: "xlsx",
                        text,
                        span,
                    })?,
                }
            }
            "ifc" => StepKind::Ifc {
                input: self.file_name("ifc")?,
            },
            "pdf" => StepKind::Pdf {
                input: self.file_name("pdf")?,
            },
            "copy" => StepKind::Copy {
                input: self.file_name("copy")?,
            },
            "split" => {
                let records = self.select("split")?;
                let question = self.wanted_jq("question", Sees::All);
                let size = self.count("size", SIZE);
                let max_elements = self.count("max_elements", MAX_ELEMENTS);
                StepKind::Split {
                    records: records?,
                    question: question?,
                    size: size?,
                    max_elements: max_elements?,
                }
            }
            _ => {
                let records = self.select("merge")?;
                let key = self.jq("key", Sees::All);
                let order = self.select("order")?;
                let corrections = match self.fields.get("corrections") {
                    Some(_) => Some(self.file_name("corrections")?),
                    None => None,
                };
                StepKind::Merge {
                    records: records?,
                    key: key?,
                    order,
                    corrections,
                }
            }
        })
    }

    fn agent(&mut self) -> Option<StepKind> {
        let (agent, span) = self.fields.text("agent")?;
        let known = self.project.names.agents.iter().map(String::as_str);
        let is_known = self.project.names.agents.iter().any(|name| name == agent);
        if !is_known && !self.project.names.is_unknown {
            let help = match nearest(agent, known.clone()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if self.project.names.agents.is_empty() => {
                    format!("declare it in milepost.toml: [agents.{agent}]")
                }
                None => format!(
                    "there is {}; declare others in milepost.toml: [agents.{agent}]",
                    listed(known)
                ),
            };
            let problem = self
                .file
                .problem(span, format!("there is no agent `{agent}`"));
            self.reader
                .report
                .add(problem.label("not declared in milepost.toml").help(help));
        }
        let questions = self.fields.is_true("questions");
        let prompt = self.fields.text("prompt").and_then(|(text, span)| {
            let spot = Spot {
                file: self.file,
                key: "prompt",
                text,
                span,
            };
            let sees = if questions {
                Sees::AllAnd(&["questions"])
            } else {
                Sees::All
            };
            self.reader.template_file(&spot, self.names, sees)
        });
        let result = self.wanted_jq("result", Sees::AllAnd(&["element", "usage"]));
        let schema = self.answer_schema(result.as_ref().is_some_and(Option::is_some));
        is_known.then_some(())?;
        Some(StepKind::Agent {
            agent: agent.to_owned(),
            prompt: prompt?,
            schema: schema?,
            result: result?,
            questions,
        })
    }

    /// Of one answer: as declared, else the output's when the answer is the record. The outer none: wrong.
    #[expect(clippy::option_option, reason = "absent and wrong are different")]
    fn answer_schema(&mut self, has_result: bool) -> Option<Option<Asset>> {
        if let Some((text, span)) = self.fields.text("schema") {
            return self
                .reader
                .schema(&Spot {
                    file: self.file,
                    key: "schema",
                    text,
                    span,
                })
                .map(Some);
        }
        if has_result || self.fields.is_true("questions") {
            return Some(None);
        }
        let out = self.fields.text("out").map(|(text, _)| text);
        let output = match out {
            Some(out) => self.outputs.iter().find(|output| output.name == out),
            None => self.outputs.first(),
        };
        Some(output.and_then(|output| output.schema.clone()))
    }

    fn arguments(&mut self) -> Option<(Vec<Text>, bool)> {
        let node = self.fields.get("command")?;
        let (items, shell) = match &node.value {
            Val::List(list) => (list.as_slice(), false),
            _ => (std::slice::from_ref(node), true),
        };
        let mut arguments = Vec::new();
        for item in items {
            let spot = Spot {
                file: self.file,
                key: "command",
                text: item.text()?,
                span: item.span.clone(),
            };
            arguments.push(self.reader.text(&spot, self.names, Sees::All));
            if let Some(path) = spot.text.strip_prefix("project:")
                && !path.contains("{{")
            {
                self.reader.project_file(&spot, path);
            }
        }
        Some((arguments.into_iter().collect::<Option<_>>()?, shell))
    }

    fn jq(&mut self, key: &'static str, sees: Sees) -> Option<Program> {
        let (text, span) = self.fields.text(key)?;
        self.reader.jq(
            &Spot {
                file: self.file,
                key,
                text,
                span,
            },
            self.names,
            sees,
        )
    }

    /// A program that may be absent. The outer none: wrong.
    #[expect(clippy::option_option, reason = "absent and wrong are different")]
    fn wanted_jq(&mut self, key: &'static str, sees: Sees) -> Option<Option<Program>> {
        if self.fields.get(key).is_none() {
            Some(None)
        } else {
            self.jq(key, sees).map(Some)
        }
    }

    /// A plain path that may be absent. The outer none: wrong.
    #[expect(clippy::option_option, reason = "absent and wrong are different")]
    fn select(&mut self, key: &'static str) -> Option<Option<Select>> {
        let Some((text, span)) = self.fields.text(key) else {
            return Some(None);
        };
        self.reader
            .select(
                &Spot {
                    file: self.file,
                    key,
                    text,
                    span,
                },
                Some(self.names),
            )
            .map(Some)
    }

    fn count(&mut self, key: &'static str, default: u64) -> Option<Templated<u64>> {
        match self.fields.get(key) {
            None => Some(Templated::Fixed(default)),
            Some(node) => self
                .reader
                .count(self.file, key, node, self.names, Sees::Batch),
        }
    }

    fn timeout(&mut self) -> Option<Templated<Duration>> {
        match self.fields.text("timeout") {
            Some((text, span)) => {
                let spot = Spot {
                    file: self.file,
                    key: "timeout",
                    text,
                    span,
                };
                self.reader.duration(&spot, self.names, Sees::Batch)
            }
            None => matches!(self.fields.what, Some("agent" | "command"))
                .then_some(Templated::Fixed(TIMEOUT)),
        }
    }

    /// The name of an input or of an earlier `out`.
    fn file_name(&mut self, key: &'static str) -> Option<String> {
        let spot = self.spot(key)?;
        let name = spot.text.to_owned();
        let earlier = || self.made.iter().map(|made| made.out.as_str());
        let known: Vec<&str> = self
            .names
            .inputs
            .iter()
            .map(String::as_str)
            .chain(earlier())
            .collect();
        if known.contains(&name.as_str()) {
            return Some(name);
        }
        let is_later = self
            .names
            .outputs
            .iter()
            .chain(&self.names.outs)
            .any(|out| *out == name);
        let is_each = self.names.each.iter().any(|(each, _)| *each == name);
        let help = match nearest(&name, known.iter().copied()) {
            _ if is_later => "a step reads what earlier steps made: change their order".to_owned(),
            _ if is_each => format!(
                "declare the file of `{name}` as an input: [inputs] and below it file = \"{{{{ {name}.path }}}}\""
            ),
            Some(near) => format!("did you mean `{near}`?"),
            None if name.contains(['/', '.']) => format!(
                "this is a name, not a path: declare it as an input, [inputs] and below it NAME = \"{name}\""
            ),
            None if known.is_empty() => {
                format!("declare it: [inputs] and below it {name} = \"path\"")
            }
            None => format!("there is {}", listed(known)),
        };
        let message = format!("`{name}` is no input, nor the `out` of an earlier step");
        let problem = spot.problem(message).label("unknown name").help(help);
        self.reader.report.add(problem);
        None
    }

    /// What the step makes, and where that is said.
    fn out(&mut self, steps: usize) -> Option<(String, Range<usize>)> {
        if let Some((text, span)) = self.fields.text("out") {
            return Some((text.to_owned(), span));
        }
        if self.fields.get("out").is_some() {
            return None;
        }
        let span = self.fields.what.map_or_else(
            || self.fields.span.clone(),
            |what| self.fields.key_span(what),
        );
        match self.names.outputs.as_slice() {
            [] => None,
            [only] => Some((only.clone(), span)),
            // a program may write several: its step stands for the first that no other step makes
            [first, ..] if self.fields.what == Some("command") && steps == 1 => {
                Some((first.clone(), span))
            }
            several => {
                let problem = self
                    .file
                    .problem(span, "this step does not say which output it makes");
                let names = super::hints::or(several.iter().map(String::as_str));
                let first = &several[0];
                let help = format!(
                    "the stage has {names}: write out = \"{first}\", or a new name for what is for later steps only"
                );
                self.reader
                    .report
                    .add(problem.label("`out` is missing").help(help));
                None
            }
        }
    }

    /// Whether the kind of the step fits what it makes, and nobody made it before.
    fn check_out(&mut self, out: &str, span: &Range<usize>) {
        let what = self.fields.what.unwrap_or_default();
        if let Some(earlier) = self.made.iter().find(|made| made.out == out)
            && self.fields.get("when").is_none()
        {
            let problem = self
                .file
                .problem(span.clone(), format!("two steps make `{out}`"));
            let problem = problem
                .label("this one always replaces what the other made")
                .also(self.file, earlier.span.clone(), "the other");
            self.reader
                .report
                .add(problem.help("give one of them another `out`, or `when`"));
        }
        let Some(output) = self.outputs.iter().find(|output| output.name == out) else {
            return;
        };
        if output.is_many() && !matches!(what, "split" | "command" | "") {
            let problem = self.file.problem(
                span.clone(),
                format!("`{what}` makes one file, and `{out}` is many"),
            );
            self.reader
                .report
                .add(problem.help("only `split` and `command` fill a path with `*`"));
        }
        if what == "split" && !output.is_many() {
            let problem = self.file.problem(
                span.clone(),
                format!("`split` makes many files, and `{out}` is one"),
            );
            self.reader.report.add(problem.help(format!(
                "put a `*` into its path: {out} = \"intermediate/{out}/batch_*.json\""
            )));
        }
        let ending = match what {
            "xlsx" | "pdf" => what,
            "ifc" | "split" | "merge" | "agent" => "json",
            _ => return,
        };
        let fits = match ending {
            "json" => output.format == Format::Json,
            ending => output
                .path
                .text
                .to_lowercase()
                .ends_with(&format!(".{ending}")),
        };
        if !fits {
            let message = format!(
                "`{what}` makes {}, and `{out}` is `{}`",
                ending.to_uppercase(),
                output.path.text
            );
            let problem = self.file.problem(span.clone(), message);
            self.reader
                .report
                .add(problem.help(format!("its path should end in `.{ending}`")));
        }
    }
}

/// Every output is made by some step; a program may make them all.
fn check_all_made(
    reader: &mut Reader<'_>,
    file: &File,
    names: &Names<'_>,
    steps: &[(&Table, Range<usize>)],
    made: &[Made],
) {
    let has_program = steps
        .iter()
        .any(|(table, _)| table.get("command").is_some());
    if has_program || made.len() < steps.len() || made.iter().any(|made| made.what.is_empty()) {
        return;
    }
    for output in &names.outputs {
        if !made.iter().any(|made| made.out == *output) {
            let Some((_, span)) = steps.last() else {
                return;
            };
            let problem =
                file.problem(span.clone(), format!("no step makes the output `{output}`"));
            reader.report.add(problem.help(format!(
                "write out = \"{output}\" at the step that makes it, or remove the output"
            )));
        }
    }
}
