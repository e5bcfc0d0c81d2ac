//! What the application hears of a session's life.

use std::sync::Arc;

use super::{Session, SessionEnd, SessionState};
use crate::observer::Misuse;
use crate::panics::caught;
use crate::server::Server;

/// Lets the application hear of a session that was opened. The handler may panic.
pub(crate) fn announce(server: &Server, state: &Arc<SessionState>) {
    let session = Session::new(Arc::clone(state));
    server.handler.session_opened(&session);
    // Whatever the observer does: a handler that has heard of its beginning will hear of its end.
    let _ = caught(|| server.observer.session_opened(&session));
    // Only from now on may it give way: its end must not be heard before its beginning.
    state.set_announced();
}

/// Lets the application hear of a session's end. The task may be anybody's, so no panic leaves.
pub(crate) fn farewell(server: &Server, state: &Arc<SessionState>, end: SessionEnd) {
    let session = Session::new(Arc::clone(state));
    if let Err(message) = caught(|| server.handler.session_closed(&session, end)) {
        let _ = caught(|| server.observer.misuse(&Misuse::HookPanicked { hook: "session_closed", message }));
    }
    let _ = caught(|| server.observer.session_closed(&session, end));
}
