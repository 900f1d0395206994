//! What cannot be edited is refused with its place, and nothing changes.

use super::{CLAUDE, CODEX, GEMINI, backup, install, put, read};
use crate::harness::Place;

#[test]
fn broken_settings_are_refused_with_their_place() {
    for (file, agent, text, place_and_why) in [
        (CLAUDE, "claude-code", "{\n  \"a\": 1,\n}\n", "settings.json:3:1: "),
        (CLAUDE, "claude-code", "{\n  // mine\n  \"a\": 1\n}\n", "settings.json:2:3: key must be a string"),
        (CLAUDE, "claude-code", "{\"a\": 1", "settings.json:1:7: EOF"),
        (CLAUDE, "claude-code", "[]\n", "settings.json:1:1: the settings are no object"),
        (CLAUDE, "claude-code", "{\n  \"hooks\": []\n}\n", "settings.json:2:12: `hooks` is no object"),
        (CLAUDE, "claude-code", "{\"hooks\": {\"Stop\": {}}}", "settings.json:1:20: Stop is no list"),
        (
            CLAUDE,
            "claude-code",
            "{\"hooks\": {\"Stop\": [{\"hooks\": 1}]}}",
            "settings.json:1:21: this group",
        ),
        (
            CLAUDE,
            "claude-code",
            "{\"hooks\": {},\n \"hooks\": {}}",
            "settings.json:2:2: \"hooks\" stands here a second",
        ),
        (
            CLAUDE,
            "claude-code",
            "{\"hooks\": {\"Stop\": [], \"Stop\": []}}",
            "settings.json:1:24: \"Stop\" stands here",
        ),
        (
            CLAUDE,
            "claude-code",
            "{\"hooks\": {\"Stop\": [{\"hooks\": [{\"command\": \"x\"}], \"hooks\": [{\"command\": \"staled hook claude-code\"}]}]}}",
            "settings.json:1:51: \"hooks\" stands here",
        ),
        (CODEX, "codex", "{\"hooks\": {\"Stop\": 3}}", "hooks.json:1:20: Stop is no list"),
        (GEMINI, "gemini", "{\n  \"a\": 1 // one\n  \"b\": 2\n}\n", "settings.json:2:9: Expected comma"),
        (GEMINI, "gemini", "// nothing\n", "settings.json:1:1: there are comments and no settings"),
    ] {
        let place = Place::new();
        let path = place.home.join(file);
        put(&path, text);
        for args in [vec![agent], vec![agent, "--uninstall"], vec![agent, "--print"]] {
            let run = install(&place, &args);
            run.fails(2, place_and_why);
            assert!(run.err.contains("nothing was written"), "{run:?}");
        }
        assert_eq!(read(&path), text);
        assert!(!backup(&path).exists());
    }
}

#[test]
fn nothing_is_written_when_the_second_file_is_broken() {
    let place = Place::new();
    put(&place.home.join(".claude.json"), "{");
    install(&place, &["claude-code", "--mcp"]).fails(2, ".claude.json:1:1: EOF");
    assert!(!place.home.join(".claude").exists());
    put(&place.home.join(".codex/config.toml"), "model = \n");
    install(&place, &["codex", "--mcp"]).fails(2, "config.toml:1:");
    assert!(!place.home.join(CODEX).exists());
}

#[test]
fn what_is_no_file_is_left_alone() {
    let place = Place::new();
    let path = place.home.join(CLAUDE);
    put(&path, "");
    std::fs::remove_file(&path).expect("it goes");
    std::os::unix::fs::symlink("/dev/null", &path).expect("a link");
    for args in [vec!["claude-code"], vec!["claude-code", "--uninstall"]] {
        install(&place, &args).fails(2, "is no file; nothing was written");
    }
}

#[test]
fn of_two_servers_of_one_name_none_is_taken_out() {
    let place = Place::new();
    let path = place.home.join(".claude.json");
    let text =
        "{\"mcpServers\": {\"staled\": {\"command\": \"staled\", \"args\": [\"mcp\"]},\n\"staled\": {}}}";
    put(&path, text);
    install(&place, &["claude-code", "--uninstall"]).fails(2, ".claude.json:2:1: \"staled\" stands here");
    assert_eq!(read(&path), text);
}

#[test]
fn what_is_no_text_is_left_alone() {
    let place = Place::new();
    let path = place.home.join(CLAUDE);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(&path, b"{\"a\": \"\xff\"}").expect("a file");
    install(&place, &["claude-code"]).fails(2, "settings.json");
    assert_eq!(std::fs::read(&path).expect("it is there"), b"{\"a\": \"\xff\"}");
    std::fs::remove_file(&path).expect("it goes");
    std::fs::create_dir(&path).expect("a folder");
    install(&place, &["claude-code"]).fails(2, "settings.json");
}

#[test]
fn a_hook_runs_a_program_that_runs() {
    let place = Place::new();
    for none in ["/nowhere/staled", "/etc/passwd", "/bin"] {
        install(&place, &["claude-code", "--exec", none]).fails(2, "is no program");
    }
    install(&place, &["claude-code", "--exec", "/bin/sh"]).fails(2, "is not called staled");
    assert!(!place.home.join(".claude").exists());
}
