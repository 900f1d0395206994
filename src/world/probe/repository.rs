//! Where the repository of a path is, and how it keeps its refs.
//!
//! Promise: the same repository that git would find from there, or the same lack of one; every name that was tried on
//! the way up is listed in the [`Look`], as each of them would have been the repository had it been there.
//! Of the configuration only `extensions.*` and the format version are read, and includes are not followed: git does
//! just so when it decides what a repository is.

use super::look::{self, Fault, Look};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const BYTES_MAX: u64 = 1 << 20;
const SHA1_LEN: usize = 20;
const SHA256_LEN: usize = 32;

/// A repository as one work tree sees it.
#[derive(Debug)]
pub(super) struct Repository {
    /// This work tree's own folder: HEAD is here.
    pub(super) gitdir: PathBuf,
    /// What all work trees share: branches are here. The same folder unless the work tree is a linked one.
    pub(super) commondir: PathBuf,
    /// How it keeps refs.
    pub(super) format: Format,
}

/// Which program of git's keeps the refs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Store {
    Files,
    Reftable,
}

/// How a repository keeps its refs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Format {
    pub(super) store: Store,
    /// Bytes of an object id.
    pub(super) id_len: usize,
}

/// Walks up from `path` to the first folder that is, or whose `.git` leads to, a git dir.
pub(super) fn discover(look: &mut Look, path: &Path) -> Result<Option<Repository>, Fault> {
    let Some(start) = nearest_folder(look, path)? else { return Ok(None) };
    let device = device(&start)?;
    for folder in start.ancestors() {
        if self::device(folder)? != device {
            // Git stops at a mount point too.
            return Ok(None);
        }
        if let Some(repository) = candidate(look, folder)? {
            return Ok(Some(repository));
        }
    }
    Ok(None)
}

/// The deepest folder on the path that exists, symlinks resolved as `git -C` does. What does not exist is listed.
fn nearest_folder(look: &mut Look, path: &Path) -> Result<Option<PathBuf>, Fault> {
    let path = std::path::absolute(path).map_err(|error| Fault::new(path, error))?;
    for place in path.ancestors() {
        look.note(place);
        match fs::canonicalize(place) {
            Ok(folder) if folder.is_dir() => return Ok(Some(folder)),
            Ok(_) => {}
            Err(error) if look::is_absence(&error) => {}
            Err(error) => return Err(Fault::new(place, error)),
        }
    }
    Ok(None)
}

fn device(folder: &Path) -> Result<u64, Fault> {
    fs::metadata(folder).map(|metadata| metadata.dev()).map_err(|error| Fault::new(folder, error))
}

fn candidate(look: &mut Look, folder: &Path) -> Result<Option<Repository>, Fault> {
    let dot_git = folder.join(".git");
    if let Some(metadata) = look.stat(&dot_git)? {
        if metadata.is_file() {
            return named_by(look, folder, &dot_git).map(Some);
        }
        if !metadata.is_dir() {
            return Err(Fault::new(&dot_git, "neither a file nor a folder"));
        }
        if let Some(repository) = at(look, &dot_git)? {
            return Ok(Some(repository));
        }
    }
    at(look, folder)
}

/// Follows `gitdir: …`; a file that says so and leads nowhere is an error, as it is for git.
fn named_by(look: &mut Look, folder: &Path, dot_git: &Path) -> Result<Repository, Fault> {
    let bytes = look.read(dot_git, BYTES_MAX)?.unwrap_or_default();
    let target = bytes.strip_prefix(b"gitdir: ").map(trim_line_end).filter(|target| !target.is_empty());
    let target = target.ok_or_else(|| Fault::new(dot_git, "does not say gitdir: and a path"))?;
    let gitdir = folder.join(OsStr::from_bytes(target));
    match at(look, &gitdir)? {
        Some(repository) => Ok(repository),
        None => Err(Fault::new(dot_git, format_args!("leads to {}, which is no git dir", gitdir.display()))),
    }
}

/// The repository whose git dir this folder is, by git's own test: a plausible HEAD, and `objects` and `refs`.
fn at(look: &mut Look, gitdir: &Path) -> Result<Option<Repository>, Fault> {
    if !has_head(look, &gitdir.join("HEAD"))? {
        return Ok(None);
    }
    let commondir = commondir(look, gitdir)?;
    if !look.enterable(&commondir.join("objects")) || !look.enterable(&commondir.join("refs")) {
        return Ok(None);
    }
    let format = format(look, &commondir.join("config"))?;
    Ok(Some(Repository { gitdir: gitdir.to_owned(), commondir, format }))
}

fn has_head(look: &mut Look, path: &Path) -> Result<bool, Fault> {
    if look.lstat(path)?.is_some_and(|metadata| metadata.is_symlink()) {
        let target = look.link(path)?;
        return Ok(target.is_some_and(|target| target.as_os_str().as_bytes().starts_with(b"refs/")));
    }
    let Some(bytes) = look.peek(path, 255)? else { return Ok(false) };
    if let Some(target) = bytes.strip_prefix(b"ref:") {
        return Ok(target.trim_ascii_start().starts_with(b"refs/"));
    }
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    Ok(digits >= 2 * SHA1_LEN)
}

fn commondir(look: &mut Look, gitdir: &Path) -> Result<PathBuf, Fault> {
    let path = gitdir.join("commondir");
    match look.read(&path, BYTES_MAX)? {
        None => Ok(gitdir.to_owned()),
        Some(bytes) if trim_line_end(&bytes).is_empty() => Err(Fault::new(&path, "is empty")),
        Some(bytes) => Ok(gitdir.join(OsStr::from_bytes(trim_line_end(&bytes)))),
    }
}

fn trim_line_end(bytes: &[u8]) -> &[u8] {
    let kept = bytes.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    &bytes[..kept]
}

fn format(look: &mut Look, config: &Path) -> Result<Format, Fault> {
    let bytes = look.read(config, BYTES_MAX)?.unwrap_or_default();
    let mut format = Format { store: Store::Files, id_len: SHA1_LEN };
    for (section, key, value) in settings(&String::from_utf8_lossy(&bytes)) {
        let unknown = || Fault::new(config, format_args!("{section}.{key} = {value:?} is not known here"));
        match (section.as_str(), key.as_str(), value.as_str()) {
            ("extensions", "refstorage", "files") => format.store = Store::Files,
            ("extensions", "refstorage", "reftable") => format.store = Store::Reftable,
            ("extensions", "objectformat", "sha1") => format.id_len = SHA1_LEN,
            ("extensions", "objectformat", "sha256") => format.id_len = SHA256_LEN,
            ("core", "repositoryformatversion", "0" | "1") => {}
            ("extensions", "refstorage" | "objectformat", _) | ("core", "repositoryformatversion", _) => {
                return Err(unknown());
            }
            _ => {}
        }
    }
    Ok(format)
}

/// The settings of a configuration file, in order, names in lower case; a subsection stays in its section's name.
fn settings(text: &str) -> Vec<(String, String, String)> {
    let mut settings = Vec::new();
    let mut section = String::new();
    let mut continued = false;
    for line in text.lines() {
        let is_tail = continued;
        continued = line.bytes().rev().take_while(|&byte| byte == b'\\').count() % 2 == 1;
        if is_tail {
            continue;
        }
        let mut line = line.trim();
        if let Some((name, rest)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            section = name.trim().to_ascii_lowercase();
            line = rest.trim();
        }
        if !line.is_empty() && !line.starts_with(['#', ';']) {
            let (key, value) = line.split_once('=').unwrap_or((line, ""));
            settings.push((section.clone(), key.trim().to_ascii_lowercase(), plain(value)));
        }
    }
    settings
}

/// A value without its quotes and the comment behind it.
fn plain(value: &str) -> String {
    let mut quoted = false;
    let kept = value.chars().take_while(|&c| {
        quoted ^= c == '"';
        quoted || !matches!(c, '#' | ';')
    });
    let kept: String = kept.filter(|&c| c != '"').collect();
    kept.trim().to_owned()
}
