//! Prints the progress of a run: bars on a terminal, lines elsewhere, only problems with `--quiet`.

use super::print::Printer;
use crate::view;
use crate::view::run::notice;
use crate::view::text::collisions;
use crate::view::text::invocation::Invocation;
use crate::view::text::words::{seconds, some_of};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use milepost_core::base::visible::visible;
use milepost_core::model::call::Spent;
use milepost_core::model::choice::StoredNote;
use milepost_engine::ops::run::{Notice, Observer, Stopwatch};
use std::fmt::Write;
use std::time::Duration;

/// The shortest time between two progress lines of a stage.
const BETWEEN_LINES: Duration = Duration::from_secs(5);

/// Prints the progress of a run.
pub(crate) struct RunProgress {
    printer: Printer,
    invocation: Invocation,
    noted: Vec<StoredNote>,
    stage: Option<StageProgress>,
}

/// The current stage.
struct StageProgress {
    name: String,
    will: u64,
    done: u64,
    failed: u64,
    spent: Spent,
    running: Vec<String>,
    since: Stopwatch,
    said: Stopwatch,
    bar: Option<ProgressBar>,
}

impl RunProgress {
    /// Prints with this printer; suggested commands start with `invocation`.
    pub(crate) fn new(printer: &Printer, invocation: &Invocation) -> Self {
        Self {
            printer: printer.clone(),
            invocation: invocation.clone(),
            noted: Vec::new(),
            stage: None,
        }
    }

    /// Leaves out notes about stored values that were printed before.
    pub(crate) fn without(mut self, noted: Vec<StoredNote>) -> Self {
        self.noted = noted;
        self
    }

    /// Returns the notes that were printed.
    pub(crate) fn noted(self) -> Vec<StoredNote> {
        self.noted
    }

    /// Removes the bars: the summary repeats what they showed.
    pub(crate) fn end(&mut self) {
        self.stage = None;
        if let Some(bars) = self.printer.screen.bars() {
            // Nothing is lost if the terminal cannot be cleared.
            let _ = bars.clear();
        }
    }

    fn line(&self, text: &str) {
        if !self.printer.quiet {
            self.printer.say(text);
        }
    }

    fn begin(&mut self, name: String, batches: u64, will: u64, about: Option<&str>) {
        let bars = self.printer.screen.bars().cloned();
        if bars.is_none() {
            self.line(&notice::started(
                self.printer.err,
                &name,
                batches,
                will,
                about,
            ));
        }
        let bar = bars.map(|bars| {
            let bar = bars.add(bar(will, self.printer.err.on));
            bar.set_prefix(name.clone());
            bar.set_message(visible(about.unwrap_or_default()).into_owned());
            bar.enable_steady_tick(Duration::from_millis(100));
            bar
        });
        self.stage = Some(StageProgress {
            name,
            will,
            done: 0,
            failed: 0,
            spent: Spent::default(),
            running: Vec::new(),
            since: Stopwatch::start(),
            said: Stopwatch::start(),
            bar,
        });
    }

    /// Counts a batch of the current stage that ended.
    fn over(&mut self, batch: &str, failed: bool) {
        let err = self.printer.err;
        let Some(stage) = &mut self.stage else { return };
        stage.done += 1;
        stage.failed += u64::from(failed);
        stage.running.retain(|running| running != batch);
        stage.draw();
        if stage.bar.is_none() && stage.said.elapsed() >= BETWEEN_LINES && stage.done < stage.will {
            stage.said = Stopwatch::start();
            let each = stage.since.elapsed().as_secs_f64() / stage.done as f64;
            let halfway = notice::Halfway {
                stage: &stage.name,
                done: stage.done,
                will: stage.will,
                failed: stage.failed,
                spent: stage.spent,
                left: Duration::try_from_secs_f64(each * (stage.will - stage.done) as f64).ok(),
            };
            let text = notice::halfway(err, &halfway);
            self.line(&text);
        }
    }
}

impl StageProgress {
    fn draw(&self) {
        let Some(bar) = &self.bar else { return };
        bar.set_position(self.done);
        let names = self.running.iter().map(String::as_str);
        let names = some_of(names.filter(|name| !name.is_empty()), 2);
        let failed = match self.failed {
            0 => String::new(),
            some => format!("{some} failed  "),
        };
        let spent = notice::spent(&self.spent, self.done, self.will);
        let spent = spent.map_or_else(String::new, |spent| format!("{spent}  "));
        if self.will > 1 || self.spent.calls > 0 {
            bar.set_message(format!("{failed}{spent}{names}"));
        }
    }

    /// Replaces the bar by a line.
    fn end(self, line: &str) {
        if let Some(bar) = self.bar {
            bar.set_style(style("{msg}"));
            bar.finish_with_message(line.to_owned());
        }
    }
}

impl Observer for RunProgress {
    fn notice(&mut self, notice: Notice) {
        let err = self.printer.err;
        tracing::info!(?notice);
        match notice {
            Notice::Warned { warnings } => match warnings.as_slice() {
                [one] => self.printer.warning(one),
                all => self.printer.warning(&format!(
                    "{} warnings about the declarations: `milepost plan` shows them",
                    all.len()
                )),
            },
            Notice::Collisions { stage, collisions } => {
                for warning in collisions::warnings(&stage, &collisions) {
                    self.printer.warning(&warning);
                }
            }
            Notice::OpenFolders { folders } => {
                self.printer.warning(&notice::open_folders(&folders));
            }
            Notice::Stored { notes } => {
                let is_new = |note: &StoredNote| !self.noted.contains(note);
                let new: Vec<StoredNote> =
                    notes.iter().filter(|note| is_new(note)).cloned().collect();
                for line in view::change::params::notes(err, &new, &self.invocation) {
                    self.line(&line);
                }
                self.noted = notes;
            }
            Notice::Recovered { repairs } => {
                for repair in &repairs {
                    self.line(&notice::repaired(err, repair));
                }
            }
            Notice::StageStarted {
                stage,
                description,
                batches,
                will,
            } => {
                self.begin(stage, batches, will, description.as_deref());
            }
            Notice::ServiceStarted { service } => {
                self.line(&notice::service_started(err, &service));
            }
            Notice::ServiceFailed {
                service,
                why,
                printed,
            } => {
                self.printer
                    .say(&notice::service_failed(err, &service, &why, &printed));
            }
            Notice::BatchStarted { batch, .. } => {
                if let Some(stage) = &mut self.stage {
                    stage.running.push(batch);
                    stage.draw();
                }
            }
            Notice::Called { spent, .. } => {
                if let Some(stage) = &mut self.stage {
                    stage.spent += spent;
                    stage.draw();
                }
            }
            Notice::UnexpectedUsage {
                agent,
                estimated,
                reserved,
                charged,
            } => {
                let text = notice::unexpected_usage(&agent, estimated, reserved, charged);
                self.printer.warning(&text);
            }
            Notice::ProviderBatch { stage, update } => {
                self.line(&notice::provider_batch(err, &stage, &update));
            }
            Notice::TryingAgain {
                stage,
                batch,
                attempt,
                outcome,
                wait,
            } => {
                self.printer.say(&notice::trying_again(
                    err, &stage, &batch, attempt, &outcome, wait,
                ));
            }
            Notice::BatchDone {
                stage,
                batch,
                warnings,
                ..
            } => {
                for warning in warnings {
                    self.line(&notice::warning(err, &stage, &batch, &warning));
                }
                self.over(&batch, false);
            }
            Notice::BatchFailed {
                stage,
                batch,
                outcome,
                quarantine,
            } => {
                self.printer.say(&notice::failed(
                    err,
                    &stage,
                    &batch,
                    &outcome,
                    quarantine.as_deref(),
                ));
                self.over(&batch, true);
            }
            Notice::Kept { files } => {
                for line in notice::kept(err, &files) {
                    self.line(&line);
                }
            }
            Notice::StageEnded(report) => {
                let ours = |stage: &mut StageProgress| stage.name == report.stage;
                if let Some(stage) = self.stage.take_if(ours) {
                    let line = notice::ended(err, &report);
                    match stage.bar {
                        Some(_) => stage.end(&line),
                        None => self.line(&line),
                    }
                }
            }
        }
    }
}

/// Returns a bar for several batches, or a spinner for one.
fn bar(will: u64, colour: bool) -> ProgressBar {
    let template = match (will > 1, colour) {
        (true, true) => {
            "{prefix:.bold} {bar:24.green/dim} {pos}/{len}  {rate}{left}{wide_msg:.dim}"
        }
        (true, false) => "{prefix} {bar:24} {pos}/{len}  {rate}{left}{wide_msg}",
        (false, true) => "{prefix:.bold} {spinner:.green} {elapsed}  {wide_msg:.dim}",
        (false, false) => "{prefix} {spinner} {elapsed}  {wide_msg}",
    };
    let bar = ProgressBar::new(will);
    bar.set_style(style(template).progress_chars("━╸─"));
    bar
}

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template);
    style
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .with_key("rate", |state: &ProgressState, to: &mut dyn Write| {
            let rate = state.per_sec();
            // There is nowhere to report an error of drawing.
            let _ = match state.pos() {
                0 => Ok(()),
                _ if rate >= 1.0 => write!(to, "{rate:.1}/s  "),
                _ => write!(to, "{} each  ", seconds(1.0 / rate.max(1e-9))),
            };
        })
        .with_key("left", |state: &ProgressState, to: &mut dyn Write| {
            let _ = match state.pos() {
                done if done == 0 || Some(done) == state.len() => Ok(()),
                _ => write!(to, "{} left  ", seconds(state.eta().as_secs_f64())),
            };
        })
}
