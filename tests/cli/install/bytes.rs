//! In and out again leaves the very bytes, with the backup at hand and without it, whatever the file looks like.

use super::{CLAUDE, CODEX, GEMINI, backup, command, commands, install, ours, parsed, put, read, run_of};
use crate::harness::Place;
use serde_json::Value;

/// Files as people have them. The flag says that without the backup too they come back to the byte; where it is not set,
/// something stands there empty, which looks like what was made for us.
const FILES: [(&str, bool); 18] = [
    ("{\n  \"model\": \"opus\"\n}\n", true),
    ("{\n  \"model\": \"opus\"\n}", true),
    ("{\"model\":\"opus\",\"env\":{\"A\":\"1\"}}", true),
    ("{ \"model\": \"opus\" }\n", true),
    ("{\n\t\"model\": \"opus\",\n\t\"env\": {\n\t\t\"A\": \"1\"\n\t}\n}\n", true),
    ("{\r\n    \"model\": \"opus\",\r\n    \"list\": [1, 2]\r\n}\r\n", true),
    ("\u{feff}{\n  \"model\": \"opus\"\n}\n", true),
    ("{\n\n  \"model\"  :  \"opus\"  ,\n\n\n  \"x\":null\n\n}\n\n\n", true),
    (OTHERS, true),
    (OTHERS_INLINE, true),
    (OTHERS_COMPACT, true),
    (ODD, true),
    ("", false),
    ("\n", false),
    ("{}", false),
    ("{ }\n", false),
    ("{\n  \"hooks\": {}\n}\n", false),
    (
        "{\n  \"hooks\": {\n    \"Stop\": [],\n    \"PreToolUse\": [ ]\n  },\n  \"model\": \"opus\"\n}\n",
        false,
    ),
];

/// Hooks of somebody else, at the same events and at others.
const OTHERS: &str = r#"{
  "$schema": "https://json.schemastore.org/claude-code-settings.json",
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "Bash",
        "hooks": [
          { "type": "command", "command": "my-check --strict", "timeout": 10 },
          { "type": "command", "command": "echo staled hook claude-code" }
        ]
      }
    ],
    "Notification": [{ "hooks": [{ "type": "command", "command": "notify-send" }] }],
    "Stop": [
      { "hooks": [ { "type": "prompt", "prompt": "done?" } ] }
    ]
  },
  "unknown": { "hooks": [1, 2, { "a": "\u00e9\n" }] }
}
"#;

const OTHERS_INLINE: &str = r#"{
  "hooks": {
    "PostToolUse": [{
      "matcher": "Write",
      "hooks": [{ "type": "command", "command": "fmt" }]
    }]
  }
}
"#;

const OTHERS_COMPACT: &str =
    r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"a"}]},{"hooks":[]}]},"z":1.50}"#;

/// Numbers and escapes that a parser would spell otherwise.
const ODD: &str =
    "{ \"a\": 1e3, \"b\": 1.0, \"c\": \"\\/\\u0041\", \"d\": 12345678901234567890123,\n  \"e\": [ ] }\n";

#[test]
fn in_and_out_leaves_every_byte() {
    for (agent, file) in [("claude-code", CLAUDE), ("codex", CODEX), ("gemini", GEMINI)] {
        for (text, whole_without_backup) in FILES {
            let place = Place::new();
            let path = place.home.join(file);
            put(&path, text);
            for with_backup in [true, false] {
                install(&place, &[agent]).ok();
                let installed = read(&path);
                kept(text, &installed, agent);
                assert_eq!(read(&backup(&path)), text, "the backup");
                install(&place, &[agent]).ok();
                assert_eq!(read(&path), installed, "a second time changes nothing");
                assert_eq!(read(&backup(&path)), text, "nor the backup");
                if !with_backup {
                    std::fs::remove_file(backup(&path)).expect("it is there");
                }
                install(&place, &[agent, "--uninstall"]).ok();
                if with_backup {
                    assert_eq!(read(&path), text, "{agent}, from {installed}");
                } else if whole_without_backup {
                    assert_eq!(read(&path), text, "{agent} without a backup, from {installed}");
                }
                assert!(!backup(&path).exists(), "it would say what the file says");
            }
        }
    }
}

/// Everything that was there is there, in its order, and ours beside it.
fn kept(before: &str, after: &str, agent: &str) {
    let (old, new) =
        (if before.trim().is_empty() { serde_json::json!({}) } else { parsed(before) }, parsed(after));
    let keys = |value: &Value| -> Vec<String> {
        value.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect()
    };
    let rest: Vec<String> = keys(&new).into_iter().filter(|key| keys(&old).contains(key)).collect();
    assert_eq!(rest, keys(&old), "{after}");
    for key in keys(&old).iter().filter(|key| *key != "hooks") {
        assert_eq!(new[key], old[key], "{after}");
    }
    for event in keys(&old["hooks"]) {
        let (old, new) = (commands(&old, &event), commands(&new, &event));
        assert_eq!(new[..old.len()], old, "{event}: {after}");
        assert!(new[old.len()..].iter().all(|command| *command == ours(agent)), "{event}: {after}");
    }
    assert_eq!(after.contains("\r\n"), before.contains("\r\n"), "one kind of line ends: {after:?}");
    assert_eq!(
        after.replace("\r\n", "").contains('\n'),
        before.is_empty() || before.replace("\r\n", "").contains('\n') || before == "{}",
        "{after:?}"
    );
}

#[test]
fn a_file_that_was_not_there_is_not_there_again() {
    let place = Place::new();
    for (agent, file, folder) in
        [("claude-code", CLAUDE, ".claude"), ("codex", CODEX, ".codex"), ("gemini", GEMINI, ".gemini")]
    {
        let path = place.home.join(file);
        assert!(install(&place, &[agent]).ok().out.starts_with("written  "));
        assert!(read(&path).ends_with("}\n") && !backup(&path).exists());
        assert!(install(&place, &[agent, "--uninstall"]).ok().out.starts_with("removed  "));
        assert!(!place.home.join(folder).exists(), "nor is the folder that was made for it");
        assert!(install(&place, &[agent, "--uninstall"]).ok().out.starts_with("unchanged  "));
    }
}

#[test]
fn what_changed_between_in_and_out_stays() {
    let place = Place::new();
    let path = place.home.join(CLAUDE);
    put(&path, "{\n  \"model\": \"opus\"\n}\n");
    install(&place, &["claude-code"]).ok();
    // As Claude Code itself writes it, with one more key and another hook in our own group.
    let mut settings = parsed(&read(&path));
    settings["theme"] = "dark".into();
    let group = settings["hooks"]["Stop"][0]["hooks"].as_array_mut().expect("ours");
    group.insert(0, serde_json::json!({"type": "command", "command": "theirs"}));
    put(&path, &serde_json::to_string_pretty(&settings).expect("JSON"));
    let run = install(&place, &["claude-code", "--uninstall"]).ok();
    assert!(run.err.contains("settings.json.staled-backup"), "{run:?}");
    let left = parsed(&read(&path));
    let wanted = serde_json::json!({
        "model": "opus",
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "theirs"}]}]},
        "theme": "dark",
    });
    assert_eq!(left.to_string(), wanted.to_string());
    assert_eq!(read(&backup(&path)), "{\n  \"model\": \"opus\"\n}\n", "what was before is not lost");
}

#[test]
fn what_was_only_written_anew_comes_back_to_its_bytes() {
    let place = Place::new();
    let (path, text) = (place.home.join(CLAUDE), "{ \"model\":   \"opus\",\"a\":[]}");
    put(&path, text);
    install(&place, &["claude-code"]).ok();
    put(&path, &serde_json::to_string_pretty(&parsed(&read(&path))).expect("JSON"));
    install(&place, &["claude-code", "--uninstall"]).ok();
    assert_eq!(read(&path), text);
}

#[test]
fn a_comment_that_came_between_in_and_out_stays() {
    let place = Place::new();
    let path = place.home.join(GEMINI);
    for text in ["{\n  // mine\n  \"model\": \"x\"\n}\n", "{\n  \"model\": \"x\"\n}\n"] {
        put(&path, text);
        install(&place, &["gemini"]).ok();
        put(&path, &read(&path).replace("  \"model\"", "  // since\n  \"model\""));
        install(&place, &["gemini", "--uninstall"]).ok();
        assert_eq!(read(&path), text.replace("  \"model\"", "  // since\n  \"model\""));
        assert_eq!(read(&backup(&path)), text);
    }
}

#[test]
fn no_folder_goes_but_the_agents_own() {
    let place = Place::new();
    let project = place.home.join("project");
    std::fs::create_dir_all(&project).expect("a folder");
    for (args, left) in [(["--project", "--mcp"], 2), (["--project", "--uninstall"], 0)] {
        let run = command(&place, &[&["claude-code"], &args[..]].concat()).current_dir(&project).output();
        run_of(run.expect("it runs")).ok();
        assert_eq!(std::fs::read_dir(&project).expect("it is there").count(), left);
    }
    // Nor the one that a link leads to.
    let dotfiles = place.home.join("dotfiles");
    put(&dotfiles.join("settings.json"), "");
    std::fs::remove_file(dotfiles.join("settings.json")).expect("it goes");
    std::fs::create_dir(place.home.join(".claude")).expect("a folder");
    std::os::unix::fs::symlink(dotfiles.join("settings.json"), place.home.join(CLAUDE)).expect("a link");
    install(&place, &["claude-code"]).ok();
    install(&place, &["claude-code", "--uninstall"]).ok();
    assert!(dotfiles.exists());
}

#[test]
fn comments_of_gemini_stay_where_they_are() {
    let place = Place::new();
    let path = place.home.join(GEMINI);
    for text in [
        "// mine\n{\n  // the model\n  \"model\": \"x\" // for now\n  /* end */\n}\n// after\n",
        "{\n  // nothing yet\n}\n",
        "{\n  \"hooks\": {\n    // none, but for this\n    \"AfterTool\": [\n      { \"hooks\": [] } // empty\n    ] // so far\n  } /* the end */\n}\n",
    ] {
        put(&path, text);
        install(&place, &["gemini", "--mcp"]).ok();
        let installed = read(&path);
        for comment in text.lines().filter_map(|line| line.find("//").map(|at| &line[at..])) {
            assert!(installed.lines().any(|line| line.ends_with(comment)), "{comment} in {installed}");
        }
        assert!(
            installed.contains("\"model\": \"x\", // for now") || !text.contains("for now"),
            "{installed}"
        );
        std::fs::remove_file(backup(&path)).expect("a backup");
        install(&place, &["gemini", "--uninstall"]).ok();
        assert_eq!(read(&path), text, "from {installed}");
    }
}
