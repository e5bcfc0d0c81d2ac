//! Looks over the service's shoulder: what reached the handler, and what was refused on the way.

use std::sync::{Arc, Mutex};

use mcp_transport::{Observer, Refusal, RefusalKind, Reply, Revision};
use serde_json::json;

use super::handler::Script;

/// What reached a handler, in order.
#[derive(Clone, Debug, Default)]
pub struct Seen(Arc<Mutex<Vec<(String, Revision)>>>);

impl Seen {
    /// A handler that tells every request how it saw it, as `{"method": …, "revision": …}`, and has no tools.
    pub fn script(&self) -> Script {
        let (asked, told) = (self.clone(), self.clone());
        let script = Script::new(move |request, cx| {
            asked.add(request.method(), cx.revision());
            let seen = json!({"method": request.method(), "revision": cx.revision().as_str(), "tools": []});
            async move { Reply::of(&seen) }
        });
        script.hearing(move |notification, cx| {
            told.add(notification.method(), cx.revision());
            async {}
        })
    }

    /// The method of each message that came since the last time, and the revision it was taken for.
    pub fn take(&self) -> Vec<(String, Revision)> {
        std::mem::take(&mut self.0.lock().expect("nobody panicked"))
    }

    /// The methods alone.
    pub fn methods(&self) -> Vec<String> {
        self.take().into_iter().map(|(method, _)| method).collect()
    }

    fn add(&self, method: &str, revision: Revision) {
        self.0.lock().expect("nobody panicked").push((method.to_owned(), revision));
    }
}

/// Why messages were refused, in order.
#[derive(Clone, Debug, Default)]
pub struct Refusals(Arc<Mutex<Vec<Heard>>>);

/// What is heard of a refusal.
#[derive(Clone, Debug)]
pub struct Heard {
    pub kind: RefusalKind,
    pub subject: Option<String>,
    pub explanation: String,
}

impl Refusals {
    /// Those since the last time.
    pub fn take(&self) -> Vec<RefusalKind> {
        self.heard().into_iter().map(|heard| heard.kind).collect()
    }

    /// Those since the last time, with all that is told of them.
    pub fn heard(&self) -> Vec<Heard> {
        std::mem::take(&mut self.0.lock().expect("nobody panicked"))
    }
}

impl Observer for Refusals {
    fn refused(&self, refusal: &Refusal) {
        self.0.lock().expect("nobody panicked").push(Heard {
            kind: refusal.kind(),
            subject: refusal.subject().map(str::to_owned),
            explanation: refusal.explain().to_string(),
        });
    }
}
