//! Help, usage, and the manners that every command has.

use super::{staled, unread};
use crate::harness::Place;
use std::path::Path;

const COMMANDS: [&[&str]; 47] = [
    &["serve"],
    &["register"],
    &["record"],
    &["decide"],
    &["status"],
    &["tail"],
    &["why"],
    &["check"],
    &["doctor"],
    &["export"],
    &["import-state"],
    &["log"],
    &["log", "verify"],
    &["log", "replay"],
    &["mcp"],
    &["mem"],
    &["mem", "start"],
    &["mem", "save"],
    &["mem", "summary"],
    &["mem", "end"],
    &["mem", "search"],
    &["mem", "get"],
    &["mem", "timeline"],
    &["mem", "stats"],
    &["mem", "sessions"],
    &["mem", "forget"],
    &["fork"],
    &["fork", "create"],
    &["fork", "list"],
    &["fork", "status"],
    &["fork", "access"],
    &["fork", "exec"],
    &["fork", "merge"],
    &["fork", "discard"],
    &["fork", "reprovision"],
    &["install"],
    &["install", "claude-code"],
    &["install", "codex"],
    &["install", "gemini"],
    &["install", "systemd"],
    &["run"],
    &["list"],
    &["metrics"],
    &["drop"],
    &["reload"],
    &["stop"],
    &["completions"],
];

#[test]
fn every_help_ends_with_an_example_that_runs_this_command() {
    let place = Place::new();
    for command in COMMANDS {
        let run = staled(&place, Path::new("/nowhere"), &[command, &["--help"]].concat()).ok();
        let example =
            run.out.split("\nExample:\n").nth(1).unwrap_or_else(|| panic!("{command:?}: {}", run.out));
        assert!(example.contains(&format!("staled {}", command.join(" "))), "{command:?}: {example}");
        assert!(run.out.contains("--socket") && run.out.contains("--json"), "{command:?}: {}", run.out);
    }
}

#[test]
fn the_list_of_commands_is_whole() {
    let place = Place::new();
    let run = staled(&place, Path::new("/nowhere"), &["--help"]).ok();
    let listed = run.out.split("Commands:\n").nth(1).expect("commands");
    let listed =
        listed.lines().take_while(|line| !line.is_empty()).filter_map(|line| line.split_whitespace().next());
    let mut listed: Vec<&str> = listed.filter(|name| *name != "help").collect();
    let mut known: Vec<&str> =
        COMMANDS.iter().filter(|command| command.len() == 1).map(|command| command[0]).collect();
    // Commands that others add are tested where they are added.
    listed.retain(|name| known.contains(name));
    listed.sort_unstable();
    known.sort_unstable();
    assert_eq!(listed, known);
    assert!(run.out.contains("Example:"));
}

#[test]
fn a_wrong_command_line_is_talk_and_ends_with_2() {
    let place = Place::new();
    for args in [
        &["decide"][..],
        &["nonsense"],
        &["tail", "-n", "x"],
        &["log", "verify", "--receipt", "1:2"],
        &["decide", "s", "--no-daemon"],
    ] {
        let run = staled(&place, Path::new("/nowhere"), args);
        run.fails(2, "error:");
    }
    assert!(staled(&place, Path::new("/nowhere"), &["--version"]).ok().out.starts_with("staled 0."));
}

#[test]
fn without_a_daemon_every_command_says_how_to_start_one() {
    let place = Place::new();
    let context = super::json_file(&place, "context.json", &serde_json::json!({}));
    let asks: [&[&str]; 13] = [
        &["register", &context],
        &["record", &context],
        &["decide", "s"],
        &["status"],
        &["status", "s"],
        &["tail"],
        &["why", "d-019acf3e"],
        &["list"],
        &["drop", "s"],
        &["reload"],
        &["stop"],
        &["mem", "start"],
        &["mem", "search", "x"],
    ];
    for ask in asks {
        staled(&place, Path::new("/nowhere/staled.sock"), ask).fails(2, "`staled serve`");
    }
}

#[test]
fn a_reader_that_went_away_ends_a_command_quietly() {
    let place = Place::new();
    for args in [&["--help"][..], &["completions", "bash"], &["decide", "--help"]] {
        let run = unread(&place, Path::new("/nowhere"), args).ok();
        assert_eq!(run.err, "", "{args:?}");
    }
}

#[test]
fn completions_know_the_commands() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let run = staled(&place, Path::new("/nowhere"), &["completions", shell]).ok();
        assert!(
            ["decide", "no-daemon", "deadline-ms", "timeline", "topic-key"]
                .iter()
                .all(|word| run.out.contains(word)),
            "{shell}"
        );
    }
    staled(&place, Path::new("/nowhere"), &["completions", "tcsh"]).fails(2, "tcsh");
}
