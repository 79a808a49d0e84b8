//! Tests of a stage's outputs: a jq program over the scope that must be true, and what to say if it is not.

use serde_json::Value;

use crate::expr::jq::{Jq, JqError};
use crate::expr::place::excerpt;
use crate::expr::scope::{Scope, ScopeError};
use crate::expr::template::{Template, TemplateError, is_template};

/// The error code of a test that names none.
pub const FAILED: &str = "CHECK_FAILED";

/// A compiled `[[check]]`.
#[derive(Debug)]
pub struct Check {
    test: Jq,
    error: String,
    message: Message,
}

#[derive(Debug)]
enum Message {
    Text(String),
    Template(Box<Template>),
}

/// Why a check cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// Its test.
    #[error(transparent)]
    Test(#[from] JqError),
    /// Its message.
    #[error(transparent)]
    Message(#[from] TemplateError),
}

/// A check that did not hold.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Failed {
    /// The check's error code.
    pub error: String,
    /// What it says.
    pub message: String,
}

impl Check {
    /// Compiles a check. `name` is where it stands, for messages; `names` are those of the scope; without a message the
    /// test speaks for itself.
    ///
    /// # Errors
    /// A test or a message that cannot be read.
    pub fn compile(
        name: &str,
        test: &str,
        error: Option<&str>,
        message: Option<&str>,
        names: &[&str],
    ) -> Result<Check, CheckError> {
        let message = match message {
            Some(text) if is_template(text) => {
                Message::Template(Box::new(Template::compile(name, text)?))
            }
            Some(text) => Message::Text(text.to_owned()),
            None => Message::Text(format!("not true: {}", excerpt(test.trim(), 200))),
        };
        Ok(Check {
            test: Jq::compile(name, test, names)?,
            error: error.unwrap_or(FAILED).to_owned(),
            message,
        })
    }

    /// The program, for what it mentions.
    pub fn test(&self) -> &Jq {
        &self.test
    }

    /// The message's template, for what it mentions.
    pub fn template(&self) -> Option<&Template> {
        match &self.message {
            Message::Template(template) => Some(template),
            Message::Text(_) => None,
        }
    }

    /// Runs the check. A program that fails on the outputs that it sees is a check that does not hold: it is they that are
    /// not as they should be.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn run(&self, scope: &Scope) -> Result<Option<Failed>, ScopeError> {
        let failed = |message: String| {
            Ok(Some(Failed {
                error: self.error.clone(),
                message,
            }))
        };
        let values = scope
            .input_of(&self.test)
            .and_then(|input| Ok((input, scope.vars_of(&self.test)?)));
        let (input, vars) = match values {
            Ok(values) => values,
            Err(error @ (ScopeError::Read { .. } | ScopeError::Unknown { .. })) => {
                return Err(error);
            }
            Err(error) => return failed(error.to_string()),
        };
        match self.test.one(input, &vars) {
            Ok(Value::Bool(true)) => Ok(None),
            Ok(Value::Bool(false) | Value::Null) => failed(self.text(scope)?),
            Ok(other) => failed(format!(
                "{}: it gives {}, true or false was expected",
                self.test.name(),
                excerpt(&other.to_string(), 60)
            )),
            Err(error) => failed(error.to_string()),
        }
    }

    fn text(&self, scope: &Scope) -> Result<String, ScopeError> {
        let template = match &self.message {
            Message::Text(text) => return Ok(text.clone()),
            Message::Template(template) => template,
        };
        // A message that cannot be rendered must not hide that the check failed.
        Ok(template
            .render(&scope.context_of(template)?)
            .unwrap_or_else(|error| {
                format!("the check does not hold, and its message fails: {error}")
            }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(test: &str, message: Option<&str>) -> Option<Failed> {
        let mut scope = Scope::new();
        scope.insert_value("records", json!([{"c": 0.5}, {"c": 2}]));
        scope.insert_value("params", json!({"max": 1}));
        let names = scope.names();
        let check = Check::compile(
            "stages/3_x.toml: check 1",
            test,
            Some("RANGE"),
            message,
            &names,
        )
        .unwrap();
        check.run(&scope).unwrap()
    }

    fn says(test: &str, message: Option<&str>) -> String {
        let failed = run(test, message).unwrap();
        assert_eq!(failed.error, "RANGE");
        failed.message
    }

    #[test]
    fn holds_or_says_why_not() {
        assert_eq!(run("all(.records[]; .c >= 0)", None), None);
        assert_eq!(
            says("all(.records[]; .c <= $params.max)", None),
            "not true: all(.records[]; .c <= $params.max)"
        );
        assert_eq!(says("false", Some("at most {{ params.max }}")), "at most 1");
        assert_eq!(says("null", Some("plain")), "plain");
        assert_eq!(
            says("1", None),
            "stages/3_x.toml: check 1: it gives 1, true or false was expected"
        );
        assert!(says(".records.x", None).contains("cannot index"));
        assert!(says("false", Some("{{ nope }}")).contains("`nope` is not there"));
    }

    #[test]
    fn cannot_be_compiled_from_nonsense() {
        let error = Check::compile("c", "$nope", None, None, &["params"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "c, line 1, column 1: `$nope` is not a name of this stage; it has: $params"
        );
        assert!(Check::compile("c", "true", None, Some("{{ x"), &[]).is_err());
    }
}
