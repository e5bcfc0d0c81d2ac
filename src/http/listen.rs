//! `subscriptions/listen` of 2026-07-28: a stream of the changes its client asked for, until either side ends it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Response, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::body::ResponseBody;
use super::respond;
use crate::capabilities::Capabilities;
use crate::context::RequestContext;
use crate::exchange::answer::Finished;
use crate::exchange::call::{Call, Form};
use crate::exchange::keep_alive::KeepAlive;
use crate::exchange::lifecycle::Ticket;
use crate::exchange::{Answer, Drive, Failure};
use crate::protocol::names::method;
use crate::protocol::refusal::{Refusal, RefusalKind};
use crate::protocol::sse::Frame;
use crate::reply::Reply;
use crate::server::Server;
use crate::subscribe::{Hub, Mailbox, Most, Place, Subscribed, Wants};

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

impl Filter {
    /// What a client asks for. Unknown keys are ignored; a filter that is no object is none.
    fn read(params: Option<&[u8]>) -> Option<Self> {
        #[derive(Deserialize)]
        struct Params<'a> {
            #[serde(borrow)]
            notifications: &'a RawValue,
        }
        let Params { notifications } = serde_json::from_slice(params?).ok()?;
        // A struct is read from an array, too.
        notifications.get().starts_with('{').then(|| serde_json::from_str(notifications.get()).ok()).flatten()
    }

    /// Leaves what the server declares.
    fn narrow(&mut self, capabilities: &Capabilities) {
        self.tools_list_changed &= capabilities.changes("tools");
        self.prompts_list_changed &= capabilities.changes("prompts");
        self.resources_list_changed &= capabilities.changes("resources");
        if !capabilities.subscribes() {
            self.resource_subscriptions.clear();
        }
    }

    fn wants(&self) -> Wants {
        Wants {
            tools: self.tools_list_changed,
            prompts: self.prompts_list_changed,
            resources: self.resources_list_changed,
        }
    }
}

/// Bytes of the id of a subscription, which every message on its stream carries.
const MOST_ID_BYTES: usize = 1024;

/// A listener whose grant is being made.
pub(super) struct Listening {
    call: Arc<Call>,
    place: Option<Place>,
    granting: Drive,
    granted: oneshot::Receiver<Filter>,
}

impl Listening {
    /// Judges what is asked for and takes a place. Changes are kept from here on, so that none is lost between the
    /// request and its acknowledgement.
    pub(super) fn start(call: Arc<Call>, ticket: Ticket, hub: &Arc<Hub>) -> Result<Self, Refusal> {
        if call.form == Form::JsonOnly {
            return Err(Refusal::because(RefusalKind::NotAcceptable, "Accept must admit text/event-stream"));
        }
        if call.id().len() > MOST_ID_BYTES {
            return Err(Refusal::because(RefusalKind::Shape, "The id of a subscription has at most 1024 bytes"));
        }
        let Some(mut filter) = Filter::read(call.message.params()) else {
            return Err(Refusal::because(
                RefusalKind::InvalidParams,
                "params.notifications is required: booleans toolsListChanged, promptsListChanged, \
                 resourcesListChanged and an array of URIs resourceSubscriptions, all optional",
            ));
        };
        filter.narrow(&call.server.capabilities);
        let limits = &call.server.limits;
        let most = Most { in_all: limits.listeners, by_principal: limits.listeners_by_principal };
        let mailbox = Arc::new(Mailbox::default());
        filter.resource_subscriptions.retain(|uri| mailbox.subscribe(uri) == Subscribed::New);
        // Nobody else has the mailbox, so it is free.
        let turn = mailbox.open(filter.wants()).unwrap_or_default();
        let place = Some(hub.listen(&mailbox, turn, call.principal.as_ref(), most)?);
        // The stream carries changes and nothing else.
        call.queue.abandon();
        let (tell, granted) = oneshot::channel();
        let granting = Drive::start(&call, ticket, |call| Box::pin(grant(Arc::clone(call), mailbox, filter, tell)));
        Ok(Self { call, place, granting, granted })
    }

    /// Ready once the handler has decided: with the stream, its acknowledgement first, or with an error.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Response<ResponseBody>> {
        let Finished { status, frame, .. } = ready!(Pin::new(&mut self.granting).poll(cx));
        let stream = match self.granted.try_recv() {
            Ok(granted) => {
                let acknowledgement = acknowledgement(self.call.id(), &granted);
                ListenStream::new(&self.call, Some(acknowledgement), self.place.take(), &frame)
            }
            // The error, to a client that reads nothing else.
            Err(_) if status == StatusCode::OK && self.call.form == Form::SseOnly => {
                ListenStream::new(&self.call, None, None, &frame)
            }
            Err(_) => return Poll::Ready(respond::answer(Answer::Json(status, frame.json()))),
        };
        Poll::Ready(respond::events(ResponseBody::listen(stream)))
    }
}

/// Lets the handler decide on each resource. The result is the response to the request; it is kept until the
/// subscription ends.
async fn grant(
    call: Arc<Call>,
    mailbox: Arc<Mailbox>,
    mut filter: Filter,
    tell: oneshot::Sender<Filter>,
) -> Result<Reply, Failure> {
    for uri in std::mem::take(&mut filter.resource_subscriptions) {
        let cx = RequestContext::new(Arc::clone(&call));
        match Arc::clone(&call.server.handler).subscribe(uri.clone(), cx).await {
            Ok(()) => filter.resource_subscriptions.push(uri),
            Err(error) => {
                mailbox.unsubscribe(&uri);
                if error.is_internal() {
                    call.server.observer.internal_error(&call.observed(), &error);
                }
            }
        }
    }
    #[derive(Serialize)]
    struct End<'a> {
        _meta: Option<Tag<'a>>,
    }
    let end = Reply::of(&End { _meta: Tag::of(call.id()) }).map_err(Failure::Error)?;
    // Where nobody listens any more, nobody needs to know.
    let _ = tell.send(filter);
    Ok(end)
}

/// An open stream. It has no task: what it reads is its mailbox. Nothing of the request is kept but its id.
pub(crate) struct ListenStream {
    server: Arc<Server>,
    id: Box<[u8]>,
    keep_alive: KeepAlive,
    acknowledgement: Option<Bytes>,
    /// Gone once the subscription has ended.
    place: Option<Place>,
    /// The last event. Gone once it is sent.
    response: Option<Bytes>,
}

impl ListenStream {
    /// Without an acknowledgement and a place it consists of its response.
    fn new(call: &Call, acknowledgement: Option<Bytes>, place: Option<Place>, response: &Frame) -> Self {
        call.server.lifecycle.stream_opened();
        call.server.observer.stream_opened(&call.observed());
        Self {
            server: Arc::clone(&call.server),
            id: call.id().into(),
            keep_alive: KeepAlive::default(),
            acknowledgement,
            place,
            // A copy, since the frame has room to grow and the stream is there for long.
            response: Some(Bytes::copy_from_slice(&response.event())),
        }
    }

    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(acknowledgement) = self.acknowledgement.take() {
            return Poll::Ready(Some(acknowledgement));
        }
        let Some(place) = &self.place else {
            return Poll::Ready(self.response.take());
        };
        match place.poll_next(cx) {
            Poll::Ready(Some(notice)) => {
                self.keep_alive.restart();
                Poll::Ready(Some(notice.tagged(&self.id)))
            }
            Poll::Ready(None) => {
                self.place = None;
                Poll::Ready(self.response.take())
            }
            Poll::Pending => self.keep_alive.poll(self.server.limits.keep_alive, cx).map(Some),
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.response.is_none()
    }
}

impl Drop for ListenStream {
    fn drop(&mut self) {
        self.server.lifecycle.stream_closed();
    }
}

/// What every message of a subscription carries in its `_meta`.
#[derive(Serialize)]
struct Tag<'a> {
    #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
    subscription: &'a RawValue,
}

impl<'a> Tag<'a> {
    /// The id as the client wrote it.
    fn of(id: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(id).ok().map(|subscription| Self { subscription })
    }
}

fn acknowledgement(id: &[u8], granted: &Filter) -> Bytes {
    #[derive(Serialize)]
    struct Acknowledged<'a> {
        _meta: Option<Tag<'a>>,
        notifications: &'a Filter,
    }
    let params = Acknowledged { _meta: Tag::of(id), notifications: granted };
    Frame::notification(method::ACKNOWLEDGED, Some(&params)).map(|frame| frame.event()).unwrap_or_default()
}
