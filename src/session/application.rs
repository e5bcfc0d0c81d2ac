//! What an application keeps in a session: one value of each type.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::sync::lock;

type Values = HashMap<TypeId, Arc<dyn Any + Send + Sync>>;

/// One value of each type. Nothing is allocated before the first.
#[derive(Default)]
pub(crate) struct Application(Mutex<Option<Box<Values>>>);

impl Application {
    pub(crate) fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let value = self.values().as_ref()?.get(&TypeId::of::<T>())?.clone();
        value.downcast().ok()
    }

    pub(crate) fn insert<T: Any + Send + Sync>(&self, value: Arc<T>) -> Option<Arc<T>> {
        let before = self.values().get_or_insert_default().insert(TypeId::of::<T>(), value)?;
        before.downcast().ok()
    }

    /// Makes the value outside the lock, so that `make` may use the session; of two made at once the first stays.
    pub(crate) fn get_or_insert_with<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        if let Some(value) = self.get() {
            return value;
        }
        let made: Arc<T> = Arc::new(make());
        let mut values = self.values();
        let kept: Arc<dyn Any + Send + Sync> =
            values.get_or_insert_default().entry(TypeId::of::<T>()).or_insert_with(|| made.clone()).clone();
        drop(values);
        kept.downcast().unwrap_or(made)
    }

    fn values(&self) -> MutexGuard<'_, Option<Box<Values>>> {
        lock(&self.0)
    }
}

impl fmt::Debug for Application {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Application").finish_non_exhaustive()
    }
}
