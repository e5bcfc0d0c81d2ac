//! A subscriber that writes everything down.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// What was recorded of fields, all as text.
pub type Fields = BTreeMap<String, String>;

/// A span, from its making to its end.
#[derive(Clone, Debug)]
pub struct Span {
    pub level: Level,
    pub fields: Fields,
    pub is_closed: bool,
}

/// An event, and the span it came in.
#[derive(Clone, Debug)]
pub struct Told {
    pub level: Level,
    pub fields: Fields,
    pub span: Option<usize>,
}

#[derive(Debug, Default)]
struct State {
    spans: Vec<(Span, usize)>,
    entered: Vec<usize>,
    events: Vec<Told>,
}

/// Writes down what is told of one target, up to a level.
#[derive(Clone, Debug)]
pub struct Recorder {
    state: Arc<Mutex<State>>,
    most: Level,
}

impl Recorder {
    pub fn up_to(most: Level) -> Self {
        Self { state: Arc::default(), most }
    }

    pub fn spans(&self) -> Vec<Span> {
        self.state().spans.iter().map(|(span, _)| span.clone()).collect()
    }

    pub fn events(&self) -> Vec<Told> {
        self.state().events.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panicked")
    }
}

/// The place of a span in the list.
fn place(id: &Id) -> usize {
    usize::try_from(id.into_u64()).expect("few spans") - 1
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "mcp_transport" && *metadata.level() <= self.most
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Writer::default();
        span.record(&mut fields);
        let mut state = self.state();
        state.spans.push((Span { level: *span.metadata().level(), fields: fields.0, is_closed: false }, 1));
        Id::from_u64(u64::try_from(state.spans.len()).expect("few spans"))
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut fields = Writer::default();
        values.record(&mut fields);
        self.state().spans[place(span)].0.fields.extend(fields.0);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Writer::default();
        event.record(&mut fields);
        let mut state = self.state();
        let span = event.parent().map(place).or_else(|| state.entered.last().copied());
        state.events.push(Told { level: *event.metadata().level(), fields: fields.0, span });
    }

    fn enter(&self, span: &Id) {
        self.state().entered.push(place(span));
    }

    fn exit(&self, span: &Id) {
        let left = self.state().entered.pop();
        assert_eq!(left, Some(place(span)), "the last one entered is left first");
    }

    fn clone_span(&self, id: &Id) -> Id {
        self.state().spans[place(id)].1 += 1;
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        let mut state = self.state();
        let (span, references) = &mut state.spans[place(&id)];
        *references -= 1;
        span.is_closed = *references == 0;
        span.is_closed
    }
}

#[derive(Default)]
struct Writer(Fields);

impl Visit for Writer {
    fn record_str(&mut self, field: &Field, value: &str) {
        // As subscribers that write to a terminal do; what displays itself they take as it is.
        let escape = |char: char| if char.is_control() { char.escape_default().to_string() } else { char.to_string() };
        self.0.insert(field.name().to_owned(), value.chars().map(escape).collect());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}
