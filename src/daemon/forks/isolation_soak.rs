//! Eight forks that are worked in at the same time, in every way in which files are written, and leaks by chance: each is
//! found, and nothing else is.
//!
//! `STALED_ISOLATION_S=n` is how long it takes, 5 seconds unless it says otherwise. Interleavings are chance, so a seed
//! does not repeat a run; what failed names the leak. The oracle is the list of what the one who leaks has done.

use super::isolation::{Before, Isolation};
use super::isolation_tests::{LONG, Stage0, fork, hold};
use crate::protocol::fork::Fork;
use fastrand::Rng;
use rustix::fs::{AtFlags, CWD, FallocateFlags, Mode, OFlags, XattrFlags};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const FORKS: u64 = 8;
const SECONDS: u64 = 5;
/// Of one fork in one round; more findings than a record keeps would not be told.
const LEAKS_MAX: usize = 30;
/// Things that one worker does in one round.
const STEPS: usize = 60;
/// Ways in which what was allowed is written.
const WAYS: usize = 15;

/// One fork and what is done in it.
struct Bench {
    fork: Fork,
    /// Held while a command runs, so that a leak is never in its time.
    commands: Mutex<()>,
    /// What was leaked, and where it must be found.
    leaked: Mutex<Vec<(String, Vec<PathBuf>)>>,
}

static NAMES: AtomicU64 = AtomicU64::new(0);

fn name(kind: &str) -> String {
    format!("{kind}-{}", NAMES.fetch_add(1, Ordering::SeqCst))
}

#[test]
fn eight_forks_in_parallel_no_leak_missed_no_false_alarm() {
    let seconds = std::env::var("STALED_ISOLATION_S").map_or(SECONDS, |text| text.parse().unwrap());
    let end = Instant::now() + Duration::from_secs(seconds);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut stage = Stage0::new();
    let (mut rounds, mut leaks, mut asked) = (0_u64, 0, 0);
    while rounds == 0 || Instant::now() < end {
        let benches: Vec<Bench> = (0..FORKS).map(|at| bench(&stage, at, rounds * FORKS + at)).collect();
        for bench in &benches {
            runtime.block_on(stage.isolation.guard(&bench.fork, Before::New)).unwrap();
        }
        asked += work(&stage.isolation, &benches);
        let found = runtime.block_on(stage.found());
        for bench in &benches {
            let leaked = bench.leaked.lock().unwrap();
            let told: BTreeSet<&PathBuf> = found
                .iter()
                .filter(|found| found.no == bench.fork.no)
                .map(|found| &found.violation.path.0)
                .collect();
            for (how, paths) in leaked.iter() {
                for path in paths {
                    assert!(told.contains(path), "missed: {how} of {}\nfound: {told:#?}", path.display());
                }
            }
            let meant: BTreeSet<&PathBuf> = leaked.iter().flat_map(|(_, paths)| paths).collect();
            let false_alarms: Vec<_> = told.difference(&meant).collect();
            assert!(
                false_alarms.is_empty(),
                "false alarms: {false_alarms:#?}\nleaked: {leaked:#?}\nfound: {found:#?}"
            );
            leaks += leaked.len();
            stage.isolation.forget(bench.fork.no);
        }
        rounds += 1;
    }
    assert!(leaks > 20, "only {leaks} leaks");
    let said = format!(
        "isolation: {rounds} rounds, {asked} things done with leave, {leaks} leaks, all of them found, no other\n"
    );
    let _ = io::stderr().write_all(said.as_bytes());
}

fn bench(stage: &Stage0, at: u64, no: u64) -> Bench {
    let fork = fork(&stage.base, no, &format!("f{at}"));
    for folder in ["src", "src/deep"] {
        for number in 0..10 {
            fs::write(fork.workspace.0.join(folder).join(format!("old{number}")), "old").unwrap();
        }
    }
    Bench { fork, commands: Mutex::new(()), leaked: Mutex::default() }
}

/// How many things were done with leave.
fn work(isolation: &Isolation, benches: &[Bench]) -> usize {
    let working = AtomicBool::new(true);
    let mut asked = 0;
    std::thread::scope(|scope| {
        let leaking = scope.spawn(|| {
            let mut chance = Rng::new();
            while working.load(Ordering::SeqCst) {
                leak(&benches[chance.usize(0..benches.len())], &mut chance);
                std::thread::sleep(Duration::from_micros(chance.u64(0..2_000)));
            }
        });
        let workers: Vec<_> = benches.iter().map(|bench| scope.spawn(|| worker(isolation, bench))).collect();
        asked = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
        working.store(false, Ordering::SeqCst);
        leaking.join().unwrap();
    });
    asked
}

fn worker(isolation: &Isolation, bench: &Bench) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut chance = Rng::new();
    for step in 0..STEPS {
        if chance.u32(0..8) == 0 {
            let _alone = bench.commands.lock().unwrap();
            let lock = hold(&bench.fork);
            let exec = runtime.block_on(isolation.begin(bench.fork.no));
            (0..chance.usize(1..6)).for_each(|_| command(&bench.fork.workspace.0, &mut chance).unwrap());
            drop(lock);
            runtime.block_on(isolation.end(bench.fork.no, exec));
            continue;
        }
        let folder = bench.fork.workspace.0.join(["src", "src/deep", "", ".git"][chance.usize(0..4)]);
        let (way, path) = (step % WAYS, folder.join(name("own")));
        let path = if way == 0 { folder.join(name("way")).join("b/c").join(name("own")) } else { path };
        runtime.block_on(isolation.allow(bench.fork.no, &path, LONG));
        write(way, &path).unwrap_or_else(|error| panic!("way {way} at {}: {error}", path.display()));
    }
    STEPS
}

/// Writes at one path, in one of the ways in which it is done.
fn write(way: usize, path: &Path) -> io::Result<()> {
    let beside = |name: String| path.with_file_name(name);
    let own = path.file_name().unwrap().to_str().unwrap();
    let aside = |text: &str| fs::write(path, text);
    match way {
        0 => fs::create_dir_all(path.parent().unwrap()).and_then(|()| aside("deep")),
        1 => aside("one").and_then(|()| File::options().append(true).open(path)?.write_all(b"more")),
        2 => aside("long text").and_then(|()| File::options().write(true).open(path)?.set_len(3)),
        3 => {
            let other = beside(format!("{own}.tmp.123.456"));
            fs::write(&other, "new").and_then(|()| fs::rename(&other, path))
        }
        4 => aside("short life").and_then(|()| fs::remove_file(path)),
        5 => {
            fs::create_dir_all(path.join("sub/sub"))?;
            fs::write(path.join("sub/sub/f"), "below")?;
            fs::remove_dir_all(path.join("sub"))
        }
        6 => aside("rights").and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o600))),
        7 => aside("times").and_then(|()| File::open(path)?.set_modified(std::time::UNIX_EPOCH)),
        8 => {
            aside("holes in here")?;
            let file = File::options().write(true).open(path)?;
            Ok(rustix::fs::fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, 4)?)
        }
        9 => {
            let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
            let file = File::from(rustix::fs::open(path.parent().unwrap(), flags, Mode::from(0o600))?);
            (&file).write_all(b"without a name")?;
            let named = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
            Ok(rustix::fs::linkat(CWD, named, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
        }
        10 => symlink("nowhere", path),
        11 => {
            aside("attributes")?;
            // Not every filesystem has them.
            let _ = rustix::fs::setxattr(path, "user.a", b"x", XattrFlags::empty());
            Ok(())
        }
        12 => {
            fs::write(beside(format!(".{own}.swp")), "swap")?;
            aside("edited")?;
            fs::rename(path, beside(format!("{own}~")))?;
            aside("edited again")?;
            fs::remove_file(beside(format!(".{own}.swp")))
        }
        13 => aside("copied").and_then(|()| fs::copy(path, beside(format!("{own}.tmp"))).map(|_| ())),
        _ => fs::create_dir(path),
    }
}

/// What a command does, which is free in its own fork.
fn command(workspace: &Path, chance: &mut Rng) -> io::Result<()> {
    let build = workspace.join("build");
    match chance.u32(0..6) {
        0 if build.exists() => fs::remove_dir_all(&build),
        1 if build.exists() => {
            let moved = workspace.join(name("moved"));
            fs::rename(&build, &moved)?;
            fs::create_dir_all(build.join("x/y"))?;
            fs::write(moved.join("in-moved"), "x")
        }
        2 if build.exists() => {
            let aside = workspace.join(name("aside"));
            fs::rename(&build, &aside)?;
            symlink(&aside, &build)?;
            fs::write(build.join("through-link"), "x")?;
            fs::remove_file(&build)?;
            fs::rename(&aside, &build)
        }
        3 => fs::write(workspace.join("src/deep").join(name("made")), "x"),
        _ => {
            let deep = build.join(name("a")).join("b/c");
            fs::create_dir_all(&deep)?;
            fs::write(deep.join("f"), "x")
        }
    }
}

/// Writes where nobody was allowed to, while no command runs there.
fn leak(bench: &Bench, chance: &mut Rng) {
    let _alone = bench.commands.lock().unwrap();
    let mut leaked = bench.leaked.lock().unwrap();
    if leaked.len() >= LEAKS_MAX {
        return;
    }
    let folders = folders(&bench.fork.workspace.0);
    let folder = &folders[chance.usize(0..folders.len())];
    let (new, old) = (folder.join(name("leak")), folder.join(format!("old{}", chance.u32(0..10))));
    let (how, paths) = match chance.u32(0..9) {
        0 if old.exists() => (
            "append",
            File::options()
                .append(true)
                .open(&old)
                .and_then(|mut file| file.write_all(b"x"))
                .map(|()| vec![old]),
        ),
        1 if old.exists() => ("truncate", File::create(&old).map(|_| vec![old])),
        2 if old.exists() => ("remove", fs::remove_file(&old).map(|()| vec![old])),
        3 if old.exists() => (
            "chmod",
            fs::set_permissions(&old, fs::Permissions::from_mode(0o400 + chance.u32(0..64)))
                .map(|()| vec![old]),
        ),
        4 if old.exists() => ("rename", fs::rename(&old, &new).map(|()| vec![old, new])),
        5 => ("folder", fs::create_dir(&new).map(|()| vec![new])),
        6 => (
            "deep",
            fs::create_dir_all(new.join("a/b"))
                .and_then(|()| fs::write(new.join("a/b/f"), "x"))
                .map(|()| vec![new.clone(), new.join("a"), new.join("a/b"), new.join("a/b/f")]),
        ),
        7 => ("symlink", symlink("x", &new).map(|()| vec![new])),
        _ => ("write", fs::write(&new, "x").map(|()| vec![new])),
    };
    // Where somebody has taken the folder away meanwhile, nothing was done.
    if let Ok(paths) = paths {
        leaked.push((how.to_owned(), paths));
    }
}

/// Folders in which nobody has leave for everything.
fn folders(workspace: &Path) -> Vec<PathBuf> {
    let (mut all, mut ahead) = (Vec::new(), vec![workspace.to_owned()]);
    while let Some(folder) = ahead.pop() {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let below = entries
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| entry.path());
        ahead.extend(below.filter(|path| {
            !path.ends_with(".git/objects") && !path.file_name().unwrap().to_str().unwrap().starts_with("own")
        }));
        all.push(folder);
    }
    all
}
