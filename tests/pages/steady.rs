//! Output without the words that differ from run to run: times, durations and ids of runs.

/// Returns the text with those words replaced, with every gap of several blanks as two, and without progress of slow stages.
pub fn steady(text: &str) -> String {
    text.lines()
        .filter(|line| !is_progress(line))
        .map(|line| steady_line(line) + "\n")
        .collect()
}

/// Returns true for a line such as `classify 2 of 3 batches, about 3 s left`, which only slow machines print.
fn is_progress(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.len() > 4
        && is_number(words[1])
        && words[2] == "of"
        && is_number(words[3])
        && words[4].starts_with("batch")
}

fn steady_line(line: &str) -> String {
    // The last record of the journal contains a time.
    if let Some((head, _)) = line.split_once("head of the journal: ") {
        return format!("{head}head of the journal: DIGEST");
    }
    let mut words: Vec<String> = Vec::new();
    for word in line.trim_end().split(' ') {
        let bare = word.trim_end_matches([',', ')', ':', ';', '.']);
        let tail = &word[bare.len()..];
        let after_number = words.last().is_some_and(|last| is_number(last));
        if after_number && is_unit(bare) {
            words.pop();
            let follows = words.last().is_some_and(|last| last == "TIME");
            if !follows {
                words.push("TIME".to_owned());
            }
            if !tail.is_empty() {
                words.last_mut().unwrap().push_str(tail);
            }
        } else if after_number && ["records", "earlier"].contains(&word) {
            // How many batches share a group, and so a record, depends on their speed.
            words.pop();
            words.push(format!("N {word}"));
        } else {
            words.push(steady_word(word));
        }
    }
    let indent = words.iter().take_while(|word| word.is_empty()).count();
    let mut kept = vec![String::new(); indent];
    for word in &words[indent..] {
        let doubled = word.is_empty() && kept.len() > indent && kept.last().unwrap().is_empty();
        if !doubled {
            kept.push(word.clone());
        }
    }
    kept.join(" ")
}

fn is_number(word: &str) -> bool {
    let word = word.trim_start_matches('(');
    !word.is_empty() && word.chars().all(|c| c.is_ascii_digit() || c == '.')
}

fn is_unit(word: &str) -> bool {
    let units = [
        "ms", "s", "min", "h", "second", "seconds", "minute", "minutes",
    ];
    units.contains(&word)
}

/// Replaces dates, times of day and ids inside one word.
fn steady_word(word: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric();
    let mut out = String::new();
    let mut rest = word;
    while !rest.is_empty() {
        let part = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        if let Some(length) = moment(rest) {
            out.push_str("WHEN");
            rest = &rest[length..];
        } else if part == 26 && rest.starts_with("01") {
            out.push_str("ID");
            rest = &rest[part..];
        } else {
            let length = part.max(rest.chars().next().unwrap().len_utf8());
            out.push_str(&rest[..length]);
            rest = &rest[length..];
        }
    }
    out
}

/// Returns the length of the date, time of day, or both, that a text begins with.
fn moment(text: &str) -> Option<usize> {
    let like = |pattern: &str| {
        let same = |(at, wanted): (usize, u8)| match wanted {
            b'0' => text.as_bytes().get(at).is_some_and(u8::is_ascii_digit),
            _ => text.as_bytes().get(at) == Some(&wanted),
        };
        pattern.bytes().enumerate().all(same)
    };
    let dated = ["0000-00-00T00:00:00", "0000-00-00", "00:00:00"];
    let length = dated.into_iter().find(|it| like(it))?.len();
    let is_more = |c: char| c.is_ascii_digit() || c == '.';
    let fraction = text[length..].len() - text[length..].trim_start_matches(is_more).len();
    let fraction = if length == 10 { 0 } else { fraction };
    let zone = usize::from(text[length + fraction..].starts_with('Z'));
    Some(length + fraction + zone)
}

#[test]
fn times_and_ids_are_replaced_and_nothing_else_is() {
    let shown = "sort  complete  3 batches ran      0.4 s\nin 3 min 12 s (run 01M838ZRCQ1GEAYTNMF4RGXD0S), 2026-11-23 04:00:22Z: 12 of 20\nsort 2 of 3 batches, about 3 s left\nhead of the journal: sha256:00ff";
    let steady = steady(shown);
    let wanted = "sort  complete  3 batches ran  TIME\nin TIME (run ID), WHEN WHEN: 12 of 20\nhead of the journal: DIGEST\n";
    assert_eq!(steady, wanted);
}
