//! Stands between client and server, keeps what passes, and cuts connections.

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf, duplex, split};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep};

use crate::http1::{Connector, Stream};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Request,
    Response,
}

/// Which connections are cut, counted from 0, and when: as soon as so many bytes have passed. With 0, the first byte
/// that comes is the first that is lost.
#[derive(Clone, Debug)]
pub struct Cut {
    pub connections: RangeInclusive<usize>,
    pub direction: Direction,
    pub after: usize,
    /// Waits so long then.
    pub pause: Duration,
}

/// What has passed on one connection.
#[derive(Clone, Debug, Default)]
pub struct Passed {
    pub request: Vec<u8>,
    pub response: Vec<u8>,
    pub cut: Option<Instant>,
}

#[derive(Clone)]
pub struct Proxy {
    server: Connector,
    cut: Option<Cut>,
    passed: Arc<Mutex<Vec<Passed>>>,
}

impl Proxy {
    pub fn new(server: Connector, cut: Option<Cut>) -> Self {
        Self { server, cut, passed: Arc::default() }
    }

    /// The way through it, in memory.
    pub fn connector(&self) -> Connector {
        let proxy = self.clone();
        Arc::new(move || {
            let proxy = proxy.clone();
            let (near, far) = duplex(1 << 16);
            tokio::spawn(async move { proxy.carry(Box::new(far)).await });
            Box::pin(async move { Ok(Box::new(near) as Box<dyn Stream>) })
        })
    }

    /// Listens on a socket.
    pub async fn listen(&self) -> std::net::SocketAddr {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port on loopback");
        let address = listener.local_addr().expect("the port's address");
        let proxy = self.clone();
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                near.set_nodelay(true).expect("TCP_NODELAY");
                let proxy = proxy.clone();
                tokio::spawn(async move { proxy.carry(Box::new(near)).await });
            }
        });
        address
    }

    /// What has passed on each connection so far.
    pub fn passed(&self) -> Vec<Passed> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Passed>> {
        self.passed.lock().expect("nobody panicked")
    }

    /// Until either side is gone, or the cut: then both are.
    async fn carry(self, near: Box<dyn Stream>) {
        let number = {
            let mut passed = self.lock();
            passed.push(Passed::default());
            passed.len() - 1
        };
        let Ok(far) = (self.server)().await else { return };
        let (from_client, to_client) = split(near);
        let (from_server, to_server) = split(far);
        tokio::select! {
            () = self.forward(number, Direction::Request, from_client, to_server) => {}
            () = self.forward(number, Direction::Response, from_server, to_client) => {}
        }
    }

    async fn forward(
        &self,
        number: usize,
        direction: Direction,
        mut from: ReadHalf<Box<dyn Stream>>,
        mut to: WriteHalf<Box<dyn Stream>>,
    ) {
        let cut = self.cut.as_ref().filter(|cut| cut.direction == direction && cut.connections.contains(&number));
        let mut room = cut.map(|cut| cut.after);
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = from.read(&mut buffer).await {
            let piece = &buffer[..room.map_or(read, |room| room.min(read))];
            if to.write_all(piece).await.is_err() {
                return;
            }
            self.note(number, direction, piece);
            room = room.map(|room| room - piece.len());
            if room == Some(0) {
                break;
            }
        }
        if let Some(cut) = cut.filter(|_| room == Some(0)) {
            sleep(cut.pause).await;
            self.lock()[number].cut = Some(Instant::now());
        }
    }

    fn note(&self, number: usize, direction: Direction, piece: &[u8]) {
        let passed = &mut self.lock()[number];
        match direction {
            Direction::Request => passed.request.extend_from_slice(piece),
            Direction::Response => passed.response.extend_from_slice(piece),
        }
    }
}

/// Connects to a socket.
pub fn tcp(address: std::net::SocketAddr) -> Connector {
    Arc::new(move || {
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    })
}
