//! Forks from the command line: what confines a command, what merges, and what is said of both.

mod confine;
