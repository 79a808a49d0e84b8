//! Simple bodies: what is extruded how far, and what follows from that (face, volume). Millimetres.

/// The outline that is extruded.
#[derive(Clone, Debug, PartialEq)]
pub enum Section {
    /// Width and height.
    Rectangle(f64, f64),
    /// Diameter.
    Circle(f64),
    /// Width, height, web, flange.
    I(f64, f64, f64, f64),
    /// Corners of a closed polygon.
    Polygon(Vec<[f64; 2]>),
}

impl Section {
    /// Area in mm².
    pub fn area(&self) -> f64 {
        match self {
            Self::Rectangle(width, height) => width * height,
            Self::Circle(diameter) => std::f64::consts::PI * diameter * diameter / 4.0,
            Self::I(width, height, web, flange) => {
                2.0 * width * flange + (height - 2.0 * flange) * web
            }
            Self::Polygon(corners) => {
                let next = corners.iter().cycle().skip(1);
                let twice: f64 = corners
                    .iter()
                    .zip(next)
                    .map(|(a, b)| a[0] * b[1] - b[0] * a[1])
                    .sum();
                twice.abs() / 2.0
            }
        }
    }

    /// Width and height of the box around it.
    pub fn extent(&self) -> [f64; 2] {
        match self {
            Self::Rectangle(width, height) | Self::I(width, height, ..) => [*width, *height],
            Self::Circle(diameter) => [*diameter, *diameter],
            Self::Polygon(corners) => [0, 1].map(|axis| {
                let values = corners.iter().map(|corner| corner[axis]);
                values.clone().fold(f64::MIN, f64::max) - values.fold(f64::MAX, f64::min)
            }),
        }
    }
}

/// The body of an element in its own place.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Length ahead, width to both sides, height upwards. A width or height of 0 is as thick as the layers.
    Box(f64, f64, f64),
    /// A section extruded upwards, its centre on the place.
    Post(Section, f64),
    /// A section extruded ahead; its height points upwards.
    Bar(Section, f64),
    /// A section extruded ahead, whose layers are that thick: pitched roofs.
    Slope(Section, f64, f64),
    /// No body of its own: the parts have it.
    Assembly,
}

/// What a quantity set says of a shape. Metres, m², m³.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measures {
    /// Ahead; of an upright polygon its own width.
    pub length: f64,
    /// From end to end: of columns, beams, pipes, rafters, flights.
    pub longest: f64,
    /// To the sides.
    pub width: f64,
    /// Upwards.
    pub height: f64,
    /// Area of the largest face, without holes taken off.
    pub face: f64,
    /// Area of the holes in that face.
    pub holes: f64,
    /// How thick the body is behind the face.
    pub thickness: f64,
    /// Area of the section.
    pub section: f64,
    /// Way around the section.
    pub around: f64,
    /// Volume, without holes taken off.
    pub volume: f64,
}

impl Shape {
    /// Gives a box without a width or height the thickness of its layers.
    pub fn layered(self, thickness: Option<f64>) -> Self {
        match (self, thickness) {
            (Self::Box(length, 0.0, height), Some(t)) => Self::Box(length, t, height),
            (Self::Box(length, width, 0.0), Some(t)) => Self::Box(length, width, t),
            (shape, _) => shape,
        }
    }

    /// The same body, that much longer.
    pub fn longer(self, factor: f64) -> Self {
        match self {
            Self::Box(length, width, height) => Self::Box(length * factor, width, height),
            Self::Post(section, height) => Self::Post(section, height * factor),
            Self::Bar(section, length) => Self::Bar(section, length * factor),
            Self::Slope(section, length, t) => Self::Slope(section, length * factor, t),
            Self::Assembly => Self::Assembly,
        }
    }

    /// Figures of the body, with holes of that area (mm²) in its face.
    pub fn measures(&self, holes: f64) -> Measures {
        const MM: f64 = 1e-3;
        let [length, width, height] = self.extent();
        let mut sides = [length, width, height];
        sides.sort_by(f64::total_cmp);
        let (section, volume) = match self {
            Self::Box(l, w, h) => (w * h, l * w * h),
            Self::Post(section, far) | Self::Bar(section, far) | Self::Slope(section, far, _) => {
                (section.area(), section.area() * far)
            }
            Self::Assembly => (0.0, 0.0),
        };
        let thickness = match self {
            Self::Slope(_, _, t) => *t,
            _ => sides[0],
        };
        let face = if thickness > 0.0 {
            volume / thickness
        } else {
            0.0
        };
        let longest = match self {
            Self::Bar(Section::Polygon(_), _) => width.hypot(height),
            _ => sides[2],
        };
        let (section, around) = match self {
            // A rafter or flight: the section is the one across, not the elevation.
            Self::Bar(Section::Polygon(_), across) => {
                let section = volume / longest;
                (section, 2.0 * (across + section / across))
            }
            Self::Post(Section::Circle(d), _) | Self::Bar(Section::Circle(d), _) => {
                (section, std::f64::consts::PI * d)
            }
            Self::Post(..) => (section, 2.0 * (length + width)),
            _ => (section, 2.0 * (width + height)),
        };
        let polygon = matches!(self, Self::Bar(Section::Polygon(_), _));
        Measures {
            length: if polygon { width } else { length } * MM,
            longest: longest * MM,
            width: if polygon { length } else { width } * MM,
            height: height * MM,
            face: face * MM * MM,
            holes: holes * MM * MM,
            thickness: thickness * MM,
            section: section * MM * MM,
            around: around * MM,
            volume: volume * MM * MM * MM,
        }
    }

    /// Length, width, height of the box around it.
    fn extent(&self) -> [f64; 3] {
        match self {
            Self::Box(length, width, height) => [*length, *width, *height],
            Self::Post(section, height) => {
                let [length, width] = section.extent();
                [length, width, *height]
            }
            Self::Bar(section, length) | Self::Slope(section, length, _) => {
                let [width, height] = section.extent();
                [*length, width, height]
            }
            Self::Assembly => [0.0; 3],
        }
    }
}
