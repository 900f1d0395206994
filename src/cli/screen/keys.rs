//! What terminals send for a key, and what is wanted by it. Pure.
//!
//! The bytes are read here and not by the library that draws: it waits for the terminal and for its size on one queue, and
//! a key that comes together with another size is left lying there until the next one.

use super::model::Deed;

const ESCAPE: u8 = 0x1b;
/// Bytes of a control sequence.
const LEN_MAX: usize = 64;

/// What comes next in the bytes.
enum Next {
    /// A key, or several bytes that are none of ours, and how many bytes it took.
    Key(Option<Deed>, usize),
    /// The beginning of something.
    More,
}

/// What is wanted by these bytes, and how many of them were understood. The rest is the beginning of a key; when nothing
/// comes behind it (`is_all`), a lone Escape is that key.
pub(super) fn read(bytes: &[u8], is_all: bool) -> (Vec<Deed>, usize) {
    let (mut deeds, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        match next(&bytes[at..]) {
            Next::Key(deed, len) => {
                deeds.extend(deed);
                at += len;
            }
            Next::More if is_all => {
                deeds.extend((bytes.len() - at == 1).then_some(Deed::Quit));
                at = bytes.len();
            }
            Next::More => break,
        }
    }
    (deeds, at)
}

fn next(bytes: &[u8]) -> Next {
    match bytes {
        [ESCAPE] | [ESCAPE, b'O'] => Next::More,
        // With Application Cursor Keys on, which some terminals never turn off.
        [ESCAPE, b'O', key, ..] => Next::Key(arrow(*key), 3),
        [ESCAPE, b'[', rest @ ..] => control(rest),
        // Escape twice is Escape; with anything else behind it, it is Alt.
        [ESCAPE, ESCAPE, ..] => Next::Key(Some(Deed::Quit), 1),
        [ESCAPE, ..] => Next::Key(None, 2),
        [key, ..] => Next::Key(plain(*key), 1),
        [] => Next::More,
    }
}

/// A control sequence: parameters, then one letter that ends it.
fn control(rest: &[u8]) -> Next {
    let Some(end) = rest.iter().position(|byte| (b'@'..=b'~').contains(byte)) else {
        // No terminal sends one that long.
        return if rest.len() > LEN_MAX { Next::Key(None, rest.len() + 2) } else { Next::More };
    };
    let deed = match (&rest[..end], rest[end]) {
        ([], key @ (b'A' | b'B')) => arrow(key),
        ([], b'Z') => Some(Deed::LastPane),
        ([b'5'], b'~') => Some(Deed::PageUp),
        ([b'6'], b'~') => Some(Deed::PageDown),
        _ => None,
    };
    Next::Key(deed, end + 3)
}

fn arrow(key: u8) -> Option<Deed> {
    match key {
        b'A' => Some(Deed::Up),
        b'B' => Some(Deed::Down),
        _ => None,
    }
}

fn plain(key: u8) -> Option<Deed> {
    match key {
        // Ctrl-C.
        0x03 | b'q' => Some(Deed::Quit),
        b'k' => Some(Deed::Up),
        b'j' => Some(Deed::Down),
        b'\t' => Some(Deed::NextPane),
        b'?' => Some(Deed::Help),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::cli::screen::model::Deed::{Down, Help, LastPane, NextPane, PageDown, PageUp, Quit, Up};

    #[test]
    fn keys_are_told_apart_however_they_come() {
        let all = b"jk\t?\x1b[A\x1b[B\x1bOA\x1b[Z\x1b[5~\x1b[6~q\x03";
        let deeds = vec![Down, Up, NextPane, Help, Up, Down, Up, LastPane, PageUp, PageDown, Quit, Quit];
        assert_eq!(read(all, false), (deeds.clone(), all.len()));
        // One byte at a time.
        let (mut held, mut found) = (Vec::new(), Vec::new());
        for byte in all {
            held.push(*byte);
            let (some, len) = read(&held, false);
            found.extend(some);
            held.drain(..len);
        }
        assert_eq!((found, held), (deeds, Vec::new()));
    }

    #[test]
    fn escape_is_a_key_when_nothing_comes_behind_it() {
        assert_eq!(read(b"\x1b", false), (vec![], 0));
        assert_eq!(read(b"\x1b", true), (vec![Quit], 1));
        assert_eq!(read(b"\x1b\x1b", true), (vec![Quit, Quit], 2));
    }

    #[test]
    fn what_is_no_key_of_ours_does_nothing() {
        for bytes in
            [&b"\x1b[1;5A"[..], b"\x1b[200~", b"\x1bq", "äx".as_bytes(), b"\x1b[<0;1;1M", b"\x1bOP", b"\0\r"]
        {
            assert_eq!(read(bytes, false), (vec![], bytes.len()), "{bytes:?}");
        }
        let endless = [b"\x1b[", &[b'1'; 100][..]].concat();
        assert_eq!(read(&endless, false), (vec![], endless.len()));
        assert_eq!(read(b"\x1b[1;", true), (vec![], 4), "half a sequence is no Escape");
    }
}
