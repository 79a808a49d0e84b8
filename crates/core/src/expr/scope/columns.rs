//! The columns that a declaration names for a table, and the type of each: a cell becomes a value by its column.

use crate::expr::json;
use jiff::civil::Date;
use serde_json::Value;
use strum::{EnumString, IntoStaticStr, VariantNames};

use crate::expr::place::{excerpt, listed, nearest};

/// Characters of a cell that a message shows.
const SHOWN: usize = 40;

/// The type of the cells of a column. An empty cell is null in each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum CellType {
    /// The text as it is.
    String,
    /// A whole number of 64 bits.
    Integer,
    /// A number with a decimal point.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A day of the calendar, `2026-11-23`; a string.
    Date,
}

impl CellType {
    /// The words that declarations use.
    pub(crate) const NAMES: &'static [&'static str] = <Self as VariantNames>::VARIANTS;

    /// Returns the type of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        name.parse().ok()
    }

    /// Returns the name that declarations use.
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the value of a cell.
    ///
    /// # Errors
    /// Returns what was expected and found if the cell has another type.
    fn value(self, cell: &str) -> Result<Value, String> {
        if self == Self::String {
            return Ok(match cell {
                "" => Value::Null,
                text => Value::from(text),
            });
        }
        let cell = cell.trim();
        if cell.is_empty() {
            return Ok(Value::Null);
        }
        let value = match self {
            Self::String => Some(Value::from(cell)),
            Self::Integer => number(cell).filter(|it| it.is_i64() || it.is_u64()),
            Self::Number => number(cell),
            Self::Boolean => match cell.to_ascii_lowercase().as_str() {
                "true" => Some(Value::Bool(true)),
                "false" => Some(Value::Bool(false)),
                _ => None,
            },
            Self::Date => date(cell).map(Value::from),
        };
        value.ok_or_else(|| {
            let found = excerpt(cell, SHOWN);
            format!(
                "expected {}, found {found:?}{}",
                self.expected(),
                self.hint(cell)
            )
        })
    }

    fn expected(self) -> &'static str {
        match self {
            Self::String => "text",
            Self::Integer => "an integer",
            Self::Number => "a number",
            Self::Boolean => "true or false",
            Self::Date => "a date such as 2026-11-23",
        }
    }

    /// How to write a number with a decimal comma.
    fn hint(self, cell: &str) -> String {
        let point = cell.replacen(',', ".", 1);
        let is_meant = self == Self::Number && point != cell && number(&point).is_some();
        if is_meant {
            format!(": write {point}")
        } else {
            String::new()
        }
    }
}

/// A number as JSON writes it.
fn number(cell: &str) -> Option<Value> {
    let value = json::parse(cell).ok()?;
    value.is_number().then_some(value)
}

/// A date in the one form that sorts.
fn date(cell: &str) -> Option<&str> {
    let is_plain = cell.len() == 10
        && cell
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'-');
    (is_plain && cell.parse::<Date>().is_ok()).then_some(cell)
}

/// A declared column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    /// The name in the header.
    pub(crate) name: String,
    pub(crate) kind: CellType,
    /// True if a table may lack it; its cells are null then.
    pub(crate) optional: bool,
}

impl Column {
    /// Returns a column of this name and declared type, where `string?` is a string that a table may lack.
    pub(crate) fn declared(name: &str, kind: &str) -> Option<Self> {
        let (kind, optional) = match kind.strip_suffix('?') {
            Some(kind) => (kind, true),
            None => (kind, false),
        };
        Some(Self {
            name: name.to_owned(),
            kind: CellType::named(kind)?,
            optional,
        })
    }

    /// Returns the type as it is declared.
    pub(crate) fn type_name(&self) -> String {
        format!(
            "{}{}",
            self.kind.name(),
            if self.optional { "?" } else { "" }
        )
    }
}

/// The declared columns of a table, in the order of the declaration: the order of a row's fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns(Vec<Column>);

impl Columns {
    /// Returns these columns.
    pub(crate) fn new(columns: Vec<Column>) -> Self {
        Self(columns)
    }

    /// Returns the columns, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Column> {
        self.0.iter()
    }

    /// Returns the names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|column| column.name.as_str())
    }

    /// Returns for each declared column its place in a header, whose order is free; `None` for an optional one that is not there.
    ///
    /// # Errors
    /// The expected and the found columns, if a column is missing or unknown.
    pub(crate) fn places(&self, header: &[String]) -> Result<Vec<Option<usize>>, String> {
        let place = |name: &str| header.iter().position(|found| found == name);
        let places: Vec<Option<usize>> = self.names().map(place).collect();
        let is_complete =
            |(place, column): (&Option<usize>, &Column)| place.is_some() || column.optional;
        let found = places.iter().flatten().count();
        if places.iter().zip(&self.0).all(is_complete) && found == header.len() {
            return Ok(places);
        }
        let of_kind = |optional| {
            let columns = self
                .0
                .iter()
                .filter(move |column| column.optional == optional);
            columns.map(|column| column.name.as_str())
        };
        let mut expected = listed(of_kind(false));
        if of_kind(true).next().is_some() {
            expected = format!("{expected} and optionally {}", listed(of_kind(true)));
        }
        if header.iter().all(String::is_empty) {
            return Err(format!("expected columns {expected}; found no header"));
        }
        let missing = || self.names().filter(|name| place(name).is_none());
        let mut unknown = header
            .iter()
            .filter(|found| self.names().all(|name| name != found.as_str()));
        let hint = if found == 0 {
            "; the first line must name the columns".to_owned()
        } else {
            let near = unknown.find_map(|found| nearest(found, missing()));
            near.map(|near| format!("; did you mean `{near}`?"))
                .unwrap_or_default()
        };
        let found: Vec<String> = header.iter().map(|name| excerpt(name, SHOWN)).collect();
        let found = listed(found.iter().map(String::as_str));
        Err(format!("expected columns {expected}; found {found}{hint}"))
    }

    /// Returns the values of a row's cells, each with its column's name. `places` are those of [`Columns::places`].
    pub(crate) fn cells<'a>(
        &'a self,
        places: &'a [Option<usize>],
        row: &'a csv::StringRecord,
    ) -> impl Iterator<Item = (&'a str, Result<Value, String>)> {
        self.iter().zip(places).map(|(column, place)| {
            let cell = place.and_then(|place| row.get(place)).unwrap_or_default();
            let (name, value) = (column.name.as_str(), column.kind.value(cell));
            (name, value.map_err(|why| format!("column `{name}`: {why}")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_cell_is_of_its_type_or_refused() {
        let value = |kind: &str, cell| CellType::named(kind).unwrap().value(cell).ok();
        for (kind, cell, expected) in [
            ("string", " 007 ", json!(" 007 ")),
            ("integer", "20", json!(20)),
            ("integer", " -3 ", json!(-3)),
            ("number", "2.50", json!(2.5)),
            ("number", "1e3", json!(1000.0)),
            ("boolean", "TRUE", json!(true)),
            ("boolean", "false", json!(false)),
            ("date", "2028-02-29", json!("2028-02-29")),
        ] {
            assert_eq!(value(kind, cell), Some(expected), "{kind} {cell}");
        }
        for (kind, cell) in [
            ("integer", "2.5"),
            ("integer", "007"),
            ("integer", "99999999999999999999"),
            ("number", "2,5"),
            ("number", "NaN"),
            ("number", "1e999"),
            ("number", "\"1\""),
            ("boolean", "1"),
            ("boolean", "yes"),
            ("date", "2027-02-29"),
            ("date", "23.11.2026"),
            ("date", "2026-11-23T10:00"),
        ] {
            assert_eq!(value(kind, cell), None, "{kind} {cell}");
        }
        for kind in CellType::NAMES {
            assert_eq!(value(kind, ""), Some(Value::Null), "{kind}");
            assert_eq!(CellType::named(kind).unwrap().name(), *kind);
        }
    }

    #[test]
    fn a_table_may_lack_optional_columns() {
        let columns = [("id", "integer"), ("note", "string?")];
        let columns = columns.map(|(name, kind)| Column::declared(name, kind).unwrap());
        let columns = Columns::new(columns.into());
        let places = |header: &[&str]| {
            let header: Vec<String> = header.iter().map(|&name| name.to_owned()).collect();
            columns.places(&header)
        };
        assert_eq!(places(&["note", "id"]), Ok(vec![Some(1), Some(0)]));
        assert_eq!(places(&["id"]), Ok(vec![Some(0), None]));
        assert_eq!(
            places(&["note"]).unwrap_err(),
            "expected columns `id` and optionally `note`; found `note`"
        );
        assert_eq!(
            places(&["id", "nota"]).unwrap_err(),
            "expected columns `id` and optionally `note`; found `id`, `nota`; did you mean `note`?"
        );
        let row = csv::StringRecord::from(vec!["7"]);
        let cells: Vec<_> = columns.cells(&[Some(0), None], &row).collect();
        assert_eq!(cells, [("id", Ok(json!(7))), ("note", Ok(Value::Null))]);
    }

    #[test]
    fn a_cell_that_does_not_fit_says_what_was_expected() {
        let why = |kind: CellType, cell| kind.value(cell).unwrap_err();
        assert_eq!(
            why(CellType::Number, "2,5"),
            "expected a number, found \"2,5\": write 2.5"
        );
        assert_eq!(
            why(CellType::Integer, "many"),
            "expected an integer, found \"many\""
        );
        assert_eq!(
            why(CellType::Date, "23.11.2026"),
            "expected a date such as 2026-11-23, found \"23.11.2026\""
        );
    }
}
