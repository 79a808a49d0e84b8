//! Closed lines of a plan: simplified, bounded in number of points, rounded to millimetres.

/// A point of the plan, in metres.
pub(super) type Point = [f64; 2];

/// The most points of all rings of an element.
const POINTS: usize = 64;

/// The most points of a ring that are simplified. Of longer ones, points are left out at equal distances first.
const RING: usize = 10_000;

/// How far a simplified line may be from the exact one at first, in metres.
const TOLERANCE: f64 = 0.005;

/// Returns rings of at most [`POINTS`] points together: coarser and, if that does not do, without the smallest.
pub(super) fn bounded(rings: Vec<Vec<Point>>) -> Vec<Vec<Point>> {
    let mut tolerance = TOLERANCE;
    let rings = rings.into_iter().map(|ring| {
        let step = ring.len().div_ceil(RING);
        ring.into_iter().step_by(step.max(1)).collect()
    });
    let mut rings = simplified(rings.collect(), tolerance);
    for _ in 0..6 {
        if count(&rings) <= POINTS {
            return rings;
        }
        tolerance *= 2.0;
        rings = simplified(rings, tolerance);
    }
    rings.sort_by(|one, other| area(other).abs().total_cmp(&area(one).abs()));
    while count(&rings) > POINTS && rings.len() > 1 {
        rings.pop();
    }
    while count(&rings) > POINTS {
        tolerance *= 2.0;
        rings = simplified(rings, tolerance);
    }
    rings
}

fn count(rings: &[Vec<Point>]) -> usize {
    rings.iter().map(Vec::len).sum()
}

/// Rounds to millimetres: x and y of each point in turn.
pub(super) fn rounded(ring: &[Point], origin: Point) -> Vec<f64> {
    let mut flat = Vec::with_capacity(ring.len() * 2);
    for point in ring {
        for axis in 0..2 {
            flat.push(((point[axis] + origin[axis]) * 1e3).round() / 1e3);
        }
    }
    flat
}

/// Returns twice the area of a ring, positive if it turns to the left.
fn area(ring: &[Point]) -> f64 {
    let next = ring.iter().cycle().skip(1);
    let parts = ring
        .iter()
        .zip(next)
        .map(|(a, b)| a[0] * b[1] - b[0] * a[1]);
    parts.sum()
}

/// Simplifies each ring, and leaves out those that become a line.
fn simplified(rings: Vec<Vec<Point>>, tolerance: f64) -> Vec<Vec<Point>> {
    let rings = rings.into_iter().map(|ring| simplify(&ring, tolerance));
    rings.filter(|ring| ring.len() >= 3).collect()
}

/// Leaves out the points that are within `tolerance` of the line without them (Douglas and Peucker).
fn simplify(ring: &[Point], tolerance: f64) -> Vec<Point> {
    let far = |from: Point| {
        let distances = ring.iter().enumerate();
        let distances = distances.map(|(at, point)| (at, square(*point, from)));
        distances.max_by(|one, other| one.1.total_cmp(&other.1))
    };
    let Some((start, _)) = ring.first().and_then(|first| far(*first)) else {
        return Vec::new();
    };
    let Some((opposite, _)) = far(ring[start]) else {
        return Vec::new();
    };
    let mut kept = vec![false; ring.len()];
    let mut open = vec![(start, opposite), (opposite, start)];
    kept[start] = true;
    kept[opposite] = true;
    while let Some((from, to)) = open.pop() {
        let steps = (to + ring.len() - from) % ring.len();
        let between = (1..steps).map(|step| (from + step) % ring.len());
        let distances = between.map(|at| (at, distance(ring[at], ring[from], ring[to])));
        let farthest = distances.max_by(|one, other| one.1.total_cmp(&other.1));
        if let Some((at, distance)) = farthest
            && distance > tolerance
        {
            kept[at] = true;
            open.extend([(from, at), (at, to)]);
        }
    }
    let points = ring.iter().zip(kept);
    points
        .filter(|(_, kept)| *kept)
        .map(|(point, _)| *point)
        .collect()
}

fn square(a: Point, b: Point) -> f64 {
    (a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2)
}

/// Returns the distance of a point from the line between two others.
fn distance(point: Point, from: Point, to: Point) -> f64 {
    let length = square(from, to);
    let along = [to[0] - from[0], to[1] - from[1]];
    let at = if length > 0.0 {
        let part = (point[0] - from[0]) * along[0] + (point[1] - from[1]) * along[1];
        (part / length).clamp(0.0, 1.0)
    } else {
        0.0
    };
    square(point, [from[0] + along[0] * at, from[1] + along[1] * at]).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_on_a_line_are_left_out() {
        let ring = vec![[0.0, 0.0], [1.0, 0.001], [2.0, 0.0], [2.0, 1.0], [0.0, 1.0]];
        let corners = [[0.0, 0.0], [2.0, 0.0], [2.0, 1.0], [0.0, 1.0]];
        assert_eq!(bounded(vec![ring]), [corners]);
        assert_eq!(
            bounded(vec![vec![[0.0, 0.0], [1.0, 0.0]]]),
            [[[0.0; 2]; 0]; 0]
        );
    }

    #[test]
    fn no_element_has_more_points_than_is_allowed() {
        let star = |x: f64| -> Vec<Point> {
            let point = |at: u32| {
                let angle = f64::from(at) / 100.0 * std::f64::consts::TAU;
                let radius = if at.is_multiple_of(2) { 1.0 } else { 3.0 };
                [x + radius * angle.cos(), radius * angle.sin()]
            };
            (0..100).map(point).collect()
        };
        let rings = bounded((0..40).map(|at| star(f64::from(at) * 7.0)).collect());
        assert!(count(&rings) <= POINTS && !rings.is_empty());
    }
}
