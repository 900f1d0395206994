//! The server of Codex, in TOML.

use super::{backup, install, put, read};
use crate::harness::Place;

const CONFIG: &str = ".codex/config.toml";

/// Files as people have them; the flag says that they come back to the byte without the backup too.
const FILES: [(&str, bool); 8] = [
    ("model = \"x\"\n", true),
    ("# mine\nmodel = 'x' # why\n\n\n[mcp_servers.other]\ncommand = \"y\"\nargs = [ ]\n", true),
    ("model = \"x\"\r\n[tui]\r\ntheme = 1\r\n", true),
    ("mcp_servers.other.command = \"y\"\n", true),
    ("[[list]]\na = 1\n\n", true),
    ("", false),
    ("\n\n", false),
    ("model = \"x\"", false),
];

#[test]
fn in_and_out_leaves_every_byte() {
    for (text, whole_without_backup) in FILES {
        let place = Place::new();
        let path = place.home.join(CONFIG);
        put(&path, text);
        for with_backup in [true, false] {
            install(&place, &["codex", "--mcp"]).ok();
            let installed = read(&path);
            assert!(installed.starts_with(text), "{installed}");
            let parsed: toml_edit::DocumentMut = installed.parse().expect("TOML");
            let server = &parsed["mcp_servers"]["staled"];
            assert_eq!(server["command"].as_str(), Some(env!("CARGO_BIN_EXE_staled")), "{installed}");
            assert_eq!(server["args"][0].as_str(), Some("mcp"), "{installed}");
            install(&place, &["codex", "--mcp"]).ok();
            assert_eq!(read(&path), installed, "a second time changes nothing");
            if !with_backup {
                std::fs::remove_file(backup(&path)).expect("a backup");
            }
            install(&place, &["codex", "--uninstall"]).ok();
            if with_backup || whole_without_backup {
                assert_eq!(read(&path), text, "from {installed}");
            }
        }
    }
}

#[test]
fn another_program_takes_the_place_of_one_and_of_nothing_else() {
    let place = Place::new();
    let path = place.home.join(CONFIG);
    let other = place.home.join("other folder/staled");
    put(&other, "");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&other, mode).expect("it is ours");
    let other = other.to_str().expect("UTF-8");
    for text in ["# mine\r\na = \"\"\"x\r\ny\"\"\"\r\n", "\u{feff}a = 1\n"] {
        put(&path, text);
        install(&place, &["codex", "--mcp", "--exec", other]).ok();
        let installed = read(&path);
        install(&place, &["codex", "--mcp"]).ok();
        assert_eq!(read(&path), installed.replace(other, env!("CARGO_BIN_EXE_staled")));
        install(&place, &["codex", "--uninstall"]).ok();
        assert_eq!(read(&path), text);
    }
}

#[test]
fn without_a_config_there_is_none_again() {
    let place = Place::new();
    install(&place, &["codex", "--mcp"]).ok();
    assert!(read(&place.home.join(CONFIG)).starts_with("[mcp_servers.staled]\n"));
    install(&place, &["codex", "--uninstall"]).ok();
    assert!(!place.home.join(".codex").exists());
}

#[test]
fn a_server_of_ours_is_brought_up_to_date_and_another_is_left_alone() {
    let place = Place::new();
    let path = place.home.join(CONFIG);
    put(
        &path,
        "[mcp_servers.staled]\ncommand = \"/old/staled\"\nargs = [\"mcp\"]\nstartup_timeout_sec = 9\n",
    );
    install(&place, &["codex", "--mcp"]).ok();
    let new = read(&path);
    assert!(new.contains(env!("CARGO_BIN_EXE_staled")) && new.contains("startup_timeout_sec = 9"), "{new}");
    install(&place, &["codex", "--uninstall"]).ok();
    assert!(!path.exists(), "{}", read(&path));
    for theirs in
        ["[mcp_servers.staled]\ncommand = \"x\"\n", "mcp_servers = { other = { command = \"y\" } }\n"]
    {
        put(&path, theirs);
        install(&place, &["codex", "--mcp"]).fails(2, "config.toml:1:1: ");
        assert_eq!(read(&path), theirs);
    }
}
