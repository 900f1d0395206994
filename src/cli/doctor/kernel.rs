//! What the kernel allows: its version, inotify's three limits, open files.

use super::answers::Asked;
use super::{Finding, Places};
use std::path::Path;

/// The first kernel with landlock.
const KERNEL_MIN: (u32, u32) = (5, 13);
/// What the kernel itself sets; a smaller queue overflows in an ordinary checkout.
const QUEUE_MIN: u64 = 16_384;
/// 256 connections, the files of the store, and the looks.
const OPEN_FILES_MIN: u64 = 1_024;
/// Percent of a limit above which it is too near.
const NEAR: u64 = 80;
/// The file in which a limit outlasts the next boot.
const SYSCTL_FILE: &str = "/etc/sysctl.d/60-staled.conf";

pub(super) fn check(places: &Places, asked: &Asked) -> Vec<Finding> {
    vec![
        version(places),
        limit(places, "max_user_watches", |limit| watches(limit, asked.number("watches"))),
        limit(places, "max_user_instances", |limit| instances(limit, instances_in_use(places, asked))),
        limit(places, "max_queued_events", queue),
        open_files(places, asked),
    ]
}

fn version(places: &Places) -> Finding {
    const NAME: &str = "kernel";
    let Ok(text) = std::fs::read_to_string(places.proc.join("sys/kernel/osrelease")) else {
        return unreadable(NAME, &places.proc);
    };
    let text = text.trim();
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if found < KERNEL_MIN {
        let (major, minor) = KERNEL_MIN;
        return Finding::wrong(
            NAME,
            format!("{text} has no landlock, so the daemon is not confined"),
            format!("{major}.{minor} or later has it"),
        );
    }
    Finding::well(NAME, text)
}

/// One of inotify's limits. The name of a check is that of its limit.
fn limit(places: &Places, name: &'static str, judge: impl FnOnce(u64) -> Finding) -> Finding {
    let path = places.proc.join("sys/fs/inotify").join(name);
    let number = std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok());
    number.map_or_else(|| unreadable(name, &places.proc), judge)
}

fn unreadable(name: &'static str, proc: &Path) -> Finding {
    Finding::wrong(name, format!("{} does not tell", proc.display()), "mount proc there")
}

/// The daemon's share; what other programs of the same user hold nobody tells.
fn watches(limit: u64, held: Option<u64>) -> Finding {
    const NAME: &str = "max_user_watches";
    match held {
        Some(held) if held * 100 > limit * NEAR => Finding::wrong(
            NAME,
            format!("the daemon holds {held} of {limit} watches"),
            raise(NAME, (limit * 2).max(524_288)),
        ),
        Some(held) => Finding::well(NAME, format!("the daemon holds {held} of {limit} watches")),
        None => Finding::well(NAME, limit.to_string()),
    }
}

fn instances(limit: u64, used: u64) -> Finding {
    const NAME: &str = "max_user_instances";
    let found = format!("at least {used} of {limit} are in use");
    if (used + 1) * 100 > limit * NEAR {
        return Finding::wrong(NAME, found, raise(NAME, (limit * 2).max(128)));
    }
    Finding::well(NAME, found)
}

fn queue(limit: u64) -> Finding {
    const NAME: &str = "max_queued_events";
    if limit < QUEUE_MIN {
        let found = format!("{limit} events, so a checkout of many files is a gap");
        let remedy = format!("{}, then start the daemon anew", raise(NAME, QUEUE_MIN));
        return Finding::wrong(NAME, found, remedy);
    }
    Finding::well(NAME, limit.to_string())
}

fn raise(name: &str, to: u64) -> String {
    format!("`sysctl -w fs.inotify.{name}={to}`, and the line `fs.inotify.{name} = {to}` in {SYSCTL_FILE}")
}

/// Instances of the daemon's user, for whom the limit is, as far as we may see them: a process that cannot be looked
/// into is not counted.
fn instances_in_use(places: &Places, asked: &Asked) -> u64 {
    let daemon = asked.number("pid").and_then(|pid| owner(&places.proc.join(pid.to_string())));
    let user = daemon.unwrap_or_else(|| rustix::process::geteuid().as_raw());
    let processes = std::fs::read_dir(&places.proc).into_iter().flatten().flatten().map(|entry| entry.path());
    let files = processes
        .filter(|process| owner(process) == Some(user))
        .flat_map(|process| std::fs::read_dir(process.join("fd")).into_iter().flatten());
    let is_instance =
        |path: &Path| std::fs::read_link(path).is_ok_and(|target| target.as_os_str() == "anon_inode:inotify");
    files.flatten().filter(|file| is_instance(&file.path())).count() as u64
}

/// The user against whom an instance that a process makes is counted: the effective one. None where this is no process.
fn owner(process: &Path) -> Option<u32> {
    process.file_name()?.to_str()?.parse::<u32>().ok()?;
    let status = std::fs::read_to_string(process.join("status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_whitespace().nth(1)?.parse().ok()
}

/// Of the daemon where there is one, and else of ourselves, as a daemon started here would have it.
fn open_files(places: &Places, asked: &Asked) -> Finding {
    const NAME: &str = "open files";
    let (whose, process) = match asked.number("pid") {
        Some(pid) => ("the daemon", pid.to_string()),
        None => ("a daemon started here", "self".to_owned()),
    };
    let limits = std::fs::read_to_string(places.proc.join(process).join("limits")).unwrap_or_default();
    let soft = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    match soft.and_then(|rest| rest.split_whitespace().next()) {
        Some("unlimited") => Finding::well(NAME, format!("{whose} may open any number")),
        Some(soft) => match soft.parse::<u64>() {
            Ok(soft) if soft < OPEN_FILES_MIN => Finding::wrong(
                NAME,
                format!("{whose} may open {soft}"),
                format!(
                    "`ulimit -n {OPEN_FILES_MIN}` before `staled serve`, or LimitNOFILE={OPEN_FILES_MIN} in its unit"
                ),
            ),
            Ok(soft) => Finding::well(NAME, format!("{whose} may open {soft}")),
            Err(_) => unreadable(NAME, &places.proc),
        },
        None => unreadable(NAME, &places.proc),
    }
}
