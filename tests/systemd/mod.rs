//! The units of systemd: what must not stand in them, how they are installed, and a real systemd that runs them.

mod install;
mod real;
mod units;

use std::path::{Path, PathBuf};

/// The folder of the units in the repository.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd")
}

fn text(unit: &str) -> String {
    std::fs::read_to_string(folder().join(unit)).expect("a unit")
}

fn is_there(program: &str) -> bool {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|folder| folder.join(program).is_file())
}
