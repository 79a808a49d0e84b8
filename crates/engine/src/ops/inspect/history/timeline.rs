//! The history of one run or of all for a width in pixels: bars that are too small to be seen alone are one bar with their number.

use super::lane::{BarResult, Lane, MarkKind, NO_BAR, OPEN, PartKind};
use super::{History, Run};
use serde::Serialize;
use std::collections::HashMap;

/// The most rows of a lane. Further batches at the same time share the last row.
const ROWS: usize = 8;

/// The pixels that a bar has at least, or it is drawn with its neighbours.
const SMALL: f64 = 3.0;

/// The pixels that a bar has at least to show its parts.
const ROOMY: f64 = 10.0;

/// The pixels between two marks of one kind.
const MARK: f64 = 8.0;

/// The run and the size of a timeline.
#[derive(Debug, Clone, Default)]
pub struct Window {
    /// The run; `None` for all.
    pub run: Option<String>,
    /// The time until which running batches are drawn.
    pub now: i64,
    /// The width in pixels.
    pub width: u32,
    /// The most bars of a lane; `None` for as many as pixels.
    pub bars: Option<usize>,
    /// The most lanes: of more, the last ones.
    pub lanes: usize,
}

/// The history of one run or of all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Timeline {
    /// The begin, in milliseconds since 1970.
    pub from: i64,
    /// The end.
    pub to: i64,
    /// The width in pixels that it was made for.
    pub width: u32,
    /// The runs that have lanes here, oldest first.
    pub runs: Vec<Run>,
    /// The lanes, in the order of runs and stages.
    pub lanes: Vec<TimelineLane>,
    /// The number of earlier lanes that are left out.
    pub left_out: u64,
}

/// The batches of a stage in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TimelineLane {
    /// The run.
    pub run: String,
    /// The stage.
    pub stage: String,
    /// Who acted, by role; the stage's name if it has none.
    pub agents: Vec<String>,
    /// The number of batches that ran in this part.
    pub batches: u64,
    /// The number of rows that the bars need.
    pub rows: u32,
    /// The bars: batches first, then their parts.
    pub bars: Vec<TimelineBar>,
    /// The moments.
    pub marks: Vec<TimelineMark>,
}

/// The kind of a bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BarKind {
    /// A batch.
    Batch,
    /// A part of a batch.
    #[serde(untagged)]
    Part(PartKind),
}

/// A bar: one batch, iteration, step or call, or several that are too small to be seen alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TimelineBar {
    /// The kind.
    pub kind: BarKind,
    /// The row, from 0.
    pub row: u32,
    /// The begin in milliseconds since 1970.
    pub from: i64,
    /// The end.
    pub to: i64,
    /// How many it stands for.
    pub count: u64,
    /// How many of them failed.
    pub failed: u64,
    /// How it ended; of several, the worst.
    pub result: BarResult,
    /// The batch, the number of the iteration, the agent, or the agent and the step; of several, that of the first.
    pub name: String,
    /// The number of attempts at a batch.
    pub attempts: u16,
}

/// A moment, or several of one kind that are too close.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TimelineMark {
    /// The kind.
    pub kind: MarkKind,
    /// When the first was, in milliseconds since 1970.
    pub at: i64,
    /// How many it stands for.
    pub count: u64,
    /// The description of the event; empty if the history does not keep it.
    pub text: String,
}

impl History {
    /// Returns the history of one run or of all. No lane has more bars than the width has pixels.
    pub fn view(&self, window: &Window) -> Timeline {
        let is_in = |lane: &&Lane| {
            let run = self.runs.get(lane.run).map(|run| run.run.as_str());
            window.run.is_none() || window.run.as_deref() == run
        };
        let is_shown = |lane: &&Lane| !lane.bars.is_empty() || !lane.marks.is_empty();
        let chosen: Vec<&Lane> = self.lanes.iter().filter(is_in).filter(is_shown).collect();
        let end = |lane: &&Lane| {
            let is_open = lane.bars.iter().any(|bar| bar.length == OPEN);
            if is_open {
                window.now.max(lane.to)
            } else {
                lane.to
            }
        };
        let first = chosen.iter().map(|lane| lane.from).min();
        let last = chosen.iter().map(end).max();
        let from = first.unwrap_or(window.now);
        let to = last.unwrap_or(window.now).max(from.saturating_add(1));
        let scale = Scale {
            now: window.now,
            pixels: f64::from(window.width.max(1)) / to.saturating_sub(from) as f64,
        };
        let mut lanes = chosen;
        lanes.sort_by_key(|lane| (lane.run, lane.number, lane.from));
        let left_out = lanes.len().saturating_sub(window.lanes);
        let lanes = lanes.split_off(left_out);
        let of_lane = |run: &usize| lanes.iter().any(|lane| lane.run == *run);
        Timeline {
            from,
            to,
            width: window.width,
            runs: (0..self.runs.len())
                .filter(of_lane)
                .map(|run| self.runs[run].clone())
                .collect(),
            left_out: left_out as u64,
            lanes: lanes
                .iter()
                .map(|lane| shown(lane, &self.runs[lane.run].run, &scale, window))
                .collect(),
        }
    }
}

struct Scale {
    now: i64,
    /// Pixels in a millisecond.
    pixels: f64,
}

impl Scale {
    fn end(&self, from: i64, length: u32) -> i64 {
        match length {
            OPEN => self.now.max(from),
            length => from.saturating_add(i64::from(length)),
        }
    }

    fn width(&self, from: i64, to: i64) -> f64 {
        to.saturating_sub(from) as f64 * self.pixels
    }
}

/// Returns a lane with at most as many bars as pixels.
fn shown(lane: &Lane, run: &str, scale: &Scale, window: &Window) -> TimelineLane {
    let (places, rows) = rows(lane, scale);
    let mut small = SMALL;
    let mut bars = bars(lane, scale, &places, small);
    let width = window.width;
    let most = window.bars.unwrap_or(usize::MAX).min(width as usize);
    while bars.len() > most && small < f64::from(width) {
        small *= 2.0;
        bars = self::bars(lane, scale, &places, small);
    }
    TimelineLane {
        run: run.to_owned(),
        stage: lane.stage.clone(),
        agents: lane
            .agents
            .iter()
            .map(|&agent| lane.word(agent).to_owned())
            .collect(),
        batches: places.len() as u64,
        rows,
        bars,
        marks: marks(lane, scale),
    }
}

/// A bar in its row.
struct Placed {
    bar: u32,
    row: u8,
    to: i64,
}

/// Puts the bars into rows in which they do not overlap. Returns them with the number of rows.
fn rows(lane: &Lane, scale: &Scale) -> (Vec<Placed>, u32) {
    let bars = lane.bars.iter().enumerate().map(|(at, bar)| Placed {
        bar: at as u32,
        row: 0,
        to: scale.end(bar.from, bar.length),
    });
    let begin = |placed: &Placed| lane.bars[placed.bar as usize].from;
    let mut placed: Vec<Placed> = bars.collect();
    if !placed.is_sorted_by_key(begin) {
        placed.sort_by_key(begin);
    }
    let mut ends: Vec<i64> = Vec::new();
    for one in &mut placed {
        let from = lane.bars[one.bar as usize].from;
        let free = ends.iter().position(|&end| end <= from);
        let row = free.unwrap_or_else(|| {
            if ends.len() < ROWS {
                ends.push(i64::MIN);
            }
            ends.len() - 1
        });
        ends[row] = ends[row].max(one.to);
        one.row = row as u8;
    }
    (placed, ends.len() as u32)
}

fn bars(lane: &Lane, scale: &Scale, places: &[Placed], small: f64) -> Vec<TimelineBar> {
    let mut all = Merged::new(scale, small);
    for placed in places {
        let bar = &lane.bars[placed.bar as usize];
        all.add(
            TimelineBar {
                kind: BarKind::Batch,
                row: u32::from(placed.row),
                from: bar.from,
                to: placed.to,
                count: 1,
                failed: u64::from(bar.result == BarResult::Failed),
                result: bar.result,
                name: String::new(),
                attempts: bar.attempts,
            },
            placed.bar,
        );
    }
    let mut rows: HashMap<u32, u32> = HashMap::new();
    for (bar, &place) in all.bars.iter_mut().zip(&all.places) {
        lane.batch(place).clone_into(&mut bar.name);
        if bar.count == 1 && scale.width(bar.from, bar.to) >= ROOMY {
            rows.insert(place, bar.row);
        }
    }
    for part in &lane.parts {
        let row = match part.bar {
            NO_BAR => Some(0),
            bar => rows.get(&bar).copied(),
        };
        let to = scale.end(part.from, part.length);
        let Some(row) = row else {
            continue;
        };
        let name = match part.kind {
            PartKind::Iteration => part.name.to_string(),
            PartKind::Step | PartKind::Call => lane.word(part.name).to_owned(),
        };
        all.add(
            TimelineBar {
                kind: BarKind::Part(part.kind),
                row,
                from: part.from,
                to,
                count: 1,
                failed: u64::from(part.result == BarResult::Failed),
                result: part.result,
                name,
                attempts: 1,
            },
            part.bar,
        );
    }
    all.bars
}

/// Bars, of which small ones are joined with the one before in their row.
struct Merged<'a> {
    scale: &'a Scale,
    small: f64,
    bars: Vec<TimelineBar>,
    /// The place in its lane of the first batch of each bar.
    places: Vec<u32>,
    last: HashMap<(BarKind, u32), usize>,
}

impl<'a> Merged<'a> {
    fn new(scale: &'a Scale, small: f64) -> Self {
        Self {
            scale,
            small,
            bars: Vec::new(),
            places: Vec::new(),
            last: HashMap::new(),
        }
    }

    fn add(&mut self, bar: TimelineBar, place: u32) {
        let is_small = |bar: &TimelineBar| self.scale.width(bar.from, bar.to) < self.small;
        let key = (bar.kind, bar.row);
        let last = self.last.get(&key).map(|&at| &mut self.bars[at]);
        if let Some(last) = last {
            let gap = self.scale.width(last.to, bar.from);
            let is_near =
                gap < self.small / 3.0 && is_small(&bar) && (last.count > 1 || is_small(last));
            // The last row takes batches that overlap.
            if is_near || (bar.kind == BarKind::Batch && bar.from < last.to) {
                last.to = last.to.max(bar.to);
                last.count += 1;
                last.failed += bar.failed;
                last.result = last.result.max(bar.result);
                return;
            }
        }
        self.last.insert(key, self.bars.len());
        self.bars.push(bar);
        self.places.push(place);
    }
}

fn marks(lane: &Lane, scale: &Scale) -> Vec<TimelineMark> {
    let mut marks: Vec<TimelineMark> = Vec::new();
    let mut last: HashMap<MarkKind, usize> = HashMap::new();
    for mark in &lane.marks {
        if let Some(&at) = last.get(&mark.kind)
            && scale.width(marks[at].at, mark.at) < MARK
        {
            marks[at].count += 1;
            continue;
        }
        last.insert(mark.kind, marks.len());
        marks.push(TimelineMark {
            kind: mark.kind,
            at: mark.at,
            count: 1,
            text: lane.text(mark).to_owned(),
        });
    }
    marks
}
