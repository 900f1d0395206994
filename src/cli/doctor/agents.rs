//! Whether the hooks that are installed reach the daemon: the very command that an agent runs is run, with an event that
//! changes nothing, and the daemon is asked whether it heard of it.
//!
//! An agent that has no settings here is not used here, and nothing is said of it.

use super::Finding;
use super::answers::Asked;
use crate::cli::install::agent::{Agent, Scope};
use crate::cli::install::hooks::{Own, own};
use crate::cli::install::{AGENTS, program};
use crate::cli::words::quoted;
use crate::client::Client;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than agents wait: a machine under load is not what is looked for.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(5);
/// Of no agent.
const SESSION: &str = "staled-doctor";

pub(super) fn check(socket: &Path, asked: &Asked) -> Vec<Finding> {
    AGENTS.into_iter().flat_map(|agent| of_agent(agent, socket, asked)).collect()
}

fn of_agent(agent: &Agent, socket: &Path, asked: &Asked) -> Vec<Finding> {
    let Ok(scope) = agent.own() else { return Vec::new() };
    let path = agent.settings(&scope);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            let found = format!("{} cannot be read: {error}", path.display());
            return vec![Finding::wrong(agent.name, found, format!("see `ls -l {}`", quoted(&path)))];
        }
    };
    match agent.parse(&text) {
        Err(fault) => {
            let found = format!("{}:{}:{}: {}", path.display(), fault.line, fault.column, fault.why);
            vec![Finding::wrong(agent.name, found, "mend that line: no hook of the file runs")]
        }
        Ok(doc) => {
            let mut findings = vec![hooks(agent, &own(&doc, agent), &path, socket, asked)];
            findings.extend(off(agent, &scope).filter(|_| !own(&doc, agent).is_empty()));
            findings
        }
    }
}

/// That hooks are installed and do not run is worth nothing.
fn off(agent: &Agent, scope: &Scope) -> impl Iterator<Item = Finding> {
    let said = (agent.off)(scope).into_iter();
    said.map(|why| Finding::wrong(agent.name, why, "take that out, or nothing is told and nothing is heard"))
}

fn hooks(agent: &Agent, found: &[Own], path: &Path, socket: &Path, asked: &Asked) -> Finding {
    let install = format!("`staled install {}`", agent.name);
    let shown = path.display();
    if found.is_empty() {
        return Finding::well(agent.name, format!("no hook of ours in {shown}; {install} adds them"));
    }
    let there: BTreeSet<&str> = found.iter().map(|own| own.event.as_str()).collect();
    let missing: Vec<&str> = agent.wanted().filter(|event| !there.contains(event)).collect();
    if !missing.is_empty() {
        let why = format!("{shown} has no hook of ours at {}", missing.join(", "));
        return Finding::wrong(agent.name, why, format!("{install} adds it"));
    }
    let gone = found.iter().find(|own| own.program.is_absolute() && !program::runs(&own.program));
    if let Some(own) = gone {
        let why = format!("the hooks run {}, which is no program", own.program.display());
        return Finding::wrong(agent.name, why, format!("{install} has them run this one"));
    }
    if asked.hello.is_err() {
        return Finding::well(
            agent.name,
            format!("hooks in {shown}; whether they reach a daemon is not known without one"),
        );
    }
    // Installed, all of them run the same; changed by hand, each may run something else.
    let mut tried = BTreeSet::new();
    let each = found
        .iter()
        .filter(|own| tried.insert(own.entry["command"].to_string() + &own.entry["args"].to_string()));
    match each.map(|own| reaches(agent, own, socket)).find(Result::is_err).unwrap_or(Ok(())) {
        Ok(()) => Finding::well(agent.name, format!("hooks in {shown} reach the daemon{}", agent.unchecked)),
        Err(why) => Finding::wrong(
            agent.name,
            format!("a hook was run, and {why}"),
            format!("try it: {install}, then `staled doctor`"),
        ),
    }
}

/// Runs the hook as the agent does, and holds what it says against what the daemon heard.
fn reaches(agent: &Agent, own: &Own, socket: &Path) -> Result<(), String> {
    let heard = |what: &str| releases(socket).ok_or_else(|| format!("the daemon does not tell {what} it"));
    let before = heard("what it knew before")?;
    let complaint = run(own, agent)?;
    if !complaint.is_empty() {
        return Err(format!("it said: {complaint}"));
    }
    if heard("whether it heard of")? == before {
        return Err(format!("the daemon at {} did not hear of it", socket.display()));
    }
    Ok(())
}

/// How often the daemon was told that a process no longer holds a session, which is what the event says.
fn releases(socket: &Path) -> Option<u64> {
    let answer = Client::connect(socket).ok()?.ask("metrics", &json!({})).ok()?;
    let answer: Value = serde_json::from_str(&answer).ok()?;
    let text = answer.as_str()?;
    let line =
        text.lines().find(|line| line.starts_with("staled_requests_total{method=\"context.release\"}"))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// What the hook complained of; nothing where all went well.
fn run(own: &Own, agent: &Agent) -> Result<String, String> {
    let text = own.entry["command"].as_str().unwrap_or_default();
    let arguments: Vec<&str> =
        own.entry["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    // With arguments of its own it is run without a shell.
    let mut command = if arguments.is_empty() { Command::new("/bin/sh") } else { Command::new(text) };
    if arguments.is_empty() {
        command.args(["-c", text])
    } else {
        command.args(arguments)
    };
    let event = json!({"session_id": SESSION, "cwd": "/", "hook_event_name": agent.rests});
    let started = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = started.map_err(|error| format!("it cannot be run: {error}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that reads nothing says so by what it does not do.
        let _ = stdin.write_all(event.to_string().as_bytes());
    }
    wait(&mut child)?;
    let ended = child.wait_with_output().map_err(|error| error.to_string())?;
    if !ended.status.success() {
        return Ok(format!("{} ({})", String::from_utf8_lossy(&ended.stderr).trim(), ended.status));
    }
    Ok(String::from_utf8_lossy(&ended.stderr).trim().to_owned())
}

fn wait(child: &mut Child) -> Result<(), String> {
    let began = Instant::now();
    while child.try_wait().map_err(|error| error.to_string())?.is_none() {
        if began.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("it did not end within {} s", PATIENCE.as_secs()));
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}
