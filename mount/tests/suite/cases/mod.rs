//! What every framework has to let through.

mod calls;
mod cancel;
mod drain;
mod streams;

use std::future::Future;
use std::time::Duration;

use libtest_mimic::Trial;
use tokio::runtime::Builder;
use tokio::time::timeout;

use crate::hosts::Host;
use crate::site::{Caller, Site};

/// How long a trial may take.
const MOST: Duration = Duration::from_secs(60);

pub fn trials() -> Vec<Trial> {
    let mut suite = Suite::default();
    calls::register(&mut suite);
    streams::register(&mut suite);
    cancel::register(&mut suite);
    drain::register(&mut suite);
    suite.trials
}

#[derive(Default)]
struct Suite {
    trials: Vec<Trial>,
}

impl Suite {
    /// A case of every host and caller.
    fn case<F, Fut>(&mut self, name: &str, callers: &[Caller], case: F)
    where
        F: Fn(Site) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        for (host, host_name) in Host::ALL {
            for (caller, caller_name) in Caller::ALL.into_iter().filter(|(caller, _)| callers.contains(caller)) {
                let case = case.clone();
                self.trials.push(Trial::test(format!("{host_name}/{caller_name}/{name}"), move || {
                    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
                    runtime.block_on(async {
                        let trial = async { case(Site::open(host, caller).await).await };
                        timeout(MOST, trial).await.map_err(|_| "it hangs".into())
                    })
                }));
            }
        }
    }
}

const EVERYONE: &[Caller] = &[Caller::Modern, Caller::Session, Caller::Sessionless];
/// Those whose request ends with their connection.
const BOUND: &[Caller] = &[Caller::Modern, Caller::Sessionless];
/// Those that the server can ask, and tell of changes.
const REACHABLE: &[Caller] = &[Caller::Modern, Caller::Session];
const IN_SESSION: &[Caller] = &[Caller::Session];
