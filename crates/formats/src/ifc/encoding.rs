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
    if is_mostly_utf8(&bytes) {
        let text = String::from_utf8_lossy(&bytes).into_owned().into_bytes();
        let warning =
            "bytes of the text are not UTF-8: they are shown as \u{FFFD}; export the model again";
        return (Bytes::Copied(text), Some(warning.to_owned()));
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(&bytes, true);
    let encoding = detector.guess(None, Utf8Detection::Deny);
    let (text, _) = encoding.decode_without_bom_handling(&bytes);
    let warning = format!(
        "the text is not UTF-8: it was read as {}, which it seems to be; check the names, or export the model again",
        encoding.name()
    );
    let text = text.into_owned().into_bytes();
    (Bytes::Copied(text), Some(warning))
}

/// Returns true if more letters are UTF-8 than are not. Text of other encodings seldom has letters that are.
fn is_mostly_utf8(bytes: &[u8]) -> bool {
    let (mut letters, mut others) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        letters += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        others += usize::from(!chunk.invalid().is_empty());
    }
    letters > others
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
    fn utf8_with_a_name_that_is_cut_stays_utf8() {
        let mut bytes = NAMES.as_bytes().to_vec();
        // The last byte of `プ`.
        bytes.remove(NAMES.find('\u{30d7}').unwrap() + 2);
        let (text, warning) = read(&bytes);
        assert_eq!(text, NAMES.replace('\u{30d7}', "\u{FFFD}"));
        assert_eq!(
            warning.unwrap(),
            "bytes of the text are not UTF-8: they are shown as \u{FFFD}; export the model again"
        );
    }

    #[test]
    fn ascii_and_utf8_stay_as_they_are() {
        for text in ["#1=IFCWALL('x');", NAMES] {
            assert_eq!(read(text.as_bytes()), (text.to_owned(), None));
        }
    }
}
