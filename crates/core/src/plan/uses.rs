//! What a step depends on beside its declaration and its inputs. Each kind of step is taken apart field by field: one that is new
//! does not compile before it says what it uses.

use crate::expr::template::Template;
use crate::model::pipeline::Asset;
use crate::model::stage::{PathTemplate, Program, Templated};
use crate::model::step::{HttpCall, StepKind, TemplateChoice};

/// What a step uses. Text of the declaration itself is a fact of its own, by `Stage::parts`.
#[derive(Default)]
pub struct Uses<'a> {
    /// The agent that it asks.
    pub agent: Option<&'a str>,
    /// Its prompt or its template.
    pub template: Option<&'a TemplateChoice>,
    /// Templates of the declaration.
    pub templates: Vec<&'a Template>,
    /// Templates whose variables of the environment are keys.
    pub headers: Vec<&'a Template>,
    /// Programs that make its output.
    pub programs: Vec<&'a Program>,
    /// The program whose `.` is the whole scope.
    pub whole: Option<&'a Program>,
    /// The form of a workbook.
    pub workbook: Option<&'a Asset>,
    /// The schema of a reply, which is not kept.
    pub reply_schema: Option<&'a Asset>,
    /// The schema of an answer.
    pub answer_schema: Option<&'a Asset>,
    /// Environment variables by name.
    pub env: &'a [String],
    /// Names whose values a document says in any case.
    pub says: &'static [&'static str],
}

/// What a step of this kind uses.
pub fn of(kind: &StepKind) -> Uses<'_> {
    let mut uses = Uses::default();
    match kind {
        StepKind::Command {
            arguments,
            shell: _,
            env,
            stdin: _,
        } => {
            uses.templates
                .extend(arguments.iter().map(|argument| &*argument.template));
            uses.env = env;
        }
        StepKind::Agent {
            agent,
            prompt,
            schema,
            result,
            questions: _,
            answer: _,
            attach: _,
            defaults: _,
        } => {
            uses.agent = Some(agent);
            uses.template = Some(prompt);
            uses.answer_schema = schema.as_ref();
            uses.programs.extend(result);
        }
        StepKind::Http(call) => {
            let HttpCall {
                url,
                method: _,
                headers,
                body,
                schema,
            } = &**call;
            uses.templates.push(&url.template);
            uses.headers
                .extend(headers.iter().map(|(_, value)| &*value.template));
            uses.programs.extend(body);
            uses.whole = body.as_ref();
            uses.reply_schema = schema.as_ref();
        }
        StepKind::Jq { program, stream } => {
            uses.programs.push(program);
            uses.whole = stream.is_none().then_some(program);
        }
        StepKind::Render { template } => uses.template = Some(template),
        StepKind::Xlsx { workbook } => {
            uses.workbook = Some(workbook);
            // Title of the document.
            uses.says = &["workspace.name"];
        }
        StepKind::Ifc { input: _ }
        | StepKind::Pdf { input: _ }
        | StepKind::Copy { input: _ }
        | StepKind::PdfText {
            input: _,
            engines: _,
        } => {}
        StepKind::Wait { path, marker } => {
            let paths = std::iter::once(path).chain(marker);
            uses.templates
                .extend(paths.map(|path: &PathTemplate| &*path.template));
        }
        StepKind::Split {
            records: _,
            question,
            size,
            max_elements,
        } => {
            uses.programs.extend(question);
            uses.templates.extend(templated(size));
            uses.templates.extend(templated(max_elements));
        }
        StepKind::Merge {
            records: _,
            key,
            order: _,
            corrections: _,
        } => uses.programs.push(key),
    }
    uses
}

fn templated<T>(value: &Templated<T>) -> Option<&Template> {
    match value {
        Templated::Fixed(_) => None,
        Templated::Template(template) => Some(template),
    }
}
