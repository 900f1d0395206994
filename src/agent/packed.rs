//! Bytes of a file, unpacked where they are a gzip or a zstd archive; the first bytes decide which, not the name.
//!
//! What does not unpack to its very end, with the sums that it carries, is an error and never a shorter text.

use ruzstd::decoding::errors::FrameDecoderError;
use ruzstd::decoding::errors::ReadFrameHeaderError::SkipFrame;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Whether bytes that begin so are an archive. A line of JSON never begins like one.
pub(super) fn is_packed(start: &[u8]) -> bool {
    start.starts_with(&GZIP) || start.starts_with(&ZSTD) || is_skippable(start)
}

/// A frame of zstd that holds no text may come first.
fn is_skippable(start: &[u8]) -> bool {
    matches!(start, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// The text in `reader`.
pub(super) fn unpacked<'a, R: BufRead + 'a>(mut reader: R) -> io::Result<Box<dyn BufRead + 'a>> {
    let start = reader.fill_buf()?;
    Ok(if start.starts_with(&GZIP) {
        Box::new(BufReader::new(flate2::bufread::MultiGzDecoder::new(reader)))
    } else if is_packed(start) {
        Box::new(BufReader::new(Frames { source: reader, decoder: FrameDecoder::new(), between: true }))
    } else {
        Box::new(reader)
    })
}

/// The frames of a zstd archive, one after the other.
struct Frames<R> {
    source: R,
    decoder: FrameDecoder,
    /// Between two frames, not in one.
    between: bool,
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.between && !self.begin()? {
                return Ok(0);
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.source, one).map_err(broken)?;
            }
            let count = self.decoder.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            self.end()?;
        }
    }
}

impl<R: BufRead> Frames<R> {
    /// Goes into the next frame that holds text; `false` at the end of the archive.
    fn begin(&mut self) -> io::Result<bool> {
        loop {
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.init(&mut self.source) {
                Ok(()) => {
                    self.between = false;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(SkipFrame { length, .. })) => {
                    let skipped = io::copy(&mut (&mut self.source).take(length.into()), &mut io::sink())?;
                    if skipped < u64::from(length) {
                        return Err(ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(broken(error)),
            }
        }
    }

    /// A frame was read whole: it must be what was packed.
    fn end(&mut self) -> io::Result<()> {
        let told = self.decoder.get_checksum_from_data();
        if told.is_some() && told != self.decoder.get_calculated_checksum() {
            return Err(broken("its checksum does not fit what is in it"));
        }
        self.between = true;
        Ok(())
    }
}

fn broken(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests {
    use super::{is_packed, unpacked};
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    use std::io::{self, Read, Write};

    fn read(bytes: &[u8]) -> io::Result<String> {
        let mut text = String::new();
        // A small buffer meets every border in the middle of something.
        let small = io::BufReader::with_capacity(4, bytes);
        unpacked(small)?.read_to_string(&mut text)?;
        Ok(text)
    }

    fn zstd(text: &str) -> Vec<u8> {
        compress_to_vec(text.as_bytes(), CompressionLevel::Fastest)
    }

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn the_first_bytes_say_what_it_is() {
        let text = "{\"a\": 1}\n".repeat(20_000);
        for plain in ["", "{", "{}\n", &text] {
            assert_eq!(read(plain.as_bytes()).unwrap(), plain);
            assert!(!is_packed(plain.as_bytes()));
        }
        let skipped = [&b"\x52\x2a\x4d\x18\x03\0\0\0abc"[..], &zstd("x")].concat();
        for (packed, want) in [
            (gzip(&text), text.clone()),
            ([gzip("a"), gzip("b")].concat(), "ab".to_owned()),
            (zstd(&text), text.clone()),
            ([zstd("a"), zstd(""), zstd("b"), skipped.clone()].concat(), "abx".to_owned()),
            (skipped, "x".to_owned()),
        ] {
            assert!(is_packed(&packed));
            assert_eq!(read(&packed).unwrap(), want);
        }
    }

    #[test]
    fn a_part_of_an_archive_is_no_shorter_text() {
        let text = (0..500).fold(String::new(), |text, number| text + &number.to_string() + "\n");
        for packed in [gzip(&text), zstd(&text)] {
            for end in 5..packed.len() {
                assert!(read(&packed[..end]).is_err(), "{end} of {} bytes", packed.len());
            }
        }
        let skipped = b"\x52\x2a\x4d\x18\x03\0\0\0ab";
        assert!(read(skipped).is_err());
        let trailing = [zstd("a"), b"more".to_vec()].concat();
        assert!(read(&trailing).is_err());
        let mut odd = zstd(&text);
        let last = odd.len() - 1;
        odd[last] ^= 1;
        assert!(read(&odd).unwrap_err().to_string().contains("checksum"));
    }
}
