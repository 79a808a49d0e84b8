//! Reads a whole model and writes `parsed_data.json`, one line per element.

mod chunks;
mod parallel;

use std::any::Any;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::thread;

use serde::Serialize;

use super::counts;
use super::element::ElementReader;
use super::geometry::{Measured, MeshSource, Mesher, Positions};
use super::index::{Model, RecordEntry, Scanned};
use super::limits::THREADS;
use super::open::{self, IfcError, OpenedModel, line};
use super::relations::{Broken, Relations};
use super::review;
use super::schema::Classes;
use super::step;
use super::stop::{Interrupt, Stop};
use super::values::units::Units;
use chunks::{CHUNK, ChunkWriter, Counts, chunk};
use parallel::in_order;

/// The counts of a model. All counts but `openings` are numbers of elements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelSummary {
    /// Elements, without openings, other features and virtual elements.
    pub elements: usize,
    /// Openings, other features, and virtual elements.
    pub openings: usize,
    /// Elements of each class.
    pub by_type: BTreeMap<String, usize>,
    /// Elements with a material of their own or of their type.
    pub with_material: usize,
    /// Elements with a volume from a quantity set.
    pub with_quantity_volume: usize,
    /// Elements with a volume from a property set, and none from a quantity set.
    pub with_property_volume: usize,
    /// Elements on a storey.
    pub with_storey: usize,
    /// GlobalIds that several elements or openings have.
    pub duplicate_global_ids: Vec<String>,
    /// Warnings: values that are left out, assumed or missing.
    pub warnings: Vec<String>,
    /// The schema as the file declares it.
    pub schema: String,
}

/// The `model` object of `parsed_data.json`.
#[derive(Serialize)]
struct About<'a> {
    file: &'a str,
    schema: &'a str,
    project: Option<String>,
    elements: usize,
    openings: usize,
    duplicate_global_ids: &'a [String],
    warnings: &'a [String],
}

/// Reads a building model and writes its elements to `out` as JSON, in the order of the file.
///
/// `name` is what messages and the result call the file. Nothing is written before the whole file has been scanned.
///
/// # Errors
/// When the file is not a complete IFC file of a known schema, or `out` fails.
pub fn extract(model: &Path, name: &str, out: &mut dyn Write) -> Result<ModelSummary, IfcError> {
    extract_while(model, name, Measured::None, out, &|| Ok(()))
}

/// Does the same as [`extract`], adds figures from the geometry of the elements that `measured` tells, and stops with the error of
/// `look`, which it calls every few thousand steps.
///
/// It uses all processors, up to 8. The result does not depend on their number.
///
/// # Errors
/// The errors of [`extract`], and [`IfcError::Read`] with the error of `look`.
pub fn extract_while(
    model: &Path,
    name: &str,
    measured: Measured,
    out: &mut dyn Write,
    look: &dyn Fn() -> io::Result<()>,
) -> Result<ModelSummary, IfcError> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.min(THREADS);
    extract_on(threads, model, name, measured, out, look)
}

/// Does the same as [`extract_while`] on a number of threads.
///
/// # Errors
/// The errors of [`extract_while`].
#[doc(hidden)]
pub fn extract_on(
    threads: usize,
    model: &Path,
    name: &str,
    measured: Measured,
    out: &mut dyn Write,
    look: &dyn Fn() -> io::Result<()>,
) -> Result<ModelSummary, IfcError> {
    guarded(name, || {
        let opened = open::open(model, name)?;
        with_model(&opened, name, measured, look, &mut |read| {
            write_parsed(read, threads, name, out)
        })
    })
}

/// Turns a panic of the parser into an error: an untrusted file must not end the process.
fn guarded<T>(name: &str, work: impl FnOnce() -> Result<T, IfcError>) -> Result<T, IfcError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        Err(IfcError::Parser {
            file: name.to_owned(),
            message: message(panic.as_ref()),
        })
    })
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}

/// A model that is ready to be written.
struct Ready<'m, 'a> {
    model: &'m Model<'a>,
    relations: &'m Relations,
    source: Option<&'m MeshSource<'m, 'a>>,
    measured: Measured,
    summary: ModelSummary,
    interrupt: &'m Interrupt<'m>,
}

impl<'m, 'a> Ready<'m, 'a> {
    /// Returns a reader for one thread.
    fn reader(
        model: &'m Model<'a>,
        relations: &'m Relations,
        source: Option<&'m MeshSource<'m, 'a>>,
        measured: Measured,
    ) -> ElementReader<'m, 'a> {
        let (units, mesher) = (Units::read(model), source.map(Mesher::new));
        ElementReader::new(model, relations, units, mesher, measured)
    }
}

fn with_model(
    opened: &OpenedModel,
    name: &str,
    measured: Measured,
    look: &dyn Fn() -> io::Result<()>,
    write: &mut dyn FnMut(&mut Ready) -> Result<(), Stop>,
) -> Result<ModelSummary, IfcError> {
    let bytes: &[u8] = &opened.bytes;
    opened.bytes.read_through();
    let interrupt = &Interrupt::new(look);
    let stopped = |stop: Stop| stop.named(name);
    let mut positions = (measured != Measured::None).then(Positions::default);
    let classes = Classes::new(&opened.schema);
    let scanned = Model::scan(opened, classes, positions.as_mut(), interrupt);
    let mut scanned = scanned.map_err(stopped)?;
    complete(opened, &scanned, name)?;
    opened.bytes.read_about();
    let mut broken = Broken::default();
    let entries = std::mem::take(&mut scanned.relations);
    let unread = review::unread(&scanned.model, interrupt).map_err(stopped)?;
    let relations = Relations::read(&scanned.model, &entries, &mut broken, interrupt);
    let relations = relations.map_err(stopped)?;
    let members = review::members(&scanned.model, &mut broken, interrupt).map_err(stopped)?;
    counts::check(&scanned.model, &relations, &entries, &members, interrupt).map_err(stopped)?;
    drop((entries, members));
    let duplicate_global_ids = review::duplicate_global_ids(&scanned.model, interrupt);
    let duplicate_global_ids = duplicate_global_ids.map_err(stopped)?;
    let units = Units::read(&scanned.model);
    let warnings = opened.schema.warning.iter().chain(&opened.encoding);
    let mut warnings: Vec<String> = warnings.cloned().collect();
    warnings.extend(review::warnings(
        &scanned,
        bytes,
        &units,
        &broken,
        &unread,
        duplicate_global_ids.len(),
    ));
    let model = &scanned.model;
    let is_wanted = positions.is_some();
    let source =
        positions.and_then(|positions| MeshSource::new(model, &relations, positions, units.unread));
    if is_wanted && source.is_none() {
        warnings.push(
            "geometry not measured: the file is 4 GiB or larger, or its units cannot be read"
                .to_owned(),
        );
    }
    let summary = ModelSummary {
        elements: model.elements.len(),
        openings: model.openings.len(),
        by_type: BTreeMap::new(),
        with_material: 0,
        with_quantity_volume: 0,
        with_property_volume: 0,
        with_storey: 0,
        duplicate_global_ids,
        warnings,
        schema: opened.schema.declared.clone(),
    };
    let mut ready = Ready {
        model,
        relations: &relations,
        source: source.as_ref(),
        measured,
        summary,
        interrupt,
    };
    write(&mut ready).map_err(stopped)?;
    Ok(ready.summary)
}

/// An error if the file, or what of it can be read, stops before its end.
fn complete(opened: &OpenedModel, scanned: &Scanned, name: &str) -> Result<(), IfcError> {
    let bytes: &[u8] = &opened.bytes;
    let cut = scanned
        .malformed
        .last()
        .copied()
        .filter(|&begin| begin >= scanned.end);
    if !opened.whole {
        let (byte, what) = match cut {
            Some(begin) => (begin, "it ends within the record that begins there"),
            None => (bytes.len(), "it ends after the last whole record"),
        };
        return Err(IfcError::Truncated {
            file: name.to_owned(),
            what: what.to_owned(),
            line: line(bytes, byte),
            byte,
        });
    }
    match cut {
        Some(byte) if !step::section_ends(&bytes[byte..]) => Err(IfcError::Unreadable {
            file: name.to_owned(),
            line: line(bytes, byte),
            byte,
        }),
        _ => Ok(()),
    }
}

fn write_parsed(
    ready: &mut Ready,
    threads: usize,
    name: &str,
    out: &mut dyn Write,
) -> Result<(), Stop> {
    let &mut Ready {
        model,
        relations,
        source,
        measured,
        interrupt,
        ..
    } = ready;
    let project = model.projects.first().and_then(|&entry| {
        let text = model.text(entry);
        let named = |at| step::string(step::attribute(text, at));
        // LongName; Name is often a number.
        let long = named(5).filter(|name| !name.trim().is_empty());
        long.or_else(|| named(2))
    });
    let about = About {
        file: name,
        schema: &ready.summary.schema,
        project: project.map(String::from),
        elements: ready.summary.elements,
        openings: ready.summary.openings,
        duplicate_global_ids: &ready.summary.duplicate_global_ids,
        warnings: &ready.summary.warnings,
    };
    let about = serde_json::to_vec(&about).map_err(|error| Stop::Write(error.into()))?;
    let mut writer = ChunkWriter::new(out, model, interrupt);
    writer.write(b"{\"model\":")?;
    writer.write(&about)?;
    writer.write(b",\n \"elements\":[")?;
    let chunks = model.elements.chunks(CHUNK);
    let chunks: Vec<&[RecordEntry]> = chunks.chain(model.openings.chunks(CHUNK)).collect();
    let start = || Ready::reader(model, relations, source, measured);
    let work = |reader: &mut ElementReader, number: usize| chunk(reader, model, chunks[number]);
    in_order(threads, chunks.len(), &start, &work, &mut writer)?;
    let counts = writer.finish()?;
    ready.summary.count(counts);
    Ok(())
}

impl ModelSummary {
    fn count(&mut self, counts: Counts) {
        self.by_type = counts.by_type;
        self.with_material = counts.with_material;
        self.with_quantity_volume = counts.with_quantity_volume;
        self.with_property_volume = counts.with_property_volume;
        self.with_storey = counts.with_storey;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error() {
        let at = [0_u8; 2];
        let panic: Result<u8, _> = guarded("m.ifc", || Ok(at[std::hint::black_box(2)]));
        assert_eq!(
            panic.unwrap_err().to_string(),
            "m.ifc: the STEP parser failed on this file: index out of bounds: the len is 2 but the index is 2; open and \
             save it in another program, and report this with the file"
        );
    }
}
