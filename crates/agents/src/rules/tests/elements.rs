//! Classification of elements by names of real models, codes, materials and thickness.

use super::*;

#[test]
fn names_of_elements_and_types_tell_what_they_are() {
    let rules = shipped();
    for (ifc_type, type_name, element_type) in [
        ("IfcWall", "EXT: Brick 240", "external_wall"),
        ("IfcWall", "Basic Wall:Ext - Concrete", "external_wall"),
        ("IfcWall", "Aussenwaende Beton", "external_wall"),
        ("IfcWall", "Aussenwand Beton 24", "external_wall"),
        ("IfcWall", "WAA_Beton_240", "external_wall"),
        ("IfcWall", "Holzfassade", "external_wall"),
        ("IfcWall", "標準外壁120", "external_wall"),
        ("IfcWall", "Leichtbau 100", "partition_wall"),
        (
            "IfcWall",
            "Interior - Gyp Bd on Metal Stud",
            "partition_wall",
        ),
        ("IfcWallStandardCase", "kozijn", "window"),
        ("IfcDoor", "Eingangstuer", "door_external"),
        ("IfcDoor", "M_Single-Flush:0915 x 2134mm", "door_internal"),
        ("IfcDoor", "M_Single-Flush:Outside door", "door_external"),
        ("IfcBuildingElementProxy", "Stuetze 30x30", "column"),
        (
            "IfcBuildingElementProxy",
            "M_Sink Kitchen-Double",
            "distribution",
        ),
        ("IfcBuildingElementProxy", "Refrigerator", "distribution"),
        ("IfcBuildingElementProxy", "Wall Oven", "distribution"),
        ("IfcBuildingElementProxy", "M_RPC Male:Alex", "other"),
        ("IfcBuildingElementProxy", "角柱 C1", "column"),
        (
            "IfcBuildingElementProxy",
            "Ребро плиты:Slab Edge 400",
            "other",
        ),
        ("IfcBuildingElementProxy", "M_Outdoor AHU", "distribution"),
        (
            "IfcBuildingElementProxy",
            "Profil en relief:Wall Sweep - Skirting",
            "wall_finish",
        ),
        ("IfcCovering", "Duct Insulation", "distribution"),
        ("IfcBeam", "HKZ 38/17-100", "fastener"),
        ("IfcDoor", "Terrassentür 2-flg", "door_external"),
        ("IfcWall", "Стена наружная 400", "external_wall"),
        ("IfcWall", "Перегородка 100мм", "partition_wall"),
        ("IfcSlab", "Фундаментная плита 600", "foundation_slab"),
        ("IfcFurniture", "00_GM_coordination_cube", "other"),
        ("IfcFurnishingElement", "M_RPC Male:Alex", "other"),
        ("IfcSlab", "Sol:Gardening Area", "other"),
        ("IfcWall", "Retaining Wall", "other"),
        ("IfcBuildingElementProxy", "Stair Nosing", "other"),
        ("IfcBuildingElementProxy", "Wanddurchbruch", "other"),
        ("IfcBuildingElementProxy", "Pile Cap", "footing"),
        (
            "IfcSlab",
            "Floor:23_FL_generiek_tegelwerk_15mm",
            "floor_finish",
        ),
        (
            "IfcBuildingElementProxy",
            "M_Toilet Partition:0813 x 1525mm",
            "partition_wall",
        ),
        ("IfcBeam", "BARDAGE352001040", "other"),
        ("IfcBeam", "WELFSEL15T_REI60", "slab_structural"),
        ("IfcColumn", "Roundbar1", "other"),
        ("IfcWall", "Mur de base:Skirting 25 mm", "wall_finish"),
        (
            "IfcWall",
            "Basic Wall:External Wall Below Ground",
            "foundation_wall",
        ),
        (
            "IfcRoof",
            "Basic Roof:CL_27_zinken dak_200mm",
            "roof_covering",
        ),
        ("IfcSlab", "Stair:Massiv - Stufen Naturstein", "stair"),
        (
            "IfcCovering",
            "Isolation des gaines:Default",
            "distribution",
        ),
        (
            "IfcBuildingElementProxy",
            "M_Trim-Window-Interior-Flat:Picture Frame",
            "other",
        ),
        ("IfcBuildingElementProxy", "Bidet 22", "distribution"),
    ] {
        let question = json!({"ifc_type": ifc_type, "type_name": type_name});
        let (found, _, confidence, rule) = brief(&rules.answer(&question));
        assert_eq!(found, element_type, "{type_name}: {rule}");
        assert!(confidence >= 0.5 || found == "other", "{type_name}: {rule}");
    }
    let coded = json!({"ifc_type": "IfcWall", "name": "merk K", "classifications": ["31.20"]});
    assert_eq!(brief(&rules.answer(&coded)).0, "window");
}

#[test]
fn codes_tell_what_elements_are_by_their_system() {
    let rules = shipped();
    let of = |ifc_type: &str, system: &str, code: &str| {
        brief(&rules.answer(&json!({
            "ifc_type": ifc_type, "classifications": [{"system": system, "code": code, "title": null}]
        })))
        .0
    };
    for (ifc_type, system, code, element_type) in [
        ("IfcWall", "NL/SfB (4 cijfers)", "31.20", "window"),
        ("IfcWall", "NL/SfB (4 cijfers)", "31.30", "door_external"),
        ("IfcMember", "NL/SfB", "31.30", "member"),
        ("IfcCurtainWall", "Uniformat", "31.30", "door_external"),
        ("IfcCurtainWall", "Uniformat", "32.30", "door_internal"),
        ("IfcWall", "Uniformat", "42.10", "wall_finish"),
        (
            "IfcBuildingElementProxy",
            "Uniformat",
            "47.11",
            "roof_covering",
        ),
        ("IfcRoof", "NL/SfB", "27.11", "roof_covering"),
        ("IfcRoof", "NL/SfB", "27.22", "roof_structure"),
        ("IfcWall", "DIN 276-1:2008", "331", "load_bearing_wall"),
        ("IfcWall", "DIN 276", "342", "partition_wall"),
        ("IfcWall", "Uniformat", "B2010100", "external_wall"),
        ("IfcSlab", "Uniformat", "A1030120", "foundation_slab"),
        ("IfcDoor", "Uniformat", "C1020300", "door_internal"),
        (
            "IfcBuildingElementProxy",
            "Uniformat",
            "C3010140",
            "wall_finish",
        ),
        ("IfcBuildingElementProxy", "DIN 276", "444", "distribution"),
        ("IfcWall", "eBKP-H", "C2.1", "external_wall"),
        ("IfcWall", "eBKP-H", "C2.2", "load_bearing_wall"),
        ("IfcWall", "house standard", "331", "other"),
    ] {
        assert_eq!(
            of(ifc_type, system, code),
            element_type,
            "{ifc_type} {system} {code}"
        );
    }
    let titled = json!({
        "ifc_type": "IfcDoor", "type_name": "Double-Flush",
        "classifications": [{"system": "Uniformat", "code": "C1020220", "title": "Interior Door Frames - Wood"}]
    });
    let answer = rules.answer(&titled);
    assert_eq!(brief(&answer).1, "timber");
    assert_eq!(answer["data_quality"]["material_from"], "class name");
}

#[test]
fn what_is_exported_as_a_bar_is_told_by_material_and_name() {
    let rules = shipped();
    let of = |ifc_type: &str, type_name: &str, name: &str, material: &str| {
        let question = json!({"ifc_type": ifc_type, "type_name": type_name, "name": name, "materials": [material]});
        brief(&rules.answer(&question)).0
    };
    for (ifc_type, type_name, name, material, element_type) in [
        ("IfcBeam", "PL10*150", "Sideplate1", "STEEL/S235JR", "plate"),
        ("IfcBeam", "PL200*3200", "WAND", "CONCRETE/ISOLEX", "other"),
        ("IfcBeam", "PL300*450", "BALK", "CONCRETE/BETON", "beam"),
        ("IfcBeam", "PL18*800", "BEKISTING", "TIMBER/HOUT", "other"),
        ("IfcBeam", "PL8*240", "NEOPRENE", "STEEL/NEOPRENE", "other"),
        (
            "IfcBeam",
            "500*100",
            "EPS100",
            "MISCELLANEOUS/Putų polistirenas",
            "other",
        ),
        (
            "IfcWall",
            "3400*200",
            "ESP70",
            "MISCELLANEOUS/Putų polistirenas",
            "other",
        ),
        ("IfcBeam", "R360", "PAAL", "CONCRETE/BETON", "pile"),
        ("IfcBeam", "PL800*2000", "FUND", "CONCRETE/BETON", "footing"),
        (
            "IfcBeam",
            "HC265",
            "HOLLOWCORE",
            "CONCRETE/C50/60",
            "slab_structural",
        ),
        ("IfcBeam", "CHECKER PLATE 5", "PLATE", "S235", "plate"),
        ("IfcBeam", "2x4", "Sole Plate", "Softwood, Lumber", "beam"),
        ("IfcBeam", "Grating 30/3", "GRATING", "S235", "other"),
        (
            "IfcColumn",
            "Metal Clad Column:24\"",
            "",
            "Aluminum",
            "column",
        ),
        ("IfcBeam", "CHS48.3*3", "HANDRAIL", "S235", "railing"),
        (
            "IfcColumn",
            "Universal Column 254 x 254",
            "Pile - 013",
            "Steel - Structural",
            "column",
        ),
        ("IfcSlab", "PL370*225", "KONZOLE", "CONCRETE/BETON", "other"),
    ] {
        assert_eq!(
            of(ifc_type, type_name, name, material),
            element_type,
            "{name}"
        );
    }
    let unit = |name: &str| {
        let question = json!({"ifc_type": "IfcElementAssembly", "predefined_type": "REINFORCEMENT_UNIT", "name": name});
        brief(&rules.answer(&question)).0
    };
    assert_eq!(
        (unit("WAND"), unit("Wapeningskorf")),
        ("other".to_owned(), "reinforcement".to_owned())
    );
}

#[test]
fn what_is_thin_bears_nothing() {
    let rules = shipped();
    let of = |ifc_type: &str, external: bool, load_bearing: bool, material: &str, metres: f64| {
        brief(&rules.answer(&json!({
            "ifc_type": ifc_type, "predefined_type": (ifc_type == "IfcSlab").then_some("FLOOR"),
            "external": external, "load_bearing": load_bearing, "layers": [{"material": material, "thickness_m": metres}]
        })))
    };
    let is = |a: &str, b: &str, c: f64, d: &str| (a.to_owned(), b.to_owned(), c, d.to_owned());
    assert_eq!(
        of("IfcWall", true, true, "metselwerk", 0.1),
        is("external_wall", "masonry", 0.85, "wall-thin-external")
    );
    assert_eq!(
        of("IfcWall", true, true, "metselwerk", 0.115).3,
        "wall-load-bearing"
    );
    assert_eq!(
        of("IfcWall", true, true, "Stone clading", 0.02).3,
        "wall-thin"
    );
    assert_eq!(
        of("IfcWall", true, true, "Stone clading", 0.0002).3,
        "wall-load-bearing",
        "metres that the model calls millimetres"
    );
    assert_eq!(of("IfcWall", true, false, "Glas", 0.02).3, "wall-pane");
    assert_eq!(
        of("IfcWall", false, true, "Gypsum Wall Board", 0.099).3,
        "wall-drywall-said-load-bearing"
    );
    assert_eq!(
        of("IfcWall", false, false, "Concrete, Reinforced", 0.3),
        is("other", "concrete", 0.3, "wall-heavy-said-to-bear-nothing")
    );
    assert_eq!(
        of("IfcSlab", false, false, "Marble Floor", 0.05),
        is("floor_finish", "masonry", 0.85, "slab-thin")
    );
    let reasoning = &rules.answer(&json!({
        "ifc_type": "IfcSlab", "predefined_type": "FLOOR", "layers": [{"material": "Marble Floor", "thickness_m": 0.05}]
    }))["reasoning"];
    assert_eq!(
        reasoning,
        "rule slab-thin: IfcSlab, predefined type FLOOR, 50 mm thick, material is masonry; masonry by its layer `Marble Floor`, 50 of 50 mm"
    );
}
