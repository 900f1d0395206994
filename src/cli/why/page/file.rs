//! A file for its owner alone, whole or not at all.
//!
//! It is written beside its place and renamed, so who reads it meanwhile has the old page, and a link of somebody's is
//! replaced and not followed. What is no file is left alone.

use crate::cli::shell::Stop;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

pub(super) fn write(to: &Path, bytes: &[u8]) -> Result<(), Stop> {
    let cannot = |why: &str| Stop::failed(format!("cannot write {}: {why}", to.display()));
    // /dev/stdout is a link: what it leads to is what is asked about.
    if let Ok(found) = fs::metadata(to)
        && !found.is_file()
    {
        return Err(cannot("it is no file").remedy("name a file, which may be there or not; `-` is stdout"));
    }
    let Some(name) = to.file_name() else {
        return Err(
            cannot("it names no file").remedy("name a file, which may be there or not; `-` is stdout")
        );
    };
    let mut aside = std::ffi::OsString::from(".");
    aside.push(name);
    aside.push(format!(".{}.new", std::process::id()));
    let aside = to.with_file_name(aside);
    write_aside(&aside, to, bytes).map_err(|error| {
        let stop = cannot(&error.to_string());
        match error.kind() {
            io::ErrorKind::NotFound => stop.remedy("its folder is not there; make it first"),
            _ => stop,
        }
    })
}

fn write_aside(aside: &PathBuf, to: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut new = File::options().write(true).create_new(true).mode(0o600).open(aside)?;
    let written = new.write_all(bytes).and_then(|()| {
        // Whatever the umask says.
        new.set_permissions(Permissions::from_mode(0o600))?;
        fs::rename(aside, to)
    });
    if written.is_err() {
        let _ = fs::remove_file(aside);
    }
    written
}
