//! Which material leads, and what its name tells.

use super::*;

#[test]
fn names_of_materials_tell_their_category() {
    let rules = shipped();
    for (name, expected) in [
        ("Beton C30/37", "concrete"),
        ("concrete_reinforced_in-situ", "concrete"),
        ("Kanaalplaat 200", "concrete"),
        ("Stahlbetonwand", "concrete"),
        ("Betonblok 140", "masonry"),
        ("Masonry - Concrete Block", "masonry"),
        ("Kalkzandsteen CS20", "masonry"),
        ("stone_sand-lime", "masonry"),
        ("Porenbeton PP2", "masonry"),
        ("Betonstahl B500B", "steel"),
        ("Bewehrung", "steel"),
        ("STEEL/S235JR", "steel"),
        ("Metal - Steel - 345 MPa", "steel"),
        ("RVS 316", "steel"),
        ("Acier inoxydable", "steel"),
        ("Brettsperrholz CLT", "timber"),
        ("Vurenhout", "timber"),
        ("Chêne massif", "timber"),
        ("Holzfaserplatte", "insulation"),
        ("Glaswolle 035", "insulation"),
        ("Wärmedämmung", "insulation"),
        ("Gipskartonplatte 12.5", "gypsum"),
        ("Plâtre", "gypsum"),
        ("Glas 3-fach", "glass"),
        ("Aluminium pulverbeschichtet", "aluminium"),
        ("Kupfer", "metal"),
        ("Roofing - EPDM Membrane", "bitumen"),
        ("Ceramic Tile", "ceramics"),
        ("Dachziegel", "ceramics"),
        ("PVC", "plastics"),
        ("Carpet Tile", "textile"),
        ("bulk-material_sand-coarse_generic", "aggregate"),
        ("Silka Kimmortel", "mortar"),
        ("Zementestrich", "mortar"),
        ("Masonry - Grout", "mortar"),
        ("Concrete, Sand/Cement Screed", "mortar"),
        ("Misc. Air Layers - Air Space", "air"),
        ("Metall, Stahl", "steel"),
        ("Metall", "metal"),
        ("Gyp. Bd. 16mm", "gypsum"),
        ("鉄筋コンクリート", "concrete"),
        ("コンクリートブロック", "masonry"),
        ("石膏ボード t12.5", "gypsum"),
        ("ADSK_Бетон_Железобетон", "concrete"),
        ("Бетон, монолитный, серый", "concrete"),
        ("Сталь, 45-345", "steel"),
        ("Кирпич, обыкновенный", "masonry"),
        ("Газобетонные блоки", "masonry"),
        ("Утеплитель минераловатный", "insulation"),
        ("hormigón armado", "concrete"),
        ("calcestruzzo C25/30", "concrete"),
        ("Madera de castaño", "timber"),
        ("sklejka 18", "timber"),
        ("förzinkad plåt", "steel"),
        ("ASTM A992", "steel"),
        ("nbl_GalvanizedSteelTwinFrame", "metal"),
        ("CONCRETE/FAKTOR", "other"),
        ("STEEL/NEOPRENE", "plastics"),
        ("MISCELLANEOUS/Putų polistirenas", "insulation"),
        ("MISCELLANEOUS/mūras", "masonry"),
        ("Akytbetonio blokeliai", "masonry"),
        ("Silikatinių blokelių", "masonry"),
        ("TIMBER/Mediena", "timber"),
        ("Alluminium Frame", "aluminium"),
        ("Masonry - Concrete Floor Block", "masonry"),
        ("Keram. Platten/Abrieb", "ceramics"),
        ("Gis-Ständer", "metal"),
        ("RCC 200mm", "concrete"),
        ("Wood Sheathing, Oriented Strand Board", "timber"),
        ("Site - Hardcore", "aggregate"),
        (
            "Insulation / Thermal Barriers - Fiberglass Batt",
            "insulation",
        ),
        ("Cement Plaster", "mortar"),
        ("Air Infiltration Barrier", "bitumen"),
        ("Roofing - Asphalt Shingle", "bitumen"),
        ("木目 - ナチュラル", "timber"),
        ("Default Wall", "none"),
        ("<Unnamed>", "none"),
        ("Door - Panel", "none"),
        ("Sash", "none"),
    ] {
        let category = rules.category(name);
        assert_eq!(category.as_deref().unwrap_or("none"), expected, "`{name}`");
    }
}

#[test]
fn a_general_material_is_doubted_if_the_name_says_another() {
    let rules = shipped();
    let answer = rules.answer(&json!({"ifc_type": "IfcColumn", "type_name": "4 Schichtig Beton", "materials": ["Metall"]}));
    assert_eq!(
        brief(&answer),
        (
            "column".to_owned(),
            "other".to_owned(),
            0.45,
            "column".to_owned()
        )
    );
    assert_eq!(answer["material_primary"]["name"], "Metall");
    assert_eq!(
        answer["data_quality"]["assumed"],
        json!([
            "contradictory evidence: the material is `Metall`, but the type name `4 Schichtig Beton` indicates concrete"
        ])
    );
    let steel = rules
        .answer(&json!({"ifc_type": "IfcColumn", "type_name": "HEA200", "materials": ["Stahl"]}));
    assert_eq!(steel["confidence"], 0.95);
    let stair = json!({"ifc_type": "IfcStair", "type_name": "Stair:Massiv - Stufen Naturstein"});
    assert_eq!(brief(&rules.answer(&stair)).1, "none");
}

#[test]
fn a_leading_part_tells_the_material() {
    let rules = shipped();
    let of = |parts: Value| {
        let answer = rules.answer(&json!({"ifc_type": "IfcFurniture", "constituents": parts}));
        let from = answer["data_quality"]["material_from"]
            .as_str()
            .map(str::to_owned);
        (
            brief(&answer).1,
            from.unwrap_or_default(),
            answer["material_secondary"].as_array().unwrap().len(),
        )
    };
    let is =
        |category: &str, from: &str, others: usize| (category.to_owned(), from.to_owned(), others);
    assert_eq!(
        of(
            json!([{"material": "Glas", "part": "Verglasung"}, {"material": "Eiche", "part": "Rahmen"}])
        ),
        is("timber", "constituents", 1)
    );
    assert_eq!(
        of(
            json!([{"material": "Glas", "part": "a", "fraction": 0.2}, {"material": "Beton", "part": "b", "fraction": 0.8}])
        ),
        is("concrete", "constituents", 1)
    );
    assert_eq!(
        of(json!([{"material": "Glas", "part": "a"}, {"material": "Stahl", "part": "b"}])),
        is("none", "none leads", 2)
    );
    assert_eq!(
        of(
            json!([{"material": "Stahlblech verzinkt", "part": "Blatt"}, {"material": "Mineralwolle", "part": "Kern"}])
        ),
        is("steel", "constituents", 1)
    );
}

#[test]
fn placeholders_of_parts_say_nothing() {
    let rules = shipped();
    let answer = rules.answer(&json!({
        "ifc_type": "IfcSlab", "predefined_type": "FLOOR", "name": "TRIMEX_OVAAL", "load_bearing": false,
        "materials": ["CONCRETE/FAKTOR"]
    }));
    assert_eq!(
        brief(&answer),
        (
            "other".to_owned(),
            "other".to_owned(),
            0.3,
            "placeholder".to_owned()
        )
    );
    let below = json!({
        "ifc_type": "IfcWall", "external": true, "load_bearing": true, "below_ground": true,
        "type_name": "СУ10_С2_СКЦ_90", "materials": ["ADSK_Сэндвич-панель_Профилированная белая"]
    });
    assert_eq!(brief(&rules.answer(&below)).0, "load_bearing_wall");
}

#[test]
fn the_thickest_structural_layer_leads_else_the_thickest_solid_one() {
    let rules = shipped();
    let lead = |layers: &[(&str, f64)]| {
        let layers: Vec<_> = layers
            .iter()
            .map(|(m, t)| json!({"material": m, "thickness_m": t}))
            .collect();
        let answer = rules.answer(&json!({"ifc_type": "IfcWall", "layers": layers}));
        let primary = &answer["material_primary"];
        (
            primary["category"].as_str().unwrap_or("none").to_owned(),
            primary["percentage"].as_f64(),
        )
    };
    let said = |category: &str, percentage: f64| (category.to_owned(), Some(percentage));
    assert_eq!(
        lead(&[("Dämmung", 0.2), ("Beton", 0.15), ("Gips", 0.05)]),
        said("concrete", 37.5)
    );
    assert_eq!(
        lead(&[
            ("Masonry - Brick", 0.1),
            ("Air", 0.05),
            ("Concrete Block", 0.05),
            ("Concrete Block", 0.1)
        ]),
        (String::from("masonry"), Some(50.0)),
        "leaves of one name count together"
    );
    assert_eq!(
        lead(&[
            ("Plasterboard", 0.016),
            ("Metal - Stud Layer", 0.092),
            ("Plasterboard", 0.016)
        ]),
        said("gypsum", 25.8)
    );
    assert_eq!(
        lead(&[("Mineralwolle", 0.1), ("Folie", 0.001)]).0,
        "insulation"
    );
    assert_eq!(lead(&[("Air", 0.1)]), (String::from("none"), None));
    assert_eq!(
        lead(&[("Werkstoff 7", 0.3), ("Beton", 0.1)]).0,
        "other",
        "what is not known and thicker leads"
    );
    assert_eq!(lead(&[("Werkstoff 7", 0.05), ("Beton", 0.1)]).0, "concrete");
    assert_eq!(
        lead(&[
            ("Solid Surface Countertop", 0.025),
            ("Rock Wool", 0.2),
            ("Air", 0.025)
        ])
        .0,
        "other",
        "insulation leads only if there is nothing else"
    );
    assert_eq!(
        lead(&[("Plaster", 0.03), ("Insulation", 0.2), ("Tiles", 0.03)]),
        (String::from("none"), None),
        "of two finishes that are equally thick none leads"
    );
}

#[test]
fn several_materials_without_thickness_lead_only_where_the_kind_of_element_tells() {
    let rules = shipped();
    let of = |ifc_type: &str, materials: &[&str]| {
        brief(
            &rules
                .answer(&json!({"ifc_type": ifc_type, "external": false, "materials": materials})),
        )
        .1
    };
    assert_eq!(of("IfcDoor", &["Aluminum", "Cherry", "Glass"]), "timber");
    assert_eq!(of("IfcWindow", &["Glas 3-fach", "PVC"]), "plastics");
    assert_eq!(of("IfcWindow", &["Glass", "Sash"]), "glass");
    assert_eq!(of("IfcFurniture", &["Steel", "Cherry"]), "none");
    assert_eq!(of("IfcFurniture", &["Oak", "Cherry"]), "timber");
    assert_eq!(of("IfcWindow", &["Glass", "Alluminium Frame"]), "aluminium");
    let named = |ifc_type: &str, type_name: &str| {
        brief(
            &rules.answer(&json!({"ifc_type": ifc_type, "external": true, "type_name": type_name})),
        )
        .1
    };
    assert_eq!(named("IfcDoor", "M_Single-Glass 1"), "none", "its pane");
    assert_eq!(named("IfcDoor", "Single Wooden Door"), "timber");
    assert_eq!(named("IfcWindow", "Festverglasung_Optionen"), "none");
    assert_eq!(named("IfcWindow", "Holzfenster"), "timber");
}

#[test]
fn a_window_is_not_made_of_the_wall_around_it() {
    let rules = shipped();
    let of = |ifc_type: &str, material: &str| {
        rules.answer(&json!({"ifc_type": ifc_type, "external": true, "materials": [material]}))
    };
    let answer = of("IfcWindow", "Beton, tragend");
    assert_eq!(
        brief(&answer),
        (
            "window".to_owned(),
            "other".to_owned(),
            0.95,
            "window".to_owned()
        )
    );
    assert_eq!(
        answer["data_quality"]["assumed"],
        json!(["implausible material: concrete is of the wall around it"])
    );
    assert_eq!(answer["material_primary"]["name"], "Beton, tragend");
    assert_eq!(brief(&of("IfcDoor", "Holz")).1, "timber");
}

#[test]
fn a_name_that_tells_several_materials_tells_none() {
    let rules = shipped();
    let of = |ifc_type: &str, type_name: &str| {
        let external = (ifc_type == "IfcDoor").then_some(true);
        let question = json!({"ifc_type": ifc_type, "type_name": type_name, "external": external});
        brief(&rules.answer(&question)).1
    };
    for (ifc_type, type_name, category) in [
        (
            "IfcRoof",
            "Steel Truss - Insulation on Metal Deck - EPDM",
            "steel",
        ),
        ("IfcWall", "Exterior - Brick on Mtl. Stud", "masonry"),
        ("IfcWall", "Exterior - Brick on CMU", "masonry"),
        ("IfcWall", "Interior - Gyp Bd on Metal Stud", "gypsum"),
        ("IfcColumn", "Concrete Masonry Unit 190", "masonry"),
        ("IfcRoof", "Basic Roof:_Warm Roof - Timber", "timber"),
        ("IfcBeam", "Holz-Beton-Verbund", "none"),
        ("IfcRailing", "Stahlbetonbrüstung", "none"),
        ("IfcDoor", "Glass Door - Oak", "timber"),
    ] {
        assert_eq!(of(ifc_type, type_name), category, "{type_name}");
    }
}
