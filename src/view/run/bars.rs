//! The bars of a run on a terminal: a line for the current stage and one for the whole run, fitted to the width.

use crate::view::run::notice;
use crate::view::text::style::Style;
use crate::view::text::words::{grouped, seconds, some_of};
use milepost_core::base::visible::visible;
use milepost_core::model::call::Spent;
use milepost_engine::ops::run::ExpectedStage;
use std::time::Duration;

/// The least width that a text is cut to.
const LEAST: usize = 8;

/// The shortest time for the rest that is shown.
const SHORTEST: Duration = Duration::from_millis(100);

/// The current stage.
#[derive(Debug, Clone, Default)]
pub(crate) struct StageBar {
    pub(crate) name: String,
    /// The description of the stage.
    pub(crate) about: String,
    /// Batches that were up to date before the run.
    pub(crate) up_to_date: u64,
    /// Batches that run in all.
    pub(crate) will: u64,
    /// Batches of the run that have ended.
    pub(crate) done: u64,
    /// When the last of them ended, since the start of the stage.
    pub(crate) last: Duration,
    pub(crate) failed: u64,
    pub(crate) spent: Spent,
    pub(crate) running: Vec<String>,
}

/// The whole run.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunBar {
    /// The stages of the run, in order.
    pub(crate) stages: Vec<ExpectedStage>,
    /// The number of stages that have ended.
    pub(crate) ended: usize,
}

impl StageBar {
    /// Returns the expected time for the rest. Only batches of this run count.
    pub(crate) fn left(&self, elapsed: Duration) -> Option<Duration> {
        let rest = self.will.checked_sub(self.done)?;
        let left = self.each(elapsed)? * rest as f64;
        let left = Duration::try_from_secs_f64(left).ok()?;
        Some(left.saturating_sub(elapsed.saturating_sub(self.last)))
    }

    /// Returns the seconds that a batch of this run takes on average, with others beside it. A next one that is overdue counts.
    fn each(&self, elapsed: Duration) -> Option<f64> {
        let done = self.done as f64;
        let each = self.last.as_secs_f64() / done;
        let is_overdue = self.done < self.will;
        let least = if is_overdue {
            elapsed.as_secs_f64() / (done + 1.0)
        } else {
            0.0
        };
        (self.done > 0).then(|| each.max(least))
    }

    /// Returns the part of the stage that is up to date, from 0 to 1.
    fn share(&self) -> f64 {
        let all = self.up_to_date + self.will;
        (self.up_to_date + self.done) as f64 / (all.max(1)) as f64
    }

    /// Returns the line of the stage. `spinner` moves while a single batch runs.
    pub(crate) fn line(
        &self,
        style: Style,
        width: usize,
        elapsed: Duration,
        spinner: &str,
    ) -> String {
        let all = self.up_to_date + self.will;
        let mut line = Line::new(style, width);
        line.name(&self.name);
        if all > 1 {
            line.bar(6, self.share());
            let here = grouped(self.up_to_date + self.done);
            line.plain(1, format!("{here}/{}", grouped(all)));
            if let Some(each) = self.each(elapsed) {
                line.plain(
                    7,
                    if each < 1.0 {
                        format!("{:.1}/s", 1.0 / each.max(1e-9))
                    } else {
                        format!("{} each", seconds(each))
                    },
                );
            }
            line.plain(4, seconds(elapsed.as_secs_f64()));
            if let Some(left) = self.left(elapsed).and_then(told) {
                line.plain(2, format!("{left} left"));
            }
        } else {
            line.styled(1, spinner.to_owned(), Style::good);
            line.plain(2, seconds(elapsed.as_secs_f64()));
        }
        if self.failed > 0 {
            line.styled(3, format!("{} failed", grouped(self.failed)), Style::bad);
        }
        if let Some(spent) = notice::spent(&self.spent, self.done, self.will) {
            line.plain(5, spent);
        }
        let names = self.running.iter().map(String::as_str);
        let names = some_of(names.filter(|name| !name.is_empty()), 2);
        let about = visible(&self.about);
        line.end(if names.is_empty() { &about } else { &names })
    }
}

impl RunBar {
    /// Returns the expected time for the rest of the run; `None` if it is unknown how long a later stage takes.
    ///
    /// Later stages are expected to rerun the same share of their batches as the current one.
    fn left(&self, stage: &StageBar, elapsed: Duration) -> Option<Duration> {
        let share = stage.will as f64 / (stage.up_to_date + stage.will).max(1) as f64;
        let expected = |of: &ExpectedStage| {
            let least = 1.0 / of.batches.max(1) as f64;
            Duration::try_from_secs_f64(of.seconds? * share.max(least)).ok()
        };
        let mut later = self.stages.iter().skip(self.ended);
        let current = later.next().and_then(expected);
        let recorded = current.map(|current| current.saturating_sub(elapsed));
        let later = later.map(expected).sum::<Option<Duration>>()?;
        Some(stage.left(elapsed).or(recorded)? + later)
    }

    /// Returns the line of the run. `stage` is the current stage, with the time since it started.
    pub(crate) fn line(
        &self,
        style: Style,
        width: usize,
        elapsed: Duration,
        stage: Option<(&StageBar, Duration)>,
    ) -> String {
        let all = self.stages.len();
        let share = stage.map_or(0.0, |(stage, _)| stage.share());
        let mut line = Line::new(style, width);
        line.name("total");
        line.bar(6, (self.ended as f64 + share) / all.max(1) as f64);
        line.plain(1, format!("stage {} of {all}", (self.ended + 1).min(all)));
        line.plain(3, seconds(elapsed.as_secs_f64()));
        let left = stage.and_then(|(stage, elapsed)| self.left(stage, elapsed));
        if let Some(left) = left.and_then(told) {
            line.plain(2, format!("about {left} left"));
        }
        line.end("")
    }
}

/// Returns the time for the rest in words; `None` if it is over or too short to tell.
fn told(left: Duration) -> Option<String> {
    (left >= SHORTEST).then(|| seconds(left.as_secs_f64()))
}

/// A line whose less important parts are left out if they do not fit.
struct Line {
    style: Style,
    width: usize,
    parts: Vec<LinePart>,
}

struct LinePart {
    /// Parts with a low number are kept.
    rank: u8,
    width: usize,
    text: String,
}

impl Line {
    /// Starts a line. The last column stays free: some terminals begin a new line after it.
    fn new(style: Style, width: usize) -> Self {
        Self {
            style,
            width: width.saturating_sub(1),
            parts: Vec::new(),
        }
    }

    fn name(&mut self, name: &str) {
        let name = cut(&visible(name), (self.width / 3).max(LEAST));
        self.styled(0, name, Style::strong);
    }

    fn plain(&mut self, rank: u8, text: String) {
        self.styled(rank, text, |_, text| text);
    }

    fn styled(&mut self, rank: u8, text: String, styled: fn(Style, String) -> String) {
        self.parts.push(LinePart {
            rank,
            width: columns(&text),
            text: styled(self.style, text),
        });
    }

    fn bar(&mut self, rank: u8, share: f64) {
        let width = if self.width >= 79 { 24 } else { 12 };
        let filled = (share.clamp(0.0, 1.0) * width as f64) as usize;
        let head = usize::from(filled < width);
        let rest = "─".repeat(width - filled - head);
        let filled = format!("{}{}", "━".repeat(filled), "╸".repeat(head));
        self.parts.push(LinePart {
            rank,
            width,
            text: format!("{}{}", self.style.good(filled), self.style.dim(rest)),
        });
    }

    /// Returns the line. `rest` is cut to the room that is left.
    fn end(mut self, rest: &str) -> String {
        let mut order: Vec<usize> = (0..self.parts.len()).collect();
        order.sort_by_key(|at| self.parts[*at].rank);
        let mut free = self.width + 2;
        let mut is_kept = vec![false; self.parts.len()];
        for at in order {
            let width = self.parts[at].width + 2;
            if width <= free {
                free -= width;
                is_kept[at] = true;
            }
        }
        let mut kept = is_kept.iter();
        self.parts.retain(|_| kept.next() == Some(&true));
        let mut texts: Vec<String> = self.parts.into_iter().map(|part| part.text).collect();
        if free >= columns(rest).min(LEAST) + 2 && !rest.is_empty() {
            texts.push(self.style.dim(cut(rest, free - 2)));
        }
        texts.join("  ")
    }
}

/// Returns the text, cut to at most this many columns.
fn cut(text: &str, most: usize) -> String {
    if columns(text) <= most {
        return text.to_owned();
    }
    let mut width = 1;
    let fits = |c: &char| {
        width += column(*c);
        width <= most
    };
    let short: String = text.chars().take_while(fits).collect();
    format!("{}…", short.trim_end())
}

fn columns(text: &str) -> usize {
    text.chars().map(column).sum()
}

/// Returns the most columns of a character on a terminal.
fn column(c: char) -> usize {
    if c.is_ascii() || ('\u{2800}'..='\u{28ff}').contains(&c) || c == '…' {
        1
    } else {
        2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use milepost_core::model::money::NanoUsd;

    fn stage() -> StageBar {
        StageBar {
            name: "classify".to_owned(),
            about: "Classify each element".to_owned(),
            up_to_date: 600,
            will: 400,
            done: 100,
            last: Duration::from_secs(50),
            failed: 2,
            spent: Spent {
                calls: 100,
                cost: NanoUsd(1_500_000_000),
                ..Spent::default()
            },
            running: vec!["batch_701".to_owned(), "batch_702".to_owned()],
        }
    }

    fn expected(batches: u64, seconds: Option<f64>) -> ExpectedStage {
        ExpectedStage {
            stage: "x".to_owned(),
            batches,
            seconds,
        }
    }

    #[test]
    fn a_line_keeps_what_matters_most_at_any_width() {
        let line = |width| stage().line(Style::PLAIN, width, Duration::from_secs(50), "⠋");
        assert_eq!(
            [120, 80, 60, 40, 20].map(line),
            [
                "classify  ━━━━━━━━━━━━━━━━╸───────  700/1,000  50 s  2 min 30 s left  2 failed  100 calls for $1.5000 of about $6.0000",
                "classify  ━━━━━━━━━━━━━━━━╸───────  700/1,000  50 s  2 min 30 s left  2 failed",
                "classify  700/1,000  2.0/s  50 s  2 min 30 s left  2 failed",
                "classify  700/1,000  2 min 30 s left",
                "classify  700/1,000",
            ]
        );
        for width in 0..200 {
            assert!(line(width).chars().count() < width.max(20), "{width}");
        }
    }

    #[test]
    fn a_batch_that_takes_longer_than_those_before_slows_the_rate() {
        let bar = StageBar {
            name: "ask".to_owned(),
            will: 3,
            done: 1,
            last: Duration::from_millis(5),
            ..StageBar::default()
        };
        let line = |seconds| bar.line(Style::PLAIN, 60, Duration::from_secs(seconds), "⠋");
        assert_eq!(
            [0, 4].map(line),
            [
                "ask  ━━━━╸───────  1/3  200.0/s  0.0 s",
                "ask  ━━━━╸───────  1/3  2.0 s each  4.0 s",
            ]
        );
    }

    #[test]
    fn one_batch_shows_its_time_and_names_are_cut() {
        let bar = StageBar {
            name: "a name of a stage that is long\n".to_owned(),
            about: "What the stage does, in a long sentence".to_owned(),
            will: 1,
            ..StageBar::default()
        };
        let line = |width| bar.line(Style::PLAIN, width, Duration::from_secs(75), "⠋");
        assert_eq!(
            [60, 40].map(line),
            [
                "a name of a stage…  ⠋  1 min 15 s  What the stage does, in…",
                "a name of a…  ⠋  1 min 15 s  What the…",
            ]
        );
    }

    #[test]
    fn the_rest_of_a_run_is_known_if_every_later_stage_ran_before() {
        let run = |last| RunBar {
            stages: vec![expected(5, Some(1.0)), expected(1000, Some(9.0)), last],
            ended: 1,
        };
        let line = |run: &RunBar, width| {
            let stage = stage();
            run.line(
                Style::PLAIN,
                width,
                Duration::from_secs(65),
                Some((&stage, Duration::from_secs(50))),
            )
        };
        // Of the last stage, as large a share reruns as of this one: 40 percent of 100 seconds.
        let known = run(expected(20, Some(100.0)));
        assert_eq!(
            [100, 60, 40].map(|width| line(&known, width)),
            [
                "total  ━━━━━━━━━━━━━╸──────────  stage 2 of 3  1 min 5 s  about 3 min 10 s left",
                "total  stage 2 of 3  1 min 5 s  about 3 min 10 s left",
                "total  stage 2 of 3  1 min 5 s",
            ]
        );
        // Nothing of the stage is done yet: its record tells how long it takes.
        let begun = StageBar { done: 0, ..stage() };
        assert_eq!(
            known.line(
                Style::PLAIN,
                60,
                Duration::ZERO,
                Some((&begun, Duration::from_secs(1)))
            ),
            "total  ━━━━━━╸─────  stage 2 of 3  0.0 s  about 42 s left"
        );
        let unknown = run(expected(0, None));
        assert_eq!(
            line(&unknown, 60),
            "total  ━━━━━━╸─────  stage 2 of 3  1 min 5 s"
        );
        assert_eq!(
            RunBar::default().line(Style::PLAIN, 40, Duration::ZERO, None),
            "total  stage 0 of 0  0.0 s"
        );
    }
}
