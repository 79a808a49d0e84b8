//! Which elements of a building model are measured.

use crate::model::declared::expression::{ExpressionError, Templated};
use serde_json::{Map, Value};

/// The elements of a building model that are measured by their geometry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum Geometry {
    /// None.
    Off,
    /// Those for which the model states no volume, or figures that contradict each other.
    Missing,
    All,
}

impl Geometry {
    /// Returns the value of a word.
    pub(crate) fn named(name: &str) -> Option<Self> {
        name.parse().ok()
    }
}

impl Templated<Geometry> {
    /// Returns the value in a scope.
    ///
    /// # Errors
    /// If the template fails or renders none of the words.
    pub fn geometry(&self, scope: &Map<String, Value>) -> Result<Geometry, ExpressionError> {
        match self {
            Templated::Fixed(geometry) => Ok(*geometry),
            Templated::Template(template) => {
                let value = template.render_value(&Value::Object(scope.clone()))?;
                let named = value.as_str().and_then(Geometry::named);
                named.ok_or_else(|| ExpressionError::Geometry {
                    name: template.name().to_owned(),
                    value,
                })
            }
        }
    }
}
