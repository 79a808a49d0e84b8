//! How much of a model is read. Models come from anywhere: one record that names itself some times, or a list of elements times a
//! list of property sets, asks for more than any machine has. Sound models stay far below these limits; one that does not is
//! refused with [`super::IfcError::Limit`].

use std::time::Duration;

/// Pairs of relations that relate several things to several others, beyond one pair a thing.
pub(super) const PAIRS: usize = 4_000_000;

/// Values of one element: properties, quantities, materials, layers, classifications, and the sets that hold them.
pub(super) const ELEMENT_VALUES: u64 = 100_000;

/// Values of all elements together, beyond [`SHARING`].
pub(super) const VALUES: u64 = 10_000_000;

/// Values of all elements together for each record. Elements share the sets of their types, so that there are more than records.
pub(super) const SHARING: u64 = 100;

/// Relations on the way up from an element to its storey.
pub(super) const STEPS_UP: usize = 1_000;

/// Bytes that are written, beyond [`OUTPUT_RATIO`].
pub(super) const OUTPUT: u64 = 64 << 20;

/// Bytes that are written for each byte of the model.
pub(super) const OUTPUT_RATIO: u64 = 100;

/// Bytes of a model in an archive.
pub(super) const UNZIPPED: u64 = 2 << 30;

/// Bytes of a model for each byte of its archive, beyond [`UNZIPPED_ANYWAY`]. STEP text has about 10.
pub(super) const UNZIP_RATIO: u64 = 200;

/// Bytes that a model in an archive may have at any ratio.
pub(super) const UNZIPPED_ANYWAY: u64 = 16 << 20;

/// How deep materials and quantities may be nested. What is deeper is left out; sound files need three steps.
pub(super) const NESTED: usize = 8;

/// Threads that read elements.
pub(super) const THREADS: usize = 8;

/// Triangles of one element that are measured.
pub(super) const ELEMENT_TRIANGLES: usize = 1_000_000;

/// Openings of one element that is measured: the time of cutting them grows faster than their number, and is not always checked.
pub(super) const ELEMENT_OPENINGS: usize = 1_000;

/// Points of one polygon of an element that is measured, with those of its parts and holes: the time of dividing it into triangles may grow
/// with their square, and is not checked.
pub(super) const POLYGON_POINTS: usize = 20_000;

/// The longest side of an element that is measured, in metres.
pub(super) const ELEMENT_SIZE: f64 = 1e5;

/// Processor time of meshing one element.
pub(super) const ELEMENT_TIME: Duration = Duration::from_secs(2);

/// The additional time for one element beyond [`ELEMENT_TIME`].
pub(super) const ELEMENT_OVERTIME: Duration = Duration::from_secs(18);

/// The additional time for all elements of a thread beyond [`ELEMENT_TIME`].
pub(super) const OVERTIME: Duration = Duration::from_mins(1);
