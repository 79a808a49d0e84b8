//! HTML pages: templates, the style, the script, and drawings. Nothing is read or written here.
//!
//! A template is rendered from data that serializes: the results of `ops` as they are, beside texts of [`crate::view`]. Values are
//! escaped, because the names of the templates end in `.html`; control characters and marks of direction are shown as escapes, except in
//! values of forms (the filter `field`). Pages have neither inline styles nor inline scripts, because the Content-Security-Policy of the
//! server forbids them.

mod complete;
mod filters;
pub(crate) mod graph;
pub(crate) mod markdown;
pub(crate) mod report;
mod svg;
pub(crate) mod timeline;
pub(crate) mod tree;

pub(crate) use filters::cut;

use milepost_core::base::visible::visible_lines;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, Value, escape_formatter};
use serde::Serialize;
use std::borrow::Cow;

/// The style of all pages, with that of drawings.
pub(crate) const STYLE: &str = concat!(
    include_str!("assets/style.css"),
    "\n",
    include_str!("assets/drawing.css")
);

/// The script of all pages: live updates and keys. Every page can be read without it.
pub(crate) const SCRIPT: &str = include_str!("assets/live.js");

/// The style of the pages for review.
pub(crate) const REVIEW_STYLE: &str = include_str!("assets/review.css");

/// The keys of the pages for review.
pub(crate) const REVIEW_SCRIPT: &str = include_str!("assets/review.js");

/// The icon of all pages.
pub(crate) const ICON: &str = include_str!("assets/icon.svg");

/// The templates by name. A template of a page extends `base.html`.
const TEMPLATES: &[(&str, &str)] = &[
    ("base.html", include_str!("templates/base.html")),
    ("macros.html", include_str!("templates/macros.html")),
    ("elements.html", include_str!("templates/elements.html")),
    ("open.html", include_str!("templates/open.html")),
    ("error.html", include_str!("templates/error.html")),
    ("overview.html", include_str!("templates/overview.html")),
    ("timeline.html", include_str!("templates/timeline.html")),
    ("report.html", include_str!("templates/report.html")),
    ("plan.html", include_str!("templates/plan.html")),
    ("review.html", include_str!("templates/review.html")),
    ("approvals.html", include_str!("templates/approvals.html")),
    ("stages.html", include_str!("templates/stages.html")),
    ("stage.html", include_str!("templates/stage.html")),
    ("batch.html", include_str!("templates/batch.html")),
    ("calls.html", include_str!("templates/calls.html")),
    ("call.html", include_str!("templates/call.html")),
    ("file.html", include_str!("templates/file.html")),
    ("why.html", include_str!("templates/why.html")),
];

/// A template that cannot be rendered: a bug, which tests find.
#[derive(Debug, thiserror::Error)]
#[error("the page `{template}` cannot be rendered: {source}")]
pub(crate) struct RenderError {
    template: String,
    source: minijinja::Error,
}

/// The templates, ready to be rendered.
pub(crate) struct Templates(Environment<'static>);

impl Templates {
    /// Parses the templates.
    ///
    /// # Errors
    /// If one is not a template.
    pub(crate) fn new() -> Result<Self, RenderError> {
        let mut environment = Environment::new();
        // Debug builds, and so the tests, fail at every name that is missing in the data. Release builds accept it in conditions.
        environment.set_undefined_behavior(if cfg!(debug_assertions) {
            UndefinedBehavior::Strict
        } else {
            UndefinedBehavior::SemiStrict
        });
        let mut syntax = SyntaxConfig::builder();
        let syntax = syntax.trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(|source| RenderError {
            template: "syntax".to_owned(),
            source,
        })?);
        for (name, text) in TEMPLATES {
            let added = environment.add_template(name, text);
            added.map_err(|source| RenderError {
                template: (*name).to_owned(),
                source,
            })?;
        }
        environment.set_formatter(|out, state, value| {
            let shown = value
                .as_str()
                .filter(|_| !value.is_safe())
                .map(visible_lines);
            match shown {
                Some(Cow::Owned(shown)) => escape_formatter(out, state, &Value::from(shown)),
                _ => escape_formatter(out, state, value),
            }
        });
        filters::add(&mut environment);
        Ok(Self(environment))
    }

    /// Renders a template with data.
    ///
    /// # Errors
    /// If the template names data that is missing.
    pub(crate) fn render(&self, name: &str, data: Value) -> Result<String, RenderError> {
        let template = self.0.get_template(name);
        let rendered = template.and_then(|template| template.render(data));
        rendered.map_err(|source| RenderError {
            template: name.to_owned(),
            source,
        })
    }
}

/// Converts data for a template. A field that serialization skips is none.
pub(crate) fn value(data: impl Serialize) -> Value {
    Value::from(Serde(complete::Complete(data)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skipped_field_is_none_and_an_unknown_one_is_an_error() {
        #[derive(Serialize)]
        struct Inner {
            #[serde(skip_serializing_if = "Option::is_none")]
            cost: Option<u64>,
            calls: u64,
        }
        let data = value([(
            1,
            Some(Inner {
                cost: None,
                calls: 3,
            }),
        )]);
        let mut templates = Templates::new().unwrap();
        let mut render = |text| {
            templates.0.add_template("probe.html", text).unwrap();
            let data = minijinja::context! { data => data.clone() };
            templates.render("probe.html", data).ok()
        };
        let known = "{{ data[0][1].cost is none }} {{ data[0][1].cost == data[0][1].calls }}";
        assert_eq!(render(known).as_deref(), Some("True False"));
        assert_eq!(render("{% if data[0][1].cots %}{% endif %}"), None);
    }

    #[test]
    fn every_template_is_one_and_escapes_its_values() {
        let templates = Templates::new().unwrap();
        let data = minijinja::context! {
            root => "/ui/t", at => "", project => "<script>", workspace => "w", run => (), as_of => (), problems => (), title => "A & B",
            data => minijinja::context! { message => "'\"<b>", entered => () },
        };
        let page = templates.render("error.html", data).unwrap();
        assert!(
            page.contains("A &amp; B") && page.contains("&#x27;&quot;&lt;b&gt;"),
            "{page}"
        );
        assert!(
            !page.contains("<script>") && !page.contains("<b>"),
            "{page}"
        );
    }
}
