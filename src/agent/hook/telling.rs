//! What the daemon is told of a session, and what it holds of it: begun, begun in the middle, in a fork, and added to.
//!
//! Promise: what the daemon will never take is kept as that, and holds up nothing that comes later.

use super::known::{is_empty, record};
use super::sight::Sighting;
use super::turn::{Turn, is_word, read};
use crate::agent::context::{belief, invariants};
use crate::client::{Client, ClientError};
use crate::protocol::context::{Belief, Context, Source};
use crate::protocol::refusal::Refusal;
use serde_json::json;

impl Turn<'_> {
    /// A session in a fork begins with what the session knew that the fork was made from, as it stands in the fork.
    pub(super) fn inherit(&self, client: &mut Client) -> Result<(), ClientError> {
        let fork = self.options.fork.as_deref().unwrap_or_default();
        let held: Context = match client.ask("context.get", &json!({ "session": fork })) {
            Ok(held) => read(&held)?,
            // Discarded meanwhile: nothing is known of it any more.
            Err(ClientError::Refused(_)) => return self.register(client, vec![earlier()], false),
            Err(error) => return Err(error),
        };
        let context =
            Context { session: Some(self.payload.session.clone()), agent: Some(self.agent()), ..held };
        client.ask("context.register", &context).map(drop)
    }

    pub(super) fn record(
        &self,
        client: &mut Client,
        sighting: Sighting,
        held: &Context,
    ) -> Result<(), ClientError> {
        let mut record = record(&self.payload.session, sighting, held);
        if is_empty(&record) {
            return Ok(());
        }
        // The session that was used last is the one to go on with.
        record.captured_at = Some(self.options.at.clone());
        match client.ask("context.record", &record) {
            Err(ClientError::Refused(refusal)) if !may_pass(&refusal) => self.mark(client, &refusal, held),
            recorded => recorded.map(drop),
        }
    }

    /// It will never be taken. That there was something stays known, and is never fresh; where there is no room even for
    /// that, it takes the place of a result, and then it is critical: the session cannot be judged any more.
    fn mark(&self, client: &mut Client, refusal: &Refusal, held: &Context) -> Result<(), ClientError> {
        let mut refused = volatile("refused", &format!("what the daemon would not take: {refusal}"));
        let session = &self.payload.session;
        let told = client.ask("context.record", &json!({ "session": session, "results": [refused] }));
        match (told, held.results.first().and_then(|result| result.id.as_ref())) {
            (Err(ClientError::Refused(again)), Some(id)) if !may_pass(&again) => {
                refused.critical = Some(true);
                let told = json!({ "session": session, "results": [refused], "remove": [id] });
                client.ask("context.record", &told).map(drop)
            }
            (told, _) => told.map(drop),
        }
    }

    /// What the session holds, as far as the daemon knows it.
    pub(super) fn held(&self, client: &mut Client) -> Result<Option<Context>, ClientError> {
        match client.ask("context.get", &json!({ "session": self.payload.session })) {
            Ok(held) => Ok(Some(read(&held)?)),
            Err(error) if is_word(&error, "not_found") || is_word(&error, "no_session_context") => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The same; a session that nobody has told of yet begins here, in the middle of it.
    pub(super) fn held_or_begun(&self, client: &mut Client) -> Result<Context, ClientError> {
        if let Some(held) = self.held(client)? {
            return Ok(held);
        }
        self.begin_midway(client)?;
        Ok(self.held(client)?.unwrap_or_default())
    }

    /// A session that nobody told of when it began; one in a fork knows what the fork was made with.
    pub(super) fn begin_midway(&self, client: &mut Client) -> Result<(), ClientError> {
        if self.options.fork.is_some() {
            return self.inherit(client);
        }
        // A sub-agent begins with nothing.
        let results = if self.payload.sub { Vec::new() } else { vec![earlier()] };
        self.register(client, results, false)
    }

    /// A sub-agent is no session to go on with.
    fn agent(&self) -> String {
        format!("{}{}", self.payload.agent.name(), if self.payload.sub { "/sub-agent" } else { "" })
    }

    pub(super) fn register(
        &self,
        client: &mut Client,
        results: Vec<Belief>,
        replace: bool,
    ) -> Result<(), ClientError> {
        let context = Context {
            session: Some(self.payload.session.clone()),
            agent: Some(self.agent()),
            root: Some(self.root.as_path().into()),
            captured_at: Some(self.options.at.clone()),
            results,
            invariants: invariants(&self.root),
            replace,
            ..Context::default()
        };
        client.ask("context.register", &context).map(drop)
    }
}

/// What a session read before anybody told of it. Nothing is known of it, so it is never fresh; and nothing can be done
/// about it, so it is not critical.
pub(super) fn earlier() -> Belief {
    volatile("before", "what this session read before staled was told of it")
}

pub(super) fn volatile(id: &str, what: &str) -> Belief {
    let what = Some(what.to_owned());
    belief(id.to_owned(), Source { kind: "volatile".to_owned(), what, ..Source::default() })
}

/// Whether the same may be taken later.
pub(super) fn may_pass(refusal: &Refusal) -> bool {
    matches!(refusal.word(), Some("overloaded" | "store_failed" | "log_failed" | "shutting_down"))
}
