//! `watch`: prints what the watch tells, and runs when it is due, until Ctrl-C.

use super::failure;
use super::print::Printer;
use super::progress::Show;
use super::run_flags::WatchFlags;
use super::signals::{self, INTERRUPTED, STOPPING};
use crate::view;
use crate::view::call::Call;
use crate::watch::{Bell, Due, Pace, Settings, Told, Waits, Watcher};
use milepost_core::model::choice::StoredNote;
use milepost_engine::ops::plan::Plan;
use milepost_engine::ops::project::{OpsError, Request};
use milepost_engine::ops::run::result::RunResult;
use milepost_engine::ops::run::{RunOptions, StopFlag, adopt_orphans, exit_code};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Changes without an end are looked at after so many times the pause that shows an end.
const LONGEST: u32 = 50;

/// How often it looks whether another run has ended.
const RETRY: Duration = Duration::from_millis(500);

/// Watches until Ctrl-C.
///
/// # Errors
/// When there is nothing to watch, or what is asked for cannot be.
pub(crate) fn watch(
    printer: &Printer,
    request: Request,
    options: RunOptions,
    flags: &WatchFlags,
    call: &Call,
) -> Result<u8, OpsError> {
    let pace = Pace {
        quiet: flags.debounce,
        longest: flags.debounce * LONGEST,
        poll: flags.poll,
        retry: RETRY,
    };
    adopt_orphans();
    let bell = Arc::new(Bell::default());
    let only_free = options.until_paid;
    let settings = Settings { options, pace };
    let watcher = Watcher::new(request, settings, Arc::clone(&bell))?;
    let mut face = Face {
        printer,
        call,
        stop: Arc::new(StopFlag::new()),
        is_running: Arc::default(),
        only_free,
        noted: RefCell::default(),
    };
    face.hear_signals(bell);
    face.begins(&watcher);
    face.watch(watcher)
}

/// Shows a watch.
struct Face<'a> {
    printer: &'a Printer,
    call: &'a Call,
    stop: Arc<StopFlag>,
    is_running: Arc<AtomicBool>,
    /// Whether agents that cost something are not asked.
    only_free: bool,
    /// Notes about stored values that were shown.
    noted: RefCell<Vec<StoredNote>>,
}

impl Face<'_> {
    fn hear_signals(&self, bell: Arc<Bell>) {
        let (printer, is_running) = (self.printer.clone(), Arc::clone(&self.is_running));
        let told = move || {
            if is_running.load(Ordering::Relaxed) {
                printer.say(STOPPING);
            }
            bell.end();
        };
        if let Err(error) = signals::listen(Arc::clone(&self.stop), told) {
            let text = format!("Ctrl-C ends the program at once: {error}");
            self.printer.warning(&text);
        }
    }

    fn begins(&self, watcher: &Watcher) {
        let grounds = watcher.grounds();
        let (project, workspace) = (&grounds.project, &grounds.workspace);
        let text = view::watch::begins(self.printer.out, project, workspace, self.call);
        let json = json!({ "event": "watching", "project": project, "workspace": workspace });
        self.tell(json, &text);
    }

    fn watch(&mut self, mut watcher: Watcher) -> Result<u8, OpsError> {
        loop {
            match watcher.due()? {
                Due::End => return Ok(INTERRUPTED),
                Due::Told(told) => self.told(told),
                Due::Run(plan) => {
                    self.plan(&plan);
                    if self.run(&mut watcher) == Some(INTERRUPTED) {
                        return Ok(INTERRUPTED);
                    }
                }
            }
        }
    }

    /// Runs what is due, and gives the exit code that the run alone would have.
    fn run(&self, watcher: &mut Watcher) -> Option<u8> {
        let mut show = Show::new(self.printer, self.call).without(self.noted.take());
        self.is_running.store(true, Ordering::Relaxed);
        let ended = watcher.run(&mut show, &self.stop);
        self.is_running.store(false, Ordering::Relaxed);
        show.end();
        self.noted.replace(show.noted());
        let report = match ended {
            Ok(report) => report?,
            Err(error) => {
                self.wrong(&error);
                return None;
            }
        };
        let code = exit_code(&report);
        if self.printer.json {
            let ended = RunResult::of(&report, view::report::overall(&report));
            self.line(json!({ "event": "ended", "run": json!(ended) }));
        } else {
            let quiet = self.printer.quiet;
            let paint = self.printer.out;
            let text = view::report::summary(paint, &report, self.call, quiet);
            if !quiet || code != 0 {
                self.printer.result(&format!("\n{text}"));
            }
            if self.only_free && report.stages.iter().any(|stage| stage.held.is_some()) {
                self.printer.result(&view::watch::unpaid(paint));
            }
        }
        Some(code)
    }

    fn plan(&self, plan: &Plan) {
        let text = view::plan::changes(self.printer.out, plan, self.call);
        self.tell(
            json!({ "event": "plan", "plan": json!(plan) }),
            &format!("\n{text}"),
        );
    }

    fn told(&self, told: Told) {
        let paint = self.printer.out;
        match told {
            Told::Waits(Waits { failed, trouble }) => {
                let stages = trouble.iter().map(String::as_str);
                let text = view::watch::waits(paint, &failed, stages, self.call);
                let failed = failed
                    .iter()
                    .map(|(stage, batch)| json!({ "stage": stage, "batch": batch }));
                let failed: Vec<Value> = failed.collect();
                let json = json!({ "event": "waiting", "failed": failed, "hindered": trouble });
                self.tell(json, &text);
            }
            Told::Trouble(plan) => self.plan(&plan),
            Told::Wrong(error) => {
                self.wrong(&error);
                self.tell(Value::Null, &view::watch::wrong(paint));
            }
            Told::Busy(runner) => {
                let text = view::watch::busy(paint, &runner);
                self.tell(json!({ "event": "busy", "runner": json!(runner) }), &text);
            }
            Told::Gone(gone) => {
                let paths = gone.iter().map(std::path::PathBuf::as_path);
                let text = view::watch::gone(paint, paths, self.call);
                self.tell(json!({ "event": "gone", "paths": gone }), &text);
            }
            Told::PutOff(pause) => {
                let text = view::watch::put_off(paint, pause);
                let json = json!({ "event": "put_off", "seconds": pause.as_secs_f64() });
                self.tell(json, &text);
            }
            Told::Polls(every, why) => {
                self.printer.warning(&view::watch::polls(every, &why));
            }
        }
    }

    /// Says what is wrong, and goes on.
    fn wrong(&self, error: &OpsError) {
        if self.printer.json {
            self.line(json!({ "event": "wrong", "error": failure::refusal(error) }));
        } else {
            failure::tell(self.printer, error);
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
        self.printer.result(&json.to_string());
    }
}
