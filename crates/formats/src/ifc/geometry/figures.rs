//! The figures of an element: volume, areas by direction, height and length.

use super::outline::Outline;
use super::overlap::overlaps;
use super::surface::{Boundary, Triangles, Vector, boundary, cross, dot, minus, turned};
use crate::ifc::limits::ELEMENT_SIZE;
use crate::ifc::takeoff::Measured;
use rustc_hash::FxHashMap;
use serde::Serialize;

/// Measures of the geometry of an element, in m, m² and m³.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(in crate::ifc) struct Figures {
    pub(in crate::ifc) volume_m3: Option<f64>,
    pub(in crate::ifc) surface_area_m2: Option<f64>,
    /// Of faces that look up, seen from above.
    pub(in crate::ifc) top_area_m2: Option<f64>,
    /// Of faces that look down, seen from below.
    pub(in crate::ifc) bottom_area_m2: Option<f64>,
    /// Of upright faces.
    pub(in crate::ifc) side_area_m2: Option<f64>,
    /// Of the faces that look in the direction of the largest upright area, seen from there.
    pub(in crate::ifc) main_side_area_m2: Option<f64>,
    pub(in crate::ifc) height_m: Option<f64>,
    /// Along the longest axis of the element.
    pub(in crate::ifc) length_m: Option<f64>,
    /// Along the longer and the shorter of the axes of the element that lie in the plan.
    #[serde(skip)]
    plan: Option<[f64; 2]>,
    /// Why there is no volume.
    pub(in crate::ifc) problem: Option<&'static str>,
    pub(in crate::ifc) outline: Option<Outline>,
    /// The record because of which there are no figures: it does not fit its class.
    #[serde(skip)]
    lost: Option<u32>,
}

/// The element has no representation that encloses anything.
pub(super) const NO_GEOMETRY: &str = "no geometry";
/// The representation is of a kind that is not supported, or broken.
pub(super) const NOT_READABLE: &str = "not readable";
/// Items of the representation are of kinds that are not supported, or broken.
pub(super) const INCOMPLETE: &str = "incomplete";
/// An opening could not be cut out exactly.
pub(super) const NOT_CUT: &str = "opening not cut";
/// Features add to the element.
pub(super) const PROJECTIONS: &str = "projections";
/// The mesh exceeds a limit.
pub(super) const TOO_LARGE: &str = "too large";
const OPEN: &str = "open mesh";
const TURNED: &str = "faces turned";
const OVERLAPPING: &str = "overlapping solids";
const FLAT: &str = "flat";
const OUTSIDE: &str = "larger than its box";

/// The sine of the angle to the upright up to which a face is upright: 6°.
const UPRIGHT: f64 = 0.1;

/// The cosine of the angle up to which a face looks in a direction: 45°.
const SAME_SIDE: f64 = 0.707;

/// Volumes below this are none, in m³.
const LEAST: f64 = 1e-9;

impl Figures {
    /// Returns the figures of an element without a mesh.
    pub(super) fn without_mesh(problem: &'static str) -> Self {
        Self {
            problem: Some(problem),
            ..Self::default()
        }
    }

    /// Returns the figures of an element that depends on the record `id`, which does not fit its class.
    pub(super) fn lost(id: u32) -> Self {
        Self {
            lost: Some(id),
            ..Self::without_mesh(NOT_READABLE)
        }
    }

    /// Returns the figures that an element may be counted by.
    pub(in crate::ifc) fn amounts(&self) -> Measured {
        Measured {
            volume: self.volume_m3,
            top_area: self.top_area_m2,
            main_side_area: self.main_side_area_m2,
            side_area: self.side_area_m2,
            surface: self.surface_area_m2,
            height: self.height_m,
            length: self.length_m,
            plan: self.plan,
            lost: self.lost,
        }
    }

    /// Measures a mesh. `problem` is a known problem of it.
    pub(super) fn of(mesh: &Triangles, problem: Option<&'static str>) -> Self {
        let mut faces = faces_of(mesh);
        let extents = Extents::of(mesh, &faces);
        if extents.longest > ELEMENT_SIZE {
            return Self::without_mesh(TOO_LARGE);
        }
        let mut figures = Self {
            height_m: Some(round(extents.height)),
            length_m: Some(round(extents.length)),
            plan: Some(extents.plan),
            ..Self::without_mesh(OPEN)
        };
        let outward;
        let (mesh, simple) = match (problem, boundary(mesh)) {
            (Some(problem), _) => {
                figures.problem = Some(problem);
                return figures;
            }
            (None, Boundary::Open) => return figures,
            (None, Boundary::Turned) => {
                let Some(mesh) = turned(mesh) else {
                    figures.problem = Some(TURNED);
                    return figures;
                };
                outward = mesh;
                faces = faces_of(&outward);
                (&outward, false)
            }
            (None, Boundary::Closed { simple }) => (mesh, simple),
        };
        let signed = mesh.volume_of(&mesh.corners);
        let sign = if signed < 0.0 { -1.0 } else { 1.0 };
        figures.problem = if signed.abs() < LEAST {
            Some(FLAT)
        } else if signed.abs() > extents.box_volume * 1.001 {
            Some(OUTSIDE)
        } else if !simple && overlaps(mesh, signed < 0.0) {
            Some(OVERLAPPING)
        } else {
            None
        };
        if figures.problem.is_some() {
            return figures;
        }
        let faces: Vec<Vector> = faces
            .into_iter()
            .map(|face| face.map(|part| part * sign))
            .collect();
        let areas = Areas::of(&faces);
        figures.volume_m3 = Some(round(signed.abs()));
        figures.surface_area_m2 = Some(round(areas.surface));
        figures.top_area_m2 = Some(round(areas.top));
        figures.bottom_area_m2 = Some(round(areas.bottom));
        figures.side_area_m2 = Some(round(areas.side));
        figures.main_side_area_m2 = Some(round(areas.main_side));
        figures
    }
}

/// Rounds to a millionth: coordinates of meshes have 24 bits.
fn round(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// Returns the area vectors of all faces.
fn faces_of(mesh: &Triangles) -> Vec<Vector> {
    let area = |[a, b, c]: [Vector; 3]| cross(minus(b, a), minus(c, a)).map(|part| part / 2.0);
    mesh.iter().map(area).collect()
}

/// Areas of the faces of a solid.
#[derive(Default)]
struct Areas {
    surface: f64,
    top: f64,
    bottom: f64,
    side: f64,
    main_side: f64,
}

impl Areas {
    fn of(faces: &[Vector]) -> Self {
        let mut areas = Self::default();
        let mut sides = Vec::new();
        for face in faces {
            let area = dot(*face, *face).sqrt();
            areas.surface += area;
            if face[2].abs() <= area * UPRIGHT {
                areas.side += area;
            } else if face[2] > 0.0 {
                areas.top += face[2];
            } else {
                areas.bottom -= face[2];
            }
            if face[2].abs() < area * SAME_SIDE {
                sides.push([face[0], face[1], 0.0]);
            }
        }
        if let Some(main) = main_direction(&sides, false) {
            let towards = sides.iter().map(|side| (dot(*side, main), side));
            let towards =
                towards.filter(|(seen, side)| *seen > SAME_SIDE * dot(**side, **side).sqrt());
            areas.main_side = towards.map(|(seen, _)| seen).sum();
        }
        areas
    }
}

/// Returns the direction in which most of the area looks; with `both`, together with the opposite direction.
fn main_direction(faces: &[Vector], both: bool) -> Option<Vector> {
    let mut cells: FxHashMap<[i8; 3], (f64, Vector)> = FxHashMap::default();
    let mut most: Option<(f64, Vector)> = None;
    for face in faces {
        let area = dot(*face, *face).sqrt();
        if area <= 0.0 {
            continue;
        }
        let is_back = both
            && face
                .iter()
                .find(|part| part.abs() > area * 1e-3)
                .is_some_and(|part| *part < 0.0);
        let face = if is_back {
            face.map(|part| -part)
        } else {
            *face
        };
        let cell = face.map(|part| (part / area * 32.0).round() as i8);
        let sum = cells.entry(cell).or_insert((0.0, [0.0; 3]));
        sum.0 += area;
        sum.1 = [0, 1, 2].map(|axis| sum.1[axis] + face[axis]);
        if most.is_none_or(|(largest, _)| sum.0 > largest * (1.0 + 1e-9)) {
            most = Some(*sum);
        }
    }
    let (_, sum) = most?;
    let length = dot(sum, sum).sqrt();
    Some(sum.map(|part| part / length))
}

/// How far a mesh extends.
struct Extents {
    height: f64,
    length: f64,
    /// Of the axes that lie in the plan, the longer first.
    plan: [f64; 2],
    /// Of the sides of the box.
    longest: f64,
    /// Of the box along the axes of the world.
    box_volume: f64,
}

impl Extents {
    fn of(mesh: &Triangles, faces: &[Vector]) -> Self {
        let along = |direction: Vector| {
            let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
            for vertex in &mesh.vertices {
                let at = dot(*vertex, direction);
                least = least.min(at);
                most = most.max(at);
            }
            (most - least).max(0.0)
        };
        let world = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        let sizes = world.map(along);
        let mut axes = axes(faces)
            .unwrap_or(world)
            .map(|axis| (axis[2].abs(), along(axis)));
        // The steepest last.
        axes.sort_by(|one, other| one.0.total_cmp(&other.0));
        let [first, second, third] = axes.map(|(_, length)| length);
        Self {
            height: sizes[2],
            length: first.max(second).max(third),
            plan: [first.max(second), first.min(second)],
            longest: sizes.iter().copied().fold(0.0, f64::max),
            box_volume: sizes.iter().product(),
        }
    }
}

/// Returns the axes of an element: where most of its area looks, where most of what is square to that looks, and the
/// direction that is square to both.
fn axes(faces: &[Vector]) -> Option<[Vector; 3]> {
    let first = main_direction(faces, true)?;
    let square = |face: &&Vector| {
        let along = dot(**face, first);
        along * along < 0.01 * dot(**face, **face)
    };
    let others: Vec<Vector> = faces.iter().filter(square).copied().collect();
    let second = main_direction(&others, true)?;
    let along = dot(second, first);
    let second = minus(second, first.map(|part| part * along));
    let length = dot(second, second).sqrt();
    if length < 0.5 {
        return None;
    }
    let second = second.map(|part| part / length);
    Some([first, second, cross(first, second)])
}
