//! Looking at files while keeping the list of everything that was looked at.
//!
//! A probe touches the filesystem only through a [`Look`]; therefore the list is complete by construction: a path that
//! was not looked at cannot have decided the answer. Absence is an answer too, and is listed like any other.
//! Nothing here blocks on a pipe, opens a device, or reads more than it was told to.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A path that could not be read, and why: the answer that rests on it is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) path: PathBuf,
    pub(super) error: String,
}

impl Fault {
    pub(super) fn new(path: &Path, error: impl Display) -> Self {
        Self { path: path.to_owned(), error: error.to_string() }
    }
}

/// Everything looked at so far.
#[derive(Debug, Default)]
pub(super) struct Look {
    seen: BTreeSet<PathBuf>,
}

impl Look {
    /// Every path looked at, sorted, each once.
    pub(super) fn into_files(self) -> Vec<PathBuf> {
        self.seen.into_iter().collect()
    }

    /// Lists a path that decides the answer although nothing is read from it here.
    pub(super) fn note(&mut self, path: &Path) {
        if !self.seen.contains(path) {
            self.seen.insert(path.to_owned());
        }
    }

    /// What the path leads to, symlinks followed; `None` when nothing is there.
    pub(super) fn stat(&mut self, path: &Path) -> Result<Option<Metadata>, Fault> {
        self.note(path);
        unless_absent(fs::metadata(path)).map_err(|error| Fault::new(path, error))
    }

    /// What has this very name, symlinks not followed; `None` when nothing has.
    pub(super) fn lstat(&mut self, path: &Path) -> Result<Option<Metadata>, Fault> {
        self.note(path);
        unless_absent(fs::symlink_metadata(path)).map_err(|error| Fault::new(path, error))
    }

    /// The target of a symlink; `None` when it is gone.
    pub(super) fn link(&mut self, path: &Path) -> Result<Option<PathBuf>, Fault> {
        self.note(path);
        unless_absent(fs::read_link(path)).map_err(|error| Fault::new(path, error))
    }

    /// Whether we may pass through this folder.
    pub(super) fn enterable(&mut self, path: &Path) -> bool {
        self.note(path);
        rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    }

    /// Opens a regular file of at most `bytes_max` bytes; `None` when nothing is there.
    pub(super) fn open(&mut self, path: &Path, bytes_max: u64) -> Result<Option<File>, Fault> {
        self.note(path);
        let fault = |error| Fault::new(path, error);
        let Some(file) = unless_absent(open_regular(path)).map_err(fault)? else { return Ok(None) };
        let len = file.metadata().map_err(fault)?.len();
        if len > bytes_max {
            return Err(Fault::new(
                path,
                format_args!("{len} bytes, more than the {bytes_max} that are read"),
            ));
        }
        Ok(Some(file))
    }

    /// All bytes of a regular file of at most `bytes_max` bytes; `None` when nothing is there.
    pub(super) fn read(&mut self, path: &Path, bytes_max: u64) -> Result<Option<Vec<u8>>, Fault> {
        let Some(file) = self.open(path, bytes_max)? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.take(bytes_max).read_to_end(&mut bytes).map_err(|error| Fault::new(path, error))?;
        Ok(Some(bytes))
    }

    /// The first bytes of a regular file that we may read; `None` for anything else, as it is not what we seek.
    pub(super) fn peek(&mut self, path: &Path, len: u64) -> Result<Option<Vec<u8>>, Fault> {
        self.note(path);
        let file = match open_regular(path) {
            Ok(file) => file,
            Err(error) if is_not_ours(&error) => return Ok(None),
            Err(error) => return Err(Fault::new(path, error)),
        };
        let mut bytes = Vec::new();
        file.take(len).read_to_end(&mut bytes).map_err(|error| Fault::new(path, error))?;
        Ok(Some(bytes))
    }
}

/// Whether the error only says that the name leads nowhere.
pub(super) fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn is_not_ours(error: &io::Error) -> bool {
    is_absence(error) || matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput)
}

fn unless_absent<T>(outcome: io::Result<T>) -> io::Result<Option<T>> {
    match outcome {
        Err(error) if is_absence(&error) => Ok(None),
        other => other.map(Some),
    }
}

/// The kind is checked twice: before, so that no device is opened; after, as the name may have moved meanwhile, and
/// `O_NONBLOCK` keeps even a pipe that slipped in from holding us.
pub(super) fn open_regular(path: &Path) -> io::Result<File> {
    let regular = |metadata: &Metadata| {
        let refused = || io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
        metadata.is_file().then_some(()).ok_or_else(refused)
    };
    regular(&fs::metadata(path)?)?;
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    regular(&file.metadata()?)?;
    Ok(file)
}
