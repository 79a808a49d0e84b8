//! The text of a template, and what the engine renders of it.

use super::operators::CheckedTemplate;

/// The text of a template.
pub(super) struct TemplateSource {
    pub(super) text: String,
    /// The text with the filters inserted that check operators; the engine renders this one.
    pub(super) checked: CheckedTemplate,
}

impl TemplateSource {
    pub(super) fn new(text: String) -> Self {
        let checked = CheckedTemplate::template(&text);
        Self { text, checked }
    }
}
