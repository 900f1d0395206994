//! `import`: whose transcript a file is, archives, a session that goes on, and what a terminal is told meanwhile.

use super::serve::Kept;
use super::{Run, program, staled};
use crate::daemon::decide;
use crate::harness::{Daemon, Place, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

fn line(kind: &str, payload: &Value) -> String {
    json!({"timestamp": "2026-04-10T20:11:51.000Z", "type": kind, "payload": payload}).to_string() + "\n"
}

fn begun(place: &Place) -> String {
    line("session_meta", &json!({"id": "rollout", "cwd": place.root, "cli_version": "0.140.0"}))
}

/// A command of Codex and its answer.
fn ran(command: &str, printed: &str) -> String {
    let arguments = json!({"cmd": command}).to_string();
    let told = format!("Wall time: 0.0 seconds\nProcess exited with code 0\nOutput:\n{printed}");
    let call =
        json!({"type": "function_call", "name": "exec_command", "call_id": command, "arguments": arguments});
    let answer = json!({"type": "function_call_output", "call_id": command, "output": told});
    line("response_item", &call) + &line("response_item", &answer)
}

/// A read of Claude Code.
fn claude(place: &Place, name: &str, content: &str) -> String {
    let path = place.root.join(name);
    let lines = content.split('\n').count();
    let call = json!({"type": "tool_use", "id": name, "name": "Read", "input": {"file_path": path}});
    let answer = json!({"type": "tool_result", "tool_use_id": name, "content": "told"});
    let shown =
        json!({"filePath": path, "content": content, "startLine": 1, "numLines": lines, "totalLines": lines});
    [
        json!({"type": "assistant", "sessionId": "c", "cwd": place.root, "message": {"content": [call]}}),
        json!({"type": "user", "sessionId": "c", "cwd": place.root, "message": {"content": [answer]},
            "toolUseResult": {"type": "text", "file": shown}}),
    ]
    .map(|line| line.to_string() + "\n")
    .concat()
}

struct Scene {
    daemon: Daemon,
    place: Place,
    transcript: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let place = Place::new();
        place.write("a", "one\n");
        place.write("b", "two\n");
        let transcript = place.home.with_file_name("session.jsonl");
        Self { daemon: Daemon::start(&place.home), place, transcript }
    }

    fn holds(&self, bytes: impl AsRef<[u8]>) -> &Self {
        std::fs::write(&self.transcript, bytes).expect("a file");
        self
    }

    fn grows(&self, text: &str) {
        let mut file = File::options().append(true).open(&self.transcript).expect("it is there");
        file.write_all(text.as_bytes()).expect("it is written");
    }

    fn args<'a>(&'a self, agent: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let file = self.transcript.to_str().expect("UTF-8");
        [&["import", agent, file, "--root", "."], more].concat()
    }

    fn import(&self, agent: &str) -> Run {
        staled(&self.place, &self.daemon.folders.socket, &self.args(agent, &["--json"]))
    }

    /// An import that goes on.
    fn follow(&self, more: &[&str]) -> Following {
        let [out, err] = ["out", "err"].map(|name| self.place.home.with_file_name(name));
        let to = |path: &PathBuf| File::create(path).expect("a file");
        let mut command = program(&self.place);
        command
            .env("STALED_SOCKET", &self.daemon.folders.socket)
            .args(self.args("codex", &["--follow"]))
            .args(more);
        let child = Kept(command.stdout(to(&out)).stderr(to(&err)).spawn().expect("it runs"));
        Following { child, out, err }
    }

    fn ids(&self, session: &str, status: &str) -> Vec<String> {
        let report = decide(&self.daemon, session);
        let rows = report["staleness_results"].as_array().expect("rows").clone();
        let these = rows.iter().filter(|row| row["status"] == status);
        these.map(|row| row["result_id"].as_str().expect("an id").to_owned()).collect()
    }
}

struct Following {
    child: Kept,
    out: PathBuf,
    err: PathBuf,
}

impl Following {
    fn lines(&self) -> Vec<Value> {
        let out = std::fs::read_to_string(&self.out).expect("it is there");
        let whole = out.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }

    fn err(&self) -> String {
        std::fs::read_to_string(&self.err).expect("it is there")
    }

    /// The ids of the results told by a line, in their order.
    fn told(&self, at: usize) -> Vec<String> {
        let lines = self.lines();
        let rows = lines[at]["results"].as_array().expect("results");
        rows.iter().map(|row| row["id"].as_str().expect("an id").to_owned()).collect()
    }
}

#[test]
fn each_agent_has_its_own_command() {
    let scene = Scene::new();
    scene.holds(begun(&scene.place) + &ran("cat a", "one\n") + &ran("sed -n '1,1p' b", "old\n"));
    let run = scene.import("claude-code");
    run.fails(2, "session.jsonl is a rollout of Codex\n  `staled import codex ");
    let told = scene.import("codex").ok().json();
    assert_eq!((&told["session"], &told["lines"]), (&json!("rollout"), &json!(5)));
    assert_eq!(scene.ids("rollout", "fresh"), ["a"]);
    assert_eq!(scene.ids("rollout", "stale"), ["b:1-1"]);
    let context = scene.daemon.ask("context.get", &json!({"session": "rollout"}));
    assert_eq!(context["agent"], "codex");
    scene.holds(claude(&scene.place, "a", "one\n"));
    scene
        .import("codex")
        .fails(2, "session.jsonl is a session of Claude Code\n  `staled import claude-code ");
    scene.import("claude-code").ok();
    assert_eq!(scene.ids("c", "fresh"), ["a"]);
    scene.holds("{}\n").import("codex").fails(2, "no conversation");
}

#[test]
fn a_rollout_brings_the_commit_it_began_at_unless_it_moved_on() {
    let scene = Scene::new();
    super::git(&scene.place, &["init", "-q"]);
    super::git(&scene.place, &["commit", "-q", "--allow-empty", "-m", "x"]);
    let id = "8a0ac12c5aaf646b750b045812b27415fdf80e24";
    let meta = json!({"id": "r", "cwd": scene.place.root, "git": {"commit_hash": id}});
    let head = |told: &Value| told["invariants"][0]["baseline"].clone();
    let begun = line("session_meta", &meta) + &ran("cat a", "one\n");
    scene.holds(&begun);
    assert_eq!(head(&scene.import("codex").ok().json()), "client");
    let report = decide(&scene.daemon, "r");
    // HEAD never makes anything stale by itself: the digests of the sources decide.
    assert_eq!(report["transition"], "resume", "{report}");
    scene.holds(begun + &ran("git commit -m y", ""));
    assert_eq!(head(&scene.import("codex").ok().json()), "registration");
}

#[test]
fn archives_of_both_kinds_are_read_for_both_agents() {
    let scene = Scene::new();
    let gzip = |text: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).expect("it is packed");
        encoder.finish().expect("it is packed")
    };
    let zstd = |text: &str| compress_to_vec(text.as_bytes(), CompressionLevel::Fastest);
    let codex = begun(&scene.place) + &ran("cat a", "one\n");
    let claude = claude(&scene.place, "a", "one\n");
    for (agent, session, text) in [("codex", "rollout", &codex), ("claude-code", "c", &claude)] {
        for packed in [gzip(text), zstd(text), [zstd(text), zstd(&text.replace("cat a", "cat b"))].concat()] {
            scene.holds(&packed).import(agent).ok();
            assert!(scene.ids(session, "fresh").contains(&"a".to_owned()), "{agent}");
            for end in [packed.len() - 1, packed.len() / 3] {
                let run = scene.holds(&packed[..end]).import(agent);
                run.fails(2, "cannot read the transcript");
                run.fails(2, "session.jsonl: ");
            }
        }
    }
    let mut odd = zstd(&codex);
    let last = odd.len() - 1;
    odd[last] ^= 1;
    scene.holds(&odd).import("codex").fails(2, "session.jsonl: its checksum does not fit");
    let run = staled(&scene.place, &scene.daemon.folders.socket, &scene.args("codex", &["--follow"]));
    run.fails(2, "is an archive, which does not grow\n  import it without --follow");
}

#[test]
fn a_session_that_goes_on_is_followed_line_by_line() {
    let scene = Scene::new();
    scene.place.write("sub/c", "c\n");
    scene.holds(begun(&scene.place) + &ran("cat a", "one\n") + &ran("ls sub", "c\n"));
    let following = scene.follow(&["--json"]);
    wait_until("it is registered", || following.lines().len() == 1);
    assert_eq!(following.told(0), ["a", "ls sub"]);
    // A search that has gone stale stays so, whatever else is told.
    scene.place.write("sub/d", "d\n");
    let next = ran("cat b", "two\n");
    let (start, end) = next.split_at(next.len() - 9);
    scene.grows(start);
    // The first of the two lines is whole, and tells nothing by itself.
    std::thread::sleep(std::time::Duration::from_millis(1_600));
    assert_eq!(following.lines().len(), 1, "half a line is waited for");
    scene.grows(end);
    wait_until("the read is told", || following.lines().len() == 2);
    assert_eq!((following.told(1), &following.lines()[1]["removed"]), (vec!["b".to_owned()], &json!([])));
    assert_eq!(following.lines()[1]["lines"], 7);
    assert_eq!(scene.ids("rollout", "stale"), ["ls sub"]);
    // What is known of a file is told anew, and goes when it is known otherwise.
    scene.grows(&ran("sed -n '1,1p' sub/c", "c\n"));
    wait_until("the lines are told", || following.lines().len() == 3);
    scene.grows(&ran("cat sub/c", "c\n"));
    wait_until("the whole is told", || following.lines().len() == 4);
    assert_eq!(following.told(3), ["sub/c"]);
    assert_eq!(following.lines()[3]["removed"], json!(["sub/c:1-1"]));
    assert_eq!(scene.ids("rollout", "fresh"), ["a", "b", "sub/c"]);
    assert_eq!(following.err(), "");
}

#[test]
fn a_transcript_that_was_replaced_is_read_from_its_start() {
    let scene = Scene::new();
    scene.holds("");
    let mut following = scene.follow(&["--json"]);
    wait_until("it waits", || following.err().contains("there is no conversation in this transcript yet"));
    scene.grows(&(begun(&scene.place) + &ran("cat a", "one\n")));
    wait_until("it is registered", || following.lines().len() == 1);
    // Cut short in its place, then longer than it was.
    scene.holds(begun(&scene.place) + &ran("cat b", "two\n"));
    wait_until("it is registered again", || following.lines().len() == 2);
    assert_eq!(
        (following.told(1), scene.ids("rollout", "fresh")),
        (vec!["b".to_owned()], vec!["b".to_owned()])
    );
    let other = scene.transcript.with_file_name("other");
    std::fs::write(&other, begun(&scene.place) + &ran("cat b", "two\n") + &ran("cat a", "one\n"))
        .expect("a file");
    std::fs::remove_file(&scene.transcript).expect("it was there");
    wait_until("it is missed", || following.err().contains("the transcript is gone"));
    std::fs::rename(&other, &scene.transcript).expect("it is there again");
    wait_until("and again", || following.lines().len() == 3);
    assert_eq!(following.told(2), ["a"], "what it knows already it is not told again");
    assert_eq!(following.err().matches("was replaced; reading it again from its start\n").count(), 2);
    // Another agent's is refused.
    scene.holds(claude(&scene.place, "a", "one\n"));
    wait_until("it ends", || following.child.0.try_wait().expect("it was started").is_some());
    assert_eq!(following.child.0.wait().expect("it ended").code(), Some(2));
    assert!(following.err().ends_with("--root DIR` reads it\n"), "{}", following.err());
}

#[test]
fn a_search_stays_stale_when_its_transcript_is_written_anew() {
    let scene = Scene::new();
    scene.place.write("sub/c", "c\n");
    let text = begun(&scene.place) + &ran("ls sub", "c\n");
    scene.holds(&text);
    let following = scene.follow(&["--json"]);
    wait_until("it is registered", || following.lines().len() == 1);
    scene.place.write("sub/d", "d\n");
    assert_eq!(scene.ids("rollout", "stale"), ["ls sub"]);
    let other = scene.transcript.with_file_name("other");
    std::fs::write(&other, text + &ran("cat a", "one\n")).expect("a file");
    std::fs::rename(&other, &scene.transcript).expect("it is replaced");
    wait_until("it is told", || following.lines().len() == 2);
    assert!(following.err().contains("was replaced"), "{}", following.err());
    assert_eq!(
        (following.told(1), scene.ids("rollout", "stale")),
        (vec!["a".to_owned()], vec!["ls sub".to_owned()])
    );
}

#[test]
fn a_daemon_that_comes_back_is_told_what_it_missed() {
    let mut scene = Scene::new();
    scene.holds(begun(&scene.place) + &ran("cat a", "one\n"));
    let following = scene.follow(&[]);
    wait_until("it is registered", || {
        std::fs::read_to_string(&following.out).is_ok_and(|out| out.contains("saw"))
    });
    scene.daemon.stop();
    scene.daemon = {
        scene_grows(&scene.transcript, &ran("cat b", "old\n"));
        wait_until("it is said", || following.err().contains("the daemon went away"));
        Daemon::start(&scene.place.home)
    };
    wait_until("it is told", || scene.ids("rollout", "stale") == ["b"]);
    wait_until("it is said", || {
        std::fs::read_to_string(&following.out).is_ok_and(|out| {
            out.ends_with("rollout: 1 source new or changed, of 5 lines\n  1 are not what the agent saw; `staled status rollout` shows them\n")
        })
    });
}

fn scene_grows(transcript: &Path, text: &str) {
    let mut file = File::options().append(true).open(transcript).expect("it is there");
    file.write_all(text.as_bytes()).expect("it is written");
}

#[test]
fn following_ends_with_its_reader_or_on_ctrl_c_without_a_word() {
    let scene = Scene::new();
    scene.holds(begun(&scene.place) + &ran("cat a", "one\n"));
    let mut following = scene.follow(&["--json"]);
    wait_until("it is registered", || following.lines().len() == 1);
    let pid = i32::try_from(following.child.0.id()).ok().and_then(Pid::from_raw).expect("a pid");
    kill_process(pid, Signal::INT).expect("it runs");
    wait_until("it ends", || following.child.0.try_wait().expect("it was started").is_some());
    assert_eq!(following.child.0.wait().expect("it ended").signal(), Some(Signal::INT.as_raw()));
    assert_eq!(following.err(), "");
    let mut command = program(&scene.place);
    command.env("STALED_SOCKET", &scene.daemon.folders.socket).args(scene.args("codex", &["--follow"]));
    let mut unread = Kept(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs"));
    let mut reader = BufReader::new(unread.0.stdout.take().expect("piped"));
    let mut said = String::new();
    while said.matches('\n').count() < 2 {
        reader.read_line(&mut said).expect("a line");
    }
    // Nothing is added any more, so nothing is written that would tell.
    drop(reader);
    wait_until("it ends", || unread.0.try_wait().expect("it was started").is_some());
    assert_eq!(unread.0.wait().expect("it ended").code(), Some(0));
}

#[test]
fn a_terminal_is_told_how_far_a_large_file_is() {
    let scene = Scene::new();
    let long = "x".repeat(100_000);
    let filler: String =
        (0..25).map(|_| line("event_msg", &json!({"type": "agent_message", "message": long}))).collect();
    let text = begun(&scene.place) + &ran("cat a", "one\n") + &filler;
    scene.holds(&text);
    let said = |terminal: Option<&str>| {
        let (mut outside, inside) = terminal_pair();
        let mut command = program(&scene.place);
        command.env("STALED_SOCKET", &scene.daemon.folders.socket).args(scene.args("codex", &[]));
        command.stdout(Stdio::null());
        match terminal {
            Some(kind) => command.env("TERM", kind).stderr(inside),
            None => command.stderr(Stdio::piped()),
        };
        let mut child = command.spawn().expect("it runs");
        drop(command);
        let mut bytes = Vec::new();
        match child.stderr.take() {
            Some(mut pipe) => drop(pipe.read_to_end(&mut bytes)),
            // A terminal that nobody holds any more ends with an error.
            None => drop(outside.read_to_end(&mut bytes)),
        }
        assert!(child.wait().expect("it ended").success());
        String::from_utf8(bytes).expect("UTF-8")
    };
    let shown = said(Some("xterm"));
    let steps: Vec<&str> = shown.split('\r').filter(|step| step.contains(" of 3 MiB")).collect();
    assert_eq!(steps.len(), 2, "one for each MiB: {shown:?}");
    assert!(
        steps.iter().all(|step| step.starts_with("session.jsonl: ") && step.ends_with("\u{1b}[K")),
        "{shown:?}"
    );
    assert!(steps[0].contains("lines, 4") && steps[1].contains("lines, 8"), "{shown:?}");
    assert!(shown.contains("MiB\u{1b}[K\r\u{1b}[K"), "it is taken away: {shown:?}");
    for quiet in [said(None), said(Some("dumb"))] {
        assert!(!quiet.contains('\u{1b}') && !quiet.contains("MiB"), "{quiet:?}");
    }
    scene.holds(&text[..text.len() / 3]);
    assert!(!said(Some("xterm")).contains("MiB"), "a small file is read without a word");
}

/// Both sides of a new terminal.
fn terminal_pair() -> (File, File) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    unlockpt(&terminal).expect("it is ours");
    let name = ptsname(&terminal, Vec::new()).expect("it has a name");
    let inside = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
    let inside = File::options().read(true).write(true).open(inside).expect("the other side");
    (File::from(terminal), inside)
}

#[test]
fn every_help_has_an_example() {
    let place = Place::new();
    for command in [&["import"][..], &["import", "claude-code"], &["import", "codex"]] {
        let run = staled(&place, Path::new("/nowhere"), &[command, &["--help"]].concat()).ok();
        let example =
            run.out.split("\nExample:\n").nth(1).unwrap_or_else(|| panic!("{command:?}: {}", run.out));
        assert!(example.contains(&format!("staled {}", command.join(" "))), "{command:?}: {example}");
    }
}
