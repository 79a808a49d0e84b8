//! Reads the values of a step's keys.

use crate::decl::problem::SourceFile;
use crate::decl::project::Project;
use crate::decl::tables::fields::Fields;
use crate::decl::tables::tree::TomlNode;
use crate::decl::values::names::{Sees, StageNames};
use crate::decl::values::reader::ValueReader;
use crate::expr::select::Select;
use crate::model::pipeline::Asset;
use crate::model::stage::{Output, Program, Templated};
use crate::model::step::{Geometry, KindName};
use std::ops::Range;
use std::time::Duration;

/// The output of an earlier step.
pub(crate) struct StepOutput {
    pub(crate) out: String,
    /// The place of the declaration.
    pub(crate) span: Range<usize>,
    /// The kind of the step.
    pub(crate) what: &'static str,
}

/// Returns the kind of a step, if its table says one.
pub(crate) fn kind_of(fields: &Fields<'_>) -> Option<KindName> {
    KindName::named(fields.what?)
}

/// Reads the keys of one step.
pub(crate) struct StepReader<'r, 'a> {
    pub(crate) reader: &'r mut ValueReader<'a>,
    pub(crate) file: &'r SourceFile,
    pub(crate) names: &'r StageNames<'r>,
    pub(crate) project: &'r Project,
    pub(crate) outputs: &'r [Output],
    pub(crate) made: &'r [StepOutput],
    pub(crate) fields: &'r Fields<'r>,
}

impl StepReader<'_, '_> {
    /// Returns the strings of a list.
    pub(crate) fn names_of(&self, key: &str) -> Vec<String> {
        let list = self
            .fields
            .get(key)
            .and_then(TomlNode::list)
            .unwrap_or_default();
        list.iter()
            .filter_map(|item| item.text().map(str::to_owned))
            .collect()
    }

    /// Returns the schema that a key names.
    pub(crate) fn schema_of(&mut self, key: &'static str) -> Option<Asset> {
        let spot = self.fields.spot(key)?;
        self.reader.schema(&spot)
    }

    pub(crate) fn jq(&mut self, key: &'static str, sees: Sees) -> Option<Program> {
        let spot = self.fields.spot(key)?;
        self.reader.jq(&spot, self.names, sees)
    }

    /// Reads an optional program. The outer `None` means a mistake.
    #[expect(clippy::option_option, reason = "absent and wrong are different")]
    pub(crate) fn wanted_jq(&mut self, key: &'static str, sees: Sees) -> Option<Option<Program>> {
        self.wanted_jq_of(key, self.names, sees)
    }

    /// Reads an optional program that sees these names. The outer `None` means a mistake.
    #[expect(clippy::option_option, reason = "absent and wrong are different")]
    pub(crate) fn wanted_jq_of(
        &mut self,
        key: &'static str,
        names: &StageNames<'_>,
        sees: Sees,
    ) -> Option<Option<Program>> {
        match self.fields.spot(key) {
            None if self.fields.get(key).is_some() => None,
            None => Some(None),
            Some(spot) => self.reader.jq(&spot, names, sees).map(Some),
        }
    }

    /// Reads an optional plain path. The outer `None` means a mistake.
    #[expect(clippy::option_option, reason = "absent and wrong are different")]
    pub(crate) fn select(&mut self, key: &'static str) -> Option<Option<Select>> {
        let Some(spot) = self.fields.spot(key) else {
            return Some(None);
        };
        self.reader.select(&spot, Some(self.names)).map(Some)
    }

    pub(crate) fn count(&mut self, key: &'static str, default: u64) -> Option<Templated<u64>> {
        match self.fields.get(key) {
            None => Some(Templated::Fixed(default)),
            Some(node) => self
                .reader
                .count(self.file, key, node, self.names, Sees::Batch),
        }
    }

    /// Reads the optional `geometry` of `ifc`. The outer `None` means a mistake.
    #[expect(clippy::option_option, reason = "absent and wrong are different")]
    pub(crate) fn geometry(&mut self) -> Option<Option<Templated<Geometry>>> {
        let Some(spot) = self.fields.spot("geometry") else {
            return Some(None);
        };
        if spot.text.contains("{{") {
            let template = self.reader.template(&spot, self.names, Sees::Batch)?;
            let template = Templated::Template(template);
            let evaluate = Templated::<Geometry>::geometry;
            let checked = self
                .reader
                .checked_by_defaults(&spot, self.names, template, evaluate);
            return checked.map(Some);
        }
        let Some(geometry) = Geometry::named(spot.text) else {
            let message = format!("`geometry` is \"{}\"", spot.text);
            let expected = "expected \"off\", \"missing\" or \"all\"";
            self.reader
                .report
                .add(spot.problem(message).label(expected));
            return None;
        };
        Some(Some(Templated::Fixed(geometry)))
    }

    pub(crate) fn timeout(&mut self) -> Option<Templated<Duration>> {
        match self.fields.spot("timeout") {
            Some(spot) => self.reader.duration(&spot, self.names, Sees::Batch),
            None => kind_of(self.fields)?.info().timeout.map(Templated::Fixed),
        }
    }
}
