//! Prints the progress of a run: bars on a terminal, lines elsewhere, only problems with `--quiet`.

use crate::cli::print::Printer;
use crate::cli::run::ask;
use crate::view;
use crate::view::run::bars::{RunBar, StageBar};
use crate::view::run::notice;
use crate::view::text::collisions;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use milepost_core::model::choice::StoredNote;
use milepost_core::model::executor::ExecutorName;
use milepost_core::model::outcome::OutcomeKind;
use milepost_core::plan::options::invocation::Invocation;
use milepost_engine::ops::run::{ExpectedStage, Notice, Observer, Repair, Stopwatch};
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The shortest time between two progress lines of a stage.
const BETWEEN_LINES: Duration = Duration::from_secs(5);

/// The shortest time between two lines of the same server that cannot be reached.
const BETWEEN_REFUSALS: Duration = Duration::from_mins(1);

/// Prints the progress of a run.
pub(crate) struct RunProgress {
    printer: Printer,
    invocation: Invocation,
    noted: Vec<StoredNote>,
    has_suggested_jobs: bool,
    /// The last failure that was printed before another attempt.
    refused: Option<(String, Stopwatch)>,
    /// True if commands and their output are shown.
    verbose: bool,
    run: Drawn<RunBar>,
    since: Stopwatch,
    /// The bar of the whole run.
    total: Option<ProgressBar>,
    stage: Option<StageProgress>,
    /// The current stage with the time since it started, for the bar of the run.
    current: Drawn<Option<CurrentStage>>,
}

/// The content of a bar, which the terminal redraws.
type Drawn<T> = Arc<Mutex<T>>;

/// The bar of the current stage, with its start.
type CurrentStage = (Drawn<StageBar>, Stopwatch);

/// The current stage.
struct StageProgress {
    shown: Drawn<StageBar>,
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
            has_suggested_jobs: false,
            refused: None,
            verbose: false,
            run: Drawn::default(),
            since: Stopwatch::start(),
            total: None,
            stage: None,
            current: Drawn::default(),
        }
    }

    /// Also shows the commands of batches, and their output.
    pub(crate) fn verbose(mut self, verbose: bool) -> Self {
        self.verbose = verbose;
        self
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

    /// Removes the bars: the summary repeats their content.
    pub(crate) fn end(&mut self) {
        self.stage = None;
        self.total = None;
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

    /// Draws the bar of the whole run, below those of its stages.
    fn begin_run(&mut self, stages: Vec<ExpectedStage>) {
        let is_drawn = stages.len() > 1;
        *lock(&self.run) = RunBar { stages, ended: 0 };
        if let Some(bars) = self.printer.screen.bars().filter(|_| is_drawn) {
            let (style, since) = (self.printer.err, self.since);
            let (run, current) = (Arc::clone(&self.run), Arc::clone(&self.current));
            let line = move |_: usize| {
                let current = lock(&current).clone();
                let stage = current.map(|(shown, since)| (lock(&shown).clone(), since.elapsed()));
                let stage = stage.as_ref().map(|(shown, elapsed)| (shown, *elapsed));
                lock(&run).line(style, columns(), since.elapsed(), stage)
            };
            self.total = Some(drawn(bars.add(ProgressBar::new_spinner()), line));
        }
    }

    fn begin(&mut self, bar: StageBar, batches: u64) {
        let bars = self.printer.screen.bars().cloned();
        if bars.is_none() {
            let about = Some(bar.about.as_str()).filter(|about| !about.is_empty());
            self.line(&notice::started(
                self.printer.err,
                &bar.name,
                batches,
                bar.will,
                about,
            ));
        }
        let since = Stopwatch::start();
        let shown = Arc::new(Mutex::new(bar));
        *lock(&self.current) = Some((Arc::clone(&shown), since));
        let bar = bars.map(|bars| {
            let (style, of_line) = (self.printer.err, Arc::clone(&shown));
            let line = move |tick: usize| {
                let spinner = SPINNER[tick % SPINNER.len()];
                lock(&of_line).line(style, columns(), since.elapsed(), spinner)
            };
            let bar = ProgressBar::new_spinner();
            let bar = match &self.total {
                Some(total) => bars.insert_before(total, bar),
                None => bars.add(bar),
            };
            drawn(bar, line)
        });
        self.stage = Some(StageProgress {
            shown,
            since,
            said: since,
            bar,
        });
    }

    /// Changes what is shown of the current stage.
    fn change(&self, change: impl FnOnce(&mut StageBar)) {
        if let Some(stage) = &self.stage {
            change(&mut lock(&stage.shown));
        }
    }

    /// Counts a batch of the current stage that ended.
    fn over(&mut self, batch: &str, failed: bool) {
        let err = self.printer.err;
        let elapsed = self.stage.as_ref().map(|stage| stage.since.elapsed());
        self.change(|shown| {
            shown.done += 1;
            shown.last = elapsed.unwrap_or_default();
            shown.failed += u64::from(failed);
            shown.running.retain(|running| running != batch);
        });
        let Some(stage) = &mut self.stage else { return };
        let shown = lock(&stage.shown);
        if stage.bar.is_none() && stage.said.elapsed() >= BETWEEN_LINES && shown.done < shown.will {
            stage.said = Stopwatch::start();
            let halfway = notice::Halfway {
                stage: &shown.name,
                done: shown.done,
                will: shown.will,
                failed: shown.failed,
                spent: shown.spent,
                left: shown.left(stage.since.elapsed()),
            };
            let text = notice::halfway(err, &halfway);
            drop(shown);
            self.line(&text);
        }
    }
}

impl StageProgress {
    /// Replaces the bar by a line.
    fn end(self, line: &str) {
        if let Some(bar) = self.bar {
            bar.set_style(style("{wide_msg}"));
            bar.finish_with_message(line.to_owned());
        }
    }
}

impl Observer for RunProgress {
    fn wants_output(&self) -> bool {
        self.verbose
    }

    fn leaves_jobs(&mut self, executor: ExecutorName, jobs: u64) -> bool {
        self.end();
        ask::leaves_jobs(&self.printer, executor, jobs)
    }

    #[expect(clippy::too_many_lines)]
    fn notice(&mut self, notice: Notice) {
        let err = self.printer.err;
        match notice {
            Notice::Warned { warnings } => match warnings.as_slice() {
                [one] => self.printer.warning(one),
                all => self.printer.warning(&format!(
                    "{} warnings about the declarations: `{}` shows them",
                    all.len(),
                    self.invocation.line(&["plan"])
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
            Notice::WaitingForRun { command, pid } => {
                self.line(&notice::waiting_for_run(&command, pid));
            }
            Notice::Recovered { repairs } => {
                for repair in &repairs {
                    match repair {
                        Repair::StuckScratch { folder, problem } => {
                            self.printer
                                .warning(&notice::stuck_scratch(folder, problem));
                        }
                        _ => self.line(&notice::repaired(err, repair)),
                    }
                }
            }
            Notice::RunStarted { stages } => self.begin_run(stages),
            Notice::StageStarted {
                stage,
                description,
                batches,
                will,
                up_to_date,
            } => {
                let bar = StageBar {
                    name: stage,
                    about: description.unwrap_or_default(),
                    up_to_date,
                    will,
                    ..StageBar::default()
                };
                self.begin(bar, batches);
            }
            Notice::ServiceStarted { service, program } => {
                self.line(&notice::service_started(err, &service));
                if self.verbose {
                    self.line(&notice::command(err, "", &service, &program));
                }
            }
            Notice::CommandStarted {
                stage,
                batch,
                program,
            } => self.line(&notice::command(err, &stage, &batch, &program)),
            Notice::Printed { stage, batch, text } => {
                self.line(&notice::printed(err, &stage, &batch, &text));
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
                self.change(|shown| shown.running.push(batch));
            }
            Notice::Called { spent, .. } => {
                self.change(|shown| shown.spent += spent);
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
            Notice::OneAtATime {
                stage,
                waiting,
                mean,
            } => {
                if !std::mem::replace(&mut self.has_suggested_jobs, true) {
                    let mut faster = self.invocation.clone();
                    faster.options.jobs = std::num::NonZeroU16::new(8);
                    let command = faster.next_run();
                    self.line(&notice::one_at_a_time(err, &stage, waiting, mean, &command));
                }
            }
            Notice::ProviderBatch { stage, update } => {
                self.line(&notice::provider_batch(err, &stage, &update));
            }
            Notice::JobsSubmitted {
                stage,
                executor,
                id,
                jobs,
                batches,
            } => {
                self.line(&notice::submitted(
                    err,
                    &stage,
                    executor,
                    &id,
                    (jobs, batches),
                ));
            }
            Notice::Waiting { stage, why } => self.printer.warning(&format!("{stage}: {why}")),
            Notice::TryingAgain {
                stage,
                batch,
                attempt,
                outcome,
                wait,
            } => {
                // Calls of a server that cannot be reached have one line a minute.
                let is_new = outcome.kind != OutcomeKind::Connect
                    || (self.refused.as_ref()).is_none_or(|(message, since)| {
                        *message != outcome.message || since.elapsed() >= BETWEEN_REFUSALS
                    });
                if is_new {
                    self.printer.say(&notice::trying_again(
                        err, &stage, &batch, attempt, &outcome, wait,
                    ));
                    self.refused = Some((outcome.message, Stopwatch::start()));
                }
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
            Notice::Kept { mut files } => {
                if self.printer.quiet {
                    files.retain(|file| file.was.is_by_hand());
                }
                for line in notice::kept(err, &files) {
                    self.printer.say(&line);
                }
            }
            Notice::StageEnded(report) => {
                lock(&self.run).ended += 1;
                *lock(&self.current) = None;
                let ours = |stage: &mut StageProgress| lock(&stage.shown).name == report.stage;
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

/// The frames of a spinner.
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// The time between two drawings of a bar.
const FRAME: Duration = Duration::from_millis(100);

/// Draws a bar as the line that `line` returns for the number of the frame.
fn drawn(
    bar: ProgressBar,
    line: impl Fn(usize) -> String + Clone + Send + Sync + 'static,
) -> ProgressBar {
    let line = move |state: &ProgressState, to: &mut dyn Write| {
        let frame = state.elapsed().as_millis() / FRAME.as_millis();
        // There is nowhere to report an error of drawing.
        let _ = write!(to, "{}", line(frame as usize));
    };
    bar.set_style(style("{line}").with_key("line", line));
    bar.enable_steady_tick(FRAME);
    bar
}

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template);
    style.unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// Returns the width of the terminal that bars are drawn on.
fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    let width = size.map_or(0, |size| usize::from(size.ws_col));
    if width == 0 { 80 } else { width }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
