//! Drawings to scale of the PDF reports: a fenced block ```` ```drawing ```` with JSON, drawn as vectors.

use pdf_writer::Content;
use pdf_writer::types::{LineJoinStyle, StructRole};
use serde::Deserialize;

use super::flow::{Flow, INK, MUTED};
use super::font::{Glyph, Style, measure};
use super::info::DrawingError;
use super::page::{Color, PAPER, Shape, rgb};
use super::tags::Tag;

/// Points (1/72 inch) of a millimetre.
const MM: f64 = 72.0 / 25.4;
const HEAD: f32 = 20.0;
const SIZE: f32 = 8.0;
/// Height of the row with scale and scale bar, and of a row of the legend.
const SCALE_ROW: f32 = 22.0;
const LEGEND_ROW: f32 = 13.0;
const SWATCH: (f32, f32) = (12.0, 7.0);
/// More entries than these are not shown in the legend.
const ENTRIES: usize = 24;
/// The most points of a drawing.
const POINTS: usize = 1_000_000;
/// No point of a page is further from its corner than this, in points.
const FAR: f64 = 10_000.0;
const WHITE: Color = [0xff; 3];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DrawingBlock {
    #[serde(default)]
    title: String,
    scale: Option<f64>,
    extent: [f64; 4],
    bar: Option<f64>,
    layers: Vec<LayerBlock>,
    #[serde(default)]
    legend: Vec<LayerBlock>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LayerBlock {
    #[serde(default)]
    label: String,
    fill: Option<String>,
    stroke: Option<String>,
    #[serde(default)]
    width: f32,
    #[serde(default)]
    dash: Vec<f32>,
    #[serde(default)]
    paths: Vec<String>,
}

/// How areas are drawn. Lengths are in points.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PathStyle {
    pub(crate) fill: Option<Color>,
    pub(crate) stroke: Option<Color>,
    pub(crate) width: f32,
    pub(crate) dash: Vec<f32>,
}

/// An area: its rings, filled by the even-odd rule.
type Area<T> = Vec<Vec<(T, T)>>;

/// Areas on a page, in points from its upper left corner.
#[derive(Debug, Clone)]
pub(crate) struct Paths {
    /// Left edge, upper edge, width and height of what is shown.
    pub(crate) clip: [f32; 4],
    pub(crate) style: PathStyle,
    pub(crate) areas: Vec<Area<f32>>,
}

/// A drawing to scale: areas in metres, with a legend and a scale bar.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Drawing {
    title: String,
    scale: f64,
    /// Left, lower, right and upper edge in metres.
    extent: [f64; 4],
    bar: f64,
    layers: Vec<(PathStyle, Vec<Area<f64>>)>,
    legend: Vec<(PathStyle, String)>,
}

impl Drawing {
    /// Reads `{"title", "scale", "extent": [x0, y0, x1, y1], "bar", "layers": [{"fill", "stroke", "width", "dash", "paths"}],
    /// "legend": [{"label", "fill", "stroke", "width", "dash"}]}`.
    pub(crate) fn parse(text: &str) -> Result<Self, DrawingError> {
        let source: DrawingBlock = serde_json::from_str(text)?;
        let [left, low, right, high] = source.extent;
        let (width, height) = (right - left, high - low);
        if !(width > 0.0 && height > 0.0 && width.max(height) < 1e9) {
            return Err(DrawingError::Extent(source.extent));
        }
        let scale = source.scale.unwrap_or(1.0);
        if !(1.0..1e12).contains(&scale) {
            return Err(DrawingError::Scale(scale));
        }
        let mut points = 0;
        let mut layers = Vec::with_capacity(source.layers.len());
        for layer in &source.layers {
            let style = layer.style()?;
            let mut areas = Vec::with_capacity(layer.paths.len());
            for path in &layer.paths {
                let area = rings(path).ok_or_else(|| DrawingError::path(path))?;
                points += area.iter().map(Vec::len).sum::<usize>();
                if points > POINTS {
                    return Err(DrawingError::Points(POINTS));
                }
                areas.push(area);
            }
            layers.push((style, areas));
        }
        let legend = source.legend.into_iter().take(ENTRIES).map(|entry| {
            let style = entry.style()?;
            Ok((style, entry.label))
        });
        Ok(Self {
            title: source.title,
            scale,
            extent: source.extent,
            bar: source
                .bar
                .filter(|bar| *bar > 0.0 && *bar <= width.max(height) * 10.0)
                .unwrap_or(0.0),
            layers,
            legend: legend.collect::<Result<_, DrawingError>>()?,
        })
    }

    /// Points of a metre: at the scale given, or at the largest of 1:1, 1:2, 1:5, 1:10, … that fits and is not larger.
    fn fitted(&self, width: f32, height: f32) -> (f64, f64) {
        let [x0, y0, x1, y1] = self.extent;
        let fits = |scale: f64| {
            let metre = 1000.0 * MM / scale;
            (x1 - x0) * metre <= f64::from(width) && (y1 - y0) * metre <= f64::from(height)
        };
        let decades =
            (0..16).flat_map(|power| [1.0, 2.0, 5.0].map(|step| step * 10f64.powi(power)));
        let scale = std::iter::once(self.scale)
            .chain(decades.filter(|scale| *scale > self.scale))
            .find(|scale| fits(*scale))
            .unwrap_or(1e16);
        (scale, 1000.0 * MM / scale)
    }

    fn words(&self, scale: f64) -> String {
        let legend: Vec<&str> = self
            .legend
            .iter()
            .map(|(_, label)| label.as_str())
            .collect();
        format!("Drawing. {}, 1:{scale}: {}", self.title, legend.join(", "))
    }
}

impl LayerBlock {
    fn style(&self) -> Result<PathStyle, DrawingError> {
        let color = |text: &Option<String>| {
            let read = |text: &String| color(text).ok_or_else(|| DrawingError::Color(text.clone()));
            text.as_ref().map(read).transpose()
        };
        let points = |mm: f32| hundredths((mm * MM as f32).clamp(0.0, 100.0));
        Ok(PathStyle {
            fill: color(&self.fill)?,
            stroke: color(&self.stroke)?,
            width: points(self.width),
            dash: self.dash.iter().copied().take(8).map(points).collect(),
        })
    }
}

/// Two decimals are more than a printer shows, and keep the file short.
fn hundredths(points: f32) -> f32 {
    (points * 100.0).round() / 100.0
}

/// `#rrggbb`.
fn color(text: &str) -> Option<Color> {
    let digits = text.strip_prefix('#')?;
    if digits.len() != 6 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let [_, red, green, blue] = u32::from_str_radix(digits, 16).ok()?.to_be_bytes();
    Some([red, green, blue])
}

/// Rings of SVG path data: `M x y x y … Z` for each, with absolute coordinates.
fn rings(path: &str) -> Option<Area<f64>> {
    let mut parts = path.split('M');
    if !parts.next()?.trim().is_empty() {
        return None;
    }
    let ring = |part: &str| {
        let numbers = part.trim_end().strip_suffix('Z')?;
        let numbers: Option<Vec<f64>> = numbers
            .split([',', ' '])
            .filter(|number| !number.is_empty())
            .map(|number| number.parse().ok().filter(|n: &f64| n.is_finite()))
            .collect();
        let (points, rest) = numbers.as_ref()?.as_chunks::<2>();
        (points.len() > 1 && rest.is_empty())
            .then(|| points.iter().map(|[x, y]| (*x, *y)).collect())
    };
    parts.map(ring).collect()
}

/// An entry of the legend as it is set: where it begins in its row, its style and its text.
struct LegendEntry<'d> {
    x: f32,
    row: usize,
    style: &'d PathStyle,
    glyphs: Vec<Glyph>,
}

impl Flow<'_> {
    /// Height of a drawing in points.
    pub(crate) fn drawing_height(&mut self, drawing: &Drawing, width: f32) -> f32 {
        let rows = legend_rows(&self.legend(drawing, width));
        self.plan(drawing, width, rows).2 + around(rows)
    }

    /// Returns scale, points per metre, and the height of the drawing in points, beside a legend with `rows` rows.
    fn plan(&self, drawing: &Drawing, width: f32, rows: usize) -> (f64, f64, f32) {
        let room = (self.whole() - around(rows)).max(36.0);
        let (scale, metre) = drawing.fitted(width, room);
        let height = (drawing.extent[3] - drawing.extent[1]) * metre;
        (scale, metre, height as f32)
    }

    fn legend<'d>(&mut self, drawing: &'d Drawing, width: f32) -> Vec<LegendEntry<'d>> {
        let (mut x, mut row) = (0.0, 0);
        let mut entries = Vec::with_capacity(drawing.legend.len());
        for (style, label) in &drawing.legend {
            let room = width - SWATCH.0 - 5.0;
            let glyphs = self.fonts.cut(label, Style::default(), SIZE, room);
            let extent = SWATCH.0 + 5.0 + measure(&glyphs) * SIZE;
            if x > 0.0 && x + extent > width {
                (x, row) = (0.0, row + 1);
            }
            entries.push(LegendEntry {
                x,
                row,
                style,
                glyphs,
            });
            x += extent + 14.0;
        }
        entries
    }

    /// Draws a drawing; it never goes over the end of a page.
    pub(crate) fn drawing(&mut self, drawing: &Drawing, left: f32, width: f32, parent: Tag) {
        let legend = self.legend(drawing, width);
        let rows = legend_rows(&legend);
        let (scale, metre, height) = self.plan(drawing, width, rows);
        self.need(height + around(rows));
        let figure = self.tags.add(parent, StructRole::Figure);
        self.tags.describe(figure, drawing.words(scale));
        let bold = Style {
            bold: true,
            ..Style::default()
        };
        let title = self.fonts.cut(&drawing.title, bold, 9.5, width);
        let base = self.y + 11.0;
        self.glyphs((left, base), 9.5, INK, &title, figure);
        self.y += HEAD;

        let top = self.y;
        let [x0, y0, x1, y1] = drawing.extent;
        let at = |x: f64, y: f64| {
            let near = |v: f64| hundredths(v.clamp(-FAR, FAR) as f32);
            (
                near(f64::from(left) + (x - x0) * metre),
                near(f64::from(top) + (y1 - y) * metre),
            )
        };
        // Lines on the edge are shown whole.
        let (upper_left, lower_right) = (at(x0, y1), at(x1, y0));
        let clip = [
            upper_left.0 - 1.0,
            upper_left.1 - 1.0,
            lower_right.0 - upper_left.0 + 2.0,
            lower_right.1 - upper_left.1 + 2.0,
        ];
        for (style, areas) in &drawing.layers {
            let areas = areas.iter().map(|area| {
                let ring = |ring: &Vec<(f64, f64)>| ring.iter().map(|(x, y)| at(*x, *y)).collect();
                area.iter().map(ring).collect()
            });
            let paths = Paths {
                clip,
                style: style.clone(),
                areas: areas.collect(),
            };
            if !paths.areas.is_empty() {
                self.draw(Shape::Paths(paths), Some(figure));
            }
        }
        self.y += height;
        self.scale_bar(
            scale,
            (drawing.bar, drawing.bar * metre),
            (left, width),
            figure,
        );
        self.y += SCALE_ROW;

        for entry in legend {
            let (x, y) = (left + entry.x, self.y + entry.row as f32 * LEGEND_ROW + 3.0);
            let (right, low) = (x + SWATCH.0, y + SWATCH.1);
            let swatch = Paths {
                clip: [x - 1.0, y - 1.0, SWATCH.0 + 2.0, SWATCH.1 + 2.0],
                style: entry.style.clone(),
                areas: vec![vec![vec![(x, y), (right, y), (right, low), (x, low)]]],
            };
            self.draw(Shape::Paths(swatch), Some(figure));
            self.glyphs((right + 5.0, low - 0.6), SIZE, INK, &entry.glyphs, figure);
        }
        self.y += rows as f32 * LEGEND_ROW;
    }

    /// Draws the scale as a ratio and as a bar of two parts, given its metres and its length in points.
    fn scale_bar(
        &mut self,
        scale: f64,
        (metres, length): (f64, f64),
        (left, width): (f32, f32),
        figure: Tag,
    ) {
        let plain = Style::default();
        let base = self.y + 17.0;
        let ratio = self.fonts.line(&format!("1:{scale}"), plain);
        self.glyphs((left, base), SIZE, INK, &ratio, figure);
        let start = left + measure(&ratio) * SIZE + 12.0;
        if length < 4.0 || length > f64::from(width - (start - left)) - 60.0 {
            return;
        }
        let (length, y) = (length as f32, base - 4.5);
        self.fill((start, y), (length, 3.6), INK);
        let half = length / 2.0;
        self.fill((start + half, y + 0.5), (half - 0.5, 2.6), WHITE);
        let label = self.fonts.line(&format!("{metres} m"), plain);
        self.glyphs((start + length + 5.0, base), SIZE, MUTED, &label, figure);
    }
}

fn legend_rows(legend: &[LegendEntry<'_>]) -> usize {
    legend.last().map_or(0, |entry| entry.row + 1)
}

/// Height of everything but what is drawn.
fn around(rows: usize) -> f32 {
    HEAD + SCALE_ROW + rows as f32 * LEGEND_ROW + 2.0
}

/// Writes areas as paths.
pub(crate) fn write(content: &mut Content, paths: &Paths) {
    let [x, y, width, height] = paths.clip;
    content.save_state();
    let low = hundredths(PAPER.1 - y - height);
    content.rect(hundredths(x), low, hundredths(width), hundredths(height));
    content.clip_nonzero().end_path();
    let style = &paths.style;
    if let Some([r, g, b]) = style.fill.map(rgb) {
        content.set_fill_rgb(r, g, b);
    }
    if let Some([r, g, b]) = style.stroke.map(rgb) {
        content.set_stroke_rgb(r, g, b);
        content.set_line_width(style.width);
        content.set_line_join(LineJoinStyle::RoundJoin);
        if style.dash.iter().any(|length| *length > 0.0) {
            content.set_dash_pattern(style.dash.iter().copied(), 0.0);
        }
    }
    for area in &paths.areas {
        for ring in area {
            for (number, (x, y)) in ring.iter().enumerate() {
                let y = hundredths(PAPER.1 - y);
                if number == 0 {
                    content.move_to(*x, y);
                } else {
                    content.line_to(*x, y);
                }
            }
            content.close_path();
        }
        match (style.fill, style.stroke) {
            (Some(_), Some(_)) => content.fill_even_odd_and_stroke(),
            (Some(_), None) => content.fill_even_odd(),
            (None, Some(_)) => content.stroke(),
            (None, None) => content.end_path(),
        };
    }
    content.restore_state();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pdf::font::Fonts;
    use crate::pdf::{layout, markdown};
    use serde_json::{Value, json};

    fn room() -> Value {
        json!({
            "title": "Ground floor", "scale": 100, "bar": 1, "extent": [10.0, 20.0, 14.0, 22.0],
            "layers": [
                {"fill": "#d3d9df", "stroke": "#1f2933", "width": 0.25,
                    "paths": ["M10,20,14,20,14,22,10,22ZM10.2 20.2 13.8 20.2 13.8 21.8 10.2 21.8Z"]},
                {"stroke": "#7b8794", "width": 0.1, "dash": [1, 0.7], "paths": ["M11,20,13,22Z"]},
                {"fill": "#ff0000", "paths": []}
            ],
            "legend": [{"label": "Walls 1", "fill": "#d3d9df", "stroke": "#1f2933", "width": 0.25}]
        })
    }

    /// Returns the operators of the areas on the first page, and the texts of all pages.
    fn drawn(block: &Value) -> (String, Vec<String>) {
        let mut fonts = Fonts::load().unwrap();
        let blocks = markdown::blocks(&format!("```drawing\n{block}\n```\n"));
        let document = layout::lay_out(&blocks, &mut fonts, "T").unwrap();
        let (mut content, mut texts) = (Content::new(), Vec::new());
        for page in &document.pages {
            for item in &page.items {
                match &item.shape {
                    Shape::Paths(paths) => write(&mut content, paths),
                    Shape::Text { glyphs, .. } => {
                        texts.push(glyphs.iter().map(|g| g.sign).collect());
                    }
                    Shape::Fill { .. } => {}
                }
            }
        }
        let content = String::from_utf8(content.finish().to_vec()).unwrap();
        (content.replace('\n', " "), texts)
    }

    #[test]
    fn a_drawing_is_drawn_to_scale() {
        // 4 m at 1:100 are 40 mm, 113.39 points.
        let (content, texts) = drawn(&room());
        let wanted = [
            "q 55 708.2 115.39 58.69 re W n 0.827 0.851 0.875 rg 0.122 0.161 0.2 RG 0.71 w 1 j",
            "56 709.2 m 169.39 709.2 l 169.39 765.89 l 56 765.89 l h",
            "61.67 714.87 m 163.72 714.87 l 163.72 760.22 l 61.67 760.22 l h B* Q",
            "q 55 708.2 115.39 58.69 re W n 0.482 0.529 0.58 RG 0.28 w 1 j [2.83 1.98] 0 d",
            "84.35 709.2 m 141.04 765.89 l h S Q",
            "q 55 676.2 14 9 re W n 0.827 0.851 0.875 rg 0.122 0.161 0.2 RG 0.71 w 1 j",
            "56 684.2 m 68 684.2 l 68 677.2 l 56 677.2 l h B* Q",
        ];
        assert_eq!(content.trim(), wanted.join(" "));
        assert_eq!(
            texts,
            [
                "Ground floor",
                "1:100",
                "1 m",
                "Walls 1",
                "T",
                "page 1 of 1"
            ]
        );
    }

    #[test]
    fn a_drawing_that_does_not_fit_is_drawn_at_the_next_scale() {
        let scale = |extent: [f64; 4], scale: Value| {
            let mut block = room();
            (block["extent"], block["scale"]) = (json!(extent), scale);
            let (content, texts) = drawn(&block);
            assert!(
                !content.contains("NaN") && !content.contains("inf"),
                "{content}"
            );
            texts[1].clone()
        };
        assert_eq!(scale([0.0, 0.0, 10.0, 10.0], json!(100)), "1:100");
        assert_eq!(scale([0.0, 0.0, 10.0, 10.0], json!(250)), "1:250");
        assert_eq!(scale([0.0, 0.0, 20.0, 10.0], json!(100)), "1:200");
        assert_eq!(scale([0.0, 0.0, 60.0, 90.0], json!(250)), "1:500");
        assert_eq!(scale([0.0, 0.0, 0.1, 0.1], Value::Null), "1:1");
        assert_eq!(scale([0.0, 0.0, 1.0, 1.0], Value::Null), "1:10");
        assert_eq!(scale([0.0, 0.0, 1e-300, 1e8], json!(1)), "1:500000000");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let said = |key: &str, value: Value| {
            let mut block = room();
            block[key] = value;
            Drawing::parse(&block.to_string()).unwrap_err().to_string()
        };
        let layer = |layer: Value| json!([layer]);
        for (key, value, wanted) in [
            ("extent", json!([0, 0, 0, 5]), "`extent` is left, lower"),
            ("extent", json!([0, 0, 1e10, 5]), "`extent` is left, lower"),
            ("scale", json!(0), "`scale` is 100 for 1:100"),
            (
                "layers",
                layer(json!({"fill": "red"})),
                "a colour is written as `#rrggbb`: \"red\"",
            ),
            (
                "layers",
                layer(json!({"fill": "#+12345"})),
                "a colour is written as `#rrggbb`",
            ),
            (
                "layers",
                layer(json!({"paths": ["M0,0,1Z"]})),
                "a path is `M x y x y … Z`",
            ),
            (
                "layers",
                layer(json!({"paths": ["M0,0,1,1"]})),
                "a path is `M x y x y … Z`",
            ),
            (
                "layers",
                layer(json!({"paths": ["M0,0,1e999,1Z"]})),
                "a path is `M x y x y … Z`",
            ),
            (
                "layers",
                layer(json!({"paths": ["M0,0C1,1,2,2,3,3Z"]})),
                "a path is `M x y x y … Z`",
            ),
            ("layers", layer(json!({"size": 1})), "unknown field `size`"),
        ] {
            let said = said(key, value);
            assert!(said.starts_with(wanted), "{said}");
        }
        let many = format!("M{}Z", "1 ".repeat(POINTS * 2 + 2));
        assert_eq!(
            said("layers", json!([{"paths": [many]}])),
            "more than 1000000 points"
        );
    }

    #[test]
    fn points_far_outside_and_long_legends_do_no_harm() {
        let mut block = room();
        block["layers"][0]["paths"] = json!(["M-1e300,1e300,1e300,-1e300,0,0Z", ""]);
        block["layers"][0]["dash"] = json!([0, 0]);
        block["bar"] = json!(1e300);
        let entry = json!({"label": "x".repeat(1000), "fill": "#000000"});
        block["legend"] = json!(vec![entry; 300]);
        let (content, texts) = drawn(&block);
        assert!(
            content.contains("-10000 10841.89 m 10000 -9158.11 l"),
            "{}",
            &content[..400]
        );
        assert_eq!(
            texts.iter().filter(|text| text.starts_with("xx")).count(),
            ENTRIES
        );
    }
}
