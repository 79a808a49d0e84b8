//! Streams of events: what a run writes arrives, a stream continues where it broke off, and none keeps the server from ending.

use super::server::Ui;
use crate::support::Project;
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;

/// The events of a stream.
struct Events(BufReader<TcpStream>);

impl Events {
    fn open(ui: &Ui, headers: &[(&str, &str)]) -> Events {
        let path = format!("{}/events", ui.root);
        Events(BufReader::new(ui.send("GET", &path, headers, "")))
    }

    /// The id and the data of the next event.
    fn next(&mut self) -> (String, Value) {
        let mut id = String::new();
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream ended");
            if let Some(rest) = line.strip_prefix("id: ") {
                rest.trim_end().clone_into(&mut id);
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return (id, serde_json::from_str(data).unwrap());
            }
        }
    }

    /// The texts of the records up to one that begins like this, and the id after it.
    fn until(&mut self, last: &str) -> (Vec<String>, String) {
        let mut texts = Vec::new();
        loop {
            let (id, data) = self.next();
            let records = data["records"].as_array().unwrap();
            texts.extend(
                records
                    .iter()
                    .map(|record| record["text"].as_str().unwrap().to_owned()),
            );
            if texts.iter().any(|text| text.starts_with(last)) {
                return (texts, id);
            }
        }
    }
}

#[test]
fn what_a_run_writes_arrives_and_continues_after_a_break() {
    let project = Project::letters();
    let ui = Ui::start(&project);
    let mut events = Events::open(&ui, &[]);
    let (begin, _) = events.next();
    assert_eq!(project.milepost(&["run"]).0, 0);
    let (texts, _) = events.until("run ended");
    assert!(texts.iter().any(|text| text.contains("copy")), "{texts:?}");
    drop(events);
    // A browser that lost the connection asks for what it missed.
    let mut again = Events::open(&ui, &[("Last-Event-ID", &begin)]);
    assert_eq!(again.until("run ended").0, texts);
    // An id of a journal that was replaced begins with the present.
    let mut other = Events::open(&ui, &[("Last-Event-ID", "99:1.0")]);
    assert_eq!(other.next().1["records"], Value::Array(Vec::new()));
    let mut hostile = Events::open(&ui, &[("Last-Event-ID", "../../etc/passwd")]);
    assert_eq!(hostile.next().1["records"], Value::Array(Vec::new()));
}

#[test]
fn open_streams_do_not_keep_the_server_from_ending() {
    let project = Project::letters();
    let ui = Ui::start(&project);
    let mut streams: Vec<Events> = (0..8).map(|_| Events::open(&ui, &[])).collect();
    for stream in &mut streams {
        stream.next();
    }
    let begun = std::time::Instant::now();
    assert_eq!(ui.end(), Some(0));
    assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
}
