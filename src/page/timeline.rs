//! The history of a workspace as a drawing: a lane for each stage of a run, with bars on a common axis of time.

mod legend;
#[cfg(test)]
mod tests;
mod words;

use super::svg::{Drawing, escaped, shortened};
use crate::view::text::words::{batches, count, grouped};
use legend::{PART, legend, sign};
use milepost_engine::ops::inspect::history::timeline::{
    BarKind, Timeline, TimelineBar, TimelineLane, TimelineMark,
};
use milepost_engine::ops::inspect::history::{PartKind, timestamp};
use std::fmt::Write as _;
use words::{
    about, bar_title, mark_word, moment, part_class, result_class, result_word, run_title, spoken,
    tick,
};

/// The width of the names of the lanes.
const LABELS: i32 = 176;

/// The space at the right side, where marks and the last time may reach.
const RIGHT: i32 = 40;

/// The height of a bar.
const BAR: i32 = 14;

/// The height of a part with a text.
const NAMED_PART: i32 = 12;

/// The tenths of a pixel that a part has at least to have a text.
const READABLE: i64 = 600;

/// The height of a line below the name of a lane.
const LINE: i32 = 13;

/// The space between two rows.
const SPACE: i32 = 4;

/// The height of the marks of a lane, above its bars.
const MARKS: i32 = 14;

/// The most times on the axis.
const TICKS: i64 = 8;

/// The distances between times on the axis, in milliseconds.
const STEPS: [i64; 25] = [
    100,
    200,
    500,
    1_000,
    2_000,
    5_000,
    10_000,
    15_000,
    30_000,
    60_000,
    120_000,
    300_000,
    600_000,
    900_000,
    1_800_000,
    3_600_000,
    7_200_000,
    10_800_000,
    21_600_000,
    43_200_000,
    86_400_000,
    172_800_000,
    604_800_000,
    2_592_000_000,
    31_536_000_000,
];

/// Returns a timeline as an element of a page with [`super::STYLE`]. `id` distinguishes the drawings of a page. `link` returns the
/// address of a batch.
#[expect(clippy::type_complexity)]
pub(crate) fn element(
    data: &Timeline,
    id: &str,
    link: Option<&dyn Fn(&str, &str) -> String>,
) -> String {
    let canvas = Canvas { data, link };
    canvas.drawing(id).element()
}

struct Canvas<'a> {
    data: &'a Timeline,
    #[expect(clippy::type_complexity)]
    link: Option<&'a dyn Fn(&str, &str) -> String>,
}

impl Canvas<'_> {
    fn drawing(&self, id: &str) -> Drawing {
        let mut lanes = String::new();
        let mut y = 24;
        let mut run = None;
        for lane in &self.data.lanes {
            if run != Some(&lane.run) {
                run = Some(&lane.run);
                let known = self.data.runs.iter().find(|known| known.run == lane.run);
                y += 8;
                let title = escaped(&shortened(&known.map(run_title).unwrap_or_default(), 130));
                let _ = writeln!(
                    lanes,
                    "<text class=\"d-muted\" x=\"0\" y=\"{}\">{title}</text>",
                    y + 12
                );
                y += 22;
            }
            let parts = self.parts(lane);
            let height = height(lane, &parts);
            let _ = writeln!(lanes, "<g transform=\"translate(0 {y})\">");
            lanes.push_str(&self.lane(lane, height, &parts));
            lanes.push_str("</g>\n");
            y += height + 6;
        }
        let mut content = self.axis(y);
        content.push_str(&lanes);
        let _ = writeln!(
            content,
            "<g transform=\"translate(0 {})\">\n{}</g>",
            y + 6,
            legend(self.data)
        );
        let between = format!(
            "{} to {}",
            moment(self.data.from, 1000),
            moment(self.data.to, 1000)
        );
        Drawing {
            id: id.to_owned(),
            width: LABELS + self.data.width as i32 + RIGHT,
            height: y + 32,
            title: "Timeline".to_owned(),
            description: format!(
                "{} from {between}: {}",
                count(self.data.lanes.len() as u64, "lane", "lanes"),
                self.data
                    .lanes
                    .iter()
                    .map(spoken)
                    .collect::<Vec<_>>()
                    .join("; ")
            ),
            is_linked: self.link.is_some(),
            content,
        }
    }

    /// Returns the place of a time, in tenths of a pixel, inside the drawing.
    fn x(&self, at: i64) -> i64 {
        let all = self.data.to.saturating_sub(self.data.from).max(1);
        let at = at.saturating_sub(self.data.from).clamp(0, all);
        let tenths = i128::from(at) * i128::from(self.data.width) * 10 / i128::from(all);
        tenths as i64 + i64::from(LABELS) * 10
    }

    fn axis(&self, bottom: i32) -> String {
        let all = self.data.to.saturating_sub(self.data.from);
        let step = STEPS.into_iter().find(|step| all / step <= TICKS);
        let step =
            step.unwrap_or(STEPS[STEPS.len() - 1] * (all / STEPS[STEPS.len() - 1] / TICKS + 1));
        let from = self.data.from;
        let mut at = from.saturating_sub(from.rem_euclid(step));
        let mut svg = String::new();
        while at <= self.data.to {
            if at >= self.data.from {
                let x = tenths(self.x(at));
                let _ = writeln!(svg, "<path class=\"d-tick\" d=\"M{x} 20V{bottom}\"/>");
                let _ = writeln!(
                    svg,
                    "<text class=\"d-muted d-time\" x=\"{x}\" y=\"14\">{}</text>",
                    tick(at, step)
                );
            }
            let Some(next) = at.checked_add(step) else {
                break;
            };
            at = next;
        }
        svg.push_str(&format!(
            "<text class=\"d-muted\" x=\"0\" y=\"14\">{} UTC</text>\n",
            timestamp(self.data.from).strftime("%F")
        ));
        svg
    }

    fn lane(&self, lane: &TimelineLane, height: i32, parts: &[(PartKind, i32)]) -> String {
        let mut svg = format!(
            "<path class=\"d-tick\" d=\"M0 -3H{}\"/>\n",
            LABELS + self.data.width as i32
        );
        let _ = writeln!(
            svg,
            "<text class=\"d-lane\" x=\"0\" y=\"{}\">{}<title>{}</title></text>",
            MARKS + 11,
            escaped(&shortened(&lane.stage, 24)),
            escaped(&spoken(lane))
        );
        let mut about = about(lane);
        if about.is_empty() && height >= MARKS + 2 * BAR {
            about.push(batches(lane.batches));
        }
        for (at, line) in (0..).zip(&about) {
            let _ = writeln!(
                svg,
                "<text class=\"d-muted d-small\" x=\"0\" y=\"{}\">{}</text>",
                MARKS + 25 + at * LINE,
                escaped(&shortened(line, 28))
            );
        }
        for bar in &lane.bars {
            svg.push_str(&self.bar(lane, bar, parts));
        }
        for mark in &lane.marks {
            svg.push_str(&self.mark(mark));
        }
        svg
    }

    /// Returns the kinds of parts that a lane has, in the order in which they are drawn, with their heights: what is wide enough
    /// has a text.
    fn parts(&self, lane: &TimelineLane) -> Vec<(PartKind, i32)> {
        let of_kind = |kind: PartKind| {
            let bars = lane.bars.iter();
            let widths = bars.filter(|bar| bar.kind == BarKind::Part(kind));
            let widest = widths.map(|bar| self.width(bar)).max()?;
            let is_named = kind != PartKind::Call && widest >= READABLE;
            Some((kind, if is_named { NAMED_PART } else { PART }))
        };
        [PartKind::Iteration, PartKind::Step, PartKind::Call]
            .into_iter()
            .filter_map(of_kind)
            .collect()
    }

    /// Returns the width of a bar in tenths of a pixel.
    fn width(&self, bar: &TimelineBar) -> i64 {
        (self.x(bar.to) - self.x(bar.from)).max(10)
    }

    fn bar(&self, lane: &TimelineLane, bar: &TimelineBar, parts: &[(PartKind, i32)]) -> String {
        let from = self.x(bar.from);
        let width = self.width(bar);
        let row = MARKS + bar.row as i32 * row_height(parts);
        let (y, height, class) = match bar.kind {
            BarKind::Batch => (row, BAR, "d-bar"),
            BarKind::Part(kind) => {
                let before = parts.iter().take_while(|(known, _)| *known != kind);
                let place: i32 = before.map(|(_, height)| height + 1).sum();
                let own = parts.iter().find(|(known, _)| *known == kind);
                let height = own.map_or(PART, |(_, height)| *height);
                (row + BAR + 1 + place, height, part_class(kind))
            }
        };
        let (x, wide) = (tenths(from), tenths(width));
        let title = escaped(&bar_title(lane, bar));
        let mut svg = format!(
            "<rect class=\"{class} {}\" x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{height}\"><title>{title}</title></rect>\n",
            result_class(bar.result)
        );
        if bar.kind == BarKind::Batch && bar.failed > 0 && width >= 40 {
            let end = tenths(from + width);
            let _ = writeln!(
                svg,
                "<path class=\"d-cross\" d=\"M{x} {}L{end} {y}\"/>",
                y + height
            );
        }
        let label = match bar.kind {
            BarKind::Part(_) if height == PART => String::new(),
            BarKind::Part(PartKind::Iteration) if bar.count == 1 => {
                format!("{}: {}", bar.name, result_word(bar.kind, bar.result))
            }
            _ if bar.count > 1 => grouped(bar.count),
            _ => bar.name.clone(),
        };
        let room = (width / 10 - 8) / 7;
        if room >= 3 && !label.is_empty() && (bar.count == 1 || label.len() as i64 <= room) {
            let _ = writeln!(
                svg,
                "<text class=\"d-small\" x=\"{}\" y=\"{}\">{}</text>",
                tenths(from + 40),
                y + height - 3,
                escaped(&shortened(&label, room as usize))
            );
        }
        match (self.link, bar.kind) {
            (Some(link), BarKind::Batch) if bar.count == 1 => {
                let href = escaped(&link(&lane.stage, &bar.name));
                format!("<a href=\"{href}\">{svg}</a>")
            }
            _ => svg,
        }
    }

    fn mark(&self, mark: &TimelineMark) -> String {
        let many = if mark.count > 1 {
            format!(" (and {} more)", grouped(mark.count - 1))
        } else {
            String::new()
        };
        let when = moment(mark.at, 100);
        let what = if mark.text.is_empty() {
            mark_word(mark.kind)
        } else {
            &mark.text
        };
        let title = escaped(&format!("{when} {what}{many}"));
        let (class, path) = sign(mark.kind);
        format!(
            "<path class=\"d-mark {class}\" transform=\"translate({} 1)\" d=\"{path}\"><title>{title}</title></path>\n",
            tenths(self.x(mark.at) - 50)
        )
    }
}

fn row_height(parts: &[(PartKind, i32)]) -> i32 {
    let parts: i32 = parts.iter().map(|(_, height)| height + 1).sum();
    BAR + SPACE + parts
}

fn height(lane: &TimelineLane, parts: &[(PartKind, i32)]) -> i32 {
    let rows = lane.rows.max(1) as i32 * row_height(parts);
    let lines = BAR + SPACE + about(lane).len() as i32 * LINE;
    MARKS + rows.max(lines)
}

/// Returns a number of tenths as SVG writes it: `12.3`, or `12`.
fn tenths(number: i64) -> String {
    match number % 10 {
        0 => (number / 10).to_string(),
        part => format!("{}.{}", number / 10, part.abs()),
    }
}
