//! Problems of a model, found before anything is written, so that they are at the start of the result.

use std::hash::{BuildHasher, RandomState};

use super::index::{Model, NamedRecords, RecordEntry, Scanned};
use super::open::line;
use super::relations::Broken;
use super::schema::{IfcClass, Measure, Role};
use super::step;
use super::stop::{Interrupt, Stop};
use super::values::properties;
use super::values::units::{Units, si_factor};

/// The most classes that one warning names.
const NAMED: usize = 10;

/// Returns elements and openings with a GlobalId that is not unique, in file order, each once.
pub(super) fn duplicate_global_ids(
    model: &Model,
    interrupt: &Interrupt,
) -> Result<Vec<String>, Stop> {
    let hasher = RandomState::new();
    let global_id = |entry: &RecordEntry| step::attribute(model.text(*entry), 0);
    let all = || model.elements.iter().chain(&model.openings);
    let mut hashes: Vec<u64> = Vec::with_capacity(all().count());
    for entry in all() {
        interrupt.step()?;
        hashes.push(hasher.hash_one(global_id(entry)));
    }
    hashes.sort_unstable();
    let mut twice: Vec<u64> = hashes
        .windows(2)
        .filter(|two| two[0] == two[1])
        .map(|two| two[0])
        .collect();
    drop(hashes);
    twice.dedup();
    if twice.is_empty() {
        return Ok(Vec::new());
    }
    // Few are left; equal hashes of different texts fall out here.
    let mut suspects: Vec<(&[u8], usize)> = Vec::new();
    for entry in all() {
        interrupt.step()?;
        let text = global_id(entry);
        if twice.binary_search(&hasher.hash_one(text)).is_ok() && step::string(text).is_some() {
            suspects.push((text, suspects.len()));
        }
    }
    suspects.sort_unstable();
    let mut doubled: Vec<(usize, &[u8])> = suspects
        .chunk_by(|one, other| one.0 == other.0)
        .filter(|same| same.len() > 1)
        .map(|same| (same[0].1, same[0].0))
        .collect();
    doubled.sort_unstable();
    Ok(doubled
        .into_iter()
        .filter_map(|(_, text)| step::string(text))
        .map(String::from)
        .collect())
}

/// Finds the records of figures with values that cannot be read.
pub(super) fn unread(model: &Model, interrupt: &Interrupt) -> Result<NamedRecords, Stop> {
    let mut found = NamedRecords::default();
    for entry in model.index.iter() {
        let class = model.class(entry);
        // The place of its number, and of its texts.
        let (place, texts): (Option<usize>, &[usize]) = match class.role {
            Role::Quantity(_) | Role::Constituent => (Some(3), &[0]),
            Role::SingleValue => (Some(2), &[0]),
            Role::Layer => (Some(1), &[]),
            Role::MeasureWithUnit => (Some(0), &[]),
            Role::Storey => (Some(9), &[2]),
            Role::Element => (None, &[2, 4, 7]),
            Role::Type | Role::PropertySet | Role::QuantitySet => (None, &[2]),
            Role::Material => (None, &[0]),
            Role::SiUnit => (None, &[]),
            _ => continue,
        };
        interrupt.step()?;
        let text = model.text(entry);
        let is_number = |at: usize| match (class.role, step::attribute(text, at)) {
            (Role::SingleValue, value) => !properties::is_dropped(value),
            (Role::MeasureWithUnit, value) => step::number(value).is_some_and(|it| it > 0.0),
            (_, value) => step::is_unset(value) || step::number(value).is_some(),
        };
        let is_read = place.is_none_or(is_number)
            && texts
                .iter()
                .all(|at| step::is_text(step::attribute(text, *at)))
            && (class.role != Role::SiUnit || si_factor(text).is_some());
        if !is_read && !model.misfits.contains(&entry.id) {
            found.add(entry);
        }
    }
    Ok(found)
}

/// How many members the sets of properties and quantities have.
#[derive(Default)]
pub(super) struct Members {
    /// By name.
    counts: Vec<(u32, u32)>,
    /// Whether there are quantities inside of quantities.
    pub(super) are_nested: bool,
}

impl Members {
    pub(super) fn count(&self, id: u32) -> u64 {
        let at = self.counts.binary_search_by_key(&id, |set| set.0);
        at.map_or(0, |at| u64::from(self.counts[at].1))
    }
}

/// Counts the members of sets, and adds to `broken` the records that definitions, materials and units refer to and that do not
/// exist.
pub(super) fn members(
    model: &Model,
    broken: &mut Broken,
    interrupt: &Interrupt,
) -> Result<Members, Stop> {
    let mut found = Members::default();
    for entry in model.index.iter() {
        interrupt.step()?;
        let role = model.class(entry).role;
        let text = || model.text(entry);
        let members = match role {
            Role::PropertySet => step::attribute(text(), 4),
            Role::QuantitySet | Role::Type => step::attribute(text(), 5),
            Role::Quantity(_)
            | Role::ComplexQuantity
            | Role::MemberSet
            | Role::Profile
            | Role::Constituent => step::attribute(text(), 2),
            Role::Layer
            | Role::LayerSet
            | Role::MaterialList
            | Role::MaterialUsage
            | Role::UnitAssignment => step::attribute(text(), 0),
            Role::Project => step::attribute(text(), 8),
            Role::ConversionUnit => step::attribute(text(), 3),
            Role::MeasureWithUnit => step::attribute(text(), 1),
            _ => continue,
        };
        broken.check(entry, &[members]);
        let mut count = 0;
        for member in step::references(members) {
            count += 1;
            if model.index.get(member).is_none() {
                broken.add(entry, member);
            }
        }
        if matches!(role, Role::PropertySet | Role::QuantitySet) {
            found.counts.push((entry.id, count));
        }
        found.are_nested |= role == Role::ComplexQuantity;
    }
    Ok(found)
}

/// Everything that a reader of the result should know, each once.
#[expect(clippy::too_many_lines)]
pub(super) fn warnings(
    scanned: &Scanned,
    bytes: &[u8],
    units: &Units,
    broken: &Broken,
    unread: &NamedRecords,
    doubled_ids: usize,
) -> Vec<String> {
    let model = &scanned.model;
    let mut warnings = Vec::new();
    let mut warn = |warning: String| warnings.push(warning);
    if let Some(&first) = scanned.malformed.first() {
        let count = counted(scanned.malformed.len(), "record");
        warn(format!(
            "{count} could not be read and left out: the first is at line {} (byte {first})",
            line(bytes, first)
        ));
    }
    if scanned.oversized > 0 {
        warn(format!(
            "{} with names above #{} left out",
            counted(scanned.oversized, "record"),
            u32::MAX
        ));
    }
    if scanned.doubled > 0 {
        warn(format!(
            "{} with a name that an earlier record has: references to it were read as to the first",
            counted(scanned.doubled, "record")
        ));
    }
    for (records, what, end) in [
        (
            &scanned.undecoded,
            "text that cannot be decoded, shown as \u{FFFD} or as control characters",
            "export the model again",
        ),
        (
            &scanned.misfits,
            "attributes that do not fit their class",
            "their values were left out; a decimal comma may be the cause",
        ),
        (
            unread,
            "values that cannot be read",
            "the values were left out",
        ),
        (
            &broken.others,
            "something else where references are expected",
            "it was left out",
        ),
    ] {
        if records.count > 0 {
            let named: Vec<_> = records.first.iter().map(|it| model.named(*it)).collect();
            let more = if records.count > named.len() {
                ", …"
            } else {
                ""
            };
            let (count, named) = (counted(records.count, "record"), named.join(", "));
            warn(format!("{count} with {what}: {named}{more}; {end}"));
        }
    }
    let (unknown, foreign): (Vec<_>, Vec<_>) = model
        .classes()
        .filter(|class| !class.declared && class.records > 0)
        .partition(|class| !class.known);
    for (classes, what) in [
        (
            unknown,
            "records of classes that no known schema has were left out",
        ),
        (
            foreign,
            "classes that the declared schema does not have were read as other releases define them",
        ),
    ] {
        if !classes.is_empty() {
            warn(format!("{what}: {}", listed(&classes)));
        }
    }
    if let Some((from, to)) = broken.first {
        let at = line(bytes, from.offset());
        warn(format!(
            "{} to a record that is not there or is of no class that could be meant: the first is in #{} ({}, line {at}) to #{to}",
            counted(broken.count, "reference"),
            from.id,
            model.class(from).name,
        ));
    }
    match model.projects.len() {
        0 => warn("there is no IfcProject: names, units and structure may be missing".to_owned()),
        1 => {}
        several => warn(format!(
            "there are {several} IfcProject records: name and units were taken from the first"
        )),
    }
    if !model.projects.is_empty() && !units.has_length() {
        warn("the project sets no length unit: lengths were read as metres".to_owned());
    }
    for (kind, measure) in [("area", Measure::Area), ("volume", Measure::Volume)] {
        let Some(unit) = units.derived(measure) else {
            continue;
        };
        let count = without_unit(model, measure);
        if count > 0 {
            let count = counted(count, "value");
            warn(format!(
                "the project sets no {kind} unit: {count} without a unit read as {unit}, because of its length unit; check the {kind}s"
            ));
        }
    }
    if model.elements.is_empty() {
        warn("the model has no elements".to_owned());
    }
    if doubled_ids > 0 {
        warn(format!(
            "{} shared by several elements: all were kept",
            counted(doubled_ids, "GlobalId")
        ));
    }
    let mut unnamed = model
        .elements
        .iter()
        .chain(&model.openings)
        .filter(|entry| !identified(model, **entry));
    if let Some(first) = unnamed.next() {
        let at = line(bytes, first.offset());
        let count = counted(1 + unnamed.count(), "element");
        warn(format!(
            "{count} without a valid GlobalId (22 characters): the first is #{} at line {at}",
            first.id
        ));
    }
    warnings
}

/// Counts quantities and property values of a measure that name no unit.
fn without_unit(model: &Model, measure: Measure) -> usize {
    let is_one = |entry: &RecordEntry| match model.class(*entry).role {
        Role::Quantity(of) => {
            of == measure && step::reference(step::attribute(model.text(*entry), 2)).is_none()
        }
        Role::SingleValue => properties::measured(model.text(*entry)) == Some(measure),
        _ => false,
    };
    model.index.iter().filter(is_one).count()
}

/// Returns true if an element has a GlobalId of 22 characters of its alphabet.
fn identified(model: &Model, entry: RecordEntry) -> bool {
    let text = step::attribute(model.text(entry), 0);
    let inner = text
        .strip_prefix(b"'")
        .and_then(|text| text.strip_suffix(b"'"))
        .unwrap_or_default();
    inner.len() == 22
        && inner
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$'))
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 {
        format!("1 {what}")
    } else {
        format!("{count} {what}s")
    }
}

fn listed(classes: &[&IfcClass]) -> String {
    let shown = classes.iter().take(NAMED);
    let shown: Vec<_> = shown
        .map(|class| format!("{} ({})", class.name, class.records))
        .collect();
    let more = match classes.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", shown.join(", "))
}
