//! Reads a whole model and writes `parsed_data.json`, one line per element.

use std::any::Any;
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use serde::Serialize;

use super::counts;
use super::element::{Element, ElementReader};
use super::index::{Model, RecordEntry, Scanned};
use super::limits::{OUTPUT, OUTPUT_RATIO};
use super::open::{self, IfcError, OpenedModel, line};
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
    extract_while(model, name, out, &|| Ok(()))
}

/// Does the same as [`extract`], and stops with the error of `look`, which it calls every few thousand steps.
///
/// # Errors
/// As [`extract`], and [`IfcError::Read`] with the error of `look`.
pub fn extract_while(
    model: &Path,
    name: &str,
    out: &mut dyn Write,
    look: &dyn Fn() -> io::Result<()>,
) -> Result<ModelSummary, IfcError> {
    guarded(name, || {
        let opened = open::open(model, name)?;
        with_model(&opened, name, look, &mut |read| {
            write_parsed(read, name, out)
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
        with_model(&opened, name, &|| Ok(()), &mut |read| {
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
    reader: ElementReader<'m, 'a>,
    summary: ModelSummary,
    interrupt: &'m Interrupt<'m>,
}

fn with_model(
    opened: &OpenedModel,
    name: &str,
    look: &dyn Fn() -> io::Result<()>,
    write: &mut dyn FnMut(&mut Ready) -> Result<(), Stop>,
) -> Result<ModelSummary, IfcError> {
    let bytes: &[u8] = &opened.bytes;
    opened.bytes.read_through();
    let interrupt = &Interrupt::new(look);
    let stopped = |stop: Stop| stop.named(name);
    let scanned = Model::scan(bytes, opened.data, Classes::new(&opened.schema), interrupt);
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
        reader: ElementReader::new(model, &relations, units),
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

/// Counts what is written, to end a model whose elements are longer than their file explains.
struct CountedOut<'w> {
    out: BufWriter<&'w mut dyn Write>,
    written: u64,
}

impl Write for CountedOut<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl CountedOut<'_> {
    fn new(out: &mut dyn Write) -> CountedOut<'_> {
        CountedOut {
            out: BufWriter::with_capacity(1 << 16, out),
            written: 0,
        }
    }

    /// Ends the model if too much was written.
    fn check(&self, model: &Model, entry: RecordEntry) -> Result<(), Stop> {
        let most = OUTPUT.saturating_add(OUTPUT_RATIO.saturating_mul(model.bytes.len() as u64));
        if self.written > most {
            let at = model.named(entry);
            let what = format!("its elements up to {at} have more than {most} bytes as JSON");
            return Err(Stop::Limit(what));
        }
        Ok(())
    }
}

fn write_parsed(ready: &mut Ready, name: &str, out: &mut dyn Write) -> Result<(), Stop> {
    let mut out = CountedOut::new(out);
    let project = ready
        .model
        .projects
        .first()
        .and_then(|&entry| step::string(step::attribute(ready.model.text(entry), 2)));
    let about = About {
        file: name,
        schema: &ready.summary.schema,
        project: project.map(String::from),
        elements: ready.summary.elements,
        openings: ready.summary.openings,
        duplicate_global_ids: &ready.summary.duplicate_global_ids,
        warnings: &ready.summary.warnings,
    };
    let failed = Stop::Write;
    out.write_all(b"{\"model\":").map_err(failed)?;
    serde_json::to_writer(&mut out, &about).map_err(|error| failed(error.into()))?;
    out.write_all(b",\n \"elements\":[").map_err(failed)?;
    for (at, &entry) in ready.model.elements.iter().enumerate() {
        ready.interrupt.step()?;
        let element = ready.reader.element(entry)?;
        ready.summary.count(&element);
        write_item(&mut out, at, &element).map_err(failed)?;
        out.check(ready.model, entry)?;
    }
    out.write_all(b"\n ],\n \"openings\":[").map_err(failed)?;
    for (at, &entry) in ready.model.openings.iter().enumerate() {
        ready.interrupt.step()?;
        let element = ready.reader.element(entry)?;
        write_item(&mut out, at, &element).map_err(failed)?;
        out.check(ready.model, entry)?;
    }
    out.write_all(b"\n ]}\n").map_err(failed)?;
    out.flush().map_err(failed)
}

fn write_item(out: &mut impl Write, at: usize, element: &Element) -> io::Result<()> {
    out.write_all(if at == 0 { b"\n  " } else { b",\n  " })?;
    serde_json::to_writer(out, element).map_err(io::Error::from)
}

fn write_lines(ready: &mut Ready, out: &mut dyn Write) -> Result<(), Stop> {
    #[derive(Serialize)]
    struct ElementLine<'a> {
        step_id: u32,
        #[serde(flatten)]
        element: Element<'a>,
    }
    let mut out = BufWriter::new(out);
    for (at, &entry) in ready
        .model
        .elements
        .iter()
        .chain(&ready.model.openings)
        .enumerate()
    {
        let element = ready.reader.element(entry)?;
        if at < ready.model.elements.len() {
            ready.summary.count(&element);
        }
        let line = ElementLine {
            step_id: entry.id,
            element,
        };
        serde_json::to_writer(&mut out, &line).map_err(|error| Stop::Write(error.into()))?;
        out.write_all(b"\n").map_err(Stop::Write)?;
    }
    out.flush().map_err(Stop::Write)
}

impl ModelSummary {
    fn count(&mut self, element: &Element) {
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
