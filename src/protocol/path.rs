//! Paths on the wire: a string, or `{"bytes": "<base64>"}` where the name is not UTF-8.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A path as it travels.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WirePath(pub PathBuf);

impl From<&Path> for WirePath {
    fn from(path: &Path) -> Self {
        Self(path.to_owned())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bytes {
    bytes: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Spelled {
    Text(String),
    Bytes(Bytes),
}

impl Serialize for WirePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => serializer.serialize_str(text),
            None => Bytes { bytes: STANDARD.encode(self.0.as_os_str().as_bytes()) }.serialize(serializer),
        }
    }
}

/// What a client meant by an id or by a path, or what a row goes by: an id, a command's text or an invariant's name may be
/// anything, so whatever was written is read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference(pub PathBuf);

impl Serialize for Reference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        WirePath(self.0.clone()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Reference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        spelled(deserializer).map(|name| Self(name.into()))
    }
}

fn spelled<'de, D: Deserializer<'de>>(deserializer: D) -> Result<OsString, D::Error> {
    let refused = |_| D::Error::custom("a path is a string or {\"bytes\": \"<base64>\"}");
    match Spelled::deserialize(deserializer).map_err(refused)? {
        Spelled::Text(text) => Ok(OsString::from(text)),
        Spelled::Bytes(Bytes { bytes }) => match STANDARD.decode(bytes) {
            Ok(bytes) => Ok(OsString::from_vec(bytes)),
            Err(error) => Err(D::Error::custom(format!("bytes of a path: {error}"))),
        },
    }
}

impl<'de> Deserialize<'de> for WirePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = spelled(deserializer)?;
        if name.is_empty() || name.as_bytes().contains(&0) {
            return Err(D::Error::custom("a path is not empty and holds no NUL"));
        }
        Ok(Self(name.into()))
    }
}

/// Bytes that travel as base64.
pub(super) fn decode_base64(text: &str) -> Result<Vec<u8>, String> {
    STANDARD.decode(text).map_err(|error| error.to_string())
}
