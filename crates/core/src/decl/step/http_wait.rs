//! Reads the steps that reach outside: `http`, `wait`.

use crate::decl::step::reader::StepReader;
use crate::decl::tables::located_text::LocatedText;
use crate::decl::tables::tree::{TomlNode, Val};
use crate::decl::values::names::{START, Sees};
use crate::expr::template::Template;
use crate::model::stage::{PathTemplate, RUN};
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
        // RFC 9110, section 9.2.2; draft-ietf-httpapi-idempotency-key-header.
        let is_repeatable = !matches!(method, "POST" | "PATCH")
            || headers.iter().any(|(name, _)| name == "idempotency-key");
        let declared = self.fields.get("idempotent").map(|node| &node.value);
        let step = HttpStep {
            url: url.filter(|_| starts_well)?,
            method: method.to_owned(),
            idempotent: match declared {
                Some(Val::Bool(declared)) => *declared,
                _ => is_repeatable,
            },
            headers,
            hosts: self.names_of("hosts"),
            body,
            schema: schema?,
        };
        if step.hosts.is_empty()
            && (step.sends_env() || step.key_headers().next().is_some())
            && let Some(name) = foreign_host(&step)
        {
            let problem = spot
                .problem("keys would go to any host that an input names")
                .label(format!("`{name}` can change the host"))
                .help(
                    "list the hosts that may receive them, such as hosts = [\"api.example.com\"]",
                );
            self.reader.report.add(problem);
            return None;
        }
        Some(step)
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
                .problem(format!("`{key}` must name one file"))
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
                    format!("the header `{}` must be a string", name.name),
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

/// Returns a name in the URL that decides on the host and is not known before the run: not a parameter or a variable.
fn foreign_host(step: &HttpStep) -> Option<String> {
    let of_host = Template::compile("http", origin(&step.url.source));
    let template = of_host.as_ref().unwrap_or(&step.url.template);
    let is_known = |name: &&String| {
        let root = name.split('.').next().unwrap_or_default();
        root == RUN || START.contains(&root)
    };
    template
        .names()
        .iter()
        .find(|name| !is_known(name))
        .cloned()
}

/// Returns the beginning of a URL up to its path, query or fragment.
fn origin(url: &str) -> &str {
    let (mut is_inside, mut is_after_scheme) = (false, false);
    let mut before = ' ';
    for (at, c) in url.char_indices() {
        match c {
            '{' if before == '{' => is_inside = true,
            '}' if before == '}' => is_inside = false,
            '/' | '\\' if !is_inside && (before == ':' || is_after_scheme) => {
                // `http:/`, `http://` and `http:///` are the same.
                is_after_scheme = true;
                before = c;
                continue;
            }
            '/' | '\\' | '?' | '#' if !is_inside => return &url[..at],
            _ => {}
        }
        is_after_scheme = false;
        before = c;
    }
    url
}

/// Returns true if a name is one that a header can have (RFC 9110, `token`).
fn is_header(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !name.is_empty() && name.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_ends_where_the_path_begins() {
        for (url, expected) in [
            ("https://a.example/{{ x }}", "https://a.example"),
            ("https://a.example{{ x }}/y", "https://a.example{{ x }}"),
            (
                "https://{{ x | replace('/', '') }}/y",
                "https://{{ x | replace('/', '') }}",
            ),
            ("{{ env.A }}/{{ x }}", "{{ env.A }}"),
            ("{{ env.A }}?q={{ x }}", "{{ env.A }}"),
            ("{{ env.A }}://{{ x }}/y", "{{ env.A }}://{{ x }}"),
            ("{{ env.A }}:/\\/{{ x }}\\y", "{{ env.A }}:/\\/{{ x }}"),
            ("https://a.example:80#{{ x }}", "https://a.example:80"),
        ] {
            assert_eq!(origin(url), expected);
        }
    }
}
