//! Panics of the application's.

use std::any::Any;
use std::future::Future;
use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures::FutureExt;

/// Runs what is the application's. If it panics, returns what the panic says.
pub(crate) fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(message)
}

/// The same for what takes its time.
pub(crate) async fn caught_in<T>(run: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(run).catch_unwind().await.map_err(message)
}

/// What a panic says.
fn message(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("a panic that carries no text").to_owned();
    // What it carries is the application's too, and its destructor may panic.
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        forget(again);
    }
    text
}
