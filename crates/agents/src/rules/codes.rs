//! Codes of classification systems in questions, and the patterns of rules that they match.

use serde_json::Value;

/// The name of the Dutch system NL/SfB, as [`letters`] writes it.
const NL_SFB: &str = "nlsfb";

/// A code that a model's author gave to an element, with its system if the model names it.
#[derive(Debug, PartialEq)]
pub(super) struct ClassReference<'a> {
    system: Option<&'a str>,
    pub(super) code: &'a str,
    /// The title in the system.
    pub(super) title: Option<&'a str>,
}

impl<'a> ClassReference<'a> {
    /// Reads a code, alone or as an object with `system`, `code` and `title`.
    pub(super) fn of(value: &'a Value) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let (system, code) = match value.as_str() {
            Some(code) => (None, code),
            None => (text("system"), text("code")?),
        };
        let (code, title) = (code.trim(), text("title"));
        (!code.is_empty()).then_some(Self {
            system,
            code,
            title,
        })
    }

    /// Returns true if one of the patterns fits.
    pub(super) fn fits_any(&self, patterns: &[String]) -> bool {
        patterns.iter().any(|pattern| self.fits(pattern))
    }

    /// Returns true if a pattern fits: `Ss_25*` any code that begins so, `DIN 276: 33*` only codes of a system with that name.
    fn fits(&self, pattern: &str) -> bool {
        let (system, code) = match pattern.split_once(": ") {
            Some((system, code)) => (Some(system), code),
            None => (None, pattern),
        };
        let of_system = system.is_none_or(|system| {
            let system = letters(system);
            self.system.is_some_and(|own| {
                letters(own).contains(&system)
                    || (system == NL_SFB && self.is_nl_sfb_in_assembly_code(own))
            })
        });
        of_system && glob(code, self.code)
    }

    /// Returns true if it is a code of NL/SfB in Revit's property *Assembly Code*, which is read as Uniformat: Dutch offices write
    /// `31.20` there, and codes of Uniformat begin with a letter.
    fn is_nl_sfb_in_assembly_code(&self, system: &str) -> bool {
        let mut code = self.code.chars();
        letters(system) == "uniformat"
            && code.by_ref().take(2).filter(char::is_ascii_digit).count() == 2
            && code.next() == Some('.')
    }
}

/// Returns the letters and digits of a name, in lower case: `NL/SfB (4 cijfers)` is `nlsfb4cijfers`.
fn letters(name: &str) -> String {
    let letters = name.chars().filter(|letter| letter.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// `IfcWall*` matches what begins so; else the whole text.
pub(super) fn glob(pattern: &str, text: &str) -> bool {
    pattern
        .strip_suffix('*')
        .map_or(pattern == text, |head| text.starts_with(head))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pattern_may_name_the_system() {
        let fits = |code: Value, pattern: &str| ClassReference::of(&code).unwrap().fits(pattern);
        let din = json!({"system": "DIN 276-1:2008-12", "code": "331"});
        let sfb = json!({"system": "NL-SfB 2005", "code": "31.20"});
        assert!(fits(din.clone(), "DIN 276: 33*"));
        assert!(!fits(din, "NL/SfB: 33*"));
        assert!(fits(sfb.clone(), "NL/SfB: 31*") && fits(sfb, "31.*"));
        assert!(fits(json!("Ss_25_10_30"), "Ss_25*"));
        let revit = json!({"system": "Uniformat", "code": "31.20"});
        assert!(fits(revit.clone(), "NL/SfB: 31*") && !fits(revit, "DIN 276: 31*"));
        let uniformat = json!({"system": "Uniformat", "code": "B2010.31"});
        assert!(!fits(uniformat, "NL/SfB: *"));
        assert!(!fits(json!("331"), "DIN 276: 33*"), "no system is named");
        assert_eq!(
            ClassReference::of(&json!({"system": "x", "code": " "})),
            None
        );
    }
}
