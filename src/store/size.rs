//! How much of the disk something takes, for those who watch over it. Nothing here is exact while somebody writes.

use std::path::Path;

/// Bytes of a file, or of all files below a folder. What vanishes meanwhile counts nothing.
#[must_use]
pub fn bytes_below(path: &Path) -> u64 {
    let Ok(found) = path.symlink_metadata() else { return 0 };
    if !found.is_dir() {
        return found.len();
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| bytes_below(&entry.path())).sum()
}

/// Bytes of the decision log in this state folder, with the files that were rotated away.
#[must_use]
pub fn bytes_of_log(state: &Path) -> u64 {
    let entries = std::fs::read_dir(state).into_iter().flatten().flatten();
    let of_log = entries.filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with("decisions") && name.contains(".jsonl")
    });
    of_log.map(|entry| bytes_below(&entry.path())).sum()
}
