//! `subscriptions/listen` of 2026-07-28: a stream of the changes its client asked for, until either side ends it.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::context::RequestContext;
use crate::exchange::call::{Call, Form};
use crate::exchange::keep_alive::KeepAlive;
use crate::protocol::names::method;
use crate::protocol::refusal::{Refusal, RefusalKind};
use crate::protocol::sse::Frame;
use crate::reply::{CacheRule, Reply, Stamp};
use crate::subscribe::{Hub, Mailbox, Most, Place, Wants};

/// What a client asks for. Unknown keys are ignored.
#[derive(Debug, Deserialize)]
struct Params {
    notifications: Filter,
}

/// The filter as it is asked for and as it is granted.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Filter {
    #[serde(skip_serializing_if = "is_false")]
    tools_list_changed: bool,
    #[serde(skip_serializing_if = "is_false")]
    prompts_list_changed: bool,
    #[serde(skip_serializing_if = "is_false")]
    resources_list_changed: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resource_subscriptions: Vec<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde asks for a reference
fn is_false(flag: &bool) -> bool {
    !*flag
}

/// A listener whose grant is being made.
pub(super) struct Listening {
    opening: BoxFuture<'static, Result<ListenStream, Refusal>>,
}

impl Listening {
    /// Judges what is asked for and takes a place. Changes are kept from here on, so that none is lost between the
    /// request and its acknowledgement.
    pub(super) fn start(call: Arc<Call>, hub: &Arc<Hub>) -> Result<Self, Refusal> {
        if call.form == Form::JsonOnly {
            return Err(Refusal::because(RefusalKind::NotAcceptable, "Accept must admit text/event-stream"));
        }
        let params = call.message.params().and_then(|json| serde_json::from_slice::<Params>(json).ok());
        let Some(Params { notifications: asked }) = params else {
            return Err(Refusal::because(
                RefusalKind::InvalidParams,
                "params.notifications is required: booleans toolsListChanged, promptsListChanged, \
                 resourcesListChanged and an array of URIs resourceSubscriptions, all optional",
            ));
        };
        let limits = &call.server.limits;
        let most = Most { in_all: limits.listeners, by_principal: limits.listeners_by_principal };
        let mailbox = Arc::new(Mailbox::default());
        let place = hub.listen(&mailbox, call.principal.as_ref(), most)?;
        Ok(Self { opening: open(call, mailbox, place, asked).boxed() })
    }

    /// Ready with the stream, its acknowledgement first.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<ListenStream, Refusal>> {
        self.opening.poll_unpin(cx)
    }
}

async fn open(call: Arc<Call>, mailbox: Arc<Mailbox>, place: Place, asked: Filter) -> Result<ListenStream, Refusal> {
    let capabilities = &call.server.capabilities;
    let mut granted = Filter {
        tools_list_changed: asked.tools_list_changed && capabilities.changes("tools"),
        prompts_list_changed: asked.prompts_list_changed && capabilities.changes("prompts"),
        resources_list_changed: asked.resources_list_changed && capabilities.changes("resources"),
        resource_subscriptions: Vec::new(),
    };
    let wants = Wants {
        tools: granted.tools_list_changed,
        prompts: granted.prompts_list_changed,
        resources: granted.resources_list_changed,
    };
    let turn = mailbox.open(wants).unwrap_or_default();
    if capabilities.subscribes() {
        let uris = asked.resource_subscriptions.into_iter();
        let accepted: Vec<String> = uris.filter(|uri| mailbox.subscribe(uri)).collect();
        for uri in accepted {
            let cx = RequestContext::new(Arc::clone(&call));
            match Arc::clone(&call.server.handler).subscribe(uri.clone(), cx).await {
                Ok(()) => granted.resource_subscriptions.push(uri),
                Err(_) => mailbox.unsubscribe(&uri),
            }
        }
    }
    Ok(ListenStream::new(call, mailbox, place, turn, &granted))
}

/// An open stream. It has no task: what it reads is its mailbox.
pub(crate) struct ListenStream {
    call: Arc<Call>,
    mailbox: Arc<Mailbox>,
    turn: u64,
    keep_alive: KeepAlive,
    acknowledgement: Option<Bytes>,
    phase: Phase,
    _place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    Ended,
}

impl ListenStream {
    fn new(call: Arc<Call>, mailbox: Arc<Mailbox>, place: Place, turn: u64, granted: &Filter) -> Self {
        call.server.lifecycle.stream_opened();
        call.server.observer.stream_opened(&call.observed());
        let acknowledgement = Some(acknowledgement(&call, granted));
        Self {
            call,
            mailbox,
            turn,
            keep_alive: KeepAlive::default(),
            acknowledgement,
            phase: Phase::Open,
            _place: place,
        }
    }

    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(acknowledgement) = self.acknowledgement.take() {
            return Poll::Ready(Some(acknowledgement));
        }
        if self.phase == Phase::Ended {
            return Poll::Ready(None);
        }
        match self.mailbox.poll_next(self.turn, cx) {
            Poll::Ready(Some(notice)) => {
                self.keep_alive.restart();
                Poll::Ready(Some(notice.tagged(self.call.id())))
            }
            Poll::Ready(None) => {
                self.phase = Phase::Ended;
                Poll::Ready(Some(end(&self.call)))
            }
            Poll::Pending => self.keep_alive.poll(self.call.server.limits.keep_alive, cx).map(Some),
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.phase == Phase::Ended
    }
}

impl Drop for ListenStream {
    fn drop(&mut self) {
        self.call.server.lifecycle.stream_closed();
    }
}

#[derive(Serialize)]
struct Tag<'a> {
    #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
    subscription: &'a RawValue,
}

impl<'a> Tag<'a> {
    /// The id as the client wrote it.
    fn of(call: &'a Call) -> Option<Self> {
        serde_json::from_slice(call.id()).ok().map(|subscription| Self { subscription })
    }
}

fn acknowledgement(call: &Call, granted: &Filter) -> Bytes {
    #[derive(Serialize)]
    struct Acknowledged<'a> {
        _meta: Option<Tag<'a>>,
        notifications: &'a Filter,
    }
    let params = Acknowledged { _meta: Tag::of(call), notifications: granted };
    Frame::notification(method::ACKNOWLEDGED, Some(&params)).map(|frame| frame.event()).unwrap_or_default()
}

/// The response to the request, empty but for its tag: the subscription ended as it should.
fn end(call: &Call) -> Bytes {
    #[derive(Serialize)]
    struct End<'a> {
        _meta: Option<Tag<'a>>,
    }
    let Ok(mut reply) = Reply::of(&End { _meta: Tag::of(call) }) else {
        return Bytes::new();
    };
    reply.stamp(&Stamp { server_info: call.server.stamped_info(), cache: CacheRule::None });
    reply.finish(call.id()).event()
}
