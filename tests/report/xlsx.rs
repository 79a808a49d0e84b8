//! Reads a workbook back from its XML, without the library that wrote it.

use std::io::{Cursor, Read};

/// Name and rows of a sheet; cells that are not there are empty.
pub type Sheet = (String, Vec<Vec<String>>);

/// A part of the archive as text.
pub fn part(bytes: &[u8], name: &str) -> String {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
    let mut text = String::new();
    archive
        .by_name(name)
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    text
}

/// The sheets in their order. A string is shown as `'text`, so that it differs from a number.
pub fn sheets(bytes: &[u8]) -> Vec<Sheet> {
    let strings: Vec<String> = part(bytes, "xl/sharedStrings.xml")
        .split("<si>")
        .skip(1)
        .map(plain)
        .collect();
    part(bytes, "xl/workbook.xml")
        .split("<sheet name=\"")
        .skip(1)
        .enumerate()
        .map(|(at, rest)| {
            let name = unescape(rest.split('"').next().unwrap());
            let xml = part(bytes, &format!("xl/worksheets/sheet{}.xml", at + 1));
            (name, rows(&xml, &strings))
        })
        .collect()
}

fn rows(xml: &str, strings: &[String]) -> Vec<Vec<String>> {
    let mut out: Vec<Vec<String>> = Vec::new();
    for cell in xml.split("<c r=\"").skip(1) {
        let cell = cell.split("</c>").next().unwrap();
        let place = cell.split('"').next().unwrap();
        let letters: String = place
            .chars()
            .take_while(char::is_ascii_alphabetic)
            .collect();
        let row: usize = place[letters.len()..].parse().unwrap();
        let column = letters
            .bytes()
            .fold(0, |n, b| n * 26 + usize::from(b - b'A') + 1)
            - 1;
        let head = cell.split('>').next().unwrap();
        let value = if head.contains("t=\"inlineStr\"") {
            format!("'{}", plain(cell))
        } else {
            let text = cell
                .split("<v>")
                .nth(1)
                .map(|v| v.split("</v>").next().unwrap());
            match (text, head.contains("t=\"s\"")) {
                (Some(v), true) => format!("'{}", strings[v.parse::<usize>().unwrap()]),
                (Some(v), false) => v.to_owned(),
                (None, _) => String::new(),
            }
        };
        if out.len() < row {
            out.resize(row, Vec::new());
        }
        if out[row - 1].len() <= column {
            out[row - 1].resize(column + 1, String::new());
        }
        out[row - 1][column] = value;
    }
    out
}

fn plain(xml: &str) -> String {
    xml.split("<t")
        .skip(1)
        .filter_map(|t| t.split_once('>'))
        .map(|(_, t)| unescape(t.split("</t>").next().unwrap()))
        .collect()
}

fn unescape(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&amp;", "&")
}
