//! Figures from the geometry of an element: its mesh with openings cut out, measured.
//!
//! | file | holds |
//! |---|---|
//! | `source` | what all threads share: positions of records, units, openings |
//! | `mesher` | the mesh of one element, with limits |
//! | `surface` | whether a mesh encloses a volume |
//! | `overlap` | whether its parts overlap |
//! | `figures` | volume, areas by direction, height, length |
//! | `outline` | the outline in the plan of the storey |
//! | `rings` | closed lines: simplified, bounded, rounded |

mod figures;
mod mesher;
mod outline;
mod overlap;
mod rings;
mod source;
mod surface;

pub(super) use figures::Figures;
pub(super) use mesher::Mesher;
pub(super) use source::{MeshSource, Positions};

use serde::{Deserialize, Serialize};

/// The elements that are measured by their geometry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Measured {
    /// None.
    None,
    /// Those for which the model states no volume, or volumes that differ by more than a factor of 2.
    Missing,
    /// All.
    All,
}
