//! Forks that cannot touch each other: whose path it is, and the watch that tells every change.

mod access;
mod guard;
mod twins;
mod ways;
