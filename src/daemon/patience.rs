//! Writing to a subscriber that reads slowly: it is closed when it reads nothing for as long as one answer may take,
//! however long it takes to read all of it.

use rustix::net::{SendFlags, send};
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::net::UnixStream;

/// Bytes offered at once. The kernel frees a piece when its last byte is read, so small ones show sooner that somebody
/// reads; and pieces cost less than waking a reader for every line.
const PIECE_BYTES: usize = 4 * 1024;

/// Writes all of `bytes`. Every byte that is taken renews the patience, until `hurried` says that it does so no more.
pub(super) async fn write_patiently(
    stream: &UnixStream,
    mut bytes: &[u8],
    patience: Duration,
    hurried: impl Fn() -> bool,
) -> io::Result<()> {
    let mut by = Instant::now() + patience;
    while !bytes.is_empty() {
        match write_some(stream, &bytes[..bytes.len().min(PIECE_BYTES)], patience).await {
            Ok(taken) => {
                bytes = &bytes[taken..];
                if !hurried() {
                    by = Instant::now() + patience;
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < by => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(ErrorKind::TimedOut.into()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes a part, or waits for a part of the patience. The kernel calls a full socket writable again only when three
/// quarters of it have been read, which a slow reader may never see in time; but it takes bytes as soon as there is room
/// for any. So a wait that was in vain ends with one more try.
async fn write_some(stream: &UnixStream, piece: &[u8], patience: Duration) -> io::Result<usize> {
    let offer = || send(stream, piece, SendFlags::DONTWAIT | SendFlags::NOSIGNAL).map_err(io::Error::from);
    match stream.try_io(Interest::WRITABLE, offer) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
        Err(error) if error.kind() == ErrorKind::Interrupted => {}
        other => return other,
    }
    match tokio::time::timeout(patience / 10, stream.writable()).await {
        Ok(writable) => writable.and(Err(ErrorKind::WouldBlock.into())),
        Err(_) => offer(),
    }
}

#[cfg(test)]
mod tests {
    use super::write_patiently;
    use std::io::{self, ErrorKind, Read};
    use std::os::unix::net::UnixStream as StdStream;
    use std::time::Duration;

    /// More than the kernel holds for a socket.
    const BYTES: usize = 400_000;

    fn write_to(ours: StdStream, patience: Duration) -> io::Result<()> {
        ours.set_nonblocking(true).expect("it can");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let stream = tokio::net::UnixStream::from_std(ours).expect("a stream");
            write_patiently(&stream, &vec![b'x'; BYTES], patience, || false).await
        })
    }

    #[test]
    fn who_reads_slowly_is_waited_for() {
        let (ours, mut theirs) = StdStream::pair().expect("a pair");
        // So slow that the kernel would call the socket writable only when the patience has long been over.
        let reader = std::thread::spawn(move || {
            for _ in 0..40 {
                std::thread::sleep(Duration::from_millis(100));
                theirs.read_exact(&mut [0; 4_096]).expect("it is written to");
            }
            theirs.read_to_end(&mut Vec::new()).expect("the rest")
        });
        write_to(ours, Duration::from_millis(1_500)).expect("all of it is read in the end");
        assert_eq!(reader.join().expect("it read"), BYTES - 40 * 4_096);
    }

    #[test]
    fn who_reads_nothing_is_given_up() {
        let (ours, _theirs) = StdStream::pair().expect("a pair");
        let error = write_to(ours, Duration::from_millis(50)).expect_err("nobody reads");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }
}
