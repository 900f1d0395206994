//! Real agent sessions: read as an independent replay reads them, and judged as the commits that followed judge them.

mod codex;
mod hooked;
mod hooked_codex;
mod live;
mod made;
mod oracle;
mod questions;
mod replay;

/// Where the transcripts lie: beside the repository.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/transcripts");
