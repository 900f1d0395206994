//! `staled`

pub mod session;
pub mod index;
pub mod decision;
pub mod protocol;
pub mod world;
pub mod store;
pub mod config;
pub mod daemon;
pub mod client;
pub mod agent;
pub mod cli;
