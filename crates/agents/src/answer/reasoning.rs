//! Reasoning that some models write before their answer, between tags.

/// The tags of reasoning: those of DeepSeek, Qwen, Kimi and others, and what prompts ask models for.
const TAGS: [&str; 3] = ["think", "thinking", "reasoning"];

/// Returns the answer of a text: what follows the last closing tag of reasoning, up to an opening tag that is never closed. A closing
/// tag needs no opening one, because some servers put that into the prompt.
pub fn without_reasoning(text: &str) -> &str {
    let tags = TAGS.iter();
    let closed = tags.clone().filter_map(|tag| {
        let tag = format!("</{tag}>");
        Some(text.rfind(&tag)? + tag.len())
    });
    let answer = match closed.max() {
        Some(end) => text[end..].trim_start(),
        None => text,
    };
    let opened = tags.filter_map(|tag| answer.find(&format!("<{tag}>")));
    &answer[..opened.min().unwrap_or(answer.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasoning_is_no_answer() {
        for (text, answer) in [
            ("yes", "yes"),
            ("<think>no</think>yes", "yes"),
            ("no</think>\n\nyes\n", "yes\n"),
            ("<think>a</think>b<thinking>c</thinking>d", "d"),
            ("<think>never ends", ""),
            ("yes<reasoning>but", "yes"),
            ("<think>a</think>yes<think>b", "yes"),
            ("a < think > b", "a < think > b"),
        ] {
            assert_eq!(without_reasoning(text), answer, "{text}");
        }
    }
}
