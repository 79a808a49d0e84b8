//! The rules agent as its callers see it: words, layers, confidence, errors.

use serde_json::{Value, json};

use super::*;

mod elements;
mod materials;

fn shipped() -> Rules {
    Rules::parse(
        "rules/elements.toml",
        include_str!("../../../../rules/elements.toml"),
    )
    .unwrap()
}

fn brief(answer: &Value) -> (String, String, f64, String) {
    let text = |v: &Value| v.as_str().unwrap_or("none").to_owned();
    (
        text(&answer["element_type"]),
        text(&answer["material_primary"]["category"]),
        answer["confidence"].as_f64().unwrap(),
        text(&answer["rule"]),
    )
}

#[test]
fn an_answer_is_whole() {
    let answer = shipped().answer(&json!({
        "ifc_type": "IfcWallStandardCase", "predefined_type": null, "type_name": "AW 365", "name": "Wand",
        "load_bearing": true, "external": true,
        "materials": ["Verputz außen", "EPS Dämmung", "Stahlbeton C25/30"],
        "layers": [
            {"material": "Verputz außen", "thickness_m": 0.02}, {"material": "EPS Dämmung", "thickness_m": 0.14},
            {"material": "Stahlbeton C25/30", "thickness_m": 0.2}, {"material": null, "thickness_m": 0.04}
        ]
    }));
    assert_eq!(
        answer,
        json!({
            "element_type": "load_bearing_wall",
            "function": "structural",
            "location": "external",
            "material_primary": {"name": "Stahlbeton C25/30", "category": "concrete", "subcategory": "C25/30", "percentage": 50.0},
            "material_secondary": [
                {"name": "Verputz außen", "category": "mortar", "subcategory": null, "percentage": 5.0},
                {"name": "EPS Dämmung", "category": "insulation", "subcategory": null, "percentage": 35.0}
            ],
            "confidence": 0.95,
            "data_quality": {"material_from": "layers", "missing": [], "assumed": ["40 mm of the layers have no material"]},
            "reasoning": "rule wall-load-bearing: IfcWallStandardCase, LoadBearing is true; concrete by its layer `Stahlbeton C25/30`, 200 of 400 mm",
            "rule": "wall-load-bearing"
        })
    );
}

#[test]
fn where_nothing_is_known_the_answer_is_other() {
    let answer = shipped().answer(&json!({"ifc_type": "IfcBuildingElementProxy"}));
    assert_eq!(
        answer,
        json!({
            "element_type": "other", "function": "other", "location": null,
            "material_primary": null, "material_secondary": [],
            "confidence": 0.3,
            "data_quality": {"material_from": null, "missing": ["material"], "assumed": []},
            "reasoning": "no rule matched: IfcBuildingElementProxy",
            "rule": "no-rule"
        })
    );
    assert_eq!(brief(&shipped().answer(&json!(7))).0, "other");
    let unnamed = shipped().answer(&json!({
        "ifc_type": "IfcBeam", "materials": [""], "layers": [{"material": "", "thickness_m": 0.2}]
    }));
    assert_eq!(
        (&unnamed["material_primary"], &unnamed["material_secondary"]),
        (&Value::Null, &json!([]))
    );
}

#[test]
fn a_contradicted_answer_stays_and_is_reviewed() {
    let rules = shipped();
    let doubted = |question: Value| {
        let answer = rules.answer(&question);
        let (element_type, _, confidence, _) = brief(&answer);
        let assumed = answer["data_quality"]["assumed"].as_array().unwrap();
        let reason = assumed
            .iter()
            .find_map(|it| it.as_str()?.strip_prefix("contradictory evidence: "));
        (
            element_type,
            confidence,
            reason.unwrap_or_default().to_owned(),
        )
    };
    let is = |a: &str, c: f64, r: &str| (a.to_owned(), c, r.to_owned());
    assert_eq!(
        doubted(
            json!({"ifc_type": "IfcSlab", "name": "Bodenplatte", "type_name": "Geschossdecke"})
        ),
        is(
            "foundation_slab",
            0.45,
            "called an upper floor by the word `geschossdecke*`"
        )
    );
    assert_eq!(
        doubted(
            json!({"ifc_type": "IfcColumn", "type_name": "Unterzug 30x60", "materials": ["Beton"]})
        ),
        is("column", 0.45, "called a beam by the word `unterzug`")
    );
    assert_eq!(
        doubted(json!({
            "ifc_type": "IfcWall", "external": true, "materials": ["Beton"],
            "classifications": [{"system": "DIN 276", "code": "342"}]
        })),
        is("external_wall", 0.45, "called inside by the code 342")
    );
    assert_eq!(
        doubted(
            json!({"ifc_type": "IfcWall", "external": false, "load_bearing": false, "type_name": "Bearing Wall"})
        ),
        is(
            "partition_wall",
            0.45,
            "called load-bearing by the word `bearing wall*`"
        )
    );
    assert_eq!(
        doubted(
            json!({"ifc_type": "IfcFooting", "type_name": "Wall Foundation", "materials": ["Concrete"]})
        ),
        is("footing", 0.95, "")
    );
}

#[test]
fn confidence_follows_the_evidence() {
    let rules = shipped();
    let of = |question: Value| brief(&rules.answer(&question));
    let is = |a: &str, b: &str, c: f64, d: &str| (a.to_owned(), b.to_owned(), c, d.to_owned());
    assert_eq!(
        of(json!({"ifc_type": "IfcBeam", "materials": ["Steel"]})),
        is("beam", "steel", 0.95, "beam")
    );
    assert_eq!(
        of(
            json!({"ifc_type": "IfcFooting", "material_property": {"property": "Finishes.Material", "value": "Concrete"}})
        ),
        is("footing", "concrete", 0.85, "footing")
    );
    assert_eq!(
        of(json!({"ifc_type": "IfcBeam"})),
        is("beam", "none", 0.8, "beam")
    );
    assert_eq!(
        of(json!({"ifc_type": "IfcBeam", "type_name": "IPE300"})),
        is("beam", "steel", 0.7, "beam")
    );
    assert_eq!(
        of(json!({"ifc_type": "IfcBeam", "name": "Holzbalken"})),
        is("beam", "timber", 0.5, "beam")
    );
    assert_eq!(
        of(
            json!({"ifc_type": "IfcBeam", "name": "MOER", "type_name": "MOER_M16", "materials": ["STEEL/S235JR"]})
        ),
        is("fastener", "steel", 0.7, "nut-bolt-washer")
    );
    assert_eq!(
        of(
            json!({"ifc_type": "IfcBuildingElementProxy", "name": "Bohrpfahl", "materials": ["Beton"]})
        ),
        is("pile", "concrete", 0.5, "proxy-pile")
    );
}

#[test]
fn evidence_at_odds_is_other() {
    let rules = shipped();
    let of = |question: Value| brief(&rules.answer(&question)).0;
    assert_eq!(
        of(
            json!({"ifc_type": "IfcWall", "external": true, "load_bearing": false, "type_name": "Basic Wall:Inside"})
        ),
        "other"
    );
    assert_eq!(
        of(
            json!({"ifc_type": "IfcDoor", "external": false, "type_name": "Single-Flush:Outside door"})
        ),
        "other"
    );
    assert_eq!(
        of(
            json!({"ifc_type": "IfcSlab", "predefined_type": "BASESLAB", "type_name": "Innenwand 20cm"})
        ),
        "other"
    );
    assert_eq!(
        of(json!({"ifc_type": "IfcWall", "external": true, "type_name": "INT: GK 100"})),
        "other"
    );
    assert_eq!(
        of(
            json!({"ifc_type": "IfcWall", "external": true, "load_bearing": false, "type_name": "Party Wall - CMU"})
        ),
        "partition_wall"
    );
    assert_eq!(
        of(json!({"ifc_type": "IfcWall", "name": "Wand nicht tragend"})),
        "other"
    );
    assert_eq!(
        of(
            json!({"ifc_type": "IfcWall", "external": false, "load_bearing": true, "type_name": "СУ10_Перегородка_ГСБ_200"})
        ),
        "other"
    );
    assert_eq!(
        of(
            json!({"ifc_type": "IfcWall", "external": false, "load_bearing": false, "type_name": "100 mm Exerior Parapet wall"})
        ),
        "other"
    );
}

#[test]
fn a_table_may_have_words_of_its_own() {
    let own = r#"
        [vocabulary]
        unknown = "thing"
        functions = ["use"]
        locations = ["here", "there"]
        location_by = { external = "there", not_external = "here", below_ground = "here" }
        element_type = [{ name = "thing", function = "use" }, { name = "desk", function = "use", location = "here" }]
        category = [{ name = "thing", layer = "solid" }, { name = "wood", layer = "structural" }]
        [[material]]
        category = "wood"
        words = ["oak"]
        [[rule]]
        name = "desk"
        ifc_type = ["IfcFurniture"]
        answer = { element_type = "desk" }
        confidence = 0.9
    "#;
    let rules = Rules::parse("own.toml", own).unwrap();
    let answer = rules.answer(&json!({"ifc_type": "IfcFurniture", "materials": ["Oak"]}));
    assert_eq!(
        (
            &answer["element_type"],
            &answer["function"],
            &answer["location"],
            &answer["material_primary"]["category"]
        ),
        (
            &json!("desk"),
            &json!("use"),
            &json!("here"),
            &json!("wood")
        )
    );
    let other = rules.answer(&json!({"ifc_type": "IfcWall", "external": true}));
    assert_eq!(
        (&other["element_type"], &other["location"]),
        (&json!("thing"), &json!("there"))
    );
    let wrong = own.replace("not_external = \"here\"", "not_external = \"hre\"");
    assert_eq!(
        Rules::parse("own.toml", &wrong).unwrap_err().to_string(),
        "own.toml:2: vocabulary: unknown location `hre`, expected one of `here`, `there`"
    );
}

#[test]
fn a_wrong_table_names_file_line_and_rule() {
    let error = |text: &str| Rules::parse("rules/x.toml", text).unwrap_err().to_string();
    let rule = |extra: &str| {
        format!(
            "# table\n[[rule]]\nname = \"a\"\n{extra}\nanswer = {{ element_type = \"beam\" }}\nconfidence = 0.9\n"
        )
    };
    assert!(Rules::parse("x", &rule("")).is_ok());
    let unknown = error(&rule("ifc_typ = [\"IfcBeam\"]"));
    assert!(
        unknown.starts_with("rules/x.toml:4:1: rule a: unknown field `ifc_typ`"),
        "{unknown}"
    );
    let variant = error(&rule("").replace("beam", "baem"));
    assert!(
        variant.starts_with("rules/x.toml:5:")
            && variant.contains("rule a: unknown element type `baem`, expected one of `column`, "),
        "{variant}"
    );
    assert_eq!(
        error(&format!("{}{}", rule(""), rule(""))),
        "rules/x.toml:9: rule a: duplicate name: it is the name of the rule in line 3"
    );
    assert_eq!(
        error(&format!(
            "words = {{ inside = [\"innen\"] }}\n{}",
            rule("words = [\"@insde\"]")
        )),
        "rules/x.toml:4: rule a: there is no list of words `insde`: write it in the table [words]"
    );
    assert_eq!(
        error(&rule("words = [\"pe*\"]")),
        "rules/x.toml:3: rule a: the word `pe*` is too short for `*`: it would be found everywhere; write at least three letters, or the whole word without `*`"
    );
    assert_eq!(
        error(&rule("ifc_type = [\"Wall\"]")),
        "rules/x.toml:3: rule a: `Wall` is not an IFC type: expected a name that begins with `Ifc`, as in `IfcWall*`"
    );
    assert_eq!(
        error("[[material]]\ncategory = \"steel\"\nwords = [\"-\"]\n"),
        "rules/x.toml:2: material steel: the word `-` has no letters or digits"
    );
    assert_eq!(
        error(&rule("").replace("0.9", "1.9")),
        "rules/x.toml:3: rule a: confidence is 1.9, not between 0 and 1"
    );
}
