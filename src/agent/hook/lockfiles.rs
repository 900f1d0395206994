//! Lockfiles that the agent has just looked into, or that a command of its own has changed.
//!
//! An agent that adds a dependency knows that the lockfile is another one, and reads it as little as before; and nobody reads
//! a long one whole. So it is told by the answer to the call that the lockfile is another one, and from then on the one that
//! is there is what it knows. A command counts for the time that it ran, and only if its program writes lockfiles: what
//! happened outside at another time stays stale until it is told and looked at.

use super::event::{Call, text};
use super::sight::target;
use crate::agent::context::{invariant, read_small, source};
use crate::protocol::context::{Belief, Context};
use crate::world::digest::blake3;
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Programs that write lockfiles as part of what they are for.
const WRITERS: [&str; 20] = [
    "cargo", "npm", "npx", "pnpm", "yarn", "bun", "uv", "poetry", "pipenv", "pip", "go", "bundle", "gem",
    "composer", "mix", "nix", "gradle", "gradlew", "dotnet", "deno",
];

/// How long a command may have run that does not say, and how late the clock of a filesystem may be.
const RAN_USUALLY: Duration = Duration::from_secs(60);
const CLOCK_SLACK: Duration = Duration::from_secs(2);

/// The invariants of such lockfiles that differ from what the session knew, and what is said of them.
pub(super) fn changed(calls: &[Call], root: &Path, held: &Context) -> (Vec<Belief>, String) {
    let (mut changed, mut said) = (Vec::new(), String::new());
    for known in held.invariants.iter().filter(|known| known.source.kind == "lockfile") {
        let (Some(name), Some(path)) = (&known.name, &known.source.path) else { continue };
        let file = root.join(&path.0);
        if !calls.iter().any(|call| looked(call, &file) || wrote(call, &file)) {
            continue;
        }
        let Some(now) = read_small(&file).map(|bytes| blake3(&bytes).to_string()) else { continue };
        if known.digest.as_ref() == Some(&now) {
            continue;
        }
        let line = if said.is_empty() { "" } else { "\n" };
        let _ = write!(said, "{line}{} is not what this session knew it to be.", path.0.display());
        changed.push(Belief { digest: Some(now), ..invariant(name, source(&path.0, "lockfile")) });
    }
    (changed, said)
}

/// Whether the call showed some of the lockfile, or wrote it.
fn looked(call: &Call, file: &Path) -> bool {
    call.error.is_none() && target(call).is_some_and(|path| Path::new(path) == file)
}

/// Whether the call ran a program that writes lockfiles, wherever in the command, and the file was written meanwhile.
fn wrote(call: &Call, file: &Path) -> bool {
    let command = text(&call.input, "command").filter(|_| call.tool == "Bash").unwrap_or_default();
    let words = command.split(|symbol: char| symbol.is_whitespace() || ";&|()`\"'".contains(symbol));
    let writes = words.filter_map(|word| word.rsplit('/').next()).any(|word| WRITERS.contains(&word));
    let ran = call.duration_ms.map_or(RAN_USUALLY, Duration::from_millis) + CLOCK_SLACK;
    let began = SystemTime::now().checked_sub(ran);
    let written = std::fs::metadata(file).and_then(|found| found.modified()).ok();
    writes && matches!((written, began), (Some(written), Some(began)) if written >= began)
}
