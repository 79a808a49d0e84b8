//! Reads `[workspaces]`: how a workspace list is read and summarized.

use crate::decl::keys::WORKSPACES;
use crate::decl::tables::fields::Fields;
use crate::decl::values::names::{ProjectNames, Sees, StageNames};
use crate::decl::values::reader::ValueReader;
use crate::model::pipeline::Manifest;
use crate::model::stage::Program;

/// Reads `[workspaces]`; it may be missing.
pub(crate) fn read(reader: &mut ValueReader<'_>, top: &Fields<'_>) -> Manifest {
    let Some(fields) = top.table("workspaces", &WORKSPACES, &mut reader.report) else {
        return Manifest::default();
    };
    Manifest {
        select: program(reader, &fields, "select"),
        summary: program(reader, &fields, "summary"),
    }
}

/// Reads a program that sees `.` only: it runs for a list of workspaces, not for one.
fn program(
    reader: &mut ValueReader<'_>,
    fields: &Fields<'_>,
    key: &'static str,
) -> Option<Program> {
    let spot = fields.spot(key)?;
    let none = ProjectNames::default();
    reader.jq(&spot, &StageNames::of_project(&none), Sees::Nothing)
}
