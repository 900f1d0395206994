//! Eyes.

pub mod digest;
