//! Where everything stands: every key of a user begins with the user's number.
//!
//! What a user may want forgotten is in no key: a topic key and a wording go by their digests.

/// How much of a digest tells two texts of one user apart.
const DIGEST_BYTES: usize = 16;

const OBSERVATION: u8 = 0;
const SESSION: u8 = 1;

/// Everything of a user.
pub(super) fn of_user(user: u32) -> Vec<u8> {
    user.to_be_bytes().to_vec()
}

/// In [`Table::UserSessions`](crate::index::storage::Table::UserSessions), and what begins the keys of what was saved in
/// it in [`Table::SavedIn`](crate::index::storage::Table::SavedIn).
pub(super) fn session(user: u32, session: u32) -> Vec<u8> {
    [user.to_be_bytes(), session.to_be_bytes()].concat()
}

pub(super) fn observation(user: u32, id: u64) -> Vec<u8> {
    [&user.to_be_bytes()[..], &id.to_be_bytes()].concat()
}

pub(super) fn revision(user: u32, id: u64, revision: u32) -> Vec<u8> {
    [&observation(user, id)[..], &revision.to_be_bytes()].concat()
}

pub(super) fn saved_in(user: u32, session: u32, id: u64) -> Vec<u8> {
    [&self::session(user, session)[..], &id.to_be_bytes()].concat()
}

/// The session that a key of [`saved_in`] is of.
pub(super) fn saved_session(key: &[u8]) -> Option<u32> {
    let (rest, _) = key.split_last_chunk::<8>()?;
    last_no(rest)
}

/// What begins the key of every observation that says the same.
pub(super) fn wording(user: u32, kind: &str, content: &str) -> Vec<u8> {
    let kind_len = (kind.len() as u64).to_be_bytes();
    digest(user, &[&kind_len, kind.as_bytes(), content.as_bytes()])
}

pub(super) fn worded(user: u32, kind: &str, content: &str, id: u64) -> Vec<u8> {
    [&wording(user, kind, content)[..], &id.to_be_bytes()].concat()
}

pub(super) fn topic(user: u32, topic_key: &str) -> Vec<u8> {
    digest(user, &[topic_key.as_bytes()])
}

fn digest(user: u32, parts: &[&[u8]]) -> Vec<u8> {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    [&user.to_be_bytes()[..], &hasher.finalize().as_bytes()[..DIGEST_BYTES]].concat()
}

/// The words of a revision.
pub(super) fn words(user: u32, id: u64, revision: u32) -> Vec<u8> {
    [&user.to_be_bytes()[..], &[OBSERVATION], &id.to_be_bytes(), &revision.to_be_bytes()].concat()
}

/// The summary of a session.
pub(super) fn summary(user: u32, session: u32) -> Vec<u8> {
    [&user.to_be_bytes()[..], &[SESSION], &session.to_be_bytes()].concat()
}

/// The number that a key ends with.
pub(super) fn last_id(key: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(*key.last_chunk()?))
}

/// The observation and the revision that a key of [`revision`] is of.
pub(super) fn revised(key: &[u8]) -> Option<(u64, u32)> {
    let (rest, revision) = key.split_last_chunk()?;
    Some((last_id(rest)?, u32::from_be_bytes(*revision)))
}

/// The number of a revision or a session that a key ends with.
pub(super) fn last_no(key: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(*key.last_chunk()?))
}
