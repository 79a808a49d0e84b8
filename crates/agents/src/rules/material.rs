//! Materials: names to categories by the words of the table, and layers to the one that an element is counted by.

use serde_json::{Value, json};
use std::cmp::Reverse;

use super::table::Material;
use super::vocabulary::{Layer, Vocabulary, Word};
use super::words::{Hit, Token, WordError, WordIndex, tokens};

/// The `[[material]]` tables, compiled.
#[derive(Debug)]
pub(super) struct Materials {
    entries: Vec<MaterialEntry>,
    /// The category of what no word tells.
    unknown: Word,
    index: WordIndex,
    owners: Vec<(usize, Sense)>,
    /// The words of parts that lead the others.
    leading_parts: WordIndex,
}

#[derive(Debug)]
struct MaterialEntry {
    category: Word,
    subcategory: Option<String>,
    layer: Layer,
    general: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sense {
    Word,
    Grade,
    Not,
}

/// A part of an element, such as the frame of a window.
#[derive(Debug, PartialEq)]
pub(super) struct ElementPart<'a> {
    pub(super) material: &'a str,
    name: Option<&'a str>,
    /// Of the volume, 0 to 1.
    fraction: Option<f64>,
}

impl<'a> ElementPart<'a> {
    /// Reads a part; one without a material says nothing.
    pub(super) fn of(value: &'a Value) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        Some(Self {
            material: text("material").filter(|name| !name.trim().is_empty())?,
            name: text("part"),
            fraction: value.get("fraction").and_then(Value::as_f64),
        })
    }
}

/// The material that a name identifies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KnownMaterial {
    pub(crate) category: Word,
    pub(crate) subcategory: Option<String>,
    pub(crate) layer: Layer,
    /// Words of any other entry say more.
    general: bool,
}

/// The materials of an element, with the primary one chosen.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Chosen {
    pub(crate) primary: Option<Value>,
    pub(crate) secondary: Vec<Value>,
    /// Category of the primary material.
    pub(crate) category: Option<Word>,
    /// Why this one, as a clause of a sentence.
    pub(crate) because: Option<String>,
    pub(crate) assumed: Vec<String>,
}

impl Chosen {
    /// Keeps the primary material by its name, without the category that it seemed to have.
    pub(super) fn withdraw_category(&mut self, unknown: &str) {
        if let Some(category) = self.primary.as_mut().and_then(|it| it.get_mut("category")) {
            *category = unknown.into();
        }
        self.category = None;
        self.because = None;
    }
}

impl Materials {
    pub(super) fn compile(
        tables: Vec<Material>,
        leading_parts: WordIndex,
        vocabulary: &Vocabulary,
    ) -> Result<Materials, (usize, WordError)> {
        let mut entries = Vec::new();
        let mut words = Vec::new();
        let mut owners = Vec::new();
        for (at, table) in tables.into_iter().enumerate() {
            for (list, sense) in [
                (table.words, Sense::Word),
                (table.grades, Sense::Grade),
                (table.not, Sense::Not),
            ] {
                for word in list {
                    WordIndex::new(&[&word]).map_err(|e| (at, e))?;
                    words.push(word);
                    owners.push((at, sense));
                }
            }
            let category: Word = table.category.into_inner().into();
            entries.push(MaterialEntry {
                layer: table.layer.unwrap_or(vocabulary.layer(&category)),
                category,
                subcategory: table.subcategory,
                general: table.general,
            });
        }
        let index = WordIndex::new(&words).map_err(|e| (0, e))?;
        Ok(Materials {
            entries,
            unknown: vocabulary.unknown.as_str().into(),
            index,
            owners,
            leading_parts,
        })
    }

    /// Returns the entry with the longest word in the name; among equal lengths, the one that is declared first. A general entry
    /// counts only if no other matches.
    pub(super) fn known(&self, name: &str) -> Option<KnownMaterial> {
        self.known_by(name, &tokens(name))
    }

    pub(super) fn known_by(&self, name: &str, words: &[Token]) -> Option<KnownMaterial> {
        let hits = self.hits(words);
        Some(self.told_by(hits.first()?, &hits, name))
    }

    /// Returns the words found in a name, the one that tells most first. Words of an entry that another word forbids are left out.
    fn hits(&self, words: &[Token]) -> Vec<Hit> {
        let mut hits = Vec::new();
        self.index.find(words, |hit| hits.push(hit));
        let owner = |hit: &Hit| self.owners[hit.word];
        let forbidden: Vec<usize> = hits
            .iter()
            .map(owner)
            .filter(|(_, sense)| *sense == Sense::Not)
            .map(|(entry, _)| entry)
            .collect();
        hits.retain(|hit| !forbidden.contains(&owner(hit).0));
        hits.sort_by_key(|hit| {
            let entry = owner(hit).0;
            (self.entries[entry].general, Reverse(hit.weight), entry)
        });
        hits
    }

    /// Returns the material that a word of a name identifies, with the grade next to it.
    fn told_by(&self, hit: &Hit, all: &[Hit], name: &str) -> KnownMaterial {
        let entry = &self.entries[self.owners[hit.word].0];
        let grade = all
            .iter()
            .filter(|h| {
                let (owner, sense) = self.owners[h.word];
                sense == Sense::Grade && self.entries[owner].category == entry.category
            })
            .max_by_key(|h| h.weight);
        KnownMaterial {
            category: Word::clone(&entry.category),
            subcategory: grade
                .map(|h| name[h.start..h.end].to_uppercase())
                .or_else(|| entry.subcategory.clone()),
            layer: entry.layer,
            general: entry.general,
        }
    }

    /// Returns true if a material's name identifies only a general category, such as `Metall`.
    pub(super) fn is_general(&self, name: &str) -> bool {
        self.known(name).is_some_and(|known| known.general)
    }

    /// Chooses among layers: the thickest structural one, else the thickest solid one, else the thickest filling.
    ///
    /// Layers of one material count together; percentages are shares of the whole thickness, air included, so that they can
    /// be multiplied with a volume. A layer whose name tells nothing leads if it is thicker than the one that would, or if that is
    /// only a filling. Of two solid layers of different categories that are equally thick, none leads.
    pub(super) fn of_layers(&self, layers: &[(Option<&str>, f64)]) -> Chosen {
        let mut sums: Vec<(&str, Option<KnownMaterial>, f64)> = Vec::new();
        let mut unnamed = 0.0;
        for (name, thickness) in layers {
            let Some(name) = name else {
                unnamed += thickness;
                continue;
            };
            match sums.iter_mut().find(|(n, ..)| n == name) {
                Some((.., sum)) => *sum += thickness,
                None => sums.push((name, self.known(name), *thickness)),
            }
        }
        let total: f64 = unnamed + sums.iter().map(|(.., t)| t).sum::<f64>();
        if sums.is_empty() || total <= 0.0 {
            return self.of_names(&sums.iter().map(|(n, ..)| *n).collect::<Vec<_>>(), &[]);
        }
        let strength = |known: &Option<KnownMaterial>| {
            known.as_ref().map_or(Layer::Never, |known| known.layer)
        };
        let best = sums
            .iter()
            .enumerate()
            .filter(|(_, (_, known, _))| strength(known) != Layer::Never)
            .max_by(|(a, (_, ka, ta)), (b, (_, kb, tb))| {
                strength(ka)
                    .cmp(&strength(kb))
                    .then(ta.total_cmp(tb))
                    .then(b.cmp(a))
            });
        let unknown = sums
            .iter()
            .enumerate()
            .filter(|(_, (_, known, _))| known.is_none())
            .max_by(|(a, (.., ta)), (b, (.., tb))| ta.total_cmp(tb).then(b.cmp(a)));
        let leader = match (best, unknown) {
            (Some((_, (_, known, t))), Some((u, (.., tu))))
                if tu > t || strength(known) == Layer::Filling =>
            {
                Some(u)
            }
            (Some((b, best)), _) => {
                let equal = |other: &(&str, Option<KnownMaterial>, f64)| {
                    strength(&other.1) == Layer::Solid
                        && strength(&best.1) == Layer::Solid
                        && other.2 >= best.2
                        && other.1.as_ref().map(|k| &k.category)
                            != best.1.as_ref().map(|k| &k.category)
                };
                (!sums.iter().any(equal)).then_some(b)
            }
            (None, unknown) => unknown.map(|(u, _)| u),
        };
        let share = |t: f64| (t / total * 1000.0).round() / 10.0;
        let mut chosen = Chosen::default();
        for (at, (name, known, thickness)) in sums.iter().enumerate() {
            let value = self.material(name, known.as_ref(), Some(share(*thickness)));
            if Some(at) == leader {
                chosen.category = known.as_ref().map(|k| Word::clone(&k.category));
                chosen.primary = Some(value);
                chosen.because = Some(format!(
                    "{} by its layer `{name}`, {} of {} mm",
                    word_of(known.as_ref()),
                    millimetres(*thickness),
                    millimetres(total)
                ));
            } else {
                chosen.secondary.push(value);
            }
        }
        if leader.is_none() && best.is_some() {
            chosen.assumed.push(
                "layers of equal thickness, of which none leads: no primary material".to_owned(),
            );
        }
        if unnamed > 0.0 {
            chosen.assumed.push(format!(
                "{} mm of the layers have no material",
                millimetres(unnamed)
            ));
        }
        chosen
    }

    /// Chooses among parts: the first that leads by its name and is not filling, else the one with more than half of the volume,
    /// else as among names.
    pub(super) fn of_parts(&self, parts: &[ElementPart], prefer: &[Word]) -> Chosen {
        let leads = |part: &ElementPart| {
            let mut leads = false;
            let words = tokens(part.name.unwrap_or_default());
            self.leading_parts.find(&words, |_| leads = true);
            leads
        };
        let fractions: Option<Vec<f64>> = parts.iter().map(|part| part.fraction).collect();
        let largest = fractions.and_then(|all| all.iter().position(|one| *one > 0.5));
        let names: Vec<&str> = parts.iter().map(|part| part.material).collect();
        let known = self.all_known(&names);
        // The core of a fire door is of mineral wool, and the door is of steel.
        let filling = |(_, one): &(&str, Option<KnownMaterial>)| {
            one.as_ref().is_some_and(|one| one.layer <= Layer::Filling)
        };
        let leading = parts
            .iter()
            .zip(&known)
            .position(|(part, one)| leads(part) && !filling(one));
        let Some(first) = leading.or(largest) else {
            return self.of_names(&names, prefer);
        };
        let mut chosen = self.led_by(&known, Some(first));
        if let Some(part) = parts[first].name {
            chosen.because = chosen
                .because
                .map(|because| format!("{because} of the part `{part}`"));
        }
        chosen
    }

    /// Chooses among names without thickness: the only category that all of them tell, fillings aside, else the
    /// first of the preferred ones that is there.
    pub(super) fn of_names(&self, names: &[&str], prefer: &[Word]) -> Chosen {
        let known = self.all_known(names);
        let solid = known
            .iter()
            .any(|(_, k)| k.as_ref().is_some_and(|k| k.layer > Layer::Filling));
        let least = if solid { Layer::Solid } else { Layer::Filling };
        let mut categories: Vec<&Word> = known
            .iter()
            .filter_map(|(_, k)| k.as_ref())
            .filter(|k| k.layer >= least)
            .map(|k| &k.category)
            .collect();
        categories.sort_unstable();
        categories.dedup();
        // An unknown name may be the main material, so the other names do not lead by themselves.
        let all_known = known.iter().all(|(_, k)| k.is_some());
        let lead = match categories.as_slice() {
            [only] if all_known => Some(*only),
            several => prefer.iter().find(|p| several.contains(p)),
        };
        let first = known
            .iter()
            .position(|(_, k)| lead.is_some() && k.as_ref().map(|k| &k.category) == lead)
            .or((names.len() == 1).then_some(0));
        let mut chosen = self.led_by(&known, first);
        if chosen.primary.is_none() && !names.is_empty() {
            chosen.assumed.push(
                "several materials without thickness, of which none leads: no primary material"
                    .to_owned(),
            );
        } else if names.len() > 1 && (categories.len() > 1 || !all_known) {
            chosen.assumed.push(format!(
                "several materials without thickness: {} leads by the kind of element",
                word_of(lead_known(&known, first))
            ));
        }
        chosen
    }

    fn all_known<'n>(&self, names: &[&'n str]) -> Vec<(&'n str, Option<KnownMaterial>)> {
        names.iter().map(|n| (*n, self.known(n))).collect()
    }

    /// Returns the materials with the one at `first` as the primary one.
    fn led_by(&self, known: &[(&str, Option<KnownMaterial>)], first: Option<usize>) -> Chosen {
        let mut chosen = Chosen::default();
        for (at, (name, one)) in known.iter().enumerate() {
            let whole = (known.len() == 1).then_some(100.0);
            let value = self.material(name, one.as_ref(), whole);
            if Some(at) == first {
                chosen.category = one.as_ref().map(|k| Word::clone(&k.category));
                chosen.because = Some(format!(
                    "{} by its material `{name}`",
                    word_of(one.as_ref())
                ));
                chosen.primary = Some(value);
            } else {
                chosen.secondary.push(value);
            }
        }
        chosen
    }

    /// A material that only a name of the element or its type tells, one of the preferred ones where there are any. A name that tells
    /// several, such as `Stahlträger in Beton`, tells none; fillings count only where there is nothing else.
    pub(super) fn inferred(
        &self,
        text: &str,
        words: &[Token],
        prefer: &[Word],
    ) -> Option<(Word, Value)> {
        let hits = self.hits(words);
        let mut told: Vec<(&Hit, KnownMaterial)> = Vec::new();
        for hit in &hits {
            let apart = |other: &Hit| hit.end <= other.start || other.end <= hit.start;
            if told.iter().all(|(other, _)| apart(other)) {
                told.push((hit, self.told_by(hit, &hits, text)));
            }
        }
        told.retain(|(_, known)| {
            known.category != self.unknown
                && (prefer.is_empty() || prefer.contains(&known.category))
        });
        let specific = told.iter().any(|(_, known)| !known.general);
        let most = told
            .iter()
            .map(|(_, known)| known.layer.max(Layer::Filling));
        let least = most.max()?.min(Layer::Solid);
        let mut leads = told
            .into_iter()
            .map(|(_, known)| known)
            .filter(|known| known.layer >= least && known.general != specific);
        let known = leads.next()?;
        if leads.any(|other| other.category != known.category) {
            return None;
        }
        let value = self.material(text, Some(&known), Some(100.0));
        Some((known.category, value))
    }

    fn material(
        &self,
        name: &str,
        known: Option<&KnownMaterial>,
        percentage: Option<f64>,
    ) -> Value {
        json!({
            "name": name,
            "category": known.map_or(&*self.unknown, |known| &*known.category),
            "subcategory": known.and_then(|known| known.subcategory.clone()),
            "percentage": percentage,
        })
    }
}

fn lead_known<'a>(
    known: &'a [(&str, Option<KnownMaterial>)],
    first: Option<usize>,
) -> Option<&'a KnownMaterial> {
    known.get(first?)?.1.as_ref()
}

fn word_of(known: Option<&KnownMaterial>) -> &str {
    known.map_or("of no known category", |k| &k.category)
}

/// Metres as millimetres, without a fraction that is zero.
pub(super) fn millimetres(metres: f64) -> String {
    let mm = (metres * 10_000.0).round() / 10.0;
    if mm.fract() == 0.0 {
        format!("{mm:.0}")
    } else {
        format!("{mm:.1}")
    }
}
