//! Which elements of a building model are measured.

use crate::model::declared::expression::{ExpressionError, Templated};
use serde_json::{Map, Value};

/// The elements of a building model that are measured by their geometry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Geometry {
    /// None.
    Off,
    /// Those for which the model states no volume, or figures that contradict each other.
    Missing,
    All,
}

impl Geometry {
    /// All values, in the order of messages.
    const ALL: [Self; 3] = [Self::Off, Self::Missing, Self::All];

    /// Returns the word in declarations.
    fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Missing => "missing",
            Self::All => "all",
        }
    }

    /// Returns the value of a word.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|value| value.name() == name)
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
