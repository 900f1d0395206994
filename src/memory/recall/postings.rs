//! In which documents a term stands, and how often: bytes, with as many of them in place as most terms ever need.

use crate::index::pack::Pack;

/// Ascending document numbers, each as the difference to the one before, and the count of the term in it.
#[derive(Debug, Default)]
pub(super) struct Postings {
    bytes: Bytes,
    /// The highest document number in it.
    last: u32,
    /// How many of the documents live. Exact at any time, for ranks rest on it.
    pub(super) live: u32,
}

/// Two or three postings fit in place, in the room that a vector would take by itself.
#[derive(Debug)]
enum Bytes {
    Few { len: u8, bytes: [u8; FEW] },
    Many(Box<Vec<u8>>),
}

const FEW: usize = 14;

impl Default for Bytes {
    fn default() -> Self {
        Self::Few { len: 0, bytes: [0; FEW] }
    }
}

impl Postings {
    /// Adds a document, which lives and has a higher number than all before it.
    pub(super) fn push(&mut self, document: u32, count: u32) {
        debug_assert!(self.bytes.as_slice().is_empty() || document > self.last, "document numbers ascend");
        let mut coded = Vec::with_capacity(10);
        (document - self.last).pack(&mut coded);
        count.pack(&mut coded);
        self.bytes.extend(&coded);
        self.last = document;
        self.live += 1;
    }

    /// Every document with the count, the dead ones too.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        let mut rest = self.bytes.as_slice();
        let mut document = 0;
        std::iter::from_fn(move || {
            document += u32::unpack(&mut rest)?;
            Some((document, u32::unpack(&mut rest)?))
        })
    }

    /// What lies outside of this value.
    pub(super) fn heap_bytes(&self) -> usize {
        match &self.bytes {
            Bytes::Few { .. } => 0,
            Bytes::Many(bytes) => size_of::<Vec<u8>>() + bytes.capacity(),
        }
    }
}

impl Bytes {
    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Few { len, bytes } => &bytes[..usize::from(*len)],
            Self::Many(bytes) => bytes,
        }
    }

    fn extend(&mut self, more: &[u8]) {
        match self {
            Self::Few { len, bytes } if usize::from(*len) + more.len() <= FEW => {
                let start = usize::from(*len);
                bytes[start..start + more.len()].copy_from_slice(more);
                *len += more.len() as u8;
            }
            Self::Few { .. } => *self = Self::Many(Box::new([self.as_slice(), more].concat())),
            Self::Many(bytes) => bytes.extend_from_slice(more),
        }
    }
}

/// Ascending numbers as differences.
pub(super) fn code(numbers: impl Iterator<Item = u32>) -> Box<[u8]> {
    let (mut coded, mut last) = (Vec::new(), 0);
    for number in numbers {
        (number - last).pack(&mut coded);
        last = number;
    }
    coded.into_boxed_slice()
}

/// The numbers that [`code`] was given.
pub(super) fn decode(mut coded: &[u8]) -> impl Iterator<Item = u32> {
    let mut number = 0;
    std::iter::from_fn(move || {
        number += u32::unpack(&mut coded)?;
        Some(number)
    })
}
