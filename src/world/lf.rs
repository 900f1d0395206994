//! The digest of a stream with every CR LF read as LF, computed beside its plain digest.
//!
//! Most files have no CR LF, and for those there is nothing to compute: the second hasher begins as a copy of the first,
//! at the first carriage return that a line feed follows. Until then both have eaten the same bytes.

use crate::session::digest::Digest;

/// The second digest in the making.
#[derive(Default)]
pub(super) struct LineFeeds {
    hasher: Option<Box<blake3::Hasher>>,
    /// The last byte was a carriage return, which the plain hasher has eaten and this one has not.
    pending: bool,
    /// What the plain hasher was before that carriage return.
    before: Option<Box<blake3::Hasher>>,
}

impl LineFeeds {
    /// Takes the next bytes. `plain` is the plain hasher before it takes them.
    pub(super) fn update(&mut self, plain: &blake3::Hasher, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if self.pending {
            self.resolve(bytes[0] == b'\n');
        }
        // Searched as a byte, which is fast; most files end here.
        if self.hasher.is_none() && bytes.contains(&b'\r') {
            self.begin(plain, bytes);
        } else if self.hasher.is_some() {
            self.eat(bytes);
        }
    }

    /// The carriage return that was held back belongs to a line end, or does not.
    fn resolve(&mut self, line_end: bool) {
        self.pending = false;
        match (&mut self.hasher, self.before.take()) {
            (Some(hasher), _) if !line_end => {
                hasher.update(b"\r");
            }
            (None, Some(before)) if line_end => self.hasher = Some(before),
            _ => {}
        }
    }

    fn begin(&mut self, plain: &blake3::Hasher, bytes: &[u8]) {
        let ends = |at: &usize| bytes[*at] == b'\r' && bytes[at + 1] == b'\n';
        if (0..bytes.len() - 1).find(ends).is_some() {
            self.hasher = Some(Box::new(plain.clone()));
            self.eat(bytes);
        } else if let Some(kept) = bytes.strip_suffix(b"\r") {
            let mut before = plain.clone();
            before.update(kept);
            (self.before, self.pending) = (Some(Box::new(before)), true);
        }
    }

    fn eat(&mut self, bytes: &[u8]) {
        let Some(hasher) = &mut self.hasher else { return };
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|&byte| byte == b'\r') {
            hasher.update(&rest[..at]);
            rest = &rest[at + 1..];
            match rest.first() {
                None => self.pending = true,
                Some(b'\n') => {}
                Some(_) => {
                    hasher.update(b"\r");
                }
            }
        }
        hasher.update(rest);
    }

    /// The digest, if there was any CR LF.
    pub(super) fn finish(mut self) -> Option<Digest> {
        if self.pending {
            self.resolve(false);
        }
        self.hasher.map(|hasher| Digest::blake3(*hasher.finalize().as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use crate::session::line_ends::normalised;
    use crate::world::digest::{blake3, stream};
    use std::io::Read;

    /// Gives its bytes in pieces of one size, however much is asked for.
    struct Pieces<'text>(&'text [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let len = self.1.min(self.0.len()).min(buffer.len());
            let (given, rest) = self.0.split_at(len);
            buffer[..len].copy_from_slice(given);
            self.0 = rest;
            Ok(len)
        }
    }

    #[test]
    fn the_second_digest_is_that_of_the_text_with_line_feeds_however_it_is_cut() {
        for text in
            ["", "\r", "\n", "\r\n", "a\r\nb", "a\r", "a\rb", "a\r\r\n", "\r\n\r\n", "a\nb\r\nc\rd\r\n\r"]
        {
            for cut in 1..=text.len().max(1) {
                let digests = stream(Pieces(text.as_bytes(), cut), 0, &[]).expect("a text can be read");
                let want = text.contains("\r\n").then(|| blake3(&normalised(text.as_bytes())));
                assert_eq!(digests.lf, want, "{text:?} in pieces of {cut}");
                assert_eq!(digests.blake3, blake3(text.as_bytes()));
            }
        }
    }
}
