//! What the real daemon has given up: shown by what it then cannot do.

use super::serve::{Serving, state};
use super::staled;
use crate::harness::{Place, ask, file, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};
use staled::client::Client;
use std::io::Write;
use std::process::Command;

/// Points the decision log at a file outside, and has the daemon open it again.
fn reaches_outside(place: &Place, daemon: &Serving) -> bool {
    let (log, outside) = (state(place).join("decisions.jsonl"), place.root.join("outside"));
    std::fs::remove_file(&log).expect("a log");
    std::os::unix::fs::symlink(&outside, &log).expect("a link");
    daemon.signal(Signal::USR1);
    wait_until("it was tried", || {
        daemon.said().contains("decision log reopened") || daemon.said().contains("was not reopened")
    });
    outside.exists()
}

fn of_process(daemon: &Serving, file: &str) -> String {
    let pid = daemon.pid().as_raw_nonzero();
    std::fs::read_to_string(format!("/proc/{pid}/{file}")).expect("it runs")
}

#[test]
fn the_daemon_cannot_write_outside_its_folders() {
    let place = Place::new();
    let daemon = Serving::start(&place, &[]);
    let status = staled(&place, &daemon.socket, &["status", "--json"]).ok().json();
    if status["confinement"] == "not" {
        let _ = writeln!(std::io::stderr(), "skipped: this kernel has no landlock");
        return;
    }
    assert_eq!(status["confinement"], "enforced", "{}", daemon.said());
    assert!(of_process(&daemon, "status").contains("NoNewPrivs:\t1"));
    let limits = of_process(&daemon, "limits");
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).expect("a limit");
    assert_eq!(core.split_whitespace().collect::<Vec<_>>()[4..6], ["0", "0"], "{core}");
    assert!(!reaches_outside(&place, &daemon), "{}", daemon.said());
}

/// What the test above sees is the confinement, and nothing that would be so without it.
#[test]
fn a_daemon_that_is_told_not_to_is_not_confined() {
    let place = Place::new();
    std::fs::create_dir_all(&place.home).expect("a folder");
    let config = place.home.join("config.toml");
    std::fs::write(&config, "[server]\nconfine = \"off\"\n").expect("a file");
    let daemon = Serving::start(&place, &["--config", config.to_str().expect("UTF-8")]);
    assert_eq!(staled(&place, &daemon.socket, &["status", "--json"]).ok().json()["confinement"], "off");
    assert!(reaches_outside(&place, &daemon), "{}", daemon.said());
}

/// Under the units /proc shows no process that may not be traced, and a confined daemon may trace none.
#[test]
fn another_holder_is_named_although_no_process_is_shown_to_the_daemon() {
    let place = Place::new();
    place.write("a", "1");
    let hide = "mount -t proc -o hidepid=invisible proc /proc";
    let may = format!("{hide} && setpriv --regid=65534 --clear-groups true");
    let may = Command::new("unshare").args(["--mount", "sh", "-c", &may]).output();
    if !may.is_ok_and(|output| output.status.success()) {
        let _ = writeln!(std::io::stderr(), "skipped: /proc cannot be mounted anew here");
        return;
    }
    let mut command = Command::new("unshare");
    // The kernel hides nothing from the group of root.
    let start = format!("{hide} && exec setpriv --regid=65534 --clear-groups \"$0\" \"$@\"");
    command.args(["--mount", "sh", "-c", &start]);
    command.arg(env!("CARGO_BIN_EXE_staled")).env("STALED_JOURNAL_SOCKET", "/nowhere/journal");
    let daemon = Serving::start_by(&place, command, &[]);
    let mut client = Client::connect(&daemon.socket).expect("it serves");
    let context = json!({ "session": "s", "root": place.root, "results": [file("a", "1")] });
    ask(&mut client, "context.register", &context);
    let mut held_by = |pid: u32| {
        let asked = json!({ "session": "s", "holder": { "pid": pid } });
        ask(&mut client, "decide", &asked)["held_by"]["pid"].clone()
    };
    let mut other = Command::new("sleep").arg("600").spawn().expect("a process");
    assert_eq!(held_by(other.id()), Value::Null);
    let named = held_by(std::process::id());
    other.kill().expect("it runs");
    assert_eq!(named, other.id());
    // Gone is gone, even if nobody has asked how it ended.
    wait_until("it is forgotten", || held_by(std::process::id()).is_null());
    other.wait().expect("it ended");
}
