//! Whether the parts of a closed mesh overlap: vertical rays count how deep they are inside.

use super::surface::{Triangles, Vector};

/// The number of rays in each direction of the plan.
const RAYS: usize = 32;

/// The most faces that all rays may meet.
const HITS: usize = 4_000_000;

/// The share of the length inside that may be inside twice, or inside out: frames and panes meet in rebates.
const TOLERATED: f64 = 0.01;

/// Returns true if more of the mesh than is tolerated is inside it twice, or turned inside out.
///
/// `is_inward` if all faces look inwards.
pub(super) fn overlaps(mesh: &Triangles, is_inward: bool) -> bool {
    let (mut low, mut high) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
    for vertex in &mesh.vertices {
        for axis in 0..2 {
            low[axis] = low[axis].min(vertex[axis]);
            high[axis] = high[axis].max(vertex[axis]);
        }
    }
    let step = [0, 1].map(|axis| (high[axis] - low[axis]) / RAYS as f64);
    if step.iter().any(|step| *step <= 0.0) {
        return false;
    }
    // Off the middle of the cells, so that few rays meet an edge.
    let start = [low[0] + step[0] * 0.4142, low[1] + step[1] * 0.5858];
    let mut hits: Vec<Vec<(f64, i32)>> = vec![Vec::new(); RAYS * RAYS];
    let mut count = 0;
    for corners in mesh.iter() {
        // No sound element has that many layers.
        if count > HITS {
            return true;
        }
        let Some((triangle, enters)) = Projected::new(corners) else {
            continue;
        };
        let [columns, rows] = [0, 1].map(|axis| {
            let least = corners
                .iter()
                .map(|c| c[axis])
                .fold(f64::INFINITY, f64::min);
            let most = corners
                .iter()
                .map(|c| c[axis])
                .fold(f64::NEG_INFINITY, f64::max);
            let first = ((least - start[axis]) / step[axis]).ceil().max(0.0) as usize;
            let last = ((most - start[axis]) / step[axis]).floor();
            first..if last < 0.0 {
                0
            } else {
                (last as usize + 1).min(RAYS)
            }
        });
        for column in columns {
            for row in rows.clone() {
                let x = start[0] + step[0] * column as f64;
                let y = start[1] + step[1] * row as f64;
                if let Some(z) = triangle.height([x, y]) {
                    let sign = if enters == is_inward { -1 } else { 1 };
                    hits[column * RAYS + row].push((z, sign));
                    count += 1;
                }
            }
        }
    }
    let (mut inside, mut wrong) = (0.0, 0.0);
    for ray in &mut hits {
        ray.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut depth = 0;
        // A ray that meets an edge is not evidence.
        if ray.iter().map(|hit| hit.1).sum::<i32>() != 0 {
            continue;
        }
        for pair in ray.windows(2) {
            depth += pair[0].1;
            let length = pair[1].0 - pair[0].0;
            inside += length * f64::from(depth.abs());
            wrong += length * f64::from((depth - 1).max(-depth).max(0));
        }
    }
    wrong > inside * TOLERATED
}

/// A triangle seen from above.
struct Projected {
    corners: [Vector; 3],
    area: f64,
}

impl Projected {
    /// Returns the triangle, and whether a ray upwards enters the mesh through it. `None` if it is vertical.
    fn new(corners: [Vector; 3]) -> Option<(Self, bool)> {
        let [a, b, c] = corners;
        let area = side(a, b, [c[0], c[1]]);
        (area != 0.0).then_some((Self { corners, area }, area < 0.0))
    }

    /// Returns the height at a point of the plan.
    fn height(&self, at: [f64; 2]) -> Option<f64> {
        let [a, b, c] = self.corners;
        let shares = [side(b, c, at), side(c, a, at), side(a, b, at)];
        let shares = shares.map(|share| share / self.area);
        let is_inside = shares.iter().all(|share| *share >= 0.0);
        is_inside.then(|| shares[0] * a[2] + shares[1] * b[2] + shares[2] * c[2])
    }
}

/// Returns twice the area of the triangle from `a` by `b` to a point, seen from above.
fn side(a: Vector, b: Vector, at: [f64; 2]) -> f64 {
    (b[0] - a[0]) * (at[1] - a[1]) - (b[1] - a[1]) * (at[0] - a[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Boxes of 1 m, each at a distance along x, all faces outwards.
    fn boxes(at: &[f64]) -> Triangles {
        let (mut vertices, mut corners) = (Vec::new(), Vec::new());
        for x in at {
            let first = vertices.len() as u32;
            for bits in 0..8 {
                let part = |bit: u32| f64::from(bits >> bit & 1);
                vertices.push([x + part(0), part(1), part(2)]);
            }
            let faces: [[u32; 4]; 6] = [
                [0, 2, 3, 1],
                [4, 5, 7, 6],
                [0, 1, 5, 4],
                [2, 6, 7, 3],
                [0, 4, 6, 2],
                [1, 3, 7, 5],
            ];
            for face in faces {
                let [a, b, c, d] = face.map(|corner| corner + first);
                corners.extend([[a, b, c], [a, c, d]]);
            }
        }
        Triangles {
            vertices,
            corners,
            origin: [0.0; 3],
        }
    }

    #[test]
    fn boxes_overlap_or_only_touch() {
        assert!(!overlaps(&boxes(&[0.0]), false));
        assert!(!overlaps(&boxes(&[0.0, 1.0]), false));
        assert!(!overlaps(&boxes(&[0.0, 3.0]), false));
        assert!(overlaps(&boxes(&[0.0, 0.5]), false));
        assert!(overlaps(&boxes(&[0.0, 0.0]), false));
        assert!(overlaps(&boxes(&[0.0]), true));
    }
}
