//! The files of one log: the one that is written to, and those that were rotated away, oldest first.
//!
//! Promise: they are listed as they stood at one moment, whoever rotates meanwhile. The current file is opened first; if
//! it is rotated before the others are listed, its new name is known by its inode and not listed a second time. They are
//! ordered by the chain's own numbers, not by their names: a clock may go backwards, and logrotate has names of its own.

use super::read::next_line;
use super::{Receipt, backward, line};
use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file of the log that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the decision log {} cannot be read: {source}", path.display())]
pub struct Unreadable {
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

impl Unreadable {
    pub(super) fn at(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        |source| Self { path: path.to_owned(), source }
    }
}

/// For who names the log himself. What the system said keeps its number, by which it is known whether it passes.
impl From<Unreadable> for io::Error {
    fn from(unreadable: Unreadable) -> Self {
        unreadable.source
    }
}

/// One file of a log.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) path: PathBuf,
    /// The number of its first line that can be taken apart; of the last one known where it has none.
    pub(super) first: u64,
    opened: Option<File>,
}

impl Part {
    pub(super) fn at(path: &Path) -> Result<Self, Unreadable> {
        let file = File::open(path).map_err(Unreadable::at(path))?;
        let first = first_seq(&file).map_err(Unreadable::at(path))?.unwrap_or(u64::MAX);
        Ok(Self { path: path.to_owned(), first, opened: Some(file) })
    }

    /// The handle: of the current file the one that was there when the files were listed.
    pub(super) fn file(&self) -> Result<File, Unreadable> {
        let file = match &self.opened {
            Some(file) => file.try_clone(),
            None => File::open(&self.path),
        };
        file.map_err(Unreadable::at(&self.path))
    }
}

/// Every file of the log that is written to at `path`, oldest first. None when there is none.
pub(super) fn all(path: &Path) -> Result<Vec<Part>, Unreadable> {
    let current = match Part::at(path) {
        Ok(part) => Some(part),
        Err(error) if error.source.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let mut parts = rotated(path, current.as_ref().and_then(|part| part.opened.as_ref()))?;
    // A stable sort: files without a number stay behind the others, by their names.
    parts.sort_by_key(|part| part.first);
    parts.extend(current);
    Ok(parts)
}

fn rotated(path: &Path, current: Option<&File>) -> Result<Vec<Part>, Unreadable> {
    let current = current.map(inode).transpose().map_err(Unreadable::at(path))?;
    let mut parts = Vec::new();
    for path in rotated_names(path).map_err(Unreadable::at(path))? {
        let mut part = match Part::at(&path) {
            Ok(part) => part,
            // Old ones are removed while we look.
            Err(error) if error.source.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let file = part.opened.take();
        if file.as_ref().map(inode).transpose().map_err(Unreadable::at(&path))? != current
            || current.is_none()
        {
            parts.push(part);
        }
    }
    Ok(parts)
}

/// The names beside `decisions.jsonl` that rotations give, `decisions-<time>.jsonl`, and that logrotate gives,
/// `decisions.jsonl.1` and `decisions.jsonl-20261129`; sorted.
fn rotated_names(path: &Path) -> io::Result<Vec<PathBuf>> {
    let folder = folder_of(path);
    let (stem, name) = (stem(path), name(path));
    let is_ours = |other: &str| {
        let by_us = other
            .strip_prefix(&stem)
            .is_some_and(|rest| rest.starts_with('-') && rest.strip_suffix(".jsonl").is_some());
        let by_logrotate = other.strip_prefix(&name).is_some_and(|rest| {
            rest.strip_prefix(['.', '-']).is_some_and(|rest| {
                !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
            })
        });
        by_us || by_logrotate
    };
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(is_ours) && entry.file_type()?.is_file() {
            names.push(entry.path());
        }
    }
    names.sort();
    Ok(names)
}

/// Undoes a rotation that was cut short: the new file that never got its name goes, and so does a second name of the
/// file that is still the current one.
pub(super) fn heal(path: &Path) -> io::Result<()> {
    remove(&super::with_suffix(path, ".new"))?;
    let Ok(current) = File::open(path) else { return Ok(()) };
    let current = inode(&current)?;
    for other in rotated_names(path)? {
        if File::open(&other).and_then(|file| inode(&file)).is_ok_and(|other| other == current) {
            remove(&other)?;
        }
    }
    Ok(())
}

/// Removes the oldest rotated files but for `keep` of them. Only those that a rotation of ours named.
pub(super) fn forget_oldest(path: &Path, keep: usize) -> io::Result<Vec<PathBuf>> {
    let current = File::open(path)?;
    let mut parts = rotated(path, Some(&current))?;
    parts.retain(|part| part.path.extension().is_some_and(|extension| extension == "jsonl"));
    parts.sort_by_key(|part| part.first);
    let many = parts.len().saturating_sub(keep);
    let gone: Vec<PathBuf> = parts.drain(..many).map(|part| part.path).collect();
    gone.iter().try_for_each(|path| remove(path))?;
    Ok(gone)
}

/// The last good line of the newest rotated file that has one, and the log's id by that file.
pub(super) fn newest_rotated(path: &Path) -> io::Result<Option<(Receipt, String)>> {
    let mut parts = rotated(path, None)?;
    parts.sort_by_key(|part| part.first);
    for part in parts.iter().rev() {
        let file = part.file()?;
        if let Some(last) = last_good(&file)? {
            return Ok(Some((last, id_of(&file)?)));
        }
    }
    Ok(None)
}

/// The place behind the last line of a file that cannot be gone on with: the last good line's hash, and a number that
/// counts the bad ones behind it too, so that no number is ever given twice. None where no line is good.
pub(super) fn last_good(file: &File) -> io::Result<Option<Receipt>> {
    let mut reader = BufReader::new(rewound(file)?);
    let (mut good, mut bad): (Option<Receipt>, u64) = (None, 0);
    loop {
        match next_line(&mut reader) {
            Ok(Some(text)) => match line::check(&text) {
                Ok(link) => (good, bad) = (Some(link.receipt()), 0),
                Err(_) => bad += 1,
            },
            Ok(None) => break,
            Err(error) if error.kind() == ErrorKind::InvalidData => bad += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(good.map(|last| Receipt { seq: last.seq + bad, ..last }))
}

/// The log's id by one of its files; empty where its first line does not say.
pub(super) fn id_of(file: &File) -> io::Result<String> {
    Ok(first_line(file)?.and_then(|line| line::id(&line)).unwrap_or_default())
}

/// The first line of a file, and where it ends; none in an empty one.
pub(super) fn first_line(file: &File) -> io::Result<Option<Vec<u8>>> {
    match next_line(&mut BufReader::new(rewound(file)?)) {
        Err(error) if error.kind() == ErrorKind::InvalidData => Ok(None),
        line => line,
    }
}

fn first_seq(file: &File) -> io::Result<Option<u64>> {
    let mut reader = BufReader::new(rewound(file)?);
    loop {
        match next_line(&mut reader) {
            Ok(Some(text)) => {
                if let Some(link) = line::parse(&text) {
                    return Ok(Some(link.seq));
                }
            }
            Ok(None) => return Ok(None),
            Err(error) if error.kind() == ErrorKind::InvalidData => {}
            Err(error) => return Err(error),
        }
    }
}

fn rewound(file: &File) -> io::Result<Positioned<'_>> {
    let len = file.metadata()?.len();
    Ok(Positioned::new(file, backward::end_of_whole_lines(file, len)?))
}

/// Reads a shared handle from its start without moving it: the appender's and the reader's are one.
pub(super) struct Positioned<'file> {
    file: &'file File,
    at: u64,
    end: u64,
}

impl<'file> Positioned<'file> {
    pub(super) fn new(file: &'file File, end: u64) -> Self {
        Self { file, at: 0, end }
    }
}

impl io::Read for Positioned<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        use std::os::unix::fs::FileExt;
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(buffer.len());
        let len = self.file.read_at(&mut buffer[..left], self.at)?;
        self.at += len as u64;
        Ok(len)
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn inode(file: &File) -> io::Result<(u64, u64)> {
    file.metadata().map(|found| (found.dev(), found.ino()))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
