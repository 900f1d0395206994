//! Each command that asks the daemon: its success, its main failure, its JSON.

use super::{Run, feed, json_file, staled, unread};
use crate::harness::{Daemon, Place, file};
use serde_json::{Value, json};

/// A place with a daemon and one session `s` that rests on two files.
struct Scene {
    daemon: Daemon,
    place: Place,
}

impl Scene {
    fn new() -> Self {
        let place = Place::new();
        place.write("src/a.rs", "one\n");
        place.write("src/b.rs", "two\n");
        let daemon = Daemon::start(&place.home);
        let scene = Self { daemon, place };
        let context = json_file(&scene.place, "context.json", &scene.context());
        let told = scene.run(&["register", &context]).ok();
        assert!(told.out.starts_with("s: 2 rows told, 2 fresh, 0 not\n"), "{told:?}");
        scene
    }

    fn context(&self) -> Value {
        json!({ "session": "s", "user": "alice", "root": self.place.root, "results": [file("src/a.rs", "one\n"), file("src/b.rs", "two\n")] })
    }

    fn run(&self, args: &[&str]) -> Run {
        staled(&self.place, &self.daemon.folders.socket, args)
    }

    fn json(&self, args: &[&str]) -> Value {
        self.run(&[args, &["--json"]].concat()).ok().json()
    }
}

#[test]
fn register_and_record_read_a_file_or_standard_input() {
    let scene = Scene::new();
    let socket = &scene.daemon.folders.socket;
    let stale = json!({ "session": "s", "results": [file("src/b.rs", "other\n")] }).to_string();
    let run = feed(&scene.place, socket, &["record", "-"], &stale).ok();
    assert!(
        run.out.starts_with("s: 1 row told, 0 fresh, 1 not\n") && run.out.contains("born_stale"),
        "{run:?}"
    );
    let run = feed(&scene.place, socket, &["register", "-", "--json"], &scene.context().to_string()).ok();
    assert_eq!(run.json()["results"][1]["status"], "fresh");
    feed(&scene.place, socket, &["register", "-"], "[1]").fails(2, "standard input is not a JSON object");
    feed(&scene.place, socket, &["register", "-"], "{\"nonsense\": 1}").fails(2, "nonsense");
    let unsaid = json!({ "session": "s", "results": [{ "id": "w", "source": { "kind": "file", "path": "src/a.rs" } }] });
    let weak = feed(&scene.place, socket, &["record", "-"], &unsaid.to_string());
    assert!(weak.err.contains("note: 1 came without a digest"), "{weak:?}");
    scene.run(&["register", "/nowhere/context.json"]).fails(2, "cannot read /nowhere/context.json");
    feed(&scene.place, socket, &["record", "-"], "{\"session\": \"nobody\"}").fails(2, "`staled list`");
}

#[test]
fn status_shows_rows_of_a_session_and_the_health_of_the_daemon() {
    let scene = Scene::new();
    scene.place.write("src/b.rs", "changed\n");
    let run = scene.run(&["status", "s"]).ok();
    let lines: Vec<&str> = run.out.lines().collect();
    assert_eq!(lines[1], "2 rows: 1 fresh, 1 stale, 0 unknown", "{run:?}");
    assert!(lines[4].starts_with("  stale  src/b.rs  src/b.rs  content  blake3:"), "{run:?}");
    assert_eq!(scene.json(&["status", "s"])["counts"]["stale"], 1);
    let health = scene.run(&["status"]).ok();
    assert!(
        health.out.starts_with("ok  staled 0.") && health.out.contains("log sync     interval"),
        "{health:?}"
    );
    assert_eq!(scene.json(&["status"])["health"], "ok");
    scene.run(&["status", "nobody"]).fails(2, "there is no session \"nobody\"");
}

#[test]
fn list_and_drop() {
    let scene = Scene::new();
    let run = scene.run(&["list"]).ok();
    assert!(
        run.out.lines().nth(1).is_some_and(|line| line.starts_with("s        2     0      0")),
        "{run:?}"
    );
    assert_eq!(scene.json(&["list", "--user", "alice"])["sessions"][0]["session"], "s");
    assert_eq!(scene.json(&["list", "--user", "bob"])["sessions"], json!([]));
    assert_eq!(scene.run(&["drop", "s"]).ok().out, "s is forgotten\n");
    scene.run(&["drop", "s", "--json"]).fails(2, "there is no session \"s\"");
    let run = scene.run(&["list"]).ok();
    assert_eq!((run.out.as_str(), run.err.contains("no sessions")), ("", true));
}

#[test]
fn list_takes_a_root_as_it_is_called_here() {
    let scene = Scene::new();
    assert_eq!(scene.json(&["list", "--root", "."])["sessions"][0]["session"], "s");
    let none = scene.run(&["list", "--root", "src"]).ok();
    assert!(none.out.is_empty() && none.err.contains("no registered session fits"), "{none:?}");
}

/// Registered, it would be a context of HEAD and lockfiles alone, which resumes whatever the session believed.
#[test]
fn what_is_no_transcript_registers_nothing() {
    let scene = Scene::new();
    for (text, said) in [
        ("{\"timestamp\":\"t\",\"type\":\"session_meta\",\"payload\":{}}\n", "a rollout of Codex"),
        ("# a page\n", "no conversation"),
    ] {
        let file = scene.place.home.with_file_name("session.jsonl");
        std::fs::write(&file, text).expect("a file");
        let file = file.to_str().expect("UTF-8");
        scene.run(&["import", "claude-code", file, "--root", ".", "--session", "s"]).fails(2, said);
        assert_eq!(scene.json(&["list"])["sessions"][0]["counts"]["results"], 2, "{said}");
    }
}

#[test]
fn tail_shows_the_last_decisions_one_a_line() {
    let scene = Scene::new();
    scene.run(&["decide", "s"]).ok();
    scene.place.write("src/a.rs", "changed\n");
    scene.run(&["decide", "s"]).ends(11);
    let run = scene.run(&["tail", "-n", "2"]).ok();
    let lines: Vec<Vec<&str>> = run.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines.len(), 2, "{run:?}");
    assert_eq!((lines[0][1], lines[0][2], lines[1][2]), ("s", "resume", "fresh"), "{run:?}");
    assert!(run.out.contains("src/a.rs changed since it was read"), "{run:?}");
    let all = scene.run(&["tail", "--json"]).ok();
    let all: Vec<Value> = all.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((all.len(), &all[0]["event"], &all[2]["transition"]), (3, &json!("epoch"), &json!("fresh")));
    assert_eq!(scene.run(&["tail", "-n", "0"]).ok().out, "");
}

#[test]
fn tail_pages_through_more_lines_than_one_answer_holds() {
    let scene = Scene::new();
    let mut client = scene.daemon.client();
    for _ in 0..1_010 {
        client.ask("decide", &json!({ "session": "s", "rows": "stale" })).expect("a decision");
    }
    let lines = scene.run(&["tail", "-n", "1005"]).ok().out.lines().count();
    assert_eq!(lines, 1_005);
}

#[test]
fn tail_follows_what_is_decided() {
    use std::io::{BufRead, BufReader};
    let scene = Scene::new();
    let mut command = super::program(&scene.place);
    command.args(["tail", "-f", "-n", "0", "--socket"]).arg(&scene.daemon.folders.socket);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().expect("it runs");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    // It may not have begun yet, and begins with nothing: decide until it shows one.
    let (sender, receiver) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || sender.send(lines.next()));
    let mut shown = None;
    crate::harness::wait_until("tail -f shows a decision", || {
        scene.run(&["decide", "s"]).ok();
        shown = receiver.try_recv().ok();
        shown.is_some()
    });
    child.kill().expect("it was running");
    child.wait().expect("it ends");
    let _ = reader.join();
    let line = shown.flatten().expect("a line").expect("text");
    assert!(line.contains("  s     resume  All 2 results"), "{line}");
}

#[test]
fn nobody_reading_is_no_failure() {
    let scene = Scene::new();
    for args in
        [&["tail"][..], &["tail", "-f"], &["list"], &["status"], &["status", "s"], &["why", "src/a.rs"]]
    {
        let run = unread(&scene.place, &scene.daemon.folders.socket, args).ok();
        assert_eq!(run.err, "", "{args:?}");
    }
    scene.place.write("src/a.rs", "changed\n");
    let decided = unread(&scene.place, &scene.daemon.folders.socket, &["decide", "s"]).ends(11);
    assert_eq!(decided.err, "", "the decision is the exit code, read or not");
}

#[test]
fn why_tells_the_story_of_a_decision() {
    let scene = Scene::new();
    let first = scene.json(&["decide", "s"]);
    scene.place.write("src/a.rs", "changed\n");
    let run = scene.run(&["decide", "s", "--json"]).ends(11);
    let second = run.json();
    let story = scene.run(&["why", second["decision"].as_str().expect("an id")]).ok();
    assert!(story.out.starts_with("fresh  src/a.rs changed"), "{story:?}");
    let before = format!("resume  {}", first["decision"].as_str().expect("an id"));
    assert!(story.out.contains("before it") && story.out.contains(&before), "{story:?}");
    let receipt =
        format!("{}:{}", second["receipt"]["seq"], second["receipt"]["hash"].as_str().expect("a hash"));
    assert!(story.out.contains(&receipt), "{story:?}");
    let story = scene.run(&["why", first["decision"].as_str().expect("an id")]).ok();
    assert!(story.out.contains("nothing was decided") && story.out.contains("after it"), "{story:?}");
    let line = scene.json(&["why", second["decision"].as_str().expect("an id")]);
    assert_eq!((&line["decision"], &line["seq"]), (&second["decision"], &second["receipt"]["seq"]));
    scene.run(&["why", "d-00000000-0000"]).fails(2, "knows no decision d-00000000-0000");
}

#[test]
fn why_tells_who_rests_on_a_path_however_it_is_spelled() {
    let scene = Scene::new();
    scene.run(&["decide", "s"]).ok();
    scene.place.write("src/a.rs", "changed\n");
    scene.run(&["decide", "s"]).ends(11);
    let absolute = scene.place.root.join("src/a.rs");
    std::os::unix::fs::symlink("src/a.rs", scene.place.root.join("link")).expect("a link");
    for spelled in ["src/a.rs", "./src/../src/a.rs", absolute.to_str().expect("UTF-8"), "link"] {
        let run = scene.run(&["why", spelled]).ok();
        assert!(run.out.contains("s        stale  src/a.rs  content"), "{spelled}: {run:?}");
        assert!(run.out.contains("s        fresh       stale content  d-"), "{spelled}: {run:?}");
        assert!(run.out.contains("s        resume      fresh          d-"), "{spelled}: {run:?}");
    }
    let told = scene.json(&["why", "src/a.rs"]);
    assert_eq!(
        (&told["sessions"][0]["row"]["status"], told["decisions"].as_array().map(Vec::len)),
        (&json!("stale"), Some(2))
    );
    std::fs::remove_file(scene.place.root.join("src/b.rs")).expect("it was there");
    let gone = scene.run(&["why", "./src/../src/b.rs"]).ok();
    assert!(gone.out.contains("s        stale  src/b.rs  deleted"), "{gone:?}");
    let nobody = scene.run(&["why", "src/nobody.rs"]).ends(1);
    assert!(nobody.out.starts_with("No session rests on "), "{nobody:?}");
}

#[test]
fn names_that_are_not_utf8_are_lossy_for_people_and_exact_in_json() {
    use std::os::unix::ffi::OsStrExt;
    let scene = Scene::new();
    std::fs::write(scene.place.root.join(std::ffi::OsStr::from_bytes(b"\xff.rs")), "x").expect("a file");
    let odd = json!({ "session": "s", "results": [{ "id": "odd", "source": { "kind": "file", "path": { "bytes": "/y5ycw==" } }, "content": "y" }] });
    feed(&scene.place, &scene.daemon.folders.socket, &["record", "-"], &odd.to_string()).ok();
    let run = scene.run(&["decide", "s"]).ends(11);
    assert!(run.out.contains("\n  dropped     \u{fffd}.rs\n"), "{run:?}");
    let report = scene.run(&["decide", "s", "--json"]).ends(11).json();
    assert_eq!(report["typed_summary"]["stale_dropped"], json!([{ "bytes": "/y5ycw==" }]));
}

#[test]
fn text_from_a_session_cannot_steer_the_terminal() {
    let scene = Scene::new();
    let evil = json!({ "session": "s", "goal": { "statement": "\u{1b}[2Jgone\nstaled: all fresh" } });
    feed(&scene.place, &scene.daemon.folders.socket, &["record", "-"], &evil.to_string()).ok();
    let run = scene.run(&["decide", "s"]).ok();
    assert!(run.out.contains("goal        \\u{1b}[2Jgone\\nstaled"), "{run:?}");
    assert!(!run.out.contains('\u{1b}'), "{run:?}");
}
