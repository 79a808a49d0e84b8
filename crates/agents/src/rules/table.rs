//! The rules file as it is written: tables `[[rule]]` and `[[material]]`, with the closed lists of what may be answered.

#![allow(
    missing_docs,
    reason = "the closed lists are words of the field, and documented as such in docs/reference/classification.md"
)]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Spanned;

/// A rules file: how elements are told by what a model says of them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Milepost rules file")]
pub struct Table {
    /// Rules, tried from top to bottom; the first whose conditions all hold gives the answer.
    #[serde(default)]
    pub rule: Vec<Rule>,
    /// Words that give materials away; where several match, the longest counts, then the upper one.
    #[serde(default)]
    pub material: Vec<Material>,
}

/// One rule. A condition that is not written always holds; a list holds if one of its values does.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Known by; every answer names it. Letters, digits and `-`, no two alike.
    #[schemars(with = "String")]
    pub name: Spanned<String>,
    /// IFC types; `IfcWall*` is every type whose name begins so.
    #[serde(default)]
    pub ifc_type: Vec<String>,
    /// Predefined types.
    #[serde(default)]
    pub predefined_type: Vec<String>,
    /// LoadBearing of the element's property sets.
    pub load_bearing: Option<bool>,
    /// IsExternal of the element's property sets.
    pub external: Option<bool>,
    /// Whether the storey lies below the ground.
    pub below_ground: Option<bool>,
    /// Words of the type's name, the object type or the element's name, of which one is enough.
    #[serde(default)]
    pub words: Vec<String>,
    /// Words of the same names, of which none may be there.
    #[serde(default)]
    pub not: Vec<String>,
    /// Categories of the primary material.
    #[serde(default)]
    pub material: Vec<Category>,
    /// Codes of authored classifications; `Ss_25*` is every code that begins so.
    #[serde(default)]
    pub code: Vec<String>,
    /// What is answered.
    pub answer: RuleAnswer,
    /// 0 to 1: how sure the answer is if the evidence is explicit. Evidence by the name of a type lowers it to 0.7, by the
    /// element's own name to 0.5, a material that nobody names to 0.8.
    #[schemars(range(min = 0, max = 1))]
    pub confidence: f64,
}

/// What a rule answers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleAnswer {
    /// What the element is.
    pub element_type: ElementType,
    /// What it is for; by default what elements of its type are for.
    pub function: Option<Function>,
    /// Where it is; by default by type, IsExternal and storey.
    pub location: Option<Location>,
    /// Whether names may tell a material that the model does not; by default yes.
    #[serde(default = "yes")]
    pub infer_material: bool,
    /// Of several materials without thickness, the first of these categories that is there is the primary one.
    #[serde(default)]
    pub prefer_material: Vec<Category>,
}

fn yes() -> bool {
    true
}

/// Words that give a material away.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Material {
    /// The category that they tell.
    #[schemars(with = "Category")]
    pub category: Spanned<Category>,
    /// What it is more precisely.
    pub subcategory: Option<String>,
    /// What such a layer does in a wall or slab; by default what its category does.
    pub layer: Option<Layer>,
    /// Words of which one is enough.
    #[serde(default)]
    pub words: Vec<String>,
    /// Words that forbid it.
    #[serde(default)]
    pub not: Vec<String>,
    /// Words that tell the category and are themselves the subcategory, like `C##/##`.
    #[serde(default)]
    pub grades: Vec<String>,
}

/// What an element is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ElementType {
    Column,
    Beam,
    LoadBearingWall,
    CoreWall,
    FoundationWall,
    FoundationSlab,
    Footing,
    Pile,
    SlabStructural,
    RoofStructure,
    ExternalWall,
    CurtainWall,
    Window,
    DoorExternal,
    RoofCovering,
    PartitionWall,
    DoorInternal,
    Ceiling,
    RaisedFloor,
    FloorFinish,
    WallFinish,
    Stair,
    Ramp,
    Railing,
    Member,
    Plate,
    Reinforcement,
    Fastener,
    Furniture,
    Distribution,
    SpaceSeparator,
    Civil,
    Other,
}

impl ElementType {
    /// The word that stands for it in files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Column => "column",
            Self::Beam => "beam",
            Self::LoadBearingWall => "load_bearing_wall",
            Self::CoreWall => "core_wall",
            Self::FoundationWall => "foundation_wall",
            Self::FoundationSlab => "foundation_slab",
            Self::Footing => "footing",
            Self::Pile => "pile",
            Self::SlabStructural => "slab_structural",
            Self::RoofStructure => "roof_structure",
            Self::ExternalWall => "external_wall",
            Self::CurtainWall => "curtain_wall",
            Self::Window => "window",
            Self::DoorExternal => "door_external",
            Self::RoofCovering => "roof_covering",
            Self::PartitionWall => "partition_wall",
            Self::DoorInternal => "door_internal",
            Self::Ceiling => "ceiling",
            Self::RaisedFloor => "raised_floor",
            Self::FloorFinish => "floor_finish",
            Self::WallFinish => "wall_finish",
            Self::Stair => "stair",
            Self::Ramp => "ramp",
            Self::Railing => "railing",
            Self::Member => "member",
            Self::Plate => "plate",
            Self::Reinforcement => "reinforcement",
            Self::Fastener => "fastener",
            Self::Furniture => "furniture",
            Self::Distribution => "distribution",
            Self::SpaceSeparator => "space_separator",
            Self::Civil => "civil",
            Self::Other => "other",
        }
    }

    /// What elements of this type are for.
    pub fn function(self) -> Function {
        match self {
            Self::Column
            | Self::Beam
            | Self::LoadBearingWall
            | Self::CoreWall
            | Self::FoundationWall
            | Self::FoundationSlab
            | Self::Footing
            | Self::Pile
            | Self::SlabStructural
            | Self::RoofStructure
            | Self::Member
            | Self::Plate
            | Self::Reinforcement
            | Self::Fastener
            | Self::Stair
            | Self::Ramp => Function::Structural,
            Self::ExternalWall
            | Self::CurtainWall
            | Self::Window
            | Self::DoorExternal
            | Self::RoofCovering => Function::Enclosure,
            Self::PartitionWall | Self::DoorInternal => Function::Partition,
            Self::Ceiling
            | Self::RaisedFloor
            | Self::FloorFinish
            | Self::WallFinish
            | Self::Railing => Function::Finishing,
            Self::Distribution => Function::Services,
            Self::Furniture | Self::SpaceSeparator | Self::Civil | Self::Other => Function::Other,
        }
    }
}

/// What an element is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Function {
    Structural,
    Enclosure,
    Partition,
    Finishing,
    Services,
    Other,
}

impl Function {
    /// The word that stands for it in files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Structural => "structural",
            Self::Enclosure => "enclosure",
            Self::Partition => "partition",
            Self::Finishing => "finishing",
            Self::Services => "services",
            Self::Other => "other",
        }
    }
}

/// Where an element is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Location {
    External,
    Internal,
    BelowGround,
    Roof,
}

impl Location {
    /// The word that stands for it in files.
    pub fn word(self) -> &'static str {
        match self {
            Self::External => "external",
            Self::Internal => "internal",
            Self::BelowGround => "below_ground",
            Self::Roof => "roof",
        }
    }
}

/// Category of a material. `metal` is any metal but steel and aluminium, or one that is not named; `mortar` is mortar, screed
/// and render; `other` is a name that no word tells.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    Concrete,
    Steel,
    Timber,
    Masonry,
    Insulation,
    Gypsum,
    Glass,
    Aluminium,
    Metal,
    Bitumen,
    Ceramics,
    Plastics,
    Textile,
    Aggregate,
    Mortar,
    Air,
    Other,
}

impl Category {
    /// The word that stands for it in files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Concrete => "concrete",
            Self::Steel => "steel",
            Self::Timber => "timber",
            Self::Masonry => "masonry",
            Self::Insulation => "insulation",
            Self::Gypsum => "gypsum",
            Self::Glass => "glass",
            Self::Aluminium => "aluminium",
            Self::Metal => "metal",
            Self::Bitumen => "bitumen",
            Self::Ceramics => "ceramics",
            Self::Plastics => "plastics",
            Self::Textile => "textile",
            Self::Aggregate => "aggregate",
            Self::Mortar => "mortar",
            Self::Air => "air",
            Self::Other => "other",
        }
    }

    /// What a layer of it does where the table does not say.
    pub fn layer(self) -> Layer {
        match self {
            Self::Concrete | Self::Steel | Self::Timber | Self::Masonry => Layer::Structural,
            Self::Insulation | Self::Bitumen => Layer::Filling,
            Self::Air => Layer::Never,
            _ => Layer::Solid,
        }
    }
}

/// What a layer does, which tells the primary one: the thickest structural layer, else the thickest solid one, else the
/// thickest filling; `never` is never primary.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    Never,
    Filling,
    Solid,
    Structural,
}

/// The schema of a rules file, for editors; JSON Schema 2020-12.
pub fn rules_schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Table);
    schema.insert("$id".to_owned(), "rules.schema.json".into());
    schema.to_value()
}
