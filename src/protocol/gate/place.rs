//! Labels and the places they name: when two spellings mean the same source.
//!
//! Identity here is lexical, because the gate has no disk: `./a`, `b/../a` and `a/` are one place; symlinks, and
//! an absolute spelling of a relative one, are beyond it (a report does not carry its root).

use std::fmt;

use serde_json::Value;

use super::fault::is_blank;

/// A source as it was spelled: text on the wire, or `{"bytes": "<base64>"}` where it is not UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Label(Vec<u8>);

impl Label {
    /// `None` when the value is neither form, or is blank.
    pub(super) fn read(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(Self(text.as_bytes().to_vec())).filter(|_| !is_blank(text)),
            Value::Object(fields) if fields.len() == 1 => {
                let bytes = unbase64(fields.get("bytes")?.as_str()?.as_bytes())?;
                let blank = std::str::from_utf8(&bytes).is_ok_and(is_blank);
                Some(Self(bytes)).filter(|_| !blank)
            }
            _ => None,
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The place it names when it is known to be a path.
    pub(super) fn path(&self) -> Place {
        Place::fold(&self.0, |_| true)
    }

    /// The place it names when it may as well be a command.
    ///
    /// `cat ../../Cargo.toml` is a label too, and folding it would make it the file `Cargo.toml`. So `..` does not
    /// climb over a piece with white space in it. A folder with a space, spelled with `..` behind it, is the price.
    pub(super) fn place(&self) -> Place {
        Place::fold(&self.0, |piece| !piece.iter().any(u8::is_ascii_whitespace))
    }

    /// The same label without the lines it points at: `a.rs:41`, `a.rs:41:7` and `a.rs:41-50` point into `a.rs`.
    pub(super) fn without_lines(&self) -> Self {
        let line = without_number(&self.0).unwrap_or(&self.0);
        Self(without_number(line).unwrap_or(line).to_vec())
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", String::from_utf8_lossy(&self.0))
    }
}

/// Where a label leads, after folding `.`, `..` and doubled slashes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Place {
    absolute: bool,
    /// How many folders above the start; always 0 when absolute.
    up: usize,
    pieces: Vec<Vec<u8>>,
}

impl Place {
    fn fold(path: &[u8], climbable: impl Fn(&[u8]) -> bool) -> Self {
        let mut place = Self { absolute: path.starts_with(b"/"), up: 0, pieces: Vec::new() };
        for piece in path.split(|byte| *byte == b'/') {
            match (piece, place.pieces.last()) {
                (b"" | b".", _) => {}
                (b"..", None) => place.up += usize::from(!place.absolute),
                (b"..", Some(last)) if last != b".." && climbable(last) => drop(place.pieces.pop()),
                _ => place.pieces.push(piece.to_vec()),
            }
        }
        place
    }

    /// The same place, or somewhere below it.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        if self.absolute != other.absolute || self.up > other.up {
            return false;
        }
        if self.up < other.up {
            // From higher up only the bare ancestor is sure to contain us: the names between are not known.
            return other.pieces.is_empty();
        }
        self.pieces.starts_with(&other.pieces)
    }
}

/// The text before a trailing `:41` or `:41-50`.
fn without_number(label: &[u8]) -> Option<&[u8]> {
    let colon = label.iter().rposition(|byte| *byte == b':').filter(|colon| *colon > 0)?;
    let mut numbers = label[colon + 1..].splitn(2, |byte| *byte == b'-');
    let all_digits = |number: &[u8]| !number.is_empty() && number.iter().all(u8::is_ascii_digit);
    numbers.all(all_digits).then(|| &label[..colon])
}

/// Standard base64, padded and canonical; anything else is `None`.
fn unbase64(text: &[u8]) -> Option<Vec<u8>> {
    let digits = text.strip_suffix(b"==").or_else(|| text.strip_suffix(b"=")).unwrap_or(text);
    if !text.len().is_multiple_of(4) || digits.len() % 4 == 1 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut held, mut held_bits) = (0_u32, 0);
    for digit in digits {
        held = held << 6 | six_bits(*digit)?;
        held_bits += 6;
        if held_bits >= 8 {
            held_bits -= 8;
            bytes.push((held >> held_bits & 0xff) as u8);
            held &= (1 << held_bits) - 1;
        }
    }
    (held == 0).then_some(bytes)
}

fn six_bits(digit: u8) -> Option<u32> {
    let value = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}
