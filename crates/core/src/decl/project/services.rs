//! Reads `[services.NAME]` of the project, and which of them a stage needs.

use crate::decl::keys::SERVICE;
use crate::decl::problem::SourceFile;
use crate::decl::tables::fields::{self, Fields};
use crate::decl::tables::tree::{TomlKey, TomlNode};
use crate::decl::values::names::{ProjectNames, Sees, StageNames, check_name};
use crate::decl::values::reader::ValueReader;
use crate::expr::place::{listed, nearest};
use crate::model::pipeline::Service;
use std::collections::BTreeMap;

/// Reads the services of the project, and adds their names to those that it declares.
pub(crate) fn read(
    reader: &mut ValueReader<'_>,
    file: &SourceFile,
    top: &Fields<'_>,
    names: &mut ProjectNames,
) -> BTreeMap<String, Service> {
    let mut services = BTreeMap::new();
    let Some(table) = top.get("services").and_then(TomlNode::table) else {
        return services;
    };
    for (key, node) in &table.entries {
        names.services.push(key.name.clone());
        if check_name(file, &mut reader.report, key)
            && let Some(service) = service(reader, file, names, key, node)
        {
            services.insert(key.name.clone(), service);
        }
    }
    services
}

fn service(
    reader: &mut ValueReader<'_>,
    file: &SourceFile,
    names: &ProjectNames,
    key: &TomlKey,
    node: &TomlNode,
) -> Option<Service> {
    let header = format!("[services.{}]", key.name);
    let Some(table) = node.table() else {
        let message = format!("the service `{}` must be a table", key.name);
        let problem = file
            .problem(node.span.clone(), message)
            .label(format!("this is {}", node.value.described()));
        reader.report.add(problem.help(format!(
            "write `{header}` and below it `command` and `ready`"
        )));
        return None;
    };
    let span = key.span.clone();
    let fields = fields::check(file, &mut reader.report, &SERVICE, &header, span, table);
    let seen = StageNames::of_project(names);
    let ready = fields.spot("ready").and_then(|spot| {
        if !["http://", "https://", "{{"]
            .iter()
            .any(|start| spot.text.starts_with(start))
        {
            let problem = spot
                .problem("`ready` must be a URL that responds once the service is ready")
                .label("this begins with neither `http://` nor `https://`");
            reader
                .report
                .add(problem.help("such as ready = \"http://localhost:3001/health\""));
            return None;
        }
        reader.text(&spot, &seen, Sees::Start)
    });
    let command = fields.get("command");
    let command = command.and_then(|node| reader.command(file, &seen, node, [Sees::Start; 2]));
    let env = reader.variables(file, names, fields.get("env"));
    let (command, shell) = command?;
    Some(Service {
        name: key.name.clone(),
        command,
        shell,
        ready: ready?,
        env,
    })
}

/// Returns the services that a stage names. Unknown ones are reported.
pub(crate) fn needed(
    reader: &mut ValueReader<'_>,
    file: &SourceFile,
    names: &ProjectNames,
    top: &Fields<'_>,
) -> Vec<String> {
    let list = top
        .get("services")
        .and_then(TomlNode::list)
        .unwrap_or_default();
    let mut needed = Vec::new();
    for item in list {
        let Some(name) = item.text() else { continue };
        let known = || names.services.iter().map(String::as_str);
        if names.is_unknown || known().any(|known| known == name) {
            if !needed.iter().any(|it| it == name) {
                needed.push(name.to_owned());
            }
            continue;
        }
        let help = match nearest(name, known()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.services.is_empty() => {
                format!(
                    "declare it in milepost.toml: [services.{name}] and below it `command` and `ready`"
                )
            }
            None => format!("available: {}", listed(known())),
        };
        let problem = file.problem(
            item.span.clone(),
            format!("the project has no service `{name}`"),
        );
        reader
            .report
            .add(problem.label("not declared in milepost.toml").help(help));
    }
    needed
}
