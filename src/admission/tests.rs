use std::sync::Barrier;
use std::thread;

use super::*;
use crate::protocol::refusal::{Refusal, RefusalKind};

fn admission() -> Admission {
    let limits = Limits::default().in_flight_by_caller(2).in_flight_in_all(3);
    Admission::new(&limits.body_bytes_by_caller(10).body_bytes_in_all(15))
}

fn named(name: &str) -> Option<CallerKey> {
    Some(CallerKey::Principal(Principal::new(name)))
}

fn peer(name: &str) -> Option<CallerKey> {
    Some(CallerKey::Peer(PeerKey::new(name)))
}

#[test]
fn a_share_ends_before_the_whole_does() {
    let admission = admission();
    let (one, two, nobody) = (admission.account(named("a")), admission.account(peer("a")), admission.account(None));
    let first = one.take(What::Requests, 1).unwrap();
    let _second = admission.account(named("a")).take(What::Requests, 1).unwrap();
    assert_eq!(one.take(What::Requests, 1).unwrap_err(), Full::Share(What::Requests));
    let third = two.take(What::Requests, 1).unwrap();
    assert_eq!(two.take(What::Requests, 1).unwrap_err(), Full::Whole(What::Requests));
    assert_eq!(nobody.take(What::Requests, 1).unwrap_err(), Full::Whole(What::Requests));
    assert_eq!(
        (one.held(What::Requests), two.held(What::Requests)),
        (Some(2), Some(1)),
        "what is refused is not taken"
    );
    drop((first, third));
    // Those who cannot be told apart have the whole, and no share.
    let _rest = [nobody.take(What::Requests, 1).unwrap(), nobody.take(What::Requests, 1).unwrap()];
    assert_eq!(one.take(What::Requests, 1).unwrap_err(), Full::Whole(What::Requests));
}

#[test]
fn what_grows_is_given_back_whole() {
    let admission = admission();
    let account = admission.account(named("a"));
    let mut hold = account.take(What::BodyBytes, 4).unwrap();
    assert_eq!(hold.grow(7), Err(Full::Share(What::BodyBytes)));
    assert_eq!(hold.grow(6), Ok(()));
    let other = admission.account(named("b")).take(What::BodyBytes, 6);
    assert_eq!(other.unwrap_err(), Full::Whole(What::BodyBytes));
    let bytes = Counted::bytes(bytes::Bytes::from_static(b"0123456789"), Some(hold));
    let slice = bytes.slice(3..4);
    drop(bytes);
    assert_eq!((&slice[..], account.held(What::BodyBytes)), (&b"3"[..], Some(10)), "as long as a slice is kept");
    drop(slice);
    assert_eq!((account.held(What::BodyBytes), admission.held(What::BodyBytes)), (Some(0), 0));
}

#[test]
fn nothing_is_left_of_who_holds_nothing() {
    let admission = admission();
    for _ in 0..3 {
        let account = admission.account(peer("a"));
        let hold = account.take(What::Hooks, 1).unwrap();
        drop(account);
        assert_eq!(admission.accounts(), 1);
        let same = admission.account(peer("a"));
        assert_eq!(same.held(What::Hooks), Some(1));
        drop((hold, same));
        assert_eq!(admission.accounts(), 0);
    }
    drop(admission.account(None).take(What::Hooks, 1));
    assert_eq!((admission.accounts(), admission.held(What::Hooks)), (0, 0));
}

#[test]
fn of_many_at_once_none_gets_past() {
    let limits = Limits::default().in_flight_by_caller(5).in_flight_in_all(8);
    let admission = Admission::new(&limits);
    let barrier = Barrier::new(4);
    thread::scope(|scope| {
        for thread in 0..4 {
            let (admission, barrier) = (&admission, &barrier);
            scope.spawn(move || {
                barrier.wait();
                for round in 0..2000 {
                    let account = admission.account(named(["a", "b"][(thread + round) % 2]));
                    let holds: Vec<_> = (0..4).map_while(|_| account.take(What::Requests, 1).ok()).collect();
                    assert!(account.held(What::Requests).unwrap() <= 5 && admission.held(What::Requests) <= 8);
                    drop(holds);
                }
            });
        }
    });
    assert_eq!((admission.accounts(), admission.held(What::Requests)), (0, 0));
}

#[test]
fn who_left_nothing_unread_is_let_in() {
    let admission = Admission::new(&Limits::default().queue_bytes_by_caller(0));
    let account = admission.account(named("a"));
    let gauge = Gauge::of(&account);
    assert!(account.take_request().is_ok());
    gauge.add(1);
    assert_eq!(account.take_request().unwrap_err(), Full::Share(What::QueueBytes));
    gauge.take_off(1);
    assert!(account.take_request().is_ok());
}

/// What they leave unread has no bound of its own.
#[test]
fn who_has_no_share_answers_for_the_whole() {
    let admission = Admission::new(&Limits::default().queue_bytes_in_all(10));
    let (nobody, somebody) = (admission.account(None), admission.account(named("a")));
    let gauge = Gauge::of(&nobody);
    gauge.add(10);
    assert!(nobody.take_request().is_ok());
    gauge.add(1);
    assert_eq!(nobody.take_request().unwrap_err(), Full::Whole(What::QueueBytes));
    assert!(somebody.take_request().is_ok(), "it is none of theirs");
    gauge.take_off(11);
    assert!(nobody.take_request().is_ok());
}

#[test]
fn a_refusal_names_the_limit() {
    for (full, kind, limit) in [
        (Full::Share(What::Requests), RefusalKind::CallerLimit, "Limits::in_flight_by_caller"),
        (Full::Whole(What::Requests), RefusalKind::Overloaded, "Limits::in_flight_in_all"),
        (Full::Share(What::Hooks), RefusalKind::CallerLimit, "McpHandler::notification"),
        (Full::Whole(What::Listeners), RefusalKind::Overloaded, "Limits::listeners"),
    ] {
        let refusal = Refusal::from(full);
        assert_eq!((refusal.kind(), refusal.rule().section()), (kind, limit));
    }
}
