//! Paths as declarations and records write them: relative, with `/`, inside the workspace or the project.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A relative path with `/` between its parts, without `.` or `..`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelPath(Arc<str>);

#[derive(Debug, thiserror::Error, PartialEq, Eq, Clone)]
pub enum PathError {
    /// The path is empty.
    #[error("a path is empty")]
    Empty,
    /// The path is absolute.
    #[error(
        "`{0}` is absolute: paths are relative to the workspace, or to the project with the prefix `project:`"
    )]
    Absolute(String),
    /// The path contains `..`.
    #[error("`{0}` leaves its folder by `..`: paths stay inside the workspace or the project")]
    Climbs(String),
    /// The path is reserved.
    #[error("`{0}` is {1}, which stages neither read nor write")]
    Reserved(String, &'static str),
    /// The path contains a backslash or a control character.
    #[error("`{0}` contains a control character or a backslash")]
    Odd(String),
}

impl RelPath {
    /// Parses a path, and normalizes a leading `./`, `/./` and repeated `/`.
    ///
    /// # Errors
    /// If it is empty or absolute, or contains `..`, control characters or backslashes.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        if text.starts_with('/') || text.get(1..3) == Some(":/") {
            return Err(PathError::Absolute(text.to_owned()));
        }
        let is_odd = |byte: u8| !(b' '..0x7f).contains(&byte) || byte == b'\\';
        if text.bytes().any(is_odd) && text.chars().any(|c| c.is_control() || c == '\\') {
            return Err(PathError::Odd(text.escape_default().to_string()));
        }
        let mut is_folded = true;
        for part in text.split('/') {
            match part {
                "" | "." => is_folded = false,
                ".." => return Err(PathError::Climbs(text.to_owned())),
                _ => {}
            }
        }
        if is_folded {
            return Ok(Self(text.into()));
        }
        let parts: Vec<&str> = text
            .split('/')
            .filter(|part| !matches!(*part, "" | "."))
            .collect();
        if parts.is_empty() {
            return Err(PathError::Empty);
        }
        Ok(Self(parts.join("/").into()))
    }

    /// Joins parts, each made safe by [`component`]; without parts the path is `_`.
    pub fn of_parts<'a>(parts: impl IntoIterator<Item = &'a str>) -> Self {
        let parts: Vec<String> = parts.into_iter().map(component).collect();
        if parts.is_empty() {
            return Self("_".into());
        }
        Self(parts.join("/").into())
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the text, shared.
    pub(crate) fn text(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }

    /// Returns the last part: `batch_1.json`.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// Returns the last part without its ending: `batch_1`.
    pub fn stem(&self) -> &str {
        stem(&self.0)
    }

    /// Returns the folder of the path, if it has one.
    pub fn parent(&self) -> Option<RelPath> {
        self.0
            .rsplit_once('/')
            .map(|(folder, _)| Self(folder.into()))
    }

    /// Appends a relative path.
    ///
    /// # Errors
    /// The errors of [`RelPath::parse`].
    pub fn join(&self, more: &str) -> Result<RelPath, PathError> {
        Self::parse(&format!("{}/{more}", self.0))
    }

    /// Appends a path.
    #[must_use]
    pub fn with(&self, inside: &RelPath) -> RelPath {
        Self(format!("{}/{}", self.0, inside.0).into())
    }

    /// Appends letters, digits or dots to the name: `a/b` and `.c` become `a/b.c`.
    #[must_use]
    pub fn ending_with(&self, ending: &str) -> RelPath {
        Self(format!("{}{}", self.0, component(ending)).into())
    }

    /// Returns the last run of digits in the stem of the file's name, if there is one.
    pub fn number(&self) -> Option<u64> {
        number_in(self.stem())
    }
}

/// Returns the last run of digits in a text, if there is one.
pub(crate) fn number_in(text: &str) -> Option<u64> {
    let end = text.rfind(|c: char| c.is_ascii_digit())? + 1;
    let start = text[..end]
        .rfind(|c: char| !c.is_ascii_digit())
        .map_or(0, |at| {
            at + text[at..].chars().next().map_or(1, char::len_utf8)
        });
    text[start..end].parse().ok()
}

/// Converts a value to one part of a path: `/`, `\\`, `:`, control characters, an empty value, `.` and `..` become `_`.
pub fn component(value: &str) -> String {
    let safe = |c: char| !c.is_control() && !matches!(c, '/' | '\\' | ':');
    let part: String = value
        .chars()
        .map(|c| if safe(c) { c } else { '_' })
        .collect();
    match part.as_str() {
        "" | "." => "_".to_owned(),
        ".." => "__".to_owned(),
        _ => part,
    }
}

/// Returns the last part of a path without its ending: `sample` of `inputs/sample.ifc`.
pub fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rfind('.') {
        Some(0) | None => name,
        Some(dot) => &name[..dot],
    }
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl FromStr for RelPath {
    type Err = PathError;
    fn from_str(text: &str) -> Result<Self, PathError> {
        Self::parse(text)
    }
}

#[cfg(debug_assertions)]
impl schemars::JsonSchema for RelPath {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Path".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "minLength": 1 })
    }
}

/// The folder that a path is relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Root {
    Workspace,
    /// The project, which is read-only.
    Project,
}

/// A path with the folder that it is relative to, written `a/b` or `project:a/b`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FilePath {
    /// The folder.
    pub root: Root,
    pub path: RelPath,
}

impl FilePath {
    /// Creates a path in the workspace.
    pub fn workspace(path: RelPath) -> Self {
        Self {
            root: Root::Workspace,
            path,
        }
    }

    /// Returns the text, as it is written.
    pub fn text(&self) -> Arc<str> {
        match self.root {
            Root::Workspace => self.path.text(),
            Root::Project => self.to_string().into(),
        }
    }

    /// Creates a path in the project.
    pub fn project(path: RelPath) -> Self {
        Self {
            root: Root::Project,
            path,
        }
    }
}

impl FromStr for FilePath {
    type Err = PathError;
    fn from_str(text: &str) -> Result<Self, PathError> {
        match text.strip_prefix("project:") {
            Some(rest) => RelPath::parse(rest).map(Self::project),
            None => RelPath::parse(text).map(Self::workspace),
        }
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.root {
            Root::Workspace => self.path.fmt(f),
            Root::Project => write!(f, "project:{}", self.path),
        }
    }
}

macro_rules! as_text {
    ($name:ty) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                crate::base::parsed::parsed(deserializer)
            }
        }
    };
}
as_text!(RelPath);
as_text!(FilePath);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_inside() {
        assert_eq!(
            RelPath::parse("./a//b/./c.json").unwrap().as_str(),
            "a/b/c.json"
        );
        assert_eq!(
            RelPath::parse("../a"),
            Err(PathError::Climbs("../a".into()))
        );
        assert_eq!(
            RelPath::parse("a/../../b"),
            Err(PathError::Climbs("a/../../b".into()))
        );
        assert_eq!(
            RelPath::parse("/etc/passwd"),
            Err(PathError::Absolute("/etc/passwd".into()))
        );
        assert_eq!(
            RelPath::parse("C:/x"),
            Err(PathError::Absolute("C:/x".into()))
        );
        assert_eq!(RelPath::parse("./"), Err(PathError::Empty));
        assert!(RelPath::parse("a\0b").is_err());
    }

    #[test]
    fn makes_safe_parts() {
        let path = RelPath::of_parts(["a/b", "..", "", "c:\n", "é"]);
        assert_eq!(path.as_str(), "a_b/__/_/c__/é");
        assert_eq!(RelPath::parse(path.as_str()), Ok(path));
        assert_eq!(RelPath::of_parts([]).as_str(), "_");
    }

    #[test]
    fn knows_its_parts() {
        let path = RelPath::parse("intermediate/batches/batch_12.json").unwrap();
        assert_eq!(
            (path.file_name(), path.stem(), path.number()),
            ("batch_12.json", "batch_12", Some(12))
        );
        assert_eq!(path.parent().unwrap().as_str(), "intermediate/batches");
        assert_eq!(RelPath::parse("x/plain.txt").unwrap().number(), None);
        assert_eq!(RelPath::parse("é12").unwrap().number(), Some(12));
        assert_eq!(
            "project:rules/a.toml"
                .parse::<FilePath>()
                .unwrap()
                .to_string(),
            "project:rules/a.toml"
        );
    }
}
