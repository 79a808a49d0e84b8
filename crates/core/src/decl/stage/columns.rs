//! Reads the `columns` of a table: their names and the types of their cells.

use crate::decl::stage::StageReader;
use crate::decl::tables::fields::Fields;
use crate::decl::tables::tree::TomlNode;
use crate::expr::place::nearest;
use crate::expr::scope::{CellType, Column, Columns, Format};
use std::sync::Arc;

impl StageReader<'_, '_, '_> {
    /// Reads `columns` of a file of this format. The outer `None` means a mistake.
    #[expect(
        clippy::option_option,
        reason = "a file without columns is right, one with wrong columns is not"
    )]
    pub(crate) fn columns(
        &mut self,
        fields: &Fields<'_>,
        format: Format,
    ) -> Option<Option<Arc<Columns>>> {
        let Some(node) = fields.get("columns") else {
            return Some(None);
        };
        if !matches!(format, Format::Csv | Format::Text)
            || fields.text("format").is_some_and(|(text, _)| text != "csv")
        {
            let problem = self.file.problem(
                fields.key_span("columns"),
                "`columns` is only for CSV and TSV files",
            );
            let help = "remove `columns`: a schema describes the content of any other file";
            self.reader.report.add(problem.help(help));
            return None;
        }
        let entries = node.table().map(|table| table.entries.as_slice());
        let entries = entries.unwrap_or_default();
        if entries.is_empty() {
            let problem = self.file.problem(node.span.clone(), "`columns` is empty");
            let help = "name each column with its type: columns = { name = \"string\" }";
            self.reader.report.add(problem.help(help));
            return None;
        }
        let mut columns = Vec::with_capacity(entries.len());
        for (key, node) in entries {
            let declared = |kind| Column::declared(key.name.trim(), kind);
            match node.text().and_then(declared) {
                Some(column) => columns.push(column),
                None => self.wrong_type(&key.name, node),
            }
        }
        (columns.len() == entries.len()).then(|| Some(Arc::new(Columns::new(columns))))
    }

    fn wrong_type(&mut self, column: &str, node: &TomlNode) {
        let types = CellType::NAMES.iter().copied();
        let near = node.text().and_then(|text| nearest(text, types.clone()));
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the types are {}", crate::decl::tables::hints::or(types)),
        };
        let message = format!("the type of column `{column}` is unknown");
        let problem = self.file.problem(node.span.clone(), message);
        let label = node.text().map_or_else(
            || format!("this is {}", node.value.described()),
            |_| "unknown type".to_owned(),
        );
        self.reader.report.add(problem.label(label).help(help));
    }
}
