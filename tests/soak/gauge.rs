//! What a process has of the kernel at one moment, read from `/proc`.

use rustix::process::Pid;
use std::fmt;
use std::path::PathBuf;

/// Descriptors, inotify watches, threads and memory of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gauge {
    pub(crate) descriptors: usize,
    pub(crate) watches: usize,
    pub(crate) threads: usize,
    /// Threads of sled, which makes more than seven of them under load and keeps some of those for good.
    pub(crate) of_sled: usize,
    /// All of its resident memory.
    pub(crate) resident_kib: usize,
    /// What of it stands in no file: heap and stacks.
    pub(crate) anonymous_kib: usize,
}

impl Gauge {
    pub(crate) fn of(pid: Pid) -> Self {
        let process = PathBuf::from(format!("/proc/{}", pid.as_raw_nonzero()));
        let status = std::fs::read_to_string(process.join("status")).expect("it runs");
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("the kernel says so");
            line.trim_end_matches("kB").trim_matches([':', '\t', ' ']).parse().expect("a number")
        };
        // Whoever asks is told of its own descriptors while they come and go, so some may be gone.
        let infos = std::fs::read_dir(process.join("fdinfo")).expect("it is ours");
        let infos: Vec<String> =
            infos.flatten().filter_map(|info| std::fs::read_to_string(info.path()).ok()).collect();
        let tasks = std::fs::read_dir(process.join("task")).expect("it is ours").flatten();
        let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
        let (of_sled, threads): (Vec<String>, _) = names.partition(|name| name.starts_with("sled-io"));
        let watches = |info: &String| info.lines().filter(|line| line.starts_with("inotify wd:")).count();
        Self {
            descriptors: infos.len(),
            watches: infos.iter().map(watches).sum(),
            threads: threads.len(),
            of_sled: of_sled.len(),
            resident_kib: field("VmRSS"),
            anonymous_kib: field("RssAnon"),
        }
    }

    /// What must be the same again after everything that was asked for has been taken back.
    pub(crate) fn held(&self) -> [usize; 2] {
        [self.descriptors, self.threads]
    }
}

impl fmt::Display for Gauge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { descriptors, watches, threads, of_sled, resident_kib, anonymous_kib } = self;
        write!(
            out,
            "{descriptors} descriptors, {watches} watches, {threads} threads and {of_sled} of sled, {resident_kib} KiB resident, \
             {anonymous_kib} KiB of them anonymous"
        )
    }
}
