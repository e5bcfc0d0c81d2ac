//! How an application tells its clients that a list or a resource has changed.

use std::fmt;
use std::sync::{Arc, Mutex, Weak};

use crate::sync::lock;

/// A handle to publish changes with; the only way to.
///
/// Make one before the handler, give it to the handler and to any number of transports, and publish from anywhere. A
/// transport that was given none makes its own: see
/// [`StreamableHttpService::changes`](crate::StreamableHttpService::changes).
///
/// A change is told to those who have asked for it: on `subscriptions/listen` streams (2026-07-28), and on the stream
/// that a session opens by GET, or the byte stream that it is (up to 2025-11-25), there to everyone for lists and to
/// subscribers for a resource. Lists have to be declared ([`Capabilities::tools_list_changed`] and its like), resources
/// too ([`Capabilities::resources_subscribe`]). A client that has no stream open is not told later, unless it has a
/// session and there is an [`EventStore`](crate::EventStore). A change of the tools also makes the transport read their
/// `x-mcp-header` annotations anew.
///
/// [`Capabilities::tools_list_changed`]: crate::Capabilities::tools_list_changed
/// [`Capabilities::resources_subscribe`]: crate::Capabilities::resources_subscribe
///
/// Publishing never waits: of equal changes that a client has not read yet it hears once. Cloning is cheap, and all
/// clones are one.
///
/// ```
/// use mcp_transport::Changes;
///
/// let changes = Changes::new();
/// changes.tools_list_changed();
/// changes.resource_updated("file:///notes.txt");
/// ```
#[derive(Clone, Default)]
pub struct Changes(Arc<Mutex<Vec<Weak<dyn Listener>>>>);

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change<'a> {
    Tools,
    Prompts,
    Resources,
    Resource(&'a str),
}

/// Whoever wants to hear of changes. Called under no lock; must not wait.
pub(crate) trait Listener: Send + Sync {
    fn changed(&self, change: Change<'_>);
}

impl Changes {
    /// Makes a handle.
    pub fn new() -> Self {
        Self::default()
    }

    /// The list of tools has changed.
    pub fn tools_list_changed(&self) {
        self.publish(Change::Tools);
    }

    /// The list of prompts has changed.
    pub fn prompts_list_changed(&self) {
        self.publish(Change::Prompts);
    }

    /// The list of resources or of resource templates has changed.
    pub fn resources_list_changed(&self) {
        self.publish(Change::Resources);
    }

    /// The resource at `uri` has changed.
    pub fn resource_updated(&self, uri: &str) {
        self.publish(Change::Resource(uri));
    }

    /// Adds a listener for as long as it lives.
    pub(crate) fn listen(&self, listener: Weak<dyn Listener>) {
        let mut listeners = lock(&self.0);
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.push(listener);
    }

    fn publish(&self, change: Change<'_>) {
        let listeners = lock(&self.0).clone();
        for listener in listeners.iter().filter_map(Weak::upgrade) {
            listener.changed(change);
        }
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Heard(Mutex<Vec<String>>);

    impl Listener for Heard {
        fn changed(&self, change: Change<'_>) {
            self.0.lock().unwrap().push(format!("{change:?}"));
        }
    }

    #[test]
    fn every_clone_reaches_every_living_listener() {
        let changes = Changes::new();
        let (one, two) = (Arc::new(Heard::default()), Arc::new(Heard::default()));
        let (weak_one, weak_two) = (Arc::downgrade(&one), Arc::downgrade(&two));
        changes.listen(weak_one);
        changes.listen(weak_two);
        Changes(Arc::clone(&changes.0)).tools_list_changed();
        drop(one);
        changes.resource_updated("a");
        assert_eq!(*two.0.lock().unwrap(), ["Tools", "Resource(\"a\")"]);
        changes.listen(Arc::downgrade(&two) as Weak<dyn Listener>);
        assert_eq!(changes.0.lock().unwrap().len(), 2, "the dead one is gone");
    }
}
