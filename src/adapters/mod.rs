//! Frameworks that do not speak tower. They stand on the public API alone, as an application would.

pub mod actix;
