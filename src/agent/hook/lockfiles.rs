//! Lockfiles that a command of the agent's own has changed.
//!
//! An agent that adds a dependency knows that the lockfile is another one, and reads it as little as before. So it is told by
//! the answer to the command, and from then on the lockfile that is there is what it knows. Only of programs that write
//! lockfiles, so that what happened outside while some other command ran stays stale.

use super::event::{Call, text};
use crate::agent::context::{invariant, read_small, source};
use crate::protocol::context::{Belief, Context};
use crate::world::digest::blake3;
use std::fmt::Write;
use std::path::Path;

/// Programs that write lockfiles as part of what they are for.
const WRITERS: [&str; 20] = [
    "cargo", "npm", "npx", "pnpm", "yarn", "bun", "uv", "poetry", "pipenv", "pip", "go", "bundle", "gem",
    "composer", "mix", "nix", "gradle", "gradlew", "dotnet", "deno",
];

/// The invariants of lockfiles that differ from what the session knew, after such a command; and what is said of them.
pub(super) fn changed(calls: &[Call], root: &Path, held: &Context) -> (Vec<Belief>, String) {
    if !calls.iter().any(may_write) {
        return (Vec::new(), String::new());
    }
    let (mut changed, mut said) = (Vec::new(), String::new());
    for known in held.invariants.iter().filter(|known| known.source.kind == "lockfile") {
        let (Some(name), Some(path)) = (&known.name, &known.source.path) else { continue };
        let Some(now) = read_small(&root.join(&path.0)).map(|bytes| blake3(&bytes).to_string()) else {
            continue;
        };
        if known.digest.as_ref() == Some(&now) {
            continue;
        }
        let line = if said.is_empty() { "" } else { "\n" };
        let _ = write!(said, "{line}{} is not what it was before this command.", path.0.display());
        changed.push(Belief { digest: Some(now), ..invariant(name, source(&path.0, "lockfile")) });
    }
    (changed, said)
}

/// Whether a command runs one of these programs, wherever in it.
fn may_write(call: &Call) -> bool {
    let command = text(&call.input, "command").filter(|_| call.tool == "Bash").unwrap_or_default();
    let words = command.split(|symbol: char| symbol.is_whitespace() || ";&|()`\"'".contains(symbol));
    words.filter_map(|word| word.rsplit('/').next()).any(|word| WRITERS.contains(&word))
}
