//! Tests of templates.

use super::*;
use crate::base::source::Source;
use crate::expr::sample::{json, project_files};
use crate::expr::scope::{Format, Scope};
use proptest::prelude::*;
use serde_json::json;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, LazyLock};

fn scope() -> Value {
    json!({
        "params": {"model": "inputs/a.b.ifc", "size": 50, "share": 1.0, "tags": ["x", "y"], "big": 18_446_744_073_709_551_615u64},
        "batch": {"number": 3, "stem": "batch_3", "data": null},
        "workspace": {"today": "2026-01-02"},
        "evil": "../../etc/passwd",
        "empty": ""
    })
}

fn render(source: &str) -> String {
    Template::compile("t", source)
        .unwrap()
        .render(&scope())
        .unwrap()
}

fn fails(source: &str) -> String {
    match Template::compile("t.md", source) {
        Ok(template) => template.render(&scope()).unwrap_err().to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Template>();
}

#[test]
fn writes_values() {
    assert_eq!(
        render("{{ params.model }} & {{ params.size }} {{ params.share }}\n"),
        "inputs/a.b.ifc & 50 1.0\n"
    );
    assert_eq!(
        render("{{ params.tags }}{{ batch.data }}{{ true }}{{ params.big }}"),
        "[\"x\",\"y\"]true18446744073709551615"
    );
    assert_eq!(
        render("{% for t in params.tags %}{{ loop.index }}{{ t }} {% endfor %}"),
        "1x 2y "
    );
    assert_eq!(render("{{ '<a>' }}{{ '<a>' | e }}"), "<a>&lt;a&gt;");
}

#[test]
fn has_filters() {
    assert_eq!(render("{{ params.model | stem }}"), "a.b");
    assert_eq!(
        render("{{ {'b': '<&>', 'a': [1, 2.0, none]} | tojson }}"),
        r#"{"b":"<&>","a":[1,2.0,null]}"#
    );
    assert_eq!(
        render("{{ [1] | tojson(2) }}|{{ [1] | tojson(indent=1) }}"),
        "[\n  1\n]|[\n 1\n]"
    );
    assert_eq!(
        render("{{ '%.2f' | format(1234.567) }} {{ 1234.565 | fixed(1) }} {{ 2 | fixed(2) }}"),
        "1234.57 1234.6 2.00"
    );
    assert_eq!(render("{{ 'a|b' | replace('|', '\\\\|') }}"), "a\\|b");
}

#[test]
fn keeps_types() {
    let value = |source: &str| {
        Template::compile("t", source)
            .unwrap()
            .render_value(&scope())
            .unwrap()
    };
    assert_eq!(value("{{ params.size }}"), json!(50));
    assert_eq!(value("{{- params.share -}}").to_string(), "1.0");
    assert_eq!(value("{{ params.tags }}"), json!(["x", "y"]));
    assert_eq!(value("{{ params }}"), scope()["params"]);
    assert_eq!(
        value("{{ {'a': {'b': batch.data}} }}"),
        json!({"a": {"b": null}})
    );
    assert_eq!(value("{{ params.size > 10 }}"), json!(true));
    assert_eq!(value("{{ params.size }}{{ params.size }}"), json!("5050"));
    assert_eq!(value(" {{ params.size }}"), json!(" 50"));
    assert_eq!(value("plain"), json!("plain"));
}

#[test]
fn makes_urls() {
    let scope = json!({
        "env": {"base": "http://h:1/a", "query": "http://h:1/a?b", "host": "h:1"}, "id": "../a ä?x=1&y#", "safe": "a/b", "n": 7, "dots": "..",
        "empty": "", "none": null, "list": ["a"]
    });
    let url = |source: &str| {
        let url = Template::compile("t", source).unwrap().render_url(&scope);
        url.map_err(|error| error.to_string())
    };
    for (source, expected) in [
        ("{{ env.query }}", "http://h:1/a?b"),
        ("{{ env.query | safe }}&c={{ n }}", "http://h:1/a?b&c=7"),
        ("{{ env.base }}/{{ n }}", "http://h:1/a/7"),
        ("{{- env.base -}} /x", "http://h:1/a/x"),
        ("http://{{ n }}/{{ true }}", "http://7/true"),
        (
            "http://h/{{ id }}/x",
            "http://h/..%2Fa%20%C3%A4%3Fx%3D1%26y%23/x",
        ),
        (
            "http://h/{{ id | urlencode }}",
            "http://h/..%2Fa%20%C3%A4%3Fx%3D1%26y%23",
        ),
        ("http://h/{{ safe | safe }}", "http://h/a/b"),
        ("http://{{ env.host | safe }}/", "http://h:1/"),
        (
            "http://h?a={{ dots }}&b={{ empty }}&c={{ safe }}",
            "http://h?a=..&b=&c=a%2Fb",
        ),
        (
            "http://h/{% set x %}a/{{ n }}{% endset %}{{ x }}",
            "http://h/a%2F7",
        ),
        (
            "http://h/{% for x in list %}{{ x }}/{% endfor %}",
            "http://h/a/",
        ),
        (
            "http://h/{{ safe | urlencode | replace('%2F', '/') | safe }}",
            "http://h/a/b",
        ),
    ] {
        assert_eq!(url(source).as_deref(), Ok(expected), "{source}");
    }
    for (source, expected) in [
        (
            "http://h/{{ none }}",
            "t, line 1, column 13: invalid operation: null cannot be a part of a URL",
        ),
        (
            "http://h?x={{ list }}",
            "t, line 1, column 15: invalid operation: a list or an object cannot be a part of a URL",
        ),
        (
            "http://h/{{ empty }}/x",
            "t: an empty text cannot be a part of the path of a URL",
        ),
        (
            "http://h/{{ dots }}",
            "t: `..` cannot be a part of the path of a URL: it leads to another path",
        ),
        (
            "http://{{ env.host }}/",
            "t: `h:1` cannot be a part of the host of a URL: for a host with its port, write the filter `safe`",
        ),
        (
            "{{ env.query }}/{{ n }}",
            "t: `http://h:1/a?b` contains `?`, so the rest of the URL would not be its path: to write it all the same, use the filter `safe`",
        ),
        (
            "{{ id }}{{ n }}",
            "t: `../a ä?x=1&y#` contains `?`, so the rest of the URL would not be its path: to write it all the same, use the filter `safe`",
        ),
        (
            "{{ dots }}/x",
            "t: `..` contains `..`, so the rest of the URL would not be its path: to write it all the same, use the filter `safe`",
        ),
        (
            "{{ n }}://x{{ safe }}",
            "t: `a/b` cannot be a part of the host of a URL: for a host with its port, write the filter `safe`",
        ),
    ] {
        assert_eq!(url(source).unwrap_err(), expected, "{source}");
    }
}

#[test]
fn makes_paths() {
    let path = |source: &str| {
        Template::compile("t", source)
            .unwrap()
            .render_path(&scope())
    };
    assert_eq!(
        path("intermediate/{{ batch.stem }}_{{ batch.number }}.json").unwrap(),
        "intermediate/batch_3_3.json"
    );
    assert_eq!(path("{{ params.model }}").unwrap(), "inputs/a.b.ifc");
    assert_eq!(
        path("out/{{ params.model }}").unwrap(),
        "out/inputs_a.b.ifc~2ffbc9e68dea9da9ff8146d3"
    );
    assert_eq!(
        path("{{ evil }}/{{ empty }}").unwrap(),
        "_._.._etc_passwd~3754d6cb3a38e1185e5b382d/_~e3b0c44298fc1c149afbf4c8"
    );
    assert_eq!(
        path("out/{{ params.model | stem }}.json").unwrap(),
        "out/a.b.json"
    );
    let message = path("out/{{ batch.data }}").unwrap_err().to_string();
    assert_eq!(
        message,
        "t, line 1, column 8: invalid operation: null cannot be a part of a path"
    );
    assert!(
        path("{{ params.tags }}")
            .unwrap_err()
            .message
            .ends_with("is not a path")
    );
}

#[test]
fn names_what_is_missing() {
    assert_eq!(
        fails("a\n  {{ params.modle }}"),
        "t.md, line 2, column 6: `params.modle` is not defined (did you mean `model`? `params` has `model`, `size`, `share`, `tags`, `big`)"
    );
    assert_eq!(
        fails("{{ param.x }}"),
        "t.md, line 1, column 4: `param` is not defined (did you mean `params`? there are `params`, `batch`, `workspace`, `evil`, `empty`)"
    );
    assert_eq!(
        fails("{{ batch.data.x }}"),
        "t.md, line 1, column 9: `batch.data.x` is not defined (`batch.data` is null)"
    );
    assert_eq!(
        fails("{% for t in params.tags %}{{ t.x }}{% endfor %}"),
        "t.md, line 1, column 30: `t.x` is not defined"
    );
    let template = Template::compile("t", "{{ nope }}").unwrap();
    assert!(
        template
            .render_value(&scope())
            .unwrap_err()
            .to_string()
            .starts_with("t, line 1, column 4: `nope` is not defined")
    );
    assert!(fails("{{ nope | upper }}").contains("`nope` is not defined"));
}

#[test]
fn says_where_the_syntax_is_wrong() {
    assert!(
        fails("a\n{{ $params.x }}")
            .ends_with("(a template writes names without `$`: {{ params.x }})"),
        "{}",
        fails("a\n{{ $params.x }}")
    );
    assert!(
        fails("{{ .params.x }}")
            .ends_with("(a template writes names without a dot before them: {{ params.x }})")
    );
    assert!(
        fails("{% if x %}").starts_with("t.md, line 1, column "),
        "{}",
        fails("{% if x %}")
    );
    assert!(
        fails("{{ x | nope }}").contains("nope"),
        "{}",
        fails("{{ x | nope }}")
    );
}

#[test]
fn includes_by_the_loader_only() {
    let load = |name: &str| match name {
        "frame.md" => Some("[{{ workspace.today }}{% include 'deep.md' %}]".to_owned()),
        "deep.md" => Some("{{ batch.nope }}".to_owned()),
        "fine.md" => Some("{{ x }}!".to_owned()),
        _ => None,
    };
    let template =
        Template::compile_with("prompts/p.md", "{% include \"frame.md\" %}", &load).unwrap();
    assert_eq!(
        template.sources.keys().collect::<Vec<_>>(),
        ["deep.md", "frame.md", "prompts/p.md"]
    );
    assert_eq!(
        template.names(),
        &["batch.nope".to_owned(), "workspace.today".to_owned()].into()
    );
    let error = template.render(&scope()).unwrap_err().to_string();
    assert_eq!(
        error,
        "deep.md, line 1, column 4: `batch.nope` is not defined (`batch` has `number`, `stem`, `data`)"
    );
    let template = Template::compile_with(
        "p",
        "{% for x in params.tags %}{%- include \"fine.md\" -%}{% endfor %}",
        &load,
    )
    .unwrap();
    assert_eq!(template.render(&scope()).unwrap(), "x!y!");
    let error = Template::compile_with("p", "a {% include \"none.md\" %}", &load).unwrap_err();
    assert_eq!(
        error.to_string(),
        "p, line 1, column 14: there is no template `none.md` to include"
    );
    let error = Template::compile_with("p", "{% include params.x %}", &load).unwrap_err();
    assert!(
        error.message.contains("`params.x` is not the quoted name"),
        "{error}"
    );
}

#[test]
fn knows_the_names_that_it_uses() {
    let names = |source: &str| Template::compile("t", source).unwrap().names().clone();
    assert_eq!(
        names(
            "{{ params.model | stem }}{% for e in batch.data.elements %}{{ e.x }}{{ range(3) }}{% endfor %}{% set y = env %}{{ y }}"
        ),
        ["batch.data.elements", "env", "params.model"]
            .map(str::to_owned)
            .into()
    );
    assert_eq!(
        names("{{ params[key] }}"),
        ["key", "params"].map(str::to_owned).into()
    );
    assert!(is_template("{{ x }}") && is_template("{# x #}") && !is_template("{x}"));
}

#[test]
fn compiles_the_templates_of_every_project() {
    let mut faults = Vec::new();
    let files = ["prompts", "templates"].map(project_files);
    for (project, path) in files.into_iter().flatten() {
        let source = std::fs::read_to_string(project.join(&path)).unwrap();
        let (folder, _) = path.split_once('/').unwrap();
        let load = |name: &str| {
            let paths = [project.join(name), project.join(folder).join(name)];
            paths
                .iter()
                .find_map(|path| std::fs::read_to_string(path).ok())
        };
        if let Err(error) = Template::compile_with(&path, &source, &load) {
            faults.push(format!("{}: {error}", project.display()));
        }
    }
    assert_eq!(faults, Vec::<String>::new());
}

#[test]
fn a_number_of_an_input_cannot_ask_for_more_memory_than_there_is() {
    assert_eq!(render("{{ 'a\nb' | indent(2, first=true) }}"), "  a\n  b");
    assert_eq!(render("{{ [1, 2, 3] | batch(2, 0) }}"), "[[1,2],[3,0]]");
    for source in [
        "{{ 'a\nb' | indent(1000000000000) }}",
        "{{ 'a\nb' | indent(width=1000000000000) }}",
        "{{ [1] | slice(1000000000000) }}",
        "{{ [1] | batch(1000000000000, 0) }}",
        "{{ 'x' * 1000000000000 }}",
        "{{ [1] * 1000000000000 }}",
        "{{ range(1000000000000) | list }}",
    ] {
        let why = fails(source);
        assert!(why.contains("too "), "{source}: {why}");
    }
}

#[test]
fn a_value_is_text_whatever_it_contains() {
    let value = "{{ evil }}{% include 'x' %}{# #}${HOME} `id` </p>";
    let template = Template::compile("t", "{{ x }}|{{ x | upper | lower }}").unwrap();
    let rendered = template.render(&json!({"x": value})).unwrap();
    assert_eq!(rendered, format!("{value}|{}", value.to_lowercase()));
}

#[test]
fn a_template_that_grows_without_bound_fails() {
    let long = "t.md, line 1, column ";
    let doubled = "{% set x = x ~ x %}".repeat(40);
    let listed = "{% set x = x + x %}".repeat(40);
    let nested = "{% set x = [x, x] %}".repeat(40);
    for (source, expected) in [
        (format!("{{% set x = 'abc' %}}{doubled}"), "a text would be longer than 1 MiB"),
        (format!("{{% set x = 'abc' %}}{listed}"), "a text would be longer than 1 MiB"),
        (format!("{{% set x = [1] %}}{listed}"), "a list would have more than 10 million items"),
        (format!("{nested}{{{{ x }}}}"), "a text would be longer than 1 MiB"),
        (format!("{nested}{{{{ x | string }}}}"), "a text would be longer than 1 MiB"),
        (format!("{nested}{{{{ '' ~ x }}}}"), "a text would be longer than 1 MiB"),
        (format!("{nested}{{{{ x | tojson(2) }}}}"), "a text would be longer than 1 MiB"),
        (
            "{% set ns = namespace(x='ab') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}".to_owned(),
            "a text would be longer than 1 MiB",
        ),
        ("{{ 'abcdef' * 99999999 }}".to_owned(), "repeated string is too large"),
        ("{{ 'abc' * 3000000 }}".to_owned(), "a text would be longer than 1 MiB"),
        ("{{ (['abc' * 1000] * 9999999) | join }}".to_owned(), "a text would be longer than 1 MiB"),
        ("{{ range(99999) | join('abc' * 1000) }}".to_owned(), "a text would be longer than 1 MiB"),
        ("{{ ('a' * 99999) | replace('a', 'b' * 99999) }}".to_owned(), "a text would be longer than 1 MiB"),
        ("{{ '%99999d' | format(1) }}".to_owned(), "`%99999` is too wide: at most 1000"),
        ("{{ '%*d' | format(99999, 1) }}".to_owned(), "`%*` is too wide: at most 1000"),
        ("{{ (['ab' * 99999] * 9999) | map('upper') | list }}".to_owned(), "its texts would take more than 16 MiB"),
        (
            "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}".to_owned(),
            "it takes more than 2 million steps",
        ),
    ] {
        let source = source.replacen("{% set x = [x, x] %}", "{% set x = [1, 1] %}", 1);
        let failed = fails(&source);
        assert!(failed.starts_with(long) && failed.ends_with(expected), "{source}: {failed}");
    }
}

#[test]
fn null_is_nothing_wherever_it_becomes_text() {
    for source in [
        "{{ x }}",
        "{{ x ~ x }}",
        "{{ [x] | join }}",
        "{{ x | string }}",
        "{{ x | upper }}{{ x | lower }}{{ x | title }}{{ x | capitalize }}",
        "{{ x | trim }}{{ x | e }}{{ x | escape }}{{ x | stem }}{{ x | indent }}",
        "{{ x | replace('N', 'a') }}{{ 'a' | replace('a', x) }}",
        "{{ '%s' | format(x) }}{{ x | format }}",
        "{{ x | lines | join }}{{ x | split | join }}",
        "{{ [x] | map('upper') | join }}{{ [x] | map('string') | join }}",
        "{% set y %}{{ x }}{% endset %}{{ y }}",
        "{% filter upper %}{{ x }}{% endfilter %}",
    ] {
        let template = Template::compile("t", source).unwrap();
        assert_eq!(
            template.render(&json!({"x": null})).unwrap(),
            "",
            "{source}"
        );
    }
    for (source, expected) in [
        (
            "{{ [x] }}{{ [x] | upper }}{{ [x] ~ '' }}",
            "[null][NULL][null]",
        ),
        (
            "{{ x | pprint }}{{ x | tojson }}{{ '%s' | format([x]) }}",
            "nullnull[null]",
        ),
    ] {
        let template = Template::compile("t", source).unwrap();
        assert_eq!(
            template.render(&json!({"x": null})).unwrap(),
            expected,
            "{source}"
        );
    }
}

#[test]
fn limited_operators_and_filters_say_the_same() {
    for (source, expected) in [
        (
            "{{ 1 ~ 2.0 ~ none ~ true ~ [1, 'a'] ~ 'x' }}",
            "12.0true[1,\"a\"]x",
        ),
        ("{{ (1 + 2 * 3 - 4) ~ 5 }}", "35"),
        (
            "{{ [1] + [2, 3] }}{{ 'a' + 'b' }}{{ 'ab' * 2 }}",
            "[1,2,3]ababab",
        ),
        (
            "{{ ['a', 1, none] | join(', ') }}{{ [] | join }}{{ 'abc' | join('-') }}",
            "a, 1, a-b-c",
        ),
        (
            "{{ [{'k': {'n': 1}}, {'k': {'n': 2}}] | join('/', attribute='k.n') }}",
            "1/2",
        ),
        (
            "{{ 'aXb' | lower | upper | replace('X', '-') | title }}{{ ' a ' | trim }}",
            "A-Ba",
        ),
        (
            "{{ 'a b' | split | list }}{{ 'ab' | reverse }}{{ 7 | string }}",
            "[\"a\",\"b\"]ba7",
        ),
        ("{{ '%5.1f|%-4s|' | format(2.25, 'a') }}", "  2.2|a   |"),
        (
            "{% macro f(a, b='x' ~ 'y') %}{{ a ~ b }}{% endmacro %}{{ f(1 + 1) }}",
            "2xy",
        ),
    ] {
        assert_eq!(render(source), expected, "{source}");
    }
    assert_eq!(
        fails("{{ 'a' ~ 'b' ~ params.nope }}"),
        fails("{{ params.nope ~ 'a' ~ 'b' }}")
    );
    assert_eq!(
        fails("{{ 1 - 1 + ('a' + 1) }}"),
        "t.md, line 1, column 13: invalid operation: tried to use + operator on unsupported types string and number"
    );
}

/// A JSON file.
struct Document(String);

impl Source for Document {
    fn name(&self) -> String {
        "a.json".to_owned()
    }

    fn path(&self) -> &Path {
        Path::new("a.json")
    }

    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(io::Cursor::new(self.0.clone())))
    }
}

/// Templates that use parts of `x` in ways of their own.
const PARTS: &[&str] = &[
    "{{ x }}",
    "{{ x.a }}|{{ x.a.b }}",
    "{{ x['a'] }}{{ x.b }}",
    "{{ x.a[0] }}{{ x.a[-1:] }}",
    "{{ x | length }}{{ x.a }}",
    "{{ x | tojson }}{{ x.a }}",
    "{{ x is mapping }}{{ x.a is defined }}{{ x.b is none }}",
    "{% for key in x %}{{ key }}{{ x.a }}{% endfor %}",
    "{% for key, value in x | items %}{{ key }}={{ value }}{% endfor %}{{ x.c }}",
    "{% for item in x.a %}{{ item.b }}{% endfor %}",
    "{{ x | map(attribute='a') | list }}{{ x.b }}",
    "{{ [x] | map(attribute='b') | join }}{{ x.a }}",
    "{{ [x][0].b }}{{ x.a }}",
    "{{ {'y': x}.y.b }}{{ x.a }}",
    "{% set y = x %}{{ y.b }}{{ x.a }}",
    "{% set y = x.a %}{{ y.b }}",
    "{% with y = x %}{{ y.b }}{{ x.a }}{% endwith %}",
    "{% macro m(y) %}{{ y.b }}{% endmacro %}{{ m(x) }}{{ x.a }}",
    "{% macro m() %}{{ x.b }}{% endmacro %}{{ m() }}{{ x.a }}",
    "{% filter upper %}{{ x.b }}{% endfilter %}{{ x.a }}",
    "{% set ns = namespace(y=x) %}{{ ns.y.b }}{{ x.a }}",
    "{{ (x if true else 1).b }}{{ x.a }}",
    "{{ (x or 1).b }}{{ x.a }}",
    "{{ x.items() | list }}{{ x.a }}",
    "{{ x.keys() | list }}{{ x.a }}",
    "{{ x.get('b') }}{{ x.a }}",
    "{{ x | attr('b') }}{{ x.a }}",
    "{{ x == x }}{{ 'b' in x }}{{ x.a }}",
    "{{ x.a ~ x.b ~ x.c.a }}",
    "{{ x['odd key'] }}{{ x[('b')] }}{{ x.a }}",
    "{% if x.a %}{{ x.b }}{% else %}{{ x.c | default('none') }}{% endif %}",
    "{% for x in [x.a, x.b] %}{{ x }}{% endfor %}",
    "{% for y in [x] %}{{ y.b }}{{ x.a }}{% endfor %}",
    "{{ dict(x).b }}{{ x.a }}",
];

static TEMPLATES: LazyLock<Vec<Template>> = LazyLock::new(|| {
    let compiled = |source: &&str| Template::compile("t", source).unwrap();
    PARTS.iter().map(compiled).collect()
});

proptest! {
    #[test]
    fn a_template_over_parts_of_a_file_renders_what_it_renders_over_the_whole(
        value in json(),
        of_member in any::<bool>(),
    ) {
        let mut scope = Scope::new();
        let document = |value: &Value| Arc::new(Document(value.to_string()));
        let whole = if of_member {
            scope.insert_value("x", json!({"a": 1, "c": 2}));
            scope.insert_file("x.b", document(&value), Format::Json);
            json!({"a": 1, "c": 2, "b": value})
        } else {
            scope.insert_file("x", document(&value), Format::Json);
            value
        };
        for template in TEMPLATES.iter() {
            let of_parts = template.render(&scope.context_of(template).unwrap());
            limits::begin();
            let context = engine::of_json(&json!({ "x": &whole }));
            let of_all = template.env.get_template("t").unwrap().render(context);
            prop_assert_eq!(of_parts.ok(), of_all.ok(), "{}", template.source());
        }
    }
}
