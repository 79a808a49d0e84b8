//! Property sets and quantity sets of an element.

use std::io;

use super::catalogue::{Figures, Kind};
use super::shape::Measures;
use super::step_file::{Id, Real, Refs, StepFile, Text};

/// Sort of a quantity: millimetres, m² or m³.
#[derive(Clone, Copy)]
enum Unit {
    Length,
    Area,
    Volume,
}

/// A quantity: its name and how it follows from the body.
type Quantity = (Unit, &'static str, fn(&Measures) -> f64);

const WALL: &[Quantity] = &[
    (Unit::Length, "Length", |m| m.length),
    (Unit::Length, "Width", |m| m.thickness),
    (Unit::Length, "Height", |m| m.height),
    (Unit::Area, "GrossSideArea", |m| m.face),
    (Unit::Area, "NetSideArea", net_face),
    (Unit::Volume, "GrossVolume", |m| m.volume),
    (Unit::Volume, "NetVolume", net_volume),
];
const SLAB: &[Quantity] = &[
    (Unit::Length, "Width", |m| m.thickness),
    (Unit::Area, "GrossArea", |m| m.face),
    (Unit::Area, "NetArea", net_face),
    (Unit::Volume, "GrossVolume", |m| m.volume),
    (Unit::Volume, "NetVolume", net_volume),
];
const FOOTING: &[Quantity] = &[
    (Unit::Length, "Length", |m| m.longest),
    (Unit::Area, "CrossSectionArea", |m| m.section),
    (Unit::Volume, "GrossVolume", |m| m.volume),
    (Unit::Volume, "NetVolume", net_volume),
];
const BAR: &[Quantity] = &[
    (Unit::Length, "Length", |m| m.longest),
    (Unit::Area, "CrossSectionArea", |m| m.section),
    (Unit::Area, "OuterSurfaceArea", |m| m.around * m.longest),
    (Unit::Volume, "GrossVolume", |m| m.volume),
    (Unit::Volume, "NetVolume", net_volume),
];
const FLIGHT: &[Quantity] = &[
    (Unit::Length, "Length", |m| m.longest),
    (Unit::Volume, "GrossVolume", |m| m.volume),
    (Unit::Volume, "NetVolume", net_volume),
];
const OPENING: &[Quantity] = &[
    (Unit::Length, "Width", |m| m.length),
    (Unit::Length, "Height", |m| m.height),
    (Unit::Area, "Area", |m| m.length * m.height),
];
const COVERING: &[Quantity] = &[
    (Unit::Length, "Width", |m| m.thickness),
    (Unit::Area, "GrossArea", |m| m.face),
    (Unit::Area, "NetArea", net_face),
];
const RUN: &[Quantity] = &[
    (Unit::Length, "Length", |m| m.longest),
    (Unit::Area, "OuterSurfaceArea", |m| m.around * m.longest),
];
const RAIL: &[Quantity] = &[(Unit::Length, "Length", |m| m.longest)];

fn net_face(m: &Measures) -> f64 {
    m.face - m.holes
}

fn net_volume(m: &Measures) -> f64 {
    m.volume - m.holes * m.thickness
}

/// Name and quantities of the set that a class has by the standard.
fn quantity_set(class: &str) -> Option<(&'static str, &'static [Quantity])> {
    Some(match class {
        "Wall" | "WallStandardCase" => ("Qto_WallBaseQuantities", WALL),
        "Slab" => ("Qto_SlabBaseQuantities", SLAB),
        "Footing" => ("Qto_FootingBaseQuantities", FOOTING),
        "Column" => ("Qto_ColumnBaseQuantities", BAR),
        "Beam" => ("Qto_BeamBaseQuantities", BAR),
        "Member" => ("Qto_MemberBaseQuantities", BAR),
        "Plate" => ("Qto_PlateBaseQuantities", SLAB),
        "StairFlight" => ("Qto_StairFlightBaseQuantities", FLIGHT),
        "Door" => ("Qto_DoorBaseQuantities", OPENING),
        "Window" => ("Qto_WindowBaseQuantities", OPENING),
        "Covering" => ("Qto_CoveringBaseQuantities", COVERING),
        "PipeSegment" => ("Qto_PipeSegmentBaseQuantities", RUN),
        "DuctSegment" => ("Qto_DuctSegmentBaseQuantities", RUN),
        "Railing" => ("Qto_RailingBaseQuantities", RAIL),
        _ => return None,
    })
}

/// The common property set of a class, for what has one.
fn common_set(class: &str) -> Option<String> {
    Some(match class {
        "WallStandardCase" => "Pset_WallCommon".to_owned(),
        "Wall"
        | "Slab"
        | "Footing"
        | "Column"
        | "Beam"
        | "Member"
        | "Plate"
        | "Door"
        | "Window"
        | "Covering"
        | "Roof"
        | "Stair"
        | "StairFlight"
        | "Railing"
        | "Ramp"
        | "RampFlight"
        | "CurtainWall"
        | "Chimney"
        | "BuildingElementProxy"
        | "ShadingDevice" => format!("Pset_{class}Common"),
        "PipeSegment" | "DuctSegment" | "SpaceHeater" | "SanitaryTerminal" | "LightFixture"
        | "AirTerminal" | "Furniture" => format!("Pset_{class}TypeCommon"),
        _ => return None,
    })
}

/// Whether the common set hangs on the type object: so for doors and windows.
pub fn on_type(kind: &Kind) -> bool {
    matches!(kind.class.as_str(), "Door" | "Window") && !kind.type_name.is_empty()
}

/// Writes the common property set of a kind; none where its class has none.
pub fn common(
    step: &mut StepFile<'_>,
    history: Id,
    guid: &str,
    kind: &Kind,
) -> io::Result<Option<Id>> {
    let Some(set) = common_set(&kind.class) else {
        return Ok(None);
    };
    let reference = format!("IFCIDENTIFIER({})", Text(&kind.name));
    let mut values = vec![value(step, "Reference", &reference)?];
    for (name, answer) in [("LoadBearing", kind.bears), ("IsExternal", kind.outside)] {
        if let Some(yes) = answer {
            let yes = if yes {
                "IFCBOOLEAN(.T.)"
            } else {
                "IFCBOOLEAN(.F.)"
            };
            values.push(value(step, name, yes)?);
        }
    }
    property_set(step, history, guid, &set, &values).map(Some)
}

/// Writes what the model says of an element's size, where it says anything: a quantity set or a property set.
pub fn figures(
    step: &mut StepFile<'_>,
    history: Id,
    guid: &str,
    kind: &Kind,
    m: &Measures,
) -> io::Result<Option<Id>> {
    const STEEL: f64 = 7850.0; // kg/m³
    let (length, volume) = (Real(m.longest * 1e3), Real(net_volume(m)));
    let measures = match kind.figures {
        Figures::None => return Ok(None),
        Figures::Quantities => return quantities(step, history, guid, kind, m),
        Figures::Dimensions => [
            ("Length", format!("IFCPOSITIVELENGTHMEASURE({length})")),
            ("Volume", format!("IFCVOLUMEMEASURE({volume})")),
        ],
        Figures::Tekla => [
            ("Volume", format!("IFCVOLUMEMEASURE({volume})")),
            (
                "Weight",
                format!("IFCMASSMEASURE({})", Real(m.volume * STEEL)),
            ),
        ],
    };
    let mut values = Vec::new();
    for (name, measure) in measures {
        values.push(value(step, name, &measure)?);
    }
    let set = match kind.figures {
        Figures::Tekla => "Tekla Quantity",
        _ => "Dimensions",
    };
    property_set(step, history, guid, set, &values).map(Some)
}

fn quantities(
    step: &mut StepFile<'_>,
    history: Id,
    guid: &str,
    kind: &Kind,
    m: &Measures,
) -> io::Result<Option<Id>> {
    let Some((set, quantities)) = quantity_set(&kind.class) else {
        return Ok(None);
    };
    let mut values = Vec::new();
    for (unit, name, read) in quantities {
        let (sort, value) = match unit {
            Unit::Length => ("LENGTH", read(m) * 1e3),
            Unit::Area => ("AREA", read(m)),
            Unit::Volume => ("VOLUME", read(m)),
        };
        let value = Real(value);
        values.push(step.record(format_args!("IFCQUANTITY{sort}('{name}',$,$,{value},$)"))?);
    }
    let values = Refs(&values);
    step.record(format_args!(
        "IFCELEMENTQUANTITY('{guid}',{history},'{set}',$,$,{values})"
    ))
    .map(Some)
}

/// Writes the project's own set: the element's number, and whether somebody has looked at it.
pub fn project(step: &mut StepFile<'_>, history: Id, guid: &str, number: usize) -> io::Result<Id> {
    let looked = if number.is_multiple_of(2) {
        "geprüft"
    } else {
        "offen"
    };
    let values = [
        value(step, "Bauteil-ID", &format!("IFCINTEGER({number})"))?,
        value(step, "Status", &format!("IFCLABEL({})", Text(looked)))?,
    ];
    property_set(step, history, guid, "Projekt_Daten", &values)
}

fn value(step: &mut StepFile<'_>, name: &str, value: &str) -> io::Result<Id> {
    step.record(format_args!("IFCPROPERTYSINGLEVALUE('{name}',$,{value},$)"))
}

fn property_set(
    step: &mut StepFile<'_>,
    history: Id,
    guid: &str,
    name: &str,
    values: &[Id],
) -> io::Result<Id> {
    let values = Refs(values);
    step.record(format_args!(
        "IFCPROPERTYSET('{guid}',{history},'{name}',$,{values})"
    ))
}
