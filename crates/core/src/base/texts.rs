//! Many texts in one allocation.

/// Texts, stored one after another in one string.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Texts {
    all: String,
    ends: Vec<usize>,
}

impl Texts {
    /// Adds a text.
    pub fn add(&mut self, text: &str) {
        self.all.push_str(text);
        self.ends.push(self.all.len());
    }

    /// Returns the total length in bytes.
    pub fn length(&self) -> usize {
        self.all.len()
    }

    /// Returns the number of texts.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// Returns each text.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(&0).chain(&self.ends);
        let ranges = starts.zip(&self.ends);
        ranges.map(|(start, end)| &self.all[*start..*end])
    }
}

impl<'t> FromIterator<&'t str> for Texts {
    fn from_iter<T: IntoIterator<Item = &'t str>>(texts: T) -> Self {
        let mut all = Self::default();
        texts.into_iter().for_each(|text| all.add(text));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back() {
        let texts: Texts = ["ä", "", "b"].into_iter().collect();
        assert_eq!(texts.iter().collect::<Vec<_>>(), ["ä", "", "b"]);
        assert_eq!((texts.count(), texts.length()), (3, 3));
    }
}
