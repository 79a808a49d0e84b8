//! Whether a mesh encloses a volume: each edge is in as many triangles in one direction as in the other.

use rustc_hash::FxHashMap;

/// How close vertices are that count as one, in metres. Exact cuts leave larger gaps only where a model has them.
const GRIDS: [f64; 2] = [1e-5, 1e-4];

/// How close a vertex is to an edge that it splits, in metres.
const ON_EDGE: f64 = 5e-5;

/// The most pairs of edges and vertices that are compared to find split edges.
const SPLITS: usize = 1 << 22;

/// A point or vector.
pub(super) type Vector = [f64; 3];

/// Triangles with coordinates in metres.
pub(super) struct Triangles {
    /// Relative to `origin`.
    pub(super) vertices: Vec<Vector>,
    pub(super) corners: Vec<[u32; 3]>,
    /// In the world.
    pub(super) origin: Vector,
}

impl Triangles {
    /// Returns the corners of all triangles.
    pub(super) fn iter(&self) -> impl Iterator<Item = [Vector; 3]> {
        let at = |corner: u32| self.vertices[corner as usize];
        self.corners.iter().map(move |corners| corners.map(at))
    }

    /// Returns the volume that triangles of the mesh enclose, negative if they look inwards.
    pub(super) fn volume_of(&self, corners: &[[u32; 3]]) -> f64 {
        let Some(&start) = self.vertices.first() else {
            return 0.0;
        };
        let six = corners.iter().map(|corners| {
            let [a, b, c] = corners.map(|corner| minus(self.vertices[corner as usize], start));
            dot(a, cross(b, c))
        });
        six.sum::<f64>() / 6.0
    }
}

/// The boundary of a mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Boundary {
    /// It has none: the mesh encloses a volume. `simple` if it is one piece whose edges are in two triangles each.
    Closed { simple: bool },
    /// It would have none if some faces looked the other way.
    Turned,
    /// It has one.
    Open,
}

/// Returns the boundary of a mesh.
pub(super) fn boundary(mesh: &Triangles) -> Boundary {
    let mut found = Boundary::Open;
    for grid in GRIDS {
        found = boundary_on(mesh, grid);
        if found != Boundary::Open {
            break;
        }
    }
    found
}

fn boundary_on(mesh: &Triangles, grid: f64) -> Boundary {
    let (welded, points) = weld(mesh, grid);
    let corners = mesh.corners.iter();
    let corners = corners.map(|corners| corners.map(|corner| welded[corner as usize]));
    let mut edges = Vec::with_capacity(mesh.corners.len() * 3);
    let mut connected = Connected::new(points.len());
    for [a, b, c] in corners.filter(|[a, b, c]| a != b && b != c && c != a) {
        edges.extend(sides([a, b, c]).map(|(from, to)| directed(from, to)));
        connected.join(a, b);
        connected.join(a, c);
    }
    let mut is_manifold = true;
    let unpaired = unpaired(&mut edges, &mut is_manifold);
    if edges.is_empty() {
        return Boundary::Open;
    }
    if unpaired.is_empty() {
        let simple = is_manifold && connected.is_one(&edges);
        return Boundary::Closed { simple };
    }
    let split = split(&unpaired, &points);
    let Some(mut edges) = split else {
        return state(&unpaired);
    };
    let unpaired = self::unpaired(&mut edges, &mut is_manifold);
    if unpaired.is_empty() {
        return Boundary::Closed { simple: false };
    }
    state(&unpaired)
}

/// Returns the boundary of a mesh with these unpaired edges.
fn state(unpaired: &[Unpaired]) -> Boundary {
    if unpaired.iter().all(|edge| edge.triangles % 2 == 0) {
        Boundary::Turned
    } else {
        Boundary::Open
    }
}

/// An edge that is in more triangles in one direction than in the other.
struct Unpaired {
    from: u32,
    to: u32,
    /// The number of directions that nothing balances.
    surplus: u32,
    triangles: u32,
}

/// Packs an edge so that sorting brings both directions together.
fn directed(from: u32, to: u32) -> u64 {
    let (low, high, back) = if from < to {
        (from, to, 0)
    } else {
        (to, from, 1)
    };
    u64::from(low) << 33 | u64::from(high) << 1 | back
}

/// Sorts `edges` and returns those that are unpaired.
fn unpaired(edges: &mut [u64], is_manifold: &mut bool) -> Vec<Unpaired> {
    edges.sort_unstable();
    let mut found = Vec::new();
    for edge in edges.chunk_by(|one, other| one >> 1 == other >> 1) {
        let triangles = edge.len() as u32;
        let back = edge.iter().filter(|edge| *edge & 1 == 1).count() as u32;
        let forth = triangles - back;
        *is_manifold &= triangles == 2;
        let (low, high) = ((edge[0] >> 33) as u32, (edge[0] >> 1) as u32);
        let (from, to) = if forth > back {
            (low, high)
        } else {
            (high, low)
        };
        if forth != back {
            found.push(Unpaired {
                from,
                to,
                surplus: forth.abs_diff(back),
                triangles,
            });
        }
    }
    found
}

/// Splits edges at the vertices of others that lie on them. `None` if there are too many.
fn split(unpaired: &[Unpaired], points: &[Vector]) -> Option<Vec<u64>> {
    let mut ends: Vec<u32> = unpaired
        .iter()
        .flat_map(|edge| [edge.from, edge.to])
        .collect();
    ends.sort_unstable();
    ends.dedup();
    if ends.len().saturating_mul(unpaired.len()) > SPLITS {
        return None;
    }
    let mut edges = Vec::new();
    for edge in unpaired {
        let (start, end) = (points[edge.from as usize], points[edge.to as usize]);
        let along = minus(end, start);
        let length = dot(along, along).sqrt();
        let mut cuts = vec![(0.0, edge.from), (length, edge.to)];
        for &vertex in &ends {
            let to = minus(points[vertex as usize], start);
            let at = dot(to, along) / length;
            if at <= ON_EDGE || at >= length - ON_EDGE {
                continue;
            }
            let foot = along.map(|part| part * at / length);
            let off = minus(to, foot);
            if dot(off, off) < ON_EDGE * ON_EDGE {
                cuts.push((at, vertex));
            }
        }
        cuts.sort_by(|one, other| one.0.total_cmp(&other.0));
        for pair in cuts.windows(2) {
            for _ in 0..edge.surplus {
                edges.push(directed(pair[0].1, pair[1].1));
            }
        }
    }
    Some(edges)
}

/// Returns the number of each vertex, where close ones share one, and a point of each number.
fn weld(mesh: &Triangles, grid: f64) -> (Vec<u32>, Vec<Vector>) {
    let mut numbers: FxHashMap<[i64; 3], u32> = FxHashMap::default();
    numbers.reserve(mesh.vertices.len() / 2);
    let mut points = Vec::with_capacity(mesh.vertices.len() / 2);
    let welded = mesh.vertices.iter().map(|vertex| {
        let cell = vertex.map(|part| (part / grid).round() as i64);
        *numbers.entry(cell).or_insert_with(|| {
            points.push(*vertex);
            points.len() as u32 - 1
        })
    });
    (welded.collect(), points)
}

/// The connected of a mesh: vertices that triangles join.
struct Connected(Vec<u32>);

impl Connected {
    fn new(vertices: usize) -> Self {
        Self((0..vertices as u32).collect())
    }

    fn root(&mut self, mut vertex: u32) -> u32 {
        while self.0[vertex as usize] != vertex {
            let above = self.0[vertex as usize];
            self.0[vertex as usize] = self.0[above as usize];
            vertex = above;
        }
        vertex
    }

    fn join(&mut self, one: u32, other: u32) {
        let (one, other) = (self.root(one), self.root(other));
        self.0[one.max(other) as usize] = one.min(other);
    }

    /// Returns true if all `edges` are in one piece.
    fn is_one(&mut self, edges: &[u64]) -> bool {
        let mut roots = edges.iter().map(|edge| (edge >> 33) as u32);
        let Some(first) = roots.next() else {
            return true;
        };
        let first = self.root(first);
        roots.all(|vertex| self.root(vertex) == first)
    }
}

/// Returns a mesh whose faces are turned so that all look outwards.
///
/// `None` unless each edge is in two triangles: then the mesh has an inside, whichever way its faces looked.
pub(super) fn turned(mesh: &Triangles) -> Option<Triangles> {
    GRIDS.iter().find_map(|grid| turned_on(mesh, *grid))
}

fn turned_on(mesh: &Triangles, grid: f64) -> Option<Triangles> {
    let (welded, _) = weld(mesh, grid);
    let weld = |corners: &[u32; 3]| corners.map(|corner| welded[corner as usize]);
    let is_face = |corners: &&[u32; 3]| {
        let [a, b, c] = weld(corners);
        a != b && b != c && c != a
    };
    let faces: Vec<[u32; 3]> = mesh.corners.iter().filter(is_face).copied().collect();
    // The two triangles of each edge, and whether they go along it from its lower to its higher vertex.
    #[expect(clippy::type_complexity)]
    let mut edges: FxHashMap<(u32, u32), [Option<(usize, bool)>; 2]> = FxHashMap::default();
    for (at, face) in faces.iter().enumerate() {
        for (from, to) in sides(weld(face)) {
            let both = edges.entry((from.min(to), from.max(to))).or_default();
            *both.iter_mut().find(|it| it.is_none())? = Some((at, from < to));
        }
    }
    let mut flips: Vec<Option<bool>> = vec![None; faces.len()];
    let mut corners = Vec::with_capacity(faces.len());
    for start in 0..faces.len() {
        if flips[start].is_some() {
            continue;
        }
        flips[start] = Some(false);
        let first = corners.len();
        let mut open = vec![(start, false)];
        while let Some((at, flip)) = open.pop() {
            let [a, b, c] = faces[at];
            corners.push(if flip { [a, c, b] } else { [a, b, c] });
            for (from, to) in sides(weld(&faces[at])) {
                let [Some(one), Some(other)] = edges[&(from.min(to), from.max(to))] else {
                    return None;
                };
                let next = if one.0 == at { other.0 } else { one.0 };
                let wanted = flip ^ (one.1 == other.1);
                match flips[next] {
                    None => {
                        flips[next] = Some(wanted);
                        open.push((next, wanted));
                    }
                    Some(there) if there != wanted => return None,
                    Some(_) => {}
                }
            }
        }
        if mesh.volume_of(&corners[first..]) < 0.0 {
            for face in &mut corners[first..] {
                face.swap(1, 2);
            }
        }
    }
    Some(Triangles {
        vertices: mesh.vertices.clone(),
        corners,
        origin: mesh.origin,
    })
}

/// Returns the edges of a triangle in its direction.
fn sides([a, b, c]: [u32; 3]) -> [(u32, u32); 3] {
    [(a, b), (b, c), (c, a)]
}

/// Returns the vector from `other` to `one`.
pub(super) fn minus(one: Vector, other: Vector) -> Vector {
    [one[0] - other[0], one[1] - other[1], one[2] - other[2]]
}

/// Returns the scalar product.
pub(super) fn dot(one: Vector, other: Vector) -> f64 {
    one[0] * other[0] + one[1] * other[1] + one[2] * other[2]
}

/// Returns the vector product.
pub(super) fn cross(one: Vector, other: Vector) -> Vector {
    [
        one[1] * other[2] - one[2] * other[1],
        one[2] * other[0] - one[0] * other[2],
        one[0] * other[1] - one[1] * other[0],
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tetrahedron, with its last face as given.
    fn tetrahedron(last: &[[u32; 3]]) -> Triangles {
        let mut corners = vec![[0, 2, 1], [0, 1, 3], [1, 2, 3]];
        corners.extend(last);
        Triangles {
            vertices: vec![
                [0.0, 0.0, 0.0],
                [1.0, 0.0, 0.0],
                [0.0, 1.0, 0.0],
                [0.0, 0.0, 1.0],
                // In the middle of the edge from 2 to 3.
                [0.0, 0.5, 0.5],
            ],
            corners,
            origin: [0.0; 3],
        }
    }

    #[test]
    fn closed_open_and_turned_meshes_are_told_apart() {
        let closed = Boundary::Closed { simple: true };
        assert_eq!(boundary(&tetrahedron(&[[2, 0, 3]])), closed);
        assert_eq!(boundary(&tetrahedron(&[[0, 2, 3]])), Boundary::Turned);
        assert_eq!(boundary(&tetrahedron(&[])), Boundary::Open);
    }

    #[test]
    fn faces_that_look_the_wrong_way_are_turned() {
        let volume = |mesh: &Triangles| mesh.volume_of(&mesh.corners);
        for last in [[0, 2, 3], [2, 0, 3]] {
            let mesh = turned(&tetrahedron(&[last])).unwrap();
            assert_eq!(boundary(&mesh), Boundary::Closed { simple: true });
            assert!((volume(&mesh) - 1.0 / 6.0).abs() < 1e-12);
        }
        // A second solid beside it, inside out: both count.
        let mut two = tetrahedron(&[[0, 2, 3]]);
        let beside = two.vertices.iter().map(|[x, y, z]| [x + 5.0, *y, *z]);
        two.vertices.extend(beside.collect::<Vec<_>>());
        two.corners
            .extend([[5, 6, 7], [5, 8, 6], [6, 8, 7], [7, 8, 5]]);
        assert_eq!(boundary(&two), Boundary::Turned);
        assert!((volume(&turned(&two).unwrap()) - 2.0 / 6.0).abs() < 1e-12);
        assert!(turned(&tetrahedron(&[])).is_none());
        assert!(turned(&tetrahedron(&[[0, 2, 3], [2, 0, 3]])).is_none());
    }

    #[test]
    fn a_vertex_on_an_edge_of_a_neighbour_leaves_no_gap() {
        let parts = [[2, 0, 4], [4, 0, 3]];
        let closed = Boundary::Closed { simple: false };
        assert_eq!(boundary(&tetrahedron(&parts)), closed);
        assert_eq!(boundary(&tetrahedron(&parts[..1])), Boundary::Open);
    }
}
