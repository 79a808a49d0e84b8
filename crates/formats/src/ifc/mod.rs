//! Reads a building model (IFC as STEP text, or zipped) into `parsed_data.json`.
//!
//! The file is mapped, scanned once for a compact index of the records that matter (geometry is passed over), and
//! written out element by element: memory grows with the number of such records, not with what they say.
//!
//! | file | holds |
//! |---|---|
//! | `map` | the mapped file, the only unsafe code |
//! | `open` | what may be read at all, and the errors |
//! | `step` | the one door to the STEP parser |
//! | `schema` | which schema a file declares, and what each of its classes is to us |
//! | `index` | where each record that matters is |
//! | `relations` | who is in what, made of what, described by what |
//! | `place` | storey, container and assembly |
//! | `units` `materials` `quantities` `properties` `classifications` | one kind of value each |
//! | `named` | small maps that keep their order |
//! | `review` | what is wrong with a model, found before anything is written |
//! | `element` | one element, as it is written |
//! | `extract` | the whole |

mod classifications;
mod element;
mod extract;
mod index;
mod map;
mod materials;
mod named;
mod open;
mod place;
mod properties;
mod quantities;
mod relations;
mod review;
mod schema;
mod step;
mod units;

#[doc(hidden)]
pub use extract::extract_lines;
pub use extract::{ModelSummary, extract, extract_while};
pub use open::IfcError;
