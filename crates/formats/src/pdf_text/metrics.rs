//! How wide the letters of a font are set, and whether the font is heavy or has letters of one width.

use std::collections::BTreeMap;

/// Widths of Helvetica from blank to `~`, in thousandths of its size (Adobe's metrics of the fonts that every reader has).
const HELVETICA: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556,
    556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667,
    611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667,
    667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500,
    222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
];

/// The widths of a font and its look.
pub(crate) struct Metrics {
    /// By code. Few may be listed of many codes.
    widths: BTreeMap<usize, f32>,
    default: f32,
    /// Only the name of the font is known.
    is_unmeasured: bool,
    /// All letters are as wide.
    pub(crate) is_fixed: bool,
    /// It is a heavy one.
    pub(crate) is_bold: bool,
}

impl Metrics {
    /// `widths` are in thousandths of the size, by code. `default` is the width of the other codes. `flags` are those of the font's
    /// descriptor.
    pub(crate) fn new(
        name: &str,
        flags: i64,
        is_wide: bool,
        widths: BTreeMap<usize, f32>,
        default: Option<f32>,
    ) -> Self {
        let name = name.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        let all_equal = widths.len() > 3 && {
            let mut set = widths.values().filter(|width| **width > 0.0);
            let first = set.next().copied().unwrap_or(0.0);
            first > 0.0 && set.all(|width| (width - first).abs() < 0.5)
        };
        let is_fixed = flags & 1 == 1
            || all_equal
            || has(&["mono", "courier", "consol", "menlo", "typewriter", "cmtt"]);
        let usual = match (is_wide, is_fixed) {
            (true, _) => 1000.0,
            (false, true) => 600.0,
            (false, false) => 0.0,
        };
        Self {
            is_unmeasured: !is_wide && widths.is_empty() && !is_fixed,
            widths,
            default: default.unwrap_or(usual),
            is_fixed,
            is_bold: flags & (1 << 18) != 0 || has(&["bold", "black", "heavy"]),
        }
    }

    /// Returns the width of a letter, in thousandths of the size.
    pub(crate) fn width(&self, code: u32) -> f32 {
        let known = self.widths.get(&(code as usize));
        if let Some(width) = known.filter(|width| !width.is_nan()) {
            return *width;
        }
        if self.is_unmeasured {
            let known = code
                .checked_sub(32)
                .and_then(|at| HELVETICA.get(at as usize));
            return known.map_or(556.0, |width| f32::from(*width));
        }
        self.default
    }
}
