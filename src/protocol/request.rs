//! What clients ask: one variant a verb.

use super::context::{Context, Goal};
use super::fork;
use super::memory;
use super::path::WirePath;
use super::refusal::Refusal;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A request line.
#[derive(Debug)]
pub struct Request {
    /// Echoed in the answer; `None` is a notification, which gets no answer.
    pub id: Option<Box<RawValue>>,
    /// What is asked, or why it cannot be.
    pub verb: Result<Verb, Refusal>,
}

/// One variant a verb.
#[derive(Debug)]
pub enum Verb {
    /// `hello`
    Hello,
    /// `context.register`
    Register(Box<Context>),
    /// `context.record`
    Record(Box<Context>),
    /// `context.get`
    Get(OfSession),
    /// `context.list`
    List(List),
    /// `context.drop`
    Drop(OfSession),
    /// `context.release`
    Release(Release),
    /// `decide`
    Decide(Box<Decide>),
    /// `status`
    Status(Status),
    /// `touch_ack`
    TouchAck(TouchAck),
    /// `fact.refute`
    Refute(Refute),
    /// `subscribe`
    Subscribe(Subscribe),
    /// `log.read`
    LogRead(LogRead),
    /// `check`
    Check(Check),
    /// `fork.*`
    Fork(Box<fork::Ask>),
    /// `mem_*`
    Memory(Box<memory::Ask>),
    /// `metrics`
    Metrics,
    /// `reload`
    Reload,
    /// `shutdown`
    Shutdown,
}

/// Every method that [`Verb::method`] gives, `hello` first.
pub const METHODS: [&str; 35] = [
    "hello",
    "context.register",
    "context.record",
    "context.get",
    "context.list",
    "context.drop",
    "context.release",
    "decide",
    "status",
    "touch_ack",
    "fact.refute",
    "subscribe",
    "log.read",
    "check",
    "fork.create",
    "fork.list",
    "fork.status",
    "fork.access",
    "fork.exec",
    "fork.merge",
    "fork.discard",
    "fork.reprovision",
    "mem_session_start",
    "mem_save",
    "mem_session_summary",
    "mem_session_end",
    "mem_search",
    "mem_get_observation",
    "mem_timeline",
    "mem_stats",
    "mem_list_sessions",
    "mem_forget",
    "metrics",
    "reload",
    "shutdown",
];

impl Verb {
    /// The method that asks for it.
    #[must_use]
    pub fn method(&self) -> &'static str {
        match self {
            Self::Hello => "hello",
            Self::Register(_) => "context.register",
            Self::Record(_) => "context.record",
            Self::Get(_) => "context.get",
            Self::List(_) => "context.list",
            Self::Drop(_) => "context.drop",
            Self::Release(_) => "context.release",
            Self::Decide(_) => "decide",
            Self::Status(_) => "status",
            Self::TouchAck(_) => "touch_ack",
            Self::Refute(_) => "fact.refute",
            Self::Subscribe(_) => "subscribe",
            Self::LogRead(_) => "log.read",
            Self::Check(_) => "check",
            Self::Fork(ask) => ask.method(),
            Self::Memory(ask) => ask.method(),
            Self::Metrics => "metrics",
            Self::Reload => "reload",
            Self::Shutdown => "shutdown",
        }
    }

    /// The session that it names, as the client spelled it.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        match self {
            Self::Register(context) | Self::Record(context) => context.session.as_deref(),
            Self::Get(ask) | Self::Drop(ask) => Some(&ask.session),
            Self::Release(ask) => Some(&ask.session),
            Self::Decide(ask) => Some(&ask.session),
            Self::Status(ask) => ask.session.as_deref(),
            Self::TouchAck(ask) => Some(&ask.session),
            Self::Refute(ask) => Some(&ask.session),
            Self::Subscribe(ask) => ask.session.as_deref(),
            Self::Fork(ask) => ask.session(),
            Self::Hello | Self::List(_) | Self::LogRead(_) | Self::Check(_) | Self::Memory(_) => None,
            Self::Metrics | Self::Reload | Self::Shutdown => None,
        }
    }
}

/// Names one session.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfSession {
    /// The session.
    pub session: String,
}

/// Parameters of `context.release`: a process no longer holds a session.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// The session.
    pub session: String,
    /// The process.
    pub holder: Holder,
}

/// Parameters of `context.list`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// Only sessions of this root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<WirePath>,
    /// Only sessions of this user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

/// Parameters of `decide`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decide {
    /// The session.
    pub session: String,
    /// Replaces the session's goal for this decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<Goal>,
    /// `all` (default) or `stale`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<String>,
    /// How long to wait for verification, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// Provision the branches of a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provision: Option<bool>,
    /// Add facts from the user's memory to what a fresh start carries on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<bool>,
    /// The process that is about to go on with the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
}

/// A process that holds a session.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Holder {
    /// Its process id.
    pub pid: u32,
}

/// Parameters of `status`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// The session; without it, the daemon's own health.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Of a session: `all` (default) or `stale`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<String>,
}

/// Parameters of `touch_ack`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TouchAck {
    /// The session.
    pub session: String,
    /// The path that the agent wrote.
    pub path: WirePath,
    /// What it wrote.
    pub digest: String,
}

/// Parameters of `fact.refute`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refute {
    /// The session.
    pub session: String,
    /// Id of the fact that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fact: Option<String>,
    /// Result id, invariant name or path that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<WirePath>,
    /// What was observed instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<String>,
}

/// Parameters of `subscribe`. A later one on the same connection takes the place of an earlier one.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subscribe {
    /// `staleness`, `decision`, `fork`, `gap`; at least one of them.
    pub topics: Vec<String>,
    /// Only what concerns this session; gaps concern all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// Parameters of `log.read`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogRead {
    /// Only lines behind this sequence number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// At most this many lines, 1 to 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// The last lines instead of the first ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tail: bool,
}

/// Parameters of `check`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// The report to be judged, as its text stands: a key that stands twice would not survive being parsed.
    pub report: Box<RawValue>,
}

#[derive(Deserialize)]
struct Envelope<'line> {
    #[serde(borrow, default)]
    jsonrpc: Option<Cow<'line, str>>,
    #[serde(default, deserialize_with = "present")]
    id: Option<Box<RawValue>>,
    #[serde(borrow)]
    method: Cow<'line, str>,
    #[serde(borrow, default)]
    params: Option<&'line RawValue>,
}

/// An `id` that stands there, `null` too, is an id.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

impl Request {
    /// Parses a request line. `Err` carries the answer to a line that has no usable id.
    pub fn parse(line: &[u8]) -> Result<Self, Refusal> {
        let text = std::str::from_utf8(line).map_err(Refusal::parse)?;
        if text.trim_start().starts_with('[') {
            return Err(Refusal::invalid_request("batches are not taken; send one object a line"));
        }
        let envelope: Envelope<'_> = serde_json::from_str(text).map_err(|error| {
            if error.is_data() { Refusal::invalid_request(error) } else { Refusal::parse(error) }
        })?;
        if envelope.id.as_deref().is_some_and(|id| id.get().starts_with(['{', '[', 't', 'f'])) {
            return Err(Refusal::invalid_request("id must be a string, a number or null"));
        }
        let refusal = || Refusal::invalid_request("jsonrpc must be \"2.0\"");
        let verb = match (envelope.jsonrpc.as_deref(), &envelope.id) {
            (Some("2.0"), _) => verb(&envelope.method, envelope.params),
            (_, Some(_)) => Err(refusal()),
            // What is no request is no notification either: whoever sent it waits for a word.
            (_, None) => return Err(refusal()),
        };
        Ok(Self { id: envelope.id, verb })
    }
}

fn fork(ask: fork::Ask) -> Verb {
    Verb::Fork(Box::new(ask))
}

fn mem(ask: memory::Ask) -> Verb {
    Verb::Memory(Box::new(ask))
}

fn verb(method: &str, params: Option<&RawValue>) -> Result<Verb, Refusal> {
    Ok(match method {
        "hello" => Verb::Hello,
        "context.register" => Verb::Register(parse(params)?),
        "context.record" => Verb::Record(parse(params)?),
        "context.get" => Verb::Get(parse(params)?),
        "context.list" => Verb::List(parse(params)?),
        "context.drop" => Verb::Drop(parse(params)?),
        "context.release" => Verb::Release(parse(params)?),
        "decide" => Verb::Decide(parse(params)?),
        "status" => Verb::Status(parse(params)?),
        "touch_ack" => Verb::TouchAck(parse(params)?),
        "fact.refute" => Verb::Refute(parse(params)?),
        "subscribe" => Verb::Subscribe(parse(params)?),
        "log.read" => Verb::LogRead(parse(params)?),
        "check" => Verb::Check(parse(params)?),
        "fork.create" => fork(fork::Ask::Create(parse(params)?)),
        "fork.list" => fork(fork::Ask::List(parse(params)?)),
        "fork.status" => fork(fork::Ask::Status(parse(params)?)),
        "fork.access" => fork(fork::Ask::Access(parse(params)?)),
        "fork.exec" => fork(fork::Ask::Exec(parse(params)?)),
        "fork.merge" => fork(fork::Ask::Merge(parse(params)?)),
        "fork.discard" => fork(fork::Ask::Discard(parse(params)?)),
        "fork.reprovision" => fork(fork::Ask::Reprovision(parse(params)?)),
        "mem_session_start" => mem(memory::Ask::Start(parse(params)?)),
        "mem_save" => mem(memory::Ask::Save(parse(params)?)),
        "mem_session_summary" => mem(memory::Ask::Summary(parse(params)?)),
        "mem_session_end" => mem(memory::Ask::End(parse(params)?)),
        "mem_search" => mem(memory::Ask::Search(parse(params)?)),
        "mem_get_observation" => mem(memory::Ask::Get(parse(params)?)),
        "mem_timeline" => mem(memory::Ask::Timeline(parse(params)?)),
        "mem_stats" => mem(memory::Ask::Stats(parse(params)?)),
        "mem_list_sessions" => mem(memory::Ask::ListSessions(parse(params)?)),
        "mem_forget" => mem(memory::Ask::Forget(parse(params)?)),
        "metrics" => Verb::Metrics,
        "reload" => Verb::Reload,
        "shutdown" => Verb::Shutdown,
        other => return Err(Refusal::method_not_found(other)),
    })
}

fn parse<'params, T: Deserialize<'params>>(params: Option<&'params RawValue>) -> Result<T, Refusal> {
    let params = params.map_or("{}", RawValue::get);
    // A list would be taken by position, which is an accident of how parameters happen to be ordered here.
    if params.starts_with('[') {
        return Err(Refusal::invalid_params("parameters are an object with named fields, not a list"));
    }
    serde_json::from_str(params).map_err(Refusal::invalid_params)
}

/// A request line for a method, without its line feed.
#[must_use]
pub fn line(id: u64, method: &str, params: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Out<'line, P> {
        jsonrpc: &'static str,
        id: u64,
        method: &'line str,
        params: &'line P,
    }
    serde_json::to_string(&Out { jsonrpc: "2.0", id, method, params })
        .expect("because parameters are made of strings, numbers and paths")
}
