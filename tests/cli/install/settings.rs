//! What stands in the settings afterwards, and how it gets there.

use super::{CLAUDE, CODEX, GEMINI, backup, command, commands, install, ours, parsed, put, read};
use crate::cli::{git, run_of};
use crate::harness::Place;
use std::os::unix::fs::{PermissionsExt, symlink};

#[test]
fn claude_code_has_its_events_each_once() {
    let place = Place::new();
    install(&place, &["claude-code"]).ok();
    let settings = parsed(&read(&place.home.join(CLAUDE)));
    let hook = serde_json::json!({"type": "command", "command": ours("claude-code"), "timeout": 3});
    let group = |matcher: &str| serde_json::json!([{"matcher": matcher, "hooks": [hook]}]);
    let plain = serde_json::json!([{"hooks": [hook]}]);
    let wanted = serde_json::json!({"hooks": {
        "SessionStart": plain,
        "UserPromptSubmit": plain,
        "PreToolUse": group("Edit|Write|MultiEdit|NotebookEdit"),
        "PostToolUse": group("Read|Edit|Write|MultiEdit|NotebookEdit|Grep|Glob|LS|Bash"),
        "PostToolUseFailure": group("Read|Bash"),
        "InstructionsLoaded": plain,
        "Stop": plain,
        "SessionEnd": plain,
    }});
    assert_eq!(settings.to_string(), wanted.to_string());
}

#[test]
fn codex_and_gemini_have_theirs_in_their_own_units() {
    let place = Place::new();
    let run = install(&place, &["codex"]).ok();
    assert!(run.err.contains("trust the hooks in /hooks"), "{run:?}");
    let codex = parsed(&read(&place.home.join(CODEX)));
    let events: Vec<&String> = codex["hooks"].as_object().expect("events").keys().collect();
    assert_eq!(events, ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"]);
    assert_eq!(codex["hooks"]["PostToolUse"][0]["matcher"], "Bash|apply_patch|Edit|Write");
    assert_eq!(codex["hooks"]["Stop"][0]["hooks"][0]["timeout"], 3);
    install(&place, &["gemini"]).ok();
    let gemini = parsed(&read(&place.home.join(GEMINI)));
    let events: Vec<&String> = gemini["hooks"].as_object().expect("events").keys().collect();
    let wanted = ["SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "SessionEnd", "PreCompress"];
    assert_eq!(events, wanted);
    assert_eq!(gemini["hooks"]["BeforeAgent"][0]["hooks"][0]["timeout"], 3_000);
    assert_eq!(commands(&gemini, "AfterTool"), [ours("gemini")]);
}

#[test]
fn entries_of_another_program_of_ours_are_brought_up_to_date_where_they_stand() {
    let place = Place::new();
    let path = place.home.join(CLAUDE);
    let old = r#"{
  "hooks": {
    "Stop": [
      {"hooks": [{"type": "command", "command": "\"/old/place/staled\" hook claude-code", "timeout": 9}]},
      {"hooks": [{"type": "command", "command": "theirs"}, {"type": "command", "command": "staled hook claude"}]}
    ],
    "PostToolBatch": [{"hooks": [{"type": "command", "command": "/old/staled", "args": ["hook", "claude"]}]}]
  }
}
"#;
    put(&path, old);
    install(&place, &["claude-code"]).ok();
    let settings = parsed(&read(&path));
    assert_eq!(commands(&settings, "Stop"), [ours("claude-code"), "theirs".to_owned()]);
    assert_eq!(settings["hooks"]["Stop"][0]["hooks"][0]["timeout"], 3);
    assert!(settings["hooks"].get("PostToolBatch").is_none(), "an event that is no longer wanted");
    assert!(!backup(&path).exists(), "something of ours was in it, so it is not what was before");
    install(&place, &["claude-code", "--uninstall"]).ok();
    let left = parsed(&read(&path));
    assert_eq!(left.to_string(), r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"theirs"}]}]}}"#);
}

#[test]
fn a_program_with_an_odd_name_is_run_by_a_shell_all_the_same() {
    let place = Place::new();
    let folder = place.home.with_file_name("it's \"$HOME\" `x`");
    std::fs::create_dir_all(&folder).expect("a folder");
    let program = folder.join("staled");
    put(&program, "#!/bin/sh\necho \"ran $*\"\n");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    install(&place, &["claude-code", "--exec", program.to_str().expect("UTF-8")]).ok();
    let settings = parsed(&read(&place.home.join(CLAUDE)));
    let [command] = &commands(&settings, "Stop")[..] else { panic!("{settings}") };
    let ran = std::process::Command::new("/bin/sh").args(["-c", command]).output().expect("a shell");
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "ran hook claude-code\n", "{command}: {ran:?}");
    install(&place, &["claude-code", "--uninstall"]).ok();
    assert!(!place.home.join(CLAUDE).exists(), "it is known again");
}

#[test]
fn a_link_is_followed_and_the_mode_stays() {
    let place = Place::new();
    let (path, real) = (place.home.join(CLAUDE), place.home.join("dotfiles/claude.json"));
    put(&real, "{\"a\":1}");
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o600)).expect("a mode");
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    symlink("../dotfiles/claude.json", &path).expect("a link");
    install(&place, &["claude-code"]).ok();
    assert!(path.is_symlink(), "it is a link still");
    assert_eq!(commands(&parsed(&read(&real)), "Stop"), [ours("claude-code")]);
    for file in [&real, &backup(&path)] {
        let mode = std::fs::metadata(file).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
    install(&place, &["claude-code", "--uninstall"]).ok();
    assert!(path.is_symlink());
    assert_eq!(read(&real), "{\"a\":1}");
    let names = std::fs::read_dir(real.parent().expect("a folder")).expect("a folder").count();
    assert_eq!(names, 1, "nothing is left beside it");
}

#[test]
fn the_folder_of_the_settings_is_the_agents_own() {
    let place = Place::new();
    let folder = place.home.join("elsewhere");
    for (variable, agent, file) in
        [("CLAUDE_CONFIG_DIR", "claude-code", "settings.json"), ("CODEX_HOME", "codex", "hooks.json")]
    {
        let run = command(&place, &[agent]).env(variable, &folder).output().expect("it runs");
        run_of(run).ok();
        assert!(folder.join(file).exists());
    }
    assert!(!place.home.join(".claude").exists() && !place.home.join(".codex").exists());
    let run = command(&place, &["claude-code", "--mcp"]).env("CLAUDE_CONFIG_DIR", &folder).output();
    run_of(run.expect("it runs")).ok();
    assert!(folder.join(".claude.json").exists(), "with everything of Claude Code");
}

#[test]
fn a_project_has_its_own_below_its_top() {
    let place = Place::new();
    git(&place, &["init", "-q"]);
    let deep = place.root.join("src/deep");
    std::fs::create_dir_all(&deep).expect("a folder");
    let run = command(&place, &["claude-code", "--project", "--mcp"]).current_dir(&deep).output();
    run_of(run.expect("it runs")).ok();
    assert_eq!(commands(&parsed(&read(&place.root.join(CLAUDE))), "Stop"), [ours("claude-code")]);
    assert_eq!(parsed(&read(&place.root.join(".mcp.json")))["mcpServers"]["staled"]["args"][0], "mcp");
    assert!(!place.home.join(".claude").exists() && !place.home.join(".claude.json").exists());
    let run = command(&place, &["claude-code", "--project", "--uninstall"]).current_dir(&deep).output();
    run_of(run.expect("it runs")).ok();
    assert!(!place.root.join(".claude").exists() && !place.root.join(".mcp.json").exists());
}

#[test]
fn the_server_goes_among_those_of_the_user() {
    let place = Place::new();
    let path = place.home.join(".claude.json");
    let text = "{\"numStartups\":7,\"mcpServers\":{\"other\":{\"command\":\"x\"}},\"projects\":{}}";
    put(&path, text);
    install(&place, &["claude-code"]).ok();
    assert_eq!(read(&path), text, "only when it is asked for");
    install(&place, &["claude-code", "--mcp"]).ok();
    let servers = &parsed(&read(&path))["mcpServers"];
    assert_eq!(servers["staled"]["command"], env!("CARGO_BIN_EXE_staled"));
    assert_eq!(servers["other"]["command"], "x");
    std::fs::remove_file(backup(&path)).expect("a backup");
    install(&place, &["claude-code", "--uninstall"]).ok();
    assert_eq!(read(&path), text);
    put(&path, "{\"mcpServers\":{\"staled\":{\"command\":\"theirs\"}}}");
    install(&place, &["claude-code", "--mcp"]).fails(2, ".claude.json:1:25: another server is called staled");
}

#[test]
fn hooks_that_are_switched_off_are_said_loudly() {
    let place = Place::new();
    let path = place.home.join(CLAUDE);
    for key in ["disableAllHooks", "allowManagedHooksOnly"] {
        put(&path, &format!("{{\"{key}\": true}}"));
        let run = install(&place, &["claude-code"]).ok();
        assert!(run.err.contains(&format!("{key} is true in {}", path.display())), "{run:?}");
        put(&path, &format!("{{\"{key}\": false}}"));
        let run = install(&place, &["claude-code"]).ok();
        assert!(!run.err.contains(key), "{run:?}");
    }
    put(&place.home.join(GEMINI), "{\"hooksConfig\": {\"enabled\": false}}");
    let run = install(&place, &["gemini"]).ok();
    assert!(run.err.contains("hooksConfig.enabled is false"), "{run:?}");
    put(&place.home.join(".codex/config.toml"), "[features]\nhooks = false\n");
    let run = install(&place, &["codex"]).ok();
    assert!(run.err.contains("features.hooks is false"), "{run:?}");
}

#[test]
fn print_shows_and_writes_nothing() {
    let place = Place::new();
    let (path, text) = (place.home.join(CLAUDE), "{\n  \"model\": \"opus\"\n}\n");
    put(&path, text);
    let run = install(&place, &["claude-code", "--print"]).ok();
    assert!(run.out.starts_with(&format!("# {}\n", path.display())), "{run:?}");
    assert!(
        run.out.contains("\n- \"model\"")
            || run.out.contains("\n-   \"model\": \"opus\"\n+   \"model\": \"opus\",\n+   \"hooks\": {\n"),
        "{run:?}"
    );
    let json = install(&place, &["claude-code", "--print", "--json"]).ok().json();
    assert_eq!(read(&path), text);
    assert!(!backup(&path).exists());
    let done = install(&place, &["claude-code", "--json"]).ok().json();
    assert_eq!(json["files"][0]["content"], read(&path), "it is what it said");
    assert_eq!(done["files"][0]["done"], "written");
    let run = install(&place, &["claude-code", "--uninstall", "--print"]).ok();
    assert!(run.out.contains("\n- ") && run.out.contains("hook claude-code"), "{run:?}");
    assert_eq!(json["files"][0]["content"], read(&path), "nothing went");
}
