//! Reasoning that some models write before their answer, between tags.

use crate::answer::json::{ExtractedJson, extract_json};

/// The tags of reasoning that DeepSeek, Qwen, Kimi and other models write, and that prompts ask for.
const TAGS: [&str; 3] = ["think", "thinking", "reasoning"];

/// Returns the answer of a text without the reasoning before it. Tags inside an answer are text: an opening tag counts at the beginning,
/// and a closing tag without one, because some servers put that into the prompt, unless it is mentioned in a sentence.
pub fn without_reasoning(text: &str) -> &str {
    let lower = text.to_ascii_lowercase();
    if !TAGS
        .iter()
        .any(|tag| lower.contains(&closing(tag)) || lower.contains(&opening(tag)))
    {
        return text;
    }
    let mut begin = 0;
    while !is_json(&text[begin..])
        && let Some(end) = end_of_reasoning(&lower[begin..])
    {
        let rest = &text[begin + end..];
        begin = text.len() - rest.trim_start().len();
    }
    &text[begin..]
}

/// Returns true if a text is JSON, alone or in a Markdown fence.
fn is_json(text: &str) -> bool {
    let found = extract_json(text);
    matches!(
        found,
        ExtractedJson::One {
            in_prose: false,
            ..
        }
    )
}

/// Returns where the reasoning ends that a text in lower case begins with.
fn end_of_reasoning(text: &str) -> Option<usize> {
    let start = text.len() - text.trim_start().len();
    let opened = TAGS
        .iter()
        .find(|tag| text[start..].starts_with(&opening(tag)));
    if let Some(tag) = opened {
        return Some(closed(text, tag).unwrap_or(text.len()));
    }
    let closings = TAGS.iter().filter_map(|tag| {
        let tag = closing(tag);
        let mut places = text.match_indices(&tag).map(|(at, _)| (at, at + tag.len()));
        places.find(|(at, end)| is_alone(&text[..*at], &text[*end..]))
    });
    let (at, end) = closings.min()?;
    let is_opened = TAGS.iter().any(|tag| text[..at].contains(&opening(tag)));
    (!is_opened).then_some(end)
}

/// Returns the end of the closing tag that belongs to the opening one at the beginning; of tags that do not pair, the last.
fn closed(text: &str, tag: &str) -> Option<usize> {
    let (opening, closing) = (opening(tag), closing(tag));
    let ends = text
        .match_indices(&closing)
        .map(|(at, _)| at + closing.len());
    let pairs = |end: &usize| {
        let inside = &text[..*end];
        inside.matches(&opening).count() <= inside.matches(&closing).count()
    };
    ends.clone().find(pairs).or_else(|| ends.last())
}

/// Returns true if a tag between these texts begins or ends its line, or follows a word without a blank or a quote between.
fn is_alone(before: &str, after: &str) -> bool {
    let on_line = before.rsplit('\n').next().unwrap_or_default();
    let to_end = after.split('\n').next().unwrap_or_default();
    let is_between = |c: char| c.is_whitespace() || "\"'`(".contains(c);
    on_line.trim().is_empty() || to_end.trim().is_empty() || !before.ends_with(is_between)
}

fn opening(tag: &str) -> String {
    format!("<{tag}>")
}

fn closing(tag: &str) -> String {
    format!("</{tag}>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasoning_is_no_answer() {
        for (text, answer) in [
            ("yes", "yes"),
            ("<think>no</think>yes", "yes"),
            ("\n<Think>no</THINK>\nyes", "yes"),
            ("no</think>\n\nyes\n", "yes\n"),
            ("no\n</think>yes", "yes"),
            ("no</think>yes", "yes"),
            ("{} is wrong</think> I cannot tell.", "I cannot tell."),
            ("<think>a</think>\n<thinking>c</thinking>d", "d"),
            ("<think>a <think>b</think> c</think>d", "d"),
            ("<think>what is a <think> tag?</think>d", "d"),
            ("<think>never ends", ""),
            ("<think>a</think><think>never ends", ""),
            ("<think>no</think>{\"points\": 5}", "{\"points\": 5}"),
        ] {
            assert_eq!(without_reasoning(text), answer, "{text}");
        }
    }

    #[test]
    fn tags_inside_an_answer_are_text() {
        for text in [
            "a < think > b",
            "Use the <think> tag to wrap reasoning. Then answer.",
            "Close it with `</think>`.",
            "The </think> tag ends it.",
            "Write <think>\n…\n</think>\nfirst.",
            "{\"note\":\"wrap it in <think> tags\",\"points\":7}",
            "{\"a\":\"x</think>y\"}",
            "```json\n{\"a\":\"x</think>y\"}\n```",
            "yes<reasoning>but",
        ] {
            assert_eq!(without_reasoning(text), text);
            let thought = format!("<think>no</think>{text}");
            assert_eq!(without_reasoning(&thought), text);
        }
    }
}
