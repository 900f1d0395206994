//! Writes that are whole or have failed, and folders that remember their names.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// One `write`; less than all of it is a failure, and the caller cuts back what it left.
pub(super) fn write_once(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    loop {
        match file.write(bytes) {
            Ok(len) if len == bytes.len() => return Ok(()),
            Ok(len) => {
                let text = format!("only {len} of {} bytes were written", bytes.len());
                return Err(io::Error::new(io::ErrorKind::StorageFull, text));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Makes names that were created, moved or removed beside this one survive a power cut.
pub(super) fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}
