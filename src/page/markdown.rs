//! Markdown as HTML. HTML in the text is shown as text, and links lead only to web pages and mail.

use milepost_core::base::visible::visible_lines;
use minijinja::Value;
use pulldown_cmark::{Alignment, CowStr, Event, Options, Parser, Tag, TagEnd, html};

/// Renders a text. Images are not loaded: their descriptions are shown.
pub(crate) fn markdown(text: &str) -> Value {
    let text = visible_lines(text);
    let events = Parser::new_ext(
        &text,
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH,
    );
    let mut rendered = String::new();
    html::push_html(&mut rendered, events.map(safe));
    Value::from_safe_string(rendered)
}

fn safe(event: Event<'_>) -> Event<'_> {
    match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        Event::Start(Tag::Link {
            link_type,
            dest_url,
            title,
            id,
        }) => Event::Start(Tag::Link {
            link_type,
            dest_url: allowed(dest_url),
            title,
            id,
        }),
        Event::Start(Tag::Image { .. }) => Event::Start(Tag::Emphasis),
        Event::End(TagEnd::Image) => Event::End(TagEnd::Emphasis),
        // An alignment would be an inline style, which pages do not have.
        Event::Start(Tag::Table(columns)) => {
            Event::Start(Tag::Table(vec![Alignment::None; columns.len()]))
        }
        // A heading is below those of the page.
        Event::Start(Tag::Heading {
            level,
            classes,
            attrs,
            ..
        }) => Event::Start(Tag::Heading {
            level: below(level),
            id: None,
            classes,
            attrs,
        }),
        Event::End(TagEnd::Heading(level)) => Event::End(TagEnd::Heading(below(level))),
        other => other,
    }
}

fn below(level: pulldown_cmark::HeadingLevel) -> pulldown_cmark::HeadingLevel {
    use pulldown_cmark::HeadingLevel::{H3, H4, H5, H6};
    match level as usize {
        1 => H3,
        2 => H4,
        3 => H5,
        _ => H6,
    }
}

/// Returns a link to a web page or for mail; other links lead nowhere.
fn allowed(url: CowStr<'_>) -> CowStr<'_> {
    let start = url
        .split_once(':')
        .map(|(start, _)| start.to_ascii_lowercase());
    let is_allowed =
        start.is_some_and(|start| ["http", "https", "mailto"].contains(&start.as_str()));
    if is_allowed { url } else { "#".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_runs_or_loads() {
        let text = "# Title\n\n<script>alert(1)</script>\n\na <b onclick=x>b</b> [x](javascript:alert(1)) [y](JavaScript:z) \
                    [ok](https://example.org) [d](data:text/html,x) ![pic](http://t.example/x.png)\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n";
        let expected = "<h3>Title</h3>\n<p>&lt;script&gt;alert(1)&lt;/script&gt;\n</p>\n\
            <p>a &lt;b onclick=x&gt;b&lt;/b&gt; <a href=\"#\">x</a> <a href=\"#\">y</a> \
            <a href=\"https://example.org\">ok</a> <a href=\"#\">d</a> <em>pic</em></p>\n\
            <table><thead><tr><th>a</th><th>b</th></tr></thead><tbody>\n<tr><td>1</td><td>2</td></tr>\n</tbody></table>\n";
        assert_eq!(markdown(text).to_string(), expected);
    }
}
