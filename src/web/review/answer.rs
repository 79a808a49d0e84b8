//! Batches of external agents, answered by a person.

use super::form::{FormField, answer as answer_of, fields, name};
use super::reviewer::{remember, reviewer};
use crate::page::value;
use crate::view::external as sentences;
use crate::view::text::words::{awaits, place};
use crate::web::request::PageRequest;
use crate::web::response::{PageResponse, WebError};
use crate::web::site::Site;
use hyper::StatusCode;
use milepost_engine::ops::external::{
    LeaseOptions, LeasedWork, Submission, Submitted, leased_work, next_batch, open_leases,
    release_batch, submit_batch,
};
use milepost_engine::ops::project::OpsError;
use milepost_engine::ops::run::StopFlag;
use minijinja::context;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a person has a batch, in seconds.
const LEASED: u64 = 4 * 3600;

/// How often the leases are tried, and the time between two tries: clients have them for a moment, or while a batch is built.
const TRIES: usize = 20;
const PAUSE: Duration = Duration::from_millis(100);

/// What is wrong with an answer, by the names of fields; of the whole answer under an empty one.
type ProblemsByField = BTreeMap<String, Vec<String>>;

/// A question with its form.
#[derive(Serialize)]
struct QuestionForm {
    id: String,
    /// The question as JSON; empty if the prompt is the question.
    text: String,
    /// The properties of the question that are a line of text or a number.
    facts: Vec<(String, String)>,
    /// The name of the whole answer in the form.
    whole: String,
    fields: Vec<FormField>,
}

/// Shows the batches that wait for an answer, or the form of a leased one.
pub(in crate::web) fn answer(site: &Site, request: &PageRequest) -> Result<PageResponse, WebError> {
    match request.query("lease") {
        Some(lease) => match leased_work(&site.request, lease)? {
            Some(work) => form(site, &work, &ProblemsByField::new(), request),
            None => {
                let notice = "This batch is no longer leased: it was answered or released, or the lease expired.";
                list(site, request, Some(notice.to_owned()))
            }
        },
        None => list(site, request, None),
    }
}

/// Leases the next batch to the person, and shows its form.
pub(in crate::web) fn take(site: &Site, request: &PageRequest) -> Result<PageResponse, WebError> {
    let who = request.form("who").unwrap_or_default().trim().to_owned();
    let options = LeaseOptions {
        stage: request.form("stage").map(str::to_owned),
        client: who.clone(),
        owner: None,
        seconds: Some(LEASED),
        with_prompt: false,
    };
    let next = match patiently(site, |stop| next_batch(&site.request, &options, stop)) {
        Ok(next) => next,
        Err(error) => return Ok(remember(busy(site, request, error)?, &who)),
    };
    let shown = match (&next.leased, &next.nothing) {
        (Some(leased), _) => {
            let url = site.url("answer", &[("lease", &leased.lease)]);
            PageResponse::see(&url)
        }
        (None, nothing) => {
            let nothing = nothing.as_ref().map(sentences::nothing);
            let notice = nothing.map(|advice| format!("{}: {}", advice.message, advice.hint));
            list(site, request, notice)?
        }
    };
    Ok(remember(shown, &who))
}

/// Submits the answer to a leased batch. What is wrong is shown beside its field, and right answers are kept.
pub(in crate::web) fn submit(site: &Site, request: &PageRequest) -> Result<PageResponse, WebError> {
    let work = leased_of(site, request)?;
    let mut problems = ProblemsByField::new();
    let answer = match read(&work, request) {
        Ok(answer) => answer,
        Err(wrong) => {
            for (field, problem) in wrong {
                problems.entry(field).or_default().push(problem);
            }
            let again = form(site, &work, &problems, request)?;
            return Ok(again.with_status(StatusCode::UNPROCESSABLE_ENTITY));
        }
    };
    let submission = Submission {
        lease: work.lease.lease.clone(),
        client: None,
        owner: None,
        answer: Some(answer),
    };
    let building = site.runs.answer();
    let submitted = submit_batch(&site.request, &submission, &building.stop);
    drop(building);
    let submitted = match submitted {
        Ok(submitted) => submitted,
        Err(error) => {
            let of_all = problems.entry(String::new()).or_default();
            of_all.push(error.to_string());
            let again = form(site, &work, &problems, request)?;
            return Ok(again.with_status(WebError::from(error).status()));
        }
    };
    if submitted.accepted {
        let (stage, batch) = (work.lease.stage.as_str(), work.lease.batch.as_str());
        let done = place(stage, batch);
        let parameters = [("stage", stage), ("done", done.as_str())];
        return Ok(PageResponse::see(&site.url("answer", &parameters)));
    }
    sort(&work, &submitted, &mut problems);
    let again = form(site, &work, &problems, request)?;
    Ok(again.with_status(StatusCode::UNPROCESSABLE_ENTITY))
}

/// Releases a leased batch, for another client.
pub(in crate::web) fn leave(site: &Site, request: &PageRequest) -> Result<PageResponse, WebError> {
    let work = leased_of(site, request)?;
    let lease = work.lease.lease.as_str();
    let release = |stop: &StopFlag| release_batch(&site.request, lease, None, None, stop);
    let released = match patiently(site, release) {
        Ok(released) => released,
        Err(error) => return busy(site, request, error),
    };
    let notice = released.refused.as_ref().map(sentences::refusal);
    let notice = notice.map_or_else(
        || {
            let left = place(&work.lease.stage, &work.lease.batch);
            format!("{left} waits for an answer again.")
        },
        |advice| format!("{}: {}", advice.message, advice.hint),
    );
    list(site, request, Some(notice))
}

/// Calls a function that needs the leases, and again for a while if another client has them.
fn patiently<T>(
    site: &Site,
    call: impl Fn(&StopFlag) -> Result<T, OpsError>,
) -> Result<T, OpsError> {
    let (at_once, in_flight) = (StopFlag::new(), site.runs.answer());
    at_once.set();
    for _ in 1..TRIES {
        match call(&at_once) {
            Err(OpsError::LeasesBusy) if !in_flight.stop.is_set() => in_flight.stop.pause(PAUSE),
            done => return done,
        }
    }
    call(&at_once)
}

/// Shows the list with a notice that a batch or run is in progress.
///
/// # Errors
/// If it is another error.
fn busy(site: &Site, request: &PageRequest, error: OpsError) -> Result<PageResponse, WebError> {
    if !matches!(error, OpsError::LeasesBusy | OpsError::Lock(_)) {
        return Err(error.into());
    }
    let page = list(site, request, Some(error.to_string()))?;
    Ok(page.with_status(StatusCode::CONFLICT))
}

fn leased_of(site: &Site, request: &PageRequest) -> Result<LeasedWork, WebError> {
    let lease = request.form("lease").unwrap_or_default();
    let work = leased_work(&site.request, lease)?;
    work.ok_or_else(|| {
        WebError::Wrong(
            "this batch is no longer leased: take it again and submit the same answer".to_owned(),
        )
    })
}

/// Returns the schema of an answer to a question, or of the whole answer if there are no questions.
fn schema_of(work: &LeasedWork) -> Option<&Value> {
    let schema = work.schema.as_ref()?;
    if work.questions.is_empty() {
        Some(schema)
    } else {
        Some(&schema["items"])
    }
}

/// Returns the ids of the questions; one empty id if the prompt is the question.
fn ids(work: &LeasedWork) -> Vec<&str> {
    if work.questions.is_empty() {
        return vec![""];
    }
    let questions = work.questions.iter();
    questions.map(|question| question.id.as_str()).collect()
}

/// Reads the answer from the form.
fn read(work: &LeasedWork, request: &PageRequest) -> Result<Value, Vec<(String, String)>> {
    let (mut answers, mut problems) = (Vec::new(), Vec::new());
    for id in ids(work) {
        let fields = fields(schema_of(work), work.lease.is_json, id);
        match answer_of(&fields, id, |name| request.form(name)) {
            Ok(answer) => answers.extend(answer),
            Err(wrong) => problems.extend(wrong),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    if work.questions.is_empty() {
        return Ok(answers.pop().unwrap_or(Value::Null));
    }
    Ok(Value::Array(answers))
}

/// Sorts what is wrong with an answer by the fields that it is about.
fn sort(work: &LeasedWork, submitted: &Submitted, problems: &mut ProblemsByField) {
    if let Some(refused) = &submitted.refused {
        let advice = sentences::refusal(refused);
        let of_all = problems.entry(String::new()).or_default();
        of_all.push(format!("{}: {}", advice.message, advice.hint));
    }
    for violation in &submitted.violations {
        let mut parts = violation.pointer.split('/').skip(1);
        let id = violation.id.as_deref().unwrap_or_default();
        if !work.questions.is_empty() {
            // The first part is the place in the list of answers.
            parts.next();
        }
        let is_known = ids(work).contains(&id);
        let field = match parts.next() {
            Some(property) if is_known => {
                let field = name(id, &property.replace("~1", "/").replace("~0", "~"));
                let all = fields(schema_of(work), work.lease.is_json, id);
                let is_field = all.iter().any(|one| one.is_named(&field));
                if is_field { field } else { name(id, "") }
            }
            _ if is_known && !id.is_empty() => name(id, ""),
            _ => String::new(),
        };
        let advice = sentences::violation(violation);
        let text = format!("{}: {}", violation.message, advice.hint);
        problems.entry(field).or_default().push(text);
    }
}

fn form(
    site: &Site,
    work: &LeasedWork,
    problems: &ProblemsByField,
    request: &PageRequest,
) -> Result<PageResponse, WebError> {
    let questions = ids(work).into_iter().enumerate().map(|(at, id)| {
        let question = work.questions.get(at).map(|asked| &asked.question);
        QuestionForm {
            id: id.to_owned(),
            text: question
                .and_then(|question| serde_json::to_string_pretty(question).ok())
                .unwrap_or_default(),
            facts: question.map(facts).unwrap_or_default(),
            whole: name(id, ""),
            fields: fields(schema_of(work), work.lease.is_json, id),
        }
    });
    let questions: Vec<QuestionForm> = questions.collect();
    let names = questions.iter().flat_map(|question| &question.fields);
    let filled: BTreeMap<String, &str> = names
        .filter_map(|field| Some((field.name().to_owned(), request.form(field.name())?)))
        .collect();
    let of = place(&work.lease.stage, &work.lease.batch);
    let data = context! {
        work => value(work),
        questions => value(questions),
        filled => value(filled),
        problems => value(problems),
        of => of.as_str(),
    };
    Ok(site.page("answer.html", "review", &format!("Answer {of}"), data)?)
}

/// Returns the properties of a question that are a line of text or a number.
fn facts(question: &Value) -> Vec<(String, String)> {
    let fields = question.as_object().into_iter().flatten();
    let shown = fields.filter_map(|(name, value)| {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(is) => is.to_string(),
            _ => return None,
        };
        Some((name.clone(), text))
    });
    shown.collect()
}

/// Lists the stages that wait for an external agent, and the leased batches.
fn list(
    site: &Site,
    request: &PageRequest,
    notice: Option<String>,
) -> Result<PageResponse, WebError> {
    let now = site.live.overview()?;
    let stages = now.status.stages.iter().filter_map(|stage| {
        let due = stage.due.as_ref()?;
        Some((stage.stage.clone(), awaits(due.awaits.as_ref()?)))
    });
    let stages: Vec<(String, String)> = stages.collect();
    let data = context! {
        stages => value(stages),
        is_checked => now.is_checked,
        leases => value(open_leases(&site.request)?),
        who => request.form("who").map_or_else(|| reviewer(site, request), str::to_owned),
        done => request.query("done"),
        at => now.at,
        notice,
    };
    let page = site.page("answers.html", "review", "Batches to answer", data)?;
    Ok(page)
}
