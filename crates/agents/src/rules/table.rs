//! The rules file as it is written: tables `[[rule]]` and `[[material]]`, and the words that they use.

use std::collections::BTreeMap;

use super::vocabulary::{Layer, Vocabulary};
#[cfg(debug_assertions)]
use super::word_schemas::{CategoryName, ElementTypeName, FunctionName, LocationName};
use serde::Deserialize;
use toml::Spanned;

/// A rules file: classifies elements by their properties in the model.
#[derive(Debug, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(debug_assertions, schemars(title = "Milepost rules file"))]
pub(super) struct RulesFile {
    /// Rules, tried from top to bottom; the first whose conditions all hold gives the answer.
    #[serde(default)]
    pub(super) rule: Vec<Rule>,
    /// Words that identify materials. If several match, the longest one is used, then the first in the file.
    #[serde(default)]
    pub(super) material: Vec<Material>,
    /// Evidence that contradicts answers. A contradicted answer is kept, with a confidence below 0.5 and the reason.
    #[serde(default)]
    pub(super) contradiction: Vec<Contradiction>,
    /// Words in the name of a part that make its material the primary one, such as `frame` for a window with parts.
    #[serde(default)]
    pub(super) leading_parts: Vec<String>,
    /// Named lists of words: `@inside` in a rule inserts the words of the list `inside`.
    #[serde(default)]
    pub(super) words: BTreeMap<String, Vec<String>>,
    /// The words of answers, instead of the default ones.
    pub(super) vocabulary: Option<Vocabulary>,
}

/// A rule that names a list which the file does not have.
pub(super) struct UnknownList {
    /// Byte of the rule's name.
    pub(super) at: usize,
    /// `rule NAME` or `contradiction ...`.
    pub(super) what: String,
    pub(super) message: String,
}

impl RulesFile {
    /// Puts the words of the lists in the place of their names.
    pub(super) fn expand_lists(&mut self) -> Result<(), UnknownList> {
        let lists = &self.words;
        let expand = |words: &mut Vec<String>| {
            let mut all = Vec::new();
            for word in words.drain(..) {
                match word.strip_prefix('@') {
                    None => all.push(word),
                    Some(list) => match lists.get(list) {
                        Some(words) => all.extend(words.iter().cloned()),
                        None => {
                            return Err(format!(
                                "there is no list of words `{list}`: write it in the table [words]"
                            ));
                        }
                    },
                }
            }
            *words = all;
            Ok(())
        };
        for rule in &mut self.rule {
            for words in [&mut rule.words, &mut rule.not, &mut rule.material_words] {
                expand(words).map_err(|message| UnknownList {
                    at: rule.name.span().start,
                    what: format!("rule {}", rule.name.get_ref()),
                    message,
                })?;
            }
        }
        for it in &mut self.contradiction {
            for words in [&mut it.words, &mut it.not] {
                expand(words).map_err(|message| UnknownList {
                    at: it.says.span().start,
                    what: format!("contradiction `{}`", it.says.get_ref()),
                    message,
                })?;
            }
        }
        Ok(())
    }
}

/// Evidence that contradicts answers of any rule.
#[derive(Debug, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Contradiction {
    /// The evidence in words, such as `called a wall`; the reasoning of an answer quotes it.
    #[cfg_attr(debug_assertions, schemars(with = "String"))]
    pub(super) says: Spanned<String>,
    /// The element types that it contradicts.
    #[cfg_attr(debug_assertions, schemars(with = "Vec<ElementTypeName>"))]
    pub(super) element_type: Vec<Spanned<String>>,
    /// Words to find in the type's name, the object type or the element's name; one is sufficient.
    #[serde(default)]
    pub(super) words: Vec<String>,
    /// Words that must not occur in the names that `words` searches.
    #[serde(default)]
    pub(super) not: Vec<String>,
    /// Codes of authored classifications, as in rules; a matching code is sufficient without a matching word.
    #[serde(default)]
    pub(super) code: Vec<String>,
    /// Categories that such elements cannot consist of, such as concrete for windows. The material keeps its name and loses its
    /// category; the confidence stays.
    #[serde(default)]
    #[cfg_attr(debug_assertions, schemars(with = "Vec<CategoryName>"))]
    pub(super) material: Vec<Spanned<String>>,
}

/// One rule. A condition that is not written always holds; a list holds if one of its values does.
#[derive(Debug, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    /// Unique name, quoted in answers: letters, digits and `-`.
    #[cfg_attr(debug_assertions, schemars(with = "String"))]
    pub(super) name: Spanned<String>,
    /// IFC types; `IfcWall*` is every type with this prefix.
    #[serde(default)]
    pub(super) ifc_type: Vec<String>,
    /// Predefined types.
    #[serde(default)]
    pub(super) predefined_type: Vec<String>,
    /// LoadBearing of the element's property sets.
    pub(super) load_bearing: Option<bool>,
    /// IsExternal of the element's property sets.
    pub(super) external: Option<bool>,
    /// True if the storey is below the ground.
    pub(super) below_ground: Option<bool>,
    /// Upper bound of the total thickness of the layers, in metres. An element without layers does not match.
    pub(super) thinner_than: Option<f64>,
    /// Lower bound of the total thickness of the layers, in metres. An element without layers does not match.
    pub(super) thicker_than: Option<f64>,
    /// Words of which at least one must occur in the type's name, the object type or the element's name.
    #[serde(default)]
    pub(super) words: Vec<String>,
    /// Words that must not occur in the names that `words` searches.
    #[serde(default)]
    pub(super) not: Vec<String>,
    /// Categories of the primary material.
    #[serde(default)]
    #[cfg_attr(debug_assertions, schemars(with = "Vec<CategoryName>"))]
    pub(super) material: Vec<Spanned<String>>,
    /// Words of which at least one must occur in the names of its materials.
    #[serde(default)]
    pub(super) material_words: Vec<String>,
    /// Codes of authored classifications. `Ss_25*` matches every code with this prefix, `DIN 276: 33*` only those of this system.
    #[serde(default)]
    pub(super) code: Vec<String>,
    /// The answer.
    pub(super) answer: RuleAnswer,
    /// Confidence of the answer, from 0 to 1, if the evidence is explicit. At most 0.7 if the name of a type is the evidence, 0.5 if the element's own name is, 0.8 if no material is named.
    #[cfg_attr(debug_assertions, schemars(range(min = 0, max = 1)))]
    pub(super) confidence: f64,
}

/// The answer of a rule.
#[derive(Debug, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct RuleAnswer {
    /// The type of the element.
    #[cfg_attr(debug_assertions, schemars(with = "ElementTypeName"))]
    pub(super) element_type: Spanned<String>,
    /// Function. Default: that of the element type.
    #[cfg_attr(debug_assertions, schemars(with = "Option<FunctionName>"))]
    pub(super) function: Option<Spanned<String>>,
    /// Location. Default: by type, IsExternal and storey.
    #[cfg_attr(debug_assertions, schemars(with = "Option<LocationName>"))]
    pub(super) location: Option<Spanned<String>>,
    /// If true, names can supply a material that the model lacks. Default: true.
    #[serde(default = "yes")]
    pub(super) infer_material: bool,
    /// If there are several materials without thickness, the first category of this list that occurs is the primary one. Names can supply only these categories: for `Glass Door - Oak` the leaf, not the pane.
    #[serde(default)]
    #[cfg_attr(debug_assertions, schemars(with = "Vec<CategoryName>"))]
    pub(super) prefer_material: Vec<Spanned<String>>,
}

fn yes() -> bool {
    true
}

/// Words that identify a material.
#[derive(Debug, Deserialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Material {
    /// The category that these words identify.
    #[cfg_attr(debug_assertions, schemars(with = "CategoryName"))]
    pub(super) category: Spanned<String>,
    /// Subcategory.
    pub(super) subcategory: Option<String>,
    /// The role of such a layer in a wall or slab. Default: that of its category.
    pub(super) layer: Option<Layer>,
    /// If true, words of any other table win, even shorter ones. Default: false.
    #[serde(default)]
    pub(super) general: bool,
    /// Words to find in a name; one is sufficient.
    #[serde(default)]
    pub(super) words: Vec<String>,
    /// Words that exclude a match.
    #[serde(default)]
    pub(super) not: Vec<String>,
    /// Words that identify the category and become the subcategory, such as `C##/##`.
    #[serde(default)]
    pub(super) grades: Vec<String>,
}

/// Returns the JSON Schema (2020-12) of a rules file, for editors.
#[cfg(debug_assertions)]
pub fn rules_schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(RulesFile);
    schema.insert("$id".to_owned(), "rules.schema.json".into());
    schema.to_value()
}
