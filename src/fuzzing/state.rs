//! The `requestState`: what was sealed opens, for whom it was sealed, and nothing else does.

use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::FutureExt;

use super::part;
use crate::principal::Principal;
use crate::state::{Binding, Sealer, StateKeys, StateSettings};

static SEALER: LazyLock<Sealer> = LazyLock::new(|| {
    let keys = StateKeys::new([7; 32]).also_accepts([8; 32]);
    Sealer::new(StateSettings { keys: Some(keys), lifetime: Duration::from_secs(60), guard: None }, 4096)
});

static OTHER: LazyLock<Principal> = LazyLock::new(|| Principal::new("other"));

/// Two bytes that choose what goes wrong, params, a NUL, what is kept; all of it is offered as a state, too.
pub fn state(data: &[u8]) {
    let params_of_any = binding(b"{}");
    assert!(redeem(&params_of_any, now(), data).is_none(), "a state that nobody sealed");
    let Some((choice, mut rest)) = data.split_first_chunk::<2>() else { return };
    let (params, kept) = (part(&mut rest), rest);
    let is_json = serde_json::from_slice::<&serde_json::value::RawValue>(params).is_ok();
    let binding = binding(if is_json { params } else { b"{}" });
    let Ok(sealed) = SEALER.seal(&binding, now(), kept) else {
        return;
    };
    let json = format!("\"{sealed}\"");
    assert_eq!(redeem(&binding, now(), json.as_bytes()).as_deref(), Some(kept), "it does not open");

    let mut flipped = json.clone().into_bytes();
    let at = usize::from(u16::from_le_bytes(*choice)) % (flipped.len() - 2) + 1;
    flipped[at] ^= 1 << (choice[0] % 7);
    assert!(redeem(&binding, now(), &flipped).is_none(), "a bit is another, and it opens");
    let others = [
        Binding { principal: Some(&OTHER), ..binding },
        Binding { method: "tools/calls", ..binding },
        Binding { params: Some(br#"{"nobody": ["has", "these"]}"#), ..binding },
    ];
    for other in others {
        assert!(redeem(&other, now(), json.as_bytes()).is_none(), "it opens for {other:?}");
    }
    assert!(redeem(&binding, now() + Duration::from_secs(60), json.as_bytes()).is_none(), "it never expires");
}

fn binding(params: &[u8]) -> Binding<'_> {
    Binding { principal: None, method: "tools/call", params: Some(params) }
}

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

fn redeem(binding: &Binding<'_>, now: SystemTime, json: &[u8]) -> Option<Vec<u8>> {
    SEALER.redeem(binding, now, json).now_or_never().expect("no guard waits").ok()
}
