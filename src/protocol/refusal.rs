//! Why a request is refused: a code for programs, and one sentence that a person can act on.

use serde::{Deserialize, Serialize};
use std::fmt;

/// An error as JSON-RPC carries it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Refusal {
    /// JSON-RPC code: −32700 to −32600 for the protocol's own, −32000 for the application's.
    pub code: i64,
    /// One sentence.
    pub message: String,
    /// The application's own code, in `data.code`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Data>,
}

/// What an application error adds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Data {
    /// `no_session_context`, `not_found`, `too_large`, …
    pub code: String,
    /// The same sentence again, for clients that show `data` only.
    pub message: String,
}

impl Refusal {
    /// The line is not JSON.
    #[must_use]
    pub fn parse(error: impl fmt::Display) -> Self {
        Self { code: -32700, message: format!("the line is not a JSON object: {error}"), data: None }
    }

    /// The line is JSON but no request.
    #[must_use]
    pub fn invalid_request(why: impl fmt::Display) -> Self {
        Self { code: -32600, message: public(&format!("not a JSON-RPC 2.0 request: {why}")), data: None }
    }

    /// Nobody knows the method.
    #[must_use]
    pub fn method_not_found(method: &str) -> Self {
        let method: String = method.chars().take(100).collect();
        Self {
            code: -32601,
            message: public(&format!("there is no method {method:?}; hello says which there are")),
            data: None,
        }
    }

    /// The parameters do not fit the method.
    #[must_use]
    pub fn invalid_params(why: impl fmt::Display) -> Self {
        Self { code: -32602, message: public(&why.to_string()), data: None }
    }

    /// The application refuses.
    #[must_use]
    pub fn application(code: &str, message: impl fmt::Display) -> Self {
        let message = public(&message.to_string());
        Self { code: -32000, message: message.clone(), data: Some(Data { code: code.to_owned(), message }) }
    }

    /// The application's own code, if it is the application's.
    #[must_use]
    pub fn word(&self) -> Option<&str> {
        self.data.as_ref().map(|data| data.code.as_str())
    }

    /// One word for every refusal: the application's own code, or the protocol's in words.
    #[must_use]
    pub fn outcome(&self) -> &str {
        match (self.word(), self.code) {
            (Some(word), _) => word,
            (None, -32700) => "parse_error",
            (None, -32600) => "invalid_request",
            (None, -32601) => "method_not_found",
            (None, -32602) => "invalid_params",
            (None, _) => "other",
        }
    }
}

/// The sentence, up to where it may quote something private. Quoted, a tag may have escapes in it and be none any more, so it is
/// not looked for as one.
fn public(sentence: &str) -> String {
    let quoted = sentence.split_once('<').filter(|(_, rest)| rest.to_ascii_lowercase().contains("private"));
    quoted.map_or_else(|| sentence.to_owned(), |(before, _)| format!("{before}…"))
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}
