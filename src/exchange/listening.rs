//! `subscriptions/listen` of 2026-07-28, whatever carries it: what is asked for, what of it is granted.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::answer::Finished;
use super::call::Call;
use super::lifecycle::{OpenStream, Ticket};
use super::{Drive, Failure};
use crate::admission::{Account, Hold, What};
use crate::capabilities::Capabilities;
use crate::context::RequestContext;
use crate::observer::StreamKind;
use crate::protocol::ground::Ground;
use crate::protocol::kept_id;
use crate::protocol::names::method;
use crate::protocol::refusal::{Refusal, RefusalKind};
use crate::protocol::sse::Frame;
use crate::reply::Reply;
use crate::subscribe::{Hub, Mailbox, Place, Subscribed, Wants};

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
        let Wants { tools, prompts, resources } = Wants::of(capabilities);
        self.tools_list_changed &= tools;
        self.prompts_list_changed &= prompts;
        self.resources_list_changed &= resources;
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

/// A listener whose grant is being made.
pub(crate) struct Granting {
    call: Arc<Call>,
    place: Place,
    hold: Hold,
    /// Counted from the beginning, so that a drain sees it also between its grant and its first event.
    open: OpenStream,
    drive: Drive,
    granted: oneshot::Receiver<Filter>,
}

/// What was decided.
pub(crate) enum Decided {
    /// It may listen.
    Granted {
        /// Says what is granted, before anything else.
        acknowledgement: Frame,
        /// The response, once the subscription ends.
        end: Finished,
    },
    /// It may not: this is the answer.
    Refused(Finished),
}

impl Granting {
    /// Judges what is asked for and takes a place. Changes are kept from here on, so that none is lost between the
    /// request and its acknowledgement.
    pub(crate) fn start(call: Arc<Call>, ticket: Ticket, hub: &Arc<Hub>) -> Result<Self, Refusal> {
        // Every message on its stream carries it.
        kept_id::judge(call.id(), "a subscription")?;
        let Some(mut filter) = Filter::read(call.message.params()) else {
            return Err(Refusal::because(
                RefusalKind::InvalidParams,
                "params.notifications is required: booleans toolsListChanged, promptsListChanged, \
                 resourcesListChanged and an array of URIs resourceSubscriptions, all optional",
            ));
        };
        filter.narrow(&call.server.capabilities);
        let mailbox = Arc::new(Mailbox::default());
        filter.resource_subscriptions.retain(|uri| mailbox.subscribe(uri) == Subscribed::New);
        // Nobody else has the mailbox, so it is free.
        let turn = mailbox.open(filter.wants()).unwrap_or_default();
        let hold = take_place(&call.account)?;
        let place = hub.add(&mailbox, turn);
        // The stream carries changes and nothing else.
        call.outlet.queue().abandon();
        let open = OpenStream::of(&call.server, StreamKind::Subscription);
        let (tell, granted) = oneshot::channel();
        let drive = Drive::start(&call, ticket, |call| Box::pin(grant(Arc::clone(call), mailbox, filter, tell)));
        Ok(Self { call, place, hold, open, drive, granted })
    }

    pub(crate) fn call(&self) -> &Arc<Call> {
        &self.call
    }

    /// Ready once the handler has decided.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Decided> {
        let finished = ready!(Pin::new(&mut self.drive).poll(cx));
        let acknowledged = self.granted.try_recv().ok().and_then(|granted| acknowledge(self.call.id(), &granted));
        Poll::Ready(match acknowledged {
            Some(acknowledgement) => Decided::Granted { acknowledgement, end: finished },
            None => Decided::Refused(finished),
        })
    }

    /// The place from which a granted subscription reads, and what it holds.
    pub(crate) fn into_place(self) -> (Place, Hold, OpenStream) {
        (self.place, self.hold, self.open)
    }
}

/// Counts a stream that listens for changes. Whichever there are too many of, its caller's or all, it gets 503.
pub(crate) fn take_place(account: &Account) -> Result<Hold, Refusal> {
    account
        .take(What::Listeners, 1)
        .map_err(|full| Refusal::new(RefusalKind::Overloaded).on(Ground::Limit(full.limit())))
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

fn acknowledge(id: &[u8], granted: &Filter) -> Option<Frame> {
    #[derive(Serialize)]
    struct Acknowledged<'a> {
        _meta: Option<Tag<'a>>,
        notifications: &'a Filter,
    }
    let params = Acknowledged { _meta: Tag::of(id), notifications: granted };
    Frame::notification(method::ACKNOWLEDGED, Some(&params)).ok()
}

/// Says on a byte stream that the server ends a subscription. The response follows.
pub(crate) fn cancelled(id: &[u8]) -> Option<Frame> {
    #[derive(Serialize)]
    struct Cancelled<'a> {
        _meta: Option<Tag<'a>>,
        #[serde(rename = "requestId")]
        request_id: &'a RawValue,
    }
    let params = Cancelled { _meta: Tag::of(id), request_id: serde_json::from_slice(id).ok()? };
    Frame::notification(method::CANCELLED, Some(&params)).ok()
}
