//! What is refused, and what is read with a warning.

use std::io::{self, Write};

use milepost_formats::ifc::{IfcError, extract};
use proptest::prelude::*;

use super::{Sample, id, step, wall};

fn refused(name: &str, bytes: &[u8]) -> (IfcError, String) {
    let error = Sample::bytes(name, bytes).try_read().unwrap_err();
    let message = error.to_string();
    assert!(message.starts_with(&format!("{name}: ")), "{message}");
    (error, message)
}

#[test]
fn an_empty_file() {
    let (error, message) = refused("a.ifc", b"");
    assert!(matches!(error, IfcError::Empty { .. }));
    assert_eq!(
        message,
        "a.ifc: the file is empty, but a building model (IFC) was expected; export or copy it again"
    );
}

#[test]
fn files_that_are_something_else() {
    for (bytes, part) in [
        (
            &b"Dear all,\nplease find"[..],
            "begins with `Dear all,.please find`; export",
        ),
        (
            b"<?xml version=\"1.0\"?><ifcXML/>",
            ", which looks like XML; export",
        ),
        (b"\x1f\x8b\x08\x00", "which is gzip"),
        (b"ISO-10303-2", "begins with `ISO-10303-2`"),
    ] {
        let (error, message) = refused("a.ifc", bytes);
        assert!(matches!(error, IfcError::NotIfc { .. }));
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_missing_file_and_a_folder() {
    let sample = Sample::bytes("a.ifc", b"x");
    for path in [
        sample.folder.path().join("no.ifc"),
        sample.folder.path().to_owned(),
    ] {
        let error = extract(&path, "no.ifc", &mut io::sink()).unwrap_err();
        assert!(matches!(error, IfcError::Read { .. }), "{error}");
    }
}

#[test]
fn files_that_are_cut_off_say_where() {
    let text = step("IFC4", &(wall(20) + &wall(21)));
    let whole = text.find("#21=").unwrap();
    let line = text[..whole].lines().count() + 1;
    let cases = [
        (
            whole + 20,
            format!("it ends within the record that begins there (line {line}, byte {whole})"),
        ),
        (
            whole,
            format!("it ends after the last whole record (line {line}, byte {whole})"),
        ),
        (
            text.find("ENDSEC;\nEND").unwrap() + 3,
            "it ends after the last whole record (line 16, byte".to_owned(),
        ),
        (100, "it ends within its header (line".to_owned()),
        (40, "it ends within its header (line 3, byte 40)".to_owned()),
    ];
    for (end, part) in cases {
        let (error, message) = refused("a.ifc", &text.as_bytes()[..end]);
        assert!(matches!(error, IfcError::Truncated { .. }), "{message}");
        assert!(message.contains(&part), "{message}, not {part}");
    }
}

#[test]
fn no_prefix_of_a_model_is_taken_for_a_whole_one() {
    let text = step("IFC4", &(wall(20) + "#21=IFCMATERIAL('END',$,/* c */ $);"));
    let last = text.rfind("END-ISO").unwrap() + "END-ISO-10303-21".len();
    for end in 0..last {
        assert!(
            Sample::bytes("a.ifc", &text.as_bytes()[..end])
                .try_read()
                .is_err(),
            "{end}"
        );
    }
}

#[test]
fn a_string_that_never_ends_is_no_silent_end() {
    let text = step(
        "IFC4",
        &(wall(20) + "#21=IFCWALL('never closed,$,$);\n" + &wall(22).replace('\'', "")),
    );
    let (error, message) = refused("a.ifc", text.as_bytes());
    assert!(
        matches!(error, IfcError::Unreadable { line: 14, .. }),
        "{message}"
    );
}

#[test]
fn unknown_schemas() {
    for (schema, declared) in [
        ("IFC5", "IFC5"),
        ("AUTOMOTIVE_DESIGN", "AUTOMOTIVE_DESIGN"),
        ("", ""),
    ] {
        let (error, message) = refused("a.ifc", step(schema, "").as_bytes());
        assert!(matches!(error, IfcError::Schema { .. }));
        assert!(
            message.contains(&format!("its schema is {declared}")),
            "{message}"
        );
        assert!(
            message.contains("IFC2X3, IFC4, IFC4X1, IFC4X2, IFC4X3"),
            "{message}"
        );
    }
    let none = step("IFC4", "").replace("FILE_SCHEMA(('IFC4'));", "");
    let (_, message) = refused("a.ifc", none.as_bytes());
    assert!(
        message.contains("not declared (no FILE_SCHEMA in the header)"),
        "{message}"
    );
}

#[test]
fn a_header_without_data() {
    let (error, _) = refused(
        "a.ifc",
        b"ISO-10303-21;\nHEADER;\nFILE_SCHEMA(('IFC4'));\nENDSEC;\nEND-ISO-10303-21;",
    );
    assert!(matches!(error, IfcError::NoData { .. }));
}

fn zipped(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        writer
            .start_file(*name, zip::write::SimpleFileOptions::default())
            .unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// 11 of the pitfalls: a zip with one model in it, whatever it is called.
#[test]
fn archives() {
    let model = step("IFC4", &wall(20));
    let (plain, _) = Sample::bytes("a.ifc", model.as_bytes()).read();
    let archive = zipped(&[
        ("folder/m.IFC", model.as_bytes()),
        ("__MACOSX/._m.ifc", b"x"),
        ("readme.txt", b"x"),
    ]);
    for name in ["a.ifczip", "a.ifc"] {
        let (parsed, _) = Sample::bytes(name, &archive).read();
        assert_eq!(parsed["elements"], plain["elements"]);
    }
    let (error, message) = refused("a.ifczip", &zipped(&[("readme.txt", b"x")]));
    assert!(matches!(error, IfcError::ArchiveContent { .. }));
    assert!(message.contains("contains none (readme.txt)"), "{message}");
    let (_, message) = refused("a.ifczip", &zipped(&[("a.ifc", b"x"), ("b.ifc", b"x")]));
    assert!(message.contains("contains 2 (a.ifc, b.ifc)"), "{message}");
    let (error, _) = refused("a.ifczip", &archive[..archive.len() / 2]);
    assert!(matches!(error, IfcError::Archive { .. }));
    let (error, _) = refused("a.ifczip", &zipped(&[("a.ifc", b"")]));
    assert!(matches!(error, IfcError::Empty { .. }));
}

#[test]
fn a_result_that_cannot_be_written() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::from(io::ErrorKind::StorageFull))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let sample = Sample::model("IFC4", &wall(20));
    assert!(matches!(
        extract(&sample.path, "model.ifc", &mut Full),
        Err(IfcError::Write { .. })
    ));
}

fn warnings(records: &str) -> Vec<String> {
    Sample::model("IFC4", records).read().1.warnings
}

#[test]
fn what_is_read_with_a_warning() {
    assert_eq!(warnings(""), ["the model has no elements"]);
    assert_eq!(
        warnings(&format!(
            "{}#21=IFCRELASSOCIATESMATERIAL('{}',$,$,$,(#20),#99);\n#22=IFCPROPERTYSET('{}',$,'P',$,(#98));",
            wall(20),
            id(21),
            id(22)
        )),
        [
            "2 references to a record that is not there or is of no class that could be meant: the first is in #21 (IfcRelAssociatesMaterial, line 14) to #99"
        ]
    );
    assert_eq!(
        warnings(&format!(
            "{}#21=IFCWALL('it's broken',$);\n{}",
            wall(20),
            wall(22)
        )),
        ["1 record could not be read and left out: the first is at line 14 (byte 420)"]
    );
    assert_eq!(
        warnings(&format!(
            "{}#21=IFCNOSUCHTHING(1);\n#22=IFCRAIL('{}',$,$,$,$,$,$,$,$);",
            wall(20),
            id(22)
        )),
        [
            "records of classes that no known schema has were left out: IFCNOSUCHTHING (1)",
            "classes that the declared schema does not have were read as other releases define them: IfcRail (1)"
        ]
    );
    assert_eq!(
        warnings(&(wall(20) + &wall(20).replace(&id(20), &id(21)))),
        [
            "1 record with a name that an earlier record has: references to it were read as to the first"
        ]
    );
    assert_eq!(
        warnings(&wall(20).replace(&id(20), "short")),
        ["1 element without a valid GlobalId (22 characters): the first is #20 at line 13"]
    );
    let none = step("IFC4", &wall(20)).replace("IFCPROJECT(", "IFCCARTESIANPOINT(");
    let (_, summary) = Sample::bytes("a.ifc", none.as_bytes()).read();
    assert_eq!(
        summary.warnings,
        ["there is no IfcProject: names, units and structure may be missing"]
    );
}

#[test]
fn rings_end() {
    let records = format!(
        "{}{}#30=IFCRELAGGREGATES('{}',$,$,$,#20,(#21));\n#31=IFCRELAGGREGATES('{}',$,$,$,#21,(#20));
#32=IFCRELAGGREGATES('{}',$,$,$,#33,(#33));\n#33=IFCWALL('{}',$,$,$,$,$,$,$,$);
#40=IFCPHYSICALCOMPLEXQUANTITY('C',$,(#40),'x',$,$);\n#41=IFCELEMENTQUANTITY('{}',$,'Q',$,$,(#40));
#42=IFCRELDEFINESBYPROPERTIES('{}',$,$,$,(#20),#41);
#43=IFCMATERIALLIST((#43,#43));\n#44=IFCRELASSOCIATESMATERIAL('{}',$,$,$,(#20),#43);
#45=IFCMEASUREWITHUNIT(IFCREAL(2.),#46);\n#46=IFCCONVERSIONBASEDUNIT($,.LENGTHUNIT.,'x',#45);
#47=IFCQUANTITYLENGTH('Length',$,#46,2.,$);\n#48=IFCELEMENTQUANTITY('{}',$,'R',$,$,(#47));
#49=IFCRELDEFINESBYPROPERTIES('{}',$,$,$,(#20),#48);",
        wall(20), wall(21), id(30), id(31), id(32), id(33), id(41), id(42), id(44), id(48), id(49)
    );
    let (parsed, summary) = Sample::model("IFC4", &records).read();
    assert_eq!(summary.elements, 3);
    assert_eq!(parsed["elements"][0]["part_of"], id(21));
}

#[test]
fn depth_does_not_exhaust_the_stack() {
    let mut records = String::new();
    let depth = 20_000;
    for at in 0..depth {
        records += &wall(1000 + at);
        if at > 0 {
            let (name, part) = (1000 + depth + at, 1000 + at);
            records += &format!(
                "#{name}=IFCRELAGGREGATES('{}',$,$,$,#{},(#{part}));\n",
                id(name),
                part - 1
            );
        }
    }
    records += &format!(
        "#100=IFCBUILDINGSTOREY('{}',$,'EG',$,$,$,$,$,$,$);\n#101=IFCRELCONTAINEDINSPATIALSTRUCTURE('{}',$,$,$,(#1000),#100);
#102=IFCPROPERTYSINGLEVALUE('deep',$,IFCLABEL({}1{}),$);\n#103=IFCPROPERTYSET('{}',$,'P',$,(#102));
#104=IFCRELDEFINESBYPROPERTIES('{}',$,$,$,(#1000),#103);",
        id(100), id(101), "(".repeat(200_000), ")".repeat(200_000), id(103), id(104)
    );
    let (_, summary) = Sample::model("IFC4", &records).read();
    assert_eq!(
        (summary.elements, summary.with_storey),
        (depth as usize, depth as usize)
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever happens to the bytes of a model, it is read or refused: the parser does not fail, nothing hangs.
    #[test]
    fn damaged_models_are_read_or_refused(damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<bool>()), 1..12)) {
        let mut bytes = step("IFC4", &super::reading::full()).into_bytes();
        for (at, byte, cut) in damage {
            let at = at.index(bytes.len());
            if cut {
                bytes.remove(at);
            } else {
                bytes[at] = *b"'#();,$*./\\"
                    .get(usize::from(byte % 16))
                    .unwrap_or(&byte);
            }
        }
        if let Err(error) = Sample::bytes("a.ifc", &bytes).try_read() {
            prop_assert!(!matches!(error, IfcError::Parser { .. }), "{error}");
        }
    }
}
