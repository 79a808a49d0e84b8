//! Checks counts, durations and words with the declared defaults of the parameters that they use.

use crate::decl::tables::located_text::LocatedText;
use crate::decl::values::names::StageNames;
use crate::decl::values::reader::ValueReader;
use crate::model::stage::{ExpressionError, Templated};
use serde_json::{Map, Value};

impl ValueReader<'_> {
    /// Reports a template that depends on nothing but parameters, and whose value is wrong with their defaults.
    pub(crate) fn checked_by_defaults<T, V>(
        &mut self,
        spot: &LocatedText<'_>,
        names: &StageNames<'_>,
        value: Templated<T>,
        evaluate: impl Fn(&Templated<T>, &Map<String, Value>) -> Result<V, ExpressionError>,
    ) -> Option<Templated<T>> {
        let mut defaults = Map::new();
        for name in value.names() {
            let param = name.strip_prefix("params.").unwrap_or_default();
            let param = param.split('.').next().unwrap_or_default();
            let Some(default) = names.project.defaults.get(param) else {
                return Some(value);
            };
            defaults.insert(param.to_owned(), default.clone());
        }
        let used: Vec<String> = defaults.keys().map(|name| format!("`{name}`")).collect();
        let scope = Map::from_iter([("params".to_owned(), Value::Object(defaults))]);
        match evaluate(&value, &scope) {
            Err(error) if !used.is_empty() => {
                let problem = spot.problem(error.to_string());
                let label = format!("with the default of {}", used.join(" and "));
                let help = "change the default in milepost.toml";
                self.report.add(problem.label(label).help(help));
                None
            }
            _ => Some(value),
        }
    }
}
