//! The model as IFC records: project, houses, elements, and what holds them together.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::building::{STOREY, level_name};
use super::catalogue::Catalogue;
use super::definitions::Definitions;
use super::elements::Host;
use super::geometry::Geometry;
use super::layout::{Layout, Options};
use super::revision::Revisions;
use super::shape::Shape;
use super::step_file::{Choice, Id, Maybe, Real, Refs, StepFile, Text};

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Take-off elements.
    pub elements: usize,
    /// Openings in walls and slabs.
    pub openings: usize,
    /// Elements that separate rooms without being there.
    pub virtual_elements: usize,
    /// All records.
    pub records: u64,
}

/// References that wait until there are enough for one relation.
pub(super) const CHUNK: usize = 1000;

/// Writes a whole model. It streams: what grows with the model is 8 bytes an element, and in revisions some 50 more.
///
/// Errors are those of `out`, or say which line of the tables is missing or wrong.
pub fn write_model(out: &mut dyn Write, options: &Options) -> io::Result<Counts> {
    let catalogue = Catalogue::read()?;
    let layout = Layout::new(options);
    let revisions = Revisions::of(options, &layout, &catalogue);
    let revision = u64::from(options.revision);
    let stamp = format!(
        "{}-{:02}-12T08:30:00",
        2026 + revision / 12,
        1 + revision % 12
    );
    // An issue uses no number of the one before: an element has about 25 records.
    let last = revision * (40 * options.elements as u64 + 1000);
    let mut step = StepFile::begin(out, "Wohnhaus Lindenstraße.ifc", &stamp, last)?;
    let history = history(&mut step)?;
    let geometry = Geometry::begin(&mut step)?;
    let mut model = Model {
        seed: options.seed,
        revision,
        catalogue: &catalogue,
        layout: &layout,
        revisions: &revisions,
        history,
        geometry,
        definitions: Definitions::new(&catalogue, options.seed, history),
        materials: BTreeMap::new(),
        codes: BTreeMap::new(),
        relations: 0,
        counts: Counts::default(),
        step,
    };
    model.write()?;
    model.counts.records = model.step.end()? - last;
    Ok(model.counts)
}

fn history(step: &mut StepFile<'_>) -> io::Result<Id> {
    let person = step.record(format_args!("IFCPERSON($,'Muster','Maria',$,$,$,$,$)"))?;
    let office = Text("Architekturbüro Muster");
    let office = step.record(format_args!("IFCORGANIZATION($,{office},$,$,$)"))?;
    let author = step.record(format_args!(
        "IFCPERSONANDORGANIZATION({person},{office},$)"
    ))?;
    let tool = step.record(format_args!(
        "IFCAPPLICATION({office},'1','sample generator','sample')"
    ))?;
    step.record(format_args!(
        "IFCOWNERHISTORY({author},{tool},$,.NOCHANGE.,$,$,$,1767600000)"
    ))
}

pub(super) struct Model<'a> {
    pub(super) step: StepFile<'a>,
    pub(super) seed: u64,
    pub(super) revision: u64,
    pub(super) catalogue: &'a Catalogue,
    pub(super) layout: &'a Layout,
    pub(super) revisions: &'a Revisions,
    pub(super) history: Id,
    pub(super) geometry: Geometry,
    pub(super) definitions: Definitions<'a>,
    /// Elements that wait to be associated with a material.
    pub(super) materials: BTreeMap<Id, Vec<Id>>,
    /// Classification references, and the elements that wait for them.
    pub(super) codes: BTreeMap<String, (Id, Vec<Id>)>,
    pub(super) relations: u64,
    pub(super) counts: Counts,
}

/// A storey of a house while its elements are written.
pub(super) struct Level {
    pub(super) id: Id,
    pub(super) place: Id,
    pub(super) contained: Vec<Id>,
    pub(super) rooms: [Vec<Id>; 2],
}

impl Model<'_> {
    fn write(&mut self) -> io::Result<()> {
        let units = self.units()?;
        let context = self.geometry.context;
        let name = Text("Wohn- und Bürohaus Lindenstraße");
        let (guid, history) = (self.guid("project", &[]), self.history);
        let project = self.step.record(format_args!(
            "IFCPROJECT('{guid}',{history},{name},$,$,$,$,({context}),{units})"
        ))?;
        let place = self.geometry.place(&mut self.step, None, [0.0; 3], false)?;
        let (guid, name) = (self.guid("site", &[]), Text("Gelände"));
        let site = self.step.record(format_args!(
            "IFCSITE('{guid}',{history},{name},$,$,{place},$,$,.ELEMENT.,$,$,$,$,$)"
        ))?;
        self.relate("IFCRELAGGREGATES", project, &[site])?;
        let code = Text("Kostengruppen nach DIN 276");
        let classification = self.step.record(format_args!(
            "IFCCLASSIFICATION('DIN','2018-12',$,'DIN 276',{code},$,$)"
        ))?;
        let mut houses: Vec<usize> = (0..self.layout.houses).collect();
        if self.revision > 0 {
            houses.sort_by_key(|house| self.chance("house order", *house));
        }
        let mut written = Vec::new();
        for house in houses {
            written.push(self.house(house, place, classification)?);
        }
        self.relate("IFCRELAGGREGATES", site, &written)?;
        for (material, elements) in std::mem::take(&mut self.materials) {
            self.associate_material(material, &elements)?;
        }
        for (code, elements) in std::mem::take(&mut self.codes).into_values() {
            self.associate_code(code, &elements)?;
        }
        let empty = Definitions::new(self.catalogue, self.seed, history);
        std::mem::replace(&mut self.definitions, empty).end(&mut self.step)
    }

    fn units(&mut self) -> io::Result<Id> {
        let mut units = Vec::new();
        for (sort, prefix, name) in [
            ("LENGTHUNIT", "MILLI", "METRE"),
            ("AREAUNIT", "", "SQUARE_METRE"),
            ("VOLUMEUNIT", "", "CUBIC_METRE"),
            ("PLANEANGLEUNIT", "", "RADIAN"),
            ("MASSUNIT", "KILO", "GRAM"),
        ] {
            let prefix = Choice(prefix);
            units.push(
                self.step
                    .record(format_args!("IFCSIUNIT(*,.{sort}.,{prefix},.{name}.)"))?,
            );
        }
        self.step
            .record(format_args!("IFCUNITASSIGNMENT({})", Refs(&units)))
    }

    /// Writes a house with its storeys and elements.
    fn house(&mut self, house: usize, site: Id, classification: Id) -> io::Result<Id> {
        let at = [
            (house % 10) as f64 * 22_000.0,
            (house / 10) as f64 * 26_000.0,
            0.0,
        ];
        let place = self.geometry.place(&mut self.step, Some(site), at, false)?;
        let (guid, history) = (self.guid("house", &[house as u64]), self.history);
        let name = format!("Haus {}", house + 1);
        let building = self.step.record(format_args!(
            "IFCBUILDING('{guid}',{history},{},$,$,{place},$,$,.ELEMENT.,$,$,$)",
            Text(&name)
        ))?;
        let mut levels = Vec::new();
        for level in 0..self.layout.upper + 3 {
            levels.push(self.level(house, level, place)?);
        }
        let ids: Vec<Id> = levels.iter().map(|level| level.id).collect();
        self.relate("IFCRELAGGREGATES", building, &ids)?;

        let mut hosts: BTreeMap<usize, Host> = BTreeMap::new();
        for element in self.elements(house) {
            self.element(house, element, &mut levels, &mut hosts, classification)?;
        }
        for host in hosts.into_values() {
            self.relate("IFCRELAGGREGATES", host.id, &host.parts)?;
        }
        for (number, level) in levels.into_iter().enumerate() {
            self.contain(&level.contained, level.id)?;
            self.rooms(house, number, &level)?;
        }
        Ok(building)
    }

    fn level(&mut self, house: usize, level: usize, building: Id) -> io::Result<Level> {
        let height = (level as f64 - 1.0) * STOREY;
        let place =
            self.geometry
                .place(&mut self.step, Some(building), [0.0, 0.0, height], false)?;
        let guid = self.guid("storey", &[house as u64, level as u64]);
        let (history, name) = (self.history, level_name(level, self.layout.upper));
        let (name, height) = (Text(&name), Real(height));
        let id = self.step.record(format_args!(
            "IFCBUILDINGSTOREY('{guid}',{history},{name},$,$,{place},$,$,.ELEMENT.,{height})"
        ))?;
        Ok(Level {
            id,
            place,
            contained: Vec::new(),
            rooms: [Vec::new(), Vec::new()],
        })
    }

    /// Writes the rooms in which something stands, and what separates them.
    fn rooms(&mut self, house: usize, number: usize, level: &Level) -> io::Result<()> {
        const NAMES: [[&str; 2]; 2] = [
            ["Wohnen", "Küche/Schlafen"],
            ["Großraumbüro", "Besprechung"],
        ];
        let history = self.history;
        let mut written = Vec::new();
        for (room, elements) in level
            .rooms
            .iter()
            .enumerate()
            .filter(|room| !room.1.is_empty())
        {
            let key = [house as u64, number as u64, room as u64];
            let at = [400.0 + 7_000.0 * room as f64, 2_450.0, 0.0];
            let place = self
                .geometry
                .place(&mut self.step, Some(level.place), at, false)?;
            let body = Shape::Box(if room == 0 { 6_800.0 } else { 5_500.0 }, 4_100.0, 2_700.0);
            let body = Maybe(self.geometry.shape(&mut self.step, &body)?);
            let guid = self.guid("room", &key);
            let name = format!("{number}.0{}", room + 1);
            let (name, long) = (Text(&name), Text(NAMES[usize::from(number == 1)][room]));
            let id = self.step.record(format_args!(
                "IFCSPACE('{guid}',{history},{name},$,$,{place},{body},{long},.ELEMENT.,.INTERNAL.,$)"
            ))?;
            self.contain(elements, id)?;
            written.push(id);
        }
        self.relate("IFCRELAGGREGATES", level.id, &written)?;
        if !written.is_empty() && number == 1 {
            let at = [7_250.0, 400.0, 0.0];
            let place = self
                .geometry
                .place(&mut self.step, Some(level.place), at, true)?;
            let guid = self.guid("virtual", &[house as u64]);
            let name = Text("Raumtrennung:1");
            let id = self.step.record(format_args!(
                "IFCVIRTUALELEMENT('{guid}',{history},{name},$,$,{place},$,$)"
            ))?;
            self.contain(&[id], level.id)?;
            self.counts.virtual_elements += 1;
        }
        Ok(())
    }
}
