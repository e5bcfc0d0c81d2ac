use serde_json::json;

use super::*;

fn form(text: &str) -> Question {
    Question::form(text, json!({})).unwrap()
}

fn accept(text: &str) -> String {
    format!(r#"{{"action":"accept","content":{{"text":"{text}"}}}}"#)
}

/// A question in a run, taken at once.
struct Held(Place, Question);

impl Held {
    fn ask(rounds: &Rounds, name: &str, question: Question) -> Self {
        Self(rounds.place(name, &question), question)
    }

    fn poll(&mut self, rounds: &Rounds) -> Poll<Result<String, AskError>> {
        let polled = rounds.poll(&mut self.0, &self.1, &Context::from_waker(Waker::noop()));
        polled.map(|polled| polled.map(|response| response.json().to_owned()))
    }
}

/// What the next run gets: through the same text that is sealed.
fn next(rounds: &Rounds, answers: &[(&str, &str)]) -> Rounds {
    let round = rounds.end_round().expect("a round");
    go_on(&round.carried, answers)
}

fn go_on(carried: &Carried, answers: &[(&str, &str)]) -> Rounds {
    let carried = serde_json::from_str(&serde_json::to_string(carried).unwrap()).unwrap();
    Rounds::resume(carried, Some(object(answers).as_bytes()))
}

fn object(answers: &[(&str, &str)]) -> String {
    let members: Vec<_> = answers.iter().map(|(key, json)| format!("{}:{json}", json!(key))).collect();
    format!("{{{}}}", members.join(","))
}

fn keys(rounds: &Rounds) -> Vec<String> {
    rounds.end_round().expect("a round").questions.into_iter().map(|(key, _)| key).collect()
}

#[test]
fn a_key_is_the_name_or_the_first_that_is_free() {
    let rounds = Rounds::first(None);
    let mut held: Vec<_> = ["n", "n#2", "n", "n", "m"]
        .into_iter()
        .zip(["a", "b", "a", "c", "a"])
        .map(|(name, text)| Held::ask(&rounds, name, form(text)))
        .collect();
    assert!(held.iter_mut().all(|held| held.poll(&rounds).is_pending()));
    assert_eq!(keys(&rounds), ["n", "n#2", "n#3", "n#4", "m"]);
}

/// Half a million answers to nothing do not become half a million entries.
#[test]
fn of_the_answers_of_a_client_only_so_many_are_kept() {
    let keys: Vec<_> = (0..500_000).map(|n| n.to_string()).collect();
    let answers: Vec<_> = keys.iter().map(|key| (&**key, r#"{"action":"decline"}"#)).collect();
    let rounds = Rounds::first(Some(object(&answers).as_bytes()));
    assert_eq!(rounds.state().responses.len(), MOST_RESPONSES);
    assert!(Held::ask(&rounds, "7", form("a")).poll(&rounds).is_ready());
    assert!(Held::ask(&rounds, "400000", form("a")).poll(&rounds).is_pending());
    let broken = Rounds::first(Some(b"[1,2]"));
    assert!(Held::ask(&broken, "0", form("a")).poll(&broken).is_pending());
}

/// What a handler asks of each element of a list that its client sent costs no more for the last than for the first.
#[test]
fn many_of_one_name_are_not_counted_again_for_each() {
    let began = std::time::Instant::now();
    let rounds = Rounds::first(None);
    let mut held: Vec<_> = (0..30_000).map(|n| Held::ask(&rounds, "n", form(&n.to_string()))).collect();
    assert!(held.iter_mut().all(|held| held.poll(&rounds).is_pending()));
    assert_eq!(held.last().map(|held| &*held.0.key), Some("n#30000"));
    let round = rounds.end_round().expect("a round");
    assert_eq!(round.questions.len(), held.len());
    held.iter().for_each(|held| rounds.withdraw(&held.0));
    rounds.end();
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

/// The order in which questions are asked may change from run to run; what belongs to which does not.
#[test]
fn a_question_is_known_by_its_digest_and_its_place() {
    let first = Rounds::first(None);
    for text in ["a", "b", "a"] {
        assert!(Held::ask(&first, "n", form(text)).poll(&first).is_pending());
    }
    let second = next(&first, &[("n", &accept("1")), ("n#2", &accept("2")), ("n#3", &accept("3"))]);
    let mut held = ["b", "c", "a", "a"].map(|text| Held::ask(&second, "n", form(text)));
    let polled: Vec<_> = held.iter_mut().map(|held| held.poll(&second)).collect();
    assert_eq!(polled[0], Poll::Ready(Ok(accept("2"))));
    assert_eq!(polled[1], Poll::Pending);
    assert_eq!(polled[2], Poll::Ready(Ok(accept("1"))));
    assert_eq!(polled[3], Poll::Ready(Ok(accept("3"))));
    // A new one takes no key that an older one has.
    assert_eq!(keys(&second), ["n#4"]);
}

/// `select!` polls in any order: what counts is the order in which `ask` was called.
#[test]
fn a_place_is_taken_when_the_question_is_asked() {
    let first = Rounds::first(None);
    let mut held = [Held::ask(&first, "n", form("a")), Held::ask(&first, "n", form("a"))];
    assert!(held[1].poll(&first).is_pending());
    assert_eq!(keys(&first), ["n#2"]);
}

#[test]
fn what_is_not_answered_is_asked_again_under_its_key() {
    let first = Rounds::first(None);
    for name in ["a", "b", "c", "d"] {
        assert!(Held::ask(&first, name, form("?")).poll(&first).is_pending());
    }
    // One is missing, one is null, one has the wrong shape, and one nobody asked for.
    let second = next(&first, &[("b", "null"), ("c", "7"), ("d", &accept("d")), ("x", &accept("x"))]);
    let mut held = ["d", "c", "b", "a", "x"].map(|name| Held::ask(&second, name, form("?")));
    assert_eq!(held[0].poll(&second), Poll::Ready(Ok(accept("d"))));
    assert!(held[1..].iter_mut().all(|held| held.poll(&second).is_pending()));
    assert_eq!(keys(&second), ["c", "b", "a", "x"]);
}

/// A run may end before it comes to a question whose answer is there: it is not asked a second time.
#[test]
fn an_answer_is_kept_though_its_question_was_not_reached() {
    let first = Rounds::first(None);
    for name in ["a", "b"] {
        assert!(Held::ask(&first, name, form("?")).poll(&first).is_pending());
    }
    let second = next(&first, &[("a", &accept("a")), ("b", &accept("b"))]);
    assert_eq!(Held::ask(&second, "a", form("?")).poll(&second), Poll::Ready(Ok(accept("a"))));
    assert!(Held::ask(&second, "c", form("?")).poll(&second).is_pending());
    let third = next(&second, &[]);
    assert_eq!(Held::ask(&third, "b", form("?")).poll(&third), Poll::Ready(Ok(accept("b"))));
}

#[test]
fn without_a_state_answers_count_by_key() {
    let rounds = Rounds::first(Some(object(&[("a", &accept("1")), ("b", "null")]).as_bytes()));
    assert_eq!(Held::ask(&rounds, "a", form("?")).poll(&rounds), Poll::Ready(Ok(accept("1"))));
    // One answer answers one question.
    assert!(Held::ask(&rounds, "a", form("?")).poll(&rounds).is_pending());
    assert!(Held::ask(&rounds, "b", form("?")).poll(&rounds).is_pending());
    let round = rounds.end_round().unwrap();
    let left: Vec<_> = round.questions.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(left, ["a#2", "b"]);
    // From now on it is carried, and need not be sent again.
    let second = go_on(&round.carried, &[]);
    assert_eq!(Held::ask(&second, "a", form("?")).poll(&second), Poll::Ready(Ok(accept("1"))));
    for responses in ["null", "7", "[]", r#"{"a":"#] {
        let rounds = Rounds::first(Some(responses.as_bytes()));
        assert!(Held::ask(&rounds, "a", form("?")).poll(&rounds).is_pending(), "{responses}");
    }
}

#[test]
fn time_counts_from_the_first_time_a_question_left() {
    let late = |question: Question| {
        let first = Rounds::first(None);
        assert!(Held::ask(&first, "a", question.clone()).poll(&first).is_pending(), "it leaves all the same");
        let mut carried = first.end_round().unwrap().carried;
        carried.asked[0].at -= 10_000;
        let ask = |answers| {
            let rounds = go_on(&carried, answers);
            Held::ask(&rounds, "a", question.clone()).poll(&rounds)
        };
        (ask(&[("a", &accept("1"))]), ask(&[]))
    };
    let seconds = |seconds| form("?").timeout(Duration::from_secs(seconds));
    let timed_out = Poll::Ready(Err(AskError::TimedOut));
    assert_eq!(late(form("?")), (Poll::Ready(Ok(accept("1"))), Poll::Pending));
    assert_eq!(late(seconds(60)), (Poll::Ready(Ok(accept("1"))), Poll::Pending));
    assert_eq!(late(seconds(10)), (timed_out.clone(), timed_out.clone()));
    assert_eq!(late(seconds(0)), (timed_out.clone(), timed_out));
    assert_eq!(late(form("?").timeout(Duration::MAX)), (Poll::Ready(Ok(accept("1"))), Poll::Pending));
}

/// An answer that came in time stays one, however many rounds follow.
#[test]
fn an_answer_does_not_grow_old() {
    let first = Rounds::first(None);
    let question = form("?").timeout(Duration::from_secs(10));
    assert!(Held::ask(&first, "a", question.clone()).poll(&first).is_pending());
    let second = next(&first, &[("a", &accept("1"))]);
    let mut carried = second.carry();
    carried.asked[0].at -= 60_000;
    carried.asked[0].answer.as_mut().unwrap().at -= 55_000;
    let third = go_on(&carried, &[]);
    assert_eq!(Held::ask(&third, "a", question).poll(&third), Poll::Ready(Ok(accept("1"))));
}

#[test]
fn only_what_somebody_waits_for_leaves() {
    let rounds = Rounds::first(None);
    assert!(rounds.end_round().is_none(), "nobody asks");
    let mut held = ["a", "b", "c"].map(|name| Held::ask(&rounds, name, form("?")));
    assert!(rounds.end_round().is_none(), "nobody waits");
    assert!(held[0].poll(&rounds).is_pending() && held[1].poll(&rounds).is_pending());
    rounds.withdraw(&held[0].0);
    rounds.withdraw(&held[2].0);
    assert_eq!(keys(&rounds), ["b"]);
}

#[test]
fn once_the_run_is_over_nobody_waits() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Default)]
    struct Woken(AtomicUsize);
    impl std::task::Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let rounds = Rounds::first(None);
    let Held(mut place, question) = Held::ask(&rounds, "a", form("?"));
    assert!(rounds.poll(&mut place, &question, &Context::from_waker(Waker::noop())).is_pending());
    // The last one who polled is woken.
    assert!(rounds.poll(&mut place, &question, &Context::from_waker(&waker)).is_pending());
    assert!(rounds.end_round().is_some());
    assert!(rounds.end_round().is_none(), "it ends once");
    assert_eq!(woken.0.load(Ordering::SeqCst), 0);
    rounds.end();
    assert_eq!(woken.0.load(Ordering::SeqCst), 1);
    let over = rounds.poll(&mut place, &question, &Context::from_waker(&waker));
    assert!(matches!(over, Poll::Ready(Err(AskError::Unreachable))));
    assert_eq!(Held::ask(&rounds, "b", form("?")).poll(&rounds), Poll::Ready(Err(AskError::Unreachable)));
    assert_eq!(Arc::strong_count(&woken), 2, "no waker is kept");
}

#[test]
fn a_round_by_hand_carries_the_answers_so_far() {
    let first = Rounds::first(Some(object(&[("a", &accept("1"))]).as_bytes()));
    assert_eq!(first.carry().round, 1);
    assert!(!first.carry().holds_anything(), "nothing was asked");
    assert_eq!(Held::ask(&first, "a", form("?")).poll(&first), Poll::Ready(Ok(accept("1"))));
    let carried = first.carry();
    assert!(carried.holds_anything());
    let second = go_on(&carried, &[("a", &accept("2"))]);
    assert_eq!(Held::ask(&second, "a", form("?")).poll(&second), Poll::Ready(Ok(accept("1"))));
    assert_eq!(second.carry().round, 2);
    assert!(Carried { own: Some(String::new()), ..Carried::first() }.holds_anything());
}

/// States outlive an update of the server, in both directions.
#[test]
fn the_text_of_a_state_stays_what_it_is() {
    let first = Rounds::first(None);
    assert!(Held::ask(&first, "a", form("?")).poll(&first).is_pending());
    let mut carried = first.end_round().unwrap().carried;
    carried.asked[0].at = 5;
    let text = serde_json::to_string(&carried).unwrap();
    let digest = hex(form("?").digest("a"));
    assert_eq!(text, format!(r#"{{"round":1,"asked":[{{"key":"a","digest":"{digest}","nth":0,"at":5}}]}}"#));
    let newer = r#"{"round":3,"once":{"x":1},"own":"mine","asked":[]}"#;
    let newer: Carried = serde_json::from_str(newer).unwrap();
    assert_eq!((newer.round, newer.own.as_deref()), (3, Some("mine")));
}
