//! Building models (IFC, ISO 16739, as STEP text of ISO 10303-21, or zipped) to JSON.
//!
//! ```
//! use milepost_formats::ifc;
//! use std::path::Path;
//!
//! let model = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/crash/six_elements.ifc"));
//! let mut json = Vec::new();
//! let summary = ifc::extract(model, "six_elements.ifc", &mut json)?;
//! assert_eq!(summary.elements, 6);
//! assert!(json.starts_with(b"{"));
//! # Ok::<(), ifc::IfcError>(())
//! ```
//!
//! The result is an object with `model` (file, schema, project, counts, warnings), `elements` and `openings`, in the order of the
//! file, one line each. Lengths, areas and volumes of quantities are converted to m, m² and m³ by the units of the project;
//! property values stay in the unit of the file.
//!
//! The file is mapped, scanned once for a compact index of the records that matter (geometry is skipped), and written element
//! by element: memory grows by 12 bytes a record, not with the length of the records. Files of IFC2X3, IFC4 and IFC4X3 with
//! their addenda are read. Sizes, counts and depths are limited ([`IfcError::Limit`]). A file that another program truncates
//! during the call ends the process with a bus error: run the reader in a process of its own. Milepost does, and reports that
//! the file was truncated.
//!
//! | file | holds |
//! |---|---|
//! | `map` | the mapped file, the only unsafe code |
//! | `open` | which files are accepted, and the errors |
//! | `limits` | how much of a model is read |
//! | `counts` | the values of a model, counted before they are read |
//! | `stop` | why a model is not read to its end |
//! | `step` | all calls of the STEP parser |
//! | `schema` | the schema that a file declares, and the role of each of its classes |
//! | `index` | the position of each record that matters |
//! | `relations` | containment, aggregation, types, materials, properties |
//! | `place` | storey, container and assembly of an element |
//! | `values` | materials, quantities, properties, classifications, units |
//! | `review` | defects of a model, found before anything is written |
//! | `geometry` | figures from the mesh of an element |
//! | `takeoff` | the figures that an element is counted by, and whether they agree |
//! | `element` | one element, as it is written |
//! | `extract` | the whole model, on several threads |

mod counts;
mod element;
mod encoding;
mod extract;
mod geometry;
mod index;
mod limits;
mod map;
mod open;
mod place;
mod relations;
mod review;
mod schema;
mod step;
mod stop;
mod takeoff;
mod values;

#[doc(hidden)]
pub use extract::extract_on;
pub use extract::{ModelSummary, extract, extract_while};
pub use geometry::Measured;
pub use open::IfcError;
