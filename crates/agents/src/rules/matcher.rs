//! One question against the rules: which rule answers, on what evidence, and how sure that makes it.

use serde_json::{Map, Value};
use toml::Spanned;

use super::codes::glob;
use super::material::{Chosen, Materials, millimetres};
use super::question::ElementQuestion;
use super::table::{Contradiction, Rule};
use super::vocabulary::{Vocabulary, Word};
use super::words::{Token, WordError, WordIndex, tokens};

/// Confidence that evidence by the name of a type, an element's own name, or no named material allows at most.
const BY_TYPE_NAME: f64 = 0.70;
const BY_NAME: f64 = 0.50;
const BY_PROPERTY_MATERIAL: f64 = 0.85;
const WITHOUT_MATERIAL: f64 = 0.80;
const NO_RULE: f64 = 0.30;
const CONTRADICTED: f64 = 0.45;

/// Where the material comes from if the model names several, and none is the primary one.
const NONE_LEADS: &str = "none leads";

/// The `[[rule]]` tables, compiled.
#[derive(Debug)]
pub(super) struct Matcher {
    rules: Vec<Compiled>,
    index: WordIndex,
    words: Vec<String>,
    contradictions: Vec<CompiledContradiction>,
    vocabulary: Vocabulary,
}

#[derive(Debug)]
struct CompiledContradiction {
    says: String,
    element_types: Vec<String>,
    code: Vec<String>,
    words: Vec<usize>,
    not: Vec<usize>,
    /// Categories that the element types are not made of.
    material: Vec<String>,
}

#[derive(Debug)]
struct Compiled {
    rule: Rule,
    /// Of several materials, the first of these categories leads.
    prefer: Vec<Word>,
    /// Positions of its words and forbidden words in the index.
    words: Vec<usize>,
    not: Vec<usize>,
    material_words: Vec<usize>,
}

/// The words found in a question: by the names of its type, by its own name, and by its materials.
struct FoundWords {
    types: Vec<bool>,
    own: Vec<bool>,
    materials: Vec<bool>,
}

/// Which rule answered, and on what.
struct Matched<'m> {
    compiled: &'m Compiled,
    evidence: Vec<String>,
    most: f64,
}

impl Matcher {
    /// The positions of errors are those of `rules`, and behind them of `contradictions`.
    pub(super) fn compile(
        rules: Vec<Rule>,
        contradictions: Vec<Contradiction>,
        vocabulary: Vocabulary,
    ) -> Result<Matcher, (usize, WordError)> {
        let mut words: Vec<String> = Vec::new();
        let mut place = |at: usize, list: &[String]| {
            list.iter()
                .map(|word| {
                    WordIndex::new(&[word]).map_err(|e| (at, e))?;
                    Ok(words.iter().position(|w| w == word).unwrap_or_else(|| {
                        words.push(word.clone());
                        words.len() - 1
                    }))
                })
                .collect::<Result<Vec<_>, _>>()
        };
        let mut compiled = Vec::new();
        for (at, rule) in rules.into_iter().enumerate() {
            let (has, not) = (place(at, &rule.words)?, place(at, &rule.not)?);
            let material_words = place(at, &rule.material_words)?;
            let prefer = rule.answer.prefer_material.iter();
            let prefer = prefer.map(|word| word.get_ref().as_str().into()).collect();
            compiled.push(Compiled {
                rule,
                prefer,
                words: has,
                not,
                material_words,
            });
        }
        let mut contradicting = Vec::new();
        for (at, one) in contradictions.into_iter().enumerate() {
            let at = compiled.len() + at;
            contradicting.push(CompiledContradiction {
                words: place(at, &one.words)?,
                not: place(at, &one.not)?,
                says: one.says.into_inner(),
                element_types: one
                    .element_type
                    .into_iter()
                    .map(Spanned::into_inner)
                    .collect(),
                code: one.code,
                material: one.material.into_iter().map(Spanned::into_inner).collect(),
            });
        }
        let index = WordIndex::new(&words).map_err(|e| (0, e))?;
        Ok(Matcher {
            rules: compiled,
            index,
            words,
            contradictions: contradicting,
            vocabulary,
        })
    }

    pub(super) fn answer(&self, question: &ElementQuestion, materials: &Materials) -> Value {
        let names = NameTokens::of(question);
        let found = self.find(&names, question);
        let stated = stated(question, materials, &[]);
        let matched = self.matched(question, &found, stated.chosen.category.as_deref());
        let compiled = matched.as_ref().map(|m| m.compiled);
        let rule = compiled.map(|compiled| &compiled.rule);
        let mut said = self.finish(
            question,
            materials,
            &names,
            stated,
            compiled,
            matched.as_ref().map_or(NO_RULE, |m| m.most),
        );
        let answer = rule.map(|r| &r.answer);
        let words = &self.vocabulary;
        let name = answer.map_or(words.unknown.as_str(), |a| a.element_type.get_ref());
        let element_type = words.element_type(name);
        let function = answer
            .and_then(|a| a.function.as_ref())
            .map(|function| function.get_ref().as_str())
            .or_else(|| element_type.map(|it| it.function.as_str()));
        let location = answer
            .and_then(|a| a.location.as_ref())
            .map(|location| location.get_ref().as_str())
            .or_else(|| element_type.and_then(|it| it.location.as_deref()))
            .or_else(|| self.location_of(question));
        let rule_name = rule.map_or("no-rule", |r| r.name.get_ref());
        if let Some(reason) = self.not_made_of(name, said.chosen.category.as_deref()) {
            said.chosen.assumed.push(reason);
            said.chosen.withdraw_category(&self.vocabulary.unknown);
        }
        if let Some(evidence) = self.contradicted(name, question, &found) {
            said.confidence = said.confidence.min(CONTRADICTED);
            said.chosen
                .assumed
                .push(format!("contradictory evidence: {evidence}"));
        }
        let reasoning = match &matched {
            Some(m) => format!(
                "rule {rule_name}: {}{}",
                m.evidence.join(", "),
                said.clause()
            ),
            None => format!("no rule matched: {}{}", question.ifc_type, said.clause()),
        };
        let mut missing = Vec::new();
        if said.chosen.primary.is_none() {
            missing.push("material");
        }
        let mut out = Map::new();
        out.insert("element_type".into(), name.into());
        out.insert("function".into(), function.into());
        out.insert("location".into(), location.into());
        out.insert("confidence".into(), round(said.confidence).into());
        out.insert("data_quality".into(), {
            let mut quality = Map::new();
            quality.insert("material_from".into(), said.from.into());
            quality.insert("missing".into(), missing.into());
            quality.insert("assumed".into(), said.chosen.assumed.into());
            quality.into()
        });
        out.insert("reasoning".into(), reasoning.into());
        out.insert("rule".into(), rule_name.into());
        out.insert("material_primary".into(), said.chosen.primary.into());
        out.insert("material_secondary".into(), said.chosen.secondary.into());
        Value::Object(out)
    }

    fn find(&self, names: &NameTokens, q: &ElementQuestion) -> FoundWords {
        let mut found = FoundWords {
            types: vec![false; self.words.len()],
            own: vec![false; self.words.len()],
            materials: vec![false; self.words.len()],
        };
        for name in q.material_names() {
            self.index
                .find(&tokens(name), |hit| found.materials[hit.word] = true);
        }
        for words in &names.of_type {
            self.index
                .find(&words.1, |hit| found.types[hit.word] = true);
        }
        for words in &names.own {
            self.index.find(&words.1, |hit| found.own[hit.word] = true);
        }
        found
    }

    /// Returns the evidence that contradicts the answer `element_type`.
    fn contradicted(
        &self,
        element_type: &str,
        q: &ElementQuestion,
        found: &FoundWords,
    ) -> Option<String> {
        let in_names = |word: &usize| found.types[*word] || found.own[*word];
        self.contradictions
            .iter()
            .filter(|it| it.element_types.iter().any(|one| one == element_type))
            .filter(|it| !it.not.iter().any(in_names))
            .find_map(|it| {
                let says = &it.says;
                if let Some(word) = it.words.iter().find(|word| in_names(word)) {
                    return Some(format!("{says} by the word `{}`", self.words[*word]));
                }
                let code = q
                    .classifications
                    .iter()
                    .find(|code| code.fits_any(&it.code))?;
                Some(format!("{says} by the code {}", code.code))
            })
    }

    /// Why an element of this type cannot be made of such a material.
    fn not_made_of(&self, element_type: &str, category: Option<&str>) -> Option<String> {
        let category = category?;
        let mut all = self.contradictions.iter();
        all.find(|it| {
            it.element_types.iter().any(|one| one == element_type)
                && it.material.iter().any(|one| one == category)
        })
        .map(|it| format!("implausible material: {category} is {}", it.says))
    }

    fn matched<'m>(
        &'m self,
        q: &ElementQuestion,
        found: &FoundWords,
        material: Option<&str>,
    ) -> Option<Matched<'m>> {
        self.rules
            .iter()
            .find_map(|compiled| self.holds(compiled, q, found, material))
    }

    /// Returns the evidence for which a rule holds; `None` if it does not.
    fn holds<'m>(
        &'m self,
        compiled: &'m Compiled,
        q: &ElementQuestion,
        found: &FoundWords,
        material: Option<&str>,
    ) -> Option<Matched<'m>> {
        let rule = &compiled.rule;
        let listed =
            |list: &[String], value: &str| list.is_empty() || list.iter().any(|p| glob(p, value));
        if !listed(&rule.ifc_type, q.ifc_type)
            || (!rule.predefined_type.is_empty()
                && !q
                    .predefined_type
                    .is_some_and(|p| rule.predefined_type.iter().any(|r| r == p)))
            || (rule.load_bearing.is_some() && rule.load_bearing != q.load_bearing)
            || (rule.external.is_some() && rule.external != q.external)
            || (rule.below_ground.is_some()
                && rule.below_ground != Some(q.below_ground == Some(true)))
            || rule
                .thinner_than
                .is_some_and(|limit| !q.thickness().is_some_and(|all| all < limit))
            || rule
                .thicker_than
                .is_some_and(|limit| !q.thickness().is_some_and(|all| all > limit))
            || (!rule.material.is_empty()
                && !material.is_some_and(|m| rule.material.iter().any(|it| it.get_ref() == m)))
            || compiled
                .not
                .iter()
                .any(|w| found.types[*w] || found.own[*w])
        {
            return None;
        }
        let named = compiled.material_words.iter();
        let mut named = named.filter(|word| found.materials[**word]);
        let named = named.next();
        if named.is_none() && !compiled.material_words.is_empty() {
            return None;
        }
        let code = if rule.code.is_empty() {
            None
        } else {
            Some(
                q.classifications
                    .iter()
                    .find(|it| it.fits_any(&rule.code))?,
            )
        };
        let mut evidence = vec![q.ifc_type.to_owned()];
        let mut most = rule.confidence;
        if let (false, Some(p)) = (rule.predefined_type.is_empty(), q.predefined_type) {
            evidence.push(format!("predefined type {p}"));
        }
        for (name, wanted) in [
            ("LoadBearing", rule.load_bearing),
            ("IsExternal", rule.external),
        ] {
            if let Some(value) = wanted {
                evidence.push(format!("{name} is {value}"));
            }
        }
        if rule.below_ground == Some(true) {
            evidence.push("storey below the ground".to_owned());
        }
        if (rule.thinner_than.is_some() || rule.thicker_than.is_some())
            && let Some(all) = q.thickness()
        {
            evidence.push(format!("{} mm thick", millimetres(all)));
        }
        if let Some(code) = code {
            evidence.push(format!("classified as {}", code.code));
        }
        if let Some(word) = named {
            evidence.push(format!("a material's name has `{}`", self.words[*word]));
        }
        if !rule.material.is_empty() {
            evidence.push(format!("material is {}", material.unwrap_or_default()));
        }
        if !compiled.words.is_empty() {
            let by_type = compiled.words.iter().find(|w| found.types[**w]);
            let by_name = compiled.words.iter().find(|w| found.own[**w]);
            match (by_type, by_name) {
                (Some(w), _) => {
                    evidence.push(format!("the type's name has `{}`", self.words[*w]));
                    most = most.min(BY_TYPE_NAME);
                }
                (None, Some(w)) => {
                    evidence.push(format!("the name has `{}`", self.words[*w]));
                    most = most.min(BY_NAME);
                }
                (None, None) => return None,
            }
        }
        Some(Matched {
            compiled,
            evidence,
            most,
        })
    }

    /// Settles the material once the rule is known: by its preference, else by what the names tell.
    #[expect(clippy::too_many_arguments)]
    fn finish(
        &self,
        q: &ElementQuestion,
        materials: &Materials,
        names: &NameTokens,
        mut said: MaterialFinding,
        compiled: Option<&Compiled>,
        most: f64,
    ) -> MaterialFinding {
        let prefer = compiled.map_or(&[][..], |compiled| &compiled.prefer);
        if said.chosen.primary.is_none() && !prefer.is_empty() {
            said = stated(q, materials, prefer);
        }
        // Several materials, no primary: a name could only guess among them.
        let several = said.chosen.primary.is_none() && !said.chosen.secondary.is_empty();
        if said.chosen.category.is_none()
            && !several
            && compiled.is_some_and(|compiled| {
                let answer = &compiled.rule.answer;
                answer.infer_material && *answer.element_type.get_ref() != self.vocabulary.unknown
            })
            && let Some((limit, from, text, category, value)) = inferred(materials, names, prefer)
        {
            said.chosen.secondary.extend(said.chosen.primary.take());
            said.chosen.primary = Some(value);
            said.chosen.because = Some(format!("{category} by the {from} `{text}`"));
            said.chosen.category = Some(category);
            said.chosen
                .assumed
                .push(format!("material by the {from}: the model names none"));
            said.from = Some(from.to_owned());
            said.confidence = limit;
        } else if said.chosen.category.is_none() {
            said.confidence = WITHOUT_MATERIAL;
            if said.chosen.primary.is_some() {
                said.chosen
                    .assumed
                    .push("no word tells what the material is".to_owned());
            }
        }
        if let Some(reason) = at_odds(&said.chosen, materials, names) {
            said.confidence = CONTRADICTED;
            said.chosen.assumed.push(reason);
            said.chosen.withdraw_category(&self.vocabulary.unknown);
        }
        if said.chosen.primary.is_none() && said.from.is_some() {
            said.from = Some(NONE_LEADS.to_owned());
        }
        said.confidence = said.confidence.min(most);
        said
    }

    /// Returns where an element is, by IsExternal and its storey.
    fn location_of(&self, q: &ElementQuestion) -> Option<&str> {
        let by = &self.vocabulary.location_by;
        match (q.external, q.below_ground) {
            (Some(true), _) => Some(&by.external),
            (Some(false), _) => Some(&by.not_external),
            (None, Some(true)) => Some(&by.below_ground),
            (None, _) => None,
        }
    }
}

/// The names of a question, cut into words.
struct NameTokens<'a> {
    of_type: Vec<(&'a str, Vec<Token>)>,
    own: Vec<(&'a str, Vec<Token>)>,
    /// Titles of the classes that the author gave.
    of_class: Vec<(&'a str, Vec<Token>)>,
}

impl<'a> NameTokens<'a> {
    fn of(q: &ElementQuestion<'a>) -> NameTokens<'a> {
        let mut of_type: Vec<&str> = Vec::new();
        for text in [q.type_name, q.object_type].into_iter().flatten() {
            if !of_type.contains(&text) {
                of_type.push(text);
            }
        }
        let cut = |texts: Vec<&'a str>| texts.into_iter().map(|t| (t, tokens(t))).collect();
        NameTokens {
            own: cut(q
                .name
                .into_iter()
                .filter(|n| !of_type.contains(n))
                .collect()),
            of_type: cut(of_type),
            of_class: cut(q
                .classifications
                .iter()
                .filter_map(|code| code.title)
                .collect()),
        }
    }
}

/// Statements about the material, and the confidence that they leave.
struct MaterialFinding {
    chosen: Chosen,
    from: Option<String>,
    confidence: f64,
}

impl MaterialFinding {
    fn clause(&self) -> String {
        self.chosen
            .because
            .as_ref()
            .map_or_else(String::new, |b| format!("; {b}"))
    }
}

/// Returns the material that the model itself states: layers, materials, else a property.
fn stated(q: &ElementQuestion, materials: &Materials, prefer: &[Word]) -> MaterialFinding {
    let layered = q.layers.iter().any(|(name, t)| name.is_some() && *t > 0.0);
    let (chosen, from) = if layered {
        (materials.of_layers(&q.layers), Some("layers".to_owned()))
    } else if !q.parts.is_empty() {
        (
            materials.of_parts(&q.parts, prefer),
            Some("constituents".to_owned()),
        )
    } else if !q.materials.is_empty() {
        (
            materials.of_names(&q.materials, prefer),
            Some("material".to_owned()),
        )
    } else {
        (Chosen::default(), None)
    };
    let said = MaterialFinding {
        chosen,
        from,
        confidence: 1.0,
    };
    match q.material_property {
        Some((property, value)) if said.from.is_none() && materials.known(value).is_some() => {
            let mut chosen = materials.of_names(&[value], prefer);
            chosen.because = chosen
                .because
                .map(|b| format!("{b} of the property {property}"));
            MaterialFinding {
                chosen,
                from: Some(format!("property set: {property}")),
                confidence: BY_PROPERTY_MATERIAL,
            }
        }
        _ => said,
    }
}

/// Why a general material, such as `Metall`, cannot be what the element is named after, such as concrete.
fn at_odds(chosen: &Chosen, materials: &Materials, names: &NameTokens) -> Option<String> {
    let name = chosen.primary.as_ref()?["name"].as_str()?;
    let (_, from, text, category, _) = inferred(materials, names, &[])?;
    (materials.is_general(name) && chosen.category.as_ref() != Some(&category)).then(|| {
        format!(
            "contradictory evidence: the material is `{name}`, but the {from} `{text}` indicates {category}"
        )
    })
}

fn inferred<'a>(
    materials: &Materials,
    names: &'a NameTokens,
    prefer: &[Word],
) -> Option<(f64, &'static str, &'a str, Word, Value)> {
    let by = |texts: &'a [(&'a str, Vec<Token>)]| {
        texts
            .iter()
            .find_map(|(t, w)| materials.inferred(t, w, prefer).map(|(c, v)| (*t, c, v)))
    };
    by(&names.of_type)
        .map(|(t, c, v)| (BY_TYPE_NAME, "type name", t, c, v))
        .or_else(|| by(&names.of_class).map(|(t, c, v)| (BY_TYPE_NAME, "class name", t, c, v)))
        .or_else(|| by(&names.own).map(|(t, c, v)| (BY_NAME, "name", t, c, v)))
}

/// Confidence with two decimals, as it is written.
fn round(confidence: f64) -> f64 {
    (confidence * 100.0).round() / 100.0
}
