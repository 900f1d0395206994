//! Real agent sessions: read as an independent replay reads them, and judged as the commits that followed judge them.

mod live;
mod replay;
