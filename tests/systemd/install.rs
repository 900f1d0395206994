//! `staled install systemd`, as a user runs it.

use super::text;
use crate::harness::Place;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn command(place: &Place, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_staled"));
    command.env_clear().env("HOME", &place.home).args(["install", "systemd"]).args(args);
    command
}

fn install(place: &Place, args: &[&str]) -> Output {
    command(place, args).output().expect("it runs")
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn units(place: &Place) -> PathBuf {
    place.home.join(".config/systemd/user")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_units_are_those_of_the_repository_and_start_this_program() {
    let place = Place::new();
    let first = install(&place, &[]);
    assert_eq!(said(&first).matches("written  ").count(), 2, "{first:?}");
    assert!(String::from_utf8_lossy(&first.stderr).contains("systemctl --user enable --now staled.socket"));
    let folder = units(&place);
    let service = read(&folder.join("staled.service"));
    let line = format!("ExecStart={} serve", env!("CARGO_BIN_EXE_staled"));
    assert_eq!(service.lines().filter(|found| **found == line).count(), 1, "{service}");
    let unlike = service.lines().zip(text("staled.service").lines().map(str::to_owned).collect::<Vec<_>>());
    assert_eq!(unlike.filter(|(found, wanted)| found != wanted).count(), 1, "only ExecStart differs");
    assert_eq!(read(&folder.join("staled.socket")), text("staled.socket"));
    let mode = std::fs::metadata(folder.join("staled.socket")).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
    assert_eq!(said(&install(&place, &[])).matches("unchanged  ").count(), 2);
    let names = std::fs::read_dir(&folder).expect("a folder").count();
    assert_eq!(names, 2, "nothing is left beside them, and no drop-in that nobody asked for");
    assert!(!place.home.join(".local").exists());
}

#[test]
fn a_file_that_differs_is_left_alone_until_force() {
    let place = Place::new();
    let socket = units(&place).join("staled.socket");
    std::fs::create_dir_all(units(&place)).expect("a folder");
    std::fs::write(&socket, "mine\n").expect("a file");
    let refused = install(&place, &[]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let why = String::from_utf8_lossy(&refused.stderr);
    assert!(why.contains("staled.socket is there already and differs") && why.contains("--force"), "{why}");
    assert_eq!(read(&socket), "mine\n");
    assert!(!units(&place).join("staled.service").exists(), "nothing was written");
    let forced = said(&install(&place, &["--force"]));
    assert!(forced.contains("written  ") && forced.contains("replaced  "), "{forced}");
    assert_eq!(read(&socket), text("staled.socket"));
}

#[test]
fn namespaces_bring_the_drop_in_and_the_folder_that_it_names() {
    let place = Place::new();
    assert_eq!(said(&install(&place, &["--namespaces"])).matches("written  ").count(), 3);
    let drop_in = "staled.service.d/10-namespaces.conf";
    assert_eq!(read(&units(&place).join(drop_in)), text(drop_in));
    let state = std::fs::metadata(place.home.join(".local/state/staled")).expect("it is made");
    assert_eq!(state.permissions().mode() & 0o777, 0o700);
}

#[test]
fn namespaces_without_a_home_are_refused_and_nothing_is_written() {
    let place = Place::new();
    let config = place.root.join("config");
    let mut install = command(&place, &["--namespaces"]);
    let run = install.env_remove("HOME").env("XDG_CONFIG_HOME", &config).output().expect("it runs");
    let why = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.code() == Some(2) && why.contains("set HOME"), "{run:?}");
    assert!(!config.exists(), "a unit that could not start");
}

#[test]
fn print_writes_nothing_and_json_is_one_line() {
    let place = Place::new();
    let printed = said(&install(&place, &["--print", "--system", "--exec", "/bin/sh"]));
    assert!(printed.contains("# /etc/systemd/system/staled@.service\n"), "{printed}");
    assert!(printed.contains("\nExecStart=/bin/sh serve\n"), "{printed}");
    let json = |args: &[&str]| -> serde_json::Value {
        let line = said(&install(&place, args));
        assert_eq!(line.matches('\n').count(), 1, "{line}");
        serde_json::from_str(&line).expect("JSON")
    };
    let files = json(&["--print", "--json"])["files"].clone();
    assert_eq!(files[1]["content"], text("staled.socket"));
    assert!(!place.home.join(".config").exists());
    let done = json(&["--json"]);
    assert_eq!(done["files"][0]["done"], "written");
    assert!(done["next"][0].as_str().is_some_and(|next| next.contains("daemon-reload")), "{done}");
}

#[test]
fn the_program_is_one_that_systemd_can_start() {
    let place = Place::new();
    for none in ["/nowhere/staled", "/etc/passwd", "/bin"] {
        let refused = install(&place, &["--exec", none]);
        assert_eq!(refused.status.code(), Some(2), "{none}: {refused:?}");
    }
    let odd = place.home.with_file_name("50% of \"it\"");
    std::fs::copy("/bin/true", &odd).expect("a program");
    let printed = said(&install(&place, &["--print", "--exec", odd.to_str().expect("UTF-8")]));
    let line = printed.lines().find(|line| line.starts_with("ExecStart=")).expect("a line");
    assert!(line.ends_with("/50%% of \\\"it\\\"\" serve") && line.starts_with("ExecStart=\"/"), "{line}");
}

#[test]
fn units_of_ours_go_again_and_others_stay() {
    let place = Place::new();
    assert_eq!(said(&install(&place, &["--uninstall"])), "");
    said(&install(&place, &["--namespaces", "--exec", "/bin/sh"]));
    let other = units(&place).join("other.service");
    std::fs::write(&other, "theirs\n").expect("a file");
    let gone = install(&place, &["--uninstall"]);
    assert_eq!(said(&gone).matches("removed  ").count(), 3, "{gone:?}");
    assert!(String::from_utf8_lossy(&gone.stderr).contains("systemctl --user disable --now staled.socket"));
    let names: Vec<_> = std::fs::read_dir(units(&place)).expect("a folder").flatten().collect();
    assert_eq!(names.iter().map(std::fs::DirEntry::path).collect::<Vec<_>>(), [other]);
    said(&install(&place, &[]));
    let socket = units(&place).join("staled.socket");
    std::fs::write(&socket, "mine\n").expect("a file");
    let refused = install(&place, &["--uninstall"]);
    let why = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && why.contains("--force"), "{refused:?}");
    assert!(socket.exists() && units(&place).join("staled.service").exists(), "all or none");
    assert_eq!(said(&install(&place, &["--uninstall", "--force"])).matches("removed  ").count(), 2);
}
