//! Server-sent events, read from bytes: the form of a streamed answer.

use milepost_core::base::foreign_text::without_mark;

/// One event: its type (`message` where none is given) and its data.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StreamEvent {
    pub(super) kind: String,
    pub(super) data: String,
}

/// Returns the events of a stream (<https://html.spec.whatwg.org/multipage/server-sent-events.html>). An event without a closing
/// empty line is incomplete and left out.
pub(super) fn events(bytes: &[u8]) -> Vec<StreamEvent> {
    let text = String::from_utf8_lossy(bytes);
    let text = without_mark(&text);
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut events = Vec::new();
    let (mut kind, mut data) = (String::new(), Vec::new());
    // Text after the last line end is an incomplete line.
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    for line in whole.lines() {
        if line.is_empty() {
            if !data.is_empty() {
                let kind = if kind.is_empty() {
                    "message".to_owned()
                } else {
                    kind
                };
                events.push(StreamEvent {
                    kind,
                    data: data.join("\n"),
                });
            }
            (kind, data) = (String::new(), Vec::new());
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut kind),
            "data" => data.push(value.to_owned()),
            // Comments, and `id` and `retry`, which serve reconnecting: a paid call is not repeated.
            _ => {}
        }
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn are_read_as_the_standard_says() {
        let stream = ": hello\r\n\r\nevent: a\r\ndata: 1\r\ndata:2\r\nid: 7\r\n\r\ndata: x\n\nevent: b\n\nevent: cut\ndata: half";
        let event = |kind: &str, data: &str| StreamEvent {
            kind: kind.to_owned(),
            data: data.to_owned(),
        };
        assert_eq!(
            events(stream.as_bytes()),
            [event("a", "1\n2"), event("message", "x")]
        );
    }
}
