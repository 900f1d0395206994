//! What the benches share: files, a pinned daemon, a pinned echo server, and honest tables.
//!
//! These machines wake a thread on another core in 35-50 µs and on the same one in 1-2 µs, so clients and servers are
//! pinned to one core; where that is refused the table says so, and its ratios mean nothing.

#![allow(dead_code, unreachable_pub, missing_docs, reason = "each bench uses a part")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::unused_self,
    reason = "a bench prints, and fails where it stands"
)]

use notify::{RecursiveMode, Watcher};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

const ROLE: &str = "STALED_BENCH_ROLE";
const HOME: &str = "STALED_BENCH_HOME";
const UNPINNED: &str = "STALED_BENCH_UNPINNED";

/// Files and folders of one bench.
pub struct Yard {
    temp: tempfile::TempDir,
    pub root: PathBuf,
    pub pinned: bool,
    /// Whether its files are registered as critical. What is not may be confirmed by its stat alone after a restart.
    pub critical: bool,
}

/// Makes `files` files of about 8 KiB, twelve a folder, and pins this process.
pub fn yard(name: &str, files: usize) -> Yard {
    let pinned = pin();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let mode = if pinned { "pinned to one core" } else { "NOT PINNED: the ratios are for information" };
    println!("# {name}: {files} files, {mode}, cores seen before pinning may differ ({cores} now)");
    let temp = tempfile::Builder::new().prefix("staled-bench-").tempdir().unwrap();
    let root = temp.path().canonicalize().unwrap().join("root");
    let yard = Yard { temp, root, pinned, critical: true };
    for n in 0..files {
        let path = yard.file(n);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content(n)).unwrap();
    }
    yard
}

pub fn content(n: usize) -> String {
    format!("{n:>63}\n").repeat(64 + n % 128)
}

impl Yard {
    pub fn relative(n: usize) -> String {
        format!("d{}/e{}/f{n}.rs", n / 144, n / 12 % 12)
    }

    pub fn file(&self, n: usize) -> PathBuf {
        self.root.join(Self::relative(n))
    }

    pub fn result(&self, n: usize) -> Value {
        let digest = staled::world::digest::blake3(content(n).as_bytes()).to_string();
        serde_json::json!({ "id": format!("r{n}"), "source": { "kind": "file", "path": Self::relative(n) }, "digest": digest })
    }

    pub fn home(&self, name: &str) -> PathBuf {
        self.temp.path().canonicalize().unwrap().join(name)
    }

    /// As many files again, of the same sizes, that nobody tracks: opening one that is tracked is heard by the daemon, and
    /// that would be counted as the cost of a rescan.
    pub fn twins(&self, files: usize) -> Vec<PathBuf> {
        let root = self.root.with_file_name("twins");
        let twin = |n| {
            let path = root.join(Self::relative(n));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, content(n)).unwrap();
            path
        };
        (0..files).map(twin).collect()
    }

    /// The request that registers these files under a session.
    pub fn context(&self, session: &str, files: std::ops::Range<usize>) -> String {
        let mut results: Vec<Value> = files.map(|n| self.result(n)).collect();
        results.iter_mut().for_each(|result| result["critical"] = self.critical.into());
        let context = serde_json::json!({ "session": session, "root": self.root, "results": results });
        request("context.register", &context)
    }

    /// Registers the first `files` files, in sessions of at most ten thousand.
    pub fn register(&self, line: &mut Line, files: usize) {
        for begin in (0..files).step_by(10_000) {
            let end = files.min(begin + 10_000);
            let answer = line.call(&self.context(&format!("all-{begin}"), begin..end));
            assert_eq!(answer.matches("\"status\":\"fresh\"").count(), end - begin, "{answer:.400}");
        }
    }
}

fn pin() -> bool {
    if std::env::var_os(UNPINNED).is_some() {
        return false;
    }
    let mut cores = rustix::thread::CpuSet::new();
    cores.set(number("STALED_BENCH_CORE", 0));
    rustix::thread::sched_setaffinity(None, &cores).is_ok()
}

/// A server in a process of its own, ended with the value.
pub struct Peer {
    child: Child,
    socket: PathBuf,
}

impl Peer {
    pub fn echo(yard: &Yard) -> Self {
        Self::spawn(yard, "echo", yard.temp.path().join("echo.sock"))
    }

    pub fn daemon(yard: &Yard) -> Self {
        Self::daemon_named(yard, "daemon")
    }

    /// A daemon with a state of its own. One named `always` syncs its log before each answer.
    pub fn daemon_named(yard: &Yard, name: &str) -> Self {
        Self::spawn(yard, name, staled::daemon::Folders::below(&yard.home(name)).socket)
    }

    fn spawn(yard: &Yard, role: &str, socket: PathBuf) -> Self {
        let home = if role == "echo" { socket.clone() } else { yard.home(role) };
        let child =
            Command::new(std::env::current_exe().unwrap()).env(ROLE, role).env(HOME, home).spawn().unwrap();
        let begun = Instant::now();
        while UnixStream::connect(&socket).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(30), "the {role} does not answer");
            std::thread::sleep(Duration::from_millis(5));
        }
        Self { child, socket }
    }

    /// Where it listens.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Resident memory, in bytes.
    pub fn resident(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() * 1024.0
    }

    /// Seconds on a processor and times put on one, over all threads.
    pub fn scheduled(&self) -> (f64, u64) {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        tasks.fold((0.0, 0), |(seconds, times), task| {
            let stat = std::fs::read_to_string(task.unwrap().path().join("schedstat")).unwrap_or_default();
            let mut fields = stat.split_whitespace().filter_map(|field| field.parse::<u64>().ok());
            let (ran_ns, _, slices) = (fields.next(), fields.next(), fields.next());
            (seconds + ran_ns.unwrap_or(0) as f64 / 1e9, times + slices.unwrap_or(0))
        })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Serves as the echo server or the daemon when this process was started as one.
pub fn served_as_peer() -> bool {
    let Ok(role) = std::env::var(ROLE) else { return false };
    let home = PathBuf::from(std::env::var_os(HOME).unwrap());
    match role.as_str() {
        "echo" => echo(&home),
        name => serve(&home, name == "always"),
    }
    true
}

fn serve(home: &Path, sync_always: bool) {
    let mut config = staled::config::Config::default();
    if sync_always {
        config.log.sync = staled::config::Sync::Always;
    }
    let start =
        staled::daemon::Start { config, config_file: None, folders: staled::daemon::Folders::below(home) };
    let (stop, _) = tokio::sync::watch::channel(staled::daemon::Command::Run);
    staled::daemon::run(start, stop, None).unwrap();
}

/// The bare minimum on the same runtime: lines in, the same lines out.
fn echo(socket: &Path) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listener = UnixListener::bind(socket).unwrap();
    listener.set_nonblocking(true).unwrap();
    runtime.block_on(async {
        let listener = tokio::net::UnixListener::from_std(listener).unwrap();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut buffer = vec![0; 64 * 1024];
                while let Ok(len @ 1..) = stream.read(&mut buffer).await {
                    if stream.write_all(&buffer[..len]).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
}

/// A request line.
pub fn request(method: &str, params: &Value) -> String {
    format!("{}\n", staled::protocol::request::line(1, method, params))
}

/// A persistent connection.
pub struct Line {
    reader: BufReader<UnixStream>,
    writer: UnixStream,
    answer: String,
}

impl Line {
    pub fn to(peer: &Peer) -> Self {
        let writer = UnixStream::connect(&peer.socket).unwrap();
        let reader = BufReader::with_capacity(1 << 20, writer.try_clone().unwrap());
        Self { reader, writer, answer: String::new() }
    }

    pub fn call(&mut self, request: &str) -> &str {
        self.send(request);
        self.next()
    }

    pub fn send(&mut self, request: &str) {
        self.writer.write_all(request.as_bytes()).unwrap();
    }

    /// The last line that came.
    pub fn last(&self) -> &str {
        &self.answer
    }

    /// The next line, whatever it is.
    pub fn next(&mut self) -> &str {
        self.answer.clear();
        self.reader.read_line(&mut self.answer).unwrap();
        &self.answer
    }

    pub fn ask(&mut self, method: &str, params: &Value) -> String {
        let answer = self.call(&request(method, params)).to_owned();
        assert!(!answer.contains("\"error\""), "{method}: {answer}");
        answer
    }
}

/// A rescan's cheap half.
pub fn stat(files: &[PathBuf]) {
    for file in files {
        std::hint::black_box(std::fs::symlink_metadata(file).unwrap());
    }
}

/// A whole rescan.
pub fn stat_and_hash(files: &[PathBuf]) {
    let mut buffer = Vec::with_capacity(64 * 1024);
    for file in files {
        std::hint::black_box(std::fs::symlink_metadata(file).unwrap());
        buffer.clear();
        std::fs::File::open(file).unwrap().read_to_end(&mut buffer).unwrap();
        std::hint::black_box(staled::world::digest::blake3(&buffer));
    }
}

/// What watching costs with notify alone: every file and folder, one by one, as the daemon must. Returns the watcher, for taking its watches away again is no part of arming.
pub fn arm(files: &[PathBuf]) -> notify::RecommendedWatcher {
    let folders: BTreeSet<&Path> = files.iter().flat_map(|file| file.ancestors().skip(1)).collect();
    let mut watcher = notify::recommended_watcher(|_| {}).expect("an inotify instance");
    for path in folders.into_iter().chain(files.iter().map(PathBuf::as_path)) {
        watcher.watch(path, RecursiveMode::NonRecursive).expect("a watch");
    }
    watcher
}

/// Times of one thing, in nanoseconds.
#[derive(Default, Clone)]
pub struct Samples(Vec<u64>);

impl Samples {
    pub fn time<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let done = std::hint::black_box(call());
        self.0.push(u64::try_from(begun.elapsed().as_nanos()).unwrap());
        done
    }

    pub fn percentile(&self, percent: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        sorted[(sorted.len() - 1) * percent / 100] as f64
    }
}

/// Rounds of samples, one column a thing that was timed.
pub struct Table {
    names: Vec<&'static str>,
    rounds: Vec<Vec<Samples>>,
}

impl Table {
    pub fn new(names: &[&'static str]) -> Self {
        Self { names: names.to_vec(), rounds: Vec::new() }
    }

    pub fn add<const N: usize>(&mut self, round: [Samples; N]) {
        self.rounds.push(round.to_vec());
    }

    /// p50 and p99 over all rounds.
    pub fn print(&self) {
        for (column, name) in self.names.iter().enumerate() {
            let all = Samples(self.rounds.iter().flat_map(|round| round[column].0.clone()).collect());
            let (p50, p99) = (all.percentile(50) / 1e3, all.percentile(99) / 1e3);
            println!("{name:>24}: p50 {p50:>10.1} us   p99 {p99:>10.1} us   ({} samples)", all.0.len());
        }
    }

    /// One percentile of one column, round by round, in nanoseconds.
    pub fn percentiles(&self, column: usize, percent: usize) -> Vec<f64> {
        self.rounds.iter().map(|round| round[column].percentile(percent)).collect()
    }

    /// Whether a column's p50 over all rounds is within a bound.
    pub fn within(&self, column: usize, us_at_most: f64) {
        let all = Samples(self.rounds.iter().flat_map(|round| round[column].0.clone()).collect());
        let p50 = all.percentile(50) / 1e3;
        let verdict = if p50 <= us_at_most { "holds" } else { "MISSED" };
        println!("{}: p50 {p50:.1} us  {verdict} (at most {us_at_most:.0} us)", self.names[column]);
    }

    /// The ratio of two columns' p50, round by round.
    pub fn ratio(&self, name: &str, over: usize, under: usize, at_most: Option<f64>) {
        self.ratio_of(name, |p50| p50(over) / p50(under), at_most);
    }

    /// A ratio made of several columns' p50, round by round.
    pub fn ratio_of(&self, name: &str, of: impl Fn(&dyn Fn(usize) -> f64) -> f64, at_most: Option<f64>) {
        let of = |round: &Vec<Samples>| of(&|column: usize| round[column].percentile(50));
        let ratios: Vec<f64> = self.rounds.iter().map(of).collect();
        judge(name, ratios, at_most);
    }
}

/// Prints the ratios of all rounds, and whether their median keeps the bound.
pub fn judge(name: &str, mut ratios: Vec<f64>, at_most: Option<f64>) {
    ratios.sort_by(f64::total_cmp);
    let (min, median, max) = (ratios[0], ratios[ratios.len() / 2], ratios[ratios.len() - 1]);
    let verdict = match at_most {
        Some(bound) if median <= bound => format!("  holds (at most {bound:.5})"),
        Some(bound) => format!("  MISSED (at most {bound:.5})"),
        None => String::new(),
    };
    println!("{name}: median {median:.5} (min {min:.5}, max {max:.5}, {} rounds){verdict}", ratios.len());
}

pub fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// A size from the environment, or the usual one.
pub fn number(name: &str, usual: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}
