//! `mem save`, `mem summary` and `mem forget`: what changes what is remembered.

use super::rows;
use crate::cli::shell::{Done, Shell, Stop};
use crate::cli::words::{number, quoted, text};
use crate::protocol::context::Source;
use crate::protocol::memory::{Forget, Ground, Save, Summary};
use crate::protocol::path::WirePath;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Remember something, and the files that it rests on
#[derive(Debug, clap::Args)]
#[command(after_help = "\
What rests on files is labelled stale from the moment one of them changes, and fresh again when its bytes are back.
What they are is read anew only by a save that names sources: one without them leaves the evidence as it was. A save under
a topic key takes the place of the one before; the same text twice is remembered once. What stands between <private> and
</private> is never kept.

Example:
  staled mem save --type decision --title 'Where expiry lives' --source src/token.rs 'In Token::is_valid'
  git log -1 --format=%B | staled mem save --type discovery --title 'Why the cache went' --topic-key cache")]
pub(super) struct SaveArgs {
    /// Its type, one of `memory.observation_types`
    #[arg(long = "type", value_name = "TYPE")]
    kind: String,
    /// Its title, cut at 80 bytes
    #[arg(long)]
    title: String,
    /// The topic of which it is the latest word
    #[arg(long, value_name = "KEY")]
    topic_key: Option<String>,
    /// A file that it rests on, or a folder with all that is in it; may be given several times
    #[arg(long = "source", value_name = "PATH")]
    sources: Vec<PathBuf>,
    /// Let it rest on nothing any more
    #[arg(long, conflicts_with = "sources")]
    no_sources: bool,
    /// Only if this is its revision now; 0 where there must be none
    #[arg(long, value_name = "N")]
    if_revision: Option<u32>,
    /// What is to be remembered; `-` reads standard input
    #[arg(default_value = "-")]
    content: String,
}

/// Remember what was done in the session so far; it goes on
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  staled mem summary 'Expiry is fixed; the clock skew is still open.'")]
pub(super) struct SummaryArgs {
    /// What was done; `-` reads standard input
    text: String,
}

/// Forget an observation, with everything that it was before
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Its bytes leave the disk with a compaction of the journal, which this begins; what it rested on leaves the index when the
daemon starts again. A decision that carried it on named its number in the decision log, and nothing of what it says.

Example:
  staled mem forget 12")]
pub(super) struct ForgetArgs {
    /// Its number
    id: i64,
}

pub(super) fn save(args: SaveArgs, user_id: String, shell: &mut Shell) -> Done {
    let SaveArgs { kind, title, topic_key, sources, no_sources, if_revision, content } = args;
    let told = no_sources || !sources.is_empty();
    let sources = sources.iter().map(|path| ground(path)).collect::<Result<Vec<_>, _>>()?;
    let sources = told.then_some(sources);
    let content = super::text(&content)?;
    let ask = Save { user_id, content, kind, title, topic_key, sources, if_revision };
    let answer = shell.ask("mem_save", &ask)?;
    if !answer.printed {
        print(&answer.value, shell)?;
    }
    Ok(0)
}

/// The daemon is somewhere else, and a memory has no root. Who names a folder means what is in it.
fn ground(path: &Path) -> Result<Ground, Stop> {
    let absolute = std::path::absolute(path)
        .map_err(|error| Stop::failed(format!("the source {} is no path: {error}", quoted(path))))?;
    if !absolute.is_dir() {
        return Ok(Ground::Path(WirePath(absolute)));
    }
    let path = Some(WirePath(absolute));
    Ok(Ground::Source(Box::new(Source { kind: "tree".to_owned(), path, ..Source::default() })))
}

pub(super) fn summary(args: &SummaryArgs, user_id: String, shell: &mut Shell) -> Done {
    let ask = Summary { user_id, summary: super::text(&args.text)? };
    let answer = shell.ask("mem_session_summary", &ask)?;
    if !answer.printed {
        print(&answer.value, shell)?;
    }
    Ok(0)
}

fn print(saved: &Value, shell: &mut Shell) -> Result<(), Stop> {
    let paint = shell.out.paint;
    let (id, outcome) = (number(saved, "id"), text(saved, "outcome"));
    let evidence = text(saved, "evidence");
    let evidence = if evidence.is_empty() {
        String::new()
    } else {
        format!("  {}", paint.of(rows::tone(saved), &evidence))
    };
    shell.out.line(format!(
        "observation {id}  {outcome}  revision {}{evidence}",
        number(saved, "revision_count")
    ))?;
    shell.out.lines(rows::changed(saved, 2, paint))?;
    shell.out.flush()?;
    if saved["session_opened"] == "implicit" {
        shell.out.talk("note: no session was active, so one began; `staled mem end` ends it");
    }
    Ok(())
}

pub(super) fn forget(args: &ForgetArgs, user_id: String, shell: &mut Shell) -> Done {
    let answer = shell.ask("mem_forget", &Forget { user_id, id: args.id })?;
    if !answer.printed {
        shell.out.line(format!("observation {} is forgotten", args.id))?;
    }
    Ok(0)
}
