//! Elements as JSON in chunks: made on any thread, written in order.

use super::parallel::Taker;
use crate::ifc::element::{Element, ElementReader};
use crate::ifc::index::{Model, RecordEntry};
use crate::ifc::limits::{OUTPUT, OUTPUT_RATIO};
use crate::ifc::stop::{Interrupt, Stop};
use std::collections::BTreeMap;
use std::io::{BufWriter, Write};

/// Elements that a thread reads at once.
pub(super) const CHUNK: usize = 64;

/// Elements as JSON, with what precedes them in a list.
pub(super) struct Chunk {
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
pub(super) fn chunk(reader: &mut ElementReader, model: &Model, entries: &[RecordEntry]) -> Chunk {
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
pub(super) struct ChunkWriter<'w, 'm, 'a> {
    out: BufWriter<&'w mut dyn Write>,
    written: u64,
    /// The elements and openings that were written.
    items: usize,
    model: &'m Model<'a>,
    counts: Counts,
    interrupt: &'m Interrupt<'m>,
}

impl<'w, 'm, 'a> ChunkWriter<'w, 'm, 'a> {
    pub(super) fn new(
        out: &'w mut dyn Write,
        model: &'m Model<'a>,
        interrupt: &'m Interrupt<'m>,
    ) -> Self {
        Self {
            out: BufWriter::with_capacity(1 << 16, out),
            written: 0,
            items: 0,
            model,
            counts: Counts::default(),
            interrupt,
        }
    }

    /// Ends the document, and returns the numbers of elements.
    pub(super) fn finish(mut self) -> Result<Counts, Stop> {
        if self.model.openings.is_empty() {
            self.write(OPENINGS)?;
        }
        self.write(b"\n ]}\n")?;
        self.out.flush().map_err(Stop::Write)?;
        Ok(self.counts)
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Stop> {
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

/// Relations between elements and openings.
const OPENINGS: &[u8] = b"\n ],\n \"openings\":[";

/// Numbers of elements.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) by_type: BTreeMap<String, usize>,
    pub(super) with_material: usize,
    pub(super) with_quantity_volume: usize,
    pub(super) with_property_volume: usize,
    pub(super) with_storey: usize,
}

impl Counts {
    pub(super) fn add(&mut self, element: &Element) {
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
