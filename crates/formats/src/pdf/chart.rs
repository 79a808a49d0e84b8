//! Bar charts of the PDF reports: a fenced block ```` ```chart ```` with JSON, drawn.

use pdf_writer::types::StructRole;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::flow::{ACCENT, Flow, HAIR, INK, MUTED};
use super::font::{Style, measure};
use super::info::ChartError;
use super::page::Color;
use super::tags::Tag;

/// Bars beyond this number are summed in one, "others".
const BARS: usize = 14;
const STEP: f32 = 15.0;
const BAR: f32 = 9.0;
const SIZE: f32 = 8.5;
const HEAD: f32 = 20.0;
/// Colour of the bar "others".
const PALER: Color = [0xa9, 0xbd, 0xd0];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChartBlock {
    kind: ChartBlockKind,
    #[serde(default)]
    title: String,
    rows: Vec<Map<String, Value>>,
    label: String,
    value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ChartBlockKind {
    Bar,
}

/// A horizontal bar chart: bars in the order given.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BarChart {
    title: String,
    bars: Vec<(String, f64)>,
    /// The last bar is the sum of those that have no bar of their own.
    summed: bool,
}

impl BarChart {
    /// Reads `{"kind": "bar", "title", "rows": [{…}], "label": field, "value": field}`.
    /// A missing or null value counts as 0.
    pub(crate) fn parse(text: &str) -> Result<Self, ChartError> {
        let source: ChartBlock = serde_json::from_str(text)?;
        let ChartBlockKind::Bar = source.kind;
        let mut bars = Vec::with_capacity(source.rows.len().min(BARS + 1));
        let mut others = (0usize, 0.0f64);
        let many = source.rows.len() > BARS;
        for (number, row) in source.rows.iter().enumerate() {
            let value = match row.get(&source.value) {
                None | Some(Value::Null) => 0.0,
                Some(Value::Number(n)) => n.as_f64().filter(|v| v.is_finite()).unwrap_or(0.0),
                Some(other) => {
                    return Err(ChartError::Value {
                        field: source.value.clone(),
                        row: number + 1,
                        found: other.clone(),
                    });
                }
            };
            if many && number + 1 >= BARS {
                others = (others.0 + 1, others.1 + value);
                continue;
            }
            let label = match row.get(&source.label) {
                None | Some(Value::Null) => "none".to_owned(),
                Some(Value::String(s)) => s.clone(),
                Some(other) => other.to_string(),
            };
            bars.push((label, value));
        }
        if others.0 > 0 {
            bars.push((format!("others ({})", others.0), others.1));
        }
        Ok(Self {
            title: source.title,
            bars,
            summed: others.0 > 0,
        })
    }

    /// Height in points.
    pub(crate) fn height(&self) -> f32 {
        HEAD + self.bars.len().max(1) as f32 * STEP
    }

    fn words(&self, values: &[String]) -> String {
        let bars: Vec<String> = self
            .bars
            .iter()
            .zip(values)
            .map(|((label, _), value)| format!("{label} {value}"))
            .collect();
        format!("Bar chart. {}: {}", self.title, bars.join(", "))
    }
}

impl Flow<'_> {
    /// Draws a chart; it never goes over the end of a page.
    pub(crate) fn chart(&mut self, chart: &BarChart, left: f32, width: f32, parent: Tag) {
        self.need(chart.height());
        let values = shown(&chart.bars);
        let figure = self.tags.add(parent, StructRole::Figure);
        self.tags.describe(figure, chart.words(&values));
        let bold = Style {
            bold: true,
            ..Style::default()
        };
        let title = self.fonts.cut(&chart.title, bold, 9.5, width);
        let base = self.y + 11.0;
        self.glyphs((left, base), 9.5, INK, &title, figure);
        self.y += HEAD;
        if chart.bars.is_empty() {
            let words = self.fonts.line("no rows", Style::default());
            let base = self.y + BAR;
            self.glyphs((left, base), SIZE, MUTED, &words, figure);
            self.y += STEP;
            return;
        }

        let plain = Style::default();
        let names: Vec<_> = chart
            .bars
            .iter()
            .map(|(label, _)| self.fonts.cut(label, plain, SIZE, width * 0.34))
            .collect();
        let numbers: Vec<_> = values
            .iter()
            .map(|v| self.fonts.cut(v, plain, SIZE, width * 0.2))
            .collect();
        let widest = |lines: &[Vec<_>]| {
            lines
                .iter()
                .map(|l| measure(l) * SIZE)
                .fold(0.0f32, f32::max)
        };
        let start = left + widest(&names) + 8.0;
        let end = left + width - widest(&numbers) - 6.0;
        let low = chart.bars.iter().map(|b| b.1).fold(0.0f64, f64::min);
        let high = chart.bars.iter().map(|b| b.1).fold(0.0f64, f64::max);
        // Halved, so that the span of two very large numbers is still one.
        let span = high / 2.0 - low / 2.0;
        let scale = |value: f64| -> f32 {
            if span <= 0.0 {
                return start;
            }
            start + (end - start) * ((value / 2.0 - low / 2.0) / span) as f32
        };
        let zero = scale(0.0);
        let top = self.y;
        for (number, (_, value)) in chart.bars.iter().enumerate() {
            let y = top + number as f32 * STEP + 2.0;
            let base = y + BAR - 1.6;
            let name = &names[number];
            let x = start - 8.0 - measure(name) * SIZE;
            self.glyphs((x, base), SIZE, INK, name, figure);
            let edge = scale(*value);
            if (edge - zero).abs() > 0.05 {
                let (from, long) = (edge.min(zero), (edge - zero).abs());
                let sum = chart.summed && number + 1 == chart.bars.len();
                self.fill((from, y), (long, BAR), if sum { PALER } else { ACCENT });
            }
            let x = edge.max(zero) + 5.0;
            self.glyphs((x, base), SIZE, MUTED, &numbers[number], figure);
        }
        let tall = chart.bars.len() as f32 * STEP;
        self.fill((zero - 0.6, top), (0.6, tall - 2.0), HAIR);
        self.y += tall;
    }
}

/// Returns the values as text: whole numbers as such, else all with two decimals.
fn shown(bars: &[(String, f64)]) -> Vec<String> {
    let whole = bars.iter().all(|(_, v)| v.fract() == 0.0);
    bars.iter()
        .map(|(_, v)| match (v.abs() >= 1e12, whole) {
            (true, _) => format!("{v:.3e}"),
            (false, true) => grouped(&format!("{v:.0}")),
            (false, false) => grouped(&format!("{v:.2}")),
        })
        .collect()
}

/// Digits before the point in groups of three, with spaces that do not break.
fn grouped(number: &str) -> String {
    let (whole, rest) = number.split_at(number.find('.').unwrap_or(number.len()));
    let (sign, digits) = whole.split_at(usize::from(whole.starts_with('-')));
    let mut out = sign.to_owned();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            out.push('\u{A0}');
        }
        out.push(digit);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn chart(rows: Value) -> Result<BarChart, ChartError> {
        let text = json!({"kind": "bar", "title": "T", "rows": rows, "label": "l", "value": "v"});
        BarChart::parse(&text.to_string())
    }

    #[test]
    fn bars_keep_their_order_and_the_rest_is_summed() {
        let rows: Vec<Value> = (0..20)
            .map(|n| json!({"l": format!("b{n}"), "v": n}))
            .collect();
        let got = chart(json!(rows)).unwrap();
        assert_eq!(got.bars.len(), BARS);
        assert_eq!(got.bars[0], ("b0".to_owned(), 0.0));
        let rest: u32 = (13..20).sum();
        assert_eq!(got.bars[13], ("others (7)".to_owned(), f64::from(rest)));
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert_eq!(
            chart(json!([{"l": "a", "v": "3 m³"}]))
                .unwrap_err()
                .to_string(),
            "`v` of row 1 is not a number: \"3 m³\""
        );
        assert!(
            BarChart::parse("{\"kind\": \"pie\"}")
                .unwrap_err()
                .to_string()
                .contains("unknown variant `pie`")
        );
    }

    #[test]
    fn values_are_shown_alike() {
        assert_eq!(shown(&[("a".into(), 1.0), ("b".into(), 20.0)]), ["1", "20"]);
        assert_eq!(
            shown(&[("a".into(), 1.5), ("b".into(), 2.0)]),
            ["1.50", "2.00"]
        );
        assert_eq!(shown(&[("a".into(), f64::MAX)]), ["1.798e308"]);
        assert_eq!(
            shown(&[("a".into(), -1_234_567.5), ("b".into(), 100.0)]),
            ["-1\u{A0}234\u{A0}567.50", "100.00"]
        );
    }
}
