//! A daemon that is stopped, as a debugger or a freezer does it, while files change and clients wait: whatever it says
//! afterwards was so at some moment between the question and the answer, and nobody takes its place meanwhile.

use crate::cli::serve::{Serving, refused, state};
use crate::daemon::cause;
use crate::harness::{Place, ask, file, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};
use staled::client::Client;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

const FILES: usize = 4;

/// Fewer than the kernel queues for one reader.
const QUEUED: usize = 8_000;

/// The daemon waits a second for a cookie, so some stops are longer than that.
const STOPS: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(1_500),
    Duration::from_millis(300),
    Duration::from_secs(3),
];

/// Every write, and between which moments it took effect.
#[derive(Default)]
struct History(Mutex<Vec<Write>>);

#[derive(Clone, Copy)]
struct Write {
    file: usize,
    is_one: bool,
    begun: Instant,
    done: Instant,
}

impl History {
    fn write(&self, place: &Place, file: usize, is_one: bool) {
        let begun = Instant::now();
        // Noted as begun before it is: who is answered meanwhile may have seen it.
        let at = {
            let mut writes = self.0.lock().expect("nobody failed");
            writes.push(Write { file, is_one, begun, done: begun + Duration::from_secs(3_600) });
            writes.len() - 1
        };
        let text = if is_one { "one\n" } else { "two\n" };
        // By a rename, so that no moment has any third content.
        place.write("beside", text);
        std::fs::rename(place.root.join("beside"), place.root.join(format!("f{file}"))).expect("ours");
        self.0.lock().expect("nobody failed")[at].done = Instant::now();
    }

    /// Whether the file was like this at some moment of that time.
    fn was(&self, file: usize, is_one: bool, from: Instant, to: Instant) -> bool {
        let writes = self.0.lock().expect("nobody failed");
        let of_file = || writes.iter().filter(|write| write.file == file);
        let before = of_file().rfind(|write| write.done <= from);
        let during = of_file().filter(|write| write.done > from && write.begun <= to);
        before.into_iter().chain(during).any(|write| write.is_one == is_one)
    }

    fn is_one(&self, file: usize) -> bool {
        let writes = self.0.lock().expect("nobody failed");
        writes.iter().rfind(|write| write.file == file).expect("it was written").is_one
    }
}

/// Asks, and holds every row of the answer against what was so meanwhile. Says how many rows were decided.
fn ask_and_judge(socket: &Path, history: &History, deadline_ms: u64) -> usize {
    let from = Instant::now();
    let mut client = Client::connect(socket).expect("the kernel takes the connection");
    let report = ask(&mut client, "decide", &json!({ "session": "s", "deadline_ms": deadline_ms }));
    let to = Instant::now();
    let mut decided = 0;
    for number in 0..FILES {
        let word = cause(&report, &format!("f{number}"));
        let (fresh, stale) = (word == "fresh", ["content", "deleted", "born_stale"].contains(&word.as_str()));
        let lie =
            fresh && !history.was(number, true, from, to) || stale && !history.was(number, false, from, to);
        assert!(!lie, "f{number} is said to be {word}, with {deadline_ms} ms: {report}");
        decided += usize::from(fresh || stale);
    }
    decided
}

fn stop(daemon: &Serving) {
    daemon.signal(Signal::STOP);
    let stat = format!("/proc/{}/stat", daemon.pid().as_raw_nonzero());
    wait_until("it is stopped", || std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") T ")));
}

/// Events that no session rests on, and none of which the kernel can merge with the one before it.
fn queue_up(place: &Place) {
    let open = |name| std::fs::File::create(place.root.join(name)).expect("a file");
    let noise = [open("noise"), open("din")];
    for turn in 0..QUEUED {
        noise[turn % 2].set_modified(SystemTime::now()).expect("ours");
    }
}

#[test]
fn clients_that_wait_for_a_stopped_daemon_are_told_the_truth() {
    let place = Place::new();
    let history = History::default();
    (0..FILES).for_each(|file| history.write(&place, file, true));
    let daemon = Serving::start(&place, &[]);
    let results: Vec<Value> = (0..FILES).map(|number| file(&format!("f{number}"), "one\n")).collect();
    let mut client = Client::connect(&daemon.socket).expect("it serves");
    let context = json!({ "session": "s", "root": place.root, "results": results });
    ask(&mut client, "context.register", &context);
    let mut random = fastrand::Rng::new();
    let (over, socket) = (AtomicBool::new(false), &daemon.socket);
    std::thread::scope(|scope| {
        // These ask all the time, so that some wait for a cookie or a look when the daemon is stopped.
        let (over, history) = (&over, &history);
        for deadline_ms in [1, 40, 700, 10_000] {
            scope.spawn(move || {
                while !over.load(Ordering::SeqCst) {
                    ask_and_judge(socket, history, deadline_ms);
                }
            });
        }
        let guard = Over(over);
        for (round, pause) in STOPS.iter().cycle().take(2 * STOPS.len()).enumerate() {
            let mut change = || history.write(&place, random.usize(..FILES), random.bool());
            (0..round * 3).for_each(|_| change());
            stop(&daemon);
            // What changed stands behind a queue that takes longer to read than some are willing to wait.
            queue_up(&place);
            (0..8).for_each(|_| change());
            // These ask a daemon that is stopped, about changes that are made already.
            let asked = [1, 40, 700, 10_000]
                .map(|deadline_ms| scope.spawn(move || ask_and_judge(socket, history, deadline_ms)));
            std::thread::sleep(*pause);
            (0..8).for_each(|_| change());
            daemon.signal(Signal::CONT);
            let decided = asked.map(|asked| asked.join().expect("it was answered truly"));
            assert_eq!(decided[3], FILES, "with ten seconds everything is decided");
            let now = ask(&mut client, "decide", &json!({ "session": "s", "deadline_ms": 10_000 }));
            for number in 0..FILES {
                let is_fresh = cause(&now, &format!("f{number}")) == "fresh";
                assert_eq!(is_fresh, history.is_one(number), "f{number} in round {round}: {now}");
            }
        }
        drop(guard);
    });
    let health = ask(&mut client, "status", &json!({}));
    assert_eq!((&health["problems"], &health["missed_events"]), (&json!([]), &json!(0)), "{health}");
}

/// Ends the askers, also when something failed.
struct Over<'flag>(&'flag AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Every file below the state with what it is and how long it is.
fn files(place: &Place) -> Vec<(std::path::PathBuf, u64, u64, i64)> {
    let mut files: Vec<_> = crate::daemon::files_below(&state(place))
        .into_iter()
        .map(|path| {
            let found = std::fs::metadata(&path).expect("a file");
            (path, found.ino(), found.len(), found.mtime_nsec())
        })
        .collect();
    files.sort();
    files
}

#[test]
fn nobody_takes_the_place_of_a_stopped_daemon() {
    let place = Place::new();
    place.write("f", "one\n");
    let daemon = Serving::start(&place, &[]);
    let mut client = Client::connect(&daemon.socket).expect("it serves");
    let context = json!({ "session": "s", "root": place.root, "results": [file("f", "one\n")] });
    ask(&mut client, "context.register", &context);
    let decide = |client: &mut Client| {
        ask(client, "decide", &json!({ "session": "s", "deadline_ms": 10_000 }))["transition"].clone()
    };
    assert_eq!(decide(&mut client), "resume");
    stop(&daemon);
    let before = files(&place);
    let socket = std::fs::metadata(&daemon.socket).expect("a socket").ino();
    let (held, run) = (state(&place), state(&place).join("run"));
    let (held, run) = (held.to_str().expect("UTF-8"), run.to_str().expect("UTF-8"));
    let other = place.home.join("other");
    let other = other.to_str().expect("UTF-8");
    for args in [
        ["--state", held, "--runtime", other],
        ["--state", held, "--runtime", run],
        ["--state", other, "--runtime", run],
    ] {
        refused(&place, &args).fails(2, "another daemon is running on");
    }
    assert_eq!(files(&place), before, "something was touched");
    assert_eq!(std::fs::metadata(&daemon.socket).expect("a socket").ino(), socket);
    place.write("f", "two\n");
    daemon.signal(Signal::CONT);
    assert_eq!(decide(&mut client), "fresh", "the same connection is answered");
    assert_eq!(decide(&mut Client::connect(&daemon.socket).expect("it serves")), "fresh");
    // One that is killed while it is stopped has let go of everything.
    stop(&daemon);
    drop(daemon);
    let next = Serving::start(&place, &[]);
    let mut client = Client::connect(&next.socket).expect("it serves");
    assert_eq!(decide(&mut client), "fresh");
    place.write("f", "one\n");
    assert_eq!(decide(&mut client), "resume");
}
