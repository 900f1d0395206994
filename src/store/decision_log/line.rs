//! One line of the chain: how it is sealed, and how it is taken apart again.
//!
//! ```text
//! {…the caller's fields…,"seq":7,"prev":"<64 hex: hash of line 6>","hash":"<64 hex: BLAKE3 of all bytes before this field>"}
//! ```
//!
//! The hash is over raw bytes, never over JSON that was parsed and written again.

use crate::world::digest::blake3;
use std::fmt;
use std::str::FromStr;

const HASH_KEY: &[u8] = br#","hash":""#;
const PREV_KEY: &[u8] = br#","prev":""#;
const SEQ_KEY: &[u8] = br#""seq":"#;
const HEX_LEN: usize = 64;

/// How a line begins that opens a file in the middle of the chain.
pub(super) const CONTINUES: &str = r#"{"event":"log_continued","#;

/// The place of one line in the chain. Whoever holds it can tell later that the line, and all before it, still stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The line's number; the first is 1.
    pub seq: u64,
    /// The line's hash, 64 lower-case hexadecimal digits.
    pub hash: String,
}

impl Receipt {
    /// What comes before the first line: the chain starts from 64 zeros.
    pub(super) fn genesis() -> Self {
        Self { seq: 0, hash: "0".repeat(HEX_LEN) }
    }
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, self.hash)
    }
}

/// The text is not `<seq>:<64 lower-case hex>`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a receipt; expected SEQ:HASH, the hash in 64 lower-case hexadecimal digits")]
pub struct NotAReceipt(String);

impl FromStr for Receipt {
    type Err = NotAReceipt;

    fn from_str(text: &str) -> Result<Self, NotAReceipt> {
        let receipt = text.split_once(':').and_then(|(seq, hash)| {
            let hash = hex_text(hash.as_bytes())?.to_owned();
            Some(Self { seq: seq.parse().ok()?, hash })
        });
        receipt.ok_or_else(|| NotAReceipt(text.chars().take(100).collect()))
    }
}

/// A line taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) seq: u64,
    pub(super) prev: String,
    pub(super) hash: String,
}

impl Link {
    pub(super) fn receipt(&self) -> Receipt {
        Receipt { seq: self.seq, hash: self.hash.clone() }
    }

    /// What the line claims to come right after.
    pub(super) fn follows(&self) -> Receipt {
        Receipt { seq: self.seq.saturating_sub(1), hash: self.prev.clone() }
    }
}

/// Writes `object` into `buffer` as the line after `last`, newline included. `None` when it is not the text of one
/// object on one line; whether it is well formed inside is the caller's affair.
pub(super) fn seal(object: &str, last: &Receipt, buffer: &mut Vec<u8>) -> Option<Receipt> {
    let inner = object.strip_prefix('{')?.strip_suffix('}')?;
    if has_line_end(inner.as_bytes()) {
        return None;
    }
    let seq = last.seq + 1;
    let (inner, comma) = if inner.trim().is_empty() { ("", "") } else { (inner, ",") };
    buffer.clear();
    for part in ["{", inner, comma, "\"seq\":", &seq.to_string(), ",\"prev\":\"", &last.hash, "\""] {
        buffer.extend_from_slice(part.as_bytes());
    }
    let hash = blake3(buffer).to_hex();
    for part in [",\"hash\":\"", &hash, "\"}\n"] {
        buffer.extend_from_slice(part.as_bytes());
    }
    Some(Receipt { seq, hash })
}

/// Block by block and without stopping inside one, for that is what a processor does many bytes at a time.
fn has_line_end(bytes: &[u8]) -> bool {
    let found = |block: &[u8]| block.iter().fold(false, |found, &byte| found | matches!(byte, b'\n' | b'\r'));
    bytes.chunks(256).any(found)
}

/// Takes a line (without its newline) apart by position from its end, without checking its hash.
pub(super) fn parse(line: &[u8]) -> Option<Link> {
    let (body, hash) = split_hash(line)?;
    let (before_prev, prev) = split_hex(body.strip_suffix(b"\"")?, PREV_KEY)?;
    let digits = before_prev.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (before_seq, seq) = before_prev.split_at(before_prev.len() - digits);
    let before_seq = before_seq.strip_suffix(SEQ_KEY)?;
    if !before_seq.starts_with(b"{") || !before_seq.ends_with(b",") && before_seq.len() != 1 {
        return None;
    }
    let seq = std::str::from_utf8(seq).ok()?.parse().ok().filter(|&seq: &u64| seq > 0)?;
    Some(Link { seq, prev: prev.to_owned(), hash: hash.to_owned() })
}

/// Takes a line apart and compares its hash with its bytes.
pub(super) fn check(bytes: &[u8]) -> Result<Link, &'static str> {
    let link = parse(bytes).ok_or("it is not a line of a decision log")?;
    let body = &bytes[..bytes.len() - HASH_KEY.len() - HEX_LEN - 2];
    if blake3(body).to_hex() != link.hash {
        return Err("its bytes are not those that were written");
    }
    Ok(link)
}

/// What a line that opens a file says about its chain: the name of the file before it, the log's id, the reason.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Opening {
    pub(super) previous_file: Option<String>,
    pub(super) log: Option<String>,
    pub(super) why: Option<String>,
}

pub(super) fn opening(line: &[u8]) -> Option<Opening> {
    line.starts_with(CONTINUES.as_bytes()).then(|| serde_json::from_slice(line).unwrap_or_default())
}

/// The log's id by the first line of one of its files: the hash of the chain's own first line.
pub(super) fn id(line: &[u8]) -> Option<String> {
    let link = parse(line)?;
    let said = opening(line).and_then(|opening| opening.log);
    // It goes where a line break begins another field. Whoever wrote anything else did not write this log.
    said.filter(|id| hex_text(id.as_bytes()).is_some()).or(Some(link.hash))
}

/// Checks what stands at the start of a file: the start of a chain, or a line that says what it continues.
pub(super) fn may_open_a_file(bytes: &[u8], link: &Link) -> bool {
    link.follows() == Receipt::genesis() || bytes.starts_with(CONTINUES.as_bytes())
}

fn split_hash(line: &[u8]) -> Option<(&[u8], &str)> {
    split_hex(line.strip_suffix(b"\"}")?, HASH_KEY)
}

/// Splits `…<key><64 hex>` into what is before the key, and the hex.
fn split_hex<'a>(text: &'a [u8], key: &[u8]) -> Option<(&'a [u8], &'a str)> {
    let (rest, hex) = text.split_at_checked(text.len().checked_sub(HEX_LEN)?)?;
    Some((rest.strip_suffix(key)?, hex_text(hex)?))
}

fn hex_text(hex: &[u8]) -> Option<&str> {
    let is_hex = hex.len() == HEX_LEN && hex.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    std::str::from_utf8(hex).ok().filter(|_| is_hex)
}
