//! The outline of an element in the plan of its storey: cut, or seen from above.

use super::rings::{Point, bounded, rounded};
use super::surface::Triangles;
use ifc_lite_geometry::projection_outline::{ProjectionAxis, mesh_outline_2d};
use rustc_hash::FxHashMap;
use serde::Serialize;

/// How far above the storey the plan is cut, in metres.
pub(super) const CUT: f64 = 1.2;

/// The most triangles whose outline is exact; that of others is their convex hull.
const EXACT: usize = 2_000;

/// How close the ends of lines are that meet, in metres.
const MEETS: f64 = 1e-4;

/// Lines of a plan, in metres of the world.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(in crate::ifc) struct Outline {
    pub(in crate::ifc) view: View,
    /// Each ring as x and y of its points in turn.
    pub(in crate::ifc) rings: Vec<Vec<f64>>,
}

/// How an element is seen in a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::ifc) enum View {
    /// The cut goes through it.
    Cut,
    /// It is entirely below the cut, or on no storey: seen from above.
    Below,
    /// It is entirely above the cut.
    Above,
}

/// Returns the outline of a mesh. `cut` is the height of the cut in the world; `None` on no storey.
pub(super) fn outline(mesh: &Triangles, cut: Option<f64>) -> Option<Outline> {
    let heights = mesh
        .vertices
        .iter()
        .map(|vertex| vertex[2] + mesh.origin[2]);
    let (least, most) = heights.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), at| {
        (least.min(at), most.max(at))
    });
    let (view, rings) = match cut {
        Some(cut) if least >= cut => (View::Above, seen(mesh)),
        Some(cut) if most > cut => {
            let section = section(mesh, cut - mesh.origin[2]);
            if section.is_empty() {
                (View::Below, seen(mesh))
            } else {
                (View::Cut, section)
            }
        }
        _ => (View::Below, seen(mesh)),
    };
    let origin = [mesh.origin[0], mesh.origin[1]];
    let rings = bounded(rings);
    let rings: Vec<_> = rings.iter().map(|ring| rounded(ring, origin)).collect();
    (!rings.is_empty()).then_some(Outline { view, rings })
}

/// Returns the outline of a mesh as it is seen from above.
fn seen(mesh: &Triangles) -> Vec<Vec<Point>> {
    if mesh.corners.len() > EXACT {
        return vec![hull(mesh)];
    }
    let positions: Vec<f32> = mesh
        .vertices
        .iter()
        .flatten()
        .map(|at| *at as f32)
        .collect();
    let indices: Vec<u32> = mesh.corners.iter().flatten().copied().collect();
    match mesh_outline_2d(&positions, &indices, ProjectionAxis::Z, false) {
        Ok(outline) => {
            let rings = outline.contours.into_iter();
            let ring = |ring: Vec<[f32; 2]>| ring.into_iter().map(|point| point.map(f64::from));
            rings.map(|contour| ring(contour).collect()).collect()
        }
        Err(_) => Vec::new(),
    }
}

/// Returns the convex hull of a mesh in the plan (monotone chain).
fn hull(mesh: &Triangles) -> Vec<Point> {
    let mut points: Vec<Point> = mesh.vertices.iter().map(|at| [at[0], at[1]]).collect();
    points.sort_by(|a, b| a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1])));
    points.dedup();
    let turn = |a: Point, b: Point, c: Point| {
        (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
    };
    let chain = |points: &mut dyn Iterator<Item = &Point>| {
        let mut chain: Vec<Point> = Vec::new();
        for point in points {
            while let [.., a, b] = chain.as_slice() {
                if turn(*a, *b, *point) > 0.0 {
                    break;
                }
                chain.pop();
            }
            chain.push(*point);
        }
        chain.pop();
        chain
    };
    let mut ring = chain(&mut points.iter());
    ring.extend(chain(&mut points.iter().rev()));
    ring
}

/// Returns the closed lines in which a plane cuts a mesh.
fn section(mesh: &Triangles, height: f64) -> Vec<Vec<Point>> {
    let cell = |point: Point| point.map(|part| (part / MEETS).round() as i64);
    let mut lines = Vec::new();
    for corners in mesh.iter() {
        // A corner on the plane counts as above it.
        let crosses = |at: usize| {
            let (a, b) = (corners[at], corners[(at + 1) % 3]);
            ((a[2] >= height) != (b[2] >= height)).then(|| {
                // From the same end in both triangles of an edge, so that both find the same point.
                let (low, high) = if a[2] < b[2] { (a, b) } else { (b, a) };
                let part = (height - low[2]) / (high[2] - low[2]);
                [0, 1].map(|axis| low[axis] + (high[axis] - low[axis]) * part)
            })
        };
        let ends: Vec<Point> = (0..3).filter_map(crosses).collect();
        if let [from, to] = ends[..]
            && cell(from) != cell(to)
        {
            lines.push([from, to]);
        }
    }
    let mut at: FxHashMap<[i64; 2], Vec<usize>> = FxHashMap::default();
    for (number, line) in lines.iter().enumerate() {
        for end in line {
            at.entry(cell(*end)).or_default().push(number);
        }
    }
    let mut used = vec![false; lines.len()];
    let mut rings = Vec::new();
    for first in 0..lines.len() {
        if used[first] {
            continue;
        }
        used[first] = true;
        let [start, mut end] = lines[first];
        let mut ring = vec![start, end];
        while cell(end) != cell(start) {
            let Some(meeting) = at.get_mut(&cell(end)) else {
                break;
            };
            while meeting.last().is_some_and(|number| used[*number]) {
                meeting.pop();
            }
            let Some(next) = meeting.pop() else {
                break;
            };
            used[next] = true;
            let [from, to] = lines[next];
            end = if cell(from) == cell(end) { to } else { from };
            ring.push(end);
        }
        if cell(end) == cell(start) {
            ring.pop();
            rings.push(ring);
        }
    }
    rings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pyramid_is_cut_below_or_above() {
        let pyramid = Triangles {
            vertices: vec![
                [0.0, 0.0, 0.0],
                [2.0, 0.0, 0.0],
                [2.0, 2.0, 0.0],
                [0.0, 2.0, 0.0],
                [1.0, 1.0, 2.0],
            ],
            corners: vec![
                [0, 2, 1],
                [0, 3, 2],
                [0, 1, 4],
                [1, 2, 4],
                [2, 3, 4],
                [3, 0, 4],
            ],
            origin: [10.0, 20.0, 3.0],
        };
        // The corners in millimetres: a ring may begin at any of them.
        let square = |low: i64, high: i64| {
            let [x, y] = [10_000, 20_000];
            let corners = [(low, low), (low, high), (high, low), (high, high)];
            corners.map(|(right, up)| (x + right, y + up)).to_vec()
        };
        let found = |cut: Option<f64>| {
            let outline = outline(&pyramid, cut).unwrap();
            assert_eq!(outline.rings.len(), 1);
            let corners = outline.rings[0].chunks(2);
            let corner = |at: &[f64]| ((at[0] * 1e3).round() as i64, (at[1] * 1e3).round() as i64);
            let mut corners: Vec<_> = corners.map(corner).collect();
            corners.sort_unstable();
            (outline.view, corners)
        };
        assert_eq!(found(Some(4.0)), (View::Cut, square(500, 1500)));
        assert_eq!(found(Some(5.0)), (View::Below, square(0, 2000)));
        assert_eq!(found(Some(3.0)), (View::Above, square(0, 2000)));
        assert_eq!(found(None), (View::Below, square(0, 2000)));
    }
}
