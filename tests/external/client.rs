//! The main pipeline in a temporary folder, a clock that is set, and a client that answers by the embedded rules.

use crate::support::{MAIN_PIPELINE, Project};
use jiff::{SignedDuration, Timestamp};
use milepost_agents::rules::Rules;
use milepost_core::base::clock::Clock;
use milepost_engine::ops::external::{
    LeaseOptions, Leased, NextBatch, Submission, Submitted, next_batch, submit_batch,
};
use milepost_engine::ops::project::Request;
use milepost_engine::ops::run::{Report, RunOptions, Silent, StopFlag, Values, run};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

/// The time when a test begins.
pub const NOW: &str = "2026-11-21T10:00:00Z";

/// A clock that a test sets.
pub struct SetClock(Mutex<Timestamp>);

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

/// The main pipeline in a temporary folder, at a time that the test sets.
pub struct Site {
    project: Project,
    pub clock: Arc<SetClock>,
}

impl Deref for Site {
    type Target = Project;

    fn deref(&self) -> &Project {
        &self.project
    }
}

impl Site {
    /// With an agent `outside` that is external.
    pub fn new() -> Self {
        let site = Self::bare();
        site.take(&MAIN_PIPELINE);
        site.take(&["workspace/inputs"]);
        site.edit("milepost.toml", "default = 50", "default = 15");
        // The reports name the agent: nothing else differs.
        for (path, line) in [
            ("templates/report.md", "Classified by"),
            ("templates/report.xlsx.toml", "Classified by"),
        ] {
            let text = site.read(path);
            let lines = text.lines().filter(|text| !text.contains(line));
            site.write(path, lines.collect::<Vec<_>>().join("\n") + "\n");
        }
        let declared = site.read("milepost.toml");
        let external = "[agents.outside]\nexternal = true";
        site.write("milepost.toml", format!("{declared}\n{external}\n"));
        site
    }

    /// With nothing in it.
    pub fn bare() -> Self {
        Self::of(Project::new(&[]))
    }

    /// Another site with the same files.
    pub fn twin(&self) -> Self {
        Self::of(self.project.copy())
    }

    fn of(project: Project) -> Self {
        Self {
            project,
            clock: Arc::new(SetClock(Mutex::new(NOW.parse().unwrap()))),
        }
    }

    /// Lets time go by.
    pub fn wait(&self, seconds: i64) {
        let mut now = self.clock.0.lock().unwrap();
        *now += SignedDuration::from_secs(seconds);
    }

    /// What commands are asked with, `outside` in the place of the classifier.
    pub fn request(&self) -> Request {
        Request {
            values: agent("classifier=outside"),
            ..self.with_rules()
        }
    }

    /// The same as it is declared.
    pub fn with_rules(&self) -> Request {
        let clock: Arc<dyn Clock> = Arc::clone(&self.clock) as Arc<dyn Clock>;
        Request {
            clock,
            epoch: Some("2026-11-21T00:00:00Z".parse().unwrap()),
            ..Request::new(self.path().to_owned(), BTreeMap::new())
        }
    }

    /// Runs everything, or some targets.
    pub fn run(&self, targets: &[&str]) -> Report {
        run_as(&self.request(), targets)
    }

    pub fn next(&self, client: &str) -> NextBatch {
        let wanted = LeaseOptions {
            client: client.to_owned(),
            ..LeaseOptions::default()
        };
        next_batch(&self.request(), &wanted, &StopFlag::new()).unwrap()
    }

    /// A batch that must be there to lease.
    #[track_caller]
    pub fn lease(&self, client: &str) -> Leased {
        let next = self.next(client);
        let said = format!("{:?}", next.nothing);
        next.leased.unwrap_or_else(|| panic!("{said}"))
    }

    /// Hands in what lies at the output path.
    pub fn submit(&self, lease: &str) -> Submitted {
        self.hand_in(lease, None)
    }

    pub fn hand_in(&self, lease: &str, answer: Option<Value>) -> Submitted {
        let submission = Submission {
            lease: lease.to_owned(),
            client: None,
            answer,
        };
        submit_batch(&self.request(), &submission, &StopFlag::new()).unwrap()
    }

    /// The honest answers to a lease, by the embedded rules.
    pub fn answers(&self, leased: &Leased) -> Vec<Value> {
        let table = self.read("rules/elements.toml");
        let rules = Rules::parse("rules/elements.toml", &table).unwrap();
        let text = std::fs::read_to_string(&leased.input_file).unwrap();
        let questions: Vec<Value> = serde_json::from_str(&text).unwrap();
        let answer = |asked: &Value| {
            let mut answer = rules.answer(&asked["question"]);
            answer["id"] = asked["id"].clone();
            answer
        };
        questions.iter().map(answer).collect()
    }

    /// Answers a lease honestly, at its output path.
    pub fn answer(&self, leased: &Leased) {
        let answers = json!(self.answers(leased));
        std::fs::write(&leased.output_file, answers.to_string()).unwrap();
    }

    /// Answers batches until nothing is left to lease; how many.
    pub fn finish(&self, client: &str) -> u64 {
        let mut count = 0;
        while let Some(leased) = self.next(client).leased {
            self.answer(&leased);
            let told = self.submit(&leased.lease);
            assert!(told.accepted, "{told:#?}");
            count += 1;
        }
        count
    }
}

/// Another agent in the place of one, as `--agent` names it.
pub fn agent(replaced: &str) -> Values {
    Values {
        agents: vec![replaced.to_owned()],
        ..Values::default()
    }
}

/// Runs everything, or some targets, by this request.
pub fn run_as(request: &Request, targets: &[&str]) -> Report {
    let wanted = RunOptions {
        targets: targets.iter().map(ToString::to_string).collect(),
        ..RunOptions::default()
    };
    run(request, &wanted, &mut Silent, &StopFlag::new()).unwrap()
}
