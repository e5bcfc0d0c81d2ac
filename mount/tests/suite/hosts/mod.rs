//! The frameworks, each with an application of its own around the one handler: a nested path, authentication in front,
//! and an end that drains.

mod actix;
mod axum;
mod hyper;
mod stack;
mod tls;

use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use mcp_transport::{Limits, Principal, StreamableHttpService};
use mount::handler::{Tenant, Workshop};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use mount::remote::{Remote, Version};

/// The path in every framework.
pub const PATH: &str = "/api/mcp";

/// Few enough that what is longer fits the sockets' buffers.
pub const BODY_BYTES: usize = 64 << 10;

/// How long a drain waits.
pub const DRAIN: Duration = Duration::from_secs(5);

/// What serves the handler, and what its clients speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    Axum,
    AxumH2,
    HyperH1,
    HyperH2,
    Actix,
    ActixH2,
    TlsH1,
    TlsH2,
    Stack,
}

impl Host {
    pub const ALL: [(Self, &str); 9] = [
        (Self::Axum, "axum"),
        (Self::AxumH2, "axum-h2"),
        (Self::HyperH1, "hyper"),
        (Self::HyperH2, "hyper-h2"),
        (Self::Actix, "actix"),
        (Self::ActixH2, "actix-h2"),
        (Self::TlsH1, "tls"),
        (Self::TlsH2, "tls-h2"),
        (Self::Stack, "tower"),
    ];

    /// Starts a server of one's own, on a thread and a runtime of its own.
    pub fn start(self) -> Running {
        let workshop = Arc::new(Workshop::default());
        let service = StreamableHttpService::builder(Arc::clone(&workshop))
            .changes(&workshop.changes)
            .limits(self.limits())
            .build()
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let ground = Ground { listener, service: service.clone(), stopped };

        let mut connector = None;
        let serve: Box<dyn FnOnce() + Send> = match self {
            Self::Axum | Self::AxumH2 => Box::new(|| runtime().block_on(axum::serve(ground))),
            Self::HyperH1 | Self::HyperH2 => Box::new(|| runtime().block_on(hyper::serve(ground))),
            Self::Stack => Box::new(|| runtime().block_on(stack::serve(ground))),
            Self::Actix | Self::ActixH2 => Box::new(|| actix_web::rt::System::new().block_on(actix::serve(ground))),
            Self::TlsH1 | Self::TlsH2 => {
                let (acceptor, client) = tls::pair(self.version());
                connector = Some(client);
                Box::new(|| runtime().block_on(tls::serve(ground, acceptor)))
            }
        };
        let (end, ended) = oneshot::channel();
        thread::spawn(move || {
            serve();
            let _ = end.send(());
        });
        let remote = Remote::new(address, self.version(), connector);
        Running { remote, service, workshop, stop: Some(stop), ended }
    }

    /// actix does not tell of HTTP/2 clients that leave until it writes to them: there it has to.
    fn limits(self) -> Limits {
        let limits = Limits::default().body_bytes(BODY_BYTES);
        match self {
            Self::ActixH2 => limits.commit_after(Duration::from_millis(300)).keep_alive(Duration::from_secs(1)),
            _ => limits,
        }
    }

    pub fn version(self) -> Version {
        match self {
            Self::Axum | Self::HyperH1 | Self::Actix | Self::TlsH1 | Self::Stack => Version::H1,
            Self::AxumH2 | Self::HyperH2 | Self::ActixH2 | Self::TlsH2 => Version::H2,
        }
    }
}

fn runtime() -> Runtime {
    Runtime::new().unwrap()
}

/// What a host is given.
pub struct Ground {
    listener: TcpListener,
    service: StreamableHttpService,
    stopped: oneshot::Receiver<()>,
}

impl Ground {
    /// Waits to be told to stop, and drains. The server may close its connections then.
    fn drained(self) -> (TcpListener, StreamableHttpService, impl Future<Output = ()> + Send + 'static) {
        let Self { listener, service, stopped } = self;
        let draining = service.clone();
        let drained = async move {
            let _ = stopped.await;
            draining.drain(DRAIN).await;
        };
        (listener, service, drained)
    }
}

/// A server that runs.
pub struct Running {
    pub remote: Remote,
    pub service: StreamableHttpService,
    pub workshop: Arc<Workshop>,
    stop: Option<oneshot::Sender<()>>,
    ended: oneshot::Receiver<()>,
}

impl Running {
    /// Tells the server to stop, as a signal would.
    pub fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// Waits until it has stopped.
    pub async fn ended(&mut self) {
        (&mut self.ended).await.expect("its thread returns");
    }
}

/// What each framework's authentication makes of `Authorization`: `Bearer ada@acme` is Ada of Acme.
fn caller(authorization: Option<&str>) -> Option<(Principal, Tenant)> {
    let (name, tenant) = authorization?.strip_prefix("Bearer ")?.split_once('@')?;
    Some((Principal::new(name), Tenant(tenant.to_owned())))
}

/// Where a request comes from, for those hosts that say so themselves.
type Peer = SocketAddr;
