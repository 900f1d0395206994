//! `subscribe`: from its answer on, this connection is told what happens.

use crate::daemon::subscribers::Wanted;
use crate::protocol::answer::{Subscribed, to_json};
use crate::protocol::convert;
use crate::protocol::event::Topic;
use crate::protocol::refusal::Refusal;
use crate::protocol::request::Subscribe;
use crate::session::SessionId;

/// What is wanted, and the answer that says so. A session need not be there yet.
pub(super) fn subscribe(ask: &Subscribe) -> Result<(Wanted, String), Refusal> {
    let known = Topic::ALL.map(Topic::word).join(", ");
    let mut topics = Vec::new();
    for word in &ask.topics {
        let Some(topic) = Topic::of(word) else {
            let word: String = word.chars().take(100).collect();
            return Err(Refusal::invalid_params(format!("there is no topic {word:?}; there are {known}")));
        };
        if !topics.contains(&topic) {
            topics.push(topic);
        }
    }
    if topics.is_empty() {
        return Err(Refusal::invalid_params(format!("topics names at least one of {known}")));
    }
    let session = ask.session.as_deref().map(convert::session).transpose()?;
    let answer = to_json(&Subscribed {
        subscribed: topics.iter().map(|topic| topic.word()).collect(),
        session: session.as_ref().map(SessionId::as_str),
    });
    Ok((Wanted { topics, session }, answer))
}
