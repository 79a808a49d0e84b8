//! Words: telling which of many patterns a text has in it, in one pass over its words.
//!
//! A text is cut into words of letters and digits (`WAND_M10` is `wand`, `m10`; `GypsumBoard` is `gypsum`, `board`), in
//! lower case and without accents (`Dämmung` and `Daemmung` are `dammung`, `weiß` is `weiss`). A pattern is one word or several
//! that follow each other. `wand` is that whole word; `wand*` a word that begins so; `*wand` one that ends so, which is how German and
//! Dutch build compounds (`Stahlbetonwand`); `*wand*` one that has it anywhere; `#` is one digit (`C##/##`).

use std::collections::HashMap;

/// A word of a text, folded, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// A pattern found in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit {
    /// Position of the pattern in the list that the index was made from.
    pub(crate) word: usize,
    /// Letters and digits that the pattern fixes; of two patterns that match, the longer one says more.
    pub(crate) weight: usize,
    /// Bytes of the text that it covers.
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Why a pattern is refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum WordError {
    /// Nothing is left of it.
    #[error("the word `{0}` has no letters or digits")]
    Empty(String),
    /// Too short to be part of a word.
    #[error(
        "the word `{0}` is too short for `*`: it would be found everywhere; write at least three letters, or the whole word without `*`"
    )]
    TooShort(String),
    /// A star in the middle.
    #[error(
        "`*` is inside the word `{0}`: it is allowed only at the beginning or the end of a word"
    )]
    StarInside(String),
}

/// One word of a pattern.
#[derive(Debug, Clone)]
struct PatternWord {
    literal: String,
    open_before: bool,
    open_after: bool,
}

impl PatternWord {
    fn matches(&self, token: &str) -> bool {
        let literal = self.literal.as_bytes();
        let token = token.as_bytes();
        if token.len() < literal.len() {
            return false;
        }
        match (self.open_before, self.open_after) {
            (false, false) => token.len() == literal.len() && same(literal, token),
            (false, true) => same(literal, token),
            (true, false) => same(literal, &token[token.len() - literal.len()..]),
            (true, true) => (0..=token.len() - literal.len()).any(|i| same(literal, &token[i..])),
        }
    }
}

/// Returns true if `text` begins with `literal`, where `#` in the literal is any digit.
fn same(literal: &[u8], text: &[u8]) -> bool {
    literal
        .iter()
        .zip(text)
        .all(|(l, t)| l == t || (*l == b'#' && t.is_ascii_digit()))
}

/// Many patterns, looked up together.
#[derive(Debug, Default)]
pub(crate) struct WordIndex {
    words: Vec<Vec<PatternWord>>,
    weights: Vec<usize>,
    /// Patterns whose first word is whole and without `#`, by that word.
    whole: HashMap<String, Vec<usize>>,
    /// Patterns whose first word has a fixed beginning, by its first byte.
    from_front: Vec<Vec<usize>>,
    /// Patterns whose first word has only a fixed end, by its last byte.
    from_back: Vec<Vec<usize>>,
    /// Patterns whose first word may occur anywhere in a word, by its first byte.
    inside: Vec<Vec<usize>>,
}

impl WordIndex {
    /// Compiles the patterns; hits refer to them by position.
    pub(crate) fn new<S: AsRef<str>>(patterns: &[S]) -> Result<WordIndex, WordError> {
        let mut index = WordIndex {
            from_front: vec![Vec::new(); 256],
            from_back: vec![Vec::new(); 256],
            inside: vec![Vec::new(); 256],
            ..WordIndex::default()
        };
        for (id, pattern) in patterns.iter().enumerate() {
            let parts = parts(pattern.as_ref())?;
            index.weights.push(
                parts
                    .iter()
                    .map(|p| p.literal.chars().count())
                    .sum::<usize>(),
            );
            if let Some(first) = parts.first() {
                let bytes = first.literal.as_bytes();
                let (head, tail) = (bytes[0], bytes[bytes.len() - 1]);
                match (first.open_before, first.open_after) {
                    (false, false) if !first.literal.contains('#') => index
                        .whole
                        .entry(first.literal.clone())
                        .or_default()
                        .push(id),
                    (false, _) => put(&mut index.from_front, head, id),
                    (true, false) => put(&mut index.from_back, tail, id),
                    (true, true) => put(&mut index.inside, head, id),
                }
            }
            index.words.push(parts);
        }
        Ok(index)
    }

    /// Calls `found` for each pattern that a text has, once for each place where it begins.
    pub(crate) fn find(&self, tokens: &[Token], mut found: impl FnMut(Hit)) {
        for at in 0..tokens.len() {
            let token = tokens[at].text.as_bytes();
            let (Some(head), Some(tail)) = (token.first(), token.last()) else {
                continue;
            };
            if let Some(ids) = self.whole.get(&tokens[at].text) {
                self.confirm(ids, tokens, at, &mut found);
            }
            self.confirm(&self.from_front[usize::from(*head)], tokens, at, &mut found);
            self.confirm(&self.from_back[usize::from(*tail)], tokens, at, &mut found);
            let mut tried = [0u64; 4];
            for byte in token {
                let (slot, bit) = (usize::from(*byte) / 64, 1u64 << (byte % 64));
                if tried[slot] & bit == 0 {
                    tried[slot] |= bit;
                    self.confirm(&self.inside[usize::from(*byte)], tokens, at, &mut found);
                }
            }
        }
    }

    fn confirm(&self, ids: &[usize], tokens: &[Token], at: usize, found: &mut impl FnMut(Hit)) {
        for &word in ids {
            let parts = &self.words[word];
            if at + parts.len() <= tokens.len()
                && parts
                    .iter()
                    .zip(&tokens[at..])
                    .all(|(p, t)| p.matches(&t.text))
            {
                found(Hit {
                    word,
                    weight: self.weights[word],
                    start: tokens[at].start,
                    end: tokens[at + parts.len() - 1].end,
                });
            }
        }
    }
}

/// A pattern is filed under a byte; one that begins or ends with `#` under every digit.
fn put(buckets: &mut [Vec<usize>], byte: u8, id: usize) {
    if byte == b'#' {
        for digit in b'0'..=b'9' {
            buckets[usize::from(digit)].push(id);
        }
    } else {
        buckets[usize::from(byte)].push(id);
    }
}

fn parts(pattern: &str) -> Result<Vec<PatternWord>, WordError> {
    let mut parts = Vec::new();
    for chunk in pattern.split_whitespace() {
        let open_before = chunk.starts_with('*');
        let open_after = chunk.len() > 1 && chunk.ends_with('*');
        let inner = chunk.trim_start_matches('*').trim_end_matches('*');
        if inner.contains('*') {
            return Err(WordError::StarInside(pattern.to_owned()));
        }
        let tokens = cut(inner, true);
        let last = tokens.len().saturating_sub(1);
        for (i, token) in tokens.into_iter().enumerate() {
            let part = PatternWord {
                literal: token.text,
                open_before: open_before && i == 0,
                open_after: open_after && i == last,
            };
            // A sign of Japanese or Chinese says as much as three letters, and takes three bytes.
            if (part.open_before || part.open_after) && part.literal.len() < 3 {
                return Err(WordError::TooShort(pattern.to_owned()));
            }
            parts.push(part);
        }
    }
    if parts.is_empty() {
        return Err(WordError::Empty(pattern.to_owned()));
    }
    Ok(parts)
}

/// Returns the words of a text.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    cut(text, false)
}

/// In a `pattern`, `#` belongs to a word, and a capital inside a word does not start a new one.
fn cut(text: &str, pattern: bool) -> Vec<Token> {
    let mut out = Vec::new();
    let mut open: Option<Token> = None;
    let mut after_lower = false;
    for (at, c) in text.char_indices() {
        // A combining accent belongs to the letter before it, which stays as it is.
        if ('\u{300}'..='\u{36f}').contains(&c) {
            continue;
        }
        let belongs = c.is_alphanumeric() || (pattern && c == '#');
        let border = !pattern && after_lower && c.is_uppercase();
        if (!belongs || border)
            && let Some(token) = open.take()
        {
            out.push(without_digraphs(token));
        }
        if belongs {
            let token = open.get_or_insert_with(|| Token {
                text: String::new(),
                start: at,
                end: at,
            });
            fold(c, &mut token.text);
            token.end = at + c.len_utf8();
        }
        after_lower = c.is_lowercase();
    }
    out.extend(open.map(without_digraphs));
    out
}

/// Writes `ae`, `oe` and `ue` as `a`, `o` and `u`, so that `Tuer` is `Tür`. Patterns are treated alike, so that other words with
/// these letters still match.
fn without_digraphs(mut token: Token) -> Token {
    for (two, one) in [("ae", "a"), ("oe", "o"), ("ue", "u")] {
        if token.text.contains(two) {
            token.text = token.text.replace(two, one);
        }
    }
    token
}

/// A letter in lower case and without its accent.
fn fold(c: char, into: &mut String) {
    if c.is_ascii() {
        into.push(c.to_ascii_lowercase());
        return;
    }
    for c in c.to_lowercase() {
        into.push_str(match c {
            'à' | 'á' | 'â' | 'ã' | 'ä' | 'å' => "a",
            'æ' => "ae",
            'ç' => "c",
            'è' | 'é' | 'ê' | 'ë' => "e",
            'ì' | 'í' | 'î' | 'ï' => "i",
            'ñ' => "n",
            'ò' | 'ó' | 'ô' | 'õ' | 'ö' | 'ø' => "o",
            'œ' => "oe",
            'ù' | 'ú' | 'û' | 'ü' => "u",
            'ý' | 'ÿ' => "y",
            'ß' => "ss",
            other => {
                into.push(other);
                continue;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, text: &str) -> bool {
        let index = WordIndex::new(&[pattern]).unwrap();
        let mut hit = false;
        index.find(&tokens(text), |_| hit = true);
        hit
    }

    #[test]
    fn texts_are_cut_into_folded_words() {
        let words = |t: &str| tokens(t).into_iter().map(|t| t.text).collect::<Vec<_>>();
        assert_eq!(words("MOER_M10"), ["mor", "m10"]);
        assert_eq!(
            words("Außenwand-Dämmung 120mm"),
            ["aussenwand", "dammung", "120mm"]
        );
        assert_eq!(
            words("Compound Ceiling:GypsumBoard"),
            ["compound", "ceiling", "gypsum", "board"]
        );
        assert_eq!(words("béton / BÉTON"), ["beton", "beton"]);
        assert_eq!(words("Da\u{308}mmung"), ["dammung"]);
        assert_eq!(words("Haustuer Daemmung"), ["haustur", "dammung"]);
        assert_eq!(words("外壁タイプA"), ["外壁タイプa"]);
        assert_eq!(words(" :: "), Vec::<String>::new());
    }

    #[test]
    fn a_pattern_says_how_much_of_a_word_it_is() {
        for (pattern, text, expected) in [
            ("wand", "Wand 12", true),
            ("wand", "Stahlbetonwand", false),
            ("*wand", "Stahlbetonwand", true),
            ("*wand", "Wandverkleidung", false),
            ("wand*", "Wandverkleidung", true),
            ("*beton*", "Stahlbetonwand", true),
            ("*beton*", "Beton", true),
            ("zand", "Kalkzandsteen", false),
            ("Dämmung", "DAMMUNG EPS", true),
            ("slab on grade", "150mm Exterior Slab-on-Grade", true),
            ("slab on grade", "slab of grade", false),
            ("C##/##", "Beton C30/37", true),
            ("C##/##", "Beton C8/10", false),
            ("S###*", "STEEL/S235JR", true),
            ("S###*", "SxyzJR", false),
            ("##mm", "16mm", true),
            ("*#er", "x7er", true),
            ("concrete block*", "Masonry - Concrete Blocks", true),
            ("stütze", "Stuetze 3", true),
            ("bauteil", "Bauteil", true),
            ("*外壁*", "標準外壁120", true),
            ("*内壁*", "標準外壁120", false),
        ] {
            assert_eq!(found(pattern, text), expected, "`{pattern}` in `{text}`");
        }
    }

    #[test]
    fn a_hit_says_where_it_is_and_how_much_it_fixes() {
        let index = WordIndex::new(&["beton*", "betonblok*", "C##/##"]).unwrap();
        let mut hits = Vec::new();
        let text = "Betonblok C20/25";
        index.find(&tokens(text), |h| hits.push(h));
        hits.sort_by_key(|h| h.word);
        let said: Vec<_> = hits
            .iter()
            .map(|h| (h.word, h.weight, &text[h.start..h.end]))
            .collect();
        assert_eq!(
            said,
            [(0, 5, "Betonblok"), (1, 9, "Betonblok"), (2, 5, "C20/25")]
        );
    }

    #[test]
    fn a_pattern_that_is_found_everywhere_is_refused() {
        let refused = |p: &str| WordIndex::new(&[p]).unwrap_err();
        assert_eq!(refused("  - "), WordError::Empty("  - ".into()));
        assert_eq!(refused("pe*"), WordError::TooShort("pe*".into()));
        assert_eq!(refused("be*ton"), WordError::StarInside("be*ton".into()));
    }
}
