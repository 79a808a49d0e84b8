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
        let idempotency_key = self.idempotency_key(&headers).ok()?;
        // RFC 9110, section 9.2.2; draft-ietf-httpapi-idempotency-key-header.
        let is_repeatable = !matches!(method, "POST" | "PATCH")
            || idempotency_key.is_some()
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
            idempotency_key,
            hosts: self.names_of("hosts"),
            body,
            schema: schema?,
        };
        let value = starting_value(&step.url.source);
        let whole = &step.url.template;
        if let Some(name) = value.and_then(|value| other_name(value, whole, &["params", "env"])) {
            let problem = spot
                .problem("a URL must begin with text, a parameter or a variable")
                .label(format!("`{name}` can change the host and the path"))
                .help("if that is intended, end the first `{{ }}` with the filter `safe`, such as {{ row.url | safe }}");
            self.reader.report.add(problem);
            return None;
        }
        let known = [&START[..], &[RUN]].concat();
        if step.hosts.is_empty()
            && (step.sends_env() || step.key_headers().next().is_some())
            && let Some(name) = other_name(origin(&step.url.source), whole, &known)
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

    /// Reads the name, in lower case, of the header that has the idempotency key. On `Err`, a problem was reported.
    fn idempotency_key(&mut self, headers: &[(String, Text)]) -> Result<Option<String>, ()> {
        let Some(node) = self.fields.get("idempotency_key") else {
            return Ok(None);
        };
        let name = match &node.value {
            Val::Bool(true) => "idempotency-key",
            _ => node.text().unwrap_or_default(),
        }
        .to_lowercase();
        if is_header(&name) && !headers.iter().any(|(other, _)| *other == name) {
            return Ok(Some(name));
        }
        let message = "`idempotency_key` must be true or the name of a header that `headers` lacks";
        let problem = self.file.problem(node.span.clone(), message);
        self.reader.report.add(problem);
        Err(())
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

/// Returns the first name in a part of a URL that is below none of the known names. If the part is no template of its own, as inside
/// `{% if %}`, it is the first such name in the whole URL.
fn other_name(part: &str, whole: &Template, known: &[&str]) -> Option<String> {
    let part = Template::compile("http", part);
    let template = part.as_ref().unwrap_or(whole);
    let is_other = |name: &&String| !known.contains(&name.split('.').next().unwrap_or_default());
    template.names().iter().find(is_other).cloned()
}

/// Returns the `{{ }}` that a URL begins with, unless the filter `safe` ends it.
fn starting_value(url: &str) -> Option<&str> {
    let end = url.starts_with("{{").then(|| url.find("}}"))??;
    let inside = url[2..end].trim_end_matches('-').trim_end();
    let filtered = inside.strip_suffix("safe").map(str::trim_end);
    let is_safe = filtered.is_some_and(|before| before.ends_with('|'));
    (!is_safe).then(|| &url[..end + 2])
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
    fn only_a_value_without_safe_is_checked() {
        for (url, expected) in [
            ("{{ r.q }}/users/{{ r.k }}", Some("r.q")),
            ("{{- r.q -}}", Some("r.q")),
            ("{{ env.A ~ r.q }}/x", Some("r.q")),
            ("{{ env.A | default(r.q) }}/x", Some("r.q")),
            ("{{ run.id }}", Some("run.id")),
            ("{{ r.safe }}", Some("r.safe")),
            ("{{ env.A }}/{{ r.k }}", None),
            ("{{ params.url }}", None),
            ("{{ 'http://x' }}/{{ r.k }}", None),
            ("{{ r.q | safe }}/{{ r.k }}", None),
            ("{{- r.q|safe -}}", None),
            ("http://{{ r.q }}", None),
            ("{{ r.q | replace('}}', '') }}/x", Some("r.q")),
        ] {
            let value = starting_value(url);
            let name = value.and_then(|value| {
                other_name(
                    value,
                    &Template::compile("http", url).unwrap(),
                    &["params", "env"],
                )
            });
            assert_eq!(name.as_deref(), expected, "{url}");
        }
    }

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
