//! One call of a tool: its arguments, its progress, the wish to end it.

use super::Desk;
use super::cut::cut;
use super::fault::Fault;
use super::progress::Teller;
use milepost_engine::ops::project::Request;
use milepost_engine::ops::run::StopFlag;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// One call of a tool.
pub(super) struct Call<'a> {
    /// What the server works on.
    pub(super) desk: &'a Desk,
    /// The tool's name.
    pub(super) tool: &'static str,
    /// The client's name, as it gave it.
    pub(super) client: String,
    /// Its arguments, as the client sent them.
    pub(super) arguments: Map<String, Value>,
    /// Tells the client how far the call is.
    pub(super) teller: &'a Teller,
    /// The wish to end it.
    pub(super) stop: &'a StopFlag,
}

impl Call<'_> {
    /// The arguments.
    ///
    /// # Errors
    /// Those that are missing, unknown or of the wrong type.
    pub(super) fn arguments<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        let arguments = Value::Object(self.arguments.clone());
        serde_json::from_value(arguments).map_err(|error| {
            Fault::new(
                "arguments",
                format!("the arguments of `{}` are wrong: {error}", self.tool),
                "send what the tool's `inputSchema` asks for",
            )
        })
    }

    /// Returns the server's request as that of this call. `words` follow the tool's name in the journal and the lock.
    pub(super) fn request(&self, words: &str) -> Request {
        let blank = if words.is_empty() { "" } else { " " };
        let request = self.desk.request.clone();
        let command = format!("{} ({}{blank}{words})", request.command, self.tool);
        Request { command, ..request }
    }
}

/// A result that is short enough; `whole` says where the whole is.
///
/// # Errors
/// When the data cannot be written as JSON.
pub(super) fn done(data: &impl Serialize, whole: &str) -> Result<Value, Fault> {
    answer(true, data, whole)
}

/// The same with the word whether what was asked for is done.
///
/// # Errors
/// As [`done`].
pub(super) fn answer(success: bool, data: &impl Serialize, whole: &str) -> Result<Value, Fault> {
    let broken = |why: String| {
        Fault::new(
            "defect",
            format!("the result cannot be written: {why}"),
            "this is a defect of Milepost: please report it",
        )
    };
    let mut fields = Map::new();
    fields.insert("success".to_owned(), success.into());
    match serde_json::to_value(data) {
        Ok(Value::Object(data)) => fields.extend(data),
        Ok(other) => return Err(broken(format!("it is {other}"))),
        Err(error) => return Err(broken(error.to_string())),
    }
    Ok(Value::Object(cut(fields, whole)))
}
