//! Follows the journal of a workspace: returns its records as runs append them.

use crate::ops::project::error::OpsError;
use crate::ops::project::find_project;
use crate::ops::project::open::workspace_of;
use crate::ops::project::request::Request;
use milepost_core::model::event::Record;
use milepost_store::store::journal::Cursor;
use milepost_store::store::layout::Layout;
use milepost_store::store::workspace::Workspace;

pub use milepost_store::store::journal::{NoPosition, Position};

/// Reads the records that are appended to the journal of a workspace, over its segments.
///
/// It costs what was appended: [`Follower::read`] may be called many times a second. The workspace and its journal need not exist yet.
/// The declarations are not read.
#[derive(Debug, Clone)]
pub struct Follower {
    layout: Layout,
    cursor: Cursor,
}

impl Follower {
    /// Follows the journal from its end.
    ///
    /// # Errors
    /// When there is no project, or the workspace or its journal cannot be read.
    pub fn at_end(request: &Request) -> Result<Self, OpsError> {
        let layout = layout(request)?;
        let cursor = Cursor::at_end(&layout)?;
        Ok(Self { layout, cursor })
    }

    /// Follows the journal from a position that [`Follower::read`] returned, or from [`Position::START`].
    ///
    /// # Errors
    /// The errors of [`Follower::at_end`], and when no record ends at the position: the journal was replaced since.
    pub fn after(request: &Request, position: Position) -> Result<Self, OpsError> {
        let layout = layout(request)?;
        let cursor = Cursor::after(&layout, position)?;
        Ok(Self { layout, cursor })
    }

    /// Returns the whole records that were written since the last call, each with the position after it; a half-written last line is
    /// left for the next call. Of very many records a call returns only the first: call again until nothing is returned.
    ///
    /// # Errors
    /// When the journal cannot be read, is broken, or was replaced. Records before the fault are returned first.
    pub fn read(&mut self) -> Result<Vec<(Position, Record)>, OpsError> {
        Ok(self.cursor.read(&self.layout)?)
    }

    /// Returns the place after the last record that was read.
    pub fn position(&self) -> Position {
        self.cursor.position()
    }
}

fn layout(request: &Request) -> Result<Layout, OpsError> {
    let project = find_project(&request.folder)?;
    let workspace = Workspace::open(&workspace_of(request, &project), request.now())?;
    Ok(workspace.layout)
}
