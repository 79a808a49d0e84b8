//! Reads the steps of a stage.

mod http_wait;
mod items;
mod reader;
mod step_outputs;

use crate::decl::keys::STEP;
use crate::decl::problem::SourceFile;
use crate::decl::project::{Project, errors};
use crate::decl::step::reader::{StepOutput, StepReader, kind_of};
use crate::decl::step::step_outputs::check_all_made;
use crate::decl::tables::fields;
use crate::decl::tables::tree::{TomlNode, TomlTable, Val};
use crate::decl::values::names::{Sees, StageNames};
use crate::decl::values::reader::ValueReader;
use crate::expr::place::{listed, nearest};
use crate::model::pipeline::Asset;
use crate::model::stage::Output;
use crate::model::step::{
    AgentStep, AnswerForm, CommandStep, CopyStep, DiffStep, IfcStep, JqStep, KindName, MergeStep,
    PdfEngine, PdfStep, PdfTextStep, RenderStep, SplitStep, Step, StepKind, TOLERANCE, Text,
    XlsxStep,
};
use serde_json::{Map, Value};
use std::ops::Range;

/// Questions of a batch.
pub(crate) const SIZE: u64 = 50;
/// Elements of a batch.
pub(crate) const MAX_ELEMENTS: u64 = 1000;

/// Reads the steps. `outputs` are those that could be read.
pub(crate) fn read(
    reader: &mut ValueReader<'_>,
    project: &Project,
    file: &SourceFile,
    names: &StageNames<'_>,
    steps: &[(&TomlTable, Range<usize>)],
    outputs: &[Output],
) -> Vec<Step> {
    let header = if steps.len() > 1 {
        "[[step]]"
    } else {
        "[step]"
    };
    let mut built = Vec::new();
    let mut made: Vec<StepOutput> = Vec::new();
    for (table, span) in steps {
        let fields = fields::check(file, &mut reader.report, &STEP, header, span.clone(), table);
        let mut one = StepReader {
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
        let summary = one.jq("summary", Sees::All);
        let timeout = one.timeout();
        let attempts = match fields.get("attempts").map(|node| &node.value) {
            Some(Val::Int(number)) => u32::try_from(*number).unwrap_or(u32::MAX),
            _ => kind_of(&fields).map_or(1, |kind| kind.info().attempts),
        };
        let errors = errors(file, &mut one.reader.report, &fields);
        let role = fields.text("role").map(|(text, _)| text.to_owned());
        if let Some((out, span)) = &out {
            one.check_out(out, span);
            let what = fields.what.unwrap_or_default();
            made.push(StepOutput {
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
                summary,
                timeout,
                attempts,
                errors,
            });
        }
    }
    check_all_made(reader, file, names, steps, &made);
    built
}

impl StepReader<'_, '_> {
    fn kind(&mut self) -> Option<StepKind> {
        Some(match kind_of(self.fields)? {
            KindName::Command => StepKind::Command(self.command()?),
            KindName::Agent => StepKind::Agent(self.agent()?),
            KindName::Http => StepKind::Http(self.http()?),
            KindName::Wait => StepKind::Wait(self.wait()?),
            KindName::Jq => {
                let program = self.jq("jq", Sees::All);
                let stream = self.select("stream");
                StepKind::Jq(JqStep {
                    program: program?,
                    stream: stream?,
                })
            }
            KindName::Render => {
                let spot = self.fields.spot("render")?;
                let template = self.reader.template_choice(&spot, self.names, Sees::All)?;
                StepKind::Render(RenderStep { template })
            }
            KindName::Xlsx => {
                let workbook = self.reader.asset(&self.fields.spot("xlsx")?)?;
                self.reader.warn_of_deprecated(&workbook);
                StepKind::Xlsx(XlsxStep { workbook })
            }
            KindName::Ifc => {
                let geometry = self.geometry();
                let input = self.file_name("ifc")?;
                let geometry = geometry?;
                StepKind::Ifc(IfcStep { input, geometry })
            }
            KindName::Pdf => StepKind::Pdf(PdfStep {
                input: self.file_name("pdf")?,
            }),
            KindName::PdfText => {
                let engines = self.engines();
                let input = self.file_name("pdf_text")?;
                let engines = engines?;
                StepKind::PdfText(PdfTextStep { input, engines })
            }
            KindName::Copy => StepKind::Copy(CopyStep {
                input: self.file_name("copy")?,
            }),
            KindName::Split => {
                let records = self.select("split")?;
                let question = self.wanted_jq("question", Sees::All);
                let size = self.count("size", SIZE);
                let max_elements = self.count("max_elements", MAX_ELEMENTS);
                StepKind::Split(SplitStep {
                    records: records?,
                    question: question?,
                    size: size?,
                    max_elements: max_elements?,
                })
            }
            KindName::Merge => {
                let records = self.select("merge")?;
                let key = self.jq("key", Sees::All);
                let order = self.select("order")?;
                let corrections = match self.fields.get("corrections") {
                    Some(_) => Some(self.file_name("corrections")?),
                    None => None,
                };
                let shared_key = self.fields.text("shared_key");
                StepKind::Merge(MergeStep {
                    records: records?,
                    key: key?,
                    order,
                    corrections,
                    shared_key: shared_key.map(|(name, _)| name.to_owned()),
                })
            }
            KindName::Diff => {
                let records = self.select("diff")?;
                let baseline = self.select("baseline")?;
                let compare = self.jq("compare", Sees::All);
                StepKind::Diff(DiffStep {
                    records: records?,
                    baseline: baseline?,
                    compare: compare?,
                    tolerance: self.fields.number("tolerance").unwrap_or(TOLERANCE),
                })
            }
        })
    }

    fn command(&mut self) -> Option<CommandStep> {
        let (arguments, shell) = self.arguments()?;
        let (names, env) = (&self.project.names, self.fields.get("env"));
        let env = self.reader.variables(self.file, names, env);
        let stdin = match self.fields.get("stdin") {
            Some(_) => Some(self.file_name("stdin")?),
            None => None,
        };
        let depfile = self.fields.spot("depfile");
        let depfile = depfile.map(|spot| self.reader.text(&spot, self.names, Sees::All));
        Some(CommandStep {
            arguments,
            shell,
            env,
            stdin,
            depfile: match depfile {
                Some(text) => Some(text?),
                None => None,
            },
        })
    }

    fn agent(&mut self) -> Option<AgentStep> {
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
                    "available: {}; declare others in milepost.toml: [agents.{agent}]",
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
        self.check_questions(questions);
        let each = self.items();
        let mut names = self.names.clone();
        if let Some((key, _)) = self.item()
            && names.taken(&key.name).is_none()
        {
            names.each.push((key.name.clone(), false));
        }
        let prompt = self.fields.spot("prompt").and_then(|spot| {
            let sees = if questions {
                Sees::AllAnd(&["questions"])
            } else {
                Sees::All
            };
            // Answers are cached by their prompt: a prompt with the time would be sent again on every run.
            let names = StageNames {
                hides_run: true,
                ..names.clone()
            };
            self.reader.template_choice(&spot, &names, sees)
        });
        // A request with many questions reports no usage for each of them.
        let beside: &[&str] = if questions {
            &["element", "question"]
        } else {
            &["usage"]
        };
        let result = self.wanted_jq_of("result", &names, Sees::AllAnd(beside));
        let schema = self.answer_schema(result.as_ref().is_some_and(Option::is_some));
        is_known.then_some(())?;
        Some(AgentStep {
            agent: agent.to_owned(),
            prompt: prompt?,
            schema: schema?,
            result: result?,
            questions,
            each: each?.map(Box::new),
            answer: match self.fields.text("answer").map(|(text, _)| text) {
                Some("text") => AnswerForm::Text,
                Some("tap-yaml") => AnswerForm::TapYaml,
                _ => AnswerForm::Json,
            },
            attach: self.names_of("attach"),
            defaults: match self.fields.get("defaults").map(TomlNode::to_json) {
                Some(Value::Object(defaults)) => defaults,
                _ => Map::new(),
            },
        })
    }

    /// Reads the engines of a PDF. Unknown ones are reported.
    fn engines(&mut self) -> Option<Vec<PdfEngine>> {
        let Some(list) = self.fields.get("engines").and_then(TomlNode::list) else {
            return Some(PdfEngine::ALL.to_vec());
        };
        let mut engines = Some(Vec::new());
        for item in list {
            let Some(name) = item.text() else { continue };
            let found = match name {
                // The parser that `builtin` uses had a name of its own.
                "hayro" => Some(PdfEngine::Builtin),
                _ => PdfEngine::ALL
                    .into_iter()
                    .find(|engine| engine.name() == name),
            };
            engines = engines.zip(found).map(|(mut engines, engine)| {
                if !engines.contains(&engine) {
                    engines.push(engine);
                }
                engines
            });
            if found.is_none() {
                let message = format!("`{name}` reads no PDF");
                let problem = self.file.problem(item.span.clone(), message);
                let there = listed(PdfEngine::ALL.map(PdfEngine::name));
                let problem = problem
                    .label("no engine")
                    .help(format!("available: {there}"));
                self.reader.report.add(problem);
            }
        }
        engines
    }

    /// An agent of rules answers questions, and finds them in a file that `split` wrote.
    fn check_questions(&mut self, questions: bool) {
        let reads_batch =
            self.names.each.iter().any(|(_, is_file)| *is_file) || !self.names.inputs.is_empty();
        if !questions || reads_batch {
            return;
        }
        let help = "give the stage the batches: [each.batch] and below it path = \"intermediate/batches/batch_*.json\"";
        let span = self.fields.key_span("agent");
        let problem = self
            .file
            .problem(span, "the agent has no questions to answer");
        self.reader.report.add(problem.help(help));
    }

    /// Returns the schema of one answer: as declared, or that of the output if the answer is its record. The outer `None` means
    /// a mistake.
    #[expect(clippy::option_option, reason = "absent and wrong are different")]
    fn answer_schema(&mut self, has_result: bool) -> Option<Option<Asset>> {
        if self.fields.text("schema").is_some() {
            return self.schema_of("schema").map(Some);
        }
        let is_list = self.fields.is_true("questions") || self.fields.get("each").is_some();
        if has_result || is_list {
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
        // Which file of the project it is must be known before the batch runs: it is an input.
        let sees = [Sees::All, Sees::Batch];
        let found = self.reader.command(self.file, self.names, node, sees)?;
        let items = node.list().unwrap_or(std::slice::from_ref(node));
        self.reader.relative_files(self.file, items, found.1);
        Some(found)
    }
}
