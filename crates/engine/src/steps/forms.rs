//! The forms of the files that steps read, as JSON Schemas for editors.

use super::workbook::workbook_schema;
use milepost_agents::prices::prices_schema;
use milepost_agents::rules::rules_schema;
use serde_json::Value;

/// Name and schema of each form.
pub fn forms() -> Vec<(&'static str, Value)> {
    vec![
        ("prices", prices_schema()),
        ("rules", rules_schema()),
        ("workbook", workbook_schema()),
    ]
}
