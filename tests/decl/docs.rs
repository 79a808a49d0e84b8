//! The project that `docs/reference/language.md` shows loads.

use super::Files;

/// The files that the page shows: a line with nothing but a path in backquotes, then a block.
pub fn documented() -> Files {
    let mut files = Files::default();
    let mut name: Option<&str> = None;
    let mut block: Option<String> = None;
    for line in include_str!("../../docs/reference/language.md").lines() {
        match (&mut block, line) {
            (Some(text), "```") => {
                if let Some(name) = name.take() {
                    files = files.with(name, text);
                }
                block = None;
            }
            (Some(text), line) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, line) if line.starts_with("```") => block = Some(String::new()),
            (None, "") => {}
            (None, line) => {
                name = line
                    .strip_prefix('`')
                    .and_then(|rest| rest.strip_suffix('`'))
                    .filter(|inner| !inner.contains('`'));
            }
        }
    }
    files
}

#[test]
fn the_documented_project_loads() {
    let files = documented();
    assert_eq!(files.0.len(), 25, "{:?}", files.0.keys());
    let (pipeline, warnings) = files
        .load()
        .unwrap_or_else(|problems| panic!("{}", problems.render(false)));
    assert_eq!(warnings, []);
    assert_eq!(pipeline.stages.len(), 11);
}
