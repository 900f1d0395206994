//! Inward: from what travels to what is meant, checked once and for all. Outward: the same for the journal.
//!
//! Private text is redacted here, before anything can be hashed, stored or logged. Blank text is refused here where a
//! report would have to repeat it: the gate takes none, and a session whose reports never pass is of no use.

mod source;

use super::context as wire;
use super::gate::is_blank;
use super::path::{WirePath, decode_base64};
use super::refusal::Refusal;
use super::time;
use crate::session::SessionId;
use crate::session::context::{Belief, Fact, Goal, Seen, Update};
use crate::session::digest::{Algorithm, CommitId, Digest};
use crate::session::line_ends::{lines_seen, normalised};
use crate::session::moment::Moment;
use crate::session::privacy::strip;
use crate::session::source::Source;
use std::collections::HashSet;
use std::path::PathBuf;

/// Longest text field, in bytes.
pub const TEXT_BYTES_MAX: usize = 2 * 1024;
/// Longest list of facts, decisions, questions or hypotheses.
pub const LIST_LEN_MAX: usize = 1_000;

type Checked<T> = Result<T, Refusal>;

/// The update that a context tells. `hash` digests content that the client sent in place of a digest.
pub fn update(context: wire::Context, hash: impl Fn(&[u8]) -> Digest, session: SessionId) -> Checked<Update> {
    let root = context.root.map(public_path).transpose()?;
    if root.as_ref().is_some_and(|root| !root.is_absolute()) {
        return Err(Refusal::invalid_params("root must be an absolute path"));
    }
    let beliefs = |told: Vec<wire::Belief>, result: bool| -> Checked<Vec<Belief>> {
        let told: Vec<Belief> =
            told.into_iter().map(|told| belief(told, result, &hash)).collect::<Checked<_>>()?;
        let mut ids = HashSet::new();
        match told.iter().find(|belief| !ids.insert(belief.id.as_str())) {
            Some(twice) => Err(Refusal::invalid_params(format!("the id {:?} stands twice", twice.id))),
            None => Ok(told),
        }
    };
    Ok(Update {
        session,
        replace: context.replace,
        remove: context.remove.iter().map(|id| strip(id)).collect(),
        user: context.user.map(|user| text("user", &user)).transpose()?,
        agent: context.agent.map(|agent| text("agent", &agent)).transpose()?,
        root,
        captured_at: moment(context.captured_at)?,
        goal: context.goal.map(goal).transpose()?,
        results: beliefs(context.results, true)?,
        invariants: beliefs(context.invariants, false)?,
        facts: facts(context.facts)?,
        decisions: sentences("decisions", &context.decisions)?,
        open_questions: sentences("open_questions", &context.open_questions)?,
        scratchpad_bytes: context.scratchpad_bytes,
    })
}

/// A session's name.
pub fn session(name: &str) -> Checked<SessionId> {
    let refused = || Refusal::invalid_params("session must be 1 to 200 bytes without control characters");
    SessionId::new(&strip(name)).ok_or_else(refused)
}

/// A digest as `touch_ack` tells it.
pub fn digest(told: &str) -> Checked<Digest> {
    told.parse().map_err(Refusal::invalid_params)
}

/// Hypotheses as `fork.create` tells them: none of them blank.
pub fn hypotheses(told: &[String]) -> Checked<Vec<String>> {
    let told = sentences("hypotheses", told)?;
    told.into_iter().map(|hypothesis| not_blank("a hypothesis", hypothesis)).collect()
}

/// A goal that replaces the session's for one decision, or in a context.
pub fn goal(told: wire::Goal) -> Checked<Goal> {
    let invalid = |why: Refusal| Refusal::application("goal_invalid", why);
    Ok(Goal {
        statement: text("goal.statement", &told.statement).map_err(invalid)?,
        branchable: told.branchable,
        shares_mutable_state: told.shares_mutable_state,
        hypotheses: sentences("goal.hypotheses", &told.hypotheses).map_err(invalid)?,
    })
}

fn belief(told: wire::Belief, result: bool, hash: &impl Fn(&[u8]) -> Digest) -> Checked<Belief> {
    let id = match (result, told.id, told.name) {
        (true, Some(id), None) | (false, None, Some(id)) => text("id", &id)?,
        (true, ..) => return Err(Refusal::invalid_params("a result has an id and no name")),
        (false, ..) => return Err(Refusal::invalid_params("an invariant has a name and no id")),
    };
    let id = not_blank("an id or name", id)?;
    let source = self::source(told.source, &id)?;
    let refused = |why: String| Refusal::invalid_params(format!("{id}: {why}"));
    let content = told.content.map(|content| bytes(content, told.encoding.as_deref()));
    let content = content.transpose().map_err(refused)?;
    let lf = lf(&source, told.lf_digest, content.as_deref(), hash).map_err(refused)?;
    let seen = seen(&source, told.digest, content, hash).map_err(refused)?;
    Ok(Belief {
        critical: told.critical.unwrap_or_else(|| source.critical_by_default()),
        tool: told.tool.map(|tool| text("tool", &tool)).transpose()?,
        captured_at: moment(told.captured_at)?,
        id,
        source,
        seen,
        lf,
    })
}

fn seen(
    source: &Source,
    digest: Option<String>,
    content: Option<Vec<u8>>,
    hash: &impl Fn(&[u8]) -> Digest,
) -> Result<Seen, String> {
    let of_bytes = is_of_bytes(source);
    let of_digest =
        matches!(source, Source::Lines { .. } | Source::Tree { .. } | Source::SqliteSchema { .. });
    match (source, digest, content) {
        (Source::GitHead { .. }, Some(told), None) if told == "unborn" => Ok(Seen::Commit(None)),
        (Source::GitHead { .. }, Some(told), None) => {
            let commit = CommitId::parse(&told);
            let commit = commit
                .ok_or_else(|| format!("{told:?} is not a commit id of 40 or 64 hexadecimal digits"))?;
            Ok(Seen::Commit(Some(commit)))
        }
        (_, Some(told), None) if of_bytes => {
            Ok(Seen::Digest(told.parse::<Digest>().map_err(|error| error.to_string())?))
        }
        (_, Some(told), None) if of_digest => Ok(Seen::Digest(blake3_of(source, &told)?)),
        (_, None, Some(content)) if of_bytes => Ok(Seen::Digest(hash(&content))),
        (Source::Lines { range, .. }, None, Some(content)) => {
            let seen = lines_seen(&content, *range);
            let seen =
                seen.ok_or_else(|| format!("content has more lines than the {} of its range", range.lines))?;
            Ok(Seen::Digest(hash(&seen)))
        }
        (_, None, None) => Ok(Seen::Unsaid),
        (_, Some(_), Some(_)) => Err("give a digest or content, not both".to_owned()),
        _ => Err(format!("a {} source has neither digest nor content", source.kind())),
    }
}

/// A source as the journal tells it, of the row that goes by this id.
pub fn source(told: wire::Source, id: &str) -> Checked<Source> {
    source::inward(told).map_err(|why| Refusal::invalid_params(format!("{id}: {why}")))
}

/// A source as it travels.
#[must_use]
pub fn source_out(source: &Source) -> wire::Source {
    source::outward(source)
}

fn is_of_bytes(source: &Source) -> bool {
    matches!(source, Source::File { .. } | Source::Lockfile { .. })
}

/// The digest of the same bytes with every CR LF read as LF, told or computed. Nobody else could tell later that only
/// line ends differ.
fn lf(
    source: &Source,
    told: Option<String>,
    content: Option<&[u8]>,
    hash: &impl Fn(&[u8]) -> Digest,
) -> Result<Option<Digest>, String> {
    match (told, content.filter(|_| is_of_bytes(source))) {
        (None, content) => Ok(content.map(|content| hash(&normalised(content)))),
        (Some(_), Some(_)) => Err("give lf_digest beside a digest, not beside content".to_owned()),
        (Some(told), None) if is_of_bytes(source) => blake3_of(source, &told).map(Some),
        (Some(_), None) => Err(format!("a {} source has no lf_digest", source.kind())),
    }
}

fn blake3_of(source: &Source, told: &str) -> Result<Digest, String> {
    let digest = told.parse::<Digest>().map_err(|error| error.to_string())?;
    match digest.algorithm() {
        Algorithm::Blake3 => Ok(digest),
        _ => Err(format!("the digest of a {} is blake3", source.kind())),
    }
}

fn bytes(content: String, encoding: Option<&str>) -> Result<Vec<u8>, String> {
    match encoding {
        None | Some("utf-8") => Ok(content.into_bytes()),
        Some("base64") => decode_base64(&content).map_err(|error| format!("content is not base64: {error}")),
        Some(other) => Err(format!("unknown encoding {other:?}; known are utf-8 and base64")),
    }
}

fn facts(told: Vec<wire::Fact>) -> Checked<Vec<Fact>> {
    bounded("facts", told.len())?;
    told.into_iter().map(fact).collect()
}

fn fact(told: wire::Fact) -> Checked<Fact> {
    let statement = not_blank("statement", text("statement", &told.statement)?)?;
    if told.sources.is_empty() {
        let why = format!("the fact {statement:?} names no source; name a result, an invariant or a path");
        return Err(Refusal::application("fact_without_source", why));
    }
    bounded("sources", told.sources.len())?;
    Ok(Fact {
        // A fact without an id is itself: told again, it replaces itself.
        id: told.id.map_or_else(|| Ok(statement.clone()), |id| text("id", &id))?,
        evidence: text("evidence", &told.evidence)?,
        sources: told.sources.into_iter().map(reference).collect::<Checked<_>>()?,
        statement,
    })
}

fn sentences(field: &str, told: &[String]) -> Checked<Vec<String>> {
    bounded(field, told.len())?;
    told.iter().map(|told| not_blank(field, text(field, told)?)).collect()
}

fn text(field: &str, told: &str) -> Checked<String> {
    // The mark of a redaction may be longer than what it replaces. What is kept has to fit too, or the journal would
    // hold what its own replay refuses.
    let kept = strip(told);
    let len = told.len().max(kept.len());
    if len > TEXT_BYTES_MAX {
        let why = format!("{field} has {len} bytes; the most is {TEXT_BYTES_MAX}");
        return Err(Refusal::application("too_large", why));
    }
    Ok(kept)
}

/// An id, a name or a path by which a client refers to something it told: stripped as ids are, so that it still fits.
pub fn reference(told: WirePath) -> Checked<PathBuf> {
    match told.0.to_str() {
        Some(text) => not_blank("a source", strip(text)).map(PathBuf::from),
        None => public(told.0),
    }
}

fn public_path(told: WirePath) -> Checked<PathBuf> {
    if told.0.to_str().is_some_and(is_blank) {
        return Err(Refusal::invalid_params("a path must not be blank"));
    }
    public(told.0)
}

/// A path names a file and cannot be redacted, so private text has no place in it, in no spelling.
fn public(path: PathBuf) -> Checked<PathBuf> {
    let text = path.to_string_lossy();
    if strip(&text) != text {
        let why = "a path cannot hold private text: it would have to be kept as it is";
        return Err(Refusal::invalid_params(why));
    }
    Ok(path)
}

/// Whatever a report will have to say by itself says something; the gate would refuse the report otherwise.
fn not_blank(field: &str, kept: String) -> Checked<String> {
    if is_blank(&kept) {
        return Err(Refusal::invalid_params(format!("{field} must not be blank")));
    }
    Ok(kept)
}

/// Refuses a list that is too long.
pub fn bounded(field: &str, len: usize) -> Checked<()> {
    if len > LIST_LEN_MAX {
        let why = format!("{field} has {len} entries; the most is {LIST_LEN_MAX}");
        return Err(Refusal::application("too_large", why));
    }
    Ok(())
}

fn moment(told: Option<String>) -> Checked<Option<Moment>> {
    told.map(|told| time::from_text(&told).map_err(Refusal::invalid_params)).transpose()
}

/// The context that says what an update says, with every content replaced by its digest.
#[must_use]
pub fn context(update: &Update) -> wire::Context {
    wire::Context {
        session: Some(update.session.to_string()),
        user: update.user.clone(),
        agent: update.agent.clone(),
        root: update.root.clone().map(WirePath),
        captured_at: update.captured_at.map(time::to_text),
        goal: update.goal.as_ref().map(goal_out),
        results: update.results.iter().map(|belief| belief_out(belief, true)).collect(),
        invariants: update.invariants.iter().map(|belief| belief_out(belief, false)).collect(),
        facts: update.facts.iter().map(fact_out).collect(),
        decisions: update.decisions.clone(),
        open_questions: update.open_questions.clone(),
        scratchpad_bytes: update.scratchpad_bytes,
        replace: update.replace,
        remove: update.remove.clone(),
    }
}

/// A goal as it travels.
#[must_use]
pub fn goal_out(goal: &Goal) -> wire::Goal {
    wire::Goal {
        statement: goal.statement.clone(),
        branchable: goal.branchable,
        shares_mutable_state: goal.shares_mutable_state,
        hypotheses: goal.hypotheses.clone(),
    }
}

fn fact_out(fact: &Fact) -> wire::Fact {
    wire::Fact {
        id: Some(fact.id.clone()),
        statement: fact.statement.clone(),
        evidence: fact.evidence.clone(),
        sources: fact.sources.iter().cloned().map(WirePath).collect(),
    }
}

fn belief_out(belief: &Belief, result: bool) -> wire::Belief {
    wire::Belief {
        id: result.then(|| belief.id.clone()),
        name: (!result).then(|| belief.id.clone()),
        tool: belief.tool.clone(),
        critical: Some(belief.critical),
        captured_at: belief.captured_at.map(time::to_text),
        source: source::outward(&belief.source),
        digest: crate::index::view::seen_text(&belief.seen),
        content: None,
        lf_digest: belief.lf.map(|digest| digest.to_string()),
        encoding: None,
        stat: None,
        baseline: None,
    }
}

/// What an adopted baseline says, told again from the journal.
pub fn seen_back(text: &str) -> Option<Seen> {
    if text == "unborn" {
        return Some(Seen::Commit(None));
    }
    text.parse()
        .map(Seen::Digest)
        .ok()
        .or_else(|| CommitId::parse(text).map(|commit| Seen::Commit(Some(commit))))
}
