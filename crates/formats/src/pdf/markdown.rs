//! Markdown to the blocks that a page shows: events of `pulldown-cmark` to a small tree.

use pulldown_cmark::{Alignment, CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::font::Style;
use super::inline::Span;

/// A block of the document. Lists and quotes nest at most [`DEEPEST`] deep.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum MarkdownBlock {
    Heading {
        level: u8,
        spans: Vec<Span>,
    },
    Paragraph(Vec<Span>),
    /// `start` is the first number of an ordered list.
    List {
        start: Option<u64>,
        items: Vec<Vec<MarkdownBlock>>,
    },
    Quote(Vec<MarkdownBlock>),
    Code(String),
    /// The text of a fenced block ```` ```chart ````.
    Chart(String),
    /// The text of a fenced block ```` ```drawing ````.
    Drawing(String),
    Table(MarkdownTable),
    Rule,
}

/// A table; each row has as many cells as the head.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct MarkdownTable {
    pub(crate) aligns: Vec<Align>,
    pub(crate) head: Vec<Vec<Span>>,
    pub(crate) rows: Vec<Vec<Vec<Span>>>,
}

/// The alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Align {
    #[default]
    Left,
    Center,
    Right,
}

/// Deeper lists and quotes are shown at this depth: a page has no room for more, and text of any
/// depth must not exhaust the stack.
pub(crate) const DEEPEST: usize = 8;

enum Container {
    Document(Vec<MarkdownBlock>),
    List {
        start: Option<u64>,
        items: Vec<Vec<MarkdownBlock>>,
    },
    Item(Vec<MarkdownBlock>),
    Quote(Vec<MarkdownBlock>),
}

#[derive(Default)]
struct Builder {
    stack: Vec<Container>,
    /// Lists, items and quotes that are open beyond [`DEEPEST`].
    beyond: usize,
    spans: Vec<Span>,
    bold: usize,
    italic: usize,
    heading: bool,
    /// Address of each open link, and its text so far.
    links: Vec<(String, String)>,
    /// The block that an open code block becomes, and its text so far.
    #[expect(clippy::type_complexity)]
    code: Option<(fn(String) -> MarkdownBlock, String)>,
    table: Option<MarkdownTable>,
    row: Vec<Vec<Span>>,
    in_head: bool,
}

/// Returns the blocks of a Markdown text (`CommonMark` with GFM tables). HTML is kept as text.
pub(crate) fn blocks(markdown: &str) -> Vec<MarkdownBlock> {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut builder = Builder {
        stack: vec![Container::Document(Vec::new())],
        ..Builder::default()
    };
    for event in Parser::new_ext(markdown, options) {
        builder.event(event);
    }
    builder.flush();
    while builder.stack.len() > 1 {
        builder.close();
    }
    match builder.stack.pop() {
        Some(Container::Document(blocks)) => blocks,
        _ => Vec::new(),
    }
}

impl Builder {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => {
                if let Some((_, code)) = &mut self.code {
                    code.push_str(&text);
                } else {
                    self.text(&text, false);
                }
            }
            Event::Code(text) | Event::Html(text) | Event::InlineHtml(text) => {
                self.text(&text, true);
            }
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.text(&text, false);
            }
            Event::SoftBreak => self.text(" ", false),
            Event::HardBreak => self.text("\n", false),
            Event::Rule => {
                self.flush();
                self.push(MarkdownBlock::Rule);
            }
            Event::TaskListMarker(done) => self.text(if done { "[x] " } else { "[ ] " }, false),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Strong => self.bold += 1,
            Tag::Emphasis => self.italic += 1,
            Tag::Link { dest_url, .. } => {
                self.links.push((dest_url.into_string(), String::new()));
            }
            Tag::Image { dest_url, .. } => {
                self.text("[image: ", false);
                self.links.push((dest_url.into_string(), String::new()));
            }
            Tag::Heading { .. } => {
                self.flush();
                self.heading = true;
            }
            Tag::List(start) => self.open(Container::List {
                start,
                items: Vec::new(),
            }),
            Tag::Item => self.open(Container::Item(Vec::new())),
            Tag::BlockQuote(_) => self.open(Container::Quote(Vec::new())),
            Tag::CodeBlock(kind) => {
                self.flush();
                let block = match kind {
                    CodeBlockKind::Fenced(info) => match info.trim() {
                        "chart" => MarkdownBlock::Chart,
                        "drawing" => MarkdownBlock::Drawing,
                        _ => MarkdownBlock::Code,
                    },
                    CodeBlockKind::Indented => MarkdownBlock::Code,
                };
                self.code = Some((block, String::new()));
            }
            Tag::Table(aligns) => {
                self.flush();
                let aligns = aligns
                    .into_iter()
                    .map(|a| match a {
                        Alignment::Right => Align::Right,
                        Alignment::Center => Align::Center,
                        Alignment::None | Alignment::Left => Align::Left,
                    })
                    .collect();
                self.table = Some(MarkdownTable {
                    aligns,
                    ..MarkdownTable::default()
                });
            }
            Tag::TableHead => self.in_head = true,
            Tag::Paragraph | Tag::HtmlBlock => self.flush(),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Strong => self.bold = self.bold.saturating_sub(1),
            TagEnd::Emphasis => self.italic = self.italic.saturating_sub(1),
            TagEnd::Link | TagEnd::Image => self.end_link(tag == TagEnd::Image),
            TagEnd::Heading(level) => {
                self.heading = false;
                let spans = std::mem::take(&mut self.spans);
                self.push(MarkdownBlock::Heading {
                    level: level as u8,
                    spans,
                });
            }
            TagEnd::List(_) | TagEnd::Item | TagEnd::BlockQuote(_) => {
                self.flush();
                if self.beyond > 0 {
                    self.beyond -= 1;
                } else if self.stack.len() > 1 {
                    self.close();
                }
            }
            TagEnd::CodeBlock => {
                if let Some((block, text)) = self.code.take() {
                    self.push(block(text));
                }
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.spans);
                self.row.push(cell);
            }
            TagEnd::TableHead | TagEnd::TableRow => {
                let row = std::mem::take(&mut self.row);
                if let Some(table) = &mut self.table {
                    if self.in_head {
                        table.head = row;
                    } else {
                        table.rows.push(row);
                    }
                }
                self.in_head = false;
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.push(MarkdownBlock::Table(table));
                }
            }
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.flush(),
            _ => {}
        }
    }

    /// Writes the address of a link behind its text, because paper cannot be clicked.
    fn end_link(&mut self, image: bool) {
        let Some((address, shown)) = self.links.pop() else {
            return;
        };
        if !address.is_empty() && shown != address {
            let gap = if shown.is_empty() { "" } else { " " };
            self.text(&format!("{gap}({address})"), false);
        }
        if image {
            self.text("]", false);
        }
    }

    fn text(&mut self, text: &str, mono: bool) {
        let style = Style {
            bold: self.bold > 0 || self.in_head || self.heading,
            italic: self.italic > 0,
            mono,
        };
        if let Some((_, shown)) = self.links.last_mut() {
            shown.push_str(text);
        }
        match self.spans.last_mut() {
            Some(last) if last.style == style => last.text.push_str(text),
            _ => self.spans.push(Span {
                text: text.to_owned(),
                style,
            }),
        }
    }

    fn open(&mut self, container: Container) {
        self.flush();
        // An item and its list count as one step of depth.
        if self.beyond > 0 || self.stack.len() > DEEPEST * 2 {
            self.beyond += 1;
        } else {
            self.stack.push(container);
        }
    }

    fn close(&mut self) {
        match self.stack.pop() {
            Some(Container::List { start, items }) => {
                self.push(MarkdownBlock::List { start, items });
            }
            Some(Container::Quote(blocks)) => self.push(MarkdownBlock::Quote(blocks)),
            Some(Container::Item(blocks)) => match self.stack.last_mut() {
                Some(Container::List { items, .. }) => items.push(blocks),
                _ => blocks.into_iter().for_each(|b| self.push(b)),
            },
            Some(document @ Container::Document(_)) => self.stack.push(document),
            None => {}
        }
    }

    /// Ends the open paragraph, if there is one. Inside a table, text belongs to cells.
    fn flush(&mut self) {
        if self.table.is_some() || self.code.is_some() || self.spans.is_empty() {
            return;
        }
        let spans = std::mem::take(&mut self.spans);
        if spans.iter().any(|s| !s.text.trim().is_empty()) {
            self.push(MarkdownBlock::Paragraph(spans));
        }
    }

    fn push(&mut self, block: MarkdownBlock) {
        match self.stack.last_mut() {
            Some(
                Container::Document(blocks) | Container::Item(blocks) | Container::Quote(blocks),
            ) => blocks.push(block),
            Some(Container::List { items, .. }) => items.push(vec![block]),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(text: &str, style: Style) -> Span {
        Span {
            text: text.to_owned(),
            style,
        }
    }

    #[test]
    fn inline_styles_links_and_html_become_spans() {
        let plain = Style::default();
        let mono = Style {
            mono: true,
            ..plain
        };
        let bold = Style {
            bold: true,
            ..plain
        };
        assert_eq!(
            blocks("a **b** `c` <b>d</b> [e](http://f)"),
            [MarkdownBlock::Paragraph(vec![
                span("a ", plain),
                span("b", bold),
                span(" ", plain),
                span("c", mono),
                span(" ", plain),
                span("<b>", mono),
                span("d", plain),
                span("</b>", mono),
                span(" e (http://f)", plain),
            ])]
        );
    }

    #[test]
    fn lists_tables_charts_and_rules_are_blocks() {
        let plain = Style::default();
        let bold = Style {
            bold: true,
            ..plain
        };
        let got = blocks("3. x\n   - y\n\n|A|B|\n|-|-:|\n|1|2|\n\n```chart\n{}\n```\n---\n");
        let want = vec![
            MarkdownBlock::List {
                start: Some(3),
                items: vec![vec![
                    MarkdownBlock::Paragraph(vec![span("x", plain)]),
                    MarkdownBlock::List {
                        start: None,
                        items: vec![vec![MarkdownBlock::Paragraph(vec![span("y", plain)])]],
                    },
                ]],
            },
            MarkdownBlock::Table(MarkdownTable {
                aligns: vec![Align::Left, Align::Right],
                head: vec![vec![span("A", bold)], vec![span("B", bold)]],
                rows: vec![vec![vec![span("1", plain)], vec![span("2", plain)]]],
            }),
            MarkdownBlock::Chart("{}\n".to_owned()),
            MarkdownBlock::Rule,
        ];
        assert_eq!(got, want);
    }

    #[test]
    fn depth_is_bounded() {
        fn depth(blocks: &[MarkdownBlock]) -> usize {
            blocks
                .iter()
                .map(|b| match b {
                    MarkdownBlock::Quote(inner) => 1 + depth(inner),
                    MarkdownBlock::List { items, .. } => {
                        1 + items.iter().map(|i| depth(i)).max().unwrap_or(0)
                    }
                    _ => 0,
                })
                .max()
                .unwrap_or(0)
        }
        let deep = blocks(&format!("{} end", ">".repeat(10_000)));
        assert!(depth(&deep) <= DEEPEST * 2);
        let lists: String = (0..200)
            .map(|n| format!("{}- x\n", "  ".repeat(n)))
            .collect();
        assert!(depth(&blocks(&lists)) <= DEEPEST);
    }
}
