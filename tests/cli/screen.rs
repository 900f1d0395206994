//! `status --watch` on a terminal of its own: what stands on it, what keys do, and that it is given back as it was.

use super::program;
use super::serve::Kept;
use crate::daemon::register;
use crate::harness::{Daemon, Place, file, wait_until};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
use serde_json::json;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A terminal with the program on it.
struct Terminal {
    child: Kept,
    ours: Option<File>,
    name: PathBuf,
    /// Kept open, so that the settings can be read when the program has ended.
    _inside: File,
    came: Arc<Mutex<Vec<u8>>>,
    before: String,
    closed: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl Terminal {
    fn start(place: &Place, socket: &Path, args: &[&str]) -> Self {
        let ours =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        unlockpt(&ours).expect("it is ours");
        let name = ptsname(&ours, Vec::new()).expect("it has a name");
        let name = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes())).to_owned();
        let inside = File::options().read(true).write(true).open(&name).expect("the other side");
        stty(&name, &["rows", "21", "cols", "100"]);
        let before = stty(&name, &["-g"]);
        let like = program(place);
        // A session of its own, whose terminal this is: what hangs up, and where the size is asked for.
        let mut command = Command::new("setsid");
        command
            .arg("--ctty")
            .arg(like.get_program())
            .args(["status", "--watch", "--socket"])
            .arg(socket)
            .args(args);
        command.env_clear().env("TERM", "xterm-256color").env("HOME", &place.home).current_dir(&place.root);
        let side = || Stdio::from(inside.try_clone().expect("a handle"));
        let child =
            Kept(command.stdin(side()).stdout(side()).stderr(Stdio::piped()).spawn().expect("it runs"));
        drop(command);
        let ours = File::from(ours);
        let came = Arc::<Mutex<Vec<u8>>>::default();
        let (theirs, mut read) = (Arc::clone(&came), ours.try_clone().expect("a handle"));
        let closed = Arc::<AtomicBool>::default();
        let over = Arc::clone(&closed);
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4_096];
            let patience = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
            while !over.load(Ordering::Relaxed) {
                let mut polled = [PollFd::new(&read, PollFlags::IN)];
                if poll(&mut polled, Some(&patience)).is_ok_and(|count| count == 0) {
                    continue;
                }
                let Ok(len @ 1..) = read.read(&mut bytes) else { return };
                theirs.lock().expect("no panic").extend_from_slice(&bytes[..len]);
            }
        });
        Self { child, ours: Some(ours), name, _inside: inside, came, before, closed, reader: Some(reader) }
    }

    fn press(&self, keys: &str) {
        self.ours.as_ref().expect("it is there").write_all(keys.as_bytes()).expect("it is read");
    }

    /// What came so far.
    fn came(&self) -> String {
        String::from_utf8_lossy(&self.came.lock().expect("no panic")).into_owned()
    }

    /// What stands on the screen.
    fn screen(&self) -> String {
        shown(&self.came())
    }

    fn shows(&self, text: &str) {
        let mut seen = String::new();
        let shows = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            wait_until(text, || {
                seen = self.screen();
                seen.contains(text)
            });
        }));
        assert!(shows.is_ok(), "{text:?} is not on the screen:\n{seen}");
    }

    /// Takes the terminal away, as a window that is closed does.
    fn close(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
        self.reader.take().map_or(Ok(()), JoinHandle::join).expect("the reader does not panic");
        drop(self.ours.take());
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.0.id()).ok().and_then(Pid::from_raw).expect("a pid");
        kill_process(pid, signal).expect("it runs");
    }

    /// It ends, says nothing, and leaves the terminal as it was.
    fn ended(&mut self) -> ExitStatus {
        wait_until("it ends", || self.child.0.try_wait().expect("it was started").is_some());
        let ended = self.child.0.wait().expect("it ended");
        let mut said = String::new();
        self.child.0.stderr.take().expect("piped").read_to_string(&mut said).expect("UTF-8");
        assert_eq!(said, "");
        if self.ours.is_some() {
            assert_eq!(stty(&self.name, &["-g"]), self.before, "the settings of the terminal");
            wait_until("the screen is given back", || self.came().ends_with("\u{1b}[?1049l"));
            let came = self.came();
            assert!(came.rfind("\u{1b}[?25h") > came.rfind("\u{1b}[?25l"), "the cursor is seen: {came:?}");
        }
        ended
    }
}

fn stty(terminal: &Path, args: &[&str]) -> String {
    let ran = Command::new("stty").arg("-F").arg(terminal).args(args).output().expect("stty runs");
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8(ran.stdout).expect("UTF-8")
}

/// The screen that a terminal shows after all this: letters, moves of the cursor, and what is cleared.
fn shown(came: &str) -> String {
    let mut rows = vec![vec![' '; 200]; 60];
    let (mut row, mut column) = (0, 0);
    let mut rest = came.chars();
    while let Some(symbol) = rest.next() {
        if symbol == '\u{1b}' {
            let Some('[') = rest.next() else { continue };
            let told: String = rest.clone().take_while(|symbol| !symbol.is_ascii_alphabetic()).collect();
            let end = rest.nth(told.chars().count());
            let number =
                |at: usize| told.split(';').nth(at).and_then(|part| part.parse().ok()).unwrap_or(1_usize);
            match end {
                Some('H') => (row, column) = (number(0) - 1, number(1) - 1),
                Some('J') => rows.iter_mut().for_each(|row| row.fill(' ')),
                _ => {}
            }
        } else if row < rows.len() && column < rows[row].len() {
            rows[row][column] = symbol;
            column += 1;
        }
    }
    let rows = rows.iter().map(|row| row.iter().collect::<String>().trim_end().to_owned());
    rows.collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

/// Two sessions on two files.
fn scene() -> (Place, Daemon) {
    let place = Place::new();
    ["a", "b"].iter().for_each(|name| place.write(name, "1"));
    let daemon = Daemon::start(&place.home);
    register(&daemon, &place, "s-01", &json!([file("a", "1")]));
    register(&daemon, &place, "s-02", &json!([file("a", "1"), file("b", "1")]));
    (place, daemon)
}

/// Changes a file in one step, for one that is being rewritten is empty for a moment.
fn change(place: &Place, name: &str, text: &str) {
    place.write("new", text);
    std::fs::rename(place.root.join("new"), place.root.join(name)).expect("it is renamed");
}

#[test]
fn what_happens_is_shown_as_it_happens() {
    let (place, daemon) = scene();
    let mut terminal = Terminal::start(&place, &daemon.folders.socket, &[]);
    terminal.shows("› s-01  0 stale  –");
    terminal.shows("  its one row is what the session saw");
    change(&place, "a", "2");
    terminal.shows("› s-01  1 stale  –");
    terminal.shows("  stale  a  content  blake3:");
    daemon.ask("decide", &json!({ "session": "s-02" }));
    terminal.shows("  s-02  1 stale  fresh");
    terminal.shows("  fresh  s-02  a changed since it was read");
    change(&place, "a", "1");
    terminal.shows("› s-01  0 stale");
    terminal.press("q");
    assert_eq!(terminal.ended().code(), Some(0));
    assert!(terminal.came().starts_with("\u{1b}[?1049h"), "{:?}", terminal.came());
}

#[test]
fn keys_select_scroll_and_end_it() {
    let (place, daemon) = scene();
    change(&place, "b", "2");
    let mut terminal = Terminal::start(&place, &daemon.folders.socket, &["s-02"]);
    terminal.shows("› s-02  1 stale");
    terminal.shows("  stale  b  content");
    terminal.press("k");
    terminal.shows("› s-01  0 stale");
    terminal.shows("  its one row is what the session saw");
    terminal.press("\u{1b}[B");
    terminal.shows("  stale  b  content");
    terminal.press("\t\t?");
    terminal.shows("▌DECISIONS");
    terminal.shows(" PgUp PgDn scroll");
    stty(&terminal.name, &["rows", "8", "cols", "20"]);
    terminal.shows("▌DECISIONS  newes… ─");
    terminal.press("\u{1b}[Z");
    terminal.shows("▌STALE  s-02 ───────\n  stale  b");
    stty(&terminal.name, &["rows", "21", "cols", "100"]);
    terminal.shows(" SESSIONS  and what was decided last ─");
    terminal.press("\u{3}");
    assert_eq!(terminal.ended().code(), Some(0));
}

#[test]
fn a_daemon_that_is_away_is_said_and_waited_for() {
    let (place, daemon) = scene();
    let socket = daemon.folders.socket.clone();
    let mut terminal = Terminal::start(&place, &socket, &["s-01"]);
    terminal.shows("› s-01  0 stale");
    daemon.stop();
    terminal.shows("staled  away  no daemon answers");
    change(&place, "a", "2");
    // Keys are heard meanwhile.
    terminal.press("?");
    terminal.shows(" PgUp PgDn scroll");
    let daemon = Daemon::start(&place.home);
    terminal.shows("› s-01  1 stale");
    terminal.shows("staled  ok ");
    terminal.shows("  stale  a  content");
    change(&place, "a", "1");
    terminal.shows("› s-01  0 stale");
    daemon.ask("context.drop", &json!({ "session": "s-01" }));
    terminal.shows("› s-02  0 stale");
    terminal.press("\u{1b}");
    assert_eq!(terminal.ended().code(), Some(0));
}

#[test]
fn it_ends_on_a_signal_as_if_nobody_had_heard_it() {
    let (place, daemon) = scene();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut terminal = Terminal::start(&place, &daemon.folders.socket, &[]);
        terminal.shows("› s-01");
        terminal.signal(signal);
        assert_eq!(terminal.ended().signal(), Some(signal.as_raw()));
    }
}

#[test]
fn it_ends_when_its_terminal_goes_away() {
    let (place, daemon) = scene();
    let mut terminal = Terminal::start(&place, &daemon.folders.socket, &[]);
    terminal.shows("› s-01");
    terminal.close();
    let ended = terminal.ended();
    // It is told twice, by the signal and by the terminal, and either may come first.
    assert!(ended.code() == Some(0) || ended.signal() == Some(Signal::HUP.as_raw()), "{ended:?}");
}

#[test]
fn what_cannot_be_watched_is_said_on_the_screen_as_it_was() {
    let (place, daemon) = scene();
    let terminal = Terminal::start(&place, &daemon.folders.socket, &["nobody"]);
    let mut child = terminal.child;
    wait_until("it ends", || child.0.try_wait().expect("it was started").is_some());
    let mut said = String::new();
    child.0.stderr.take().expect("piped").read_to_string(&mut said).expect("UTF-8");
    assert!(said.contains("there is no session \"nobody\""), "{said}");
    assert_eq!(child.0.wait().expect("it ended").code(), Some(2));
    assert_eq!(String::from_utf8_lossy(&terminal.came.lock().expect("no panic")), "");
}

#[test]
fn hostile_names_are_shown_and_do_nothing() {
    let (place, daemon) = scene();
    let name = "x\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}名\r";
    place.write(name, "1");
    let results = json!([file(name, "0")]);
    register(&daemon, &place, "\u{202e}evil", &results);
    let mut terminal = Terminal::start(&place, &daemon.folders.socket, &["\u{202e}evil"]);
    terminal.shows(r"› \u{202e}evil  1 stale");
    terminal.shows(r"  stale  x\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}名");
    terminal.press("q");
    assert_eq!(terminal.ended().code(), Some(0));
    let came = terminal.came();
    assert!(!came.contains("\u{1b}]0;") && !came.contains('\u{7}') && !came.contains('\u{202e}'), "{came:?}");
}
