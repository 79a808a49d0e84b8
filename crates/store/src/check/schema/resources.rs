//! A schema with the files that it refers to, and the validators of it and its parts.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use milepost_core::expr::json;
use milepost_core::expr::place::Place;
use milepost_core::model::schema::{
    ChainFault, Target, faulty_chain, percent_decoded, references, target,
};

/// A schema that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The text is not JSON.
    #[error("{schema}, {place}: {message}")]
    Json {
        /// The schema's file.
        schema: String,
        /// The place of the syntax error.
        place: Place,
        /// The parser's message.
        message: String,
    },
    /// The JSON is not a schema.
    #[error("{schema}{at}{pointer}: {message}", at = if pointer.is_empty() { "" } else { ", at " })]
    Invalid {
        /// The schema's file.
        schema: String,
        /// JSON pointer into the schema.
        pointer: String,
        /// The validator's message.
        message: String,
    },
    /// A `$ref` names a file that does not exist.
    #[error("{schema}: `$ref` to `{reference}`: there is no schema {path}")]
    Missing {
        /// The schema's file.
        schema: String,
        /// The reference as written.
        reference: String,
        /// The file that was looked for.
        path: String,
    },
    /// A `$ref` is a URL.
    #[error(
        "{schema}: `$ref` to `{reference}`: schemas are not fetched; copy it into the project and refer to the file"
    )]
    Remote {
        /// The schema's file.
        schema: String,
        /// The reference as written.
        reference: String,
    },
    /// A `$ref` leads out of the project, by `..` or an absolute path.
    #[error(
        "{schema}: `$ref` to `{reference}` leads out of the project: name a file of it, as seen from the schema's folder"
    )]
    Outside {
        /// The schema's file.
        schema: String,
        /// The reference as written.
        reference: String,
    },
    /// A `$ref` leads back to itself, or through too many schemas, without descending into the value.
    #[error("{schema}: `$ref` to `{reference}` {fault}")]
    Chain {
        /// The schema's file.
        schema: String,
        /// The reference as written.
        reference: String,
        /// Circle or length.
        fault: ChainFault,
    },
    /// The list cannot be validated item by item.
    #[error("{schema}: `{select}` cannot be validated as a stream: {reason}")]
    Stream {
        /// The schema's file.
        schema: String,
        /// The path of the list.
        select: String,
        /// The keyword that needs the whole list.
        reason: String,
    },
}

/// The scheme of the addresses under which the engine knows the files.
const SCHEME: &str = "project:///";

/// Documents by their paths.
pub(crate) struct Resources {
    name: String,
    pub(super) documents: BTreeMap<String, Value>,
}

impl Resources {
    /// Reads the schema and all that it refers to.
    pub(crate) fn load(
        name: &str,
        text: &str,
        resolve: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, SchemaError> {
        let mut documents = BTreeMap::new();
        // The `$id`s of the documents, by which they can refer to each other.
        let mut ids = BTreeMap::new();
        let mut open = vec![(name.to_owned(), text.to_owned())];
        let mut foreign = Vec::new();
        while let Some((path, text)) = open.pop() {
            let mut document = parse(&path, &text)?;
            if let Value::Object(map) = &mut document
                && let Some(Value::String(id)) = map.remove("$id")
            {
                ids.insert(id, path.clone());
            }
            let references = references(&document);
            documents.insert(path.clone(), document);
            for reference in references {
                let target = match target(&path, &reference) {
                    Target::Here | Target::Meta => continue,
                    Target::Address(_) => {
                        foreign.push((path.clone(), reference));
                        continue;
                    }
                    Target::Outside => {
                        let schema = path.clone();
                        return Err(SchemaError::Outside { schema, reference });
                    }
                    Target::File(target) => target,
                };
                if documents.contains_key(&target) || open.iter().any(|(known, _)| *known == target)
                {
                    continue;
                }
                let Some(text) = resolve(&target) else {
                    return Err(SchemaError::Missing {
                        schema: path,
                        reference,
                        path: target,
                    });
                };
                open.push((target, text));
            }
        }
        for (schema, reference) in foreign {
            let address = reference.split('#').next().unwrap_or_default();
            let Some(path) = ids.get(address) else {
                return Err(SchemaError::Remote { schema, reference });
            };
            let local = format!("{}{}", uri(path), &reference[address.len()..]);
            if let Some(document) = documents.get_mut(&schema) {
                replace(document, &reference, &local);
            }
        }
        let by_path = documents
            .iter()
            .map(|(path, document)| (path.clone(), document))
            .collect();
        if let Some((schema, reference, fault)) = faulty_chain(&by_path) {
            return Err(SchemaError::Chain {
                schema,
                reference,
                fault,
            });
        }
        Ok(Self {
            name: name.to_owned(),
            documents,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn document(&self, path: &str) -> Option<&Value> {
        self.documents.get(path)
    }

    /// Returns the address of a part of the schema itself.
    pub(crate) fn root_reference(&self, pointer: &str) -> (String, String) {
        (self.name.clone(), pointer.to_owned())
    }

    /// Returns the document and pointer that a reference in the document at `path` leads to, as far as it is by path and pointer.
    pub(crate) fn follow(&self, path: &str, reference: &str) -> Option<(String, String)> {
        let (file, pointer) = reference.split_once('#').unwrap_or((reference, ""));
        let target = match file.strip_prefix(SCHEME) {
            Some(own) => self
                .documents
                .keys()
                .find(|known| uri(known) == format!("{SCHEME}{own}"))?
                .clone(),
            None if file.is_empty() => path.to_owned(),
            None => match target(path, file) {
                Target::File(target) => target,
                _ => return None,
            },
        };
        let pointer = percent_decoded(pointer);
        self.document(&target)?.pointer(&pointer)?;
        Some((target, pointer))
    }

    /// A validator for the part of a document at a pointer.
    pub(crate) fn validator<F: jsonschema::json::Json>(
        &self,
        (path, pointer): &(String, String),
    ) -> Result<jsonschema::Validator<F>, SchemaError> {
        let invalid = |pointer: String, message: String| SchemaError::Invalid {
            schema: path.clone(),
            pointer,
            message,
        };
        let mut registry = jsonschema::Registry::new().retriever(Nowhere);
        for (path, document) in &self.documents {
            registry = registry
                .add(uri(path), document)
                .map_err(|error| invalid(String::new(), error.to_string()))?;
        }
        let registry = registry
            .prepare()
            .map_err(|error| invalid(String::new(), error.to_string()))?;
        let options = || {
            jsonschema::options_for::<F>()
                .with_registry(&registry)
                .with_retriever(Nowhere)
                .should_validate_formats(true)
        };
        let built = match self.document(path) {
            Some(document) if pointer.is_empty() => {
                options().with_base_uri(uri(path)).build(document)
            }
            _ => options().build(&json!({"$ref": format!("{}#{}", uri(path), encoded(pointer))})),
        };
        built.map_err(|error| invalid_schema(path, &error))
    }

    /// Checks that the files referred to are schemas: the validator looks only at the parts that it needs.
    pub(crate) fn check_referred(&self) -> Result<(), SchemaError> {
        let referred = self
            .documents
            .iter()
            .filter(|(path, _)| **path != self.name);
        for (path, document) in referred {
            jsonschema::meta::validate(document).map_err(|error| invalid_schema(path, &error))?;
        }
        Ok(())
    }
}

fn invalid_schema(path: &str, error: &jsonschema::ValidationError<'_>) -> SchemaError {
    let pointer = error.instance_path().to_string();
    let message = match error.instance().as_ref() {
        Value::String(name) if pointer.ends_with("/type") => format!(
            "`{name}` is not a type: expected array, boolean, integer, null, number, object or string"
        ),
        _ => super::wording::message(error, ""),
    };
    SchemaError::Invalid {
        schema: path.to_owned(),
        pointer,
        message,
    }
}

/// Nothing is fetched: what is needed was loaded before.
struct Nowhere;

impl jsonschema::Retrieve for Nowhere {
    fn retrieve(
        &self,
        uri: &jsonschema::Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("{uri} is not in the project").into())
    }
}

fn parse(path: &str, text: &str) -> Result<Value, SchemaError> {
    json::parse(text).map_err(|error| {
        let line_start: usize = text
            .split_inclusive('\n')
            .take(error.line().max(1) - 1)
            .map(str::len)
            .sum();
        let at = line_start + error.column().max(1) - 1;
        let said = error.to_string();
        SchemaError::Json {
            schema: path.to_owned(),
            place: Place::of(text, at..at + 1),
            message: said
                .split(" at line ")
                .next()
                .unwrap_or_default()
                .to_owned(),
        }
    })
}

fn replace(value: &mut Value, from: &str, to: &str) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                match inner {
                    Value::String(reference) if key == "$ref" && reference == from => {
                        to.clone_into(reference);
                    }
                    _ => replace(inner, from, to),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, from, to)),
        _ => {}
    }
}

/// Returns the address of a file.
fn uri(path: &str) -> String {
    format!("{SCHEME}{}", encoded(path))
}

fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~$".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}
