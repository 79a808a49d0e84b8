//! The step `http`: calls a service and writes its reply.

pub(crate) mod connection;

use super::batch_context::{BatchContext, StepReport, StepResult, input_failure, parse_failure};
use super::{files, jq, values};
use connection::{Client, unreachable};
use milepost_agents::fault::{CallFault, FaultKind};
use milepost_agents::http::{Cancelled, HttpRequest, HttpResponse, LARGEST, Method, origin, shown};
use milepost_core::base::digest::Digest;
use milepost_core::base::redact::Redactor;
use milepost_core::base::source::Source;
use milepost_core::expr::jq::Jq;
use milepost_core::expr::json;
use milepost_core::expr::place::excerpt;
use milepost_core::expr::scope::{Format, Scope};
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::pipeline::Asset;
use milepost_core::model::retry;
use milepost_core::model::step::{HttpStep, Step, StepKind, Text};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::io::Read as _;
use std::time::Duration;

/// The most bytes of a reply that a failure shows.
const SHOWN: usize = 2000;

/// The end of the message of an attempt that failed after a service accepted its request.
const ACCEPTED: &str = "a service has accepted the request, so no run sends it again until a fact of the batch changes: check what it did; \
     `run --failed` sends the request again";

/// The end of the message if no reply says whether the service carried out the request.
const MAY_BE_DONE: &str = "a service may have carried out the request, so no run sends it again until a fact of the batch changes: check that, \
     or declare `idempotent = true`; `run --failed` sends the request again";

/// Checks that a service answers at a URL, with any status below 500.
///
/// # Errors
/// When it does not answer, or with a server error.
pub(crate) fn probe(
    client: &Client,
    url: &str,
    within: Duration,
    cancelled: Cancelled<'_>,
) -> Result<(), String> {
    let send = HttpRequest {
        url,
        headers: &[],
        body: None,
        within,
        largest: LARGEST,
    };
    let http = client.http.get().map_err(|error| error.to_string())?;
    let answer = http.send(send, cancelled).map_err(|fault| fault.message)?;
    match answer.status {
        status @ 500.. => Err(format!("it answers with HTTP {status}")),
        _ => Ok(()),
    }
}

/// Runs the step.
///
/// # Errors
/// When the service cannot be reached, takes too long, or its reply does not suit the output.
pub(crate) fn call(
    ctx: &mut BatchContext<'_>,
    out: &str,
    call: &HttpStep,
    timeout: Duration,
) -> StepResult {
    // A retry cannot help if the request cannot be built.
    let url = ctx.scope.context_of(&call.url.template)?;
    let url = call.url.template.render_url(&url);
    let url = url.map_err(|error| parse_failure(error).for_good())?;
    let who = format!("{} {}", call.method, shown(&url));
    allowed(call, &url, &who)?;
    let mut headers = Vec::with_capacity(call.headers.len() + 1);
    for (name, text) in &call.headers {
        headers.push((
            name.as_str(),
            rendered(ctx, text).map_err(Outcome::for_good)?,
        ));
    }
    if let Some(name) = &call.idempotency_key {
        // Each step and iteration of a batch has a request of its own.
        let iteration = ctx.scope.value("iteration").ok();
        let request = json!([ctx.name, out, iteration, (ctx.facts)()]);
        headers.push((name.as_str(), Digest::of(request.to_string()).to_string()));
    }
    let body = body(ctx, call).map_err(Outcome::for_good)?;
    let named = headers.iter().any(|(name, _)| *name == "content-type");
    if let Some((_, kind)) = body.as_ref().filter(|_| !named) {
        headers.push(("content-type", (*kind).to_owned()));
    }
    let secrets = Secrets::of(ctx, call, &url);
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let send = HttpRequest {
        url: &url,
        headers: &headers,
        body: body.map(|(body, _)| body),
        within: timeout,
        largest: LARGEST,
    };
    let method = Method::from_bytes(call.method.as_bytes()).map_err(parse_failure)?;
    let client = ctx.client.http.get();
    let client = client.map_err(|why| parse_failure(format!("{who}: {why}")).for_good())?;
    let connection = ctx.client.connection(&url, &call.url);
    if ctx.probe.is_none() {
        ctx.probe = connection.enter()?;
    }
    let cancel = ctx.cancel;
    if cancel.reason().is_some() {
        // The caller replaces this by the reason.
        return Err(parse_failure(format!("{who}: it was not sent")));
    }
    let answer = client.call(&method, send, &|| cancel.reason().is_some());
    let is_refused = matches!(&answer, Err(fault) if fault.kind == FaultKind::Connect);
    connection.note(is_refused);
    if !is_refused {
        ctx.probe = None;
    } else if ctx.probe.is_none() {
        ctx.probe = connection.enter()?;
    }
    let done = match &answer {
        Ok(answer) if is_success(answer) => Some(ACCEPTED),
        // A redirect may say that the request was carried out, and where the result is.
        Ok(answer) if answer.cut.is_some() || !(400..500).contains(&answer.status) => {
            Some(MAY_BE_DONE)
        }
        Err(CallFault {
            kind: FaultKind::Timeout | FaultKind::Cut | FaultKind::Cancelled,
            ..
        }) => Some(MAY_BE_DONE),
        _ => None,
    };
    let done = done.filter(|_| !call.idempotent);
    ctx.sent.set(done.or(ctx.sent.get()));
    let answer = answer
        .map(|answer| answer.without_keys(&secrets.reply))
        .map_err(|fault| of_fault(&who, &fault, timeout))
        .and_then(|answer| accepted(&who, answer, timeout))
        .and_then(|answer| whole(&who, answer, &headers))
        .map_err(|outcome| match done {
            Some(_) => outcome.for_good(),
            None => outcome,
        });
    let taken = answer.and_then(|answer| {
        // The service has carried out the request: it is not repeated, and the reply is saved aside.
        take(ctx, out, call.schema.as_ref(), &who, &answer).map_err(|mut outcome| {
            if let Err(lost) = files::put(ctx, out, &answer.body) {
                outcome.details.push(lost.message);
            }
            outcome.for_good()
        })
    });
    taken.map_err(|outcome| secrets.hide(outcome))?;
    Ok(StepReport::default())
}

/// Returns the outcome of a step after its last attempt. If the service refused the connection, the batch waits for it, unless its
/// declaration says how it fails.
pub(crate) fn given_up(ctx: &mut BatchContext<'_>, step: &Step, mut outcome: Outcome) -> Outcome {
    if outcome.kind != OutcomeKind::Connect || !matches!(step.kind, StepKind::Http(_)) {
        return outcome;
    }
    if let Some(probe) = ctx.probe.take() {
        outcome = probe.give_up(outcome);
    }
    let (stage, kind) = (ctx.stage, outcome.kind.name());
    let is_named = step.errors.contains_key(kind) || stage.errors.contains_key(kind);
    if is_named || stage.policy.tolerates_failures() {
        return outcome;
    }
    unreachable(&outcome)
}

/// Checks that the step may call this host.
fn allowed(call: &HttpStep, url: &str, who: &str) -> Result<(), Outcome> {
    let wanted = origin(url);
    let mut hosts = call.hosts.iter();
    if call.hosts.is_empty() || wanted.is_some() && hosts.any(|host| origin(host) == wanted) {
        return Ok(());
    }
    let message = format!("{who}: `hosts` does not list this host, so nothing was sent");
    let listed = format!("hosts = {:?}", call.hosts);
    Err(parse_failure(message).with_details(vec![listed]).for_good())
}

fn rendered(ctx: &BatchContext<'_>, text: &Text) -> Result<String, Outcome> {
    let scope = ctx.scope.context_of(&text.template)?;
    text.template.render(&scope).map_err(parse_failure)
}

/// Returns the body and its media type: a file as it is, or the JSON of the program.
fn body(
    ctx: &BatchContext<'_>,
    call: &HttpStep,
) -> Result<Option<(Vec<u8>, &'static str)>, Outcome> {
    let Some(program) = &call.body else {
        return Ok(None);
    };
    if let Some(file) = call.sent_file().and_then(|name| ctx.scope.source(name)) {
        let kind = kind_of(&file.name());
        return Ok(Some((all_of(&*file)?, kind)));
    }
    let scope = with_base64(&ctx.scope, &program.jq)?;
    let value = ctx.jq.one(program, &scope)?;
    let bytes = serde_json::to_vec(&value).map_err(parse_failure)?;
    Ok(Some((bytes, "application/json")))
}

fn all_of(file: &dyn Source) -> Result<Vec<u8>, Outcome> {
    let failed = |error: std::io::Error| input_failure(&file.name(), error);
    let mut bytes = Vec::new();
    let mut opened = file.open().map_err(failed)?;
    opened.read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Returns the scope with the binary files that a program names as base64.
fn with_base64(scope: &Scope, jq: &Jq) -> Result<Scope, Outcome> {
    let mut with = scope.clone();
    for name in scope.binary() {
        let (root, member) = name
            .split_once('.')
            .map_or((name, None), |(root, member)| (root, Some(member)));
        let keys = jq.roots().keys_of(root);
        let is_named = jq.roots().has(root)
            && member.is_none_or(|member| keys.is_none_or(|keys| keys.contains(member)));
        if !is_named {
            continue;
        }
        let mut contents = Vec::new();
        for file in scope.sources(name).unwrap_or_default() {
            contents.push(Value::from(values::to_base64(&all_of(&*file)?)));
        }
        let value = match contents.pop() {
            Some(only) if !scope.is_list(name) => only,
            last => contents.into_iter().chain(last).collect(),
        };
        with.insert_value(name, value);
    }
    Ok(with)
}

/// Returns the media type of a file by its name.
fn kind_of(name: &str) -> &'static str {
    match Format::of_path(name) {
        Format::Json => "application/json",
        Format::Ndjson => "application/x-ndjson",
        Format::Csv => "text/csv; charset=utf-8",
        Format::Toml => "application/toml",
        Format::Text => "text/plain; charset=utf-8",
        Format::Binary => match name.rsplit('.').next().map(str::to_lowercase).as_deref() {
            Some("png") => "image/png",
            Some("jpg" | "jpeg") => "image/jpeg",
            Some("pdf") => "application/pdf",
            _ => "application/octet-stream",
        },
    }
}

/// Returns the outcome of a call without a complete reply.
fn of_fault(who: &str, fault: &CallFault, timeout: Duration) -> Outcome {
    let time = milepost_core::base::duration::show_duration(timeout);
    let message = format!("{who}: {}", fault.message);
    match fault.kind {
        FaultKind::Connect => Outcome::new(OutcomeKind::Connect, message),
        FaultKind::Timeout => Outcome::new(
            OutcomeKind::Timeout,
            format!("{who}: no answer within {time}"),
        ),
        // The attempt replaces this by the reason of its cancellation.
        FaultKind::Cancelled => Outcome::new(OutcomeKind::Timeout, message),
        FaultKind::Cut => Outcome::new(OutcomeKind::Cut, message),
        // An invalid address or header, or a reply that is too large.
        _ => Outcome::new(OutcomeKind::Parse, message).for_good(),
    }
}

fn is_success(answer: &HttpResponse) -> bool {
    (200..300).contains(&answer.status)
}

/// Returns the reply if it is complete and reports success.
fn accepted(who: &str, answer: HttpResponse, timeout: Duration) -> Result<HttpResponse, Outcome> {
    if let Some(fault) = &answer.cut {
        let details = beginning(&answer.body);
        return Err(of_fault(who, fault, timeout).with_details(details));
    }
    let status = answer.status;
    if is_success(&answer) {
        return Ok(answer);
    }
    let hint = match answer.header("location") {
        Some(place) if (300..400).contains(&status) => {
            format!(
                ", and points to {}: redirects are not followed",
                shown(place)
            )
        }
        _ => String::new(),
    };
    let message = format!("{who}: HTTP {status}{hint}");
    let mut outcome = Outcome::of_status(status, message).with_details(beginning(&answer.body));
    match answer.retry_after() {
        Some(wait) if retry::is_too_long(Some(wait)) => {
            let wait = milepost_core::base::duration::show_duration(wait);
            outcome.message = format!("{}; the server asks to retry in {wait}", outcome.message);
            outcome = outcome.for_good();
        }
        wait => outcome.wait = wait,
    }
    Err(outcome)
}

/// Returns the reply unless it is a part that the request did not ask for.
fn whole(
    who: &str,
    answer: HttpResponse,
    headers: &[(&str, &str)],
) -> Result<HttpResponse, Outcome> {
    if answer.status != 206 || headers.iter().any(|(name, _)| *name == "range") {
        return Ok(answer);
    }
    let message = format!("{who}: HTTP 206: a part of the content, but the request has no `range`");
    Err(Outcome::new(OutcomeKind::Cut, message).with_details(beginning(&answer.body)))
}

/// Writes the reply in the format of the output.
fn take(
    ctx: &BatchContext<'_>,
    out: &str,
    schema: Option<&Asset>,
    who: &str,
    answer: &HttpResponse,
) -> Result<(), Outcome> {
    let output = ctx.stage.output(out);
    let format = output.map_or(Format::Json, |output| output.format);
    let body = &answer.body;
    let wrong = |message: String| {
        let message = format!("{who}: {message}");
        Outcome::new(OutcomeKind::Parse, message).with_details(beginning(body))
    };
    let says_json = says_json(answer);
    if let Some(coding) = answer.header("content-encoding")
        && !coding.eq_ignore_ascii_case("identity")
    {
        return Err(wrong(format!(
            "the response is compressed ({}), although the request accepts no compression",
            excerpt(coding, 40)
        )));
    }
    let must =
        schema.is_some() || format == Format::Json || (format == Format::Binary && says_json);
    let value = if body.is_empty() && answer.status == 204 {
        Some(Value::Null)
    } else {
        match json::parse_bytes(body) {
            Ok(value) => Some(value).filter(|_| must || says_json),
            Err(error) if must => return Err(wrong(format!("the response is not JSON: {error}"))),
            Err(_) => None,
        }
    };
    if let (Some(schema), Some(value)) = (schema, &value) {
        validate_response(ctx, schema, who, value)?;
    }
    match (format, &value) {
        (Format::Json | Format::Binary, Some(value))
        | (Format::Ndjson, Some(value @ Value::Array(_)))
        | (_, Some(value @ Value::String(_))) => jq::write(ctx, out, value),
        (Format::Binary, None) => files::put(ctx, out, body),
        _ if std::str::from_utf8(body).is_ok() => files::put(ctx, out, body),
        _ => Err(wrong(format!(
            "`{out}` is text, but the response is not UTF-8"
        ))),
    }
}

fn says_json(answer: &HttpResponse) -> bool {
    let kind = answer.header("content-type").unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json") || kind.to_lowercase().ends_with("+json")
}

fn validate_response(
    ctx: &BatchContext<'_>,
    schema: &Asset,
    who: &str,
    value: &Value,
) -> Result<(), Outcome> {
    let compiled = ctx.schemas.get(schema);
    let compiled = compiled
        .map_err(|error| Outcome::new(OutcomeKind::Schema, error.to_string()).for_good())?;
    let violations = compiled.violations(value, "", 20);
    let Some(first) = violations.first() else {
        return Ok(());
    };
    let message = format!("{who}: the reply does not match {}: {first}", schema.path);
    let details = violations.iter().map(ToString::to_string).collect();
    Err(Outcome::new(OutcomeKind::Schema, message).with_details(details))
}

/// Returns the first lines of a body.
fn beginning(body: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(&body[..body.len().min(SHOWN)]);
    let is_shown = |c: char| !c.is_control() || c == '\t';
    let lines = text.lines().take(20);
    lines
        .map(|line| line.chars().filter(|&c| is_shown(c)).collect())
        .collect()
}

/// Removes values from the environment from messages and replies.
struct Secrets {
    /// All of them, which must not be shown.
    shown: Redactor,
    /// The values in headers that carry keys, which are removed from the reply too.
    reply: Redactor,
}

impl Secrets {
    fn of(ctx: &BatchContext<'_>, call: &HttpStep, url: &str) -> Self {
        let value = |name: &String| {
            let name = name.strip_prefix("env.")?.split('.').next()?;
            ctx.declared_env.get(name)
        };
        let of = |text: &Text| -> Vec<String> {
            let names = text.template.names().iter();
            names.filter_map(value).cloned().collect()
        };
        let headers = call.headers.iter().flat_map(|(_, text)| of(text));
        // A value at the start of the URL is the address of the service, no secret.
        let inside = of(&call.url);
        let inside = inside.into_iter().filter(|value| !url.starts_with(value));
        Self {
            shown: Redactor::new(headers.chain(inside)),
            reply: Redactor::new(call.key_headers().flat_map(of)),
        }
    }

    fn hide(&self, mut outcome: Outcome) -> Outcome {
        for text in std::iter::once(&mut outcome.message).chain(&mut outcome.details) {
            if let Cow::Owned(hidden) = self.shown.known_text(text) {
                *text = hidden;
            }
        }
        outcome
    }
}
