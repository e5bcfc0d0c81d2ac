//! One handler, and the same final answer for every client.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::join_all;
use mcp_transport::{McpError, Progress, Question, Reply, RequestContext};
use serde_json::json;
use tokio::time::Instant;

use super::{Bench, modern, text, told, wide, with_keys};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::dialogue::{self, Asked, Played, in_rounds, in_session, question, said};

pub fn register(wire: &mut Wire) {
    wire.legacy("ask/related/same", Carriers::Every, same);
    wire.modern("mrtr/answers/same", Carriers::Every, same);
    wire.legacy("ask/related/branches", Carriers::Clock, branches);
    wire.modern("mrtr/answers/branches", Carriers::Clock, branches);
    wire.legacy("ask/related/select", Carriers::Clock, select);
    wire.modern("mrtr/answers/select", Carriers::Clock, select);
    wire.legacy("ask/related/task", Carriers::Every, task);
    wire.modern("mrtr/answers/task", Carriers::Every, task);
    wire.legacy("ask/related/declined", Carriers::Every, declined);
    wire.modern("mrtr/answers/declined", Carriers::Every, declined);
}

/// Plays a call to its final answer: in a session, or in turn by two servers that share nothing but their keys.
async fn play(cx: Cx, one: &Bench, other: &Bench, answer: impl FnMut(&Asked) -> Option<serde_json::Value>) -> Played {
    if cx.modern() {
        in_rounds(&[one.client.clone(), other.client.clone()], modern, answer).await
    } else {
        let session = dialogue::open(&one.client, cx.revision).await;
        in_session(&session, session.call("tools/call", json!({"name": "t"})), answer).await
    }
}

/// Asks in a loop, together, and one after the other.
pub async fn interview(cx: RequestContext) -> Result<Reply, McpError> {
    let (mut name, mut turns) = (String::new(), 0);
    while name.is_empty() {
        turns += 1;
        name = said(&cx.ask("name", question(&cx, "Name?")).await?);
    }
    cx.progress(Progress::new(1.0)).await;
    let ask = |text| cx.ask("more", question(&cx, text));
    let (age, town) = tokio::join!(ask("Age?"), ask("Town?"));
    let roots = said(&cx.ask("roots", Question::roots()?).await?);
    // The same text again is a question of its own.
    let again = said(&cx.ask("name", question(&cx, "Name?")).await?);
    text(format!("{turns} {name} {} {} {roots} {again}", said(&age?), said(&town?)))
}

async fn same(cx: Cx) {
    let (one, other) = (
        Bench::with(cx, |_, cx| interview(cx), with_keys).await,
        Bench::with(cx, |_, cx| interview(cx), with_keys).await,
    );
    let mut names = ["", "", "Ann", "Bob"].into_iter();
    let played = play(cx, &one, &other, |asked| {
        Some(asked.says(match asked.text() {
            "Name?" => names.next().expect("asked four times"),
            "Age?" => "41",
            "Town?" => "Bern",
            _ => "file:///w",
        }))
    })
    .await;
    assert_eq!(played.text(), "3 Ann 41 Bern file:///w Bob");
    let asked: Vec<_> = played.rounds.concat();
    assert_eq!(asked, ["Name?", "Name?", "Name?", "Age?", "Town?", "", "Name?"]);
    if cx.modern() {
        let sizes: Vec<_> = played.rounds.iter().map(Vec::len).collect();
        assert_eq!(sizes, [1, 1, 1, 2, 1, 1]);
        assert_eq!((one.take_runs(), other.take_runs()), (4, 3), "the handler runs for every round");
    } else {
        assert_eq!((one.take_runs(), other.take_runs()), (1, 0));
    }
}

/// Numbers that look random, the same in every run of the tests.
struct Random(Arc<AtomicU64>);

impl Random {
    fn below(&self, most: usize) -> usize {
        let number = self.0.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        let mixed = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed >> 33) % u64::try_from(most).expect("small")).expect("small")
    }
}

/// Branches that share a name and ask one question after the other, in another order in every run, of a client that
/// answers some of what it is asked: each gets its own answers, and nobody is asked twice for what was answered.
async fn branches(cx: Cx) {
    let random = Random(Arc::default());
    let handler = {
        let random = Random(Arc::clone(&random.0));
        move |request: mcp_transport::Request, cx: RequestContext| {
            let lengths: Vec<usize> = request.arguments().unwrap_or_default();
            let mut order: Vec<_> = lengths.into_iter().enumerate().collect();
            for at in (1..order.len()).rev() {
                order.swap(at, random.below(at + 1));
            }
            async move {
                let branches = order.into_iter().map(|(branch, length)| {
                    let cx = cx.clone();
                    async move {
                        let mut heard = Vec::new();
                        for turn in 0..length {
                            // Some texts are the same in all branches.
                            let text = if turn == 1 { "all".to_owned() } else { format!("{branch} {turn}") };
                            heard.push(said(&cx.ask("n", question(&cx, &text)).await?));
                        }
                        Ok::<_, McpError>((branch, heard))
                    }
                });
                let heard: Result<BTreeMap<_, _>, _> = join_all(branches).await.into_iter().collect();
                text(json!(heard?).to_string())
            }
        }
    };
    let handler = Arc::new(handler);
    let (first, second) = (Arc::clone(&handler), handler);
    let one = Bench::with(cx, move |request, cx| first(request, cx), wide).await;
    let other = Bench::with(cx, move |request, cx| second(request, cx), wide).await;
    let session = if cx.modern() { None } else { Some(dialogue::open(&one.client, cx.revision).await) };
    for _ in 0..200 {
        let lengths: Vec<_> = (0..2 + random.below(5)).map(|_| 1 + random.below(3)).collect();
        let params = json!({"name": "t", "arguments": lengths});
        let mut answered: BTreeMap<String, usize> = BTreeMap::new();
        let answer = |asked: &Asked| {
            // A request of its own is answered at once: nothing would ask again.
            if cx.modern() && random.below(3) == 0 {
                return None;
            }
            *answered.entry(asked.text().to_owned()).or_default() += 1;
            Some(asked.says(&format!("to {}", asked.text())))
        };
        let played = match &session {
            Some(session) => in_session(session, session.call("tools/call", params), answer).await,
            None => {
                let clients = [one.client.clone(), other.client.clone()];
                in_rounds(&clients, || dialogue::call("tools/call", params.clone()), answer).await
            }
        };
        let mut asked: BTreeMap<String, usize> = BTreeMap::new();
        let heard: BTreeMap<usize, Vec<String>> = serde_json::from_str(played.text()).expect("what was heard");
        for (branch, length) in lengths.into_iter().enumerate() {
            let texts: Vec<_> =
                (0..length).map(|turn| if turn == 1 { "all".to_owned() } else { format!("{branch} {turn}") }).collect();
            let answers: Vec<_> = texts.iter().map(|text| format!("to {text}")).collect();
            assert_eq!(heard[&branch], answers);
            texts.into_iter().for_each(|text| *asked.entry(text).or_default() += 1);
        }
        assert_eq!(answered, asked);
    }
}

/// Of two questions at once the first answer counts, and stays the same however often the handler runs.
async fn select(cx: Cx) {
    let handler = |_: mcp_transport::Request, cx: RequestContext| async move {
        let (a, b) = (cx.ask("a", question(&cx, "a")), cx.ask("b", question(&cx, "b")));
        let first = tokio::select! { answer = a => told(&answer), answer = b => told(&answer) };
        let last = said(&cx.ask("c", question(&cx, "c")).await?);
        text(format!("{first} {last}"))
    };
    for _ in 0..20 {
        let one = Bench::with(cx, handler, with_keys).await;
        let other = Bench::with(cx, handler, with_keys).await;
        let played = play(cx, &one, &other, |asked| {
            let answers = asked.text() != "a";
            answers.then(|| asked.says(asked.text()))
        })
        .await;
        assert_eq!(played.text(), "b c");
        if cx.modern() {
            assert_eq!(played.rounds, [vec!["a", "b"], vec!["c"]]);
            assert_eq!(played.told, [json!(null); 0]);
        } else {
            // The one that lost is taken back, on the stream that it went out on.
            let [cancelled] = &played.told[..] else { panic!("{:?}", played.told) };
            let taken_back = json!({"requestId": played_id(&played)});
            let method = "notifications/cancelled";
            assert_eq!(*cancelled, json!({"jsonrpc": "2.0", "method": method, "params": taken_back}));
        }
    }
}

/// The id of the question "a": ids count up from 1.
fn played_id(played: &Played) -> usize {
    1 + played.rounds.concat().iter().position(|text| text == "a").expect("it was asked")
}

/// A task may ask while the handler waits for it, and is not waited for in vain.
async fn task(cx: Cx) {
    let handler = |_: mcp_transport::Request, cx: RequestContext| async move {
        let asking = tokio::spawn({
            let cx = cx.clone();
            async move {
                // After the handler has gone to sleep.
                tokio::task::yield_now().await;
                let first = told(&cx.ask("a", question(&cx, "a")).await);
                let second = told(&cx.ask("a", question(&cx, "a")).await);
                first + &second
            }
        });
        text(asking.await.expect("a task"))
    };
    let one = Bench::with(cx, handler, with_keys).await;
    let other = Bench::with(cx, handler, with_keys).await;
    let (mut turn, begun) = (0, Instant::now());
    let played = play(cx, &one, &other, |asked| {
        turn += 1;
        Some(asked.says(&turn.to_string()))
    })
    .await;
    assert_eq!((played.text(), turn), ("12", 2));
    assert!(begun.elapsed() < Duration::from_secs(10), "nothing else has to happen first");
}

/// That a user says no, or closes the form, is an answer.
async fn declined(cx: Cx) {
    let handler = |_: mcp_transport::Request, cx: RequestContext| async move {
        let answers = tokio::join!(
            cx.ask("a", dialogue::form("a")),
            cx.ask("b", dialogue::form("b")),
            cx.ask("c", dialogue::form("c"))
        );
        text([answers.0, answers.1, answers.2].iter().map(told).collect::<Vec<_>>().join(" "))
    };
    let (one, other) = (Bench::with(cx, handler, with_keys).await, Bench::with(cx, handler, with_keys).await);
    let played = play(cx, &one, &other, |asked| {
        Some(match asked.text() {
            "a" => json!({"action": "decline"}),
            "b" => json!({"action": "cancel", "content": {"text": "x"}}),
            _ => asked.says("yes"),
        })
    })
    .await;
    let without_forms = r#"Unsupported { capability: [] }"#;
    match cx.revision {
        mcp_transport::Revision::V2024_11_05 | mcp_transport::Revision::V2025_03_26 => {
            assert_eq!(played.text(), [without_forms; 3].join(" "));
        }
        _ => assert_eq!(played.text(), "Decline Cancel yes"),
    }
}
