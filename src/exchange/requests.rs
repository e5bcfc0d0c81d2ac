//! Questions as clients up to 2025-11-25 get them: requests of the server's own, on the stream of the answer that is
//! being made, or else on the session's general stream.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::call::Call;
use crate::limits::NEVER;
use crate::protocol::envelope::Message;
use crate::protocol::names::method;
use crate::protocol::sse::Frame;
use crate::question::{AskError, InputResponse, Question};
use crate::session::{SessionState, mint};
use crate::sync::lock;

/// The questions of one call that are under way.
#[derive(Debug, Default)]
pub(crate) struct Requests(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    live: Vec<(u64, Route)>,
    /// How many rounds of input the transport has played out for the handler.
    rounds: u32,
    is_over: bool,
}

/// The stream a question went out on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    /// None yet.
    None,
    /// That of the answer being made.
    Answer,
    /// The session's general one.
    General,
}

impl Requests {
    /// Counts one more round of input. Returns how many there are now.
    pub(super) fn next_round(&self) -> u32 {
        let mut state = self.state();
        state.rounds += 1;
        state.rounds
    }

    fn enter(&self, id: u64) -> bool {
        let mut state = self.state();
        if !state.is_over {
            state.live.push((id, Route::None));
        }
        !state.is_over
    }

    /// A question is about to go out that way. `false` where nobody waits for it any more: it must stay.
    fn goes_by(&self, id: u64, route: Route) -> bool {
        let mut state = self.state();
        let live = state.live.iter_mut().find(|(live, _)| *live == id);
        live.map(|(_, at)| *at = route).is_some()
    }

    fn leave(&self, id: u64) -> Option<Route> {
        let mut state = self.state();
        let index = state.live.iter().position(|(live, _)| *live == id)?;
        Some(state.live.swap_remove(index).1)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }
}

/// Asks, and waits for the answer.
pub(super) async fn ask(call: Arc<Call>, question: Question) -> Result<InputResponse, AskError> {
    // A request without a session has nobody to hand an answer to.
    let session = call.session.clone().ok_or(AskError::Unreachable)?;
    if !session.is_initialized() {
        return Err(AskError::Unreachable);
    }
    let (id, mut response) = session.waiters().enlist().ok_or(AskError::SessionEnded)?;
    if !call.requests.enter(id) {
        session.waiters().retire(id);
        return Err(AskError::Unreachable);
    }
    let request = Request { call, session, id };
    let time = question.own_timeout().unwrap_or(request.call.server.limits.ask_time).min(NEVER);
    let waited = timeout(time, async {
        request.send(&question).await?;
        (&mut response).await.map_err(|_| request.lost())
    });
    let response = match waited.await {
        Ok(response) => response?,
        Err(_) => {
            // An answer that was taken just now counts. From here on none is.
            response.close();
            response.try_recv().map_err(|_| AskError::TimedOut)?
        }
    };
    read(&response, &question)
}

/// A question under way. Dropped before it is answered, it is taken back.
struct Request {
    call: Arc<Call>,
    session: Arc<SessionState>,
    id: u64,
}

impl Request {
    async fn send(&self, question: &Question) -> Result<(), AskError> {
        #[derive(Serialize)]
        struct Ask<'a> {
            jsonrpc: &'static str,
            id: u64,
            method: &'a str,
            params: Cow<'a, RawValue>,
        }
        let params = question.params_for(self.call.revision, || self.elicitation_id());
        let ask = Ask { jsonrpc: "2.0", id: self.id, method: question.method(), params };
        let frame = Frame::message(&ask).map_err(|_| AskError::Unreachable)?;
        let goes_by = |route| move || self.call.requests.goes_by(self.id, route);
        if self.call.send_if(&frame, goes_by(Route::Answer)).await
            || self.session.mailbox().send(frame.event(), goes_by(Route::General))
        {
            return Ok(());
        }
        Err(self.lost())
    }

    /// An id for an elicitation that has none of the application's own: random, so that it is the server's only one.
    fn elicitation_id(&self) -> String {
        // Without randomness it is the only one in its session.
        mint().map_or_else(|_| self.id.to_string(), String::from)
    }

    /// Why nobody can answer any more.
    fn lost(&self) -> AskError {
        if self.session.is_closed() { AskError::SessionEnded } else { AskError::Unreachable }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if let Some(route) = self.call.requests.leave(self.id) {
            take_back(&self.call, &self.session, self.id, route);
        }
    }
}

/// The answer to the call is about to be made: whoever still waits, in a task of its own, waits in vain.
pub(super) fn end(call: &Call) {
    let mut state = call.requests.state();
    state.is_over = true;
    let live = std::mem::take(&mut state.live);
    drop(state);
    if let Some(session) = &call.session {
        live.into_iter().for_each(|(id, route)| take_back(call, session, id, route));
    }
}

/// Retires who waits, and then tells the client that its answer is not needed any more, on the stream that asked it.
fn take_back(call: &Call, session: &SessionState, id: u64, route: Route) {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        request_id: u64,
    }
    if !session.waiters().retire(id) {
        return;
    }
    let Ok(frame) = Frame::notification(method::CANCELLED, Some(&Params { request_id: id })) else {
        return;
    };
    match route {
        Route::None => {}
        Route::Answer => call.push(&frame),
        Route::General => session.mailbox().push(frame.event()),
    }
}

fn read(response: &Message, question: &Question) -> Result<InputResponse, AskError> {
    #[derive(Deserialize)]
    struct Refused {
        code: i64,
        #[serde(default)]
        message: String,
    }
    if let Some(result) = response.result() {
        let result: Box<RawValue> = serde_json::from_slice(result).map_err(|_| AskError::BadAnswer)?;
        let fits = question.kind().is_answered_by(result.get());
        return if fits { Ok(InputResponse::new(result)) } else { Err(AskError::BadAnswer) };
    }
    let error = response.error().and_then(|error| serde_json::from_slice::<Refused>(error).ok());
    let Refused { code, message } = error.ok_or(AskError::BadAnswer)?;
    Err(AskError::Refused { code, message })
}
