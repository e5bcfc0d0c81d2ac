//! The cases that are measured in process: by the clock (`cargo bench`), and by their instructions (`../instructions`).

pub mod handler;
mod http_cases;
pub mod kit;
mod stdio_cases;
pub mod stream_cases;

/// One case, ready to run again and again.
pub struct Case {
    /// What comes before each run and is not part of it.
    pub before: Box<dyn FnMut()>,
    pub run: Box<dyn FnMut()>,
}

impl Case {
    fn new(run: impl FnMut() + 'static) -> Self {
        Self { before: Box::new(|| ()), run: Box::new(run) }
    }
}

/// The names of all cases.
pub const ALL: [&str; 25] = [
    "modern-100",
    "modern-10k",
    "modern-1m",
    "params-first-100",
    "params-first-10k",
    "annotated-5",
    "session-100",
    "session-10k",
    "session-1m",
    "batch-20",
    "events-10",
    "session-events-10",
    "list-1",
    "list-100",
    "refused-origin",
    "refused-json",
    "refused-header",
    "unknown-method",
    "publish-1",
    "publish-1000",
    "publish-10000",
    "deliver-1000",
    "resume-1000",
    "state",
    "stdio-100",
];

/// Makes a case.
pub fn prepare(name: &str) -> Case {
    let (kind, size) = name.rsplit_once('-').unwrap_or((name, ""));
    let size = match size {
        "10k" => 10 << 10,
        "1m" => 1 << 20,
        size => size.parse().unwrap_or_default(),
    };
    match kind {
        "modern" => http_cases::modern(size),
        "params-first" => http_cases::params_first(size),
        "annotated" => http_cases::annotated(),
        "session" => http_cases::in_session(size),
        "batch" => http_cases::batch(size),
        "events" => http_cases::events(size),
        "session-events" => http_cases::session_events(size),
        "list" => http_cases::list(size),
        "refused" => http_cases::refused(name),
        "unknown" => http_cases::refused(name),
        "publish" => stream_cases::publish(size),
        "deliver" => stream_cases::deliver(size),
        "resume" => stream_cases::resume(size),
        "state" => stream_cases::state(),
        "stdio" => stdio_cases::calls(),
        _ => panic!("no case {name}"),
    }
}
