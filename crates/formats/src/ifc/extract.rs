//! Reads a whole model and writes `parsed_data.json`, one line per element.

use std::any::Any;
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::thread;

use serde::Serialize;

use super::counts;
use super::element::{Element, ElementReader};
use super::geometry::{Measured, Mesher, Positions, Source};
use super::index::{Model, RecordEntry, Scanned};
use super::limits::{OUTPUT, OUTPUT_RATIO, THREADS};
use super::open::{self, IfcError, OpenedModel, line};
use super::parallel::{Taker, in_order};
use super::relations::{Broken, Relations};
use super::review;
use super::schema::Classes;
use super::step;
use super::stop::{Interrupt, Stop};
use super::values::units::Units;

/// What a model holds. All counts but `openings` are numbers of elements.
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
    /// What was left out, assumed or could not be found.
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
/// As [`extract`], and [`IfcError::Read`] with the error of `look`.
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
/// As [`extract_while`].
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

/// Writes elements and openings as JSON lines with their STEP names as `step_id`, for comparisons in tests.
#[doc(hidden)]
pub fn extract_lines(
    model: &Path,
    name: &str,
    out: &mut dyn Write,
) -> Result<ModelSummary, IfcError> {
    guarded(name, || {
        let opened = open::open(model, name)?;
        with_model(&opened, name, Measured::None, &|| Ok(()), &mut |read| {
            write_lines(read, out)
        })
    })
}

/// Turns a panic of the parser into an error: a file that somebody sends must not end the process.
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
    source: Option<&'m Source<'m, 'a>>,
    measured: Measured,
    summary: ModelSummary,
    interrupt: &'m Interrupt<'m>,
}

impl<'m, 'a> Ready<'m, 'a> {
    /// Returns a reader for one thread.
    fn reader(
        model: &'m Model<'a>,
        relations: &'m Relations,
        source: Option<&'m Source<'m, 'a>>,
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
    let scanned = Model::scan(bytes, opened.data, classes, positions.as_mut(), interrupt);
    let mut scanned = scanned.map_err(stopped)?;
    complete(opened, &scanned, name)?;
    opened.bytes.read_about();
    let mut broken = Broken::default();
    let entries = std::mem::take(&mut scanned.relations);
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
        duplicate_global_ids.len(),
    ));
    let model = &scanned.model;
    let is_wanted = positions.is_some();
    let source = positions.and_then(|positions| Source::new(model, &relations, positions));
    if is_wanted && source.is_none() {
        warnings.push(
            "no geometry is measured: the file has 4 GiB or more, or its units cannot be read"
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

/// Elements that a thread reads at once.
const CHUNK: usize = 64;

/// Elements as JSON, with what precedes them in a list.
struct Chunk {
    json: Vec<u8>,
    /// Where each element ends in it.
    ends: Vec<usize>,
    counts: Counts,
    /// The defect that ended it.
    stop: Option<Stop>,
}

/// Returns the bytes that may be written of a model, to end one whose elements are longer than their file explains.
fn most_bytes(model: &Model) -> u64 {
    OUTPUT.saturating_add(OUTPUT_RATIO.saturating_mul(model.bytes.len() as u64))
}

/// Reads elements.
fn chunk(reader: &mut ElementReader, model: &Model, entries: &[RecordEntry]) -> Chunk {
    let mut chunk = Chunk {
        json: Vec::new(),
        ends: Vec::with_capacity(entries.len()),
        counts: Counts::default(),
        stop: None,
    };
    for &entry in entries {
        let element = match reader.element(entry) {
            Ok(element) => element,
            Err(stop) => {
                chunk.stop = Some(stop);
                break;
            }
        };
        chunk.counts.add(&element);
        chunk.json.extend(b",\n  ");
        if let Err(error) = serde_json::to_writer(&mut chunk.json, &element) {
            chunk.stop = Some(Stop::Write(error.into()));
            break;
        }
        chunk.ends.push(chunk.json.len());
        // The whole model is ended when this is written.
        if chunk.json.len() as u64 > most_bytes(model) {
            break;
        }
    }
    chunk
}

/// Writes chunks, first those of elements, then those of openings.
struct ChunkWriter<'w, 'm, 'a> {
    out: BufWriter<&'w mut dyn Write>,
    written: u64,
    /// The elements and openings that were written.
    items: usize,
    model: &'m Model<'a>,
    counts: Counts,
    interrupt: &'m Interrupt<'m>,
}

impl ChunkWriter<'_, '_, '_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        self.written += bytes.len() as u64;
        self.out.write_all(bytes).map_err(Stop::Write)
    }
}

impl Taker<Chunk, Stop> for ChunkWriter<'_, '_, '_> {
    fn ask(&mut self) -> Result<(), Stop> {
        self.interrupt.ask()
    }

    fn take(&mut self, chunk: Chunk) -> Result<(), Stop> {
        let Model {
            elements, openings, ..
        } = self.model;
        let is_first = self.items == 0 || self.items == elements.len();
        if self.items == elements.len() {
            self.write(OPENINGS)?;
        }
        if self.items < elements.len() {
            self.counts.join(chunk.counts);
        }
        let before = self.written;
        // No comma precedes the first of a list.
        self.write(&chunk.json[usize::from(is_first).min(chunk.json.len())..])?;
        let most = most_bytes(self.model);
        for (at, end) in chunk.ends.iter().enumerate() {
            if before + *end as u64 > most {
                let mut entries = elements.iter().chain(openings).skip(self.items + at);
                let at = entries
                    .next()
                    .map_or_else(String::new, |entry| self.model.named(*entry));
                let what = format!("its elements up to {at} have more than {most} bytes as JSON");
                return Err(Stop::Limit(what));
            }
        }
        self.items += chunk.ends.len();
        chunk.stop.map_or(Ok(()), Err)
    }
}

/// What stands between elements and openings.
const OPENINGS: &[u8] = b"\n ],\n \"openings\":[";

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
    let project = model.projects.first();
    let project = project.and_then(|&entry| step::string(step::attribute(model.text(entry), 2)));
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
    let mut writer = ChunkWriter {
        out: BufWriter::with_capacity(1 << 16, out),
        written: 0,
        items: 0,
        model,
        counts: Counts::default(),
        interrupt,
    };
    writer.write(b"{\"model\":")?;
    writer.write(&about)?;
    writer.write(b",\n \"elements\":[")?;
    let chunks = model.elements.chunks(CHUNK);
    let chunks: Vec<&[RecordEntry]> = chunks.chain(model.openings.chunks(CHUNK)).collect();
    let start = || Ready::reader(model, relations, source, measured);
    let work = |reader: &mut ElementReader, number: usize| chunk(reader, model, chunks[number]);
    in_order(threads, chunks.len(), &start, &work, &mut writer)?;
    if model.openings.is_empty() {
        writer.write(OPENINGS)?;
    }
    writer.write(b"\n ]}\n")?;
    writer.out.flush().map_err(Stop::Write)?;
    ready.summary.count(writer.counts);
    Ok(())
}

fn write_lines(ready: &mut Ready, out: &mut dyn Write) -> Result<(), Stop> {
    #[derive(Serialize)]
    struct ElementLine<'a> {
        step_id: u32,
        #[serde(flatten)]
        element: Element<'a>,
    }
    let mut out = BufWriter::new(out);
    let Ready {
        model,
        relations,
        source,
        measured,
        ..
    } = *ready;
    let mut reader = Ready::reader(model, relations, source, measured);
    let mut counts = Counts::default();
    for (at, &entry) in model.elements.iter().chain(&model.openings).enumerate() {
        let element = reader.element(entry)?;
        if at < model.elements.len() {
            counts.add(&element);
        }
        let line = ElementLine {
            step_id: entry.id,
            element,
        };
        serde_json::to_writer(&mut out, &line).map_err(|error| Stop::Write(error.into()))?;
        out.write_all(b"\n").map_err(Stop::Write)?;
    }
    ready.summary.count(counts);
    out.flush().map_err(Stop::Write)
}

/// Numbers of elements.
#[derive(Default)]
struct Counts {
    by_type: BTreeMap<String, usize>,
    with_material: usize,
    with_quantity_volume: usize,
    with_property_volume: usize,
    with_storey: usize,
}

impl Counts {
    fn add(&mut self, element: &Element) {
        match self.by_type.get_mut(element.ifc_type) {
            Some(count) => *count += 1,
            None => drop(self.by_type.insert(element.ifc_type.to_owned(), 1)),
        }
        self.with_material += usize::from(!element.materials.is_empty());
        self.with_quantity_volume += usize::from(element.volume_m3.is_some());
        self.with_property_volume +=
            usize::from(element.volume_m3.is_none() && element.property_volume_m3.is_some());
        self.with_storey += usize::from(element.storey.is_some());
    }

    fn join(&mut self, other: Self) {
        for (ifc_type, count) in other.by_type {
            *self.by_type.entry(ifc_type).or_default() += count;
        }
        self.with_material += other.with_material;
        self.with_quantity_volume += other.with_quantity_volume;
        self.with_property_volume += other.with_property_volume;
        self.with_storey += other.with_storey;
    }
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
