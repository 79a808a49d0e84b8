//! `watch`: prints the events of a watch, and runs when it is due, until Ctrl-C.

use super::progress::RunProgress;
use crate::cli::failure;
use crate::cli::flags::WatchFlags;
use crate::cli::print::Printer;
use crate::cli::signals::{self, INTERRUPTED, STOPPING};
use crate::view;
use crate::watch::{Notify, Pace, WatchAction, WatchEvent, WatchSettings, Watcher};
use milepost_core::model::choice::StoredNote;
use milepost_core::plan::options::invocation::Invocation;
use milepost_engine::ops::exit_code::exit_code;
use milepost_engine::ops::plan::Plan;
use milepost_engine::ops::project::{OpsError, Request};
use milepost_engine::ops::run::result::RunResult;
use milepost_engine::ops::run::{RunOptions, StopFlag, adopt_orphans};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Changes without a pause lead to a scan after this many times `--debounce`.
const LONGEST: u32 = 50;

/// The interval between checks whether another run has ended.
const RETRY: Duration = Duration::from_millis(500);

/// The time after which a run continues that waits for a server.
const RECONNECT: Duration = Duration::from_mins(1);

/// Watches until Ctrl-C.
///
/// # Errors
/// If there is no project, or the options do not fit it.
pub(crate) fn watch(
    printer: &Printer,
    request: Request,
    options: RunOptions,
    flags: &WatchFlags,
) -> Result<u8, OpsError> {
    let pace = Pace {
        quiet: flags.debounce,
        longest: flags.debounce * LONGEST,
        poll: flags.poll,
        retry: RETRY,
        reconnect: RECONNECT,
    };
    adopt_orphans();
    let invocation = &request.invocation.clone();
    let notify = Arc::new(Notify::default());
    let only_free = options.until_paid;
    let settings = WatchSettings { options, pace };
    let watcher = Watcher::new(request, settings, Arc::clone(&notify))?;
    let mut watch = WatchPrinter {
        printer,
        invocation,
        stop: Arc::new(StopFlag::new()),
        is_running: Arc::default(),
        only_free,
        verbose: flags.verbose,
        noted: RefCell::default(),
    };
    watch.hear_signals(notify);
    watch.begins(&watcher);
    watch.watch(watcher)
}

/// Prints a watch.
struct WatchPrinter<'a> {
    printer: &'a Printer,
    invocation: &'a Invocation,
    stop: Arc<StopFlag>,
    is_running: Arc<AtomicBool>,
    /// True if paid agents are not called.
    only_free: bool,
    /// True if commands and their output are shown.
    verbose: bool,
    /// Notes about stored values that were printed.
    noted: RefCell<Vec<StoredNote>>,
}

impl WatchPrinter<'_> {
    fn hear_signals(&self, notify: Arc<Notify>) {
        let (printer, is_running) = (self.printer.clone(), Arc::clone(&self.is_running));
        let on_signal = move || {
            if is_running.load(Ordering::Relaxed) {
                printer.say(STOPPING);
            }
            notify.end();
        };
        if let Err(error) = signals::listen(Arc::clone(&self.stop), on_signal) {
            self.printer
                .warning(&format!("Ctrl-C ends the program at once: {error}"));
        }
    }

    fn begins(&self, watcher: &Watcher) {
        let roots = watcher.roots();
        let (project, workspace) = (&roots.project, &roots.workspace);
        let text = view::run::watch::begins(self.printer.out, project, workspace, self.invocation);
        let json = json!({ "event": "watching", "project": project, "workspace": workspace });
        self.tell(json, &text);
    }

    fn watch(&mut self, mut watcher: Watcher) -> Result<u8, OpsError> {
        loop {
            match watcher.next()? {
                WatchAction::End => return Ok(INTERRUPTED),
                WatchAction::Report(event) => self.event(event),
                WatchAction::Run(plan) => {
                    self.plan(&plan);
                    if self.run(&mut watcher) == Some(INTERRUPTED) {
                        return Ok(INTERRUPTED);
                    }
                }
            }
        }
    }

    /// Runs what is due, and returns the exit code that the run alone would have.
    fn run(&self, watcher: &mut Watcher) -> Option<u8> {
        let progress = RunProgress::new(self.printer, self.invocation).without(self.noted.take());
        let mut progress = progress.verbose(self.verbose);
        self.is_running.store(true, Ordering::Relaxed);
        let ended = watcher.run(&mut progress, &self.stop);
        self.is_running.store(false, Ordering::Relaxed);
        progress.end();
        self.noted.replace(progress.noted());
        let report = match ended {
            Ok(report) => report?,
            Err(error) => {
                self.wrong(&error);
                return None;
            }
        };
        let code = exit_code(&report);
        if self.printer.json {
            let ended = RunResult::of(&report, view::run::summary::overall(&report));
            self.line(json!({ "event": "ended", "run": json!(ended) }));
        } else {
            let quiet = self.printer.quiet;
            let style = self.printer.out;
            let text = view::run::summary::summary(style, &report, self.invocation, quiet);
            if !quiet || code != 0 {
                self.printer.result(&format!("\n{text}"));
            }
            if self.only_free && report.stages.iter().any(|stage| stage.held.is_some()) {
                self.printer.result(&view::run::watch::unpaid(style));
            }
        }
        Some(code)
    }

    fn plan(&self, plan: &Plan) {
        let text = view::plan::changes(self.printer.out, plan, self.invocation);
        let json = json!({ "event": "plan", "plan": json!(plan) });
        self.tell(json, &format!("\n{text}"));
    }

    fn event(&self, event: WatchEvent) {
        let style = self.printer.out;
        match event {
            WatchEvent::Idle(unresolved) => {
                let text = view::run::watch::idle(style, &unresolved, self.invocation);
                let failed = unresolved.failed.iter();
                let failed = failed.map(|(stage, batch)| json!({ "stage": stage, "batch": batch }));
                let json = json!({
                    "event": "waiting",
                    "failed": failed.collect::<Vec<Value>>(),
                    "hindered": unresolved.trouble,
                    "next_run": unresolved.next_run.map(|wait| wait.as_secs_f64()),
                });
                self.tell(json, &text);
            }
            WatchEvent::NeedsPerson(plan) => {
                self.plan(&plan);
                if self.only_free && plan.stages.iter().any(|stage| stage.money.is_some()) {
                    self.tell(Value::Null, &view::run::watch::unpaid(style));
                }
            }
            WatchEvent::Invalid(error) => {
                self.wrong(&error);
                self.tell(Value::Null, &view::run::watch::wrong(style));
            }
            WatchEvent::Busy(runner) => {
                let text = view::run::watch::busy(style, &runner);
                self.tell(json!({ "event": "busy", "runner": json!(runner) }), &text);
            }
            WatchEvent::Missing(gone) => {
                let paths = gone.iter().map(std::path::PathBuf::as_path);
                let text = view::run::watch::gone(style, paths, self.invocation);
                self.tell(json!({ "event": "gone", "paths": gone }), &text);
            }
            WatchEvent::Delayed(pause) => {
                let text = view::run::watch::put_off(style, pause);
                let json = json!({ "event": "put_off", "seconds": pause.as_secs_f64() });
                self.tell(json, &text);
            }
            WatchEvent::Polling(every, why) => {
                self.printer.warning(&view::run::watch::polls(every, &why));
            }
        }
    }

    /// Prints an error, and continues.
    fn wrong(&self, error: &OpsError) {
        if self.printer.json {
            self.line(json!({ "event": "wrong", "error": failure::refusal(error) }));
        } else {
            failure::print(self.printer, error);
        }
    }

    /// A line for programs, or lines for people.
    fn tell(&self, json: Value, text: &str) {
        if self.printer.json {
            if !json.is_null() {
                self.line(json);
            }
        } else if !self.printer.quiet {
            self.printer.result(text);
        }
    }

    fn line(&self, json: Value) {
        self.printer.result_line(&json);
    }
}
