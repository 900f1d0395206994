//! Each check where all is well, and where what it looks at was made bad.

use super::answers::Asked;
use super::{Finding, Places, examine, folders, state, to_json};
use crate::client::ClientError;
use crate::daemon::Folders;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A machine on which all is well.
struct Machine {
    _temp: TempDir,
    base: PathBuf,
    places: Places,
    asked: Asked,
}

impl Machine {
    fn new() -> Self {
        let temp = TempDir::new().unwrap();
        let base = temp.path().canonicalize().unwrap();
        let places = Places {
            proc: base.join("proc"),
            sys: base.join("sys"),
            units: vec![base.join("units")],
            folders: Folders::below(&base),
        };
        let machine = Self { _temp: temp, base, places, asked: asked(&json!({})) };
        machine.write("proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
        machine.inotify("max_user_watches", 100);
        machine.inotify("max_user_instances", 128);
        machine.inotify("max_queued_events", 16_384);
        machine.write(
            "proc/7/limits",
            "Limit  Soft\nMax open files            1024                 4096  files\n",
        );
        machine
            .write("proc/self/limits", "Max open files            unlimited            unlimited  files\n");
        machine.write("sys/kernel/security/lsm", "lockdown,landlock,yama\n");
        machine.write("units/staled.service", "[Unit]\n");
        machine.write("units/other.service", "[Unit]\n");
        machine.write("state/decisions.jsonl", "{}\n");
        machine.write("state/journal/0001", "12345");
        machine.write("state/index/db", "1");
        machine.write("run/staled.pid", "7\n");
        machine.open_to("run", 0o700);
        machine
    }

    fn without_daemon() -> Self {
        let mut machine = Self::new();
        machine.asked = Asked {
            hello: Err(ClientError::NoDaemon {
                socket: machine.places.folders.socket.clone(),
                source: std::io::ErrorKind::NotFound.into(),
            }),
            status: Err("no daemon was asked".to_owned()),
            roots: Err("no daemon was asked".to_owned()),
        };
        machine
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.base.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn inotify(&self, name: &str, limit: u64) {
        self.write(&format!("proc/sys/fs/inotify/{name}"), &format!("{limit}\n"));
    }

    /// A process that acts as this user.
    fn runs(&self, pid: u32, uid: u32) {
        self.write(&format!("proc/{pid}/status"), &format!("Name:\tx\nUid:\t9\t{uid}\t9\t9\nGid:\t1\n"));
        fs::create_dir_all(self.base.join(format!("proc/{pid}/fd"))).unwrap();
    }

    fn open_to(&self, path: &str, mode: u32) {
        fs::set_permissions(self.base.join(path), fs::Permissions::from_mode(mode)).unwrap();
    }

    fn path(&self, path: &str) -> String {
        self.base.join(path).to_str().unwrap().to_owned()
    }

    fn findings(&self) -> Vec<Finding> {
        examine(&self.places, &self.asked)
    }

    /// The only thing that is wrong.
    fn wrong(&self) -> (&'static str, String, String) {
        let mut wrong: Vec<Finding> =
            self.findings().into_iter().filter(|finding| !finding.is_well()).collect();
        assert_eq!(wrong.len(), 1, "{wrong:#?}");
        let Finding { name, found, remedy } = wrong.pop().unwrap();
        (name, found, remedy.unwrap())
    }

    /// The only thing that is wrong has this name, says this, and offers this.
    fn says(&self, name: &str, found: &str, remedy: &str) {
        let wrong = self.wrong();
        assert_eq!(wrong.0, name, "{wrong:?}");
        assert!(wrong.1.contains(found) && wrong.2.contains(remedy), "{wrong:?}");
    }

    fn found(&self, name: &str) -> String {
        let finding = self.findings().into_iter().find(|finding| finding.name == name);
        finding.unwrap_or_else(|| panic!("nothing is said of {name}")).found
    }
}

/// The answers of a daemon with which all is well but for these fields of its status.
fn asked(but: &Value) -> Asked {
    let mut status = json!({
        "pid": 7, "watches": 80, "confinement": "enforced", "log_sync": "interval", "problems": [],
    });
    for (name, value) in but.as_object().unwrap() {
        status[name.as_str()] = value.clone();
    }
    let hello = json!({ "name": "staled", "version": env!("CARGO_PKG_VERSION"), "pid": 7 });
    Asked { hello: Ok(hello), status: Ok(status), roots: Ok(BTreeSet::new()) }
}

#[test]
fn a_machine_on_which_all_is_well_has_nothing_wrong() {
    let machine = Machine::new();
    let wrong: Vec<Finding> = machine.findings().into_iter().filter(|finding| !finding.is_well()).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(machine.found("kernel"), "6.1.0-18-amd64");
    assert_eq!(machine.found("units"), machine.path("units/staled.service"), "and not the other one");
    assert!(machine.found("journal").ends_with(", 5 B"), "{}", machine.found("journal"));
    assert!(machine.found("decision log").ends_with("ends whole, sync interval"));
    assert_eq!(to_json(&machine.findings())["ok"], true);
}

#[test]
fn without_a_daemon_everything_else_is_looked_at() {
    let machine = Machine::without_daemon();
    machine.says("daemon", "nobody answers", "`staled serve`");
    assert_eq!(machine.found("confinement"), "the kernel has landlock");
    assert_eq!(machine.found("open files"), "a daemon started here may open any number");
    assert_eq!(machine.found("root"), "not known without a daemon");
    machine.write("sys/kernel/security/lsm", "lockdown,landlocked\n");
    assert!(machine.findings().iter().any(|finding| finding.found == "the kernel runs without landlock"));
}

#[test]
fn what_the_kernel_allows_is_compared_with_what_is_needed() {
    let mut machine = Machine::new();
    machine.write("proc/sys/kernel/osrelease", "5.10.0\n");
    machine.says("kernel", "5.10.0 has no landlock", "5.13");
    machine.write("proc/sys/kernel/osrelease", "5.13\n");
    machine.asked = asked(&json!({ "watches": 81 }));
    machine.says("max_user_watches", "81 of 100", "`sysctl -w fs.inotify.max_user_watches=524288`");
    machine.says("max_user_watches", "81 of 100", "/etc/sysctl.d/");
    machine.inotify("max_user_watches", 102);
    machine.inotify("max_queued_events", 16_383);
    machine.says("max_queued_events", "16383", "`sysctl -w fs.inotify.max_queued_events=16384`");
    machine.inotify("max_queued_events", 16_384);
    machine.write("proc/7/limits", "Max open files            1023                 4096  files\n");
    machine.says("open files", "the daemon may open 1023", "LimitNOFILE=1024");
}

#[test]
fn instances_of_inotify_that_are_in_use_are_counted() {
    let machine = Machine::new();
    machine.inotify("max_user_instances", 10);
    machine.runs(7, 4_242);
    machine.runs(12, 4_242);
    // As many of another user, which is what root sees.
    machine.runs(13, 4_243);
    for fd in 0..7 {
        symlink("anon_inode:inotify", machine.base.join(format!("proc/13/fd/{fd}"))).unwrap();
    }
    for fd in 0..7 {
        symlink("anon_inode:inotify", machine.base.join(format!("proc/12/fd/{fd}"))).unwrap();
    }
    symlink("anon_inode:[eventpoll]", machine.base.join("proc/12/fd/99")).unwrap();
    assert_eq!(machine.found("max_user_instances"), "at least 7 of 10 are in use");
    assert!(machine.findings().iter().all(Finding::is_well), "the next one is at the bound");
    symlink("anon_inode:inotify", machine.base.join("proc/12/fd/7")).unwrap();
    machine.says("max_user_instances", "at least 8 of 10", "`sysctl -w fs.inotify.max_user_instances=128`");
    fs::remove_file(machine.base.join("proc/7/status")).unwrap();
    assert_eq!(
        machine.found("max_user_instances"),
        "at least 0 of 10 are in use",
        "without a daemon our own"
    );
    machine.runs(14, rustix::process::geteuid().as_raw());
    symlink("anon_inode:inotify", machine.base.join("proc/14/fd/0")).unwrap();
    assert_eq!(machine.found("max_user_instances"), "at least 1 of 10 are in use");
}

#[test]
fn a_limit_that_cannot_be_read_is_not_called_well() {
    let machine = Machine::new();
    fs::remove_file(machine.base.join("proc/sys/fs/inotify/max_user_watches")).unwrap();
    machine.says("max_user_watches", "does not tell", "mount proc");
}

#[test]
fn filesystems_are_named_and_a_missing_root_is_said() {
    let mut machine = Machine::new();
    machine.asked.roots = Ok([machine.base.join("run"), PathBuf::from("/proc/self")].into());
    machine.says("root", "/proc/self is on proc", "verify.unwatchable");
    machine.asked.roots = Ok([machine.base.join("gone")].into());
    machine.says("root", "gone is not there", "`staled drop SESSION`");
    machine.asked.roots = Ok([machine.base.join("run/staled.pid/below")].into());
    machine.says("root", "cannot be looked at", "every folder on the way");
    machine.asked.roots = Ok([machine.base.clone()].into());
    assert!(machine.found("root").contains(" is on "), "{}", machine.found("root"));
    machine.asked.roots = Err("it is busy".to_owned());
    machine.says("root", "it is busy", "`staled list`");
}

#[test]
fn folders_that_are_not_there_yet_are_said_and_are_no_problem() {
    let mut machine = Machine::new();
    machine.places.folders = Folders::below(&machine.base.join("later"));
    assert!(machine.findings().iter().all(Finding::is_well), "{:#?}", machine.findings());
    for name in ["state", "runtime", "socket folder", "decision log", "journal", "index"] {
        assert!(machine.found(name).contains("is not there yet"), "{name}: {}", machine.found(name));
    }
    assert!(machine.found("space").contains(" free for "), "told of the folder above it");
}

#[test]
fn a_state_on_a_filesystem_that_does_not_report_is_a_problem() {
    let mut machine = Machine::new();
    machine.places.folders.state = PathBuf::from("/proc/self");
    let wrong = machine.findings();
    let wrong = wrong.iter().find(|finding| finding.name == "state").unwrap();
    assert!(wrong.found.contains("is on proc") && wrong.remedy.is_some(), "{wrong:?}");
}

#[test]
fn a_disk_that_is_nearly_full_is_a_problem() {
    let mib = 1024 * 1024;
    assert!(folders::enough(Path::new("/s"), 128 * mib).is_well());
    let full = folders::enough(Path::new("/s"), 128 * mib - 1);
    assert_eq!(full.remedy.as_deref(), Some("make room for 128.0 MiB at least"));
}

#[test]
fn how_far_the_daemon_is_confined_is_its_own_word() {
    let mut machine = Machine::new();
    for (word, well) in [("enforced", true), ("partly", true), ("off", true), ("not", false), ("", false)] {
        machine.asked = asked(&json!({ "confinement": word }));
        assert_eq!(machine.findings().iter().all(Finding::is_well), well, "{word}");
    }
}

#[test]
fn the_socket_is_behind_a_folder_of_ours_and_the_one_who_answers_is_of_our_version() {
    let mut machine = Machine::new();
    machine.open_to("run", 0o710);
    machine.says("socket folder", "mode 710", &format!("chmod 700 '{}'", machine.path("run")));
    machine.open_to("run", 0o700);
    machine.asked.hello = Ok(json!({ "name": "staled", "version": "0.0.1" }));
    machine.says("daemon", "staled 0.0.1 answers", "`staled stop`");
    machine.asked.hello = Ok(json!({ "name": "other" }));
    machine.says("daemon", "no staled", "--socket");
    machine.asked = asked(&json!({}));
    machine.asked.status = Err("busy".to_owned());
    let said = machine.findings();
    assert!(
        said.iter().any(|finding| finding.name == "health" && finding.found.contains("busy")),
        "{said:#?}"
    );
}

#[test]
fn units_that_lead_nowhere_are_said_and_none_is_well() {
    let machine = Machine::new();
    symlink("/nowhere/staled.socket", machine.base.join("units/staled.socket")).unwrap();
    machine.says("units", "units/staled.socket", "install it anew");
    fs::remove_dir_all(machine.base.join("units")).unwrap();
    assert!(machine.found("units").starts_with("none of ours"));
    assert!(machine.findings().iter().all(Finding::is_well));
}

#[test]
fn a_log_that_ends_inside_a_line_and_what_was_set_aside_are_said() {
    let machine = Machine::new();
    machine.write("state/decisions.jsonl", "{}\n{\"half\":");
    machine.says("decision log", "ends inside a line", "`staled log verify`");
    machine.write("state/decisions.jsonl", "");
    assert!(machine.findings().iter().all(Finding::is_well), "an empty one is whole");
    machine.write("state/index.aside-2026-2/db", "123");
    assert!(machine.findings().iter().all(Finding::is_well), "the daemon sees to that one");
    let said = machine.found("leftovers");
    assert!(said.contains("index.aside-2026-2 was set aside, 3 B; another was made"), "{said}");
    machine.write("state/journal/0001.torn-5", "12345");
    let remedy = format!("`rm -r '{}'`", machine.path("state/journal/0001.torn-5"));
    machine.says("leftovers", "0001.torn-5 was set aside, 5 B", &remedy);
    fs::remove_file(machine.base.join("state/journal/0001.torn-5")).unwrap();
    machine.write("state/journal/0001.seg.damaged", "1");
    machine.says("leftovers", "0001.seg.damaged was set aside, 1 B", "rm -r");
}

#[test]
fn what_an_import_left_is_said_with_the_way_on() {
    let machine = Machine::new();
    machine.write("state/journal.new/0001.seg", "123");
    machine.says(
        "leftovers",
        "journal.new was left by an import that did not end, 3 B",
        "import-state` once more",
    );
    fs::remove_dir_all(machine.base.join("state/journal.new")).unwrap();
    machine.write("state/journal.old-2/0001.seg", "12");
    machine.says("leftovers", "journal.old-2 gave way to an import, and has no sessions, 2 B", "`rm -r ");
    fs::remove_dir_all(machine.base.join("state/journal")).unwrap();
    machine.says(
        "leftovers",
        "journal.old-2 gave way to an import that did not end",
        "that one had no sessions",
    );
}

#[test]
fn a_line_that_is_on_its_way_is_waited_for_and_one_that_never_comes_is_not() {
    let machine = Machine::new();
    machine.write("state/decisions.jsonl", "{}\n{\"half\":");
    let path = machine.base.join("state/decisions.jsonl");
    let mut pauses = 0;
    let end = state::end_of(&path, || {
        pauses += 1;
        machine.write(
            "state/decisions.jsonl",
            ["{}\n{\"half\": 1", "{}\n{\"half\": 1}\n"][usize::from(pauses > 1)],
        );
    });
    assert_eq!((end.unwrap(), pauses), ((15, true), 2));
    machine.write("state/decisions.jsonl", "{}\n{");
    assert_eq!(state::end_of(&path, || ()).unwrap(), (4, false));
}

#[test]
fn what_the_daemon_calls_a_problem_is_one() {
    let mut machine = Machine::new();
    machine.asked = asked(&json!({ "problems": ["3 results cannot be watched; raise it"] }));
    machine.says("health", "3 results cannot be watched; raise it", "`staled status`");
    assert_eq!(to_json(&machine.findings())["ok"], false);
}
