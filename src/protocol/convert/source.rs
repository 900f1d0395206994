//! What a belief rests on, inward and outward: one shape on the wire for all kinds, one variant a kind inside.
//!
//! A field that does not belong to the kind is refused rather than passed over: whoever sent it believes that it counts.

use super::{LIST_LEN_MAX, not_blank, public_path, text};
use crate::index::tree::sieve;
use crate::protocol::context as wire;
use crate::protocol::path::WirePath;
use crate::session::source::{Filter, HeadPolicy, LineRange, Source};
use std::path::PathBuf;

/// Every kind, with the fields that it may have beside its own.
const KINDS: [(&str, &[&str]); 8] = [
    ("file", &["path", "range"]),
    ("absent", &["path"]),
    ("tree", &["path", "include", "exclude", "contents", "gitignore"]),
    ("command", &["command", "cwd", "inputs"]),
    ("git_head", &["path", "policy"]),
    ("lockfile", &["path"]),
    ("sqlite_schema", &["path"]),
    ("volatile", &["what"]),
];

/// Why a source was refused: the rest of a sentence that begins with the id.
type Checked<T> = Result<T, String>;

/// The source that was told.
pub(super) fn inward(told: wire::Source) -> Checked<Source> {
    refuse_strange_fields(&told)?;
    let kind = told.kind.as_str();
    match kind {
        "volatile" => {
            let what = told.what.ok_or("a volatile source says what it is")?;
            return Ok(Source::Volatile { what: said("what", &what)? });
        }
        "command" => return command(told),
        _ => {}
    }
    let path = told.path.ok_or_else(|| format!("a source of kind {kind:?} names a path"))?;
    let path = public_path(path).map_err(|refusal| refusal.message)?;
    Ok(match kind {
        "file" => match told.range {
            Some(range) => Source::Lines { path, range: lines(range)? },
            None => Source::File { path },
        },
        "absent" => Source::Absent { path },
        "tree" => {
            let (include, exclude) = (globs("include", told.include)?, globs("exclude", told.exclude)?);
            let (contents, gitignore) = (told.contents.unwrap_or(true), told.gitignore.unwrap_or(true));
            Source::Tree { path, filter: Filter { include, exclude, contents, gitignore } }
        }
        "git_head" => Source::GitHead { path, policy: policy(told.policy.as_deref())? },
        "lockfile" => Source::Lockfile { path },
        _ => Source::SqliteSchema { path },
    })
}

fn refuse_strange_fields(told: &wire::Source) -> Checked<()> {
    let Some((_, known)) = KINDS.iter().find(|(kind, _)| *kind == told.kind) else {
        let kinds: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
        return Err(format!("unknown kind of source {:?}; known are {}", told.kind, kinds.join(", ")));
    };
    let given = [
        ("path", told.path.is_some()),
        ("policy", told.policy.is_some()),
        ("what", told.what.is_some()),
        ("range", told.range.is_some()),
        ("include", !told.include.is_empty()),
        ("exclude", !told.exclude.is_empty()),
        ("contents", told.contents.is_some()),
        ("gitignore", told.gitignore.is_some()),
        ("command", told.command.is_some()),
        ("cwd", told.cwd.is_some()),
        ("inputs", told.inputs.is_some()),
    ];
    match given.iter().find(|(field, given)| *given && !known.contains(field)) {
        Some((field, _)) => Err(format!("a source of kind {:?} has no {field}", told.kind)),
        None => Ok(()),
    }
}

fn command(told: wire::Source) -> Checked<Source> {
    let command = told.command.ok_or("a source of kind \"command\" says which command")?;
    let command = said("command", &command)?;
    let cwd = told.cwd.map(|cwd| public_path(cwd).map_err(|refusal| refusal.message)).transpose()?;
    let inputs = match told.inputs {
        None => vec![Source::Tree { path: PathBuf::from("."), filter: Filter::default() }],
        Some(inputs) => inputs.into_iter().map(input).collect::<Checked<Vec<_>>>()?,
    };
    if inputs.is_empty() {
        return Err("a command that reads nothing that can be watched is a volatile source".to_owned());
    }
    if inputs.len() > LIST_LEN_MAX {
        return Err(format!("inputs has {} entries; the most is {LIST_LEN_MAX}", inputs.len()));
    }
    Ok(Source::Command { command, cwd, inputs })
}

fn input(told: wire::Source) -> Checked<Source> {
    match inward(told)? {
        Source::Command { .. } => {
            Err("an input of a command is no command; name what that one reads".to_owned())
        }
        Source::Volatile { .. } => Err("a command with a volatile input is itself volatile".to_owned()),
        source => Ok(source),
    }
}

fn lines(told: wire::LineRange) -> Checked<LineRange> {
    let wire::LineRange { start_line, lines } = told;
    if start_line == 0 || lines == 0 || start_line.checked_add(lines).is_none() {
        return Err(format!("a range begins at line 1 or later and has lines; not {start_line} and {lines}"));
    }
    Ok(LineRange { start_line, lines })
}

fn policy(told: Option<&str>) -> Checked<HeadPolicy> {
    match told {
        None | Some("strict") => Ok(HeadPolicy::Strict),
        Some("relevant") => Ok(HeadPolicy::Relevant),
        Some(policy) => Err(format!("git_head has no policy {policy:?}; it has strict and relevant")),
    }
}

fn globs(field: &str, told: Vec<String>) -> Checked<Vec<String>> {
    if told.len() > LIST_LEN_MAX {
        return Err(format!("{field} has {} globs; the most is {LIST_LEN_MAX}", told.len()));
    }
    let globs = told.iter().map(|glob| said(field, glob)).collect::<Checked<Vec<_>>>()?;
    match globs.iter().find_map(|glob| sieve::refuse(glob)) {
        Some(why) => Err(format!("{field}: {why}")),
        None => Ok(globs),
    }
}

fn said(field: &str, told: &str) -> Checked<String> {
    text(field, told).and_then(|told| not_blank(field, told)).map_err(|refusal| refusal.message)
}

/// The source as it travels.
pub(super) fn outward(source: &Source) -> wire::Source {
    let told = wire::Source { kind: source.kind().to_owned(), ..wire::Source::default() };
    let told = wire::Source { path: source.path().map(PathBuf::from).map(WirePath), ..told };
    match source {
        Source::Lines { range, .. } => {
            let LineRange { start_line, lines } = *range;
            wire::Source { range: Some(wire::LineRange { start_line, lines }), ..told }
        }
        Source::Tree { filter, .. } => wire::Source {
            include: filter.include.clone(),
            exclude: filter.exclude.clone(),
            contents: Some(filter.contents),
            gitignore: Some(filter.gitignore),
            ..told
        },
        Source::Command { command, cwd, inputs } => wire::Source {
            command: Some(command.clone()),
            cwd: cwd.clone().map(WirePath),
            inputs: Some(inputs.iter().map(outward).collect()),
            ..told
        },
        Source::GitHead { policy, .. } => {
            let policy = match policy {
                HeadPolicy::Strict => "strict",
                HeadPolicy::Relevant => "relevant",
            };
            wire::Source { policy: Some(policy.to_owned()), ..told }
        }
        Source::Volatile { what } => wire::Source { what: Some(what.clone()), ..told },
        _ => told,
    }
}
