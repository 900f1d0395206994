//! Which units of systemd start us, by the files that are there. None is well: a daemon needs no systemd.

use super::{Finding, Places};
use crate::cli::words::quoted;
use crate::config::config_home;
use std::path::{Path, PathBuf};

/// Where systemd looks for units of the machine and of a user.
const FOLDERS: [&str; 6] = [
    "/etc/systemd/system",
    "/etc/systemd/user",
    "/usr/local/lib/systemd/system",
    "/usr/local/lib/systemd/user",
    "/usr/lib/systemd/system",
    "/usr/lib/systemd/user",
];

pub(super) fn usual() -> Vec<PathBuf> {
    let own = config_home().map(|folder| folder.join("systemd/user"));
    own.into_iter().chain(FOLDERS.map(PathBuf::from)).collect()
}

pub(super) fn check(places: &Places) -> Vec<Finding> {
    const NAME: &str = "units";
    let mut units: Vec<PathBuf> = places.units.iter().flat_map(|folder| ours(folder)).collect();
    units.sort();
    if units.is_empty() {
        return vec![Finding::well(NAME, "none of ours, so nobody starts the daemon but you")];
    }
    // A unit that leads nowhere was enabled, and then what it named was removed.
    units
        .iter()
        .map(|unit| match unit.metadata() {
            Ok(_) => Finding::well(NAME, unit.display().to_string()),
            Err(error) => Finding::wrong(
                NAME,
                format!("{} cannot be read: {error}", unit.display()),
                format!("`rm {}`, or install it anew", quoted(unit)),
            ),
        })
        .collect()
}

fn ours(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let stem = name.strip_suffix(".service").or_else(|| name.strip_suffix(".socket"));
        stem.and_then(|stem| stem.strip_prefix("staled"))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('@'))
    });
    named.map(|entry| entry.path()).collect()
}
