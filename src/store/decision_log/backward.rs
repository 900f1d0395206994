//! Finding lines from the end of a file, in bounded blocks.
//!
//! Promise: at most one block and one line are in memory; a line over the bound is an error, not an allocation.

use super::LINE_BYTES_MAX;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

const BLOCK_LEN: u64 = 16 * 1024;

/// Where the last whole line before `end` stops: behind its newline, or 0 when there is none.
pub(super) fn end_of_whole_lines(file: &File, end: u64) -> io::Result<u64> {
    let mut block = vec![0; to_len(BLOCK_LEN.min(end))];
    let mut stop = end;
    while stop > 0 {
        let start = stop.saturating_sub(BLOCK_LEN);
        let part = &mut block[..to_len(stop - start)];
        file.read_exact_at(part, start)?;
        if let Some(newline) = part.iter().rposition(|&byte| byte == b'\n') {
            return Ok(start + newline as u64 + 1);
        }
        stop = start;
    }
    Ok(0)
}

/// The whole line whose newline is the byte before `end`: where it starts, and its bytes without the newline. `None`
/// at the start of the file.
pub(super) fn line_before(file: &File, end: u64) -> io::Result<Option<(u64, Vec<u8>)>> {
    let Some(newline) = end.checked_sub(1) else { return Ok(None) };
    let start = end_of_whole_lines(file, newline)?;
    read_line(file, start, newline).map(|line| Some((start, line)))
}

fn read_line(file: &File, start: u64, newline: u64) -> io::Result<Vec<u8>> {
    if newline - start > LINE_BYTES_MAX as u64 {
        let text = format!("the line at byte {start} is longer than the bound of {LINE_BYTES_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    let mut line = vec![0; to_len(newline - start)];
    file.read_exact_at(&mut line, start)?;
    Ok(line)
}

fn to_len(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
