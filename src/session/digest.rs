//! Strong validators: the digest of the bytes an agent saw, in any of the spellings a client may send.
//!
//! Pure values only; computing one from bytes is the world's work.

use std::fmt;
use std::str::FromStr;

/// How a digest was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// BLAKE3 of the bytes, 32 bytes long; the daemon's own.
    Blake3,
    /// SHA-256 of the bytes, 32 bytes long.
    Sha256,
    /// Git blob id of a SHA-1 repository, 20 bytes long.
    GitSha1,
    /// Git blob id of a SHA-256 repository, 32 bytes long.
    GitSha256,
}

impl Algorithm {
    fn prefix(self) -> &'static str {
        match self {
            Self::Blake3 => "blake3",
            Self::Sha256 => "sha256",
            Self::GitSha1 | Self::GitSha256 => "git",
        }
    }

    /// Length of this algorithm's digests, in bytes.
    #[must_use]
    pub fn bytes_len(self) -> usize {
        if self == Self::GitSha1 { 20 } else { 32 }
    }
}

/// A digest and how it was computed; printed as `blake3:<hex>`, `sha256:<hex>` or `git:<hex>`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest {
    algorithm: Algorithm,
    bytes: [u8; 32],
}

impl Digest {
    /// A BLAKE3 digest.
    #[must_use]
    pub fn blake3(bytes: [u8; 32]) -> Self {
        Self { algorithm: Algorithm::Blake3, bytes }
    }

    /// A digest of the given algorithm, or `None` when the length is not that algorithm's.
    #[must_use]
    pub fn new(algorithm: Algorithm, bytes: &[u8]) -> Option<Self> {
        if bytes.len() != algorithm.bytes_len() {
            return None;
        }
        let mut padded = [0; 32];
        padded[..bytes.len()].copy_from_slice(bytes);
        Some(Self { algorithm, bytes: padded })
    }

    /// How it was computed.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Its bytes, 20 or 32 of them.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.algorithm.bytes_len()]
    }

    /// Its bytes in lower-case hexadecimal, without a prefix.
    #[must_use]
    pub fn to_hex(&self) -> String {
        hex(self.as_bytes())
    }

    /// `blake3:3f2a9c01…`: enough to tell two digests apart in a sentence.
    #[must_use]
    pub fn short(&self) -> String {
        format!("{}:{}…", self.algorithm.prefix(), hex(&self.bytes[..4]))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm.prefix(), self.to_hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.short())
    }
}

/// The text is none of `blake3:<64 hex>`, `sha256:<64 hex>`, `git:<40 or 64 hex>`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a digest; expected blake3:<64 hex>, sha256:<64 hex> or git:<40 or 64 hex>")]
pub struct NotADigest(String);

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let refused = || NotADigest(text.chars().take(100).collect());
        let (prefix, digits) = text.split_once(':').ok_or_else(refused)?;
        let algorithm = match (prefix, digits.len()) {
            ("blake3", 64) => Algorithm::Blake3,
            ("sha256", 64) => Algorithm::Sha256,
            ("git", 40) => Algorithm::GitSha1,
            ("git", 64) => Algorithm::GitSha256,
            _ => return Err(refused()),
        };
        let bytes = unhex(digits).ok_or_else(refused)?;
        Self::new(algorithm, &bytes).ok_or_else(refused)
    }
}

/// The id of a commit: 20 bytes in a SHA-1 repository, 32 in a SHA-256 one; printed as bare hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId {
    bytes: [u8; 32],
    len: u8,
}

impl CommitId {
    /// Parses 40 or 64 hexadecimal digits, optionally behind `git:`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("git:").unwrap_or(text);
        Self::from_bytes(&unhex(digits)?)
    }

    /// From 20 or 32 raw bytes.
    #[must_use]
    pub fn from_bytes(raw: &[u8]) -> Option<Self> {
        let len = u8::try_from(raw.len()).ok().filter(|len| matches!(len, 20 | 32))?;
        let mut bytes = [0; 32];
        bytes[..raw.len()].copy_from_slice(raw);
        Some(Self { bytes, len })
    }

    /// Its raw bytes, 20 or 32 of them.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// `3f2a9c01…`.
    #[must_use]
    pub fn short(&self) -> String {
        format!("{}…", hex(&self.bytes[..4]))
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(self.as_bytes()))
    }
}

impl fmt::Debug for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.short())
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let pairs = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let digits: Vec<u8> = pairs.map(|nibble| DIGITS[usize::from(nibble)]).collect();
    String::from_utf8(digits).expect("because hexadecimal digits are ASCII")
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let nibble = |digit: u8| char::from(digit).to_digit(16).map(|n| n as u8);
    digits.chunks_exact(2).map(|pair| Some(nibble(pair[0])? << 4 | nibble(pair[1])?)).collect()
}
