//! Inward: what is asked of the memory, checked once. Private text is redacted here, before anything is compared, hashed
//! or kept.

use super::{Ground, Save, Seen, cut};
use crate::memory::observation::{SUMMARY, Words};
use crate::memory::step;
use crate::protocol::context::{Belief, Context};
use crate::protocol::convert;
use crate::protocol::gate::is_blank;
use crate::protocol::path::WirePath;
use crate::protocol::refusal::Refusal;
use crate::session::SessionId;
use crate::session::context::Update;
use crate::session::digest::Digest;
use crate::session::privacy::strip;
use crate::session::source::Source;
use std::path::{Path, PathBuf};

/// Longest title, in bytes; a longer one is cut.
pub const TITLE_BYTES_MAX: usize = 80;
/// Longest user id, type and topic key, in bytes.
pub const NAME_BYTES_MAX: usize = 200;
/// A query is cut here.
const QUERY_BYTES_MAX: usize = 16 * 1024;
/// Most sources of one observation; of a command, what it reads.
pub const SOURCES_MAX: usize = 100;
/// Most results of one list.
const LIMIT_MAX: i64 = 100;
const LIMIT: i64 = 10;

type Checked<T> = Result<T, Refusal>;

/// What a deployment allows.
#[derive(Debug, Clone, Copy)]
pub struct Bounds<'bounds> {
    /// The types that may be saved.
    pub types: &'bounds [String],
    /// Longest content and summary, in bytes.
    pub content_bytes_max: usize,
}

/// A user's id.
pub fn user(told: &str) -> Checked<String> {
    let user = name("user_id", told)?;
    // Redacted, two users would be one.
    if user != told {
        return Err(Refusal::invalid_params(
            "user_id cannot hold private text: it would have to be kept as it is",
        ));
    }
    if user.chars().any(char::is_control) {
        return Err(Refusal::invalid_params("user_id must not hold control characters"));
    }
    Ok(user)
}

/// The number of an observation.
pub fn observation(field: &str, told: i64) -> Checked<u64> {
    match u64::try_from(told) {
        Ok(id) if id > 0 => Ok(id),
        _ => Err(Refusal::invalid_params(format!("{field} must be above 0, not {told}"))),
    }
}

/// How many results are wanted.
pub fn limit(told: Option<i64>) -> Checked<usize> {
    match told.unwrap_or(LIMIT) {
        told @ 1..=LIMIT_MAX => Ok(told as usize),
        told => Err(Refusal::invalid_params(format!("limit must be 1 to {LIMIT_MAX}, not {told}"))),
    }
}

/// A query; what stands behind its first 16 KiB is not looked for.
pub fn query(told: &str) -> Checked<String> {
    not_blank("query", cut(strip(told).trim(), QUERY_BYTES_MAX).to_owned())
}

/// An observation to be saved, and what it rests on if that was told.
pub fn save(
    told: Save,
    bounds: Bounds<'_>,
    hash: impl Fn(&[u8]) -> Digest,
) -> Checked<(step::Save, Option<Update>)> {
    let words = Words {
        title: title(&told.title)?,
        content: content("content", &told.content, bounds)?,
        topic_key: told.topic_key.map(|topic_key| name("topic_key", &topic_key)).transpose()?,
    };
    let kind = kind(&told.kind, bounds)?;
    let sources = told.sources.map(|grounds| sources(grounds, hash)).transpose()?;
    let has_sources = sources.as_ref().map(|update| !update.results.is_empty());
    Ok((step::Save { kind, words, if_revision: told.if_revision, has_sources }, sources))
}

/// A session's summary as an observation: its first line is its title.
pub fn summary(told: &str, bounds: Bounds<'_>) -> Checked<step::Save> {
    let summary = content("summary", told, bounds)?;
    // What is not blank has a line that is not, and its beginning may be all the same.
    let first = summary.lines().map(str::trim).find(|line| !is_blank(line)).unwrap_or_default();
    let title = Some(titled(first)).filter(|title| !is_blank(title)).unwrap_or_else(|| SUMMARY.to_owned());
    Ok(step::summary(title, summary))
}

/// The text of a session's summary.
pub fn summary_text(told: &str, bounds: Bounds<'_>) -> Checked<String> {
    content("summary", told, bounds)
}

fn kind(told: &str, bounds: Bounds<'_>) -> Checked<String> {
    let kind = name("type", told)?;
    if kind == SUMMARY {
        let why = "the type \"summary\" is reserved for mem_session_summary; save it there";
        return Err(Refusal::invalid_params(why));
    }
    if !bounds.types.contains(&kind) {
        let types = bounds.types.join(", ");
        return Err(Refusal::invalid_params(format!(
            "type {kind:?} is none of memory.observation_types: {types}"
        )));
    }
    Ok(kind)
}

fn name(field: &str, told: &str) -> Checked<String> {
    let name = not_blank(field, strip(told))?;
    let len = told.len().max(name.len());
    if len > NAME_BYTES_MAX {
        let why = format!("{field} has {len} bytes; the most is {NAME_BYTES_MAX}");
        return Err(Refusal::application("too_large", why));
    }
    Ok(name)
}

fn content(field: &str, told: &str, bounds: Bounds<'_>) -> Checked<String> {
    let kept = not_blank(field, strip(told))?;
    let (len, most) = (told.len().max(kept.len()), bounds.content_bytes_max);
    if len > most {
        let why = format!("{field} has {len} bytes; the most is memory.content_bytes_max, {most}");
        return Err(Refusal::application("too_large", why));
    }
    Ok(kept)
}

/// Cut after stripping only: the end of a tag that is cut off would leave its private text standing.
fn title(told: &str) -> Checked<String> {
    let kept = not_blank("title", strip(told))?;
    not_blank("title", titled(kept.trim()))
}

/// A cut word may read as a tag, and whoever reads the title again must find what was kept.
fn titled(text: &str) -> String {
    cut(&strip(cut(text, TITLE_BYTES_MAX)), TITLE_BYTES_MAX).to_owned()
}

fn not_blank(field: &str, kept: String) -> Checked<String> {
    if is_blank(&kept) {
        return Err(Refusal::invalid_params(format!("{field} must not be blank")));
    }
    Ok(kept)
}

/// The update that registers the sources of an observation. Whose it is is said once the observation has a number.
fn sources(told: Vec<Ground>, hash: impl Fn(&[u8]) -> Digest) -> Checked<Update> {
    // What a command reads is watched like anything else.
    let many: usize = told.iter().map(|ground| 1.max(inputs_len(ground))).sum();
    if many > SOURCES_MAX {
        let why =
            format!("sources has {many} entries, inputs of commands among them; the most is {SOURCES_MAX}");
        return Err(Refusal::application("too_large", why));
    }
    let context = Context {
        root: Some(WirePath(PathBuf::from("/"))),
        results: told.into_iter().enumerate().map(|(at, ground)| belief(at, ground)).collect(),
        replace: true,
        ..Context::default()
    };
    let update = convert::update(context, hash, SessionId::of_observation(0))?;
    update.results.iter().try_for_each(|belief| absolute(&belief.source))?;
    Ok(update)
}

fn inputs_len(ground: &Ground) -> usize {
    let source = match ground {
        Ground::Path(_) => return 0,
        Ground::Source(source) => source,
        Ground::Seen(seen) => &seen.source,
    };
    source.inputs.as_ref().map_or(0, Vec::len)
}

fn belief(at: usize, ground: Ground) -> Belief {
    let (source, digest) = match ground {
        Ground::Path(path) => {
            let file = crate::protocol::context::Source::default();
            (crate::protocol::context::Source { kind: "file".to_owned(), path: Some(path), ..file }, None)
        }
        Ground::Source(source) => (*source, None),
        Ground::Seen(seen) => {
            let Seen { source, digest } = *seen;
            (source, Some(digest))
        }
    };
    Belief {
        id: Some(at.to_string()),
        name: None,
        tool: None,
        // Nothing is decided from it, and an equal stat is enough to trust after a restart.
        critical: Some(false),
        captured_at: None,
        source,
        digest,
        content: None,
        lf_digest: None,
        encoding: None,
        stat: None,
        baseline: None,
    }
}

/// There is no root that a path could be relative to.
fn absolute(source: &Source) -> Checked<()> {
    let refused = |path: &Path| {
        let why = format!("the source {} is not an absolute path: a memory has no root", path.display());
        Err(Refusal::invalid_params(why))
    };
    match source {
        Source::Command { cwd: Some(cwd), .. } if !cwd.is_absolute() => refused(cwd),
        Source::Command { inputs, .. } => inputs.iter().try_for_each(absolute),
        other => match other.path() {
            Some(path) if !path.is_absolute() => refused(path),
            _ => Ok(()),
        },
    }
}
