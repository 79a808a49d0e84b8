//! The stream of events of a page (server-sent events): new records of the journal, and notices of other changes.

use crate::web::request::PageRequest;
use crate::web::response::{HttpAnswer, NO_DOCUMENT, protect};
use crate::web::site::Site;
use http_body_util::BodyExt as _;
use hyper::Response;
use hyper::body::{Body, Bytes, Frame};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use milepost_engine::ops::inspect::live::Changes;
use serde_json::json;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// How often the journal is read for a stream.
const PERIOD: Duration = Duration::from_millis(500);

/// How long a stream is silent at most: a browser that has gone is noticed when an event is sent.
const SILENCE: Duration = Duration::from_secs(10);

/// Events that wait for the browser.
const WAITING: usize = 16;

/// Starts a stream after the event that the browser had last, or with the next one.
pub(super) fn stream(site: &Site, request: &PageRequest) -> HttpAnswer {
    let last = HeaderName::from_static("last-event-id");
    let after = request
        .header(last)
        .or(request.query("after"))
        .map(str::to_owned);
    let (sender, receiver) = channel(WAITING);
    tokio::spawn(follow(site.clone(), after, sender));
    let mut answer = Response::new(EventBody(receiver).boxed());
    protect(&mut answer, NO_DOCUMENT);
    let event_stream = HeaderValue::from_static("text/event-stream");
    answer.headers_mut().insert(CONTENT_TYPE, event_stream);
    answer
}

/// Sends changes until the browser or the server ends.
async fn follow(site: Site, mut after: Option<String>, sender: Sender<Bytes>) {
    let mut ended = site.ended.subscribe();
    let mut since_last = Duration::ZERO;
    loop {
        let (of_read, at) = (site.clone(), after.clone());
        let read = tokio::task::spawn_blocking(move || of_read.live.changes(at.as_deref()));
        let Ok(read) = read.await else {
            return;
        };
        // The page that the browser requests next says what is wrong.
        let changes = read.unwrap_or_else(|_| Changes::unknown(after.as_deref()));
        if !changes.is_new && after.is_some() && since_last < SILENCE {
            since_last += PERIOD;
        } else {
            since_last = Duration::ZERO;
            let event = event(&changes);
            after = Some(changes.at);
            if sender.send(event).await.is_err() {
                return;
            }
        }
        tokio::select! {
            () = tokio::time::sleep(PERIOD) => {}
            () = sender.closed() => return,
            _ = ended.wait_for(|ended| *ended) => return,
        }
    }
}

/// Formats an event: the records since the last one, each as a line for people.
fn event(changes: &Changes) -> Bytes {
    let records = changes.records.iter().map(|record| {
        json!({
            "time": record.timestamp.to_string(),
            "kind": record.event_type,
            "who": record.agent_name,
            "text": record.summary,
        })
    });
    let data = json!({
        "running": changes.running,
        "left_out": changes.left_out,
        "records": records.collect::<Vec<_>>(),
    });
    Bytes::from(format!(
        "retry: 1000\nid: {}\nevent: change\ndata: {data}\n\n",
        changes.at
    ))
}

/// A body that gets its parts from a channel.
struct EventBody(Receiver<Bytes>);

impl Body for EventBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let part = self.0.poll_recv(context);
        part.map(|part| part.map(|bytes| Ok(Frame::data(bytes))))
    }
}
