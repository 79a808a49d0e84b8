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
