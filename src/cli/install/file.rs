//! A file of another program that is about to change: read through links, kept as a backup, written beside and renamed.
//!
//! Promise: at every moment the file is the old one or the new one, its mode stays, a link stays a link, and what somebody
//! else wrote meanwhile is not lost.

use super::super::shell::Stop;
use super::super::words::quoted;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Links that are followed, as the kernel does it.
const LINKS_MAX: usize = 40;

/// A file as it was found.
#[derive(Debug)]
pub(super) struct Found {
    /// As it is named.
    pub(super) path: PathBuf,
    /// Where it is, behind every link.
    real: PathBuf,
    /// `None` when it is not there.
    pub(super) text: Option<String>,
    /// What it was before anything of ours was in it.
    pub(super) backup: Option<String>,
}

impl Found {
    pub(super) fn read(path: PathBuf) -> Result<Self, Stop> {
        let real = followed(&path).map_err(|error| cannot("follow", &path, &error))?;
        // A link to /dev/null is how somebody says that there are no settings: a device is not to be replaced.
        if fs::metadata(&real).is_ok_and(|found| !found.is_file()) {
            return Err(Stop::failed(format!("{} is no file; nothing was written", path.display()))
                .remedy(format!("see what it is: ls -lL {}", quoted(&path))));
        }
        let text = text(&real)?;
        let backup = text_or_none(&backup_of(&path));
        Ok(Self { path, real, text, backup })
    }

    /// Puts this text there; `None` takes the file away. With `keep` the text that was there becomes the backup.
    pub(super) fn write(&self, new: Option<&str>, keep: bool) -> Result<(), Stop> {
        if keep {
            self.keep().map_err(|error| cannot("write", &backup_of(&self.path), &error))?;
        }
        self.still()?;
        let written = match new {
            Some(new) => {
                let aside = aside(&self.real, new, fs::metadata(&self.real).ok().as_ref())
                    .map_err(|error| cannot("write", &self.path, &error))?;
                // Writing it to the disk took its time.
                self.still().inspect_err(|_| drop(fs::remove_file(&aside)))?;
                put(&aside, &self.real)
            }
            None => fs::remove_file(&self.real),
        };
        written.map_err(|error| cannot("write", &self.path, &error))?;
        if self.backup.is_some() && !keep && self.backup.as_deref() == new {
            // It has come back to what it was.
            let _ = fs::remove_file(backup_of(&self.path));
        }
        Ok(())
    }

    /// Whether it is what was read.
    fn still(&self) -> Result<(), Stop> {
        if text(&self.real)? == self.text {
            return Ok(());
        }
        Err(Stop::failed(format!("{} changed just now; nothing was written", self.path.display()))
            .remedy("run it again"))
    }

    /// What is left of an earlier time gives way to what was there just now.
    fn keep(&self) -> io::Result<()> {
        let backup = backup_of(&self.path);
        match &self.text {
            Some(text) => put(&aside(&backup, text, fs::metadata(&self.real).ok().as_ref())?, &backup),
            None if self.backup.is_some() => fs::rename(&backup, backup.with_extension("staled-backup-old")),
            None => Ok(()),
        }
    }
}

/// Where the backup of a file is.
pub(super) fn backup_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".staled-backup");
    name.into()
}

/// Where a path leads, whether or not there is anything.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut real = path.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::read_link(&real) {
            Ok(to) => real = real.parent().unwrap_or(Path::new("/")).join(to),
            // Not a link, or nothing yet.
            Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::NotFound) => {
                return Ok(real);
            }
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("too many links"))
}

fn text(path: &Path) -> Result<Option<String>, Stop> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(cannot("read", path, &error)),
    }
}

fn text_or_none(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// Beside its place, with the mode and the owner of what is there; [`put`] renames it.
fn aside(path: &Path, text: &str, like: Option<&fs::Metadata>) -> io::Result<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let aside = PathBuf::from(name);
    let mut new = File::create_new(&aside)?;
    let mut written = || {
        if let Some(like) = like {
            new.set_permissions(Permissions::from_mode(like.mode() & 0o7777))?;
            let own = new.metadata()?;
            if (own.uid(), own.gid()) != (like.uid(), like.gid()) {
                std::os::unix::fs::fchown(&new, Some(like.uid()), Some(like.gid()))?;
            }
        }
        new.write_all(text.as_bytes())?;
        new.sync_all()
    };
    match written() {
        Ok(()) => Ok(aside),
        Err(error) => {
            let _ = fs::remove_file(&aside);
            Err(error)
        }
    }
}

fn put(aside: &Path, path: &Path) -> io::Result<()> {
    fs::rename(aside, path).inspect_err(|_| drop(fs::remove_file(aside)))
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> Stop {
    let stop = Stop::failed(format!("cannot {what} {}: {error}", path.display()));
    match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            stop.remedy(format!("whoever owns it may: ls -l {}", quoted(path)))
        }
        ErrorKind::InvalidData => stop.remedy("it must be UTF-8"),
        _ => stop,
    }
}
