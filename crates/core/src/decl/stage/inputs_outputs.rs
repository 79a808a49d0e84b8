//! Reads `each`, `inputs` and `outputs` of a stage.

use crate::base::path::{FilePath, RelPath, Root};
use crate::decl::cross_checks::{Read, Written};
use crate::decl::stage::StageReader;
use crate::decl::tables::fields::Fields;
use crate::decl::tables::located_text::LocatedText;
use crate::decl::tables::tree::{TomlKey, TomlNode, TomlTable};
use crate::decl::values::names::Sees;
use crate::expr::scope::Format;
use crate::model::pipeline::Asset;
use crate::model::stage::{Each, EachSource, Input, InputSource, Output, PathTemplate};
use std::ops::Range;

impl StageReader<'_, '_, '_> {
    /// A path that is read; noted for the checks of the whole project.
    fn read_path(
        &mut self,
        fields: &Fields<'_>,
        key: &'static str,
        sees: Sees,
        is_optional: bool,
    ) -> Option<PathTemplate> {
        let spot = fields.spot(key)?;
        let path = self.reader.path(&spot, self.names, sees)?;
        self.draft.reads.push(Read {
            path: path.clone(),
            span: spot.span,
            is_optional,
            is_awaited: false,
        });
        Some(path)
    }

    /// Returns the files that a step's program reads besides its arguments.
    pub(crate) fn step_reads(&mut self, step: &TomlTable) -> Vec<PathTemplate> {
        let mut paths = Vec::new();
        for item in step
            .get("reads")
            .and_then(TomlNode::list)
            .unwrap_or_default()
        {
            let Some(text) = item.text() else { continue };
            let span = item.span.clone();
            let spot = LocatedText {
                file: self.file,
                key: "reads",
                text,
                span: span.clone(),
            };
            let Some(path) = self.reader.path(&spot, self.names, Sees::Batch) else {
                continue;
            };
            if path.root == Root::Project && path.is_pattern() && !path.text.contains("{{") {
                self.reader.project_files(&spot, &path.text);
            }
            self.draft.reads.push(Read {
                path: path.clone(),
                span,
                is_optional: false,
                is_awaited: false,
            });
            paths.push(path);
        }
        paths
    }

    /// A path that is written.
    pub(crate) fn place(&mut self, fields: &Fields<'_>, key: &'static str) -> Option<PathTemplate> {
        let (text, span) = fields.text(key)?;
        self.place_of(key, text, span)
    }

    fn place_of(
        &mut self,
        key: &'static str,
        text: &str,
        span: Range<usize>,
    ) -> Option<PathTemplate> {
        let spot = LocatedText {
            file: self.file,
            key,
            text,
            span,
        };
        let path = self.reader.path(&spot, self.names, Sees::Place)?;
        if path.root == Root::Project {
            let problem = spot
                .problem("a stage cannot write to the project")
                .label("this is in the project");
            self.reader
                .report
                .add(problem.help("a stage writes to the workspace: leave `project:` out"));
            return None;
        }
        Some(path)
    }

    /// Reads one `[each.NAME]`.
    pub(crate) fn each(&mut self, name: &TomlKey, fields: &Fields<'_>) -> Option<Each> {
        let key = self.jq(fields, "key", Sees::Start);
        let source = match fields.what? {
            "path" => EachSource::Path(self.read_path(fields, "path", Sees::Start, false)?),
            "from" => {
                let file = self.read_path(fields, "from", Sees::Start, false);
                let select = self.jq(fields, "select", Sees::Start);
                let format = file.as_ref().map(|file| Format::of_path(&file.text));
                let columns = self.columns(fields, format.unwrap_or(Format::Csv));
                EachSource::From {
                    file: file?,
                    select: select?,
                    columns: columns?,
                }
            }
            "values" => {
                let list = fields.get("values")?.list()?;
                if let Some(row) = list
                    .iter()
                    .find(|item| item.table().is_some() || item.list().is_some())
                    && fields.get("key").is_none()
                {
                    let problem = self.file.problem(
                        row.span.clone(),
                        format!(
                            "`[each.{}]` needs `key`: its values are neither plain words nor numbers",
                            name.name
                        ),
                    );
                    self.reader.report.add(
                        problem
                            .label("`key` is missing")
                            .help("key is a jq program over the value, such as key = \".id\""),
                    );
                }
                EachSource::Values(list.iter().map(TomlNode::to_json).collect())
            }
            _ => {
                let node = fields.get("count")?;
                EachSource::Count(self.reader.count(
                    self.file,
                    "count",
                    node,
                    self.names,
                    Sees::Start,
                )?)
            }
        };
        Some(Each {
            name: name.name.clone(),
            source,
            key,
        })
    }

    /// Reads one input.
    pub(crate) fn input(&mut self, name: &TomlKey, fields: &Fields<'_>) -> Option<Input> {
        let optional = fields.is_true("optional");
        let earlier = fields.is_true("earlier");
        let schema = fields.spot("schema").map(|spot| self.reader.schema(&spot));
        let source = if fields.what? == "path" {
            let path = self.read_path(fields, "path", Sees::Batch, optional)?;
            if earlier && (!path.is_pattern() || path.root == Root::Project) {
                let span = fields.get("earlier").map(|node| node.span.clone());
                let problem = self.file.problem(
                    span.unwrap_or_default(),
                    "`earlier` needs a pattern over files of the workspace",
                );
                self.reader
                    .report
                    .add(problem.help("write path = \"results/*.json\", or leave `earlier` out"));
            }
            InputSource::Path(path)
        } else {
            let file = self.read_path(fields, "from", Sees::Batch, optional);
            let select = self.jq(fields, "select", Sees::Batch);
            let (base, whole) = self.base(fields)?;
            InputSource::From {
                file: file?,
                select: select?,
                base,
                whole,
            }
        };
        let format = fields
            .text("format")
            .and_then(|(text, _)| Format::named(text));
        let by_name = match &source {
            InputSource::Path(path) => Format::of_path(&path.text),
            InputSource::From { .. } => Format::Text,
        };
        let columns = self.columns(fields, format.unwrap_or(by_name))?;
        Some(Input {
            name: name.name.clone(),
            source,
            schema: transpose(schema)?,
            optional,
            earlier,
            format,
            columns,
        })
    }

    fn base(&mut self, fields: &Fields<'_>) -> Option<(FilePath, bool)> {
        let (text, span) = fields.text("base")?;
        let (root, rest) = match text.strip_prefix("project:") {
            Some(rest) => (Root::Project, rest),
            None => (Root::Workspace, text),
        };
        let is_whole = rest.is_empty() || rest == ".";
        match RelPath::parse(if is_whole { "all" } else { rest }) {
            Ok(path) => Some((FilePath { root, path }, is_whole)),
            Err(error) => {
                self.reader
                    .report
                    .add(self.file.problem(span, error.to_string()));
                None
            }
        }
    }

    /// Reads one output.
    pub(crate) fn output(&mut self, name: &TomlKey, fields: &Fields<'_>) -> Option<Output> {
        let (text, span) = fields.text("path")?;
        let pattern = self.round_path(text, &span)?;
        let path = self.place_of("path", pattern.as_deref().unwrap_or(text), span);
        if let (Some(path), Some((_, span))) = (&path, fields.text("path")) {
            let what = format!("output `{}`", name.name);
            self.draft.writes.push(Written {
                what,
                path: path.clone(),
                span,
            });
        }
        let stream = fields
            .spot("stream")
            .map(|spot| self.reader.select(&spot, None));
        let path = path?;
        let min = fields.integer("min");
        if let Some(node) = fields.get("min") {
            let is_many = pattern.is_none() && path.is_starred();
            let wrong = match min {
                None => Some(("`min` must be an integer", "write a number of files")),
                Some(_) if !is_many => Some((
                    "`min` needs an output with `*`, which stands for any number of files",
                    "write a path such as \"outputs/parts/*.json\", or leave `min` out",
                )),
                Some(_) => None,
            };
            if let Some((message, help)) = wrong {
                let problem = self.file.problem(node.span.clone(), message);
                self.reader.report.add(problem.help(help));
            }
        }
        let format = match fields.text("format") {
            Some((text, _)) => Format::named(text)?,
            None => Format::of_path(&path.text),
        };
        let columns = self.columns(fields, format)?;
        let format = match &columns {
            Some(_) => Format::Csv,
            None => format,
        };
        let schema = self.output_schema(name, fields, format);
        Some(Output {
            name: name.name.clone(),
            path,
            schema: schema?,
            stream: transpose(stream)?,
            format,
            columns,
            min,
            per_round: pattern.is_some(),
        })
    }

    /// Reads the schema of an output. The outer `None` means a mistake.
    #[expect(
        clippy::option_option,
        reason = "an output without a schema is right, one with a broken schema is not"
    )]
    fn output_schema(
        &mut self,
        name: &TomlKey,
        fields: &Fields<'_>,
        format: Format,
    ) -> Option<Option<Asset>> {
        if let Some(spot) = fields.spot("schema") {
            return self.reader.output_schema(&spot).map(Some);
        }
        if fields.get("schema").is_some() {
            return Some(None);
        }
        let usual = format!("schemas/{}.schema.json", name.name);
        if let Some(asset) = RelPath::parse(&usual)
            .ok()
            .and_then(|path| self.reader.find(&path))
        {
            return match asset {
                Ok(asset) => self
                    .reader
                    .schema_asset(asset, self.file, name.span.clone())
                    .map(Some),
                Err(message) => {
                    self.reader.report.add(self.file.problem(
                        name.span.clone(),
                        format!("`{usual}` cannot be read: {message}"),
                    ));
                    None
                }
            };
        }
        if format == Format::Json {
            let warning = self.file.problem(
                name.span.clone(),
                format!("output `{}` is not validated: it has no schema", name.name),
            );
            self.reader
                .report
                .advise(warning.help(format!("create {usual}, or write schema = false")));
        }
        Some(None)
    }
}

/// None of a value that is there but wrong; some of one that is right, or not there.
#[expect(clippy::option_option, reason = "absent and wrong are different")]
fn transpose<T>(value: Option<Option<T>>) -> Option<Option<T>> {
    match value {
        None => Some(None),
        Some(None) => None,
        Some(Some(value)) => Some(Some(value)),
    }
}
