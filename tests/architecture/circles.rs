//! Import circles: files of a package that import each other.

use super::source::Source;
use std::collections::{BTreeMap, BTreeSet};

/// How many circles the product may have, and how many files one may hold.
const CIRCLES: usize = 5;
const FILES: usize = 3;

pub fn check(sources: &[Source], found: &mut Vec<String>) {
    let circles = circles(sources);
    let describe = |circle: &Vec<&str>| format!("{} files: {}", circle.len(), circle.join(", "));
    for circle in circles.iter().filter(|circle| circle.len() > FILES) {
        found.push(format!(
            "circle of more than {FILES} files that import each other; move what they share into a file of its own: {}",
            describe(circle)
        ));
    }
    if circles.len() > CIRCLES {
        let list: Vec<String> = circles.iter().map(describe).collect();
        found.push(format!(
            "{} circles, at most {CIRCLES}:\n  {}",
            circles.len(),
            list.join("\n  ")
        ));
    }
}

/// Returns the groups of files that import each other, directly or through others, largest first.
///
/// A file that declares a module and what it re-exports from there is no importer of it, and a file that imports from its own
/// parent module is none of the parent's other children.
fn circles(sources: &[Source]) -> Vec<Vec<&str>> {
    let files: BTreeMap<(&str, &[String]), usize> = sources
        .iter()
        .enumerate()
        .filter(|(_, source)| !source.tokens.is_empty())
        .map(|(at, source)| ((source.package.as_str(), source.module.as_slice()), at))
        .collect();
    let edges: Vec<BTreeSet<usize>> = sources
        .iter()
        .enumerate()
        .map(|(at, source)| {
            let mut to: BTreeSet<usize> = imports(source)
                .iter()
                .filter_map(|module| {
                    (0..=module.len())
                        .rev()
                        .find_map(|end| files.get(&(source.package.as_str(), &module[..end])))
                })
                .copied()
                .collect();
            to.remove(&at);
            to
        })
        .collect();
    let mut circles: Vec<Vec<&str>> = components(&edges)
        .into_iter()
        .filter(|component| component.len() > 1)
        .map(|component| {
            component
                .into_iter()
                .map(|at| sources[at].path.as_str())
                .collect()
        })
        .collect();
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

/// Returns the paths that a file imports, from the root of its package.
fn imports(source: &Source) -> Vec<Vec<String>> {
    let mut found: Vec<Vec<String>> = source
        .paths("crate")
        .into_iter()
        .map(|(_, names)| names)
        .collect();
    for (_, names) in source.paths("super") {
        let up = 1 + names.iter().take_while(|name| *name == "super").count();
        if up <= source.module.len() {
            let mut module = source.module[..source.module.len() - up].to_vec();
            module.extend_from_slice(&names[up - 1..]);
            found.push(module);
        }
    }
    for (_, names) in source.paths("self") {
        let mut module = source.module.clone();
        module.extend(names);
        found.push(module);
    }
    // `mod x;` and then `x::y` or `use x::y`.
    for (at, _) in source.find(&["mod"]) {
        let name = &source.tokens[at + 1].text;
        for (_, names) in source.paths(name) {
            let mut module = source.module.clone();
            module.push(name.clone());
            module.extend(names);
            found.push(module);
        }
    }
    found
}

/// Tarjan's strongly connected components.
fn components(edges: &[BTreeSet<usize>]) -> Vec<Vec<usize>> {
    struct State<'a> {
        edges: &'a [BTreeSet<usize>],
        index: Vec<Option<usize>>,
        low: Vec<usize>,
        stack: Vec<usize>,
        next: usize,
        found: Vec<Vec<usize>>,
    }
    fn visit(state: &mut State<'_>, at: usize) {
        state.index[at] = Some(state.next);
        state.low[at] = state.next;
        state.next += 1;
        state.stack.push(at);
        for &to in &state.edges[at] {
            match state.index[to] {
                None => {
                    visit(state, to);
                    state.low[at] = state.low[at].min(state.low[to]);
                }
                Some(index) if state.stack.contains(&to) => {
                    state.low[at] = state.low[at].min(index);
                }
                Some(_) => {}
            }
        }
        if Some(state.low[at]) == state.index[at] {
            let from = state.stack.iter().position(|&node| node == at).unwrap();
            let mut component = state.stack.split_off(from);
            component.sort_unstable();
            state.found.push(component);
        }
    }
    let mut state = State {
        edges,
        index: vec![None; edges.len()],
        low: vec![0; edges.len()],
        stack: Vec::new(),
        next: 0,
        found: Vec::new(),
    };
    for at in 0..edges.len() {
        if state.index[at].is_none() {
            visit(&mut state, at);
        }
    }
    state.found
}
