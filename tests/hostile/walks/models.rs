//! IFC: definitions that hold themselves, relations as products, long ways up, and archives that grow large.

use super::soon;
use crate::hostile::files::hostile_file;
use milepost_formats::ifc::{IfcError, Measured, ModelSummary, extract, extract_while};
use serde_json::{Value, json};
use std::cell::Cell;
use std::fmt::Write as _;
use std::io::{self, Write as _};

/// A model with these records after a project (#1).
fn model(records: &str) -> Vec<u8> {
    format!(
        "ISO-10303-21;\nHEADER;\nFILE_SCHEMA(('IFC4'));\nENDSEC;\nDATA;\n#1=IFCPROJECT($,$,'p',$,$,$,$,$,$);\n\
         {records}ENDSEC;\nEND-ISO-10303-21;\n"
    )
    .into_bytes()
}

/// Walls from #`first` on.
fn walls(first: usize, count: usize) -> String {
    let mut walls = String::new();
    for number in first..first + count {
        let _ = writeln!(walls, "#{number}=IFCWALL('{number:022}',$,$,$,$,$,$,$,$);");
    }
    walls
}

/// References from #`first` on.
fn list(first: usize, count: usize) -> String {
    let references = (first..first + count).map(|number| format!("#{number}"));
    references.collect::<Vec<_>>().join(",")
}

fn read(bytes: &[u8]) -> Result<(Value, ModelSummary), IfcError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.ifc");
    std::fs::write(&path, bytes).unwrap();
    let mut out = Vec::new();
    let summary = soon(|| extract(&path, "m.ifc", &mut out))?;
    Ok((serde_json::from_slice(&out).unwrap(), summary))
}

/// What exceeds a limit.
fn limit(bytes: &[u8]) -> String {
    match read(bytes) {
        Err(IfcError::Limit { what, .. }) => what,
        other => panic!("{other:?}"),
    }
}

#[test]
fn files_that_broke_an_earlier_version() {
    let expected = "#30 (IfcWall, line 11) has more than 100000 values; #41 (IfcRelAssociatesMaterial, line 13) gives \
        610851724137931 values to 1 of its elements";
    assert_eq!(limit(&hostile_file("mat30.ifc")), expected);
    let (parsed, summary) = read(&hostile_file("rel60000.ifc")).unwrap();
    assert_eq!((summary.elements, summary.warnings), (1, vec![]));
    assert_eq!(
        parsed["elements"][0]["properties"],
        json!({"Q": {"a": "x"}})
    );
}

#[test]
fn a_relation_of_many_things_to_many_others_is_refused_by_name() {
    let mut records = walls(1000, 5000);
    for number in 10_000..15_000 {
        let _ = writeln!(records, "#{number}=IFCPROPERTYSET($,$,'Q{number}',$,());");
    }
    let (walls, sets) = (list(1000, 5000), list(10_000, 5000));
    let set = format!("IFCPROPERTYSETDEFINITIONSET(({sets}))");
    let _ = writeln!(
        records,
        "#9=IFCRELDEFINESBYPROPERTIES($,$,$,$,({walls}),{set});"
    );
    let expected = "#9 (IfcRelDefinesByProperties, line 10007) relates 5000 records to 5000 others, and all relations together \
        more than 4000000 pairs";
    assert_eq!(limit(&model(&records)), expected);
}

#[test]
fn a_set_that_many_elements_share_counts_for_each() {
    let mut records = walls(10_000, 4000);
    for number in 20_000..25_000 {
        let _ = writeln!(
            records,
            "#{number}=IFCPROPERTYSINGLEVALUE('{number}',$,$,$);"
        );
    }
    let (walls, properties) = (list(10_000, 4000), list(20_000, 5000));
    let _ = writeln!(records, "#8=IFCPROPERTYSET($,$,'Q',$,({properties}));");
    let own = format!("#9=IFCRELDEFINESBYPROPERTIES($,$,$,$,({walls}),#8);\n");
    let expected = "the model has more than 10900200 values; #9 (IfcRelDefinesByProperties, line 9008) gives 5001 values to 4000 \
        of its elements";
    assert_eq!(limit(&model(&(records.clone() + &own))), expected);
    let by_type = format!(
        "#7=IFCWALLTYPE($,$,$,$,$,(#8),$,$,$,$);\n#9=IFCRELDEFINESBYTYPE($,$,$,$,({walls}),#7);\n"
    );
    let expected = "the model has more than 10900300 values; #9 (IfcRelDefinesByType, line 9009) gives 5002 values to 4000 of its \
        elements";
    assert_eq!(limit(&model(&(records + &by_type))), expected);
}

#[test]
fn quantities_types_and_lists_that_hold_themselves_are_counted_not_expanded() {
    let forty = ["#8"; 40].join(",");
    let wall = walls(30, 1);
    let related = "#9=IFCRELDEFINESBYPROPERTIES($,$,$,$,(#30),#7);\n";
    let complex = format!(
        "{wall}#7=IFCELEMENTQUANTITY($,$,'Q',$,$,(#8));\n#8=IFCPHYSICALCOMPLEXQUANTITY('C',$,({forty}),'','','');\n{related}"
    );
    let message = limit(&model(&complex));
    assert!(
        message.starts_with("#30 (IfcWall, line 7) has more than 100000 values; #9"),
        "{message}"
    );
    // No attack is left of these: they hold what is no set, and end.
    let set = format!("{wall}#7=IFCELEMENTQUANTITY($,$,'Q',$,$,(#7));\n{related}");
    let kind = format!(
        "{wall}#7=IFCWALLTYPE($,$,'T',$,$,(#7),$,$,$,$);\n#9=IFCRELDEFINESBYTYPE($,$,$,$,(#30),#7);\n"
    );
    let once = format!(
        "{wall}#7=IFCMATERIALLIST((#7));\n#9=IFCRELASSOCIATESMATERIAL($,$,$,$,(#30),#7);\n"
    );
    for records in [set, kind, once] {
        let (parsed, _) = read(&model(&records)).unwrap();
        assert_eq!(parsed["elements"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn the_way_up_from_an_element_has_an_end() {
    let mut records = walls(10, 3000);
    for number in 10..3009 {
        let relation = number + 10_000;
        let whole = number + 1;
        let _ = writeln!(
            records,
            "#{relation}=IFCRELAGGREGATES($,$,$,$,#{whole},(#{number}));"
        );
    }
    let expected = "#1011 is more than 1000 relations above one of its parts";
    assert_eq!(limit(&model(&records)), expected);
}

#[test]
fn elements_with_very_long_values_end_the_output() {
    let mut records = walls(1000, 2000);
    let text = "x".repeat(100_000);
    let walls = list(1000, 2000);
    let _ = writeln!(
        records,
        "#7=IFCPROPERTYSINGLEVALUE('a',$,IFCTEXT('{text}'),$);\n#8=IFCPROPERTYSET($,$,'Q',$,(#7));\n\
         #9=IFCRELDEFINESBYPROPERTIES($,$,$,$,({walls}),#8);"
    );
    let bytes = model(&records);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.ifc");
    std::fs::write(&path, &bytes).unwrap();
    let read = soon(|| extract(&path, "m.ifc", &mut io::sink()));
    let most = (64 << 20) + 100 * bytes.len();
    let error = read.unwrap_err().to_string();
    let expected = format!("have more than {most} bytes as JSON, which is the limit");
    assert!(error.contains(&expected), "{error}");
}

#[test]
fn brackets_strings_and_comments_without_end_are_refused() {
    let many =
        |record: &str| read(&model(&record.repeat(20_001))).map(|(_, summary)| summary.elements);
    assert!(many("#9=IFCWALL('a,$,$\n").is_err());
    assert!(many("/* #9=IFCWALL($,$);\n").is_err());
    let deep = format!(
        "#9=IFCPROPERTYSINGLEVALUE('a',$,{},$);\n",
        "(".repeat(500_000)
    );
    let (_, summary) = read(&model(&deep)).unwrap();
    assert_eq!(summary.elements, 0);
    let deep = format!(
        "{}#9=IFCPROPERTYSINGLEVALUE('a',$,{}1{},$);\n#8=IFCPROPERTYSET($,$,'Q',$,(#9));\n\
         #7=IFCRELDEFINESBYPROPERTIES($,$,$,$,(#10),#8);\n",
        walls(10, 1),
        "(".repeat(200_000),
        ")".repeat(200_000)
    );
    let (parsed, _) = read(&model(&deep)).unwrap();
    // A list is no value of a single one.
    assert_eq!(
        parsed["elements"][0]["properties"],
        json!({"Q": {"a": null}})
    );
}

#[test]
fn every_loop_asks_whether_to_go_on() {
    let mut records = walls(100, 9000);
    for number in 20_000..29_000 {
        let wall = number - 19_900;
        let _ = writeln!(
            records,
            "#{number}=IFCRELDEFINESBYPROPERTIES($,$,$,$,(#{wall}),#9);"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.ifc");
    std::fs::write(&path, model(&records)).unwrap();
    let cancelled = |after: u32| {
        let asked = Cell::new(0);
        let ask = || {
            asked.set(asked.get() + 1);
            if asked.get() > after {
                return Err(io::Error::other("cancelled"));
            }
            Ok(())
        };
        let read = extract_while(&path, "m.ifc", Measured::None, &mut io::sink(), &ask);
        (read.is_err(), asked.get())
    };
    let (_, all) = cancelled(u32::MAX);
    // 18,001 records, twice 9,000 for the relations, and 9,000 elements in each of members, limits, GlobalIds and output.
    let least = (18_001 + 18_000 + 4 * 9_000) / 4096;
    assert!(all >= least, "{all}");
    for after in 0..all {
        // While elements are read on other threads, how often it asks depends on how fast they are.
        match cancelled(after) {
            (true, asked) => assert_eq!(asked, after + 1),
            (false, asked) => assert!((least..=after).contains(&asked), "{asked} of {after}"),
        }
    }
}

/// An archive with these entries.
fn zipped(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        let options = zip::write::SimpleFileOptions::default();
        writer.start_file(*name, options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn an_archive_of_a_model_that_grows_too_large_is_refused() {
    let mut bytes = model("");
    bytes.splice(0..0, b" ".repeat(17 << 20));
    let archive = zipped(&[("big.ifc", &bytes)]);
    let expected = format!(
        "big.ifc in its {} bytes has more than 16777216 bytes",
        archive.len()
    );
    assert_eq!(limit(&archive), expected);
    // The size that the archive declares may be a lie.
    let size = (bytes.len() as u32).to_le_bytes();
    let mut lie = archive;
    while let Some(at) = lie.windows(4).position(|four| four == size) {
        lie[at..at + 4].copy_from_slice(&1000_u32.to_le_bytes());
    }
    let error = read(&lie).unwrap_err().to_string();
    assert!(error.starts_with("m.ifc: "), "{error}");
}

#[test]
fn an_archive_of_many_entries_or_of_itself_is_refused() {
    let names: Vec<String> = (0..3000).map(|number| format!("{number}.txt")).collect();
    let entries: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b""[..])).collect();
    let error = read(&zipped(&entries)).unwrap_err().to_string();
    let expected = "m.ifc: the archive must contain one .ifc file, but contains none (0.txt, 1.txt, 2.txt, …); zip one model alone, or use it without zip";
    assert_eq!(error, expected);
    let inner = zipped(&[("a.ifc", &model(&walls(10, 1)))]);
    let error = read(&zipped(&[("a.ifc", &inner)])).unwrap_err();
    assert!(matches!(error, IfcError::NotIfc { .. }), "{error}");
}
