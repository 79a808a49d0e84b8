//! Placements and bodies as IFC records. The directions that all of them share are written once.

use std::io;

use super::shape::{Section, Shape};
use super::step_file::{Id, Real, StepFile};

/// Records that every body refers to.
pub struct Geometry {
    up: Id,
    along_y: Id,
    /// Ahead along x, the section's height upwards.
    ahead: Id,
    /// Axes of the pitched roof's windows.
    slope: Id,
    along_x: Id,
    /// The representation context of bodies.
    body: Id,
    /// The model's context, which the project names.
    pub context: Id,
}

impl Geometry {
    /// Writes what is shared.
    pub fn begin(step: &mut StepFile<'_>) -> io::Result<Self> {
        let origin = step.record(format_args!("IFCCARTESIANPOINT((0.,0.,0.))"))?;
        let up = step.record(format_args!("IFCDIRECTION((0.,0.,1.))"))?;
        let along_x = step.record(format_args!("IFCDIRECTION((1.,0.,0.))"))?;
        let along_y = step.record(format_args!("IFCDIRECTION((0.,1.,0.))"))?;
        // The pitched roof rises 0.7 in 1.
        let slope = step.record(format_args!("IFCDIRECTION((0.,0.819232,0.573462))"))?;
        let ahead = step.record(format_args!(
            "IFCAXIS2PLACEMENT3D({origin},{along_x},{along_y})"
        ))?;
        let world = step.record(format_args!("IFCAXIS2PLACEMENT3D({origin},{up},{along_x})"))?;
        let context = step.record(format_args!(
            "IFCGEOMETRICREPRESENTATIONCONTEXT($,'Model',3,0.00001,{world},$)"
        ))?;
        let body = step.record(format_args!(
            "IFCGEOMETRICREPRESENTATIONSUBCONTEXT('Body','Model',*,*,*,*,{context},$,.MODEL_VIEW.,$)"
        ))?;
        Ok(Self {
            up,
            along_y,
            ahead,
            slope,
            along_x,
            body,
            context,
        })
    }

    /// A place in the world, or in another place.
    pub fn place(
        &self,
        step: &mut StepFile<'_>,
        within: Option<Id>,
        at: [f64; 3],
        turned: bool,
    ) -> io::Result<Id> {
        let axes = if turned {
            format!("{},{}", self.up, self.along_y)
        } else {
            "$,$".to_owned()
        };
        Self::placed(step, within, at, &axes)
    }

    /// A place in a pitched roof: its height runs up the slope.
    pub fn place_on_slope(
        &self,
        step: &mut StepFile<'_>,
        within: Id,
        at: [f64; 3],
    ) -> io::Result<Id> {
        let axes = format!("{},{}", self.slope, self.along_x);
        Self::placed(step, Some(within), at, &axes)
    }

    fn placed(
        step: &mut StepFile<'_>,
        within: Option<Id>,
        at: [f64; 3],
        axes: &str,
    ) -> io::Result<Id> {
        let at = point(step, at)?;
        let axes = step.record(format_args!("IFCAXIS2PLACEMENT3D({at},{axes})"))?;
        match within {
            Some(within) => step.record(format_args!("IFCLOCALPLACEMENT({within},{axes})")),
            None => step.record(format_args!("IFCLOCALPLACEMENT($,{axes})")),
        }
    }

    /// The product definition shape of a body; none for an assembly.
    pub fn shape(&self, step: &mut StepFile<'_>, shape: &Shape) -> io::Result<Option<Id>> {
        let (profile, place, far) = match shape {
            Shape::Assembly => return Ok(None),
            Shape::Box(length, width, height) => {
                let profile = section(step, &Section::Rectangle(*length, *width))?;
                let middle = point(step, [length / 2.0, 0.0, 0.0])?;
                let place = step.record(format_args!("IFCAXIS2PLACEMENT3D({middle},$,$)"))?;
                (profile, Some(place), height)
            }
            Shape::Post(outline, height) => (section(step, outline)?, None, height),
            Shape::Bar(outline, length) | Shape::Slope(outline, length, _) => {
                (section(step, outline)?, Some(self.ahead), length)
            }
        };
        let (up, body, far) = (self.up, self.body, Real(*far));
        let place = super::step_file::Maybe(place);
        let solid = step.record(format_args!(
            "IFCEXTRUDEDAREASOLID({profile},{place},{up},{far})"
        ))?;
        let form = step.record(format_args!(
            "IFCSHAPEREPRESENTATION({body},'Body','SweptSolid',({solid}))"
        ))?;
        let shape = step.record(format_args!("IFCPRODUCTDEFINITIONSHAPE($,$,({form}))"))?;
        Ok(Some(shape))
    }
}

fn point(step: &mut StepFile<'_>, [x, y, z]: [f64; 3]) -> io::Result<Id> {
    let (x, y, z) = (Real(x), Real(y), Real(z));
    step.record(format_args!("IFCCARTESIANPOINT(({x},{y},{z}))"))
}

/// Writes a section as a profile without a name.
pub fn section(step: &mut StepFile<'_>, section: &Section) -> io::Result<Id> {
    match section {
        Section::Rectangle(width, height) => {
            let (width, height) = (Real(*width), Real(*height));
            step.record(format_args!(
                "IFCRECTANGLEPROFILEDEF(.AREA.,$,$,{width},{height})"
            ))
        }
        Section::Circle(diameter) => {
            let radius = Real(diameter / 2.0);
            step.record(format_args!("IFCCIRCLEPROFILEDEF(.AREA.,$,$,{radius})"))
        }
        Section::I(width, height, web, flange) => {
            let [width, height] = [Real(*width), Real(*height)];
            let [web, flange] = [Real(*web), Real(*flange)];
            step.record(format_args!(
                "IFCISHAPEPROFILEDEF(.AREA.,$,$,{width},{height},{web},{flange},$,$,$)"
            ))
        }
        Section::Polygon(corners) => {
            let mut points = Vec::with_capacity(corners.len() + 1);
            for [x, y] in corners {
                let (x, y) = (Real(*x), Real(*y));
                points.push(step.record(format_args!("IFCCARTESIANPOINT(({x},{y}))"))?);
            }
            points.push(points[0]);
            let line = super::step_file::Refs(&points);
            let line = step.record(format_args!("IFCPOLYLINE({line})"))?;
            step.record(format_args!(
                "IFCARBITRARYCLOSEDPROFILEDEF(.AREA.,$,{line})"
            ))
        }
    }
}
