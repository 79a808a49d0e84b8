//! What a revision of a model keeps, changes, drops and adds.

use std::collections::{BTreeMap, BTreeSet};

use super::text::{Element, Model};
use super::{model, written};

/// What a reader of the model can see of an element, without record numbers.
#[derive(Debug, PartialEq)]
struct Seen {
    element: Element,
    storey: String,
    materials: Vec<String>,
    sizes: Vec<String>,
}

fn seen(model: &Model) -> BTreeMap<String, Seen> {
    let contained = model.relation("IFCRELCONTAINEDINSPATIALSTRUCTURE", 4, 5);
    let materials = model.relation("IFCRELASSOCIATESMATERIAL", 4, 5);
    let sets = model.relation("IFCRELDEFINESBYPROPERTIES", 4, 5);
    model
        .elements()
        .into_iter()
        .map(|(global_id, element)| {
            let at = |relation: &BTreeMap<u64, Vec<u64>>| -> Vec<String> {
                let targets = relation.get(&element.id).into_iter().flatten();
                targets.map(|id| unfolded(model, *id, 0)).collect()
            };
            let seen = Seen {
                storey: at(&contained).concat(),
                materials: at(&materials),
                sizes: at(&sets),
                element: Element {
                    id: 0,
                    ..element.clone()
                },
            };
            (global_id, seen)
        })
        .collect()
}

/// A record with the records it refers to in their places, but for placements and the owner history.
fn unfolded(model: &Model, id: u64, depth: usize) -> String {
    let record = &model.records[&id];
    if depth > 6 || record.starts_with("IFCLOCALPLACEMENT") || record.starts_with("IFCOWNERHISTORY")
    {
        return "-".to_owned();
    }
    let mut text = String::new();
    let mut rest = record.as_str();
    while let Some(at) = rest.find('#') {
        let after = &rest[at + 1..];
        let end = after
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(after.len());
        text.push_str(&rest[..at]);
        text.push_str(&unfolded(model, after[..end].parse().unwrap(), depth + 1));
        rest = &after[end..];
    }
    text + rest
}

/// Elements that are changed, dropped and new from one model to the other.
fn difference(before: &Model, after: &Model) -> [BTreeSet<String>; 3] {
    let (old, new) = (seen(before), seen(after));
    let changed = old
        .iter()
        .filter(|(id, seen)| new.get(*id).is_some_and(|other| other != *seen));
    [
        changed.map(|(id, _)| id.clone()).collect(),
        old.keys()
            .filter(|id| !new.contains_key(*id))
            .cloned()
            .collect(),
        new.keys()
            .filter(|id| !old.contains_key(*id))
            .cloned()
            .collect(),
    ]
}

#[test]
fn a_revision_changes_two_percent_and_drops_and_adds_half_a_percent() {
    for (size, changed, moved) in [(40, 1, 1), (300, 6, 1), (2000, 40, 10)] {
        let (first, second) = (model(size, 0), model(size, 1));
        let counts = difference(&first, &second).map(|ids| ids.len());
        assert_eq!(counts, [changed, moved, moved], "{size} elements");
        assert_eq!(second.elements().len(), size);
    }
}

#[test]
fn revisions_build_on_each_other() {
    let (first, second, third) = (model(300, 0), model(300, 1), model(300, 2));
    let [_, dropped_once, new_once] = difference(&first, &second);
    let [changed, dropped_twice, new_twice] = difference(&first, &third);
    assert!(dropped_once.is_subset(&dropped_twice) && new_once.is_subset(&new_twice));
    assert_eq!((dropped_twice.len(), new_twice.len()), (2, 2));
    assert!((7..=12).contains(&changed.len()), "{changed:?}");
}

#[test]
fn a_revision_shifts_every_record_and_writes_another_time() {
    let (first, second) = (model(300, 0), model(300, 1));
    let (old, new) = (first.elements(), second.elements());
    let same = old
        .iter()
        .filter(|(id, element)| new.get(*id).is_some_and(|other| other.id == element.id));
    assert_eq!(same.count(), 0);
    let order = |model: &Model| {
        let mut elements: Vec<_> = model.elements().into_iter().collect();
        elements.sort_by_key(|(_, element)| element.id);
        elements.into_iter().map(|(id, _)| id).collect::<Vec<_>>()
    };
    let (old_order, new_order) = (order(&first), order(&second));
    let kept: Vec<_> = old_order
        .iter()
        .filter(|id| new.contains_key(*id))
        .collect();
    let now: Vec<_> = new_order
        .iter()
        .filter(|id| old.contains_key(*id))
        .collect();
    assert_ne!(kept, now);
    let header = |revision| {
        let (bytes, _) = written(40, revision);
        String::from_utf8(bytes)
            .unwrap()
            .lines()
            .find(|line| line.starts_with("FILE_NAME"))
            .unwrap()
            .to_owned()
    };
    assert_ne!(header(0), header(1));
}
