//! The mesh of one element. Each element has resource limits, and a defect affects only its own element.

use super::figures::{
    Figures, INCOMPLETE, NO_GEOMETRY, NOT_CUT, NOT_READABLE, PROJECTIONS, TOO_LARGE,
};
use super::outline::{CUT, outline};
use super::source::MeshSource;
use super::surface::Triangles;
use crate::ifc::index::RecordEntry;
use crate::ifc::limits::{
    ELEMENT_OPENINGS, ELEMENT_OVERTIME, ELEMENT_TIME, ELEMENT_TRIANGLES, OVERTIME, POLYGON_POINTS,
    STEPS_UP,
};
use ifc_lite_core::{AttributeValue, DecodedEntity, EntityDecoder};
use ifc_lite_geometry::kernel::budget::enter_element;
use ifc_lite_geometry::{BoolFailureReason, GeometryRouter, Mesh, progress};
use rustc_hash::{FxHashMap, FxHashSet};
use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::iter::successors;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

/// The most decoded records that a thread remembers.
const RECORDS: usize = 20_000;

/// The most triangles of meshes that a thread remembers because other elements may have the same.
const REMEMBERED: usize = 200_000;

/// Elements that a router serves: it keeps notes of each.
const SERVED: usize = 256;

thread_local! {
    /// The processor time of this thread at which meshing the current element ends; `None` if no element is meshed.
    static END: Cell<Option<Duration>> = const { Cell::new(None) };
}

/// Why meshing an element was ended.
struct TookTooLong;

/// Ends meshing an element that takes too long. Meshing calls it at each cut, and often within a cut.
fn check_time() {
    if END.get().is_some_and(|end| used_time() > end) {
        END.set(None);
        resume_unwind(Box::new(TookTooLong));
    }
}

/// Returns the processor time that this thread has used.
fn used_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// Measures elements, one after another, on one thread.
pub(in crate::ifc) struct Mesher<'m, 'a> {
    source: &'m MeshSource<'m, 'a>,
    decoder: EntityDecoder<'a>,
    router: GeometryRouter,
    served: usize,
    triangles: usize,
    /// The time that is left for elements beyond [`ELEMENT_TIME`].
    overtime: Duration,
    /// The heights of storeys in the world, in metres.
    storeys: FxHashMap<u32, Option<f64>>,
    /// Shared shapes with items that could not be meshed.
    incomplete: FxHashSet<u32>,
    /// Records of shapes that have no polygon with too many points.
    short: FxHashSet<u32>,
    /// Records of shapes that fit their class, with all their parts.
    fit: FxHashSet<u32>,
}

impl<'m, 'a> Mesher<'m, 'a> {
    pub(in crate::ifc) fn new(source: &'m MeshSource<'m, 'a>) -> Self {
        // A hook that is there already is this one.
        progress::set_hook(check_time);
        Self {
            source,
            decoder: source.decoder(),
            router: router(source),
            served: 0,
            triangles: 0,
            overtime: OVERTIME,
            storeys: FxHashMap::default(),
            incomplete: FxHashSet::default(),
            short: FxHashSet::default(),
            fit: FxHashSet::default(),
        }
    }

    /// Returns the figures of an element. `storey` is the storey it is on, with its elevation in metres.
    pub(in crate::ifc) fn figures(
        &mut self,
        element: RecordEntry,
        storey: Option<(u32, Option<f64>)>,
    ) -> Figures {
        self.tidy();
        let start = used_time();
        END.set(Some(
            start + ELEMENT_TIME + self.overtime.min(ELEMENT_OVERTIME),
        ));
        let measured = catch_unwind(AssertUnwindSafe(|| self.measured(element, storey)));
        END.set(None);
        let beyond = used_time().saturating_sub(start + ELEMENT_TIME);
        self.overtime = self.overtime.saturating_sub(beyond);
        measured.unwrap_or_else(|panic| {
            self.decoder = self.source.decoder();
            self.served = usize::MAX;
            Figures::without_mesh(if panic.is::<TookTooLong>() {
                TOO_LARGE
            } else {
                NOT_READABLE
            })
        })
    }

    /// Forgets what was remembered of earlier elements, if it is much.
    fn tidy(&mut self) {
        if self.served >= SERVED || self.triangles > REMEMBERED {
            self.router = router(self.source);
            self.served = 0;
            self.triangles = 0;
        }
        self.served += 1;
        self.forget_records();
    }

    fn forget_records(&mut self) {
        if self.decoder.cache_size() > RECORDS {
            self.decoder.clear_entity_cache();
            self.decoder.clear_point_cache();
        }
    }

    fn measured(&mut self, element: RecordEntry, storey: Option<(u32, Option<f64>)>) -> Figures {
        let _budget = enter_element();
        let Ok(entity) = self.decoder.decode_by_id(element.id) else {
            return Figures::without_mesh(NOT_READABLE);
        };
        let is_shown = |at: usize| entity.get(at).is_some_and(|value| !value.is_null());
        if !is_shown(6) && !self.source.model.misfits.contains(&element.id) {
            return Figures::without_mesh(NO_GEOMETRY);
        }
        let (openings, has_projections) = self.features(element.id);
        if let Some(refused) = self.refused(&entity, &openings) {
            return refused;
        }
        let mesh = self.mesh(&entity, openings);
        let problem = self
            .problem(&entity)
            .or(has_projections.then_some(PROJECTIONS));
        let mesh = match mesh {
            Ok(mesh) if mesh.indices.is_empty() => {
                return Figures::without_mesh(problem.unwrap_or(NO_GEOMETRY));
            }
            Ok(mesh) => mesh,
            Err(_) => return Figures::without_mesh(problem.unwrap_or(NOT_READABLE)),
        };
        self.triangles += mesh.indices.len() / 3;
        if mesh.indices.len() / 3 > ELEMENT_TRIANGLES {
            return Figures::without_mesh(TOO_LARGE);
        }
        let Some(mesh) = triangles(mesh, self.source.offset) else {
            return Figures::without_mesh(NOT_READABLE);
        };
        let mut figures = Figures::of(&mesh, problem);
        let cut = storey.and_then(|(id, elevation)| self.height(id).or(elevation));
        figures.outline = outline(&mesh, cut.map(|height| height + CUT));
        figures
    }

    /// Returns a record that the geometry of an element depends on and that cannot be read.
    fn lost(&mut self, element: u32, openings: &[u32]) -> Option<u32> {
        let MeshSource {
            model, relations, ..
        } = self.source;
        let mut hosts = successors(Some(element), |id| relations.parents.first(*id)).take(STEPS_UP);
        let is_relation = |id: &u32| model.role(*id).is_none();
        let uncut = hosts.find_map(|host| relations.lost.of(host).find(is_relation));
        let lost = uncut.or(self.source.unread);
        if lost.is_some() || model.misfits.is_empty() {
            return lost;
        }
        let mut open: Vec<u32> = openings.iter().copied().chain([element]).collect();
        let mut seen = FxHashSet::default();
        while let Some(id) = open.pop() {
            if self.fit.contains(&id) || !seen.insert(id) {
                continue;
            }
            if model.misfits.contains(&id) {
                return Some(id);
            }
            check_time();
            self.forget_records();
            if let Ok(record) = self.decoder.decode_by_id(id) {
                open.extend(parts(&record).0);
            }
        }
        self.fit.extend(seen);
        None
    }

    /// Returns the figures of an element that is not meshed: a record of its shape or of an opening in it cannot be read, or a polygon has
    /// too many points, or points of different numbers of coordinates.
    fn refused(&mut self, element: &DecodedEntity, openings: &[u32]) -> Option<Figures> {
        if let Some(id) = self.lost(element.id, openings) {
            return Some(Figures::lost(id));
        }
        if openings.len() > ELEMENT_OPENINGS {
            return Some(Figures::without_mesh(TOO_LARGE));
        }
        let mut shapes: Vec<u32> = element.get_ref(6).into_iter().collect();
        for opening in openings {
            let opening = self.decoder.decode_by_id(*opening);
            shapes.extend(opening.ok().and_then(|opening| opening.get_ref(6)));
        }
        // Each with whether it is a part of the polygon that was reached last, whose points are counted.
        let mut open: Vec<(u32, bool)> = shapes.into_iter().map(|id| (id, false)).collect();
        let mut seen = FxHashSet::default();
        let mut points = 0;
        while let Some((id, is_part)) = open.pop() {
            if !is_part {
                if self.short.contains(&id) || !seen.insert(id) {
                    continue;
                }
                points = 0;
            }
            check_time();
            self.forget_records();
            let Ok(record) = self.decoder.decode_by_id(id) else {
                continue;
            };
            let name = record.ifc_type.name();
            let is_part = is_part || is_polygon(name);
            let has_parts = !matches!(name, "IfcPolyline" | "IfcPolyLoop") && !is_surface(name);
            let (parts, values) = parts(&record);
            points += values;
            if has_parts {
                open.extend(parts.into_iter().map(|id| (id, is_part)));
            }
            if is_part && points > POLYGON_POINTS {
                return Some(Figures::without_mesh(TOO_LARGE));
            }
            if let Some(point) = self.uneven(&record, name) {
                return Some(Figures::lost(point));
            }
        }
        self.short.extend(seen);
        None
    }

    /// Returns a point of a polyline or of a place in the plane that has the wrong number of coordinates.
    fn uneven(&mut self, record: &DecodedEntity, class: &str) -> Option<u32> {
        let (points, mut expected) = match class {
            "IfcPolyline" => (record.get_refs(0)?, None),
            "IfcAxis2Placement2D" => (vec![record.get_ref(0)?], Some(2)),
            _ => return None,
        };
        points.into_iter().find(|id| {
            let point = self.decoder.decode_by_id(*id).ok();
            let count = point.and_then(|point| Some(point.get_list(0)?.len()));
            count.is_some_and(|count| *expected.get_or_insert(count) != count)
        })
    }

    /// Meshes an element with its openings cut out.
    fn mesh(
        &mut self,
        entity: &DecodedEntity,
        openings: Vec<u32>,
    ) -> Result<Mesh, ifc_lite_geometry::Error> {
        if openings.is_empty() {
            return self.router.process_element(entity, &mut self.decoder);
        }
        let openings = FxHashMap::from_iter([(entity.id, openings)]);
        self.router
            .process_element_with_voids(entity, &mut self.decoder, &openings)
    }

    /// Returns the openings of an element and of the wholes that it is part of, and whether features add to it.
    fn features(&self, id: u32) -> (Vec<u32>, bool) {
        let MeshSource {
            model, relations, ..
        } = self.source;
        let (mut openings, mut adds) = (Vec::new(), false);
        let mut next = Some(id);
        let mut steps = 0;
        while let Some(host) = next {
            for feature in relations.features(host) {
                let class = model.index.get(feature).map(|entry| model.class(entry));
                if class.is_some_and(|class| class.name == "IfcProjectionElement") {
                    adds = true;
                } else {
                    openings.push(feature);
                }
            }
            steps += 1;
            next = relations.parents.first(host).filter(|_| steps < STEPS_UP);
        }
        openings.sort_unstable();
        openings.dedup();
        (openings, adds)
    }

    /// Returns what went wrong although there may be a mesh.
    fn problem(&mut self, entity: &DecodedEntity) -> Option<&'static str> {
        let is_dropped = !self.router.take_unsupported_items().is_empty();
        if is_dropped || !self.incomplete.is_empty() {
            // Items of shared shapes are reported once.
            let shapes = shared_shapes(entity, &mut self.decoder);
            if is_dropped || shapes.iter().any(|shape| self.incomplete.contains(shape)) {
                self.incomplete.extend(shapes);
                self.router.take_csg_failures();
                return Some(INCOMPLETE);
            }
        }
        let failures = self.router.take_csg_failures();
        let mut reasons = failures.values().flatten().map(|failure| &failure.reason);
        // The other reasons say that there was nothing to cut, or leave a mesh that is judged by itself.
        let is_wrong = reasons.any(|reason| {
            !matches!(
                reason,
                BoolFailureReason::NoBoundsOverlap
                    | BoolFailureReason::CutterUnionUnavailable
                    | BoolFailureReason::KernelError(_)
            )
        });
        is_wrong.then_some(NOT_CUT)
    }

    /// Returns the height of a storey in the world.
    fn height(&mut self, storey: u32) -> Option<f64> {
        if let Some(known) = self.storeys.get(&storey) {
            return *known;
        }
        let entity = self.decoder.decode_by_id(storey).ok();
        let entity = entity.filter(|entity| entity.get(5).is_some_and(|place| !place.is_null()));
        let placed = entity.and_then(|entity| {
            let placed = self
                .router
                .resolve_scaled_placement(&entity, &mut self.decoder);
            placed.ok().map(|matrix| matrix[14])
        });
        let height = placed.filter(|height| height.is_finite());
        self.storeys.insert(storey, height);
        height
    }
}

/// Returns the references of a record, and how many references, integers and lists it has.
fn parts(record: &DecodedEntity) -> (Vec<u32>, usize) {
    let (mut parts, mut count) = (Vec::new(), 0);
    let mut values: Vec<&AttributeValue> = record.attributes.iter().collect();
    while let Some(value) = values.pop() {
        count += 1;
        match value {
            AttributeValue::EntityRef(id) => parts.push(*id),
            AttributeValue::List(list) => values.extend(list),
            AttributeValue::Typed { value, .. } => values.push(value),
            AttributeValue::Integer(_) => {}
            _ => count -= 1,
        }
    }
    (parts, count)
}

/// Returns true if the points of a record and of all its parts are divided into triangles together.
fn is_polygon(class: &str) -> bool {
    let has = |parts: &[&str]| parts.iter().any(|part| class.contains(part));
    has(&["Profile", "Polyline", "Loop"])
        || has(&["Face", "Curve"]) && !has(&["FaceSet", "FaceBased", "Faceted", "CurveSet"])
}

/// Returns true if a class is the surface of a face, whose points shape it and do not bound it.
fn is_surface(class: &str) -> bool {
    class.ends_with("Surface") && class != "IfcFaceSurface"
}

fn router(source: &MeshSource) -> GeometryRouter {
    let mut router = GeometryRouter::with_scale_and_rtc(source.metre, source.offset);
    router.enable_content_dedup_shared(GeometryRouter::new_dedup_cache());
    router
}

/// Returns the shared shapes that an element refers to.
fn shared_shapes(entity: &DecodedEntity, decoder: &mut EntityDecoder) -> Vec<u32> {
    let mut shapes = Vec::new();
    let Some(product) = entity
        .get_ref(6)
        .and_then(|id| decoder.decode_by_id(id).ok())
    else {
        return shapes;
    };
    for representation in product.get_refs(2).unwrap_or_default() {
        let Ok(representation) = decoder.decode_by_id(representation) else {
            continue;
        };
        for item in representation.get_refs(3).unwrap_or_default() {
            let item = decoder.decode_by_id(item).ok();
            shapes.extend(item.and_then(|item| item.get_ref(0)));
        }
    }
    shapes
}

/// Returns a mesh with coordinates of full precision; `None` if one of them is not a number.
fn triangles(mesh: Mesh, offset: (f64, f64, f64)) -> Option<Triangles> {
    let offset = [offset.0, offset.1, offset.2];
    let origin = [0, 1, 2].map(|axis| mesh.origin[axis] + offset[axis]);
    if !mesh.positions.iter().all(|at| at.is_finite()) || !origin.iter().all(|at| at.is_finite()) {
        return None;
    }
    let (vertices, _) = mesh.positions.as_chunks::<3>();
    let (corners, _) = mesh.indices.as_chunks::<3>();
    let count = vertices.len() as u32;
    if corners.iter().flatten().any(|corner| *corner >= count) {
        return None;
    }
    Some(Triangles {
        vertices: vertices.iter().map(|at| at.map(f64::from)).collect(),
        corners: corners.to_vec(),
        origin,
    })
}
