//! The source of all meshes of a model: its records, its units, its openings.

use crate::ifc::index::Model;
use crate::ifc::relations::Relations;
use ifc_lite_core::{ColumnarEntityIndex, DenseEntityIndex, EntityDecoder};
use ifc_lite_geometry::GeometryRouter;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The positions of all records, in the order of the file.
#[derive(Default)]
pub(in crate::ifc) struct Positions {
    ids: Vec<u32>,
    starts: Vec<u32>,
    lengths: Vec<u32>,
    /// A record lies beyond 4 GiB.
    is_beyond: bool,
}

impl Positions {
    pub(in crate::ifc) fn push(&mut self, id: u32, begin: usize, end: usize) {
        let (Ok(begin), Ok(end)) = (u32::try_from(begin), u32::try_from(end)) else {
            self.is_beyond = true;
            return;
        };
        self.ids.push(id);
        self.starts.push(begin);
        self.lengths.push(end - begin);
    }

    /// Sorts by name; of several records with one name, the first in the file stays.
    fn sort(&mut self) {
        if self.ids.is_sorted_by(|one, other| one < other) {
            return;
        }
        let mut order: Vec<u32> = (0..self.ids.len() as u32).collect();
        order.sort_by_key(|at| self.ids[*at as usize]);
        order.dedup_by_key(|at| self.ids[*at as usize]);
        for column in [&mut self.starts, &mut self.lengths, &mut self.ids] {
            *column = order.iter().map(|at| column[*at as usize]).collect();
        }
    }
}

/// The positions, by name.
enum Lookup {
    Dense(Arc<DenseEntityIndex>),
    Sorted(Arc<ColumnarEntityIndex>),
}

/// The state that the threads that mesh a model share.
pub(in crate::ifc) struct MeshSource<'m, 'a> {
    pub(super) model: &'m Model<'a>,
    pub(super) relations: &'m Relations,
    lookup: Lookup,
    pub(super) metre: f64,
    radian: f64,
    /// Subtracted from coordinates, in metres: they have 24 bits in meshes.
    pub(super) offset: (f64, f64, f64),
    /// The record of its units that cannot be read.
    pub(super) unread: Option<u32>,
}

impl<'m, 'a> MeshSource<'m, 'a> {
    /// Prepares to mesh a model. `None` if it is too long, or its units cannot be read.
    pub(in crate::ifc) fn new(
        model: &'m Model<'a>,
        relations: &'m Relations,
        mut positions: Positions,
        unread: Option<u32>,
    ) -> Option<Self> {
        if positions.is_beyond {
            return None;
        }
        positions.sort();
        let Positions {
            ids,
            starts,
            lengths,
            ..
        } = positions;
        let lookup = match DenseEntityIndex::try_from_columns(&ids, &starts, &lengths) {
            Some(index) => Lookup::Dense(Arc::new(index)),
            None => {
                let index = ColumnarEntityIndex::from_owned_columns(ids, starts, lengths).ok()?;
                Lookup::Sorted(Arc::new(index))
            }
        };
        let mut source = Self {
            model,
            relations,
            lookup,
            metre: 1.0,
            radian: 1.0,
            offset: (0.0, 0.0, 0.0),
            unread,
        };
        let read = catch_unwind(AssertUnwindSafe(|| {
            let mut decoder = source.unseeded();
            let metre = decoder.length_unit_scale();
            let radian = decoder.plane_angle_to_radians();
            let router = GeometryRouter::with_scale(metre);
            let offset = router.detect_rtc_anchor_for_file(model.bytes, &mut decoder);
            (metre, radian, offset)
        }));
        let (metre, radian, offset) = read.ok()?;
        source.metre = metre;
        source.radian = radian;
        source.offset = offset.unwrap_or_default();
        Some(source)
    }

    /// Returns a decoder of the model's records.
    pub(super) fn decoder(&self) -> EntityDecoder<'a> {
        let mut decoder = self.unseeded();
        decoder.seed_unit_scales(self.metre, self.radian);
        decoder
    }

    fn unseeded(&self) -> EntityDecoder<'a> {
        let mut decoder = EntityDecoder::new(self.model.bytes).with_strict_reals();
        match &self.lookup {
            Lookup::Dense(index) => decoder.set_dense_index(Arc::clone(index)),
            Lookup::Sorted(index) => decoder.set_columnar_index(Arc::clone(index)),
        }
        decoder
    }
}
