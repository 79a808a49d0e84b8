//! Renders mistakes: file, line and column, the marked text, and the help.

use crate::decl::problem::{Problem, Problems, Warning};
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

impl Problems {
    /// Returns all mistakes with their source lines.
    pub fn render(&self, colour: bool) -> String {
        render(self.0.iter(), &Level::ERROR, colour)
    }

    /// Returns all mistakes with their source lines, as warnings of a command that works all the same.
    pub fn render_as_warnings(&self, colour: bool) -> String {
        render(self.0.iter(), &Level::WARNING, colour)
    }
}

impl Warning {
    /// Returns the warning with its source line.
    pub fn render(&self, colour: bool) -> String {
        render(std::iter::once(&self.problem), &Level::WARNING, colour)
    }
}

fn render<'a>(
    problems: impl Iterator<Item = &'a Problem>,
    level: &Level<'static>,
    colour: bool,
) -> String {
    let renderer = if colour {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let mut text = String::new();
    for problem in problems {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&renderer.render(&[group(problem, level)]));
    }
    text.push('\n');
    text
}

fn group<'a>(problem: &'a Problem, level: &Level<'static>) -> Group<'a> {
    let mut group = level
        .clone()
        .primary_title(problem.message.as_str())
        .elements(Vec::<annotate_snippets::Element<'a>>::new());
    let also = problem.also.as_deref();
    match &problem.span {
        Some(span) => {
            let mark = AnnotationKind::Primary.span(span.clone());
            let mark = if problem.label.is_empty() {
                mark
            } else {
                mark.label(problem.label.as_str())
            };
            let mut snippet = Snippet::source(&*problem.source)
                .path(problem.file.as_str())
                .annotation(mark);
            if let Some(also) = also.filter(|also| also.file == problem.file) {
                snippet = snippet.annotation(
                    AnnotationKind::Context
                        .span(also.span.clone())
                        .label(also.label.as_str()),
                );
            }
            group = group.element(snippet);
        }
        None => group = group.element(annotate_snippets::Origin::path(problem.file.as_str())),
    }
    if let Some(also) = also.filter(|also| also.file != problem.file || problem.span.is_none()) {
        let mark = AnnotationKind::Context
            .span(also.span.clone())
            .label(also.label.as_str());
        group = group.element(
            Snippet::source(&*also.source)
                .path(also.file.as_str())
                .annotation(mark),
        );
    }
    if let Some(help) = &problem.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    group
}
