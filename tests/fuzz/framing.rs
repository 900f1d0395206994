//! Bytes to lines, compared with a splitter that has the whole stream before it.

use super::rounds;
use crate::harness::say;
use fastrand::Rng;
use staled::protocol::frame::{Lines, TooLong};
use staled::protocol::request::Request;

/// Bytes that mean something to somebody: the framing, JSON, UTF-8.
const BYTES: &[u8] = b"\n\n\n\n\n\r\0\"{}[]:,\\ aZ09-.\xff\xc3\xa9\xed\xa0\x80\x1b";

#[test]
fn any_split_of_any_bytes_gives_the_same_lines() {
    let count = rounds("fuzz::framing", 5, |seed| round(&mut Rng::with_seed(seed)));
    say(&format!("framing: {count} streams"));
}

fn round(rng: &mut Rng) {
    let bytes_max = rng.usize(0..60);
    let stream: Vec<u8> = (0..rng.usize(0..400)).map(|_| any_byte(rng)).collect();
    let (expected, too_long) = split_whole(&stream, bytes_max);
    for _ in 0..4 {
        let (lines, ended) = split_in_pieces(&stream, bytes_max, rng);
        assert_eq!(
            (&lines, ended),
            (&expected, too_long),
            "{bytes_max} {:?}",
            stream.escape_ascii().to_string()
        );
    }
    // Whatever it is: an answer or a request, and no panic.
    expected.iter().for_each(|line| drop(Request::parse(line)));
}

fn any_byte(rng: &mut Rng) -> u8 {
    if rng.u8(..8) == 0 { rng.u8(..) } else { BYTES[rng.usize(..BYTES.len())] }
}

/// Lines up to the first that is too long, and whether there is one.
fn split_whole(stream: &[u8], bytes_max: usize) -> (Vec<Vec<u8>>, bool) {
    let mut lines = Vec::new();
    let mut pieces: Vec<&[u8]> = stream.split(|&byte| byte == b'\n').collect();
    let rest = pieces.pop().unwrap_or_default();
    for line in pieces {
        if line.len() > bytes_max {
            return (lines, true);
        }
        lines.push(line.to_vec());
    }
    (lines, rest.len() > bytes_max)
}

/// The same by the daemon's own splitter, which never holds more than it must.
fn split_in_pieces(stream: &[u8], bytes_max: usize, rng: &mut Rng) -> (Vec<Vec<u8>>, bool) {
    let mut lines = Lines::new(bytes_max);
    let (mut whole, mut rest) = (Vec::new(), stream);
    let longest = rng.usize(1..80);
    while !rest.is_empty() {
        let (piece, later) = rest.split_at(rng.usize(0..=longest).min(rest.len()));
        rest = later;
        lines.buffer().extend_from_slice(piece);
        loop {
            match lines.next_line() {
                Ok(Some(line)) => whole.push(line),
                Ok(None) => break,
                Err(TooLong) => return (whole, true),
            }
        }
        assert!(lines.buffer().len() <= bytes_max, "{} bytes are held of a line", lines.buffer().len());
        assert_eq!(lines.is_inside_line(), !lines.buffer().is_empty());
    }
    (whole, false)
}
