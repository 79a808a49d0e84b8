//! Runs of text to lines of a width.

use super::font::{Fonts, Glyph, Style, measure};

/// A run of text in one style; a line feed in it forces a new line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Span {
    pub(crate) text: String,
    pub(crate) style: Style,
}

/// A line of glyphs and its width in points.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct WrappedLine {
    pub(crate) glyphs: Vec<Glyph>,
    pub(crate) width: f32,
}

/// A word (`space` is the space before it), or a forced end of line.
enum Fragment {
    Word {
        space: Option<Glyph>,
        glyphs: Vec<Glyph>,
    },
    Break,
}

fn pieces(fonts: &mut Fonts, spans: &[Span]) -> Vec<Fragment> {
    let mut out = Vec::new();
    let mut space = None;
    let mut word = Vec::new();
    for span in spans {
        for sign in span.text.chars() {
            if sign.is_whitespace() && sign != '\u{00A0}' {
                if !word.is_empty() {
                    out.push(Fragment::Word {
                        space: space.take(),
                        glyphs: std::mem::take(&mut word),
                    });
                }
                if sign == '\n' {
                    out.push(Fragment::Break);
                    space = None;
                } else {
                    space = fonts.glyph(' ', span.style);
                }
            } else if let Some(glyph) = fonts.glyph(sign, span.style) {
                word.push(glyph);
            }
        }
    }
    if !word.is_empty() {
        out.push(Fragment::Word {
            space,
            glyphs: word,
        });
    }
    out
}

/// Breaks runs into lines no wider than `width` points at `size`. A word that is wider than a
/// line is cut, after a sign of punctuation where one is near. Each line has at least one glyph.
pub(crate) fn wrap(fonts: &mut Fonts, spans: &[Span], size: f32, width: f32) -> Vec<WrappedLine> {
    let room = width / size;
    let mut lines = Vec::new();
    let mut line: Vec<Glyph> = Vec::new();
    let mut used = 0.0;
    for piece in pieces(fonts, spans) {
        let (space, glyphs) = match piece {
            Fragment::Break => {
                lines.push(std::mem::take(&mut line));
                used = 0.0;
                continue;
            }
            Fragment::Word { space, glyphs } => (space, glyphs),
        };
        let wide = measure(&glyphs);
        let gap = space.map_or(0.0, |s| s.advance);
        if !line.is_empty() && used + gap + wide <= room {
            line.extend(space);
            line.extend(glyphs);
            used += gap + wide;
            continue;
        }
        if !line.is_empty() {
            // A space at the end keeps the words apart for those who copy or search the text.
            line.extend(space);
            lines.push(std::mem::take(&mut line));
        }
        let mut rest = glyphs.as_slice();
        loop {
            let fits = fitting(rest, room);
            if fits == rest.len() {
                break;
            }
            lines.push(rest[..fits].to_vec());
            rest = &rest[fits..];
        }
        line = rest.to_vec();
        used = measure(rest);
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
        .into_iter()
        .map(|glyphs| {
            let end = glyphs.iter().rposition(|g| g.sign != ' ');
            let width = measure(&glyphs[..end.map_or(0, |at| at + 1)]) * size;
            WrappedLine { glyphs, width }
        })
        .collect()
}

/// Returns how many glyphs of a word fit on a line of `room` ems: all, or up to a good place to cut.
fn fitting(word: &[Glyph], room: f32) -> usize {
    let mut sum = 0.0;
    let mut most = 0;
    for glyph in word {
        sum += glyph.advance;
        if sum > room {
            break;
        }
        most += 1;
    }
    if most == word.len() {
        return most;
    }
    let good = word[..most]
        .iter()
        .rposition(|g| matches!(g.sign, '-' | '_' | '/' | '\\' | ':' | '.' | ',' | ';'))
        .map_or(0, |at| at + 1);
    if good * 5 >= most * 2 {
        good.max(1)
    } else {
        most.max(1)
    }
}

/// Widths in points of the text on one line, and of its widest word.
pub(crate) fn extent(fonts: &mut Fonts, spans: &[Span], size: f32) -> (f32, f32) {
    let (mut whole, mut widest, mut line) = (0.0f32, 0.0f32, 0.0f32);
    for piece in pieces(fonts, spans) {
        match piece {
            Fragment::Break => line = 0.0,
            Fragment::Word { space, glyphs } => {
                let wide = measure(&glyphs);
                line += wide + space.map_or(0.0, |s| s.advance);
                widest = widest.max(wide);
                whole = whole.max(line);
            }
        }
    }
    (whole * size, widest * size)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(lines: &[WrappedLine]) -> Vec<String> {
        lines
            .iter()
            .map(|l| l.glyphs.iter().map(|g| g.sign).collect())
            .collect()
    }

    fn plain(text: &str) -> Vec<Span> {
        vec![Span {
            text: text.to_owned(),
            style: Style::default(),
        }]
    }

    #[test]
    fn words_are_kept_whole_where_they_fit() {
        let mut fonts = Fonts::load().unwrap();
        let lines = wrap(&mut fonts, &plain("one two  three\nfour"), 10.0, 45.0);
        assert_eq!(text(&lines), ["one two ", "three", "four"]);
    }

    #[test]
    fn a_word_wider_than_a_line_is_cut_and_nothing_is_lost() {
        let mut fonts = Fonts::load().unwrap();
        let word = "w".repeat(100_000);
        let lines = wrap(&mut fonts, &plain(&word), 10.0, 100.0);
        assert_eq!(text(&lines).concat(), word);
        assert!(lines.iter().all(|l| l.width <= 100.0));
        let narrow = wrap(&mut fonts, &plain("wide"), 10.0, 0.5);
        assert_eq!(text(&narrow), ["w", "i", "d", "e"]);
    }

    #[test]
    fn a_long_word_is_cut_after_punctuation() {
        let mut fonts = Fonts::load().unwrap();
        let lines = wrap(&mut fonts, &plain("load_bearing_wall"), 10.0, 70.0);
        assert_eq!(text(&lines), ["load_bearing_", "wall"]);
    }
}
