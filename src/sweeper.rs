//! One lazy task for all things of a kind that have to go by themselves: it begins with the first of them and ends with
//! the last.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::sleep;

/// What is swept now and then.
pub(crate) trait Swept: Send + Sync + 'static {
    /// Where it stands whether a sweeper is at work.
    fn duty(&self) -> &Duty;

    /// Lets go what has to.
    fn sweep(&self) -> impl Future<Output = ()> + Send;

    /// Whether nothing is left that could ever have to go.
    fn is_clean(&self) -> bool;
}

/// Whether a sweeper is at work.
#[derive(Debug, Default)]
pub(crate) struct Duty(AtomicBool);

/// Starts a sweeper unless one is at work: after something was put in that it may have to let go. Outside a runtime
/// there is none.
pub(crate) fn start<T: Swept>(swept: &Arc<T>, interval: Duration) {
    let Ok(runtime) = Handle::try_current() else {
        return;
    };
    if !swept.duty().0.swap(true, Ordering::AcqRel) {
        let sweeper = Sweeper { swept: Arc::downgrade(swept), on_duty: true };
        runtime.spawn(sweeper.work(interval));
    }
}

/// The one at work. If its runtime is shut down, whatever is put in next finds another.
struct Sweeper<T: Swept> {
    swept: Weak<T>,
    on_duty: bool,
}

impl<T: Swept> Sweeper<T> {
    async fn work(mut self, interval: Duration) {
        loop {
            sleep(interval).await;
            let Some(swept) = self.swept.upgrade() else {
                return;
            };
            swept.sweep().await;
            if swept.is_clean() {
                // A swap, so that it reads what others wrote before they saw a sweeper at work.
                swept.duty().0.swap(false, Ordering::AcqRel);
                // Something may have been put in in between.
                if swept.is_clean() || swept.duty().0.swap(true, Ordering::AcqRel) {
                    self.on_duty = false;
                    return;
                }
            }
        }
    }
}

impl<T: Swept> Drop for Sweeper<T> {
    fn drop(&mut self) {
        if let Some(swept) = self.swept.upgrade().filter(|_| self.on_duty) {
            swept.duty().0.store(false, Ordering::Release);
        }
    }
}
