//! The generator of building models: exact counts, whole references, the same bytes, and what a revision changes.

#[allow(dead_code)]
#[path = "../../examples/model/main.rs"]
pub mod generator;

mod revision;
mod text;

use generator::{Counts, Options, write_model};
use text::Model;

/// The model of so many elements in that revision, and what the generator says about it.
fn written(elements: usize, revision: u32) -> (Vec<u8>, Counts) {
    let options = Options {
        elements,
        revision,
        ..Options::default()
    };
    let mut bytes = Vec::new();
    let counts = write_model(&mut bytes, &options).unwrap();
    (bytes, counts)
}

fn model(elements: usize, revision: u32) -> Model {
    Model::read(&written(elements, revision).0)
}

const SIZES: [usize; 8] = [1, 2, 40, 152, 300, 301, 511, 2000];

#[test]
fn a_model_has_exactly_the_elements_that_were_asked_for() {
    for size in SIZES {
        let (bytes, counts) = written(size, 0);
        let model = Model::read(&bytes);
        let found = (
            model.elements().len(),
            model.of("IFCOPENINGELEMENT").count(),
            model.of("IFCVIRTUALELEMENT").count(),
            model.records.len() as u64,
        );
        let said = (
            counts.elements,
            counts.openings,
            counts.virtual_elements,
            counts.records,
        );
        assert_eq!((size, said), (found.0, found), "{size} elements");
    }
}

#[test]
fn global_ids_are_unique_and_well_formed() {
    for (size, revision) in [(40, 0), (300, 0), (300, 3), (2000, 0)] {
        let model = model(size, revision);
        let ids = model.global_ids();
        let mut once = ids.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(
            once.len(),
            ids.len(),
            "{size} elements: a GlobalId stands twice"
        );
        for id in ids {
            let letters = id
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$');
            let first = id.starts_with(['0', '1', '2', '3']);
            assert!(id.len() == 22 && letters && first, "{id} is no GlobalId");
        }
    }
}

#[test]
fn every_reference_leads_to_a_record() {
    for (size, revision) in [(1, 0), (40, 0), (152, 0), (300, 0), (300, 2), (2000, 1)] {
        let model = model(size, revision);
        for (id, record) in &model.records {
            for target in text::references(record) {
                assert!(
                    model.records.contains_key(&target),
                    "#{id} refers to #{target}, which is not there"
                );
            }
        }
    }
}

#[test]
fn the_same_options_give_the_same_bytes() {
    for (size, revision) in [(1, 0), (40, 0), (152, 1), (300, 0), (2000, 2)] {
        assert!(written(size, revision).0 == written(size, revision).0);
    }
}

#[test]
fn another_seed_gives_another_building() {
    let of = |seed| {
        let mut bytes = Vec::new();
        let options = Options {
            seed,
            ..Options::default()
        };
        write_model(&mut bytes, &options).unwrap();
        Model::read(&bytes).elements()
    };
    let (one, two) = (of(1), of(2));
    assert_eq!(two.len(), 300);
    assert!(one.keys().all(|id| !two.contains_key(id)));
}

#[test]
fn the_committed_sample_is_what_the_generator_writes() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/workspace/inputs/sample.ifc");
    let committed = std::fs::read(path).unwrap();
    assert!(
        committed == written(300, 0).0,
        "workspace/inputs/sample.ifc differs: `cargo run --example model -- workspace/inputs/sample.ifc` writes it anew"
    );
}

#[test]
fn the_sample_asks_for_three_batches() {
    let model = model(300, 0);
    let questions = model.questions();
    assert!(
        (110..=140).contains(&questions.len()),
        "{} different questions",
        questions.len()
    );
}

#[test]
fn a_wall_has_the_volume_of_its_body_without_its_doors() {
    // 14.5 m x 2.75 m x 0.425 m, less a basement window of 0.8 m x 0.6 m.
    let model = model(300, 0);
    let front = model
        .elements()
        .into_values()
        .find(|e| e.number() == 310_013)
        .unwrap();
    assert_eq!(front.name, "Kelleraußenwand Stahlbeton 300:310013");
    let quantities = model.quantities(front.id);
    let expected = [
        ("Length", 14_500.0),
        ("Width", 425.0),
        ("Height", 2750.0),
        ("GrossSideArea", 39.875),
        ("NetSideArea", 39.395),
        ("GrossVolume", 16.946_875),
        ("NetVolume", 16.742_875),
    ];
    assert_eq!(
        quantities,
        expected.map(|(name, value)| (name.to_owned(), value))
    );
}
