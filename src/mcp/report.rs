//! The resources: of each session, the report of the last decision about it. Reading one decides nothing.

use super::call::{Failed, reach};
use crate::client::story::{last_decision, roots};
use std::fmt::Write;
use std::path::PathBuf;

/// Sessions that are listed at once.
pub(super) const PAGE_LEN: usize = 200;
/// How a resource is addressed.
pub(super) const TEMPLATE: &str = "staled://session/{session}/report";

const BEFORE: &str = "staled://session/";
const BEHIND: &str = "/report";

/// The names of sessions that follow another one in order, and whether there are more than these.
pub(super) fn listed(behind: Option<&str>, sockets: &[PathBuf]) -> Result<(Vec<String>, bool), Failed> {
    let names = roots(&mut reach(sockets)?)?.into_keys();
    let mut names: Vec<String> =
        names.filter(|name| behind.is_none_or(|behind| name.as_str() > behind)).collect();
    let more = names.len() > PAGE_LEN;
    names.truncate(PAGE_LEN);
    Ok((names, more))
}

/// The last report about a session, as it stands in the decision log; none where nothing was decided.
pub(super) fn read(session: &str, sockets: &[PathBuf]) -> Result<Option<String>, Failed> {
    Ok(last_decision(session, &mut reach(sockets)?)?.map(|entry| entry.raw))
}

/// The address of a session's report.
pub(super) fn address(session: &str) -> String {
    let mut address = BEFORE.to_owned();
    for byte in session.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            address.push(char::from(byte));
        } else {
            write!(address, "%{byte:02X}").expect("because a string takes whatever is written");
        }
    }
    address + BEHIND
}

/// The session whose report is at an address.
pub(super) fn session_at(address: &str) -> Option<String> {
    let spelled = address.strip_prefix(BEFORE)?.strip_suffix(BEHIND)?;
    let mut bytes = Vec::new();
    let mut rest = spelled.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, behind) = rest.split_at_checked(2)?;
        let [high, low] = [digits[0], digits[1]].map(|digit| char::from(digit).to_digit(16));
        bytes.push((high? * 16 + low?) as u8);
        rest = behind;
    }
    String::from_utf8(bytes).ok().filter(|session| !session.is_empty())
}

#[cfg(test)]
mod tests {
    use super::{address, session_at};

    #[test]
    fn an_address_is_read_back_whatever_the_session_is_called() {
        for session in ["s-01", "a/b", "a b%20?#", "s-01/in-the-readme", "é\n", "/report"] {
            assert_eq!(session_at(&address(session)).as_deref(), Some(session), "{}", address(session));
        }
        assert_eq!(address("a/é"), "staled://session/a%2F%C3%A9/report");
        // Spelled by a client that knows less of escapes.
        assert_eq!(session_at("staled://session/a/b/report").as_deref(), Some("a/b"));
    }

    #[test]
    fn what_is_no_address_names_no_session() {
        for odd in
            ["", "staled://session//report", "staled://session/%/report", "staled://session/%ff/report"]
        {
            assert_eq!(session_at(odd), None, "{odd}");
        }
        assert_eq!(session_at("staled://session/%+1/report"), None);
        assert_eq!(session_at("file:///etc/passwd"), None);
    }
}
