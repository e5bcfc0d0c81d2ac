//! What travels from round to round with the client: sealed when it leaves, opened when it comes back.

#[cfg(feature = "state")]
use std::time::SystemTime;

use super::call::Call;
use super::input_required::Fault;
use super::rounds::{Carried, Rounds};
use crate::mcp_error::McpError;
use crate::observer::Misuse;
#[cfg(feature = "state")]
use crate::protocol::refusal::Refusal;
#[cfg(feature = "state")]
use crate::state::{Binding, SealFault};

/// The state that the client sent, where it counts: null is none.
#[cfg(feature = "state")]
pub(super) fn sent(call: &Call) -> Option<&[u8]> {
    call.message.request_state().filter(|json| call.takes_input() && *json != b"null")
}

/// Opens the state that the client sent.
#[cfg(feature = "state")]
pub(super) async fn open(call: &Call) -> Result<Carried, Refusal> {
    let state = sent(call).unwrap_or_default();
    let kept = call.server.sealer.redeem(&binding(call), SystemTime::now(), state).await?;
    // Sealed by an application of the same keys, but nothing that this one has made.
    serde_json::from_slice(&kept).map_err(|_| crate::state::Refused.into())
}

/// Seals what the next round needs.
pub(super) fn seal(call: &Call, carried: &Carried) -> Result<String, Fault> {
    let most = call.server.limits.rounds;
    if carried.round > most {
        let method = call.message.method().to_owned();
        return Err(Fault::Misuse(Misuse::TooManyRounds { method, most }));
    }
    let text = serde_json::to_vec(carried).map_err(|error| Fault::Error(McpError::internal(error)))?;
    seal_text(call, &text)
}

/// Seals the state of a handler that makes its rounds by hand. `None` where there is nothing to keep.
pub(super) fn seal_own(call: &Call, own: Option<String>) -> Option<Result<String, Fault>> {
    if !call.server.can_carry() {
        return None;
    }
    let mut carried = call.rounds().map_or_else(Carried::first, Rounds::carry);
    carried.own = own;
    carried.holds_anything().then(|| seal(call, &carried))
}

#[cfg(feature = "state")]
fn seal_text(call: &Call, text: &[u8]) -> Result<String, Fault> {
    call.server.sealer.seal(&binding(call), SystemTime::now(), text).map_err(|fault| match fault {
        SealFault::TooLong => Fault::Misuse(Misuse::StateTooLarge { method: call.message.method().to_owned() }),
        SealFault::NoRandomness => Fault::Error(McpError::internal("the system gives no random numbers")),
    })
}

#[cfg(not(feature = "state"))]
fn seal_text(_: &Call, _: &[u8]) -> Result<String, Fault> {
    Err(Fault::Error(McpError::internal("the feature `state` is off")))
}

#[cfg(feature = "state")]
fn binding(call: &Call) -> Binding<'_> {
    Binding { principal: call.principal.as_ref(), method: call.message.method(), params: call.message.params() }
}
