//! The encoding of a model's text. ISO 10303-21 knows ASCII and UTF-8; some programs write what their machine uses, such as Shift JIS.

use super::map::Bytes;
use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};

/// Returns a model as UTF-8. Of one that is in another encoding, this is a copy, with a warning.
///
/// All of it is converted at once, because half of a letter in Shift JIS may be a backslash, which begins an escape.
pub(super) fn in_utf8(bytes: Bytes) -> (Bytes, Option<String>) {
    if bytes.is_ascii() || std::str::from_utf8(&bytes).is_ok() {
        return (bytes, None);
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(&bytes, true);
    let encoding = detector.guess(None, Utf8Detection::Deny);
    let (text, has_errors) = encoding.decode_without_bom_handling(&bytes);
    let lost = if has_errors {
        "; what could not be read is shown as \u{FFFD}"
    } else {
        ""
    };
    let warning = format!(
        "the text is not UTF-8: it was read as {}, which it seems to be{lost}; check the names, or export the model again",
        encoding.name()
    );
    let text = text.into_owned().into_bytes();
    (Bytes::Copied(text), Some(warning))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &str = "#1=IFCWALL('外壁タイプ','ソケット 表','標準柱 120','鉄筋コンクリート');";

    fn read(bytes: &[u8]) -> (String, Option<String>) {
        let (bytes, warning) = in_utf8(Bytes::Copied(bytes.to_vec()));
        (String::from_utf8(bytes.to_vec()).unwrap(), warning)
    }

    #[test]
    fn other_encodings_are_told_and_read() {
        let (sjis, ..) = encoding_rs::SHIFT_JIS.encode(NAMES);
        let (text, warning) = read(&sjis);
        assert_eq!(text, NAMES);
        assert_eq!(
            warning.unwrap(),
            "the text is not UTF-8: it was read as Shift_JIS, which it seems to be; check the names, or export the model again"
        );
        let german = "#1=IFCWALL('Außenwand Stahlbeton','Wärmedämmung','Türöffnung für Fenster');";
        let (latin, ..) = encoding_rs::WINDOWS_1252.encode(german);
        let (text, warning) = read(&latin);
        assert_eq!(text, german);
        assert!(warning.unwrap().contains("it was read as windows-1252"));
    }

    #[test]
    fn ascii_and_utf8_stay_as_they_are() {
        for text in ["#1=IFCWALL('x');", NAMES] {
            assert_eq!(read(text.as_bytes()), (text.to_owned(), None));
        }
    }
}
