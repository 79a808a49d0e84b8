//! The files that a schema refers to by `$ref`: read with it, and refused at their place when they cannot be had.

use crate::base::path::RelPath;
use crate::decl::problem::{Problem, SourceFile};
use crate::decl::values::reader::ValueReader;
use crate::expr::json::{self, Json, TakeError};
use crate::expr::pointer::steps;
use crate::model::pipeline::Asset;
use crate::model::schema::{ChainFault, Target, faulty_chain, pointer, references, target};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;

const HELP: &str = "a `$ref` names a file of the project, relative to the folder of its schema";

impl ValueReader<'_> {
    /// Returns the schema with the files that it refers to, directly or not; `used` is where the declaration takes it from.
    pub(crate) fn with_references(
        &mut self,
        asset: Asset,
        used: &SourceFile,
        span: Range<usize>,
    ) -> Option<Asset> {
        match self.referred(&asset) {
            Ok(refers) => Some(asset.referring_to(refers)),
            Err(problem) => {
                self.report.add(problem.also(used, span, "used here"));
                None
            }
        }
    }

    fn referred(&self, asset: &Asset) -> Result<Vec<Asset>, Box<Problem>> {
        let mut open = vec![asset.clone()];
        let mut known = BTreeMap::new();
        while let Some(schema) = open.pop() {
            let document: Value = json::parse(&schema.text).map_err(|error| {
                let file = SourceFile::new(schema.path.as_str(), schema.text.clone());
                Box::new(file.whole_problem(format!("`{}` is not JSON: {error}", schema.path)))
            })?;
            for reference in references(&document) {
                let wrong = |message: String| at(&schema, &reference, message);
                let path = match target(schema.path.as_str(), &reference) {
                    Target::Here | Target::Meta | Target::Address(_) => continue,
                    Target::Outside => {
                        let message = format!("`$ref` to `{reference}` leads out of the project");
                        return Err(wrong(message).help(HELP).into());
                    }
                    Target::File(path) => path,
                };
                let path =
                    RelPath::parse(&path).map_err(|error| Box::new(wrong(error.to_string())))?;
                let is_known = path == asset.path || known.contains_key(&path);
                if is_known || open.iter().any(|open| open.path == path) {
                    continue;
                }
                match self.find(&path) {
                    Some(Ok(found)) => open.push(found),
                    Some(Err(message)) => {
                        let message = format!("`{path}` cannot be read: {message}");
                        return Err(wrong(message).into());
                    }
                    None => {
                        let near = self
                            .near_file(&path)
                            .map_or(HELP.to_owned(), |near| format!("did you mean `{near}`?"));
                        let message =
                            format!("`$ref` to `{reference}`: there is no `{path}` in the project");
                        return Err(wrong(message).help(near).into());
                    }
                }
            }
            known.insert(schema.path.clone(), (schema, document));
        }
        led_somewhere(&known)?;
        let files = known.into_values().map(|(schema, _)| schema);
        Ok(files.filter(|file| file.path != asset.path).collect())
    }
}

/// Every reference leads to a schema, and none in a circle or through too many schemas.
fn led_somewhere(known: &BTreeMap<RelPath, (Asset, Value)>) -> Result<(), Box<Problem>> {
    let is_id = |address: &str| {
        let mut ids = known.values().map(|(_, document)| document.get("$id"));
        ids.any(|id| id.and_then(Value::as_str) == Some(address))
    };
    for (schema, document) in known.values() {
        for reference in references(document) {
            let wrong = |message: String| at(schema, &reference, message);
            let into = match target(schema.path.as_str(), &reference) {
                Target::Here => Some(document),
                Target::File(path) => RelPath::parse(&path)
                    .ok()
                    .and_then(|path| known.get(&path))
                    .map(|(_, document)| document),
                Target::Address(address) if !is_id(&address) => {
                    let message = format!("`$ref` to `{reference}`: schemas are not fetched");
                    let help = "copy it into the project and refer to the file";
                    return Err(wrong(message).help(help).into());
                }
                Target::Address(_) | Target::Meta | Target::Outside => None,
            };
            let place = into.zip(pointer(&reference));
            if place.is_some_and(|(document, pointer)| document.pointer(&pointer).is_none()) {
                let message = format!("`$ref` to `{reference}` has no target");
                let problem = wrong(message).label("not found in the file");
                return Err(problem.into());
            }
        }
    }
    let documents = known
        .iter()
        .map(|(path, (_, document))| (path.to_string(), document))
        .collect();
    let Some((path, reference, fault)) = faulty_chain(&documents) else {
        return Ok(());
    };
    let schema = known
        .values()
        .find(|(schema, _)| schema.path.as_str() == path);
    let message = format!("`$ref` to `{reference}` {fault}");
    let help = match fault {
        ChainFault::Circle => {
            "a schema may refer to itself for a part of the value (a property, an item), not for the value itself"
        }
        ChainFault::Long => "refer to the last of them",
    };
    schema.map_or(Ok(()), |(schema, _)| {
        Err(at(schema, &reference, message).help(help).into())
    })
}

/// Returns the mistake at a JSON pointer into `file`, which is a schema or a file that it refers to.
pub fn schema_problem(schema: &Asset, file: &str, pointer: &str, message: String) -> Problem {
    let mut referred = schema.refers.iter();
    let asset = referred
        .find(|referred| referred.path.as_str() == file)
        .unwrap_or(schema);
    let source = SourceFile::new(asset.path.as_str(), asset.text.clone());
    match place_of(&asset.text, pointer) {
        Some(span) => source.problem(span, message),
        None => source.whole_problem(message),
    }
}

/// Returns the bytes of the value at a pointer; `None` for the whole text.
fn place_of(text: &str, pointer: &str) -> Option<Range<usize>> {
    let mut reader = Json::new(text.as_bytes());
    let steps = steps(pointer).filter(|steps| !steps.is_empty())?;
    if !reader.enter_all(&steps).ok()? {
        return None;
    }
    let place = reader.value(|value, at| {
        let start = usize::try_from(at).unwrap_or_default();
        Ok::<_, TakeError<()>>(start..start + value.len())
    });
    place.ok()?.ok()
}

/// A mistake at a reference of a schema.
fn at(schema: &Asset, reference: &str, message: String) -> Problem {
    let file = SourceFile::new(schema.path.as_str(), schema.text.clone());
    let quoted = Value::from(reference).to_string();
    let found = schema.text.match_indices(&quoted).find(|(at, _)| {
        let before = schema.text[..*at].trim_end();
        before.strip_suffix(':').is_some_and(|before| {
            let before = before.trim_end();
            before.ends_with("\"$ref\"") || before.ends_with("\"$dynamicRef\"")
        })
    });
    match found {
        Some((at, _)) => file.problem(at..at + quoted.len(), message),
        None => file.whole_problem(message),
    }
}
