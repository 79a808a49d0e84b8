//! Templates behind one door: Jinja, by `minijinja`, over the names of the scope.
//!
//! A name that is not there is an error. Nothing is escaped. In a text a string is written as it is, null as nothing, and
//! everything else as JSON. Besides Jinja's own filters there are `stem` (a file's name without folder and ending),
//! `tojson` (not escaped for HTML; `tojson(2)` indents), `fixed(n)` (a number with n decimals) and `urlencode` (one part of
//! a URL).

mod engine;
mod fault;
mod known;
mod limits;
mod operators;
mod parts;
mod pieces;
mod source;
mod tags;
mod url;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use minijinja::Environment;
use serde_json::{Value, json};

pub use fault::TemplateError;
use limits::Bounded;
use operators::CheckedTemplate;
pub use parts::{RenderedPart, text};
use pieces::Pieces;
use source::TemplateSource;

use super::mentions::Mentions;
use crate::base::glob::escaped;
use crate::base::safe_name::component;

/// Adds a text to an engine.
fn add(
    source: &TemplateSource,
    env: &mut Environment<'static>,
    name: &str,
) -> Result<(), TemplateError> {
    let added = env.add_template_owned(name.to_owned(), source.checked.text.clone());
    if added.is_ok() || source.checked.text == source.text {
        return added
            .map_err(|error| TemplateError::of(&error, name, &|_| Some(source), &Value::Null));
    }
    let plain = TemplateSource {
        text: source.text.clone(),
        checked: CheckedTemplate::unchecked(&source.text),
    };
    add(&plain, env, name)?;
    let message = "the operands of `~`, `+` and `*` are not clear: put parentheses around them";
    Err(TemplateError::at(
        name,
        &source.text,
        &source.text,
        message.to_owned(),
        None,
    ))
}

/// A compiled template, which many threads can render.
pub struct Template {
    name: String,
    sources: BTreeMap<String, TemplateSource>,
    env: Environment<'static>,
    components: OnceLock<Environment<'static>>,
    patterns: OnceLock<Environment<'static>>,
    parts: OnceLock<Environment<'static>>,
    urls: OnceLock<Environment<'static>>,
    /// True if `as_file` may occur in it.
    has_files: bool,
    /// The expression, if the template is one `{{ }}` and nothing else.
    single: Option<String>,
    /// The pieces of a template that has only text and names: it renders without the engine.
    pieces: Option<Pieces>,
    mentions: Mentions,
}

impl std::fmt::Debug for Template {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Template({})", self.name)
    }
}

/// Returns true if a string of a declaration is a template at all.
pub(crate) fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%") || text.contains("{#")
}

impl Template {
    /// Compiles a template that includes nothing. `name` is its file or its key, for messages.
    ///
    /// # Errors
    /// Syntax, filters and tests that do not exist, and an `include`.
    pub fn compile(name: &str, source: &str) -> Result<Template, TemplateError> {
        Self::compile_with(name, source, &|_| None)
    }

    /// Compiles a template. `load` returns the templates that it includes, imports or extends by a literal name.
    ///
    /// # Errors
    /// Syntax, filters and tests that do not exist, and an include that `load` does not know.
    pub(crate) fn compile_with(
        name: &str,
        source: &str,
        load: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Template, TemplateError> {
        let mut sources =
            BTreeMap::from([(name.to_owned(), TemplateSource::new(source.to_owned()))]);
        let mut open = vec![name.to_owned()];
        while let Some(current) = open.pop() {
            let text = sources[&current].text.clone();
            if let Some(part) = limits::too_deep(&text) {
                let most = limits::OPERATORS;
                let message = format!(
                    "a tag has more than {most} operators, or the template more than {most} `elif`"
                );
                let hint = "compute the value by jq, or split it with {% set %}";
                return Err(TemplateError::at(
                    &current,
                    &text,
                    part,
                    message,
                    Some(hint),
                ));
            }
            for part in includes(&text) {
                let Some(wanted) = literal(part) else {
                    let message = format!("`{part}` is not the quoted name of a template");
                    let hint = "an included template is an input of the stage, so its name must be a constant: write {% include \"name\" %}";
                    return Err(TemplateError::at(
                        &current,
                        &text,
                        part,
                        message,
                        Some(hint),
                    ));
                };
                if sources.contains_key(wanted) {
                    continue;
                }
                let Some(loaded) = load(wanted) else {
                    let message = format!("there is no template `{wanted}` to include");
                    return Err(TemplateError::at(&current, &text, part, message, None));
                };
                sources.insert(wanted.to_owned(), TemplateSource::new(loaded));
                open.push(wanted.to_owned());
            }
        }
        let mut env = engine::texts();
        for (name, source) in &sources {
            add(source, &mut env, name)?;
        }
        for (name, source) in &sources {
            if let Some(unknown) = known::unknown(&env, name, &source.text) {
                return Err(unknown);
            }
        }
        let single = single(&env, source);
        let mentions = mentions(&env);
        Ok(Template {
            name: name.to_owned(),
            has_files: sources
                .values()
                .any(|source| source.text.contains("as_file")),
            sources,
            env,
            components: OnceLock::new(),
            patterns: OnceLock::new(),
            parts: OnceLock::new(),
            urls: OnceLock::new(),
            single,
            pieces: Pieces::of(source),
            mentions,
        })
    }

    /// Returns the template's name, as given.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub fn source(&self) -> &str {
        self.sources
            .get(&self.name)
            .map_or("", |source| &source.text)
    }

    /// Returns the dotted names that it may look up, with those of included templates, such as `params.model`.
    pub fn names(&self) -> &BTreeSet<String> {
        self.mentions.dotted()
    }

    /// Returns the same names as [`Mentions`].
    pub fn mentions(&self) -> &Mentions {
        &self.mentions
    }

    /// Renders to a text.
    ///
    /// # Errors
    /// If a name is unknown, or a filter cannot take its value.
    pub fn render(&self, scope: &Value) -> Result<String, TemplateError> {
        let pieces = self.pieces.as_ref();
        if let Some(text) = pieces.and_then(|pieces| pieces.render(scope, |text| text.into())) {
            return Ok(text);
        }
        self.render_in(&self.env, scope)
    }

    /// Renders to a value: a single `{{ }}` keeps the type of its value, any other template is a string.
    ///
    /// # Errors
    /// The errors of [`Template::render`].
    pub fn render_value(&self, scope: &Value) -> Result<Value, TemplateError> {
        let Some(expression) = &self.single else {
            return self.render(scope).map(Value::String);
        };
        let named = self.pieces.as_ref().and_then(|pieces| pieces.only(scope));
        if let Some(text) = named {
            return Ok(json!(text));
        }
        let wrong = |error: minijinja::Error| {
            // The engine knows the expression only: its place is that of the whole template.
            let mut error = TemplateError::of(&error, &self.name, &|_| None, scope);
            error.template.clone_from(&self.name);
            error
        };
        limits::begin();
        let value = self
            .env
            .compile_expression(expression)
            .and_then(|expression| expression.eval(self.context(scope)))
            .map_err(wrong)?;
        if value.is_undefined() {
            // Rendering says the same with the name and the place.
            return self.render(scope).map(Value::String);
        }
        parts::to_json(&value).map_err(wrong)
    }

    /// Renders to a path: every value becomes one safe component. The value of a single `{{ }}` is the whole path, which the
    /// caller must check.
    ///
    /// # Errors
    /// The errors of [`Template::render`], and for null, lists and objects.
    pub fn render_path(&self, scope: &Value) -> Result<String, TemplateError> {
        if self.single.is_some() {
            return match self.render_value(scope)? {
                Value::String(path) => Ok(path),
                Value::Number(number) => Ok(number.to_string()),
                other => Err(TemplateError {
                    template: self.name.clone(),
                    place: None,
                    message: format!("{other} is not a path"),
                    hint: None,
                }),
            };
        }
        self.render_components(&self.components, component, scope)
    }

    /// Renders to a pattern over paths. Every value becomes one safe component without wildcards.
    ///
    /// # Errors
    /// The errors of [`Template::render_path`].
    pub fn render_pattern(&self, scope: &Value) -> Result<String, TemplateError> {
        let write = |text: &str| escaped(&component(text)).into_owned();
        self.render_components(&self.patterns, write, scope)
    }

    fn render_components(
        &self,
        env: &OnceLock<Environment<'static>>,
        write: fn(&str) -> String,
        scope: &Value,
    ) -> Result<String, TemplateError> {
        let pieces = self.pieces.as_ref();
        if let Some(path) =
            pieces.and_then(|pieces| pieces.render(scope, |text| write(text).into()))
        {
            return Ok(path);
        }
        let env = env.get_or_init(|| {
            let mut env = self.env.clone();
            engine::write_components(&mut env, write);
            env
        });
        self.render_in(env, scope)
    }

    /// Returns true if it may use `as_file`: then only [`Template::render_parts`] renders it.
    pub fn has_files(&self) -> bool {
        self.has_files
    }

    /// Returns true if it is a single `{{ }}`.
    pub fn is_single(&self) -> bool {
        self.single.is_some()
    }

    /// Renders to text and values: each `{{ }}` keeps the type of its value.
    ///
    /// # Errors
    /// The errors of [`Template::render`].
    pub fn render_parts(&self, scope: &Value) -> Result<Vec<RenderedPart>, TemplateError> {
        let env = self.parts.get_or_init(|| {
            let mut env = self.env.clone();
            parts::write_parts(&mut env);
            env
        });
        self.parts_in(env, scope)
    }

    /// Renders to a URL: every value becomes one part of it, with separators escaped. A value at the beginning is the address of a
    /// service and stays as it is, as does the result of the filter `safe`.
    ///
    /// # Errors
    /// The errors of [`Template::render`]; for null, lists and objects; in the path also for an empty text, `.` and `..`; in the
    /// host for characters that host names cannot have; for an address with `?`, `#` or `..` that is not the whole URL.
    pub fn render_url(&self, scope: &Value) -> Result<String, TemplateError> {
        let env = self.urls.get_or_init(|| {
            let mut env = self.env.clone();
            url::write_urls(&mut env);
            env
        });
        url::url(self.parts_in(env, scope)?).map_err(|message| TemplateError {
            template: self.name.clone(),
            place: None,
            message,
            hint: None,
        })
    }

    fn parts_in(
        &self,
        env: &Environment<'static>,
        scope: &Value,
    ) -> Result<Vec<RenderedPart>, TemplateError> {
        // The bodies of these tags contain values that are already marked.
        let gathers = |source: &TemplateSource| {
            ["endset", "endmacro", "endcall", "endfilter"]
                .iter()
                .any(|tag| source.text.contains(tag))
        };
        let is_nested = self.sources.values().any(gathers);
        Ok(parts::of(&self.render_in(env, scope)?, is_nested))
    }

    fn render_in(
        &self,
        env: &Environment<'static>,
        scope: &Value,
    ) -> Result<String, TemplateError> {
        limits::begin();
        let mut text = Bounded::template();
        env.get_template(&self.name)
            .and_then(|template| template.render_captured_to(self.context(scope), &mut text))
            .map_err(|error| {
                TemplateError::of(&error, &self.name, &|name| self.sources.get(name), scope)
            })?;
        // The engine writes texts.
        Ok(String::from_utf8_lossy(&text.bytes).into_owned())
    }

    /// Returns the part of the scope that the template can look up, as values of the engine.
    fn context(&self, scope: &Value) -> minijinja::Value {
        let Value::Object(names) = scope else {
            return minijinja::Value::UNDEFINED;
        };
        let mentioned = names.iter().filter(|(name, _)| self.mentions.has(name));
        minijinja::Value::from_pairs(mentioned.map(|(name, value)| {
            let inner = match (self.mentions.keys_of(name), value) {
                (Some(keys), Value::Object(map)) => minijinja::Value::from_pairs(
                    map.iter()
                        .filter(|(key, _)| keys.contains(key.as_str()))
                        .map(|(key, value)| (key.clone(), engine::of_json(value))),
                ),
                _ => engine::of_json(value),
            };
            (name.clone(), inner)
        }))
    }
}

/// Returns the names that the templates of an engine look up, without what the engine has itself.
fn mentions(env: &Environment<'static>) -> Mentions {
    let own: BTreeSet<&str> = env
        .globals()
        .map(|(name, _)| name)
        .chain(["super", "self", "loop", "caller"])
        .collect();
    env.templates()
        .flat_map(|(_, template)| template.undeclared_variables(true))
        .filter(|dotted| !own.contains(dotted.split('.').next().unwrap_or_default()))
        .collect()
}

/// Returns the expression of a template that is one `{{ }}` and nothing else.
fn single(env: &Environment<'static>, source: &str) -> Option<String> {
    let inner = source.strip_prefix("{{")?.strip_suffix("}}")?;
    let inner = inner.strip_prefix(['-', '+']).unwrap_or(inner);
    let inner = inner.strip_suffix(['-', '+']).unwrap_or(inner);
    // `{{ a }}{{ b }}` also begins and ends like one tag, but the text between is not an expression.
    env.compile_expression(inner)
        .is_ok()
        .then(|| CheckedTemplate::expression(inner).text)
}

/// Returns the names after `include`, `import`, `from` and `extends` in the tags of a template.
fn includes(source: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for tag in source.split("{%").skip(1) {
        let tag = tag.split("%}").next().unwrap_or(tag);
        let tag = tag.trim_start_matches(['-', '+']).trim_start();
        for word in ["include", "import", "from", "extends"] {
            if let Some(rest) = tag.strip_prefix(word)
                && rest.starts_with(|char: char| {
                    char.is_whitespace() || matches!(char, '"' | '\'' | '[' | '(')
                })
            {
                found.push(rest.trim().trim_end_matches(['-', '+']).trim_end());
            }
        }
    }
    found
}

/// Returns the name in a literal string that a tag begins with.
fn literal(tag: &str) -> Option<&str> {
    let quote = tag
        .chars()
        .next()
        .filter(|char| matches!(char, '"' | '\''))?;
    tag[1..].split_once(quote).map(|(name, _)| name)
}

#[cfg(test)]
#[path = "template/tests.rs"]
mod tests;
