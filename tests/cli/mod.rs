//! The real program, run as a shell would run it, against a daemon of its own.

mod activation;
mod anchors;
mod commands;
mod confine;
mod crowd;
mod deaf;
mod decide;
mod doctor;
pub(crate) mod export;
mod fork;
mod help;
mod hostile;
mod impasse;
mod import;
mod install;
mod journald;
mod mem;
mod metrics;
mod offline;
mod page;
#[cfg(debug_assertions)]
mod panics;
mod programs;
mod real;
mod replay;
mod rescan;
mod run;
mod screen;
mod secrets;
pub(crate) mod serve;
mod trace;
mod watch;

use crate::harness::Place;
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a run left behind.
#[derive(Debug)]
pub(crate) struct Run {
    code: i32,
    pub(crate) out: String,
    err: String,
}

impl Run {
    /// The run did what was asked.
    fn ok(self) -> Self {
        self.ends(0)
    }

    pub(crate) fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }

    /// What it complained about.
    pub(crate) fn err(&self) -> &str {
        &self.err
    }

    /// Standard output, one line of JSON.
    fn json(&self) -> Value {
        assert_eq!(self.out.matches('\n').count(), 1, "one line: {self:?}");
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// It failed with this code, said this, and gave no data.
    pub(crate) fn fails(&self, code: i32, saying: &str) {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.err.contains(saying), "{saying:?} is not in {self:?}");
        assert_eq!(self.out, "", "data of a failure");
    }
}

/// The program in an environment of nothing but a home below the place.
fn program(place: &Place) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_staled"));
    command.env_clear().env("HOME", &place.home).env("STALED_JOURNAL_SOCKET", "/nowhere/journal");
    command.stdin(Stdio::null()).current_dir(&place.root);
    command
}

/// Runs it to its end.
pub(crate) fn staled(place: &Place, socket: &Path, args: &[&str]) -> Run {
    feed(place, socket, args, "")
}

/// The same with something on its standard input.
pub(crate) fn feed(place: &Place, socket: &Path, args: &[&str], input: &str) -> Run {
    feed_in(place, &[("STALED_SOCKET".to_owned(), socket.to_string_lossy().into_owned())], args, input)
}

/// The same with these variables in its environment.
pub(crate) fn feed_in(place: &Place, environment: &[(String, String)], args: &[&str], input: &str) -> Run {
    let mut command = program(place);
    command.envs(environment.iter().cloned()).args(args);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut stdin = child.stdin.take().expect("it was piped");
    // A program that does not read its input closes it.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    run_of(child.wait_with_output().expect("it ends"))
}

/// Runs it with nobody reading its standard output.
fn unread(place: &Place, socket: &Path, args: &[&str]) -> Run {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = program(place);
    command.env("STALED_SOCKET", socket).args(args);
    run_of(command.stdout(writer).stderr(Stdio::piped()).output().expect("it runs"))
}

fn run_of(output: std::process::Output) -> Run {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    let code = output.status.code().unwrap_or_else(|| panic!("ended by {}", output.status));
    Run { code, out: text(output.stdout), err: text(output.stderr) }
}

/// A file with a JSON value, outside the watched root.
fn json_file(place: &Place, name: &str, value: &Value) -> String {
    let path = place.home.with_file_name(name);
    std::fs::write(&path, value.to_string()).expect("a file");
    path.to_str().expect("UTF-8").to_owned()
}

/// Runs git in the root, with an identity and no configuration of anybody's.
fn git(place: &Place, args: &[&str]) {
    let mut command = Command::new("git");
    command.current_dir(&place.root).args([
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@t",
        "-c",
        "init.defaultBranch=main",
    ]);
    let output = command.args(args).env("GIT_CONFIG_GLOBAL", "/dev/null").output().expect("git runs");
    assert!(output.status.success(), "git {args:?}: {output:?}");
}
