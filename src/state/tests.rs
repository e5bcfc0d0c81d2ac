use std::sync::Mutex;

use futures::FutureExt;

use super::*;
use crate::principal::Principal;

const KEY: [u8; 32] = [7; 32];
const MOST: usize = 1024;
const HOUR: Duration = Duration::from_secs(60 * 60);

fn sealer(keys: StateKeys) -> Sealer {
    Sealer::new(StateSettings { keys: Some(keys), ..StateSettings::default() }, MOST)
}

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

fn binding(params: &str) -> Binding<'_> {
    Binding { principal: None, method: "tools/call", params: Some(params.as_bytes()) }
}

const PARAMS: &str = r#"{"name":"delete","arguments":{"path":"/tmp/é","force":[1,true,null]},"_meta":{"a":1}}"#;

fn redeem(sealer: &Sealer, binding: &Binding<'_>, now: SystemTime, text: &str) -> Result<Vec<u8>, Refused> {
    let json = serde_json::to_string(text).unwrap();
    sealer.redeem(binding, now, json.as_bytes()).now_or_never().expect("no guard waits")
}

#[test]
fn what_is_sealed_comes_back() {
    let sealer = sealer(StateKeys::new(KEY));
    let mut seen = std::collections::HashSet::new();
    for kept in [&b""[..], b"k", &[0xff; 700]] {
        let state = sealer.seal(&binding(PARAMS), now(), kept).unwrap();
        assert_eq!(redeem(&sealer, &binding(PARAMS), now(), &state).as_deref(), Ok(kept));
        assert!(state.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'), "{state}");
        assert!(kept.len() < 2 || !URL_SAFE_NO_PAD.decode(&state).unwrap().windows(8).any(|text| text == &kept[..8]));
        assert!(seen.insert(state), "a state is never the same twice");
    }
}

#[test]
fn params_may_be_written_anew() {
    let sealer = sealer(StateKeys::new(KEY));
    let state = sealer.seal(&binding(PARAMS), now(), b"kept").unwrap();
    let others = [
        r#"{"arguments":{"force":[1.0,true,null],"path":"\/tmp\/\u00e9"},"name":"d\u0065lete"}"#,
        r#" { "requestState":"x", "name":"delete","inputResponses":{"a":{"b":[2]}},
            "arguments":{"path":"/tmp/é","force":[ 1 ,true,null]} , "_meta" : {}} "#,
    ];
    for params in others {
        assert_eq!(redeem(&sealer, &binding(params), now(), &state).as_deref(), Ok(&b"kept"[..]), "{params}");
    }
    let none = Binding { params: None, ..binding("") };
    let state = sealer.seal(&none, now(), b"kept").unwrap();
    assert_eq!(redeem(&sealer, &binding(r#"{"_meta":{}}"#), now(), &state).as_deref(), Ok(&b"kept"[..]));
}

#[test]
fn no_other_binding_opens_it() {
    let sealer = sealer(StateKeys::new(KEY));
    let [ann, empty, long] = ["ann", "", "anntools/call"].map(Principal::new);
    let principals = [None, Some(&ann), Some(&empty), Some(&long)];
    let methods = ["tools/call", "tools/cal", "", "prompts/get"];
    let params = [
        None,
        Some(PARAMS),
        Some(r#"{"name":"delete","arguments":{"path":"/tmp/e","force":[1,true,null]}}"#),
        Some(r#"{"name":"delete","arguments":{"path":"/tmp/é","force":[1,null,true]}}"#),
        Some(r#"{"name":"delete","arguments":{"path":"/tmp/é","force":["1",true,null]}}"#),
        Some(r#"{"name":"delete","arguments":{"path":"/tmp/é","force":[1,true,null],"_meta":{}}}"#),
        Some(r#"{"name":"delete"}"#),
        Some(r#"{"name":"delete","arguments":{}}"#),
        Some(r#"{"name":"delete","arguments":null}"#),
        Some(r#"{"name":"Delete"}"#),
        Some(r#"{"name":"delete","name":"delete"}"#),
    ];
    let mut bindings = Vec::new();
    for principal in principals {
        for method in methods {
            for params in params {
                bindings.push(Binding { principal, method, params: params.map(str::as_bytes) });
            }
        }
    }
    for (at, sealed) in bindings.iter().enumerate() {
        let state = sealer.seal(sealed, now(), b"kept").unwrap();
        for (other, binding) in bindings.iter().enumerate() {
            let opened = redeem(&sealer, binding, now(), &state);
            assert_eq!(opened.is_ok(), other == at, "{sealed:?} {binding:?}");
        }
    }
}

#[test]
fn every_altered_state_is_refused() {
    let sealer = sealer(StateKeys::new(KEY));
    let state = sealer.seal(&binding(PARAMS), now(), b"something to keep").unwrap();
    let refused = |text: &str| assert_eq!(redeem(&sealer, &binding(PARAMS), now(), text), Err(Refused), "{text}");
    let bytes = URL_SAFE_NO_PAD.decode(&state).unwrap();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut altered = bytes.clone();
            altered[at] ^= 1 << bit;
            refused(&URL_SAFE_NO_PAD.encode(altered));
        }
        refused(&URL_SAFE_NO_PAD.encode(&bytes[..at]));
        refused(&URL_SAFE_NO_PAD.encode(&bytes[at + 1..]));
    }
    refused(&URL_SAFE_NO_PAD.encode([&bytes[..], &[0]].concat()));
    for at in 0..state.len() {
        refused(&state[..at]);
        for other in ["A", "_", "+", "=", "é", " ", "\0"] {
            if state[at..=at] != *other {
                refused(&[&state[..at], other, &state[at + 1..]].concat());
            }
            refused(&[&state[..at], other, &state[at..]].concat());
        }
    }
    refused(&format!("{state}="));
    refused(&format!("{state}A"));
}

#[test]
fn what_is_no_text_is_refused() {
    let sealer = sealer(StateKeys::new(KEY));
    for json in ["null", "1", "{}", "[]", "true", r#""""#, r#""\ud800""#, ""] {
        let opened = sealer.redeem(&binding(PARAMS), now(), json.as_bytes()).now_or_never();
        assert_eq!(opened, Some(Err(Refused)), "{json}");
    }
    let state = sealer.seal(&binding(PARAMS), now(), b"kept").unwrap();
    let escaped: String = state.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
    let opened = sealer.redeem(&binding(PARAMS), now(), format!("\"{escaped}\"").as_bytes()).now_or_never();
    assert_eq!(opened, Some(Ok(b"kept".to_vec())), "escapes are JSON's own business");
    assert_eq!(redeem(&sealer, &binding("{"), now(), &state), Err(Refused));
}

#[test]
fn it_holds_for_its_lifetime() {
    let sealed = sealer(StateKeys::new(KEY));
    let state = sealed.seal(&binding(PARAMS), now(), b"kept").unwrap();
    let last = now() + HOUR - Duration::from_secs(1);
    assert!(redeem(&sealed, &binding(PARAMS), last, &state).is_ok());
    assert_eq!(redeem(&sealed, &binding(PARAMS), now() + HOUR, &state), Err(Refused));
    assert!(redeem(&sealed, &binding(PARAMS), UNIX_EPOCH - HOUR, &state).is_ok(), "clocks may differ");

    let lasting =
        |lifetime| Sealer::new(StateSettings { lifetime, keys: Some(StateKeys::new(KEY)), guard: None }, MOST);
    let dead = lasting(Duration::ZERO).seal(&binding(PARAMS), now(), b"kept").unwrap();
    assert_eq!(redeem(&sealed, &binding(PARAMS), now(), &dead), Err(Refused));
    let eternal = lasting(Duration::MAX).seal(&binding(PARAMS), now(), b"kept").unwrap();
    assert!(redeem(&sealed, &binding(PARAMS), now() + 800_000 * HOUR, &eternal).is_ok());
}

#[test]
fn a_ring_opens_what_any_of_its_keys_sealed() {
    let [old, new] = [[1; 32], [2; 32]].map(StateKeys::new).map(sealer);
    let both = sealer(StateKeys::new([2; 32]).also_accepts([1; 32]));
    let [by_old, by_new, by_both] = [&old, &new, &both].map(|by| by.seal(&binding(PARAMS), now(), b"kept").unwrap());
    let opens = |sealer: &Sealer, state: &str| redeem(sealer, &binding(PARAMS), now(), state).is_ok();
    assert_eq!([&by_old, &by_new, &by_both].map(|state| opens(&old, state)), [true, false, false]);
    assert_eq!([&by_old, &by_new, &by_both].map(|state| opens(&new, state)), [false, true, true]);
    assert_eq!([&by_old, &by_new, &by_both].map(|state| opens(&both, state)), [true, true, true]);

    let keys = StateKeys::random();
    let [one, clone, other] = [keys.clone(), keys, StateKeys::random()].map(sealer);
    let state = one.seal(&binding(PARAMS), now(), b"kept").unwrap();
    assert!(opens(&one, &state) && opens(&clone, &state) && !opens(&other, &state));
}

/// Nodes of different versions of this crate understand each other, or say another version.
#[test]
fn a_state_made_earlier_opens() {
    let state = "AQ8B-PK0wo6pOhhIxF_WCG8EZb9pN9ADjRMfhM9bJGfDNTbmSGwVDinaC6A7mYyzLqTzl9w7apQ7";
    assert_eq!(redeem(&sealer(StateKeys::new(KEY)), &binding(PARAMS), now(), state).as_deref(), Ok(&b"kept"[..]));
}

#[test]
fn keys_do_not_show() {
    let keys = StateKeys::new(KEY).also_accepts([9; 32]);
    assert_eq!(format!("{keys:?}"), "StateKeys { count: 2, .. }");
    let [seven, nine] = [[7; 32], [9; 32]].map(|key| StateKeys::new(key).sealing().unwrap().id);
    assert_ne!(seven, nine);
    let state = sealer(keys).seal(&binding("{}"), now(), b"").unwrap();
    assert_eq!(URL_SAFE_NO_PAD.decode(state).unwrap()[..5], [&[1][..], &seven].concat());
}

#[test]
fn the_longest_state_is_made_and_taken() {
    let sealer = sealer(StateKeys::new(KEY));
    let most = MOST / 4 * 3 - HEAD - EXPIRY - TAG_LEN;
    let longest = sealer.seal(&binding(PARAMS), now(), &vec![1; most]).unwrap();
    assert_eq!(longest.len(), MOST);
    assert!(redeem(&sealer, &binding(PARAMS), now(), &longest).is_ok());
    assert_eq!(sealer.seal(&binding(PARAMS), now(), &vec![1; most + 1]), Err(SealFault::TooLong));

    let wider = Sealer::new(StateSettings { keys: Some(StateKeys::new(KEY)), ..StateSettings::default() }, 2 * MOST);
    let longer = wider.seal(&binding(PARAMS), now(), &vec![1; most + 1]).unwrap();
    assert!(redeem(&wider, &binding(PARAMS), now(), &longer).is_ok());
    assert_eq!(redeem(&sealer, &binding(PARAMS), now(), &longer), Err(Refused));
}

/// Admits each state once, and remembers what it was asked.
#[derive(Default)]
struct Once(Mutex<Vec<(StateId, SystemTime)>>);

impl ReplayGuard for Arc<Once> {
    async fn admit(&self, state: StateId, expires: SystemTime) -> bool {
        let mut seen = self.0.lock().unwrap();
        let is_new = seen.iter().all(|(id, _)| *id != state);
        seen.push((state, expires));
        is_new
    }
}

#[test]
fn a_guard_has_the_last_word() {
    let once = Arc::new(Once::default());
    let guard: Arc<dyn ErasedGuard> = Arc::new(Arc::clone(&once));
    let settings = StateSettings { keys: Some(StateKeys::new(KEY)), guard: Some(guard), ..StateSettings::default() };
    let sealer = Sealer::new(settings, MOST);
    let [one, other] = [b"one", b"two"].map(|kept| sealer.seal(&binding(PARAMS), now(), kept).unwrap());

    assert_eq!(redeem(&sealer, &binding("{}"), now(), &one), Err(Refused));
    assert_eq!(*once.0.lock().unwrap(), [], "it is not asked about what does not open");
    assert!(redeem(&sealer, &binding(PARAMS), now(), &one).is_ok());
    assert_eq!(redeem(&sealer, &binding(PARAMS), now(), &one), Err(Refused));
    assert!(redeem(&sealer, &binding(PARAMS), now(), &other).is_ok());
    let seen = once.0.lock().unwrap();
    assert_eq!(seen.iter().map(|(_, expires)| *expires).collect::<Vec<_>>(), [now() + HOUR; 3]);
    let nonce = &URL_SAFE_NO_PAD.decode(&one).unwrap()[NONCE];
    assert_eq!(seen[0].0.as_bytes(), nonce);
}
