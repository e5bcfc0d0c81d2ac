//! Connections cut at every byte of an exchange, in either direction.
//!
//! Each walk has a server of its own, whose pauses are long enough for a cut to fall into them.

use std::ops::RangeInclusive;
use std::time::Duration;

use futures::StreamExt;
use mcp_transport::{CancelCause, Era, Revisions};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::client::{DualClient, Failure};
use crate::proxy::Direction::{self, Request, Response};
use crate::proxy::{Cut, Passed, Proxy, tcp};
use crate::server::{End, Run, Server};

/// How the call is answered: at once when it is done, or as a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    Stream,
}

/// Of the handler, before all it says.
const PAUSE: Duration = Duration::from_millis(10);

/// The era, and how to get a server that leads there.
const ERAS: [(Era, fn() -> Revisions); 3] =
    [(Era::Modern, Revisions::all), (Era::Modern, Revisions::modern_only), (Era::Legacy, Revisions::legacy_only)];

/// What is sent in an era up to the call, a connection each.
fn exchanges(era: Era) -> &'static [&'static str] {
    match era {
        Era::Modern => &["server/discover", "tools/call"],
        Era::Legacy => &["server/discover", "initialize", "notifications/initialized", "tools/call"],
    }
}

/// What came of one walk.
struct Walk {
    client: DualClient,
    server: Server,
    proxy: Proxy,
    called: Result<Value, Failure>,
    took: Duration,
}

impl Walk {
    /// Connects and calls once.
    async fn take(revisions: Revisions, form: Form, cut: Option<Cut>) -> Self {
        let server = Server::new(revisions);
        let proxy = Proxy::new(server.connector(), cut);
        let client = DualClient::new(proxy.connector());
        Self::through(client, server, proxy, form).await
    }

    /// The same over sockets.
    async fn take_tcp(revisions: Revisions, form: Form, cut: Option<Cut>) -> Self {
        let server = Server::new(revisions);
        let proxy = Proxy::new(server.listen().await, cut);
        let client = DualClient::new(tcp(proxy.listen().await));
        Self::through(client, server, proxy, form).await
    }

    async fn through(mut client: DualClient, server: Server, proxy: Proxy, form: Form) -> Self {
        let begun = Instant::now();
        let called = match client.connect().await {
            Ok(_) => client.call(&arguments(form)).await,
            Err(failure) => Err(failure),
        };
        Self { client, server, proxy, called, took: begun.elapsed() }
    }

    /// Waits for what is still at work, says goodbye, and asserts that nothing is left but these sessions.
    async fn end(&mut self, orphans: RangeInclusive<usize>) {
        let begun = Instant::now();
        while self.is_at_work() && begun.elapsed() < Duration::from_secs(5) {
            sleep(Duration::from_millis(1)).await;
        }
        self.client.close().await;
        let left = self.server.service.counts();
        assert_eq!((left.in_flight, left.streams), (0, 0));
        assert!(orphans.contains(&left.sessions), "{left:?}");
    }

    fn is_at_work(&self) -> bool {
        let counts = self.server.service.counts();
        counts.in_flight + counts.streams > 0
    }
}

fn arguments(form: Form) -> Value {
    json!({"word": "done", "tell": if form == Form::Json { 0 } else { 3 }, "pause_ms": PAUSE.as_millis()})
}

fn is_answered(called: &Result<Value, Failure>) -> bool {
    called.as_ref().is_ok_and(|result| result["content"][0]["text"] == "done")
}

/// How many bytes of an answer make it one: to the blank line of its last event, or all of it.
fn answered_after(passed: &Passed) -> usize {
    let response = &passed.response;
    let is_stream = response.windows(17).any(|window| window == b"text/event-stream");
    let last_event = || response.windows(2).rposition(|pair| pair == b"\n\n").map(|at| at + 2);
    if is_stream { last_event().expect("an event") } else { response.len() }
}

/// One cut: which connection, where, and what the whole exchange looks like.
#[derive(Clone, Copy)]
struct Place<'a> {
    era: Era,
    form: Form,
    connection: usize,
    direction: Direction,
    after: usize,
    pause: Duration,
    whole: &'a Passed,
}

impl<'a> Place<'a> {
    /// All places of one connection; for a call also the one where its handler is at work and nothing was said yet.
    fn on(era: Era, form: Form, connection: usize, whole: &'a Passed) -> Vec<Self> {
        let place = move |direction, after, pause| Self { era, form, connection, direction, after, pause, whole };
        let mut places = Vec::new();
        for (direction, length) in [(Request, whole.request.len()), (Response, whole.response.len())] {
            places.extend((0..=length).map(|after| place(direction, after, Duration::ZERO)));
        }
        if exchanges(era)[connection] == "tools/call" {
            places.push(place(Request, whole.request.len(), PAUSE / 2));
        }
        places
    }

    fn cut(&self, attempts: usize) -> Cut {
        let connections = self.connection..=self.connection + attempts - 1;
        Cut { connections, direction: self.direction, after: self.after, pause: self.pause }
    }

    fn exchange(&self) -> &'static str {
        exchanges(self.era)[self.connection]
    }

    /// Whether the client cannot have its answer.
    fn loses_answer(&self) -> bool {
        self.direction == Request || self.after < answered_after(self.whole)
    }

    /// How often the server takes the request, if the first so many of so many attempts are cut.
    fn arrivals(&self, cut: usize, attempts: usize) -> RangeInclusive<usize> {
        let uncut = attempts - cut;
        if self.direction == Response || !self.pause.is_zero() {
            attempts..=attempts
        } else if self.after < self.whole.request.len() {
            uncut..=uncut
        } else {
            // It has all of it, and with that the news that nobody waits. Which it sees first is its own affair.
            uncut..=attempts
        }
    }

    /// What is sent, in order.
    fn sent(&self, attempts: usize) -> Vec<&'static str> {
        let each = exchanges(self.era).iter().enumerate();
        each.flat_map(|(number, method)| vec![*method; if number == self.connection { attempts } else { 1 }]).collect()
    }
}

/// What a session keeps on running is answered, to nobody; what has no session ends with its connection, at once.
fn assert_end(run: &Run, era: Era, cut: Instant) {
    let (end, at) = run.end.expect("an end");
    match era {
        Era::Legacy => assert_eq!(end, End::Answered),
        Era::Modern if end == End::Answered => assert!(at <= cut, "it ran on after the cut"),
        Era::Modern => assert_eq!((end, at), (End::Dropped(Some(CancelCause::Disconnected)), cut)),
    }
}

/// One cut: the request is sent again, and its answer arrives.
async fn cut_once(revisions: Revisions, place: Place<'_>) {
    let attempts = if place.loses_answer() { 2 } else { 1 };
    let mut walk = Walk::take(revisions, place.form, Some(place.cut(1))).await;
    assert!(is_answered(&walk.called), "{:?}", walk.called);
    assert!(walk.took < Duration::from_secs(1));
    assert_eq!(walk.client.verdict.as_ref().map(|verdict| verdict.era()), Some(place.era));
    assert_eq!(walk.client.methods(), place.sent(attempts));
    assert_new_ids(&walk.client);

    let (calls, orphans) = match place.exchange() {
        "tools/call" => (place.arrivals(attempts - 1, attempts), 0..=0),
        // Of the session whose id was lost nobody knows but the server.
        "initialize" => (1..=1, less(&place.arrivals(attempts - 1, attempts), 1)),
        _ => (1..=1, 0..=0),
    };
    walk.end(orphans).await;
    let runs = walk.server.runs.list();
    assert!(calls.contains(&runs.len()), "{runs:?}");
    assert!(runs.iter().all(|run| run.era == place.era));
    let (last, lost) = runs.split_last().expect("a run");
    assert_eq!(last.end.map(|(end, _)| end), Some(End::Answered));
    let cut = walk.proxy.passed()[place.connection].cut.expect("a cut");
    for run in lost {
        assert_end(run, place.era, cut);
    }
}

/// Two cuts: then it is given up, and nothing of it sticks.
async fn cut_twice(revisions: Revisions, place: Place<'_>) {
    let mut walk = Walk::take(revisions, place.form, Some(place.cut(2))).await;
    assert_eq!(walk.called, Err(Failure::Lost));
    assert!(walk.took < Duration::from_secs(1));
    let sent = place.sent(2);
    assert_eq!(walk.client.methods(), sent[..place.connection + 2]);
    assert_eq!(walk.client.verdict.is_some(), place.connection > 0, "a lost answer has settled the era");
    let runs = walk.server.runs.list().len();
    let is_call = place.exchange() == "tools/call";
    let arrivals = if is_call { place.arrivals(2, 2) } else { 0..=0 };
    assert!(arrivals.contains(&runs), "{runs}");

    if walk.client.session.is_none() {
        assert_eq!(walk.client.connect().await, Ok(place.era));
    }
    walk.called = walk.client.call(&arguments(place.form)).await;
    assert!(is_answered(&walk.called), "{:?}", walk.called);
    let orphans = if place.exchange() == "initialize" { place.arrivals(2, 2) } else { 0..=0 };
    walk.end(orphans).await;
    assert_eq!(walk.server.runs.list().len(), runs + 1);
}

fn less(range: &RangeInclusive<usize>, by: usize) -> RangeInclusive<usize> {
    range.start() - by..=range.end() - by
}

fn assert_new_ids(client: &DualClient) {
    let mut ids: Vec<_> = client.sent.iter().filter_map(|(id, _)| id.as_u64()).collect();
    let sent = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), sent, "an id was used twice");
}

/// Every place on every connection of an era, and two cuts at some.
async fn everywhere(era: Era, revisions: Revisions, form: Form) {
    let whole = Walk::take(revisions, form, None).await;
    assert!(is_answered(&whole.called), "{:?}", whole.called);
    let connections = whole.proxy.passed();
    assert_eq!(connections.len(), exchanges(era).len());
    let call = connections.len() - 1;
    for (connection, whole) in connections.iter().enumerate() {
        // What comes before the call is the same for either form.
        if connection < call && form == Form::Stream {
            continue;
        }
        for place in Place::on(era, form, connection, whole) {
            cut_once(revisions, place).await;
            // Losing both answers differs little from place to place: some will do.
            let is_tried = place.after % 16 == 0 && place.exchange() != "notifications/initialized";
            if is_tried && place.loses_answer() {
                cut_twice(revisions, place).await;
            }
        }
    }
}

macro_rules! everywhere {
    ($($name:ident: $number:literal $form:ident,)*) => {$(
        #[tokio::test(start_paused = true)]
        async fn $name() {
            let (era, revisions) = ERAS[$number];
            everywhere(era, revisions(), Form::$form).await;
        }
    )*};
}

everywhere! {
    all_revisions_json: 0 Json,
    all_revisions_stream: 0 Stream,
    modern_only_json: 1 Json,
    modern_only_stream: 1 Stream,
    legacy_only_json: 2 Json,
    legacy_only_stream: 2 Stream,
}

/// Over sockets, where a cut comes as the system has it come: nothing hangs, and nothing that was answered runs twice.
#[tokio::test]
async fn over_sockets() {
    for (era, revisions) in [ERAS[0], ERAS[2]] {
        for form in [Form::Json, Form::Stream] {
            let whole = Walk::take_tcp(revisions(), form, None).await;
            let connections = whole.proxy.passed();
            let call = connections.len() - 1;
            let mut places = Place::on(era, form, call, &connections[call]);
            places.retain(|place| place.pause.is_zero());
            let walks = futures::stream::iter(places).map(|place| cut_socket(revisions(), place));
            walks.buffer_unordered(64).collect::<()>().await;
        }
    }
}

async fn cut_socket(revisions: Revisions, place: Place<'_>) {
    let attempts = if place.loses_answer() { 2 } else { 1 };
    let mut walk = Walk::take_tcp(revisions, place.form, Some(place.cut(1))).await;
    assert!(is_answered(&walk.called), "{:?}", walk.called);
    assert_eq!(walk.client.verdict.as_ref().map(|verdict| verdict.era()), Some(place.era));
    assert_eq!(walk.client.methods(), place.sent(attempts));
    walk.end(0..=0).await;
    let runs = walk.server.runs.list();
    assert!(place.arrivals(attempts - 1, attempts).contains(&runs.len()), "{runs:?}");
    assert!(runs.iter().any(|run| run.end.is_some_and(|(end, _)| end == End::Answered)), "{runs:?}");
}
