//! Reasoning that some models write before their answer, between marks.

use crate::answer::json::{ExtractedJson, extract_json};

/// The marks around reasoning, in lower case: tags that many models write and prompts ask for, and those of Seed, Magistral, Kimi,
/// OpenThinker and Command A.
const TAGS: [(&str, &str); 11] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<reasoning>", "</reasoning>"),
    ("<thought>", "</thought>"),
    ("<analysis>", "</analysis>"),
    ("<scratchpad>", "</scratchpad>"),
    ("<seed:think>", "</seed:think>"),
    ("[think]", "[/think]"),
    ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|start_thinking|>", "<|end_thinking|>"),
];

/// The begin and end of other parts before an answer: reasoning and headers of gpt-oss, and the opening marks of answers.
const PARTS: [(&str, &str); 6] = [
    ("<|channel|>analysis", "<|end|>"),
    ("<|channel|>commentary", "<|end|>"),
    ("<|channel|>final", "<|message|>"),
    ("<|start|>", "assistant"),
    ("<|begin_of_solution|", ">"),
    ("<|start_response|", ">"),
];

/// The closing marks of answers.
const ENDS: [&str; 4] = [
    "<|end|>",
    "<|return|>",
    "<|end_of_solution|>",
    "<|end_response|>",
];

/// Returns the answer of a text without the reasoning before it and marks around it. Tags inside an answer are text: an opening tag
/// counts at the beginning, and a closing tag without one, because some servers put that into the prompt, unless it is mentioned in a
/// sentence.
pub fn without_reasoning(text: &str) -> &str {
    let lower = text.to_ascii_lowercase();
    let mut begin = 0;
    while let Some(end) = end_of_reasoning(&lower[begin..])
        && !is_json(&text[begin..])
    {
        let rest = &text[begin + end..];
        begin = text.len() - rest.trim_start().len();
    }
    let rest = lower[begin..].trim_end();
    let marked = ENDS.iter().find_map(|end| rest.strip_suffix(end));
    let end = marked
        .filter(|_| begin > 0)
        .map(|answer| begin + answer.len());
    &text[begin..end.unwrap_or(text.len())]
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
    let mut all = TAGS.iter().chain(&PARTS);
    if let Some(marks) = all.find(|(opening, _)| text[start..].starts_with(opening)) {
        return Some(closed(text, marks).unwrap_or(text.len()));
    }
    let closings = TAGS.iter().filter_map(|(_, tag)| {
        let mut places = text.match_indices(tag).map(|(at, _)| (at, at + tag.len()));
        places.find(|(at, end)| is_alone(&text[..*at], &text[*end..]))
    });
    let (at, end) = closings.min()?;
    let is_opened = TAGS.iter().any(|(tag, _)| text[..at].contains(tag));
    (!is_opened).then_some(end)
}

/// Returns the end of the closing mark that belongs to the opening one at the beginning; of marks that do not pair, the last.
fn closed(text: &str, (opening, closing): &(&str, &str)) -> Option<usize> {
    let ends = text
        .match_indices(closing)
        .map(|(at, _)| at + closing.len());
    let pairs = |end: &usize| {
        let inside = &text[..*end];
        inside.matches(opening).count() <= inside.matches(closing).count()
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
    fn each_model_has_its_marks() {
        for (opening, closing) in TAGS.into_iter().chain(PARTS).take(13) {
            for (text, answer) in [
                (
                    "{open}{\"points\": 0}{close}I cannot tell.",
                    "I cannot tell.",
                ),
                (
                    "\n{open}\n```json\n{\"points\": 0}\n```\n{close}\n{\"points\": 5}",
                    "{\"points\": 5}",
                ),
                ("{open}a{close}<think>b</think>c", "c"),
                ("{open}{\"points\": 0} and no end", ""),
                ("yes {open}", "yes {open}"),
                (
                    "Write {open}\n…\n{close}\nfirst.",
                    "Write {open}\n…\n{close}\nfirst.",
                ),
            ] {
                let written =
                    |text: &str| text.replace("{open}", opening).replace("{close}", closing);
                let (text, answer) = (written(text), written(answer));
                assert_eq!(without_reasoning(&text), answer, "{text}");
                let upper = text.replace(opening, &opening.to_uppercase());
                let upper = upper.replace(closing, &closing.to_uppercase());
                let answer = answer.replace(opening, &opening.to_uppercase());
                let answer = answer.replace(closing, &closing.to_uppercase());
                assert_eq!(without_reasoning(&upper), answer, "{upper}");
            }
            if TAGS.contains(&(opening, closing)) {
                let text = format!("{{\"points\": 0}}\n{closing}\n\nyes");
                assert_eq!(without_reasoning(&text), "yes", "{text}");
            }
        }
    }

    #[test]
    fn marks_around_an_answer_are_no_part_of_it() {
        let harmony = "<|channel|>analysis<|message|>{\"points\": 0}?<|end|><|start|>assistant";
        for (text, answer) in [
            (format!("{harmony}<|channel|>final<|message|>yes<|return|>"), "yes"),
            (format!("{harmony}<|channel|>final<|message|>yes"), "yes"),
            (format!("{harmony}<|channel|>final<|message|>a<|end|>b<|end|>"), "a<|end|>b"),
            (format!("<|start|>assistant{harmony}<|channel|>final <|constrain|>json<|message|>{{}}<|return|>"), "{}"),
            (format!("{harmony}<|channel|>commentary<|message|>Now.<|end|>{harmony}<|channel|>final<|message|>yes"), "yes"),
            ("<|channel|>final<|message|>yes<|return|>".to_owned(), "yes"),
            (
                "<|begin_of_thought|>no<|end_of_thought|>\n\n<|begin_of_solution|>\nyes\n<|end_of_solution|>".to_owned(),
                "yes\n",
            ),
            ("<|START_THINKING|>no<|END_THINKING|><|START_RESPONSE|>yes<|END_RESPONSE|>".to_owned(), "yes"),
            ("yes<|end|>".to_owned(), "yes<|end|>"),
            ("The mark <|begin_of_solution|> begins it.".to_owned(), "The mark <|begin_of_solution|> begins it."),
        ] {
            assert_eq!(without_reasoning(&text), answer, "{text}");
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
