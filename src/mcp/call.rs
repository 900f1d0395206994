//! One call of a tool: asked of the daemon, answered as JSON text, or failed with a code and a sentence.
//!
//! Blocking; whoever calls it from a runtime gives it a thread.

use super::path;
use super::schema::{Object, complete};
use super::tools::{Does, Tool};
use crate::client::story::OfDecision;
use crate::client::{Client, ClientError, parse};
use crate::index::freshness::Doubt;
use crate::protocol::path::WirePath;
use crate::protocol::request::Status;
use crate::world::login_name;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Rows above which those that are fresh are left out, and most that are listed: as in a report.
const ROWS_MAX: usize = 1_000;
/// Shortest beginning of a decision's id that is looked for.
const DECISION_CHARS_MIN: usize = 6;

/// Why a call has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failed {
    /// For programs.
    pub(super) code: String,
    /// One sentence, with the remedy where there is one.
    pub(super) message: String,
}

impl Failed {
    pub(super) fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into() }
    }
}

impl From<ClientError> for Failed {
    fn from(error: ClientError) -> Self {
        let code = match &error {
            ClientError::Refused(refusal) => refusal.outcome(),
            ClientError::NoDaemon { .. } => "no_daemon",
            ClientError::NotTrusted { .. } => "not_trusted",
            ClientError::Broken { .. } => "connection_broken",
            ClientError::Late { .. } => "late",
            ClientError::Nonsense(_) => "nonsense",
        };
        Self::new(code, error.to_string())
    }
}

/// A connection to the daemon at the first of these sockets that has one.
pub(super) fn reach(sockets: &[PathBuf]) -> Result<Client, ClientError> {
    let mut tried = sockets.iter().map(|socket| Client::connect(socket));
    let first = tried.next().expect("because there is a usual socket");
    // Where nobody is anywhere, the first is where somebody was looked for.
    first.or_else(|error| tried.find_map(Result::ok).ok_or(error))
}

/// Calls a tool; what it answers is JSON text.
pub(super) fn call(tool: &Tool, told: Object, sockets: &[PathBuf]) -> Result<String, Failed> {
    let told = complete(tool.fields, told, login_name).map_err(|why| Failed::new("invalid_params", why))?;
    let mut client = reach(sockets)?;
    match tool.does {
        Does::Forward(method) => Ok(client.ask(method, &told)?),
        Does::Status => status(&told, &mut client),
        Does::StaleCheck => stale_check(taken(told)?, &mut client),
        Does::Why => why(taken(told)?, &mut client),
    }
}

fn taken<T: for<'told> Deserialize<'told>>(told: Object) -> Result<T, Failed> {
    serde_json::from_value(told.into()).map_err(|error| Failed::new("invalid_params", error.to_string()))
}

fn status(told: &Object, client: &mut Client) -> Result<String, Failed> {
    let answer = client.ask("status", told)?;
    let mut parsed: Value = parse(&answer)?;
    match parsed["rows"].as_array_mut() {
        Some(rows) if rows.len() > ROWS_MAX => {
            rows.retain(|row| row["status"] != "fresh");
            Ok(parsed.to_string())
        }
        _ => Ok(answer),
    }
}

#[derive(Deserialize)]
struct StaleCheck {
    session: String,
    #[serde(default)]
    paths: Vec<WirePath>,
}

fn stale_check(ask: StaleCheck, client: &mut Client) -> Result<String, Failed> {
    let status: Value =
        parse(&client.ask("status", &Status { session: Some(ask.session), ..Status::default() })?)?;
    let rows = status["rows"].as_array().map(Vec::as_slice).unwrap_or_default();
    let stale: Vec<&Value> = rows.iter().filter(|row| row["status"] != "fresh").collect();
    let mut answer = json!({
        "session": status["session"],
        "clock": status["clock"],
        "counts": status["counts"],
        "stale": stale.iter().take(ROWS_MAX).collect::<Vec<_>>(),
    });
    if stale.len() > ROWS_MAX {
        answer["stale_omitted"] = json!(stale.len() - ROWS_MAX);
    }
    if !ask.paths.is_empty() {
        let root: WirePath = serde_json::from_value(status["root"].clone())
            .map_err(|error| Failed::new("nonsense", error.to_string()))?;
        answer["paths"] = path::judged(&ask.paths, &root.0, rows).into();
    }
    Ok(answer.to_string())
}

/// Whether what is known of a row is that nothing can be told.
pub(super) fn is_unknown(row: &Value) -> bool {
    let cause = row["cause"].as_str().unwrap_or_default();
    row["status"] == "unknown" || Doubt::named(cause).is_some()
}

#[derive(Deserialize)]
struct Why {
    #[serde(default)]
    decision: Option<String>,
    #[serde(default)]
    path: Option<WirePath>,
    #[serde(default)]
    session: Option<String>,
}

fn why(ask: Why, client: &mut Client) -> Result<String, Failed> {
    match (ask.decision, ask.path) {
        (Some(decision), None) => why_decision(&decision, ask.session.as_deref(), client),
        (None, Some(path)) => path::why(&path, ask.session.as_deref(), client),
        _ => Err(Failed::new(
            "invalid_params",
            "why is asked of a decision or of a path: one of them, not both",
        )),
    }
}

fn why_decision(id: &str, session: Option<&str>, client: &mut Client) -> Result<String, Failed> {
    if !id.starts_with("d-") || id.chars().count() < DECISION_CHARS_MIN {
        return Err(Failed::new(
            "invalid_params",
            "a decision's id is d- and at least four characters of the rest",
        ));
    }
    let found = OfDecision::find(id, client)?
        .filter(|story| session.is_none_or(|session| story.decision.line["session"] == session));
    let Some(story) = found else {
        let of = session.map(|session| format!(" for session {session:?}")).unwrap_or_default();
        return Err(Failed::new("not_found", format!("the decision log knows no decision {id:?}{of}")));
    };
    let answer = json!({
        "decision": story.decision.line,
        "before": story.before.as_ref().map(in_short),
        "after": story.after.as_ref().map(in_short),
    });
    Ok(answer.to_string())
}

/// A decision without its rows.
pub(super) fn in_short(line: &Value) -> Value {
    let mut short = Object::new();
    for name in ["decision", "session", "decided_at", "transition", "reason", "supersedes"] {
        short.insert(name.to_owned(), line[name].clone());
    }
    short.into()
}

#[cfg(test)]
mod tests {
    use super::reach;
    use crate::client::ClientError;
    use std::os::unix::net::UnixListener;

    #[test]
    fn the_first_daemon_that_is_there_is_asked() {
        let folder = tempfile::tempdir().expect("a folder");
        let [gone, left, there] = ["gone", "left", "there"].map(|name| folder.path().join(name));
        // Of a daemon that was killed.
        drop(UnixListener::bind(&left).expect("a socket"));
        let sockets = [gone.clone(), left, there.clone()];
        let nobody = reach(&sockets);
        assert!(
            matches!(&nobody, Err(ClientError::NoDaemon { socket, .. }) if *socket == gone),
            "{nobody:?}"
        );
        let daemon = UnixListener::bind(&there).expect("a socket");
        reach(&sockets).expect("a connection");
        daemon.accept().expect("it came here");
    }
}
