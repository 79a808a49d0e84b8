//! The services of a run: started when a stage needs one that does not answer, and ended with the run.

use crate::run::error::RunError;
use crate::run::notice::{Notice, Observer};
use crate::run::record::recorder::Recorder;
use crate::steps::command::{Deadline, StopSignal};
use crate::steps::http::connection::Client;
use crate::steps::http::probe;
use crate::steps::process::program;
use crate::steps::service::{Service, ServiceSpec};
use milepost_agents::http::shown;
use milepost_core::base::duration::show_duration;
use milepost_core::base::path::Root;
use milepost_core::model::event::{Child, Event, EventType};
use milepost_core::model::pipeline::Service as Declared;
use milepost_core::model::stage::Stage;
use milepost_core::plan::options::Timing;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// How often a starting service is checked.
const TICK: Duration = Duration::from_millis(50);

/// The time limit of one check.
const LOOK: Duration = Duration::from_secs(5);

/// The services that this run started.
pub(crate) struct Services<'a> {
    timing: Timing,
    stop: &'a dyn StopSignal,
    running: BTreeMap<String, RunningService>,
    /// Services that failed, and why. No further stage waits for them.
    failed: BTreeMap<String, String>,
}

struct RunningService {
    service: Service,
    child: Child,
}

impl<'a> Services<'a> {
    pub(crate) fn new(timing: Timing, stop: &'a dyn StopSignal) -> Self {
        Self {
            timing,
            stop,
            running: BTreeMap::new(),
            failed: BTreeMap::new(),
        }
    }

    /// Starts the services that a stage needs and waits until they answer. Returns the reason if one is unavailable.
    ///
    /// # Errors
    /// When the disk fails.
    pub(crate) fn need(
        &mut self,
        recorder: &mut Recorder<'_>,
        stage: &Stage,
        client: &Client,
        observer: &mut dyn Observer,
    ) -> Result<Option<String>, RunError> {
        let pipeline = recorder.ctx.pipeline;
        for declared in stage
            .services
            .iter()
            .filter_map(|name| pipeline.services.get(name))
        {
            let scope = Value::Object(recorder.ctx.settings.scope(pipeline));
            let failed = |why: String| format!("the service `{}`: {why}", declared.name);
            let url = match declared.ready.template.render_url(&scope) {
                Ok(url) => url,
                Err(error) => return Ok(Some(failed(error.to_string()))),
            };
            if self.look(client, &url).is_ok() {
                continue;
            }
            if let Some(why) = self.failed.get(&declared.name) {
                return Ok(Some(failed(why.clone())));
            }
            let gone = |running: &RunningService| running.service.ended().is_some();
            if self.running.get(&declared.name).is_some_and(gone) {
                self.running.remove(&declared.name);
            }
            if !self.running.contains_key(&declared.name)
                && let Err(why) = self.start(recorder, declared, &scope, observer)?
            {
                self.failed.insert(declared.name.clone(), why.clone());
                return Ok(Some(failed(why)));
            }
            if let Err(why) = self.wait(declared, client, &url) {
                self.failed.insert(declared.name.clone(), why.clone());
                let running = self.running.remove(&declared.name);
                let printed = running.map(|running| running.service.printed());
                observer.notice(Notice::ServiceFailed {
                    service: declared.name.clone(),
                    why: why.clone(),
                    printed: printed.unwrap_or_default(),
                });
                return Ok(Some(failed(why)));
            }
        }
        Ok(None)
    }

    fn look(&self, client: &Client, url: &str) -> Result<(), String> {
        let stop = self.stop;
        probe(client, url, LOOK.min(self.timing.ready), &|| {
            stop.stopping()
        })
    }

    fn start(
        &mut self,
        recorder: &mut Recorder<'_>,
        declared: &Declared,
        scope: &Value,
        observer: &mut dyn Observer,
    ) -> Result<Result<(), String>, RunError> {
        let ctx = recorder.ctx;
        let name = &declared.name;
        let project = ctx.files.folder(Root::Project);
        // No stage name starts with a dot.
        let folder = ctx.layout.scratch().join(".services").join(name);
        ctx.disk.private().create_dir_all(&folder)?;
        let mut write = |name: &str, bytes: &[u8]| {
            let path = folder.join(name);
            let written = ctx.disk.write_swap(&path, bytes);
            written.map_err(std::io::Error::other)?;
            Ok(path)
        };
        let (command, shell) = (&declared.command, declared.shell);
        let program = match program(command, shell, scope, project, &mut write) {
            Ok(program) => program,
            Err(outcome) => return Ok(Err(outcome.message)),
        };
        let mut environment = ctx.environment.clone();
        for name in &declared.env {
            if let Some(value) = ctx.settings.env.get(name) {
                environment.insert(name.clone(), value.clone());
            }
        }
        let token = format!("{}/.services/{name}", recorder.run_id());
        let shown = program.iter().map(|word| ctx.redactor.text(word).into());
        let shown = shown.collect();
        let started = Service::start(ServiceSpec {
            program,
            folder,
            environment: environment.into_iter().collect(),
            token: token.clone(),
            grace: self.timing.grace,
        });
        let service = match started {
            Ok(service) => service,
            Err(why) => return Ok(Err(why)),
        };
        let process = service.started();
        let child = Child {
            stage: String::new(),
            batch: name.clone(),
            pid: process.pid,
            start_time: process.start_time,
            boot_id: process.boot_id.clone(),
            token,
        };
        let running = RunningService { service, child };
        record(recorder, &running, false)?;
        self.running.insert(name.clone(), running);
        observer.notice(Notice::ServiceStarted {
            service: name.clone(),
            program: shown,
        });
        Ok(Ok(()))
    }

    fn wait(&self, declared: &Declared, client: &Client, url: &str) -> Result<(), String> {
        let end = Deadline::after(self.timing.ready);
        loop {
            let Err(why) = self.look(client, url) else {
                return Ok(());
            };
            // The batches will not start.
            if self.stop.stopping() {
                return Ok(());
            }
            let url = shown(url);
            let running = self.running.get(&declared.name);
            if let Some(how) = running.and_then(|running| running.service.ended()) {
                return Err(format!("{how} before {url} answered"));
            }
            if end.is_over() {
                let time = show_duration(self.timing.ready);
                return Err(format!("{url} did not answer within {time}: {why}"));
            }
            self.stop.wait(TICK);
        }
    }

    /// Records running services in a new segment of the journal, so that the next run can end them.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub(crate) fn note(&self, recorder: &mut Recorder<'_>) -> Result<(), RunError> {
        for running in self.running.values() {
            record(recorder, running, true)?;
        }
        Ok(())
    }

    /// Ends all services.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub(crate) fn end(&mut self, recorder: &mut Recorder<'_>) -> Result<(), RunError> {
        let running = std::mem::take(&mut self.running);
        for running in running.values() {
            running.service.ask_to_end();
        }
        for (name, running) in running {
            let token = running.child.token.clone();
            drop(running);
            let summary = format!("the service {name} was stopped");
            let event = Event::ServiceEnded {
                service: name,
                token,
            };
            recorder.record(EventType::Complete, "milepost", event, summary)?;
        }
        Ok(())
    }
}

fn record(
    recorder: &mut Recorder<'_>,
    running: &RunningService,
    again: bool,
) -> Result<(), RunError> {
    let child = running.child.clone();
    let (name, pid) = (&child.batch, child.pid);
    let summary = if again {
        format!("the service {name} continues as process {pid}")
    } else {
        format!("the service {name} was started as process {pid}")
    };
    let event = Event::ServiceStarted { child, again };
    recorder.record(EventType::Invoke, "milepost", event, summary)
}
