//! What a request of 2026-07-28 leaves with its client between two rounds of input: sealed, so that it can be trusted
//! when it comes back.
//!
//! The text of a `requestState` is base64url without padding of
//!
//! | bytes | what |
//! |---|---|
//! | 1 | version of all that follows: 1 |
//! | 4 | id of the key |
//! | 24 | nonce, random; also what the state is known by |
//! | 8 | sealed: until when it holds, in seconds since 1970, big-endian |
//! | any | sealed: what is kept |
//! | 16 | tag of XChaCha20-Poly1305 |
//!
//! The tag is over what came before it and over the [`Binding`] too. Another layout will have another version.

mod binding;
mod guard;
mod keys;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

pub(crate) use self::binding::Binding;
pub(crate) use self::guard::ErasedGuard;
pub use self::guard::{ReplayGuard, StateId};
pub use self::keys::StateKeys;
use self::keys::{KEY_ID_LEN, NONCE_LEN, TAG_LEN};
use crate::limits::NEVER;
use crate::protocol::envelope;
use crate::protocol::refusal::{Refusal, RefusalKind};

const VERSION: u8 = 1;
const KEY_ID: Range<usize> = 1..1 + KEY_ID_LEN;
const NONCE: Range<usize> = KEY_ID.end..KEY_ID.end + NONCE_LEN;
/// How many bytes are not sealed.
const HEAD: usize = NONCE.end;
/// How many bytes say until when it holds.
const EXPIRY: usize = 8;

/// What a builder sets.
pub(crate) struct StateSettings {
    /// A random one where none are given.
    pub(crate) keys: Option<StateKeys>,
    pub(crate) lifetime: Duration,
    pub(crate) guard: Option<Arc<dyn ErasedGuard>>,
}

impl Default for StateSettings {
    fn default() -> Self {
        Self { keys: None, lifetime: Duration::from_secs(60 * 60), guard: None }
    }
}

/// Seals states and opens them.
pub(crate) struct Sealer {
    keys: StateKeys,
    lifetime: Duration,
    guard: Option<Arc<dyn ErasedGuard>>,
    /// The longest text of a state, in bytes.
    most: usize,
}

/// Why nothing was sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SealFault {
    /// The text would be longer than the limit, and refused when it comes back.
    TooLong,
    /// The operating system gives no random numbers.
    NoRandomness,
}

/// Why a state is not taken: there is only this one answer, so that nobody learns which part of a state was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused;

impl From<Refused> for Refusal {
    fn from(Refused: Refused) -> Self {
        Self::new(RefusalKind::InvalidState)
    }
}

impl Sealer {
    /// States are at most that many bytes long.
    pub(crate) fn new(settings: StateSettings, most: usize) -> Self {
        let StateSettings { keys, lifetime, guard } = settings;
        Self { keys: keys.unwrap_or_else(StateKeys::random), lifetime, guard, most }
    }

    /// Seals what is to be kept for as long as the configuration says.
    pub(crate) fn seal(&self, binding: &Binding<'_>, now: SystemTime, kept: &[u8]) -> Result<String, SealFault> {
        let length = HEAD + EXPIRY + kept.len() + TAG_LEN;
        if base64::encoded_len(length, false).is_none_or(|length| length > self.most) {
            return Err(SealFault::TooLong);
        }
        let key = self.keys.sealing().ok_or(SealFault::NoRandomness)?;
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(|_| SealFault::NoRandomness)?;

        let mut head = Vec::with_capacity(length);
        head.push(VERSION);
        head.extend_from_slice(&key.id);
        head.extend_from_slice(&nonce);
        let mut sealed = Vec::with_capacity(length - HEAD);
        sealed.extend_from_slice(&seconds(now).saturating_add(self.lifetime.min(NEVER).as_secs()).to_be_bytes());
        sealed.extend_from_slice(kept);
        let data = binding.with(&head).ok_or(SealFault::TooLong)?;
        let tag = key.seal(&nonce, &data, &mut sealed).ok_or(SealFault::TooLong)?;

        let mut state = head;
        state.extend_from_slice(&sealed);
        state.extend_from_slice(&tag);
        Ok(URL_SAFE_NO_PAD.encode(state))
    }

    /// Opens what the client sent back, the JSON of its `requestState`, and lets the application's guard see it.
    pub(crate) async fn redeem(&self, binding: &Binding<'_>, now: SystemTime, json: &[u8]) -> Result<Vec<u8>, Refused> {
        let opened = self.open(binding, now, json).ok_or(Refused)?;
        let admitted = match &self.guard {
            Some(guard) => guard.admit(opened.id, opened.expires).await,
            None => true,
        };
        if admitted { Ok(opened.kept) } else { Err(Refused) }
    }

    fn open(&self, binding: &Binding<'_>, now: SystemTime, json: &[u8]) -> Option<Opened> {
        // No character is longer than the six of an escape.
        if json.len() > self.most.saturating_mul(6).saturating_add(2) {
            return None;
        }
        let text = envelope::text(json).filter(|text| text.len() <= self.most)?;
        let state = URL_SAFE_NO_PAD.decode(&*text).ok()?;
        if state.first() != Some(&VERSION) {
            return None;
        }
        let id = state.get(KEY_ID)?;
        let nonce: [u8; NONCE_LEN] = state.get(NONCE)?.try_into().ok()?;
        let (head, sealed) = state.split_at_checked(HEAD)?;
        let mut keys = self.keys.opening(id).peekable();
        keys.peek()?;
        let data = binding.with(head)?;
        let kept = keys.find_map(|key| key.open(&nonce, &data, sealed))?;
        let (expiry, kept) = kept.split_first_chunk::<EXPIRY>()?;
        let expires = u64::from_be_bytes(*expiry);
        let moment = UNIX_EPOCH.checked_add(Duration::from_secs(expires))?;
        let opened = Opened { id: StateId(nonce), expires: moment, kept: kept.to_vec() };
        (seconds(now) < expires).then_some(opened)
    }
}

/// A state that is what it was when it was sealed.
struct Opened {
    id: StateId,
    expires: SystemTime,
    kept: Vec<u8>,
}

/// Seconds since 1970. Before that, none.
fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer").field("keys", &self.keys).field("lifetime", &self.lifetime).finish_non_exhaustive()
    }
}
