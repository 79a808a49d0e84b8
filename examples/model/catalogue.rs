//! The two tables beside this file: kinds of elements, and what they are made of.

use std::collections::BTreeMap;
use std::io;

/// Where an element's volume can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figures {
    /// In a quantity set (`Qto_...`).
    Quantities,
    /// In a property set only, as Revit does.
    Dimensions,
    /// In a property set only, as Tekla does.
    Tekla,
    /// Nowhere.
    None,
}

/// What the material of an element hangs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// The type object.
    Type,
    /// The element, by a usage of the layer or profile set.
    Usage,
    /// The element itself.
    Occurrence,
}

/// One line of `kinds.csv`. Two elements of a kind ask a classifier the same question.
#[derive(Clone, Debug)]
pub struct Kind {
    /// Class without the prefix `Ifc`.
    pub class: String,
    /// Predefined type, or empty.
    pub predefined: String,
    /// Name of the elements, before their number.
    pub name: String,
    /// Name of the type object, or empty where there is none.
    pub type_name: String,
    /// Key of the construction and where it hangs; none where the model names no material.
    pub made_of: Option<(String, Holder)>,
    /// Property `LoadBearing`.
    pub bears: Option<bool>,
    /// Property `IsExternal`.
    pub outside: Option<bool>,
    /// Where the volume stands.
    pub figures: Figures,
    /// Classification by DIN 276, or empty.
    pub cost_group: String,
    /// Thickness in mm of what has no layers and no size of its own.
    pub thickness: Option<f64>,
}

/// The form of a construction.
#[derive(Clone, Debug)]
pub enum Form {
    /// One material.
    Single,
    /// Layers: thickness in mm, and the material where there is one.
    Layers(Vec<(f64, Option<String>)>),
    /// A profile: its kind, its sizes in mm, its material.
    Profile(String, Vec<f64>, String),
    /// Named constituents and their materials.
    Constituents(Vec<(String, String)>),
    /// A plain list of materials.
    List(Vec<String>),
}

/// One line of `materials.csv`.
#[derive(Clone, Debug)]
pub struct Construction {
    /// What it consists of.
    pub form: Form,
    /// Name of the material or of the set.
    pub name: String,
    /// What a revision builds instead: the key of another construction.
    pub alternative: String,
}

impl Construction {
    /// Sum of the layers in mm; none for what has no layers.
    pub fn thickness(&self) -> Option<f64> {
        match &self.form {
            Form::Layers(layers) => Some(layers.iter().map(|layer| layer.0).sum()),
            _ => None,
        }
    }
}

/// Both tables, by key.
pub struct Catalogue {
    kinds: BTreeMap<String, Kind>,
    constructions: BTreeMap<String, Construction>,
}

impl Catalogue {
    /// Reads the tables. An error names the line's key and what is wrong with it.
    pub fn read() -> io::Result<Self> {
        let kinds = rows(include_str!("kinds.csv"), |row| {
            let made_of = match (&row[5], &row[6]) {
                ("", _) => None,
                (key, "type") => Some((key.to_owned(), Holder::Type)),
                (key, "usage") => Some((key.to_owned(), Holder::Usage)),
                (key, "occurrence") => Some((key.to_owned(), Holder::Occurrence)),
                _ => return None,
            };
            Some(Kind {
                class: row[1].to_owned(),
                predefined: row[2].to_owned(),
                name: row[3].to_owned(),
                type_name: row[4].to_owned(),
                made_of,
                bears: answer(&row[7]).ok()?,
                outside: answer(&row[8]).ok()?,
                figures: match &row[9] {
                    "qto" => Figures::Quantities,
                    "dimensions" => Figures::Dimensions,
                    "tekla" => Figures::Tekla,
                    "none" => Figures::None,
                    _ => return None,
                },
                cost_group: row[10].to_owned(),
                thickness: match &row[11] {
                    "" => None,
                    thickness => Some(thickness.parse().ok()?),
                },
            })
        })?;
        let constructions = rows(include_str!("materials.csv"), |row| {
            Some(Construction {
                form: form(&row[1], &row[3])?,
                name: row[if &row[1] == "single" { 3 } else { 2 }].to_owned(),
                alternative: row[4].to_owned(),
            })
        })?;
        Ok(Self {
            kinds,
            constructions,
        })
    }

    /// The kind of that key.
    pub fn kind(&self, key: &str) -> io::Result<&Kind> {
        self.kinds.get(key).ok_or_else(|| missing("kinds.csv", key))
    }

    /// The construction of that key.
    pub fn construction(&self, key: &str) -> io::Result<&Construction> {
        self.constructions
            .get(key)
            .ok_or_else(|| missing("materials.csv", key))
    }
}

fn missing(table: &str, key: &str) -> io::Error {
    io::Error::other(format!(
        "{table} has no line {key:?}: add it, or mend the name"
    ))
}

fn rows<T>(
    text: &str,
    parse: impl Fn(&csv::StringRecord) -> Option<T>,
) -> io::Result<BTreeMap<String, T>> {
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(b';')
        .comment(Some(b'#'))
        .quoting(false)
        .from_reader(text.as_bytes());
    let mut found = BTreeMap::new();
    for row in reader.records() {
        let row = row?;
        let value = parse(&row)
            .ok_or_else(|| io::Error::other(format!("the line {:?} has a wrong word", &row[0])))?;
        found.insert(row[0].to_owned(), value);
    }
    Ok(found)
}

/// `yes`, `no`, or nothing where the model does not say; any other word is given back.
fn answer(word: &str) -> Result<Option<bool>, &str> {
    match word {
        "yes" => Ok(Some(true)),
        "no" => Ok(Some(false)),
        "" => Ok(None),
        other => Err(other),
    }
}

/// The form of a construction, from its name and its parts; none where they make no sense.
fn form(name: &str, parts: &str) -> Option<Form> {
    let listed = || parts.split('|').map(str::trim);
    Some(match name {
        "single" => Form::Single,
        "layers" => Form::Layers(
            listed()
                .map(|layer| {
                    let (thickness, material) = layer.split_once(' ')?;
                    let material = (material != "-").then(|| material.to_owned());
                    Some((thickness.parse().ok()?, material))
                })
                .collect::<Option<_>>()?,
        ),
        "profile" => {
            let (shape, mut rest) = parts.split_once(' ')?;
            let mut sizes = Vec::new();
            while let Some((word, after)) = rest.split_once(' ')
                && let Ok(size) = word.parse()
            {
                sizes.push(size);
                rest = after;
            }
            Form::Profile(shape.to_owned(), sizes, rest.to_owned())
        }
        "constituents" => Form::Constituents(
            listed()
                .map(|part| {
                    let (role, material) = part.split_once(" = ")?;
                    Some((role.to_owned(), material.to_owned()))
                })
                .collect::<Option<_>>()?,
        ),
        "list" => Form::List(listed().map(str::to_owned).collect()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::building::house;
    use super::super::revision::NEW;
    use super::*;

    #[test]
    fn every_line_of_the_tables_is_used_and_leads_on() {
        let catalogue = Catalogue::read().unwrap();
        let standing = house(6, 14_000.0, 10_000.0);
        let used: BTreeSet<&str> = standing
            .iter()
            .map(|part| part.kind)
            .chain(NEW.map(|(kind, _)| kind))
            .collect();
        let kinds: BTreeSet<&str> = catalogue.kinds.keys().map(String::as_str).collect();
        assert_eq!(used, kinds);
        for construction in catalogue.constructions.values() {
            catalogue.construction(&construction.alternative).unwrap();
        }
        for kind in catalogue.kinds.values() {
            if let Some((construction, _)) = &kind.made_of {
                catalogue.construction(construction).unwrap();
            }
        }
    }
}
