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
                    let skipped =
                        io::copy(&mut (&mut self.source).take(length.into()), &mut io::sink())?;
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
