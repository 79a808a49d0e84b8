//! Documents and models put together object by object.

use std::fmt::Write as _;

/// Returns a PDF of these objects, with a cross-reference table. The catalog is object 1.
pub fn pdf(objects: &[(u32, String)]) -> Vec<u8> {
    let mut bytes = b"%PDF-1.7\n".to_vec();
    let mut table = String::new();
    for (number, object) in objects {
        let _ = write!(table, "{number} 1\n{:010} 00000 n \n", bytes.len());
        bytes.extend(format!("{number} 0 obj\n{object}\nendobj\n").into_bytes());
    }
    let end = bytes.len();
    let size = 1 + objects.iter().map(|(number, _)| *number).max().unwrap_or(0);
    let trailer = format!(
        "xref\n0 1\n0000000000 65535 f \n{table}trailer\n<</Size {size}/Root 1 0 R>>\nstartxref\n{end}\n%%EOF\n"
    );
    bytes.extend(trailer.into_bytes());
    bytes
}

/// Returns a stream with its length.
pub fn stream(dictionary: &str, content: &str) -> String {
    let length = content.len();
    format!("<<{dictionary}/Length {length}>>\nstream\n{content}\nendstream")
}

/// Returns the objects of a document of one page, which says so: the catalog 1, the page tree 2, the page 3, its content 4, its
/// font 5. `catalog` and `page` are further entries of these.
pub fn page(catalog: &str, page: &str) -> Vec<(u32, String)> {
    let content = "BT /F1 12 Tf 72 700 Td (Hello world, this is a sentence of a page.) Tj ET\n";
    vec![
        (1, format!("<</Type/Catalog/Pages 2 0 R{catalog}>>")),
        (2, "<</Type/Pages/Kids[3 0 R]/Count 1>>".to_owned()),
        (
            3,
            format!(
                "<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>{page}>>"
            ),
        ),
        (4, stream("", content)),
        (
            5,
            "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>".to_owned(),
        ),
    ]
}

/// Decisions taken from bytes, so that a fuzzer that changes the bytes changes the structure.
pub struct Choices<'a>(pub &'a [u8]);

impl Choices<'_> {
    /// Returns a number below `below`; 0 once the bytes are used up.
    pub fn below(&mut self, below: usize) -> usize {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        usize::from(*first) % below
    }

    fn pick<'t>(&mut self, all: &[&'t str]) -> &'t str {
        all[self.below(all.len())]
    }

    /// A count that is mostly small, and now and then absurd.
    fn count(&mut self) -> String {
        let odd = ["-1", "65536", "2147483648", "99999999999999", "1.5", "null"];
        match self.below(12) {
            0 => self.pick(&odd).to_owned(),
            _ => self.below(8).to_string(),
        }
    }
}

/// Puts a PDF together: page trees, bookmarks, names, fonts with maps and widths, forms and contents, whose references lead
/// anywhere, also back.
pub fn any_pdf(choices: &mut Choices<'_>) -> Vec<u8> {
    let last = 6 + choices.below(24) as u32;
    let mut objects = page("/Outlines 6 0 R/Names<</Dests 7 0 R>>", "");
    if choices.below(4) == 0 {
        objects[1].1 = any_node(choices, last);
    }
    if choices.below(2) == 0 {
        objects[2].1 = any_page(choices, last);
    }
    for number in 6..=last {
        objects.push((number, any_object(choices, last)));
    }
    pdf(&objects)
}

fn link(choices: &mut Choices<'_>, last: u32) -> String {
    format!("{} 0 R", 1 + choices.below(last as usize + 1))
}

fn links(choices: &mut Choices<'_>, last: u32) -> String {
    let count = choices.below(5);
    let links: Vec<String> = (0..count).map(|_| link(choices, last)).collect();
    links.join(" ")
}

fn any_node(choices: &mut Choices<'_>, last: u32) -> String {
    let (kids, count, parent) = (links(choices, last), choices.count(), link(choices, last));
    format!("<</Type/Pages/Kids[3 0 R {kids}]/Count {count}/Parent {parent}>>")
}

fn any_page(choices: &mut Choices<'_>, last: u32) -> String {
    let (font, form) = (link(choices, last), link(choices, last));
    let (parent, contents) = (link(choices, last), links(choices, last));
    format!(
        "<</Type/Page/Parent {parent}/Contents[{contents} 4 0 R]/Resources<</Font<</F1 {font}>>/XObject<</X {form}>>>>>>"
    )
}

fn any_object(choices: &mut Choices<'_>, last: u32) -> String {
    let (one, other, third) = (
        link(choices, last),
        link(choices, last),
        link(choices, last),
    );
    let (some, count) = (links(choices, last), choices.count());
    match choices.below(14) {
        0 => any_node(choices, last),
        1 => any_page(choices, last),
        2 | 3 => format!("<</Title(t)/First {one}/Next {other}/Dest[{third}/Fit]>>"),
        4 => format!("<</Title {one}/A<</S/GoTo/D(n)>>/First {other}/Next {third}>>"),
        5 => format!("<</Kids[{some}]/Names[(n) {one} (m)<</D[{other}/Fit]>>]>>"),
        6 => {
            format!("<</Type/Font/Subtype/Type1/ToUnicode {one}/Widths {other}/FirstChar {count}>>")
        }
        7 => format!("<</Type/Font/Subtype/Type0/DescendantFonts[{some}]/ToUnicode {one}>>"),
        8 => {
            format!("<</Type/Font/Subtype/CIDFontType2/W[0 {count} 500 {count} {one}]/DW {count}>>")
        }
        9 => {
            let (first, end) = (
                choices.pick(&["00", "0000", "00000000"]),
                choices.pick(&["41", "FFFF", "FFFFFFFF"]),
            );
            let map = format!(
                "/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n/CMapType 2 def\n1 beginbfrange\n<{first}> <{end}> \
                 <0041>\nendbfrange\nendcmap\nCMapName currentdict /CMap defineresource pop\nend\nend\n"
            );
            stream("", &map)
        }
        10 => format!("<</Length {one}>>\nstream\nq\nendstream"),
        11 => format!("[{some} {count}]"),
        _ => {
            let form = format!(
                "/Type/XObject/Subtype/Form/Resources<</Font<</F1 {one}>>/XObject<</X {other}>>>>"
            );
            let content = any_content(choices);
            stream(&form, &content)
        }
    }
}

fn any_content(choices: &mut Choices<'_>) -> String {
    let operators = [
        "q ",
        "Q ",
        "BT ",
        "ET ",
        "/F1 12 Tf ",
        "/X Do ",
        "(text) Tj ",
        "[(a)-200<0041>]TJ ",
        "1 0 0 1 9 9 cm ",
        "T* ",
        "(l)' ",
        "1 2 (w)\" ",
        "12 TL ",
        "0 -14 Td ",
        "0 0 0 0 0 0 Tm ",
        "1e9 Tz ",
        "[[[[",
        "<</A",
        "BI /W 1 /H 1 /BPC 8 /CS /G ID x EI ",
        "BI ID ",
        "% c\n",
        "(",
        "} ",
        "null true ",
    ];
    let mut content = String::new();
    for _ in 0..choices.below(40) {
        let times = if choices.below(30) == 0 { 3000 } else { 1 };
        content.push_str(&choices.pick(&operators).repeat(times));
    }
    content
}

/// Puts a model together: elements, types, sets, quantities, materials, units and relations, whose references lead anywhere, also
/// back.
pub fn any_ifc(choices: &mut Choices<'_>) -> Vec<u8> {
    let last = 8 + choices.below(40);
    let mut records = String::new();
    for number in 1..=last {
        let record = any_record(choices, last);
        let _ = writeln!(records, "#{number}={record};");
    }
    format!("ISO-10303-21;\nHEADER;\nFILE_SCHEMA(('IFC4'));\nENDSEC;\nDATA;\n{records}ENDSEC;\nEND-ISO-10303-21;\n")
        .into_bytes()
}

fn any_record(choices: &mut Choices<'_>, last: usize) -> String {
    let mut some = || {
        let count = match choices.below(16) {
            0 => 60,
            _ => choices.below(5),
        };
        let references = (0..count).map(|_| format!("#{}", 1 + choices.below(last + 1)));
        format!("({})", references.collect::<Vec<_>>().join(","))
    };
    let (list, second) = (some(), some());
    let one = format!("#{}", 1 + choices.below(last + 1));
    let value = choices.pick(&[
        "1.5",
        "IFCVOLUMEMEASURE(2.)",
        "'x'",
        "$",
        "((((1))))",
        "IFCTEXT('\\X2\\00E9\\X0\\')",
        "\"0FF\"",
    ]);
    match choices.below(24) {
        0 => format!("IFCPROJECT($,$,'p',$,$,$,$,$,{one})"),
        1 => format!("IFCUNITASSIGNMENT({list})"),
        2 => format!("IFCCONVERSIONBASEDUNIT(*,.LENGTHUNIT.,'u',{one})"),
        3 => format!("IFCMEASUREWITHUNIT({value},{one})"),
        4..=6 => "IFCWALL($,$,'w',$,$,$,$,$,$)".to_owned(),
        7 => format!("IFCWALLTYPE($,$,'t',$,$,{list},$,$,$,$)"),
        8 => format!("IFCPROPERTYSET($,$,'Q',$,{list})"),
        9 => format!("IFCPROPERTYSINGLEVALUE('Volume',$,{value},{one})"),
        10 => format!("IFCELEMENTQUANTITY($,$,'Q',$,$,{list})"),
        11 => format!("IFCPHYSICALCOMPLEXQUANTITY('C',$,{list},'','','')"),
        12 => format!("IFCQUANTITYVOLUME('NetVolume',$,{one},{value},$)"),
        13 => format!("IFCMATERIALLIST({list})"),
        14 => format!("IFCMATERIALLAYERSET({list},$,$)"),
        15 => format!("IFCMATERIALLAYERSETUSAGE({one},.AXIS2.,.POSITIVE.,0.,$)"),
        16 => format!("IFCMATERIALLAYER({one},{value},$,$,$,$,$)"),
        17 => "IFCBUILDINGSTOREY($,$,'s',$,$,$,$,$,$,1.)".to_owned(),
        18 => format!("IFCRELAGGREGATES($,$,$,$,{one},{list})"),
        19 => format!("IFCRELCONTAINEDINSPATIALSTRUCTURE($,$,$,$,{list},{one})"),
        20 => format!("IFCRELASSOCIATESMATERIAL($,$,$,$,{list},{one})"),
        21 => format!("IFCRELDEFINESBYTYPE($,$,$,$,{list},{one})"),
        22 => format!("IFCRELDEFINESBYPROPERTIES($,$,$,$,{list},{one})"),
        _ => format!(
            "IFCRELDEFINESBYPROPERTIES($,$,$,$,{list},IFCPROPERTYSETDEFINITIONSET({second}))"
        ),
    }
}
