//! A lane of the history: the batches of a stage in a run, stored in few bytes.

use serde::Serialize;

/// The bar of a part that belongs to no batch.
pub(super) const NO_BAR: u32 = u32::MAX;

/// The length of what has not ended.
pub(super) const OPEN: u32 = u32::MAX;

/// The most marks of a lane that keep their text.
const TEXTS: usize = 1000;

/// How a batch, an iteration or a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BarResult {
    /// It was built, answered, or right.
    Built,
    /// An iteration was not right, and another followed.
    Repeated,
    /// A run was stopped, and the batch with it.
    Cancelled,
    /// The run ended without a record of the batch's end.
    Interrupted,
    /// It runs.
    Running,
    /// It failed, or a part of it.
    Failed,
}

/// The kind of a part of a bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PartKind {
    /// An iteration of `[refine]`.
    Iteration,
    /// A step of a stage with roles or iterations.
    Step,
    /// A call of an agent.
    Call,
}

/// The kind of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkKind {
    /// The stage read the outputs of others for the first time, or a role took over from another.
    Handoff,
    /// A positive verdict.
    Positive,
    /// A negative verdict.
    Negative,
    /// A failed batch.
    Failure,
    /// A person approved batches.
    Approved,
    /// A person accepted outputs or a change.
    Accepted,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Bar {
    pub(super) from: i64,
    /// In milliseconds; [`OPEN`] while it runs.
    pub(super) length: u32,
    /// Where its name ends in the names of the lane. It begins where that of the bar before ends.
    name_end: u32,
    pub(super) attempts: u16,
    pub(super) result: BarResult,
}

/// A part of a bar.
#[derive(Debug, Clone, Copy)]
pub(super) struct LanePart {
    pub(super) from: i64,
    pub(super) length: u32,
    pub(super) bar: u32,
    /// The agent and the step, or the agent; the number of an iteration.
    pub(super) name: u32,
    pub(super) kind: PartKind,
    pub(super) result: BarResult,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    pub(super) at: i64,
    /// The number of its text; `None` of a mark beyond the first thousand.
    pub(super) text: Option<u32>,
    pub(super) kind: MarkKind,
}

/// The batches of a stage in a run.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// The run, by its place.
    pub(super) run: usize,
    pub(super) stage: String,
    pub(super) number: u32,
    /// The earliest begin of a bar or a mark.
    pub(super) from: i64,
    /// The latest end of a bar or a mark.
    pub(super) to: i64,
    pub(super) bars: Vec<Bar>,
    pub(super) parts: Vec<LanePart>,
    pub(super) marks: Vec<Mark>,
    /// Roles, agents and steps, each once.
    pub(super) agents: Vec<u32>,
    words: Vec<String>,
    texts: Vec<String>,
    names: String,
}

impl LanePart {
    pub(super) fn new(
        kind: PartKind,
        (from, to): (i64, i64),
        bar: u32,
        name: u32,
        result: BarResult,
    ) -> Self {
        Self {
            from,
            length: length(from, to),
            bar,
            name,
            kind,
            result,
        }
    }

    pub(super) fn running(from: i64, bar: u32, name: u32) -> Self {
        Self {
            from,
            length: OPEN,
            bar,
            name,
            kind: PartKind::Step,
            result: BarResult::Running,
        }
    }
}

impl Mark {
    pub(super) fn new(at: i64, kind: MarkKind) -> Self {
        Self {
            at,
            text: None,
            kind,
        }
    }
}

impl Lane {
    pub(super) fn new(run: usize, stage: &str) -> Self {
        Self {
            run,
            stage: stage.to_owned(),
            from: i64::MAX,
            to: i64::MIN,
            ..Self::default()
        }
    }

    /// Adds a bar that has not ended, and returns its place.
    pub(super) fn push(&mut self, batch: &str, from: i64) -> u32 {
        self.from = self.from.min(from);
        self.names.push_str(batch);
        self.bars.push(Bar {
            from,
            length: OPEN,
            name_end: self.names.len() as u32,
            attempts: 1,
            result: BarResult::Running,
        });
        (self.bars.len() - 1) as u32
    }

    /// Returns the key of the batch of a bar.
    pub(super) fn batch(&self, bar: u32) -> &str {
        let at = bar as usize;
        let start = at
            .checked_sub(1)
            .map_or(0, |before| self.bars[before].name_end);
        let Some(bar) = self.bars.get(at) else {
            return "";
        };
        self.names
            .get(start as usize..bar.name_end as usize)
            .unwrap_or_default()
    }

    /// Returns the bytes of the bars and their names.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bars.len() * size_of::<Bar>() + self.names.len()
    }

    /// Ends a bar.
    pub(super) fn end(&mut self, bar: u32, to: i64, result: BarResult) {
        self.to = self.to.max(to);
        if let Some(bar) = self.bars.get_mut(bar as usize) {
            bar.length = length(bar.from, to);
            bar.result = result;
        }
    }

    /// Adds a mark.
    pub(super) fn mark(&mut self, mut mark: Mark, text: &str) {
        self.from = self.from.min(mark.at);
        self.to = self.to.max(mark.at);
        if self.marks.len() < TEXTS {
            mark.text = Some(self.texts.len() as u32);
            self.texts.push(text.to_owned());
        }
        self.marks.push(mark);
    }

    /// Notes that an agent or a role acts in this lane, and returns its name.
    pub(super) fn act<'a>(&mut self, agent: &'a str) -> &'a str {
        let name = self.name(agent);
        if !self.agents.contains(&name) {
            self.agents.push(name);
        }
        agent
    }

    /// Returns the number of a name that parts share.
    pub(super) fn name(&mut self, name: &str) -> u32 {
        // A lane has few: its roles, agents and steps.
        let known = self.words.iter().position(|known| known == name);
        let place = known.unwrap_or_else(|| {
            self.words.push(name.to_owned());
            self.words.len() - 1
        });
        place as u32
    }

    /// Returns a name by its number.
    pub(super) fn word(&self, number: u32) -> &str {
        self.words.get(number as usize).map_or("", String::as_str)
    }

    /// Returns the text of a mark, if it kept it.
    pub(super) fn text(&self, mark: &Mark) -> &str {
        let text = mark.text.and_then(|text| self.texts.get(text as usize));
        text.map_or("", String::as_str)
    }
}

/// Returns the milliseconds between two times; at least 0, and at most 49 days.
pub(super) fn length(from: i64, to: i64) -> u32 {
    to.saturating_sub(from).clamp(0, i64::from(OPEN - 1)) as u32
}
