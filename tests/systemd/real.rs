//! The template under a real systemd, PID 1 of its own namespaces on an overlay of this machine, and the user unit under
//! a real user manager in there: nothing of it stays.

use super::is_there;
use crate::harness::skipped;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

const COMMON: &str = include_str!("common.sh");
const INSIDE: &str = include_str!("inside.sh");
const USER: &str = include_str!("user.sh");
const USERS: &str = "dev:x:4242:4242::/home/dev:/bin/bash\nother:x:4243:4243::/:/bin/sh\n";
const CI_SERVICE: &str = "\
[Unit]
After=sysinit.target systemd-journald.service
[Service]
Type=oneshot
ExecStart=/bin/bash /share/inside.sh
ExecStopPost=/bin/sh -c 'systemctl exit $EXIT_STATUS'
StandardOutput=file:/share/out.log
StandardError=inherit
";

/// Below the root that systemd is going to have: the program, two users, and what runs the scenario.
fn prepare() -> String {
    format!(
        "#!/bin/bash
set -e
n=$1
install -m755 {program} $n/usr/local/bin/staled
printf '{users}' >> $n/etc/passwd
printf 'dev:x:4242:\\nother:x:4243:\\n' >> $n/etc/group
printf 'dev:*:19000::::::\\n' >> $n/etc/shadow
install -d -m700 -o 4242 -g 4242 $n/home/dev $n/run/user/4242
cp $n/share/ci.service $n/etc/systemd/system/
mkdir -p $n/etc/systemd/system/staled-ci.target.wants
ln -s ../ci.service $n/etc/systemd/system/staled-ci.target.wants/
",
        program = env!("CARGO_BIN_EXE_staled"),
        users = USERS.replace('\n', "\\n"),
    )
}

fn boot() -> Option<PathBuf> {
    let boot = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/tools/systemd-ns/boot.sh");
    let lacks = [
        (boot.is_file(), "../shared/tools/systemd-ns/boot.sh is not there"),
        (rustix::process::geteuid().is_root(), "only root may start a systemd"),
        (Path::new("/lib/systemd/systemd").is_file(), "there is no systemd"),
        (is_there("systemd-analyze"), "there is no systemd-analyze"),
        (is_there("unshare") && is_there("setpriv"), "util-linux is not whole"),
        (is_there("ip"), "there is no ip"),
    ];
    match lacks.iter().find(|(there, _)| !there) {
        Some((_, why)) => {
            skipped(why);
            None
        }
        None => Some(boot),
    }
}

#[test]
fn systemd_starts_watches_reloads_and_stops_it_and_no_request_is_lost() {
    // One of the steps is in a loop of two.
    is_seen(INSIDE, steps(INSIDE) + 1);
}

#[test]
fn a_user_manager_starts_reloads_and_stops_the_user_unit() {
    is_seen(USER, steps(USER));
}

/// Runs a scenario, which sees so many things and nothing wrong.
fn is_seen(scenario: &str, wanted: usize) {
    let Some(boot) = boot() else { return };
    let share = TempDir::new().expect("a folder");
    let write = |name: &str, text: &str, mode| {
        let path = share.path().join(name);
        std::fs::write(&path, text).expect("a file");
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).expect("ours");
    };
    write("prepare", &prepare(), 0o755);
    write("inside.sh", &format!("{COMMON}\n{scenario}"), 0o755);
    write("ci.service", CI_SERVICE, 0o644);
    // Whatever hangs in there is killed with it, for its namespaces end.
    let output = Command::new("timeout")
        .args(["--kill-after=10", "180", "bash"])
        .arg(boot)
        .arg(share.path())
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    let seen = std::fs::read_to_string(share.path().join("out.log")).unwrap_or_default();
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !seen.contains("not ok"), "{}\n{seen}\n{talk}", output.status);
    // A scenario that ends early sees nothing wrong.
    let found = seen.lines().filter(|line| line.starts_with("ok ")).count();
    assert_eq!(found, wanted, "{seen}");
}

/// How many things a scenario looks at: each `see` and `until_so` is one, and `forks` looks at several.
fn steps(scenario: &str) -> usize {
    let shared = scenario.lines().filter(|line| line.starts_with("forks ")).count();
    looks(scenario) + shared * looks(COMMON)
}

fn looks(scenario: &str) -> usize {
    let begins =
        |line: &&str| line.split("; ").any(|part| part.starts_with("see ") || part.starts_with("until_so "));
    scenario.lines().map(str::trim_start).filter(begins).count()
}
