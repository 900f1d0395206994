//! The forks of the daemon.

#![allow(dead_code, reason = "nobody asks yet")]

mod accounts;
#[cfg(test)]
mod accounts_tests;
mod isolation;
#[cfg(test)]
mod isolation_soak;
#[cfg(test)]
mod isolation_tests;
mod ledger;
