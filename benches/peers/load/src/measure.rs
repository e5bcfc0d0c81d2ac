//! One round of one case: closed loops on so many connections for a while.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::task::LocalSet;

use crate::case::Case;
use crate::client::ready;
use crate::server::Server;

const WARM_UP: Duration = Duration::from_millis(100);
const TIME: Duration = Duration::from_millis(500);

#[derive(Clone, Copy)]
pub struct Measured {
    /// Microseconds of CPU for each request.
    pub cpu: f64,
    /// Requests a second.
    pub rate: f64,
    /// Microseconds.
    pub p50: f64,
    pub p99: f64,
}

pub async fn measure(server: &Server, case: &Case) -> Measured {
    let mut clients = Vec::new();
    for _ in 0..case.connections {
        clients.push(ready(server.port, case).await);
    }
    let times = Rc::new(RefCell::new(Vec::new()));
    let warm = Instant::now() + WARM_UP;
    let tasks = LocalSet::new();
    for (mut client, request) in clients {
        let times = Rc::clone(&times);
        tasks.spawn_local(async move {
            loop {
                let asked = Instant::now();
                client.ask(&request).await;
                if asked > warm {
                    times.borrow_mut().push(asked.elapsed());
                }
            }
        });
    }
    let (cpu, asked, time) = tasks
        .run_until(async {
            tokio::time::sleep(WARM_UP).await;
            let (before, begun, asked) = (server.cpu(), Instant::now(), times.borrow().len());
            tokio::time::sleep(TIME).await;
            (server.cpu() - before, times.borrow().len() - asked, begun.elapsed())
        })
        .await;
    drop(tasks);
    let mut times = times.take();
    times.sort_unstable();
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e6;
    let count = asked as f64;
    Measured { cpu: cpu as f64 / 1000.0 / count, rate: count / time.as_secs_f64(), p50: at(0.5), p99: at(0.99) }
}

/// Milliseconds that a call takes when nothing else goes on.
pub async fn alone(server: &Server, case: &Case) -> f64 {
    let (mut client, request) = ready(server.port, case).await;
    let mut times = Vec::new();
    for _ in 0..30 {
        let asked = Instant::now();
        client.ask(&request).await;
        times.push(asked.elapsed());
    }
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e3
}
