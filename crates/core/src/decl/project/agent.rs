//! Reads `[agents.NAME]`: the agents that answer the questions of agent steps.

use crate::decl::keys;
use crate::decl::problem::SourceFile;
use crate::decl::tables::fields::{self, Fields};
use crate::decl::tables::hints;
use crate::decl::tables::located_text::LocatedText;
use crate::decl::tables::tree::{TomlKey, TomlNode, Val};
use crate::decl::values::names::{ProjectNames, Sees, StageNames};
use crate::decl::values::reader::ValueReader;
use crate::expr::shell::script_of;
use crate::model::agent::{Agent, AgentLimits, Api, Cli, CliCommand, KNOWN_TOOLS, Provider};
use crate::model::api_kind::ApiKind;
use crate::model::money::NanoUsd;
use crate::model::stage::FIXED_NAMES;
use crate::model::step::Text;

/// The most tokens of an answer where nothing is declared.
const MAX_TOKENS: u64 = 4096;

/// Reads an agent; none when it is wrong.
pub(crate) fn agent(
    reader: &mut ValueReader<'_>,
    file: &SourceFile,
    names: &ProjectNames,
    key: &TomlKey,
    node: &TomlNode,
) -> Option<Agent> {
    let header = format!("[agents.{}]", key.name);
    let Some(table) = node.table() else {
        let problem = file.problem(
            node.span.clone(),
            format!("the agent `{}` must be a table", key.name),
        );
        let problem = problem.label(format!("this is {}", node.value.described()));
        reader.report.add(problem.help(format!(
            "write `{header}` and below it, for example, rules = \"rules/elements.toml\""
        )));
        return None;
    };
    let fields = fields::check(
        file,
        &mut reader.report,
        &keys::AGENT,
        &header,
        key.span.clone(),
        table,
    );
    Some(Agent {
        name: key.name.clone(),
        provider: provider(reader, file, names, &fields)?,
        limits: AgentLimits {
            concurrency: fields.integer("concurrency"),
            requests_per_minute: fields.integer("requests_per_minute"),
            tokens_per_minute: fields.integer("tokens_per_minute"),
            tries: fields
                .integer("tries")
                .map(|tries| u32::try_from(tries).unwrap_or(u32::MAX)),
            max_usd_per_call: fields
                .number("max_usd_per_call")
                .and_then(NanoUsd::from_dollars),
        },
    })
}

fn provider(
    reader: &mut ValueReader<'_>,
    file: &SourceFile,
    names: &ProjectNames,
    fields: &Fields<'_>,
) -> Option<Provider> {
    if let Some(spot) = fields.spot("rules") {
        return reader.asset(&spot).map(Provider::Rules);
    }
    if let Some(spot) = fields.spot("jq") {
        let source = match spot.text.strip_suffix(".jq") {
            Some(_) => reader.asset(&spot)?.text,
            None => spot.text.into(),
        };
        // Which stage asks is not known here: what its scope lacks is null.
        let mut scope = StageNames::of_project(names);
        scope.outs = variables(&source);
        return reader.jq(&spot, &scope, Sees::All).map(Provider::Jq);
    }
    if let Some((text, span)) = fields.text("replay") {
        let inner = text.strip_prefix("project:").unwrap_or(text);
        return reader.rel_path(file, inner, span).map(Provider::Replay);
    }
    for kind in ApiKind::ALL {
        if let Some((model, _)) = fields.text(kind.name()) {
            let text = |key: &str| fields.text(key).map(|(text, _)| text.to_owned());
            return Some(Provider::Api(Api {
                kind,
                model: model.to_owned(),
                address: address(reader, names, fields),
                base_url: None,
                key_env: text("api_key_env").unwrap_or_else(|| kind.spec().key_env.to_owned()),
                max_tokens: fields.integer("max_tokens").unwrap_or(MAX_TOKENS),
                temperature: fields.number("temperature").unwrap_or(0.0),
                batch: fields.text("mode").is_some_and(|(mode, _)| mode == "batch"),
            }));
        }
    }
    if fields.get("external").is_some() {
        return Some(Provider::External);
    }
    cli(reader, file, fields).map(Provider::Cli)
}

/// Reads the declared address of an API.
fn address(
    reader: &mut ValueReader<'_>,
    names: &ProjectNames,
    fields: &Fields<'_>,
) -> Option<Text> {
    let spot = fields.spot("base_url")?;
    reader.text(&spot, &StageNames::of_project(names), Sees::Start)
}

fn cli(reader: &mut ValueReader<'_>, file: &SourceFile, fields: &Fields<'_>) -> Option<Cli> {
    let node = fields.get("cli")?;
    let envelope = fields.text("envelope").map_or("text", |(text, _)| text);
    let command = match &node.value {
        Val::List(list) => {
            script(reader, file, list);
            let mut files = Vec::new();
            for item in list {
                let spot = LocatedText {
                    file,
                    key: "cli",
                    text: item.text()?,
                    span: item.span.clone(),
                };
                files.extend(reader.named_file(&spot));
            }
            let words = list.iter().map(|item| item.text().map(str::to_owned));
            let words = words.collect::<Option<_>>()?;
            CliCommand::List { words, files }
        }
        _ => {
            let name = node.text()?;
            if !KNOWN_TOOLS.contains(&name) {
                let problem = file.problem(
                    node.span.clone(),
                    format!("`{name}` is not a known command line"),
                );
                let known = hints::or(KNOWN_TOOLS.iter().copied());
                reader.report.add(problem.label("unknown").help(format!(
                    "the known command lines are {known}; write any other as a list: cli = [\"{name}\"]"
                )));
                return None;
            }
            CliCommand::Known(name.to_owned())
        }
    };
    Some(Cli {
        command,
        envelope: envelope.to_owned(),
    })
}

/// Reports a prompt that would become a part of a script for a shell.
fn script(reader: &mut ValueReader<'_>, file: &SourceFile, list: &[TomlNode]) {
    let words = list.iter().map(|item| item.text().unwrap_or_default());
    let item = script_of(words).and_then(|at| list.get(at));
    let has_prompt = |item: &&TomlNode| item.text().is_some_and(|text| text.contains("{{"));
    if let Some(item) = item.filter(has_prompt) {
        let message =
            "`{{ prompt }}` is part of a script, so the shell would run text from the prompt";
        let problem = file.problem(item.span.clone(), message);
        reader.report.add(problem.label("the prompt is not a script").help(
            "leave it out and read the prompt from standard input, or put it behind the script and write \"$1\": \
             cli = [\"sh\", \"-c\", 'ask \"$1\"', \"sh\", \"{{ prompt }}\"]",
        ));
    }
}

/// Returns the names behind `$` in a program.
fn variables(source: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut names: Vec<String> = source
        .split('$')
        .skip(1)
        .map(|rest| rest.chars().take_while(|&c| is_part(c)).collect())
        .filter(|name: &String| !name.is_empty() && !FIXED_NAMES.contains(&name.as_str()))
        .collect();
    names.sort();
    names.dedup();
    names
}
