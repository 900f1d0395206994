//! Probes: how the value of an invariant is read from the world.
//!
//! A probe reads files only. It never runs a program, never writes, never blocks on a pipe, and together with its
//! answer it names every path that could change the answer, so that whoever watches those paths misses nothing.

pub mod between;
pub mod git;
mod look;
mod objects;
mod refs;
mod reftable;
mod repository;
