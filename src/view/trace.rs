//! `trace` as text: a title, a place, short lines and long texts for each station, which the page shows too.

use crate::view::calls::tokens;
use crate::view::text::overrides::accepted;
use crate::view::text::table::time;
use crate::view::text::words::{count, grouped, indented, place, seconds, some_of};
use jiff::Timestamp;
use milepost_core::base::digest::Digest;
use milepost_core::base::visible::{visible, visible_lines};
use milepost_core::expr::json::plain_text;
use milepost_core::model::money::NanoUsd;
use milepost_core::plan::options::invocation::Invocation;
use milepost_engine::ops::inspect::calls::Exchange;
use milepost_engine::ops::inspect::elements::FieldChange;
use milepost_engine::ops::trace::{
    FileCheck, Gap, Station, StationKind, Trace, TracedAnswer, TracedBatch, TracedCell,
    TracedCorrection, TracedFile, TracedRecord,
};
use serde_json::Value;

/// The most lines of a long text that are printed without `--full`.
const LINES: usize = 6;

/// The most characters of a line that are printed without `--full`.
const WIDTH: usize = 200;

/// The label of the record of an element, which is printed with `--full` only.
const RECORD: &str = "record";

/// The most fields that a station lists.
const FIELDS: usize = 15;

/// A station as people see it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShownStation {
    /// The title, such as `cell Elements!G12`.
    pub title: String,
    /// Where it is: a file with a line, or a batch.
    pub place: String,
    /// The station that it leads to, from 0.
    pub to: Option<usize>,
    /// Short facts: label and text.
    pub lines: Vec<(String, String)>,
    /// Long texts, such as a prompt: label and text.
    pub blocks: Vec<(String, String)>,
}

/// Returns the way of a value. `full` prints long texts whole.
pub fn trace(data: &Trace, full: bool, invocation: &Invocation) -> String {
    let question = &data.question;
    let mut text = match (&question.key, &question.field) {
        (Some(key), Some(field)) => format!("{} of {}", visible(field), visible(key)),
        (Some(key), None) => visible(key).into_owned(),
        (None, _) => visible(&question.what).into_owned(),
    };
    if let Some(file) = &question.file
        && file
            .rsplit_once('/')
            .is_some_and(|(_, name)| name == question.what)
    {
        // It was found by its name.
        text.push_str(&format!(", in {}", visible(file)));
    }
    text.push('\n');
    let mut is_cut = false;
    for (number, station) in stations(data, invocation).into_iter().enumerate() {
        let to = match station.to {
            Some(to) if to + 1 != number => format!("  (leads to {})", to + 1),
            _ => String::new(),
        };
        let head = format!("{}  {}", station.title, station.place);
        text.push_str(&format!(
            "\n{}. {}{to}\n",
            number + 1,
            visible(head.trim_end())
        ));
        let labels = station.lines.iter().map(|(label, _)| label.chars().count());
        let width = labels.max().unwrap_or(0);
        for (label, line) in &station.lines {
            let label = visible(label);
            let blanks = " ".repeat(width.saturating_sub(label.chars().count()));
            text.push_str(&format!("   {label}{blanks}  {}\n", visible(line)));
        }
        for (label, block) in &station.blocks {
            if label == RECORD && !full {
                is_cut = true;
                continue;
            }
            text.push_str(&format!("   {}:\n", visible(label)));
            let (short, is_short) = shortened(block, full);
            is_cut |= is_short;
            text.push_str(&indented(&short, 5));
        }
    }
    if is_cut || !data.gaps.is_empty() {
        text.push('\n');
    }
    for gap in &data.gaps {
        text.push_str(&format!("note: {}\n", visible(&self::gap(gap))));
    }
    if is_cut {
        text.push_str("help: `--full` prints prompts, answers and records whole\n");
    }
    text
}

/// Returns the stations in order.
pub fn stations(data: &Trace, invocation: &Invocation) -> Vec<ShownStation> {
    let field = data.question.field.as_deref();
    let shown = data
        .stations
        .iter()
        .map(|station| shown(station, field, invocation));
    shown.collect()
}

/// Returns the notes on what is not known, a sentence each.
pub fn notes(data: &Trace) -> Vec<String> {
    data.gaps.iter().map(gap).collect()
}

/// Returns the first lines of a text, and says how much follows.
fn shortened(text: &str, full: bool) -> (String, bool) {
    let text = visible_lines(text);
    if full {
        return (text.into_owned(), false);
    }
    let all: Vec<&str> = text.lines().collect();
    let more = all.len().saturating_sub(LINES) as u64;
    let mut is_cut = more > 0;
    let mut short = String::new();
    for line in all.iter().take(LINES) {
        let start: String = line.chars().take(WIDTH).collect();
        let rest = line.chars().count().saturating_sub(WIDTH) as u64;
        short.push_str(&start);
        if rest > 0 {
            is_cut = true;
            let rest = count(rest, "more character", "more characters");
            short.push_str(&format!("… {rest}"));
        }
        short.push('\n');
    }
    if more > 0 {
        short.push_str(&format!("… {}\n", count(more, "more line", "more lines")));
    }
    (short, is_cut)
}

fn shown(station: &Station, field: Option<&str>, invocation: &Invocation) -> ShownStation {
    let mut shown = ShownStation {
        to: station.to,
        ..ShownStation::default()
    };
    if let Some(file) = &station.file {
        shown.place.clone_from(&file.path);
    }
    match &station.about {
        StationKind::Cell(cell) => of_cell(cell, &mut shown),
        StationKind::Record(record) => of_record("record", record, field, &mut shown),
        StationKind::Question(record) => {
            of_record(
                "record that the agent was asked about",
                record,
                field,
                &mut shown,
            );
        }
        StationKind::Element(record) => {
            of_record("element as it was read", record, field, &mut shown);
        }
        StationKind::Correction(correction) => of_correction(correction, &mut shown),
        StationKind::Modification(one) => {
            "modified by hand".clone_into(&mut shown.title);
            shown.place = one.path.clone().unwrap_or_default();
            shown.line("accepted", accepted(one));
        }
        StationKind::Batch(batch) => of_batch(batch, &mut shown, invocation),
        StationKind::Answer(answer) => of_answer(answer, &mut shown),
        StationKind::Source(source) => {
            "line of the input".clone_into(&mut shown.title);
            shown.place.push_str(&format!(":{}", source.line));
            shown.line("offset", bytes(source.offset));
            let cut = if source.cut { "…" } else { "" };
            let text = format!("{}{cut}", source.text);
            shown.blocks.push(("line".to_owned(), text));
        }
        StationKind::File => "file".clone_into(&mut shown.title),
    }
    if let Some(file) = &station.file {
        of_file(file, &mut shown);
    }
    shown
}

impl ShownStation {
    fn line(&mut self, label: &str, text: impl Into<String>) {
        self.lines.push((label.to_owned(), text.into()));
    }
}

fn of_file(file: &TracedFile, shown: &mut ShownStation) {
    let short = |digest: &Option<Digest>| {
        digest.map_or_else(
            || "unknown".to_owned(),
            |digest| format!("{}…", digest.short()),
        )
    };
    let (present, recorded) = (short(&file.digest), short(&file.recorded));
    shown.line(
        "digest",
        match file.check {
            FileCheck::Matches => format!("{present} matches the record"),
            FileCheck::Accepted => {
                format!("{present} matches the record: modified by hand and accepted")
            }
            FileCheck::Modified => format!("modified: {present}, recorded {recorded}"),
            FileCheck::Missing => format!("the file is missing; recorded {recorded}"),
            FileCheck::NotRecorded => format!("{present}, not recorded by any batch"),
            FileCheck::Unreadable => format!("the file cannot be read; recorded {recorded}"),
        },
    );
    if let Some(read) = &file.read_as {
        let text = format!(
            "{}… when the batch read it; the file was rebuilt since",
            read.short()
        );
        shown.line("read as", text);
    }
    if let (Some(stage), Some(batch), Some(run)) = (&file.stage, &file.batch, &file.run) {
        let text = format!("by {} in run {run}{}", place(stage, batch), on(file.when));
        shown.line("written", text);
    }
}

/// Returns `, 2026-11-21 10:00:00Z`.
fn on(when: Option<Timestamp>) -> String {
    when.map_or_else(String::new, |when| format!(", {}", time(when)))
}

fn bytes(offset: u64) -> String {
    format!("byte {}", grouped(offset))
}

fn of_cell(cell: &TracedCell, shown: &mut ShownStation) {
    shown.title = format!("cell {}!{}", cell.sheet, cell.cell);
    let value = cell
        .value
        .as_ref()
        .map_or_else(|| "the cell is empty".to_owned(), value);
    shown.line("value", value);
    if let Some(header) = &cell.header {
        shown.line("column", header.clone());
    }
    if let Some(formula) = &cell.formula {
        shown.line("formula", formula.clone());
    }
    if let Some(program) = &cell.program {
        shown.line("computed by", program.clone());
    }
}

fn of_record(title: &str, record: &TracedRecord, field: Option<&str>, shown: &mut ShownStation) {
    title.clone_into(&mut shown.title);
    if let Some(line) = record.line {
        shown.place.push_str(&format!(":{line}"));
    }
    if let Some(field) = field {
        let text = match &record.field {
            Some(Value::Null) => "empty (null)".to_owned(),
            Some(found) => value(found),
            None => "the record has no such field".to_owned(),
        };
        shown.line(field, text);
    }
    let pointer = record
        .pointer
        .iter()
        .filter(|pointer| !pointer.is_empty())
        .cloned();
    let at: Vec<String> = pointer.chain(record.offset.map(bytes)).collect();
    if !at.is_empty() {
        shown.line("at", at.join(", "));
    }
    if let Some(others @ 1..) = record.others {
        let others = count(others, "other record has", "other records have");
        shown.line(
            "not unique",
            format!("{others} the same key; this is the first"),
        );
    }
    changes(&record.changes, shown);
    if let Some(asked) = &record.asked {
        shown.line("question", value(asked));
    }
    let text = format!("{:#}", record.value);
    shown.blocks.push((RECORD.to_owned(), text));
}

/// Adds the differences between a record and the one that it was built from.
fn changes(changes: &[FieldChange], shown: &mut ShownStation) {
    let name = |change: &FieldChange| change.field.trim_start_matches('/').replace('/', ".");
    let (kept, left_out): (Vec<&FieldChange>, Vec<&FieldChange>) =
        changes.iter().partition(|change| change.new.is_some());
    for change in kept.iter().take(FIELDS) {
        let new = change.new.as_ref().map(value).unwrap_or_default();
        let text = match &change.old {
            // The text of a number is another value than the number.
            Some(old) if value(old) == new => {
                let new = change.new.as_ref().map(ToString::to_string);
                format!("{old} → {}", new.unwrap_or_default())
            }
            Some(old) => format!("{} → {new}", value(old)),
            None => format!("+ {new}"),
        };
        shown.line(&name(change), text);
    }
    if kept.len() > FIELDS {
        let more = (kept.len() - FIELDS) as u64;
        let text = format!(
            "and {} (`--json` has all)",
            count(more, "other field", "other fields")
        );
        shown.line("…", text);
    }
    if !left_out.is_empty() {
        let names: Vec<String> = left_out.iter().map(|change| name(change)).collect();
        shown.line("left out", some_of(names.iter().map(String::as_str), 8));
    }
}

/// Returns a value in one line.
fn value(value: &Value) -> String {
    const SHOWN: usize = 160;
    let text = plain_text(value);
    if text.chars().count() <= SHOWN {
        return text;
    }
    let start: String = text.chars().take(SHOWN).collect();
    format!("{start}…")
}

fn of_correction(correction: &TracedCorrection, shown: &mut ShownStation) {
    shown.title = format!("correction of {}", correction.field);
    match correction.line {
        Some(line) => shown.place.push_str(&format!(":{line}")),
        None => shown.line("row", "the table has no such row any more"),
    }
    let (from, to) = (value(&correction.from), value(&correction.to));
    shown.line("value", format!("{from} → {to}"));
    shown.line("who", correction.who.clone());
    shown.line("why", correction.why.clone());
    if let Some(import) = &correction.imported {
        let text = format!(
            "from {}, {}: {}",
            import.workbook,
            time(import.when),
            import.correction
        );
        shown.line("imported", text);
    }
}

fn of_batch(batch: &TracedBatch, shown: &mut ShownStation, invocation: &Invocation) {
    "batch".clone_into(&mut shown.title);
    shown.place = place(&batch.stage, &batch.batch);
    if let Some(description) = &batch.description {
        shown.line("stage", description.clone());
    }
    shown.line("run", format!("{}{}", batch.run, on(batch.when)));
    let tries = match batch.attempts {
        0 | 1 => String::new(),
        tries => format!(", at attempt {tries}"),
    };
    shown.line("took", format!("{}{tries}", seconds(batch.seconds)));
    if let Some(spent) = &batch.spent {
        shown.line("calls", crate::view::calls::spent(spent));
    }
    if let Some(failed) = &batch.failed {
        shown.line("failed", failed.to_string());
        if !failed.details.is_empty() {
            let details = ("details".to_owned(), failed.details.join("\n"));
            shown.blocks.push(details);
        }
    }
    let target = crate::view::text::words::target(&batch.stage, &batch.batch);
    if batch.more_answers > 0 {
        let more = count(batch.more_answers, "more answer", "more answers");
        let command = invocation.line(&["log", &target, "--calls"]);
        shown.line("left out", format!("{more} (`{command}`)"));
    }
    if batch.more_inputs > 0 {
        let more = count(batch.more_inputs, "more input", "more inputs");
        let command = invocation.line(&["why", &target]);
        shown.line("left out", format!("{more} (`{command}`)"));
    }
}

fn of_answer(answer: &TracedAnswer, shown: &mut ShownStation) {
    match answer {
        TracedAnswer::Call {
            exchange,
            names_element,
            part,
        } => {
            of_call(exchange, shown);
            if let Some(part) = part {
                shown.line("about it", value(part));
            }
            if *names_element == Some(false) {
                shown.line(
                    "element",
                    "no request of the batch names it: this is one of its calls",
                );
            }
        }
        TracedAnswer::Elsewhere { run, call } => {
            "answer from another workspace".clone_into(&mut shown.title);
            shown.line("call", format!("{run}:{call}"));
            shown.line(
                "record",
                "in the workspace of that run: the project kept the answer",
            );
        }
        TracedAnswer::Removed { run, call } => {
            "answer of a removed call".clone_into(&mut shown.title);
            shown.line("call", format!("{run}:{call}"));
            shown.line("record", "no longer stored: `milepost gc` removes old ones");
        }
        TracedAnswer::Computed {
            agent,
            provider,
            rule,
        } => {
            shown.title = format!("answer of {agent}");
            shown.line("computed by", provider.clone());
            shown.line("call", "none: Milepost computes it");
            if let Some(rule) = rule {
                shown.line(
                    "rule",
                    format!("{} in line {}", rule.name, grouped(rule.line)),
                );
                shown.blocks.push(("rule".to_owned(), rule.text.clone()));
            }
        }
        TracedAnswer::Unrecorded { agent, provider } => {
            shown.title = format!("answer of {agent}");
            if !provider.is_empty() {
                shown.line("provider", provider.clone());
            }
            shown.line("call", "not recorded");
        }
    }
}

fn of_call(exchange: &Exchange, shown: &mut ShownStation) {
    let call = &exchange.call;
    shown.title = format!("answer of {}", call.agent);
    shown.place = call.request.to_string();
    shown.line("provider", call.provider.clone());
    let asked = call.model.as_deref().unwrap_or("none named");
    let served = call.served.as_deref().unwrap_or("not reported");
    shown.line("model", format!("asked for {asked}; answered by {served}"));
    shown.line(
        "call",
        format!("{}:{}, {}", call.run, call.number, time(call.when)),
    );
    if let Some(id) = call.request_id() {
        shown.line("request id", id);
    }
    let cost = match (call.cost, call.estimated) {
        (None, _) => "unknown".to_owned(),
        (Some(NanoUsd::ZERO), _) => "nothing".to_owned(),
        (Some(cost), None) => cost.to_string(),
        (Some(cost), Some(_)) => format!("{cost} (estimated)"),
    };
    let used = match call.usage.total() {
        0 => String::new(),
        _ => format!("; {}", tokens(&call.usage)),
    };
    shown.line("cost", format!("{cost}{used}"));
    let took = call
        .seconds
        .map_or_else(|| "no answer received".to_owned(), seconds);
    shown.line("outcome", format!("{}, {took}", call.outcome));
    let mut block = |label: &str, text: &Option<String>| {
        let gone = || "no longer stored".to_owned();
        let text = text.clone().unwrap_or_else(gone);
        shown.blocks.push((label.to_owned(), text));
    };
    block("prompt as sent", &exchange.prompt);
    block("answer as received", &exchange.text);
    if !exchange.wrong.is_empty() {
        block("violations", &Some(exchange.wrong.join("\n")));
    }
}

fn gap(gap: &Gap) -> String {
    match gap {
        Gap::NotInOutputs { stage } => format!("the outputs of {stage} do not have this key"),
        Gap::BatchFailed {
            stage,
            batch,
            message,
        } => format!(
            "{} reads the element and failed: {message}",
            place(stage, batch)
        ),
        Gap::NotInInputs { stage, batch } => format!(
            "cannot locate the element in the inputs of {}; following all its inputs",
            place(stage, batch)
        ),
        Gap::NoKey { sheet, row } => format!(
            "row {row} of the sheet {sheet} has no key of an element; following the files that the workbook was built from"
        ),
        Gap::NoRecord { file, pointer } => format!(
            "no `[conserve]` declares a key for `{pointer}` in {file}; following the files that it was built from"
        ),
        Gap::Missing { file } => format!("{file} is missing, so it was not searched"),
        Gap::Unreadable { file, problem } => format!("{file} cannot be read: {problem}"),
        Gap::MoreFiles { files } => format!(
            "{} and what is behind them are left out: `milepost trace FILE` follows each",
            count(*files, "more file", "more files")
        ),
    }
}
