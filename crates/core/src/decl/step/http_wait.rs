//! Reads the steps that reach outside: `http`, `wait`.

use crate::decl::step::reader::StepReader;
use crate::decl::tables::located_text::LocatedText;
use crate::decl::tables::tree::TomlNode;
use crate::decl::values::names::Sees;
use crate::model::stage::PathTemplate;
use crate::model::step::{HttpStep, Text, WaitStep};

impl StepReader<'_, '_> {
    /// A call of a service.
    pub(crate) fn http(&mut self) -> Option<HttpStep> {
        let spot = self.fields.spot("http")?;
        let starts_well = ["http://", "https://", "{{"]
            .iter()
            .any(|start| spot.text.starts_with(start));
        if !starts_well {
            let problem = spot
                .problem("`http` must be the whole URL of a service")
                .label("this begins with neither `http://` nor `https://`");
            self.reader
                .report
                .add(problem.help("such as http = \"http://localhost:3001/render\""));
        }
        let url = self.reader.text(&spot, self.names, Sees::All);
        let headers = self.headers();
        let body = self.wanted_jq("body", Sees::All);
        let schema = match self.fields.text("schema") {
            Some(_) => self.schema_of("schema").map(Some),
            None => Some(None),
        };
        let (headers, body) = (headers?, body?);
        let method = match self.fields.text("method") {
            Some((method, _)) => method,
            None if body.is_some() => "POST",
            None => "GET",
        };
        Some(HttpStep {
            url: url.filter(|_| starts_well)?,
            method: method.to_owned(),
            headers,
            body,
            schema: schema?,
        })
    }

    /// Reads `wait`: a file that another process writes.
    pub(crate) fn wait(&mut self) -> Option<WaitStep> {
        let path = self.one_file("wait");
        let marker = match self.fields.text("marker") {
            Some(_) => self.one_file("marker").map(Some),
            None => Some(None),
        };
        Some(WaitStep {
            path: path?,
            marker: marker?,
        })
    }

    /// Returns the path of one file.
    fn one_file(&mut self, key: &'static str) -> Option<PathTemplate> {
        let spot = self.fields.spot(key)?;
        let path = self.reader.path(&spot, self.names, Sees::All)?;
        if path.is_pattern() {
            let problem = spot
                .problem(format!("`{key}` names one file"))
                .label("a pattern can match any number");
            self.reader.report.add(problem);
            return None;
        }
        Some(path)
    }

    /// Returns the headers with their names in small letters.
    fn headers(&mut self) -> Option<Vec<(String, Text)>> {
        let Some(table) = self.fields.get("headers").and_then(TomlNode::table) else {
            return Some(Vec::new());
        };
        let mut headers: Vec<Option<(String, Text)>> = Vec::new();
        for (name, node) in &table.entries {
            let wrong = |message: String, label: String| {
                self.file.problem(node.span.clone(), message).label(label)
            };
            let problem = match node.text() {
                None => wrong(
                    format!("the header `{}` is a string", name.name),
                    format!("this is {}", node.value.described()),
                ),
                Some(_) if !is_header(&name.name) => wrong(
                    format!("`{}` cannot be the name of a header", name.name),
                    "letters, digits and `-`".to_owned(),
                ),
                Some(text) => {
                    let spot = LocatedText {
                        file: self.file,
                        key: "headers",
                        text,
                        span: node.span.clone(),
                    };
                    let text = self.reader.text(&spot, self.names, Sees::All);
                    headers.push(text.map(|text| (name.name.to_lowercase(), text)));
                    continue;
                }
            };
            self.reader.report.add(problem);
            headers.push(None);
        }
        headers.into_iter().collect()
    }
}

/// Returns true if a name is one that a header can have (RFC 9110, `token`).
fn is_header(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !name.is_empty() && name.chars().all(is_part)
}
