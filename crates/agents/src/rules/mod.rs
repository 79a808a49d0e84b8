//! The agent that answers by a rules file: free, offline, and deterministic.

mod codes;
mod matcher;
mod material;
mod question;
mod table;
mod vocabulary;
#[cfg(debug_assertions)]
mod word_schemas;
mod words;

#[cfg(test)]
mod tests;

use serde_json::Value;
use toml::Spanned;

#[cfg(debug_assertions)]
pub use table::rules_schema;
use table::{Rule, RulesFile};
use vocabulary::{UnknownWord, Vocabulary, Word, WordKind};
use words::{WordError, WordIndex};

use matcher::Matcher;
use material::Materials;
use question::ElementQuestion;

/// A compiled rules file.
#[derive(Debug)]
pub struct Rules {
    matcher: Matcher,
    materials: Materials,
}

/// A rules file that is not valid.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// The text is not TOML, or has an unknown key or value.
    #[error("{file}:{line}:{column}: {rule}{message}")]
    Form {
        file: String,
        /// From 1 on.
        line: usize,
        /// From 1 on.
        column: usize,
        /// `rule NAME: ` if the place is inside a rule.
        rule: String,
        /// The problem and how to fix it.
        message: String,
    },
    /// A rule or material is not valid.
    #[error("{file}:{line}: {what}: {message}")]
    Rule {
        file: String,
        /// From 1 on.
        line: usize,
        /// `rule NAME` or `material CATEGORY`.
        what: String,
        /// The problem and how to fix it.
        message: String,
    },
}

impl Rules {
    /// Reads and compiles a rules file. `name` is the name of the file in errors.
    ///
    /// # Errors
    /// Fails if the text is not TOML, or has an unknown key or value, a duplicate rule name, a confidence outside 0 to 1, or a pattern
    /// that is too general. The error names file, line and rule.
    pub fn parse(name: &str, text: &str) -> Result<Rules, RulesError> {
        let mut table: RulesFile = toml::from_str(text).map_err(|e| form_error(name, text, &e))?;
        let refuse = |at: usize, what: String, message: String| RulesError::Rule {
            file: name.to_owned(),
            line: line_of(text, at).0,
            what,
            message,
        };
        table
            .expand_lists()
            .map_err(|unknown| refuse(unknown.at, unknown.what, unknown.message))?;
        let vocabulary = match table.vocabulary {
            Some(own) => own,
            None => Vocabulary::default_words().map_err(|e| form_error(name, text, &e))?,
        };
        let whole = |unknown: UnknownWord| {
            let at = text.find("[vocabulary").unwrap_or_default();
            refuse(at, "vocabulary".to_owned(), unknown.0)
        };
        vocabulary.check_itself().map_err(whole)?;
        let materials = table
            .material
            .iter()
            .map(|it| (WordKind::Category, &it.category));
        let contradicted = table.contradiction.iter().flat_map(|it| &it.element_type);
        let contradicted = contradicted.map(|word| (WordKind::ElementType, word));
        let not_made_of = table.contradiction.iter().flat_map(|it| &it.material);
        let not_made_of = not_made_of.map(|word| (WordKind::Category, word));
        let used = table.rule.iter().flat_map(words_of);
        for (kind, word) in used.chain(materials).chain(contradicted).chain(not_made_of) {
            let checked = vocabulary.check(kind, word.get_ref());
            checked.map_err(|unknown| form(name, text, word.span().start, unknown.0))?;
        }
        let mut seen = std::collections::BTreeMap::new();
        for rule in &table.rule {
            let (at, id) = (rule.name.span().start, rule.name.get_ref());
            let refuse = |message| Err(refuse(at, format!("rule {id}"), message));
            if id.is_empty() || !id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
                return refuse("a rule's name has only letters, digits and `-`".to_owned());
            }
            if id == "no-rule" {
                return refuse("this name is reserved for answers without a rule".to_owned());
            }
            if let Some(first) = seen.insert(id.clone(), at) {
                return refuse(format!(
                    "duplicate name: it is the name of the rule in line {}",
                    line_of(text, first).0
                ));
            }
            if !(0.0..=1.0).contains(&rule.confidence) {
                return refuse(format!(
                    "confidence is {}, not between 0 and 1",
                    rule.confidence
                ));
            }
            if let Some(odd) = rule.ifc_type.iter().find(|t| !t.starts_with("Ifc")) {
                return refuse(format!(
                    "`{odd}` is not an IFC type: expected a name that begins with `Ifc`, as in `IfcWall*`"
                ));
            }
        }
        let rules: Vec<_> = table
            .rule
            .iter()
            .map(|r| (r.name.span().start, format!("rule {}", r.name.get_ref())))
            .collect();
        let materials: Vec<_> = table
            .material
            .iter()
            .map(|m| {
                let category = m.category.get_ref();
                (m.category.span().start, format!("material {category}"))
            })
            .collect();
        let at = |list: &[(usize, String)], (i, error): (usize, WordError)| {
            let (at, what) = list.get(i).cloned().unwrap_or_default();
            refuse(at, what, error.to_string())
        };
        let contradictions = table.contradiction.iter();
        let contradictions: Vec<_> = contradictions
            .map(|it| {
                (
                    it.says.span().start,
                    format!("contradiction `{}`", it.says.get_ref()),
                )
            })
            .collect();
        let rules: Vec<_> = rules.into_iter().chain(contradictions).collect();
        let parts = WordIndex::new(&table.leading_parts).map_err(|e| {
            let at = text.find("leading_parts").unwrap_or_default();
            refuse(at, "leading_parts".to_owned(), e.to_string())
        })?;
        Ok(Rules {
            materials: Materials::compile(table.material, parts, &vocabulary)
                .map_err(|e| at(&materials, e))?,
            matcher: Matcher::compile(table.rule, table.contradiction, vocabulary)
                .map_err(|e| at(&rules, e))?,
        })
    }

    /// Answers a question in the form of `filters/question.jq`. All keys of the question are optional.
    ///
    /// The answer has the form of `schemas/answer.schema.json` and names its rule; if no rule matched, `rule` is `no-rule`.
    pub fn answer(&self, question: &Value) -> Value {
        self.matcher
            .answer(&ElementQuestion::of(question), &self.materials)
    }

    /// Returns the category of a material by its name, if the name contains a word of the rules file.
    pub fn category(&self, material: &str) -> Option<Word> {
        self.materials.known(material).map(|k| k.category)
    }
}

fn form_error(name: &str, text: &str, error: &toml::de::Error) -> RulesError {
    let at = error.span().map_or(0, |s| s.start);
    form(name, text, at, error.message().replace('\n', " "))
}

/// Returns the error of a place in the file.
fn form(name: &str, text: &str, at: usize, message: String) -> RulesError {
    let (line, column) = line_of(text, at);
    RulesError::Form {
        file: name.to_owned(),
        line,
        column,
        rule: open_rule(text, at)
            .map(|r| format!("rule {r}: "))
            .unwrap_or_default(),
        message,
    }
}

/// Returns the words of the vocabulary that a rule uses.
fn words_of(rule: &Rule) -> impl Iterator<Item = (WordKind, &Spanned<String>)> {
    let answer = &rule.answer;
    let categories = rule.material.iter().chain(&answer.prefer_material);
    std::iter::once((WordKind::ElementType, &answer.element_type))
        .chain(
            answer
                .function
                .iter()
                .map(|word| (WordKind::Function, word)),
        )
        .chain(
            answer
                .location
                .iter()
                .map(|word| (WordKind::Location, word)),
        )
        .chain(categories.map(|word| (WordKind::Category, word)))
}

/// The name of the rule whose table is open at a place, where its name can be read.
fn open_rule(text: &str, at: usize) -> Option<&str> {
    let start = text.get(..at)?.rfind("[[")?;
    let table = text.get(start..)?.strip_prefix("[[rule]]")?;
    let table = table.split("\n[").next()?;
    table.lines().find_map(|line| {
        let value = line
            .trim()
            .strip_prefix("name")?
            .trim_start()
            .strip_prefix('=')?;
        value.trim().trim_matches('"').split('"').next()
    })
}

/// Line and column, from 1, of a byte.
fn line_of(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
    (line, column)
}
