//! The settings that a model accepts, by its name.

/// Returns the version in a name such as `claude-opus-4-7`, `claude-sonnet-4-20250514` or `claude-3-5-haiku-latest`: major and
/// minor. None for names that are not of this form.
pub(super) fn of_claude(model: &str) -> Option<(u32, u32)> {
    let name = bare(model);
    let mut numbers = name
        .strip_prefix("claude-")?
        .split(['-', '.'])
        .skip_while(|part| part.parse::<u32>().is_err());
    // A number with more than three digits is a date.
    let number = |part: &str| part.parse().ok().filter(|number| *number < 1_000);
    let major = number(numbers.next()?)?;
    Some((major, numbers.next().and_then(number).unwrap_or(0)))
}

/// Returns true if a model takes a temperature. Claude models refuse it from 4.7 on, OpenAI's reasoning models always did. Sources:
/// the providers' migration guides, and `"temperature" is deprecated for this model` in their errors.
pub(super) fn takes_temperature(model: &str) -> bool {
    let name = bare(model);
    if name.starts_with("claude-") {
        return of_claude(model).is_some_and(|version| version < (4, 7));
    }
    if let Some(rest) = name.strip_prefix("gpt-") {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let before = digits.parse::<u32>().map_or(true, |major| major < 5);
        return before || rest.contains("chat-latest");
    }
    let mut chars = name.chars();
    !(chars.next() == Some('o') && chars.next().is_some_and(|c| c.is_ascii_digit()))
}

/// Returns the name without a gateway's prefix (`anthropic/…`) and without what follows a bracket (`…[1m]`).
fn bare(model: &str) -> &str {
    let name = model.rsplit('/').next().unwrap_or(model);
    name.split('[').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_versions() {
        let cases = [
            ("claude-opus-4-7", Some((4, 7))),
            ("claude-sonnet-4-20250514", Some((4, 0))),
            ("claude-haiku-4-5-20251001", Some((4, 5))),
            ("claude-3-5-haiku-latest", Some((3, 5))),
            ("anthropic/claude-sonnet-4.5", Some((4, 5))),
            ("claude-opus-4-8[1m]", Some((4, 8))),
            ("claude-fable-5", Some((5, 0))),
            ("claude-latest", None),
            ("llama3.1", None),
        ];
        for (model, version) in cases {
            assert_eq!(of_claude(model), version, "{model}");
        }
    }

    #[test]
    fn a_temperature_goes_only_where_it_is_taken() {
        let takes = [
            "claude-sonnet-4-5",
            "gpt-4.1-mini",
            "gpt-5-chat-latest",
            "gpt-oss:20b",
        ];
        let refuses = [
            "claude-opus-5-5",
            "gpt-5-nano",
            "openai/gpt-6.2-sol",
            "o4-mini",
        ];
        let own = ["llama3.1:8b", "olmo2", "Qwen/Qwen3-8B"];
        for model in takes.iter().chain(&own) {
            assert!(takes_temperature(model), "{model}");
        }
        for model in refuses {
            assert!(!takes_temperature(model), "{model}");
        }
    }
}
