//! Leases that are open, with what was asked: for a page, which forgets them between requests.

use crate::ops::project::error::OpsError;
use crate::ops::project::open::open;
use crate::ops::project::request::Request;
use jiff::Timestamp;
use milepost_store::store::leases::{Lease, LeaseReader, LeaseState};
use milepost_store::store::read;
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

/// A lease that is open and belongs to every client that knows its id.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OpenLease {
    /// The id of the lease.
    pub lease: String,
    /// The stage.
    pub stage: String,
    /// The batch; empty for the only one of its stage.
    pub batch: String,
    /// The client that holds it.
    pub client: String,
    /// When it expires, in UTC.
    pub expires: Timestamp,
    /// True if the answer is JSON.
    pub is_json: bool,
}

/// What is asked under a lease.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeasedWork {
    /// The lease.
    pub lease: OpenLease,
    /// The agent that the client answers for.
    pub agent: String,
    /// The questions; empty if the prompt is the question.
    pub questions: Vec<LeasedQuestion>,
    /// The prompt that a model would get, with the questions and their ids.
    pub prompt: String,
    /// The JSON Schema of the whole answer.
    pub schema: Option<Value>,
}

/// A question of a leased batch.
#[derive(Debug, Clone, PartialEq, Serialize, serde::Deserialize)]
pub struct LeasedQuestion {
    /// Its id.
    pub id: String,
    /// The question.
    pub question: Value,
}

/// Returns the open leases that every client may use.
///
/// # Errors
/// When there is no project, or the disk fails.
pub fn open_leases(request: &Request) -> Result<Vec<OpenLease>, OpsError> {
    let opened = open(request)?;
    if !opened.workspace.is_made {
        return Ok(Vec::new());
    }
    let leases = LeaseReader::of(&opened.workspace.layout);
    let now = opened.clock.now();
    let all = leases.all()?.into_iter();
    Ok(all.filter(|lease| is_open(lease, now)).map(shown).collect())
}

/// Returns what is asked under a lease; `None` if there is no such lease, or it is not open.
///
/// # Errors
/// When there is no project, or the disk fails.
pub fn leased_work(request: &Request, lease: &str) -> Result<Option<LeasedWork>, OpsError> {
    let opened = open(request)?;
    if !opened.workspace.is_made {
        return Ok(None);
    }
    let leases = LeaseReader::of(&opened.workspace.layout);
    let now = opened.clock.now();
    let Some(found) = leases.get(lease)?.filter(|lease| is_open(lease, now)) else {
        return Ok(None);
    };
    let folder = leases.folder(&found.id);
    let questions = json_at(&folder.join("questions.json"))?;
    let schema = json_at(&folder.join("schema.json"))?;
    let questions = questions.map_or_else(|| Ok(Vec::new()), serde_json::from_value);
    Ok(Some(LeasedWork {
        agent: found.sent.agent.clone(),
        questions: questions.map_err(OpsError::unreadable(&"questions.json"))?,
        prompt: text_at(&folder.join("prompt.md"))?.unwrap_or_default(),
        schema,
        lease: shown(found),
    }))
}

fn is_open(lease: &Lease, now: Timestamp) -> bool {
    lease.state == LeaseState::Leased && lease.holds(now) && lease.owner.is_none()
}

fn shown(lease: Lease) -> OpenLease {
    OpenLease {
        is_json: lease.answer == "answer.json",
        lease: lease.id,
        stage: lease.stage,
        batch: lease.batch,
        client: lease.client,
        expires: lease.expires,
    }
}

/// Returns the text of a file of a lease; `None` if it does not exist.
fn text_at(path: &Path) -> Result<Option<String>, OpsError> {
    match read::text(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(OpsError::unreadable(&path.display())(error)),
    }
}

fn json_at(path: &Path) -> Result<Option<Value>, OpsError> {
    let value = text_at(path)?.map(|text| serde_json::from_str(&text));
    value
        .transpose()
        .map_err(OpsError::unreadable(&path.display()))
}
