//! Which schema a model declares, and what each of its classes is to us.

use std::collections::HashMap;

use super::step::{self, IfcType, SchemaVersion};

/// The schemas that are read, for messages.
pub(super) const KNOWN: &str =
    "IFC2X3, IFC4, IFC4X1, IFC4X2, IFC4X3 and their addenda (as IFC4_ADD2, IFC4X3_ADD2)";

/// The other releases of the standard, where a class is looked for that the declared one does not have.
const RELEASES: [SchemaVersion; 5] = [
    SchemaVersion::Ifc4x3,
    SchemaVersion::Ifc4,
    SchemaVersion::Ifc2x3,
    SchemaVersion::Ifc4x2,
    SchemaVersion::Ifc4x1,
];

/// The schema of a model.
pub(super) struct Schema {
    /// The identifier as `FILE_SCHEMA` writes it.
    pub(super) declared: String,
    version: SchemaVersion,
    /// Why what is read may not be what was meant, where the identifier is of a draft.
    pub(super) warning: Option<String>,
}

impl Schema {
    /// Returns the first known of the declared identifiers; `None` if none is known.
    pub(super) fn of(declared: &[String]) -> Option<Self> {
        let (name, version) = declared
            .iter()
            .find_map(|name| Some((name, SchemaVersion::from_file_schema(name)?)))?;
        let upper = name.trim().to_ascii_uppercase();
        let family = upper.split('_').next().unwrap_or(&upper);
        let warning = if upper.contains("_RC") {
            Some(format!(
                "the schema {upper} is a candidate, not a release: it was read as {family}, whose classes and attributes \
                 may differ; export the model again in a released schema to be sure"
            ))
        } else if matches!(version, SchemaVersion::Ifc4x1 | SchemaVersion::Ifc4x2) {
            Some(format!(
                "the schema {upper} was withdrawn by its publisher; it was read as it was published"
            ))
        } else {
            None
        };
        Some(Self {
            declared: name.trim().to_owned(),
            version,
            warning,
        })
    }
}

/// A relation that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    Contains,
    Aggregates,
    Nests,
    Voids,
    Projects,
    Fills,
    Material,
    Type,
    Properties,
    Classification,
}

/// The amount that a quantity measures, with its unit in the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    Length,
    Area,
    Volume,
    Weight,
    Time,
    /// Counts and plain numbers: no unit.
    Count,
}

/// The role of the records of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A take-off element.
    Element,
    /// A feature (opening, projection, …) or a virtual element: no take-off element.
    Opening,
    Storey,
    /// Any other part of the spatial structure.
    Spatial,
    Project,
    Type,
    PropertySet,
    QuantitySet,
    SingleValue,
    Quantity(Measure),
    ComplexQuantity,
    Material,
    Layer,
    LayerSet,
    Profile,
    /// Profile sets and constituent sets: members third.
    MemberSet,
    Constituent,
    MaterialList,
    /// Usages of layer and profile sets: the set first.
    MaterialUsage,
    SiUnit,
    ConversionUnit,
    OtherUnit,
    MeasureWithUnit,
    UnitAssignment,
    ClassificationReference,
    /// A classification system.
    Classification,
    /// Others that records refer to: ports, groups, definitions that hold neither single values nor quantities.
    Other,
    Relation(Relation),
    /// Shapes, their parts and their places. Only the geometry reads them.
    Shape,
    /// Presentation, ownership: passed over.
    Unneeded,
}

/// Supertypes, most special first, and what their subtypes are to us. The first that fits is taken.
const ROLES: &[(&str, Role)] = &[
    ("IfcFeatureElement", Role::Opening),
    ("IfcVirtualElement", Role::Opening),
    ("IfcElement", Role::Element),
    ("IfcBuildingStorey", Role::Storey),
    ("IfcSpatialStructureElement", Role::Spatial),
    ("IfcSpatialElement", Role::Spatial),
    ("IfcProject", Role::Project),
    ("IfcTypeObject", Role::Type),
    ("IfcObjectDefinition", Role::Other),
    ("IfcPropertySet", Role::PropertySet),
    ("IfcElementQuantity", Role::QuantitySet),
    ("IfcPropertyDefinition", Role::Other),
    ("IfcPropertySingleValue", Role::SingleValue),
    ("IfcProperty", Role::Other),
    ("IfcQuantityLength", Role::Quantity(Measure::Length)),
    ("IfcQuantityArea", Role::Quantity(Measure::Area)),
    ("IfcQuantityVolume", Role::Quantity(Measure::Volume)),
    ("IfcQuantityWeight", Role::Quantity(Measure::Weight)),
    ("IfcQuantityTime", Role::Quantity(Measure::Time)),
    ("IfcPhysicalSimpleQuantity", Role::Quantity(Measure::Count)),
    ("IfcPhysicalComplexQuantity", Role::ComplexQuantity),
    ("IfcMaterial", Role::Material),
    ("IfcMaterialLayer", Role::Layer),
    ("IfcMaterialLayerSet", Role::LayerSet),
    ("IfcMaterialProfile", Role::Profile),
    ("IfcMaterialProfileSet", Role::MemberSet),
    ("IfcMaterialConstituent", Role::Constituent),
    ("IfcMaterialConstituentSet", Role::MemberSet),
    ("IfcMaterialList", Role::MaterialList),
    ("IfcMaterialLayerSetUsage", Role::MaterialUsage),
    ("IfcMaterialProfileSetUsage", Role::MaterialUsage),
    ("IfcSIUnit", Role::SiUnit),
    ("IfcConversionBasedUnit", Role::ConversionUnit),
    ("IfcNamedUnit", Role::OtherUnit),
    ("IfcDerivedUnit", Role::OtherUnit),
    ("IfcMonetaryUnit", Role::OtherUnit),
    ("IfcMeasureWithUnit", Role::MeasureWithUnit),
    ("IfcUnitAssignment", Role::UnitAssignment),
    ("IfcClassificationReference", Role::ClassificationReference),
    ("IfcClassification", Role::Classification),
    ("IfcClassificationNotation", Role::Other),
    (
        "IfcRelContainedInSpatialStructure",
        Role::Relation(Relation::Contains),
    ),
    ("IfcRelAggregates", Role::Relation(Relation::Aggregates)),
    ("IfcRelNests", Role::Relation(Relation::Nests)),
    ("IfcRelVoidsElement", Role::Relation(Relation::Voids)),
    ("IfcRelProjectsElement", Role::Relation(Relation::Projects)),
    ("IfcRelFillsElement", Role::Relation(Relation::Fills)),
    (
        "IfcRelAssociatesMaterial",
        Role::Relation(Relation::Material),
    ),
    ("IfcRelDefinesByType", Role::Relation(Relation::Type)),
    (
        "IfcRelDefinesByProperties",
        Role::Relation(Relation::Properties),
    ),
    (
        "IfcRelAssociatesClassification",
        Role::Relation(Relation::Classification),
    ),
    ("IfcStyledItem", Role::Unneeded),
    ("IfcRepresentationItem", Role::Shape),
    ("IfcObjectPlacement", Role::Shape),
    ("IfcProfileDef", Role::Shape),
    ("IfcRepresentation", Role::Shape),
    ("IfcProductRepresentation", Role::Shape),
    ("IfcRepresentationContext", Role::Shape),
    ("IfcRepresentationMap", Role::Shape),
];

/// Where an element without a `PredefinedType` would have it.
pub(super) const NO_ATTRIBUTE: u8 = u8::MAX;

/// A class of the file.
pub(super) struct IfcClass {
    /// The name as the schema writes it: `IfcWall`.
    pub(super) name: String,
    pub(super) role: Role,
    /// Position of `PredefinedType`, the only one that is read and moves from class to class.
    pub(super) predefined_type: u8,
    /// How many attributes it has, in each release.
    attributes: Vec<usize>,
    /// Whether the declared schema has it.
    pub(super) declared: bool,
    /// Whether any release has it.
    pub(super) known: bool,
    /// How many records it has.
    pub(super) records: usize,
}

impl IfcClass {
    /// Returns true if a record has as many attributes as its class, and a point as many coordinates as there are dimensions.
    pub(super) fn fits(&self, record: &[u8]) -> bool {
        let first = || step::attribute(record, 0);
        let have =
            |least, most| move |list: &[u8]| (least..=most).contains(&step::items(list).count());
        self.attributes.contains(&step::count(record))
            && match (self.role, self.name.as_str()) {
                // A comma in a number is not the end of a quantity of IFC2X3 in later releases, which add a formula: a text.
                (Role::Quantity(_), _) => step::is_text(step::attribute(record, 4)),
                (Role::Shape, "IfcCartesianPoint") => have(1, 3)(first()),
                (Role::Shape, "IfcDirection") => have(2, 3)(first()),
                (Role::Shape, "IfcCartesianPointList2D") => step::items(first()).all(have(2, 2)),
                (Role::Shape, "IfcCartesianPointList3D") => step::items(first()).all(have(3, 3)),
                _ => true,
            }
    }
}

impl Role {
    /// Returns true if figures depend on the records of the role.
    pub(super) fn has_figures(self) -> bool {
        !matches!(
            self,
            Self::Spatial
                | Self::OtherUnit
                | Self::Material
                | Self::ClassificationReference
                | Self::Classification
                | Self::Other
        )
    }
}

/// The classes of a file, each resolved once.
pub(super) struct Classes<'a> {
    version: SchemaVersion,
    all: Vec<IfcClass>,
    by_keyword: HashMap<&'a str, u16>,
    /// The keyword before, because records of one class follow one another.
    last: Option<(&'a str, u16)>,
}

impl<'a> Classes<'a> {
    pub(super) fn new(schema: &Schema) -> Self {
        // The first entry represents all classes beyond those that can be numbered: no schema has as many.
        let others = IfcClass {
            name: "others".to_owned(),
            role: Role::Unneeded,
            predefined_type: NO_ATTRIBUTE,
            attributes: Vec::new(),
            declared: false,
            known: false,
            records: 0,
        };
        Self {
            version: schema.version,
            all: vec![others],
            by_keyword: HashMap::new(),
            last: None,
        }
    }

    pub(super) fn get(&self, number: u16) -> &IfcClass {
        &self.all[usize::from(number)]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &IfcClass> {
        self.all.iter()
    }

    /// Counts one record of the class that `keyword` names, in any case, and tells its number and role.
    pub(super) fn count(&mut self, keyword: &'a str) -> (u16, Role) {
        let number = match self.last {
            Some((last, number)) if last == keyword => number,
            _ => self.number(keyword),
        };
        self.last = Some((keyword, number));
        let class = &mut self.all[usize::from(number)];
        class.records += 1;
        (number, class.role)
    }

    fn number(&mut self, keyword: &'a str) -> u16 {
        if let Some(&number) = self.by_keyword.get(keyword) {
            return number;
        }
        let Ok(number) = u16::try_from(self.all.len()) else {
            return 0;
        };
        self.all.push(resolve(self.version, keyword));
        self.by_keyword.insert(keyword, number);
        number
    }
}

fn resolve(version: SchemaVersion, keyword: &str) -> IfcClass {
    let declared = version.entity_info(keyword).is_some();
    let home = if declared {
        Some(version)
    } else {
        RELEASES
            .into_iter()
            .find(|release| release.entity_info(keyword).is_some())
    };
    let role = home.and_then(|home| {
        ROLES
            .iter()
            .find(|(parent, _)| home.is_subtype_of(keyword, parent))
            .map(|&(_, role)| role)
    });
    let predefined_type = home
        .and_then(|home| home.attribute(keyword, "PredefinedType"))
        .and_then(|slot| u8::try_from(slot.index).ok())
        .unwrap_or(NO_ATTRIBUTE);
    let releases = RELEASES.into_iter();
    let attributes = releases.filter_map(|release| release.attributes(keyword));
    let attributes = attributes.map(|all| all.len()).collect();
    let name = if home.is_some() {
        IfcType::from_str(keyword).name().to_owned()
    } else {
        keyword.to_owned()
    };
    IfcClass {
        name,
        role: role.unwrap_or(Role::Unneeded),
        predefined_type,
        attributes,
        declared,
        known: home.is_some(),
        records: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(schema: &str, keyword: &str) -> IfcClass {
        let schema = Schema::of(&[schema.to_owned()]).unwrap();
        resolve(schema.version, keyword)
    }

    #[test]
    fn identifiers_of_releases_addenda_and_candidates() {
        let of = |name: &str| Schema::of(&[name.to_owned()]).map(|schema| schema.warning.is_some());
        assert_eq!(of("IFC2X3"), Some(false));
        assert_eq!(of("ifc4x3_add2"), Some(false));
        assert_eq!(of("IFC4_ADD2_TC1"), Some(false));
        assert_eq!(of("IFC4X3_RC3"), Some(true));
        assert_eq!(of("IFC4X1"), Some(true));
        assert_eq!(of("IFC5"), None);
        assert_eq!(of("AP214"), None);
    }

    #[test]
    fn roles_follow_the_schema_that_is_declared() {
        assert_eq!(class("IFC2X3", "IfcWallStandardCase").role, Role::Element);
        assert_eq!(class("IFC4", "IFCOPENINGSTANDARDCASE").role, Role::Opening);
        assert_eq!(class("IFC4", "IFCVIRTUALELEMENT").role, Role::Opening);
        assert_eq!(class("IFC4X3", "IFCEARTHWORKSCUT").role, Role::Opening);
        assert_eq!(class("IFC4X3", "IFCRAIL").role, Role::Element);
        assert_eq!(class("IFC4X3", "IFCBRIDGEPART").role, Role::Spatial);
        assert_eq!(class("IFC2X3", "IFCDOORSTYLE").role, Role::Type);
        assert_eq!(
            class("IFC2X3", "IFCRELOVERRIDESPROPERTIES").role,
            Role::Relation(Relation::Properties)
        );
        assert_eq!(class("IFC4", "IFCCARTESIANPOINT").role, Role::Shape);
        assert_eq!(class("IFC4", "IFCSTYLEDITEM").role, Role::Unneeded);
        assert_eq!(
            class("IFC4", "IFCWALLSTANDARDCASE").name,
            "IfcWallStandardCase"
        );
        let rail = class("IFC4", "IFCRAIL");
        assert!(rail.known && !rail.declared && rail.role == Role::Element);
        assert!(!class("IFC4", "IFCNOSUCH").known);
    }

    #[test]
    fn predefined_type_moves_from_class_to_class() {
        assert_eq!(class("IFC4", "IFCWALL").predefined_type, 8);
        assert_eq!(class("IFC4", "IFCWINDOW").predefined_type, 10);
        assert_eq!(class("IFC2X3", "IFCWALL").predefined_type, NO_ATTRIBUTE);
    }

    /// Positions that the readers take as given, in every release that has the class.
    #[test]
    fn positions_that_do_not_move() {
        let given = [
            ("IfcElement", "GlobalId", 0),
            ("IfcElement", "Name", 2),
            ("IfcElement", "ObjectType", 4),
            ("IfcElement", "Tag", 7),
            ("IfcTypeObject", "HasPropertySets", 5),
            ("IfcBuildingStorey", "Elevation", 9),
            ("IfcSpatialStructureElement", "Name", 2),
            ("IfcProject", "UnitsInContext", 8),
            ("IfcUnitAssignment", "Units", 0),
            ("IfcSIUnit", "UnitType", 1),
            ("IfcSIUnit", "Prefix", 2),
            ("IfcSIUnit", "Name", 3),
            ("IfcConversionBasedUnit", "ConversionFactor", 3),
            ("IfcDerivedUnit", "UnitType", 1),
            ("IfcMeasureWithUnit", "ValueComponent", 0),
            ("IfcMeasureWithUnit", "UnitComponent", 1),
            ("IfcPropertySet", "Name", 2),
            ("IfcPropertySet", "HasProperties", 4),
            ("IfcElementQuantity", "Quantities", 5),
            ("IfcPropertySingleValue", "NominalValue", 2),
            ("IfcPropertySingleValue", "Unit", 3),
            ("IfcPhysicalSimpleQuantity", "Unit", 2),
            ("IfcQuantityVolume", "VolumeValue", 3),
            ("IfcQuantityCount", "CountValue", 3),
            ("IfcPhysicalComplexQuantity", "HasQuantities", 2),
            ("IfcMaterial", "Name", 0),
            ("IfcMaterialLayer", "Material", 0),
            ("IfcMaterialLayer", "LayerThickness", 1),
            ("IfcMaterialLayerSet", "MaterialLayers", 0),
            ("IfcMaterialLayerSetUsage", "ForLayerSet", 0),
            ("IfcMaterialList", "Materials", 0),
            ("IfcMaterialProfile", "Material", 2),
            ("IfcMaterialProfileSet", "MaterialProfiles", 2),
            ("IfcMaterialProfileSetUsage", "ForProfileSet", 0),
            ("IfcMaterialConstituent", "Name", 0),
            ("IfcMaterialConstituent", "Material", 2),
            ("IfcMaterialConstituent", "Fraction", 3),
            ("IfcMaterialConstituent", "Category", 4),
            ("IfcClassification", "Name", 3),
            ("IfcClassificationReference", "ReferencedSource", 3),
            ("IfcMaterialConstituentSet", "MaterialConstituents", 2),
            ("IfcRelContainedInSpatialStructure", "RelatedElements", 4),
            ("IfcRelContainedInSpatialStructure", "RelatingStructure", 5),
            ("IfcRelAggregates", "RelatingObject", 4),
            ("IfcRelNests", "RelatedObjects", 5),
            ("IfcRelVoidsElement", "RelatingBuildingElement", 4),
            ("IfcRelProjectsElement", "RelatingElement", 4),
            ("IfcRelFillsElement", "RelatedBuildingElement", 5),
            ("IfcRelAssociatesMaterial", "RelatingMaterial", 5),
            (
                "IfcRelAssociatesClassification",
                "RelatingClassification",
                5,
            ),
            ("IfcRelDefinesByType", "RelatingType", 5),
            ("IfcRelDefinesByProperties", "RelatingPropertyDefinition", 5),
        ];
        for (class, attribute, position) in given {
            let found: Vec<_> = RELEASES
                .iter()
                .filter_map(|release| release.attribute(class, attribute))
                .collect();
            assert!(!found.is_empty(), "{class}.{attribute}");
            assert!(
                found.iter().all(|slot| slot.index == position),
                "{class}.{attribute}"
            );
        }
        assert_eq!(
            SchemaVersion::Ifc2x3
                .attribute("IfcClassificationReference", "ItemReference")
                .unwrap()
                .index,
            1
        );
        assert_eq!(
            SchemaVersion::Ifc4x3
                .attribute("IfcClassificationReference", "Identification")
                .unwrap()
                .index,
            1
        );
    }
}
