//! `Undecided → Json | Sse`: which form an answer takes.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{BufMut, Bytes, BytesMut};
use http::StatusCode;
use tokio::time::{Sleep, sleep};

use super::call::Form;
use super::subject::Subject;
use crate::store::queue::{AnswerFrame, Answers, Outlook};

/// An answer whose form is not decided yet. Dropped before it is, nobody will ever read it: whoever still sends must
/// not wait for room.
#[derive(Debug)]
pub(super) struct Undecided {
    subject: Subject,
    commit: Option<Pin<Box<Sleep>>>,
    /// Whether the answer has been handed on, to a response or to the stream that reads on.
    decided: bool,
}

/// The form it took.
#[derive(Debug)]
pub(super) enum Decision {
    Json(StatusCode, Bytes),
    Stream,
    /// There is no answer: every request was cancelled by its client.
    Withheld,
}

impl Undecided {
    pub(super) fn new(subject: Subject) -> Self {
        Self { subject, commit: None, decided: false }
    }

    pub(super) fn subject(&self) -> &Subject {
        &self.subject
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Decision> {
        let decision = self.poll_decision(cx);
        self.decided = decision.is_ready();
        decision
    }

    fn poll_decision(&mut self, cx: &mut Context<'_>) -> Poll<Decision> {
        let subject = &self.subject;
        let after = subject.server().limits.commit_after;
        match (subject.queue().poll_outlook(cx), subject.form()) {
            (Poll::Ready(Outlook::Messages), _) => Poll::Ready(Decision::Stream),
            (Poll::Ready(Outlook::Answers), form) => {
                let streams = match form {
                    Form::JsonOnly => false,
                    // No time at all has passed too.
                    Form::JsonFirst => after.is_zero(),
                    Form::SseOnly => true,
                };
                // What the client takes shapes what is answered with 200, and nothing else.
                match streams && subject.queue().status() == Some(StatusCode::OK) {
                    true => Poll::Ready(Decision::Stream),
                    false => Poll::Ready(json(subject)),
                }
            }
            (Poll::Pending, Form::JsonOnly) => Poll::Pending,
            (Poll::Pending, Form::JsonFirst | Form::SseOnly) => {
                let commit = self.commit.get_or_insert_with(|| Box::pin(sleep(after)));
                commit.as_mut().poll(cx).map(|()| Decision::Stream)
            }
        }
    }
}

impl Drop for Undecided {
    fn drop(&mut self) {
        if !self.decided {
            self.subject.queue().abandon();
        }
    }
}

/// All answers are there, and nothing was sent before them.
fn json(subject: &Subject) -> Decision {
    let mut answers = subject.queue().take_answers();
    match (subject, answers.pop()) {
        (_, None) => Decision::Withheld,
        (Subject::One(_), Some(answer)) => Decision::Json(answer.status, answer.frame.json()),
        (Subject::Batch(_), Some(first)) => Decision::Json(StatusCode::OK, array(&first, answers)),
    }
}

fn array(first: &AnswerFrame, mut rest: Answers) -> Bytes {
    let mut array = BytesMut::from(&b"["[..]);
    array.extend_from_slice(&first.frame.json());
    while let Some(answer) = rest.pop() {
        array.put_u8(b',');
        array.extend_from_slice(&answer.frame.json());
    }
    array.put_u8(b']');
    array.freeze()
}
