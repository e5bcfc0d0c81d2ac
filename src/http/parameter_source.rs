//! Where the `x-mcp-header` annotations of a tool are learned, so that the `Mcp-Param-*` headers of a call can be
//! checked against its body (2026-07-28, Streamable HTTP, "Custom Headers from Tool Parameters").
//!
//! By default from the handler's own `tools/list`, answered for the same principal, since lists may differ by caller.
//! What is learned is kept until the listing's `ttlMs` is over or a change of the tools is published, is refreshed by
//! every `tools/list` served, and once more before a call is refused: a tool may have changed without a word.

use std::collections::{HashMap, HashSet};
use std::future::ready;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use tokio::time::Instant;

use super::listing::{self, Listing, Page};
use crate::changes::{Change, Changes, Listener};
use crate::context::RequestContext;
use crate::exchange::call::Call;
use crate::exchange::{Failure, answering};
use crate::handler::{Answering, ParameterSource};
use crate::observer::Misuse;
use crate::principal::Principal;
use crate::protocol::ground::Ground;
use crate::protocol::names::method;
use crate::protocol::parameter_headers::{ParameterFault, ParameterHeaders, any_parameter_header};
use crate::protocol::refusal::{Refusal, RefusalKind};
use crate::protocol::revision::Era;
use crate::sync::lock;

/// How long a listing is kept that does not say it itself.
const KEPT: Duration = Duration::from_secs(60);

/// Principals whose listings are kept; the one to expire first goes.
const MOST_PRINCIPALS: usize = 1024;

/// Tools whose bad annotations have been reported; past it none is reported again.
const MOST_REPORTED: usize = 10_000;

/// The annotations of all tools, by caller.
#[derive(Debug, Default)]
pub(super) struct ParameterSources {
    /// Counts the published changes: a listing of an earlier count is stale.
    changes: AtomicU64,
    kept: Mutex<HashMap<Option<Principal>, Arc<Kept>>>,
    reported: Mutex<HashSet<Box<str>>>,
    hasher: RandomState,
}

#[derive(Debug)]
struct Kept {
    listing: Arc<Listing>,
    /// The hash of the page it was read from, where that was the only one. Most lists stay as they are.
    page: Option<u64>,
    changes: u64,
    until: Instant,
}

impl Listener for ParameterSources {
    fn changed(&self, change: Change<'_>) {
        if change == Change::Tools {
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl ParameterSources {
    pub(super) fn new(changes: &Changes) -> Arc<Self> {
        let sources = Arc::new(Self::default());
        let listener: Weak<dyn Listener> = Arc::<Self>::downgrade(&sources);
        changes.listen(listener);
        sources
    }

    /// The answer to a call: its parameter headers are checked first, and a listing is learned from.
    pub(super) fn answering(self: &Arc<Self>, call: &Arc<Call>) -> Answering {
        let sources = Arc::clone(self);
        match (call.era(), call.message.method()) {
            (Era::Modern, method::TOOLS_CALL) if call.server.capabilities.declares("tools") => match self.check(call) {
                Check::Passed => answering(call),
                Check::Failed(refusal) => Box::pin(ready(Err(Failure::Refused(refusal)))),
                Check::Unsettled => {
                    let call = Arc::clone(call);
                    Box::pin(async move {
                        sources.settle(&call).await.map_err(Failure::Refused)?;
                        answering(&call).await
                    })
                }
            },
            (_, method::TOOLS_LIST) => {
                let call = Arc::clone(call);
                Box::pin(async move {
                    let changes = sources.changes();
                    let reply = answering(&call).await?;
                    sources.learn(&call, reply.json(), changes);
                    Ok(reply)
                })
            }
            _ => answering(call),
        }
    }

    /// Checks a call by what is known without asking.
    fn check(&self, call: &Arc<Call>) -> Check {
        let tool = call.message.name().unwrap_or_default();
        let cx = RequestContext::new(Arc::clone(call));
        match call.server.handler.parameter_headers(tool, &cx) {
            ParameterSource::Known(headers) => {
                self.report(call, tool, &headers);
                match judge(&headers, call) {
                    Ok(()) => Check::Passed,
                    Err(refusal) => Check::Failed(refusal),
                }
            }
            ParameterSource::None => Check::Passed,
            ParameterSource::Listing => match self.fresh(call.principal.as_ref()) {
                Some(kept) if kept.listing.judge(tool, call).is_ok() => Check::Passed,
                _ => Check::Unsettled,
            },
        }
    }

    /// Checks a call after asking for the tools anew.
    async fn settle(&self, call: &Arc<Call>) -> Result<(), Refusal> {
        let tool = call.message.name().unwrap_or_default();
        if let Some(kept) = self.refresh(call).await {
            return kept.listing.judge(tool, call);
        }
        let last_good = self.kept().get(&call.principal).cloned();
        match last_good {
            Some(kept) => kept.listing.judge(tool, call),
            None if call.via.http().is_some_and(|head| any_parameter_header(&head.headers)) => {
                Err(Refusal::new(RefusalKind::ListingFailed))
            }
            None => {
                call.server.observer.misuse(&Misuse::ListingFailed { tool: tool.to_owned() });
                Ok(())
            }
        }
    }

    /// Asks the handler for its tools. `None` where that fails.
    async fn refresh(&self, call: &Arc<Call>) -> Option<Arc<Kept>> {
        let changes = self.changes();
        let listed = listing::ask(call).await?;
        Some(self.keep(call, Arc::new(listed), None, changes))
    }

    /// Learns from a page that was served. `changes` is the count when it was asked for: what has changed since, it may
    /// not show.
    fn learn(&self, call: &Call, result: &[u8], changes: u64) {
        let is_first = !listing::has_cursor(call);
        let hash = self.hasher.hash_one(result);
        let known = self.kept().get(&call.principal).cloned();
        if let Some(known) = known.filter(|known| is_first && known.page == Some(hash)) {
            self.keep(call, Arc::clone(&known.listing), Some(hash), changes);
            return;
        }
        let most = call.server.limits.listing_tools;
        let Some(page) = Page::read(result).filter(|page| page.tools() <= most) else {
            return;
        };
        if page.is_whole() && is_first {
            self.keep(call, Arc::new(Listing::of(page)), Some(hash), changes);
            return;
        }
        if let Some(known) = self.fresh(call.principal.as_ref()) {
            let listing = Arc::new(known.listing.with(page));
            let kept = Kept { listing, page: None, changes: known.changes, until: known.until };
            self.put(call, kept);
        }
    }

    fn keep(&self, call: &Call, listing: Arc<Listing>, page: Option<u64>, changes: u64) -> Arc<Kept> {
        let until = Instant::now() + listing.time_to_live().unwrap_or(KEPT);
        self.put(call, Kept { listing, page, changes, until })
    }

    fn put(&self, call: &Call, new: Kept) -> Arc<Kept> {
        for (tool, headers) in new.listing.annotated() {
            self.report(call, tool, headers);
        }
        let new = Arc::new(new);
        let mut kept = self.kept();
        if kept.len() >= MOST_PRINCIPALS && !kept.contains_key(&call.principal) {
            let first = kept.iter().min_by_key(|(_, kept)| kept.until).map(|(principal, _)| principal.clone());
            kept.retain(|principal, _| Some(principal) != first.as_ref());
        }
        kept.insert(call.principal.clone(), Arc::clone(&new));
        new
    }

    /// Tells the application, once, of annotations that clients will take offence at.
    fn report(&self, call: &Call, tool: &str, headers: &ParameterHeaders) {
        if headers.faults().is_empty() {
            return;
        }
        let mut reported = lock(&self.reported);
        let is_news = reported.len() < MOST_REPORTED && reported.insert(tool.into());
        drop(reported);
        for fault in headers.faults().iter().filter(|_| is_news) {
            let misuse = Misuse::BadAnnotation { tool: tool.to_owned(), fault: fault.clone() };
            call.server.observer.misuse(&misuse);
        }
    }

    fn fresh(&self, principal: Option<&Principal>) -> Option<Arc<Kept>> {
        let kept = self.kept().get(&principal.cloned()).cloned()?;
        let is_fresh = kept.changes == self.changes() && Instant::now() < kept.until;
        is_fresh.then_some(kept)
    }

    fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<Option<Principal>, Arc<Kept>>> {
        lock(&self.kept)
    }
}

/// What is known of a call without asking.
enum Check {
    Passed,
    Failed(Refusal),
    /// Nothing fresh is known of its tool, or what is known speaks against it.
    Unsettled,
}

/// Compares the headers of a call with its arguments.
pub(super) fn judge(headers: &ParameterHeaders, call: &Call) -> Result<(), Refusal> {
    let Some(head) = call.via.http() else {
        // Nothing is mirrored where there are no headers.
        return Ok(());
    };
    headers.check(&head.headers, call.message.arguments()).map_err(|fault| match fault {
        ParameterFault::DuplicateArgument => {
            let refusal = Refusal::because(RefusalKind::Shape, "A mirrored member of params.arguments came twice");
            refusal.on(Ground::ArgumentTwice)
        }
        ParameterFault::Header(fault) => Refusal::from(fault),
    })
}
