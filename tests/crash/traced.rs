//! The real program under strace, which makes the system calls of our choice fail, linger, or end it.

use crate::harness::{PATIENCE, Place, can_trace, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use staled::client::Client;
use staled::daemon::Folders;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;

/// A daemon and its tracer.
pub(crate) struct Traced {
    strace: Child,
    pid_file: PathBuf,
}

impl Traced {
    /// `None` (said) where there is no strace, or it may not trace.
    pub(crate) fn start(place: &Place, config: &str, inject: &[String]) -> Option<Self> {
        Self::start_under(place, config, inject, &[])
    }

    /// With these variables, which systemd would set.
    pub(crate) fn start_under(
        place: &Place,
        config: &str,
        inject: &[String],
        variables: &[(&str, &Path)],
    ) -> Option<Self> {
        if !can_trace() {
            return None;
        }
        let folders = Folders::below(&place.home);
        let file = place.home.with_file_name("config.toml");
        std::fs::write(&file, config).expect("a file");
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-o", "/dev/null"]).args(inject).arg(env!("CARGO_BIN_EXE_staled"));
        command.arg("serve").arg("--state").arg(&folders.state).arg("--runtime").arg(&folders.runtime);
        command.arg("--config").arg(file).current_dir(&place.root);
        command
            .env_clear()
            .env("HOME", &place.home)
            .env("STALED_JOURNAL_SOCKET", "/nowhere/journal")
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .envs(variables.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let strace = command.spawn().expect("strace runs");
        Some(Self { strace, pid_file: folders.runtime.join("staled.pid") })
    }

    /// A client, or none when the daemon is gone before it serves.
    pub(crate) fn client(&mut self, socket: &Path) -> Option<Client> {
        let begun = Instant::now();
        loop {
            if let Ok(client) = Client::connect(socket) {
                return Some(client);
            }
            if self.has_ended() {
                return None;
            }
            assert!(begun.elapsed() < PATIENCE, "it neither serves nor ends");
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.ended().is_some()
    }

    /// How it ended, if it did.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.strace.try_wait().expect("a child")
    }

    /// Waits for its end, and tells whether it was killed: strace dies of the signal that its tracee died of. There is no
    /// third way: a daemon that was not killed ends well.
    pub(crate) fn was_killed(&mut self) -> bool {
        wait_until("it is gone", || self.has_ended());
        let ended = self.ended().expect("it is gone");
        let killed = ended.signal() == Some(Signal::KILL.as_raw());
        assert!(killed || ended.success(), "{ended}");
        killed
    }

    /// The daemon's own process.
    pub(crate) fn pid(&self) -> Option<Pid> {
        std::fs::read_to_string(&self.pid_file).ok()?.trim().parse().ok().and_then(Pid::from_raw)
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        if self.strace.try_wait().is_ok_and(|ended| ended.is_some()) {
            return;
        }
        // The end of strace is not the end of what it traces.
        if let Some(pid) = self.pid() {
            let _ = kill_process(pid, Signal::KILL);
        }
        let _ = self.strace.kill();
        let _ = self.strace.wait();
    }
}
