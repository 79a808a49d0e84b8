//! A layered layout of boxes from top to bottom: longest paths, then the order of each layer by barycentres, then places.
//!
//! A connection over several layers bends once in each. Connections with a common end share their bends.

use std::collections::BTreeMap;

/// The most boxes beside each other.
const WIDEST: usize = 4;

/// The space between boxes, and beside a bend.
const SPACE: i32 = 28;

/// The space between two bends.
const BETWEEN: i32 = 10;

/// The space between layers.
const GAP: i32 = 46;

/// How often the order and the places are improved.
const SWEEPS: usize = 12;

/// Boxes and connections with their places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    /// The left upper corner of each box.
    pub corners: Vec<(i32, i32)>,
    /// The path of each connection, in the syntax of SVG.
    pub paths: Vec<String>,
    pub width: i32,
    pub height: i32,
}

/// A box or a bend.
struct Point {
    layer: usize,
    width: i32,
    x: i32,
    above: Vec<usize>,
    below: Vec<usize>,
}

/// Lays out boxes of one width and these heights. A connection leads from an earlier box to a later one.
pub(super) fn layout(width: i32, heights: &[i32], edges: &[(usize, usize)]) -> Layout {
    let levels = levels(heights.len(), edges);
    let mut points: Vec<Point> = levels.iter().map(|&layer| point(layer, width)).collect();
    let routes = routes(&mut points, &levels, edges);
    let mut layers = vec![Vec::new(); levels.iter().max().map_or(0, |last| last + 1)];
    for (at, point) in points.iter().enumerate() {
        layers[point.layer].push(at);
    }
    order(&mut layers, &points);
    place(&layers, &mut points);
    let left = points.iter().map(|point| point.x - point.width / 2).min();
    for point in &mut points {
        point.x -= left.unwrap_or(0);
    }
    let mut tops = Vec::new();
    let mut y = 0;
    for layer in &layers {
        let boxes = layer.iter().filter_map(|&at| heights.get(at));
        let height = boxes.max().copied().unwrap_or(0);
        tops.push((y, y + height));
        y += height + GAP;
    }
    let corners = (0..heights.len()).map(|at| (points[at].x - width / 2, tops[levels[at]].0));
    let path = |(route, &(from, _)): (&Vec<usize>, &(usize, usize))| {
        let (top, bottom) = tops[levels[from]];
        let mut path = format!("M{} {}", points[from].x, top + heights[from]);
        if top + heights[from] < bottom {
            path.push_str(&format!("V{bottom}"));
        }
        let mut x = points[from].x;
        let mut y = bottom;
        for &at in &route[1..] {
            let next = &points[at];
            let (top, bottom) = tops[next.layer];
            if next.x == x {
                path.push_str(&format!("V{top}"));
            } else {
                let middle = i32::midpoint(y, top);
                path.push_str(&format!("C{x} {middle} {0} {middle} {0} {top}", next.x));
            }
            (x, y) = (next.x, top);
            if at >= heights.len() && bottom > top {
                path.push_str(&format!("V{bottom}"));
                y = bottom;
            }
        }
        path
    };
    Layout {
        corners: corners.collect(),
        paths: routes.iter().zip(edges).map(path).collect(),
        width: points
            .iter()
            .map(|point| point.x + point.width / 2)
            .max()
            .unwrap_or(0),
        height: (y - GAP).max(0),
    }
}

fn point(layer: usize, width: i32) -> Point {
    Point {
        layer,
        width,
        x: 0,
        above: Vec::new(),
        below: Vec::new(),
    }
}

/// Returns the layer of each box: below everything that leads to it, and where there is room.
fn levels(boxes: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut levels = vec![0; boxes];
    let mut taken: BTreeMap<usize, usize> = BTreeMap::new();
    for at in 0..boxes {
        let above = edges.iter().filter(|(_, to)| *to == at);
        let mut level = above.map(|(from, _)| levels[*from] + 1).max().unwrap_or(0);
        while taken.get(&level).is_some_and(|&taken| taken >= WIDEST) {
            level += 1;
        }
        *taken.entry(level).or_default() += 1;
        levels[at] = level;
    }
    levels
}

/// Adds the bends of all connections, and returns the points that each one passes.
fn routes(points: &mut Vec<Point>, levels: &[usize], edges: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let mut bends: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    let mut routes = Vec::with_capacity(edges.len());
    for &(from, to) in edges {
        let leaving = edges.iter().filter(|edge| edge.0 == from).count();
        let arriving = edges.iter().filter(|edge| edge.1 == to).count();
        let common = if leaving >= arriving { from } else { to };
        let mut route = vec![from];
        for layer in levels[from] + 1..levels[to] {
            let bend = *bends.entry((common, layer)).or_insert_with(|| {
                points.push(point(layer, 0));
                points.len() - 1
            });
            route.push(bend);
        }
        route.push(to);
        for pair in route.windows(2) {
            if !points[pair[0]].below.contains(&pair[1]) {
                points[pair[0]].below.push(pair[1]);
                points[pair[1]].above.push(pair[0]);
            }
        }
        routes.push(route);
    }
    routes
}

/// Orders each layer by the mean place of what its points are connected to, from above and from below in turn.
fn order(layers: &mut [Vec<usize>], points: &[Point]) {
    let mut rank = vec![0_usize; points.len()];
    let number = |layer: &[usize], rank: &mut [usize]| {
        for (at, &point) in layer.iter().enumerate() {
            rank[point] = at;
        }
    };
    for layer in layers.iter() {
        number(layer, &mut rank);
    }
    for sweep in 0..SWEEPS {
        let is_down = sweep.is_multiple_of(2);
        let count = layers.len();
        for at in 0..count {
            let layer = &mut layers[if is_down { at } else { count - 1 - at }];
            let mean = |point: &usize| {
                let point = &points[*point];
                let near = if is_down { &point.above } else { &point.below };
                let sum: usize = near.iter().map(|&near| rank[near]).sum();
                (!near.is_empty()).then(|| sum as f64 / near.len() as f64)
            };
            let mut keyed: Vec<(f64, usize)> = layer
                .iter()
                .map(|point| (mean(point).unwrap_or(rank[*point] as f64), *point))
                .collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            *layer = keyed.into_iter().map(|(_, point)| point).collect();
            number(layer, &mut rank);
        }
    }
}

/// Moves each point near the mean of its connected points, as far as its neighbours leave room.
fn place(layers: &[Vec<usize>], points: &mut [Point]) {
    for sweep in 0..=SWEEPS {
        for at in 0..layers.len() {
            let is_down = sweep.is_multiple_of(2);
            let layer = &layers[if is_down { at } else { layers.len() - 1 - at }];
            let wish = |point: &usize| {
                let point = &points[*point];
                let near = if is_down { &point.above } else { &point.below };
                // Boxes align with boxes, and bends with bends. Bends yield, so boxes that followed them would move far.
                let is_same = |near: &&usize| (points[**near].width == 0) == (point.width == 0);
                let same: Vec<usize> = near.iter().filter(is_same).copied().collect();
                let near = match same.is_empty() {
                    true if point.width > 0 => &same,
                    true => near,
                    false => &same,
                };
                let sum: i32 = near.iter().map(|&near| points[near].x).sum();
                match near.len() as i32 {
                    0 => point.x,
                    all => sum / all,
                }
            };
            let wishes: Vec<i32> = layer.iter().map(wish).collect();
            let apart = |a: usize, b: usize| {
                let (a, b) = (points[layer[a]].width, points[layer[b]].width);
                i32::midpoint(a, b) + if a + b == 0 { BETWEEN } else { SPACE }
            };
            let placed = spread(&wishes, &apart, &|at| points[layer[at]].width == 0);
            for (x, &point) in placed.into_iter().zip(layer) {
                points[point].x = x;
            }
        }
    }
}

/// Returns places near the wishes, at least the distances of `apart` from each other. Bends yield to boxes.
fn spread(
    wishes: &[i32],
    apart: &dyn Fn(usize, usize) -> i32,
    is_bend: &dyn Fn(usize) -> bool,
) -> Vec<i32> {
    let mut placed = wishes.to_vec();
    let boxes: Vec<usize> = (0..wishes.len()).filter(|&at| !is_bend(at)).collect();
    let far = |pair: &[usize]| (pair[0]..pair[1]).map(|at| apart(at, at + 1)).sum::<i32>();
    let far: Vec<i32> = boxes.windows(2).map(far).collect();
    // Pushed apart to the right, and to the left: the mean of both keeps the distances.
    let mut right: Vec<i32> = boxes.iter().map(|&at| wishes[at]).collect();
    let mut left = right.clone();
    for at in 1..boxes.len() {
        right[at] = right[at].max(right[at - 1] + far[at - 1]);
    }
    for at in (1..boxes.len()).rev() {
        left[at - 1] = left[at - 1].min(left[at] - far[at - 1]);
    }
    for (at, &place) in boxes.iter().enumerate() {
        placed[place] = i32::midpoint(left[at], right[at]);
    }
    for at in 1..placed.len() {
        if is_bend(at) {
            placed[at] = placed[at].max(placed[at - 1] + apart(at - 1, at));
        }
    }
    for at in (1..placed.len()).rev() {
        if is_bend(at - 1) {
            placed[at - 1] = placed[at - 1].min(placed[at] - apart(at - 1, at));
        }
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_over_a_layer_bends_beside_its_box() {
        assert_eq!(
            layout(100, &[40, 60, 40], &[(0, 1), (1, 2), (0, 2)]),
            Layout {
                corners: vec![(0, 0), (0, 86), (0, 192)],
                paths: vec![
                    "M50 40V86".to_owned(),
                    "M50 146V192".to_owned(),
                    "M50 40C50 63 128 63 128 86V146C128 169 50 169 50 192".to_owned(),
                ],
                width: 128,
                height: 232,
            }
        );
    }

    #[test]
    fn many_boxes_are_never_more_than_four_beside_each_other() {
        let heights = [40; 61];
        let edges: Vec<(usize, usize)> = (0..60).map(|at| (at, 60)).collect();
        let found = layout(100, &heights, &edges);
        assert_eq!((found.width, found.height), (554, 1330));
        assert_eq!(layout(100, &[], &[]).corners, []);
    }
}
