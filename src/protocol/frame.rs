//! Bytes to lines: a sans-I/O splitter with a bound on the line.
//!
//! A line that is too long is reported once, as soon as that is certain; there is no way back from it.

/// Splits a stream of bytes into lines.
#[derive(Debug)]
pub struct Lines {
    buffer: Vec<u8>,
    scanned: usize,
    bytes_max: usize,
}

/// The line is longer than the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

impl Lines {
    /// A splitter for lines of at most `bytes_max` bytes, the line feed not counted.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self { buffer: Vec::new(), scanned: 0, bytes_max }
    }

    /// Where the next bytes of the stream go.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Whether a line has begun but not ended.
    #[must_use]
    pub fn is_inside_line(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// The next whole line, without its line feed.
    pub fn next_line(&mut self) -> Result<Option<Vec<u8>>, TooLong> {
        let Some(at) = self.buffer[self.scanned..].iter().position(|&byte| byte == b'\n') else {
            self.scanned = self.buffer.len();
            return if self.scanned > self.bytes_max { Err(TooLong) } else { Ok(None) };
        };
        let end = self.scanned + at;
        if end > self.bytes_max {
            return Err(TooLong);
        }
        let rest = self.buffer.split_off(end + 1);
        let mut line = std::mem::replace(&mut self.buffer, rest);
        line.pop();
        self.scanned = 0;
        Ok(Some(line))
    }
}

#[cfg(test)]
mod tests {
    use super::{Lines, TooLong};

    fn feed(chunks: &[&[u8]]) -> (Vec<Vec<u8>>, bool) {
        let mut lines = Lines::new(5);
        let mut whole = Vec::new();
        for chunk in chunks {
            lines.buffer().extend_from_slice(chunk);
            loop {
                match lines.next_line() {
                    Ok(Some(line)) => whole.push(line),
                    Ok(None) => break,
                    Err(TooLong) => return (whole, true),
                }
            }
        }
        (whole, false)
    }

    #[test]
    fn lines_come_whole_however_the_bytes_arrive() {
        let cases: [(&[&[u8]], &[&[u8]], bool); 6] = [
            (&[b"ab\ncd\n"], &[b"ab", b"cd"], false),
            (&[b"a", b"b\n", b"\n"], &[b"ab", b""], false),
            (&[b"12345\n"], &[b"12345"], false),
            (&[b"123456"], &[], true),
            (&[b"ok\n123456\n"], &[b"ok"], true),
            (&[b"never ends"[..3].as_ref()], &[], false),
        ];
        for (chunks, expected, too_long) in cases {
            assert_eq!(
                feed(chunks),
                (expected.iter().map(|line| line.to_vec()).collect(), too_long),
                "{chunks:?}"
            );
        }
    }
}
