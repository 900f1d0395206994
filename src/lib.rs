//! `staled`

pub mod session;
pub mod world;
