//! The README runs as written: its commands in order, each with the output that stands below it.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test does")]

use crate::harness::skipped;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const README: &str = include_str!("../README.md");

/// One command and what the README says it prints.
#[derive(Debug, PartialEq)]
struct Step {
    command: String,
    output: Vec<String>,
}

#[test]
fn the_worked_example_runs_as_written() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    if !repository.join("../shared/transcripts").is_dir() {
        return skipped("the transcripts that the README uses are missing");
    }
    let temp = tempfile::tempdir().unwrap();
    let home = Home::new(temp.path());
    let mut daemon = home.serve(repository);
    let steps = steps("console");
    assert!(steps.len() >= 9, "{steps:?}");
    let script = script(&steps);
    let ran = home.command("bash").arg("-c").arg(script).current_dir(repository).output().unwrap();
    let said = String::from_utf8(ran.stdout).unwrap();
    assert!(ran.status.success(), "{said}");
    let printed: Vec<&str> = said.split("\u{1}\n").collect();
    assert_eq!(printed.len(), steps.len() + 1, "{said}");
    for (step, printed) in steps.iter().zip(&printed) {
        let printed: Vec<String> = printed.lines().map(steady).collect();
        let expected: Vec<String> = step.output.iter().map(|line| steady(line)).collect();
        assert_eq!(printed, expected, "{}", step.command);
    }
    assert!(daemon.wait().unwrap().success(), "`staled stop` ends the daemon well");
}

#[test]
fn its_two_commands_are_the_ones_that_run() {
    let steps = steps("sh");
    let commands: Vec<&str> = steps.iter().map(|step| step.command.as_str()).collect();
    assert_eq!(commands, ["cargo run --release -- serve", "cargo test --locked"]);
    let ci = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(".ci/run")).unwrap();
    assert!(ci.contains("step cargo test --locked"), "CI calls the README's test command");
}

#[test]
fn its_client_for_any_program_is_ten_lines_that_work() {
    let program = README.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(program.lines().count() <= 11, "ten lines, and one that imports");
    let place = crate::harness::Place::new();
    place.write("README.md", "what was read\n");
    let daemon = crate::harness::Daemon::start(&place.home);
    let run = |program: &str| {
        let mut python = Command::new("python3");
        python.args(["-c", program]).env("STALED_SOCKET", &daemon.folders.socket).current_dir(&place.root);
        python.output()
    };
    let Ok(ran) = run(program) else { return skipped("python3 is missing") };
    assert_eq!(
        String::from_utf8(ran.stdout).unwrap(),
        "resume\n",
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    place.write("README.md", "something else\n");
    let later = program.lines().filter(|line| !line.starts_with("ask(") && !line.starts_with("seen"));
    let ran = run(&later.collect::<Vec<_>>().join("\n")).unwrap();
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), "fresh\n", "{}", String::from_utf8_lossy(&ran.stderr));
}

struct Home {
    runtime: PathBuf,
    state: PathBuf,
}

impl Home {
    fn new(temp: &Path) -> Self {
        let home = Self { runtime: temp.join("runtime"), state: temp.join("state") };
        std::fs::create_dir_all(&home.runtime).unwrap();
        home
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        // Where cargo was told to build elsewhere, the README's `target/release` is there.
        if let Some(target) = std::env::var_os("CARGO_TARGET_DIR") {
            let path = std::env::var("PATH").unwrap();
            command.env("PATH", format!("{}/release:{path}", PathBuf::from(target).display()));
        }
        command
            .env("XDG_RUNTIME_DIR", &self.runtime)
            .env("XDG_STATE_HOME", &self.state)
            .env("XDG_CONFIG_HOME", &self.state)
            .env("NO_COLOR", "1")
            .env("STALED_JOURNAL_SOCKET", "/nowhere/journal")
            .env_remove("STALED_SOCKET")
            .env_remove("RUNTIME_DIRECTORY")
            .env_remove("STATE_DIRECTORY");
        command
    }

    /// The README's first command, which builds what the others use.
    fn serve(&self, repository: &Path) -> Child {
        let first = &steps("sh")[0].command;
        let mut words = first.split(' ');
        let mut command = self.command(words.next().unwrap());
        let daemon = command.args(words).current_dir(repository).stdin(Stdio::null()).spawn().unwrap();
        let socket = self.runtime.join("staled/staled.sock");
        let begun = Instant::now();
        // A release build takes a while on a slow machine.
        while UnixStream::connect(&socket).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(900), "the README's daemon does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        daemon
    }
}

/// The commands of all blocks of a kind: in `console` those behind `$ `, in `sh` every line.
fn steps(kind: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for line in README.lines() {
        if let Some(fence) = line.strip_prefix("```") {
            inside = fence == kind;
            continue;
        }
        let command = if kind == "console" { line.strip_prefix("$ ") } else { Some(line) };
        match (inside, command) {
            (true, Some(command)) => steps.push(Step { command: command.to_owned(), output: Vec::new() }),
            (true, None) => steps.last_mut().expect("output follows a command").output.push(line.to_owned()),
            (false, _) => {}
        }
    }
    steps
}

/// One shell runs them all; a control character stands between their outputs.
fn script(steps: &[Step]) -> String {
    let mut script = "exec 2>&1\n".to_owned();
    for step in steps {
        script.push_str(&step.command);
        script.push_str("\nprintf '\\001\\n'\n");
    }
    script
}

/// The line without what differs from run to run: moments, ids, and the digests of lines that contain them.
fn steady(line: &str) -> String {
    let word = |word: &str| -> String {
        let digits = word.chars().filter(char::is_ascii_digit).count();
        let id = word.starts_with("d-") && word.len() == 38;
        let receipt =
            word.split_once(':').is_some_and(|(seq, hash)| seq.parse::<u64>().is_ok() && hash.len() == 64);
        let moment = word.ends_with('Z') && word.contains('T') && digits >= 14;
        let hex = word.trim_matches(['(', ')']);
        let commit = matches!(hex.len(), 12 | 40) && hex.chars().all(|symbol| symbol.is_ascii_hexdigit());
        match (id, receipt, moment, commit, word.split_once("/staled/forks/")) {
            (true, ..) => "DECISION".to_owned(),
            (_, true, ..) => "RECEIPT".to_owned(),
            (_, _, true, ..) => "MOMENT".to_owned(),
            (.., true, None) => "COMMIT".to_owned(),
            (.., Some((_, fork))) => format!("FORKS/{fork}"),
            _ => word.to_owned(),
        }
    };
    let line = line.trim_end();
    let line = line.strip_suffix(" s ago").map_or(line.to_owned(), |line| {
        format!("{} s ago", line.trim_end_matches(|symbol: char| symbol.is_ascii_digit()))
    });
    line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}
