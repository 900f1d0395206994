//! `serve`: the daemon as a process of its own, from its first line to its last.

use super::{Run, program, staled};
use crate::harness::{PATIENCE, Place, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A process that is killed when the test forgets it.
pub(super) struct Kept(pub(super) Child);

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A daemon in a process of its own.
pub(crate) struct Serving {
    child: Kept,
    pub(crate) socket: PathBuf,
    log: PathBuf,
}

impl Serving {
    pub(crate) fn start(place: &Place, args: &[&str]) -> Self {
        Self::start_under(place, args, &[])
    }

    /// With these variables, which systemd would set.
    pub(crate) fn start_under(place: &Place, args: &[&str], variables: &[(&str, &Path)]) -> Self {
        let mut command = program(place);
        command.envs(variables.iter().copied());
        Self::start_by(place, command, args)
    }

    /// By this command, which runs the program with what follows.
    pub(super) fn start_by(place: &Place, mut command: Command, args: &[&str]) -> Self {
        command.args(["serve", "--state"]).arg(state(place)).args(args);
        Self::of(place, command, state(place).join("run/staled.sock"))
    }

    /// What this command starts, once it serves.
    pub(super) fn of(place: &Place, mut command: Command, socket: PathBuf) -> Self {
        let log = place.home.with_file_name("serve.log");
        let stderr = std::fs::File::create(&log).expect("a file");
        let child = command.stderr(stderr).spawn().expect("it runs");
        let serving = Self { child: Kept(child), socket, log };
        wait_until("the daemon serves", || serving.said().contains("staled is serving at "));
        serving
    }

    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.0.id()).expect("a pid")).expect("not 0")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it runs");
    }

    /// Waits for the end of one that was killed.
    pub(crate) fn is_dead(&mut self) {
        self.child.0.wait().expect("it was started");
    }

    pub(crate) fn ends(&mut self) -> i32 {
        wait_until("it ends", || self.child.0.try_wait().expect("it was started").is_some());
        let status = self.child.0.wait().expect("it ended");
        status.code().unwrap_or_else(|| panic!("ended by {status}: {}", self.said()))
    }
}

pub(crate) fn state(place: &Place) -> PathBuf {
    place.home.join("state")
}

/// A `serve` that is expected to fail, and is not waited for if it serves.
pub(crate) fn refused(place: &Place, args: &[&str]) -> Run {
    let mut command = program(place);
    command.arg("serve").args(args);
    refused_by(command)
}

/// The same of a command that starts it in its own way.
pub(super) fn refused_by(mut command: Command) -> Run {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Kept(command.spawn().expect("it runs"));
    wait_until("it is refused", || child.0.try_wait().expect("it was started").is_some());
    let text = |pipe: &mut dyn Read| {
        let mut text = String::new();
        pipe.read_to_string(&mut text).expect("UTF-8");
        text
    };
    let out = text(child.0.stdout.as_mut().expect("piped"));
    let err = text(child.0.stderr.as_mut().expect("piped"));
    let code = child.0.wait().expect("it ended").code().expect("by itself");
    Run { code, out, err }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("it exists").permissions().mode() & 0o7777
}

#[test]
fn it_serves_in_folders_of_its_own_and_ends_on_sigterm() {
    let place = Place::new();
    let mut daemon = Serving::start(&place, &[]);
    let said = daemon.said();
    let line =
        format!("staled is serving at {} (state in {})", daemon.socket.display(), state(&place).display());
    assert_eq!(said.lines().filter(|said| *said == line).count(), 1, "{said}");
    assert_eq!((mode(&state(&place)), mode(&state(&place).join("run"))), (0o700, 0o700));
    assert_eq!(mode(&daemon.socket), 0o600);
    assert!(std::fs::metadata(&daemon.socket).expect("a socket").file_type().is_socket());
    staled(&place, &daemon.socket, &["status"]).ok();
    let begun = Instant::now();
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.ends(), 0);
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert!(!daemon.socket.exists() && !daemon.said().contains('\u{1b}'));
}

#[test]
fn systemd_is_told_when_it_is_ready_and_when_it_stops() {
    let place = Place::new();
    let path = place.root.join("notify");
    let systemd = UnixDatagram::bind(&path).expect("a datagram socket");
    systemd.set_read_timeout(Some(PATIENCE)).expect("a bound");
    let told = || {
        let mut message = [0; 256];
        let len = systemd.recv(&mut message).expect("systemd is told");
        String::from_utf8_lossy(&message[..len]).into_owned()
    };
    let mut daemon = Serving::start_under(&place, &[], &[("NOTIFY_SOCKET", &path)]);
    assert!(told().starts_with("READY=1\nSTATUS="));
    daemon.signal(Signal::TERM);
    assert_eq!(told().trim(), "STOPPING=1");
    assert_eq!(daemon.ends(), 0);
}

#[test]
fn systemd_hears_of_reloads_and_of_cookies_that_came_back() {
    let place = Place::new();
    let path = place.root.join("notify");
    let systemd = UnixDatagram::bind(&path).expect("a datagram socket");
    systemd.set_read_timeout(Some(PATIENCE)).expect("a bound");
    let told = |wanted: &str| loop {
        let mut message = [0; 1024];
        let len = systemd.recv(&mut message).unwrap_or_else(|error| panic!("never told {wanted}: {error}"));
        let said = String::from_utf8_lossy(&message[..len]).into_owned();
        if said.starts_with(wanted) {
            return said;
        }
        assert_eq!(said, "WATCHDOG=1\n", "while waiting for {wanted}");
    };
    let file = config(&place, "");
    let variables = [("NOTIFY_SOCKET", path.as_path()), ("WATCHDOG_USEC", Path::new("300000"))];
    let mut daemon = Serving::start_under(&place, &["--config", &file], &variables);
    told("READY=1\n");
    told("WATCHDOG=1\n");
    for (text, status) in [("[log]\nsink = 1\n", "was not reloaded: "), ("", "is reloaded")] {
        config(&place, text);
        daemon.signal(Signal::HUP);
        assert!(told("RELOADING=1\n").contains("MONOTONIC_USEC="));
        let ready = told("READY=1\n");
        assert!(ready.contains(status) && ready.lines().count() == 2, "{ready}");
    }
    daemon.signal(Signal::TERM);
    told("STOPPING=1\n");
    assert_eq!(daemon.ends(), 0);
}

#[test]
fn a_log_that_was_renamed_away_is_followed_on_sigusr1() {
    let place = Place::new();
    let daemon = Serving::start(&place, &[]);
    let log = state(&place).join("decisions.jsonl");
    std::fs::rename(&log, log.with_extension("old")).expect("it is renamed");
    daemon.signal(Signal::USR1);
    wait_until("the log is there again", || {
        std::fs::read_to_string(&log).is_ok_and(|log| log.ends_with('\n'))
    });
    let first = std::fs::read_to_string(&log).expect("it is there");
    assert!(first.contains("\"event\":\"log_continued\""), "{first}");
}

#[test]
fn a_second_daemon_is_refused_and_touches_nothing() {
    let place = Place::new();
    let daemon = Serving::start(&place, &[]);
    let files = || {
        let names = ["decisions.jsonl", "run/staled.pid"]
            .map(|name| std::fs::read(state(&place).join(name)).expect("a file"));
        let inode =
            std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&daemon.socket).expect("a socket"));
        (names, inode)
    };
    let before = files();
    let state_folder = state(&place);
    let state_folder = state_folder.to_str().expect("UTF-8");
    refused(&place, &["--state", state_folder]).fails(2, "another daemon is running on");
    let other = place.home.join("other");
    let runtime = state(&place).join("run");
    let args = ["--state", other.to_str().expect("UTF-8"), "--runtime", runtime.to_str().expect("UTF-8")];
    let run = refused(&place, &args);
    run.fails(2, "another daemon is running on");
    assert!(run.err.contains("`staled status`"), "{run:?}");
    assert_eq!(files(), before);
    staled(&place, &daemon.socket, &["status"]).ok();
}

#[test]
fn a_bad_configuration_is_refused_and_the_old_one_stays() {
    let place = Place::new();
    let path = config(&place, "[log]\nsync = \"off\"\n");
    let daemon = Serving::start(&place, &["--config", &path]);
    let sync = || staled(&place, &daemon.socket, &["status", "--json"]).ok().json()["log_sync"].clone();
    assert_eq!(sync(), "off");
    config(&place, "[log]\nsync = \"always\"\nsink = 1\n");
    staled(&place, &daemon.socket, &["reload"]).fails(2, "sink");
    daemon.signal(Signal::HUP);
    wait_until("the refusal is told", || daemon.said().contains("the configuration was not reloaded"));
    assert!(daemon.said().contains("sink"), "{}", daemon.said());
    assert_eq!(sync(), "off");
    config(&place, "[log]\nsync = \"always\"\n");
    daemon.signal(Signal::HUP);
    wait_until("the new one is taken", || sync() == "always");
    config(&place, "[log]\nsync = \"interval\"\n");
    assert_eq!(staled(&place, &daemon.socket, &["reload"]).ok().out, "the configuration is reloaded\n");
    assert_eq!(sync(), "interval");
}

#[test]
fn a_configuration_error_names_the_key_and_ends_with_78() {
    let place = Place::new();
    for (text, names) in
        [("[log]\nsink = 1\n", "sink"), ("[verify]\nthreads = 0\n", "verify.threads"), ("[log\n", "line 1")]
    {
        let path = config(&place, text);
        refused(&place, &["--config", &path]).fails(78, names);
    }
    refused(&place, &["--config", "/nowhere/staled.toml"]).fails(78, "/nowhere/staled.toml");
    assert!(!place.home.join(".local").exists(), "nothing was begun");
}

#[test]
fn a_configuration_that_cannot_be_read_now_may_be_readable_later() {
    let place = Place::new();
    // An error of the disk, as the kernel gives it to whoever reads what is not mapped.
    let refusal = refused(&place, &["--config", "/proc/self/mem"]);
    refusal.fails(2, "cannot read the configuration /proc/self/mem");
    let folder = place.home.join(".config/staled");
    std::fs::create_dir_all(&folder).expect("a folder");
    // Nobody can say what is there, and so not that nothing is.
    std::os::unix::fs::symlink("config.toml", folder.join("config.toml")).expect("a link to itself");
    refused(&place, &[]).fails(2, "/.config/staled/config.toml: ");
    refused(&place, &["--config", "/proc/self"]).fails(78, "directory");
    refused(&place, &["--config", "/proc/version/staled.toml"]).fails(78, "Not a directory");
    std::fs::write(place.home.with_file_name("bytes.toml"), b"\xff").expect("a file");
    refused(&place, &["--config", "../bytes.toml"]).fails(78, "UTF-8");
    assert!(!place.home.join(".local").exists(), "nothing was begun");
}

#[test]
fn stop_waits_for_the_end_so_that_the_next_may_begin() {
    let place = Place::new();
    let mut daemon = Serving::start(&place, &[]);
    assert_eq!(staled(&place, &daemon.socket, &["stop"]).ends(0).out, "the daemon has stopped\n");
    assert_eq!(daemon.ends(), 0);
    let mut daemon = Serving::start(&place, &[]);
    assert_eq!(staled(&place, &daemon.socket, &["stop", "--json"]).ok().json()["stopping"], true);
    assert_eq!(daemon.ends(), 0);
}

#[test]
fn without_a_runtime_folder_everything_is_below_the_state() {
    let place = Place::new();
    let log = place.home.with_file_name("usual.log");
    let stderr = std::fs::File::create(&log).expect("a file");
    let child = program(&place).arg("serve").stderr(stderr).spawn().expect("it runs");
    let socket = place.home.join(".local/state/staled/run/staled.sock");
    let mut daemon = Serving { child: Kept(child), socket, log };
    wait_until("the daemon serves", || daemon.said().contains("staled is serving at "));
    // A client without any option finds it there too.
    let run = super::run_of(program(&place).args(["status"]).output().expect("it runs")).ok();
    assert!(run.out.starts_with("ok  "), "{run:?}");
    daemon.signal(Signal::INT);
    assert_eq!(daemon.ends(), 0);
}

#[test]
fn folders_that_cannot_serve_are_refused_with_a_remedy() {
    let place = Place::new();
    let open = place.home.join("open");
    std::fs::create_dir_all(&open).expect("a folder");
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o755)).expect("ours");
    refused(&place, &["--state", open.to_str().expect("UTF-8")]).fails(2, "chmod 700");
    let long = place.home.join("l".repeat(100));
    refused(&place, &["--state", long.to_str().expect("UTF-8")]).fails(2, "at most 107 bytes");
}

/// The configuration file, written anew.
fn config(place: &Place, text: &str) -> String {
    let path = place.home.with_file_name("staled.toml");
    std::fs::write(&path, text).expect("a file");
    path.to_str().expect("UTF-8").to_owned()
}

#[test]
fn a_stderr_that_takes_nothing_does_not_stop_the_daemon() {
    let place = Place::new();
    for ends in ["2>&-", "2>/dev/full", ">&- 2>&-", ">/dev/full 2>/dev/full"] {
        let mut command = Command::new("sh");
        command.env_clear().env("HOME", &place.home).arg("-c");
        command.arg(format!("exec \"$0\" serve --state \"$1\" {ends}"));
        command.env("STALED_JOURNAL_SOCKET", "/nowhere/journal");
        command.arg(env!("CARGO_BIN_EXE_staled")).arg(state(&place));
        let child = Kept(command.stdin(Stdio::null()).spawn().expect("it runs"));
        let socket = state(&place).join("run/staled.sock");
        let mut daemon = Serving { child, socket, log: place.home.with_file_name("none.log") };
        wait_until("the daemon answers", || staled(&place, &daemon.socket, &["status"]).code == 0);
        staled(&place, &daemon.socket, &["reload"]).ok();
        daemon.signal(Signal::HUP);
        staled(&place, &daemon.socket, &["status"]).ok();
        daemon.signal(Signal::TERM);
        assert_eq!(daemon.ends(), 0, "{ends}");
    }
}
