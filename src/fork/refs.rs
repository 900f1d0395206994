//! What the refs of a fork's repository name, read without git, which would read its configuration first.
//!
//! Promise: nothing that is named is passed over. What cannot be read as git wrote it in the beginning, files of ids and
//! names, is refused as a whole: another store, a name or an id that is none, a link. So it counts as work.

use super::ForkError;
use crate::world::probe::git::is_ref_name;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Names read on the way to an id; git's own limit.
const CHAIN_LEN_MAX: usize = 5;
/// How often a repository is read whose HEAD does not hold still.
const TRIES: usize = 8;
const BYTES_MAX: u64 = 256 << 20;
/// Names what linked work trees have of their own, where no other ref is.
const LINKED: &str = "refs/staled.linked";

/// What is named, and by what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Refs {
    /// The commit that HEAD is; none where its branch has none yet.
    pub(super) tip: Option<String>,
    /// Ids by name, with what linked work trees name.
    pub(super) ids: BTreeMap<Vec<u8>, String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Id(String),
    Symbolic(Vec<u8>),
}

type Values = BTreeMap<Vec<u8>, Value>;

impl Refs {
    /// Reads them all. Whoever works there may go on meanwhile.
    pub(super) fn read(gitdir: &Path) -> Result<Self, ForkError> {
        if gitdir.join("reftable").symlink_metadata().is_ok() {
            return Err(untold(gitdir, "keeps its refs in another way than it began with"));
        }
        let path = gitdir.join("HEAD");
        let head = || loose_value(&path)?.ok_or_else(|| untold(&path, "is not there"));
        for _ in 0..TRIES {
            let before = head()?;
            let refs = Self::from(&before, &values(gitdir)?);
            // Its branch may have been left and deleted while the others were read.
            if before == head()? {
                return Ok(refs);
            }
        }
        Err(untold(&path, "does not hold still"))
    }

    fn from(head: &Value, values: &Values) -> Self {
        // What leads to nothing is a name that has no commit yet.
        let ids = values.iter().filter_map(|(name, value)| Some((name.clone(), resolve(value, values)?)));
        Self { tip: resolve(head, values), ids: ids.collect() }
    }

    /// What a name is; none when there is no such ref.
    pub(super) fn id(&self, name: &str) -> Option<&String> {
        self.ids.get(name.as_bytes())
    }

    /// Whether a ref of this name would stand in the way of another, or another in its.
    pub(super) fn is_in_the_way(&self, name: &str) -> bool {
        let below =
            |above: &[u8], name: &[u8]| name.strip_prefix(above).is_some_and(|rest| rest.starts_with(b"/"));
        self.ids.keys().any(|other| below(other, name.as_bytes()) || below(name.as_bytes(), other))
    }

    /// As git keeps many refs in one file.
    pub(super) fn packed(&self) -> Vec<u8> {
        let mut bytes = b"# pack-refs with: sorted \n".to_vec();
        for (name, id) in &self.ids {
            bytes.extend_from_slice(id.as_bytes());
            bytes.push(b' ');
            bytes.extend_from_slice(name);
            bytes.push(b'\n');
        }
        bytes
    }
}

fn resolve(value: &Value, values: &Values) -> Option<String> {
    let mut value = value;
    for _ in 0..CHAIN_LEN_MAX {
        match value {
            Value::Id(id) => return Some(id.clone()),
            Value::Symbolic(name) => value = values.get(name)?,
        }
    }
    None
}

/// Git packs in this order: what is packed is in place, then the loose file goes. So loose is read before packed.
fn values(gitdir: &Path) -> Result<Values, ForkError> {
    let mut values = Values::new();
    loose(&gitdir.join("refs"), b"refs", &mut values)?;
    for linked in linked(gitdir)? {
        let id = linked.file_name().unwrap_or_default().as_bytes();
        let prefix = [LINKED.as_bytes(), b"/", id].concat();
        if let Some(head) = loose_value(&linked.join("HEAD"))? {
            insert(&mut values, &linked, [&prefix[..], b"/HEAD"].concat(), head)?;
        }
        loose(&linked.join("refs"), &prefix, &mut values)?;
    }
    let path = gitdir.join("packed-refs");
    let packed = read(&path)?.unwrap_or_default();
    for line in packed.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        if line[0] == b'#' || line[0] == b'^' {
            continue;
        }
        let at = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
        let (Some(id), Some(name)) = (id(&line[..at]), line.get(at + 1..)) else {
            return Err(untold(&path, "has a line that is not an id and a name"));
        };
        if !values.contains_key(name) {
            insert(&mut values, &path, name.to_vec(), Value::Id(id))?;
        }
    }
    Ok(values)
}

/// The folders of the work trees that are linked to a repository.
pub(super) fn linked(gitdir: &Path) -> Result<Vec<PathBuf>, ForkError> {
    Ok(entries(&gitdir.join("worktrees"))?
        .into_iter()
        .filter(|path| !path.is_symlink() && path.is_dir())
        .collect())
}

fn loose(folder: &Path, prefix: &[u8], values: &mut Values) -> Result<(), ForkError> {
    let mut ahead = vec![(folder.to_owned(), prefix.to_vec())];
    while let Some((folder, prefix)) = ahead.pop() {
        for path in entries(&folder)? {
            let part = path.file_name().unwrap_or_default().as_bytes();
            // Neither is a ref to git.
            if part.starts_with(b".") || part.ends_with(b".lock") {
                continue;
            }
            let name = [&prefix[..], b"/", part].concat();
            match path.symlink_metadata() {
                Ok(found) if found.is_dir() => ahead.push((path, name)),
                // One that is gone was packed, or deleted.
                _ => loose_value(&path)?.map_or(Ok(()), |value| insert(values, &path, name, value))?,
            }
        }
    }
    Ok(())
}

fn insert(values: &mut Values, path: &Path, name: Vec<u8>, value: Value) -> Result<(), ForkError> {
    if !is_ref_name(&name) || !name.starts_with(b"refs/") {
        return Err(untold(path, "has a name that no ref can have"));
    }
    values.insert(name, value);
    Ok(())
}

fn loose_value(path: &Path) -> Result<Option<Value>, ForkError> {
    let Some(bytes) = read(path)? else { return Ok(None) };
    let text = bytes.trim_ascii_end();
    let value = match text.strip_prefix(b"ref:") {
        Some(name) => {
            let name = name.trim_ascii();
            is_ref_name(name).then(|| Value::Symbolic(name.to_vec()))
        }
        None => id(text).map(Value::Id),
    };
    value.map(Some).ok_or_else(|| untold(path, "holds neither an id nor the name of a ref"))
}

fn id(digits: &[u8]) -> Option<String> {
    let written = matches!(digits.len(), 40 | 64) && digits.iter().all(u8::is_ascii_hexdigit);
    written.then(|| String::from_utf8_lossy(digits).to_ascii_lowercase())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, ForkError> {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => {
            let entries = entries.and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
            entries.map_err(|error| untold(folder, &error.to_string()))
        }
    }
}

/// What is in a file of the fork's; none where there is none. A link is not followed, and a pipe not waited for.
fn read(path: &Path) -> Result<Option<Vec<u8>>, ForkError> {
    let mut bytes = Vec::new();
    match open(path).and_then(|file| file.take(BYTES_MAX).read_to_end(&mut bytes)) {
        Ok(read) if read as u64 == BYTES_MAX => Err(untold(path, "is too long")),
        Ok(_) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(untold(path, &error.to_string())),
    }
}

/// Opens a file of the fork's repository that is one.
pub(super) fn open(path: &Path) -> io::Result<File> {
    use rustix::fs::OFlags;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = File::from(rustix::fs::open(path, flags, rustix::fs::Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("is no file")) }
}

/// It cannot be told what the repository names.
fn untold(path: &Path, why: &str) -> ForkError {
    let why = format!(
        "what the fork's repository names cannot be told, for {} {why}; mend that, or discard the fork with force: then all \
         of it is kept",
        path.display()
    );
    ForkError::refused("fork_untold", why)
}
