//! How a requirement becomes trials: one for each revision and carrier, each on a runtime and a thread of its own.

use std::any::Any;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fmt;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use libtest_mimic::{Failed, Trial};
use mcp_transport::{Era, Revision};
use tokio::runtime::{Builder, Runtime};
use tower_service::Service;

use crate::support::client::Client;
use crate::support::server::{self, Body, BoxError, Server};
use crate::{ledger, limits};

/// How long a trial may take by the wall clock; one that is still running then hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// What stands between the client and the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// HTTP/1.1 over a socket on loopback.
    H1,
    /// HTTP/2 with prior knowledge, over a socket on loopback.
    H2,
    /// No socket: the service is called in process, and the runtime's clock is paused.
    Clock,
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::H1 => "h1",
            Self::H2 => "h2",
            Self::Clock => "clock",
        })
    }
}

/// The carriers a requirement is tried over.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code)]
pub enum Carriers {
    /// HTTP/1.1 and HTTP/2.
    Sockets,
    /// In process, under the paused clock.
    Clock,
    /// All three.
    Every,
    /// HTTP/1.1 alone: raw bytes, and what only that version can say.
    H1,
    /// HTTP/2 alone.
    H2,
}

impl Carriers {
    fn list(self) -> &'static [Carrier] {
        match self {
            Self::Sockets => &[Carrier::H1, Carrier::H2],
            Self::Clock => &[Carrier::Clock],
            Self::Every => &[Carrier::H1, Carrier::H2, Carrier::Clock],
            Self::H1 => &[Carrier::H1],
            Self::H2 => &[Carrier::H2],
        }
    }
}

/// What a trial knows: the revision and the carrier it runs under.
#[derive(Clone, Copy, Debug)]
pub struct Cx {
    pub revision: Revision,
    pub carrier: Carrier,
}

impl Cx {
    /// Whether the revision is 2026-07-28 or later.
    pub fn modern(self) -> bool {
        self.revision.era() == Era::Modern
    }

    /// Serves `service` on this trial's carrier until the last clone of the client is gone.
    pub async fn serve<S, B>(self, service: S) -> Client
    where
        S: Service<Request<Body>, Response = Response<B>, Error = Infallible> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let service = server::boxed(service);
        match self.carrier {
            Carrier::Clock => Client::in_process(service),
            Carrier::H1 => Client::h1(Server::start(service, false).await),
            Carrier::H2 => Client::h2(Server::start(service, true).await),
        }
    }
}

/// The trials registered so far, and the ledger's rows they are for.
#[derive(Default)]
pub struct Wire {
    trials: Vec<Trial>,
    rows: BTreeSet<String>,
    /// The trials without their revision and carrier.
    names: BTreeSet<String>,
}

#[allow(dead_code)]
impl Wire {
    /// A requirement of all five revisions. `row` is `area/name`, or `area/name/case` where one row has several trials.
    pub fn any<F, Fut>(&mut self, row: &str, carriers: Carriers, test: F)
    where
        F: Fn(Cx) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        self.register("any", row, &Revision::ALL, carriers, &test);
    }

    /// A requirement of the four revisions up to 2025-11-25.
    pub fn legacy<F, Fut>(&mut self, row: &str, carriers: Carriers, test: F)
    where
        F: Fn(Cx) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        self.register("legacy", row, &legacy(), carriers, &test);
    }

    /// A requirement of all five revisions, in what only those up to 2025-11-25 have.
    pub fn any_legacy<F, Fut>(&mut self, row: &str, carriers: Carriers, test: F)
    where
        F: Fn(Cx) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        self.register("any", row, &legacy(), carriers, &test);
    }

    /// The part of a requirement of all five revisions that only the four up to 2025-11-25 can meet.
    pub fn legacy_part_of_any<F, Fut>(&mut self, row: &str, carriers: Carriers, test: F)
    where
        F: Fn(Cx) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        let revisions: Vec<_> = Revision::ALL.into_iter().filter(|revision| revision.era() == Era::Legacy).collect();
        self.register("any", row, &revisions, carriers, &test);
    }

    /// The part of a requirement of all five revisions that only 2026-07-28 can meet.
    pub fn modern_part_of_any<F, Fut>(&mut self, row: &str, carriers: Carriers, test: F)
    where
        F: Fn(Cx) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        self.register("any", row, &[Revision::V2026_07_28], carriers, &test);
    }

    /// A requirement of 2026-07-28.
    pub fn modern<F, Fut>(&mut self, row: &str, carriers: Carriers, test: F)
    where
        F: Fn(Cx) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        self.register("modern", row, &[Revision::V2026_07_28], carriers, &test);
    }

    /// A requirement of one revision, where the ledger names it.
    pub fn only<F, Fut>(&mut self, revision: Revision, row: &str, carriers: Carriers, test: F)
    where
        F: Fn(Cx) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        self.register(revision.as_str(), row, &[revision], carriers, &test);
    }

    /// A test of the harness itself, which belongs to no row.
    pub fn harness<F, Fut>(&mut self, name: &str, carriers: Carriers, test: F)
    where
        F: Fn(Cx) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        for &carrier in carriers.list() {
            let cx = Cx { revision: Revision::V2026_07_28, carrier };
            self.trials.push(trial(format!("harness/{name}"), cx, test.clone()));
        }
    }

    /// What a real client does, under the revision it speaks then. It belongs to no row: the rows it touches have tests of
    /// their own, this one shows that they are enough.
    pub fn client<F, Fut>(&mut self, revision: Revision, name: &str, carriers: Carriers, test: F)
    where
        F: Fn(Cx) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        for &carrier in carriers.list() {
            self.trials.push(trial(format!("{revision}/clients/{name}"), Cx { revision, carrier }, test.clone()));
        }
    }

    /// All trials, and the one that compares them with the ledger.
    pub fn into_trials(self) -> Vec<Trial> {
        let Self { mut trials, rows, names } = self;
        trials.push(Trial::test("limits", move || limits::table::check(&names).map_err(Failed::from)));
        trials.push(Trial::test("ledger", move || ledger::check(&rows).map_err(Failed::from)));
        trials
    }

    fn register<F, Fut>(&mut self, scope: &str, row: &str, revisions: &[Revision], carriers: Carriers, test: &F)
    where
        F: Fn(Cx) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        self.names.insert(row.to_owned());
        let requirement: Vec<_> = row.splitn(3, '/').take(2).collect();
        self.rows.insert(format!("{scope}/{}", requirement.join("/")));
        for &revision in revisions {
            for &carrier in carriers.list() {
                self.trials.push(trial(format!("{revision}/{row}"), Cx { revision, carrier }, test.clone()));
            }
        }
    }
}

fn legacy() -> Vec<Revision> {
    Revision::ALL.into_iter().filter(|revision| revision.era() == Era::Legacy).collect()
}

fn trial<F, Fut>(name: String, cx: Cx, test: F) -> Trial
where
    F: Fn(Cx) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + 'static,
{
    let label = format!("{name} [{}]", cx.carrier);
    Trial::test(name, move || {
        run(label, PATIENCE, move || {
            runtime(cx.carrier).block_on(test(cx));
        })
    })
    .with_kind(cx.carrier.to_string())
}

/// One thread, so that what a trial sees does not depend on how many cores there are.
fn runtime(carrier: Carrier) -> Runtime {
    Builder::new_current_thread().enable_all().start_paused(carrier == Carrier::Clock).build().expect("a runtime")
}

/// Runs a test on a thread named after it, so that a panic says which one it was and a hang is a failure.
///
/// The wall clock is needed: under a paused runtime clock no timer of that runtime could tell.
pub fn run(name: String, patience: Duration, test: impl FnOnce() + Send + 'static) -> Result<(), Failed> {
    // Nothing is ever sent: the channel closes when the thread ends, however it ends.
    let (running, ended) = channel::<Infallible>();
    let thread = thread::Builder::new()
        .name(name)
        .spawn(move || {
            let _running = running;
            test();
        })
        .map_err(|error| Failed::from(format!("no thread for the trial: {error}")))?;
    match ended.recv_timeout(patience) {
        Err(RecvTimeoutError::Timeout) => Err(format!("still running after {patience:?}: it hangs").into()),
        _ => thread.join().map_err(|panic| message(panic.as_ref()).into()),
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("panicked with something that is no text")
        .to_owned()
}
