//! A project that most of these tests use: lists of names are sorted and counted.

use crate::support::Project;

impl Project {
    /// Two stages over three lists of names: each is sorted, then all are counted.
    pub fn names() -> Self {
        Self::new(&[
            (
                "milepost.toml",
                "name = \"names\"\n\n[params]\ngreeting = \"hello\"\n",
            ),
            (
                "stages/1_sort.toml",
                r#"description = "Sort each list"

[each.list]
path = "inputs/list_*.json"

[step]
jq = '{people: [$list.data.people | sort_by(.id)[] | {id, name, greeting: $params.greeting}]}'

[outputs]
sorted = "intermediate/{{ list.stem }}.json"

[conserve]
in = ".list.data.people[].id"
out = ".sorted.people[].id"

[[check]]
test = 'all(.sorted.people[]; .name != "")'
error = "NO_NAME"
"#,
            ),
            (
                "stages/2_count.toml",
                r#"description = "Count all"

[inputs]
lists = "intermediate/list_*.json"

[step]
jq = '{count: ([$lists[] | .people[]] | length)}'

[outputs]
total = { path = "outputs/total.json", schema = false }
"#,
            ),
            (
                "schemas/sorted.schema.json",
                r#"{"type": "object", "required": ["people"], "properties": {"people": {"type": "array",
                "items": {"type": "object", "required": ["id", "name"], "properties": {"id": {"type": "string"}}}}}}"#,
            ),
            (
                "workspace/inputs/list_1.json",
                &people(&[("b", "Bo"), ("a", "Al")]),
            ),
            ("workspace/inputs/list_2.json", &people(&[("c", "Cy")])),
            (
                "workspace/inputs/list_10.json",
                &people(&[("d", "Di"), ("e", "Ed")]),
            ),
        ])
    }
}

/// A list of people as JSON.
pub fn people(people: &[(&str, &str)]) -> String {
    let people: Vec<_> = people
        .iter()
        .map(|(id, name)| serde_json::json!({ "id": id, "name": name }))
        .collect();
    serde_json::json!({ "people": people }).to_string()
}
