//! `mem`: what is remembered is told, found, seen to go stale and back, and forgotten, all from the command line.

use super::{Run, feed, staled, unread};
use crate::harness::{Daemon, Place};
use serde_json::{Value, json};
use staled::world::login_name;

/// A place with a daemon and two files.
struct Scene {
    daemon: Daemon,
    place: Place,
}

impl Scene {
    fn new() -> Self {
        let place = Place::new();
        place.write("src/a.rs", "one\n");
        place.write("src/b.rs", "two\n");
        Self { daemon: Daemon::start(&place.home), place }
    }

    fn mem(&self, args: &[&str]) -> Run {
        self.fed(args, "")
    }

    fn fed(&self, args: &[&str], input: &str) -> Run {
        feed(&self.place, &self.daemon.folders.socket, &[&["mem"], args].concat(), input)
    }

    fn json(&self, args: &[&str]) -> Value {
        self.mem(&[args, &["--json"]].concat()).ok().json()
    }

    /// The first one, resting on `src/a.rs`.
    fn save_expiry(&self) {
        let said = ["--type", "decision", "--title", "Where expiry lives", "--source", "src/a.rs"];
        let run = self.mem(&[&["save"], &said[..], &["In Token::is_valid"]].concat()).ok();
        assert_eq!(run.out, "observation 1  created  revision 1  fresh\n");
        assert!(run.err.starts_with("note: no session was active, so one began"), "{run:?}");
    }

    fn save(&self, title: &str, content: &str) {
        self.mem(&["save", "--type", "pattern", "--title", title, content]).ok();
    }
}

#[test]
fn what_rests_on_a_file_goes_stale_and_fresh_with_it() {
    let scene = Scene::new();
    scene.save_expiry();
    let found = scene.mem(&["search", "expiry"]).ok();
    let lines: Vec<&str> = found.out.lines().collect();
    assert_eq!(lines[0], "SCORE  ID  TYPE      TITLE               EVIDENCE  UPDATED");
    assert!(lines[1].contains("  1   decision  Where expiry lives  fresh     "), "{found:?}");
    assert_eq!(lines.len(), 2, "{found:?}");
    assert!(!found.out.contains('\u{1b}'), "no colour in a pipe: {found:?}");
    scene.place.write("src/a.rs", "three\n");
    let found = scene.mem(&["search", "expiry"]).ok();
    let lines: Vec<&str> = found.out.lines().collect();
    assert!(lines[1].contains("Where expiry lives  stale     "), "{found:?}");
    assert!(lines[2].starts_with("       stale  src/a.rs  content  blake3:"), "{found:?}");
    let one = scene.mem(&["get", "1"]).ok();
    assert!(one.out.contains("\n    stale  src/a.rs  content  blake3:"), "{one:?}");
    let left_out = scene.mem(&["search", "expiry", "--stale", "exclude"]).ok();
    assert_eq!((left_out.out.as_str(), left_out.err.as_str()), ("", "nothing that is remembered fits\n"));
    scene.place.write("src/a.rs", "one\n");
    assert_eq!(scene.json(&["search", "expiry"])["results"][0]["evidence"], "fresh");
}

#[test]
fn a_source_is_named_as_it_is_called_here() {
    let scene = Scene::new();
    let save = ["save", "--type", "pattern", "--title", "Both", "--source", "./src/b.rs", "--source"];
    let absolute = scene.place.root.join("src/a.rs");
    scene.mem(&[&save[..], &[absolute.to_str().expect("UTF-8"), "content"]].concat()).ok();
    let told = scene.json(&["get", "1"]);
    assert_eq!(told["sources"], json!([scene.place.root.join("src/b.rs"), absolute]));
    let one = scene.mem(&["get", "1"]).ok();
    assert!(one.out.contains("  rests on  src/b.rs\n            src/a.rs\n"), "{one:?}");
    let changed = scene.mem(&[&save[..7], &["content"]].concat()).ok();
    assert_eq!(changed.out, "observation 1  deduped  revision 1  fresh\n");
    assert_eq!(scene.json(&["get", "1"])["sources"], json!([scene.place.root.join("src/b.rs")]));
    scene.mem(&["save", "--type", "pattern", "--title", "Both", "--no-sources", "content"]).ok();
    assert_eq!(scene.json(&["get", "1"])["evidence"], "none");
    scene.mem(&[&save[..], &["src/a.rs", "--no-sources", "content"]].concat()).fails(2, "--no-sources");
}

#[test]
fn a_folder_is_what_is_in_it() {
    let scene = Scene::new();
    let save = ["save", "--type", "pattern", "--title", "All", "--source", "src", "content"];
    assert_eq!(scene.mem(&save).ok().out, "observation 1  created  revision 1  fresh\n");
    assert!(scene.mem(&["get", "1"]).ok().out.contains("  rests on  tree src\n"));
    scene.place.write("src/c.rs", "more\n");
    let found = scene.mem(&["search", "content"]).ok();
    assert!(found.out.contains("\n       stale  src  names  "), "{found:?}");
}

#[test]
fn content_comes_from_the_command_line_or_from_standard_input() {
    let scene = Scene::new();
    let save = ["save", "--type", "discovery", "--title", "Two lines", "--topic-key", "k"];
    scene.fed(&save, "a\nb\n").ok();
    assert_eq!(scene.json(&["get", "1"])["content"], "a\nb");
    let again = scene.mem(&[&save[..], &["a\nb"]].concat()).ok();
    assert_eq!(again.out, "observation 1  deduped  revision 1\n");
    let revised = scene.fed(&[&save[..], &["-", "--if-revision", "1"]].concat(), "c \u{1b}[2J").ok();
    assert_eq!(revised.out, "observation 1  updated  revision 2\n");
    scene.mem(&[&save[..], &["--if-revision", "1", "d"]].concat()).fails(2, "at revision 2, not at 1");
    let one = scene.mem(&["get", "1", "--history"]).ok();
    assert!(one.out.starts_with("Two lines\n  type       discovery\n  topic key  k\n"), "{one:?}");
    assert!(one.out.contains("\n\nc \\u{1b}[2J\n\nrevision 1  "), "it cannot steer the terminal: {one:?}");
    assert!(one.out.ends_with("  discovery  Two lines\n  a\n  b\n"), "{one:?}");
    assert!(!scene.mem(&["get", "1"]).ok().out.contains("revision 1"));
    scene.mem(&["save", "--type", "nonsense", "--title", "t", "c"]).fails(2, "memory.observation_types");
    scene.fed(&save, "").fails(2, "content must not be blank");
}

#[test]
fn search_is_narrowed_by_type_and_number() {
    let scene = Scene::new();
    scene.save_expiry();
    scene.save("Token one", "is_valid again");
    scene.save("Token two", "is_valid once more");
    let ids = |args: &[&str]| -> Vec<u64> {
        let found = scene.json(&[&["search", "is_valid"], args].concat());
        let found = found["results"].as_array().expect("a list").iter();
        let mut ids: Vec<u64> = found.map(|one| one["id"].as_u64().expect("a number")).collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(ids(&[]), [1, 2, 3]);
    assert_eq!(ids(&["--type", "decision"]), [1]);
    assert_eq!(ids(&["--not-type", "decision"]), [2, 3]);
    assert_eq!(ids(&["--type", "decision", "--type", "pattern"]), [1, 2, 3]);
    assert_eq!(ids(&["--limit", "1"]).len(), 1);
    scene.mem(&["search", "x", "--type", "a", "--not-type", "b"]).fails(2, "--not-type");
    scene.mem(&["search", "x", "--limit", "101"]).fails(2, "limit must be 1 to 100");
    scene.mem(&["search", " "]).fails(2, "query must not be blank");
    scene.mem(&["search", "--", "-rf \"say (hi"]).ok();
}

#[test]
fn sessions_begin_go_on_and_end() {
    let scene = Scene::new();
    let none = scene.mem(&["sessions"]).ok();
    assert!(none.out.is_empty() && none.err.contains("`staled mem start`"), "{none:?}");
    scene.mem(&["end", "Done"]).fails(2, "has no active session");
    let began = scene.mem(&["start"]).ok();
    assert!(began.out.starts_with("session ") && began.out.ends_with("  has begun\n"), "{began:?}");
    scene.save("A token", "content");
    scene.fed(&["summary", "-"], "Half done\n").ok();
    let goes_on = scene.mem(&["start"]).ok();
    let id = began.out.split(' ').nth(1).expect("an id");
    assert!(goes_on.out.starts_with(&format!("session {id}  goes on\n")), "{goes_on:?}");
    assert!(goes_on.out.contains("  SCORE  ID  TYPE     TITLE    EVIDENCE  UPDATED\n"), "{goes_on:?}");
    let ended = scene.mem(&["end", "All done"]).ok();
    assert_eq!(ended.out, format!("session {id}  completed\n"));
    let next = scene.mem(&["start"]).ok();
    assert!(
        next.out.contains("  ENDED                 SUMMARY\n") && next.out.contains("Z  All done\n"),
        "{next:?}"
    );
    let listed = scene.mem(&["sessions"]).ok();
    let states: Vec<&str> = listed.out.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert_eq!(states, ["STATE", "active", "completed"], "{listed:?}");
    assert_eq!(scene.json(&["sessions", "--limit", "1"])["results"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_timeline_marks_what_it_is_about_and_stats_count() {
    let scene = Scene::new();
    scene.save_expiry();
    scene.save("Second", "content");
    scene.place.write("src/a.rs", "changed\n");
    let around = scene.mem(&["timeline", "2"]).ok();
    let lines: Vec<&str> = around.out.lines().collect();
    assert!(lines[1].starts_with("   1   decision  Where expiry lives  stale"), "{around:?}");
    assert!(lines[2].starts_with("       stale  src/a.rs  content  "), "{around:?}");
    assert!(lines[3].starts_with("→  2   pattern   Second              none "), "{around:?}");
    let stats = scene.mem(&["stats"]).ok();
    let expected = "sessions      1\nobservations  2\n  decision    1\n  pattern     1\nstale         1\nunknown       0\n";
    assert_eq!(stats.out, expected);
}

#[test]
fn what_is_not_there_is_said_and_no_data() {
    let scene = Scene::new();
    scene.save_expiry();
    for args in [&["get", "2"][..], &["timeline", "2"]] {
        scene.mem(args).fails(2, "there is no observation 2 in this memory");
    }
    scene.mem(&["forget", "2"]).fails(2, "no observation 2");
    scene.mem(&["get", "0"]).fails(2, "observation_id must be above 0");
    let null = scene.mem(&["get", "2", "--json"]).ends(2);
    assert_eq!(null.json(), Value::Null);
    assert_eq!(scene.mem(&["forget", "1"]).ok().out, "observation 1 is forgotten\n");
    scene.mem(&["get", "1"]).fails(2, "there is no observation 1");
}

#[test]
fn everybody_has_their_own_and_the_login_name_stands_for_who_asks() {
    let scene = Scene::new();
    scene.save_expiry();
    assert_eq!(scene.json(&["get", "1"])["user_id"], json!(login_name()));
    assert_eq!(scene.json(&["get", "1", "--user", &login_name()])["id"], 1);
    scene.mem(&["--user", "bob", "get", "1"]).fails(2, "there is no observation 1");
    assert_eq!(scene.json(&["--user", "bob", "stats"])["observations"], 0);
    scene.mem(&["--user", "bob", "start"]).ok();
    let health = staled(&scene.place, &scene.daemon.folders.socket, &["status"]).ok();
    assert!(health.out.contains("  memory       1 observation of 2 users\n"), "{health:?}");
    let size = json!({ "users": 2, "sessions": 2, "observations": 1 });
    assert_eq!(scene.daemon.ask("status", &json!({}))["memory"], size);
    let metrics = staled(&scene.place, &scene.daemon.folders.socket, &["metrics"]).ok();
    for (name, value) in [("users", 2), ("sessions", 2), ("observations", 1)] {
        assert!(metrics.out.contains(&format!("\nstaled_memory_{name} {value}\n")), "{name}: {metrics:?}");
    }
}

#[test]
fn a_fresh_start_tells_what_is_remembered_apart() {
    let scene = Scene::new();
    let scene_file = |path: &str, text: &str| crate::harness::file(path, text);
    let fact = json!({ "statement": "B is two", "evidence": "src/b.rs:1", "sources": ["src/b.rs"] });
    scene.daemon.ask(
        "context.register",
        &json!({ "session": "s", "root": scene.place.root, "facts": [fact],
            "results": [scene_file("src/a.rs", "one\n"), scene_file("src/b.rs", "two\n")] }),
    );
    scene.mem(&["save", "--type", "decision", "--title", "B", "--source", "src/b.rs", "B was chosen"]).ok();
    scene.place.write("src/a.rs", "changed\n");
    let decide = |args: &[&str]| {
        staled(&scene.place, &scene.daemon.folders.socket, &[&["decide", "s"], args].concat()).ends(11)
    };
    let told = decide(&["--memory"]);
    assert!(told.out.contains("\n  still true  B is two (src/b.rs:1)\n"), "{told:?}");
    assert!(told.out.contains("\n  remembered  B was chosen (observation 1 of the memory)\n"), "{told:?}");
    assert!(!decide(&[]).out.contains("B was chosen"), "only when it is asked for");
    staled(
        &scene.place,
        &scene.daemon.folders.socket,
        &["decide", "--memory", "--no-daemon", "--context", "x"],
    )
    .fails(2, "--no-daemon");
}

#[test]
fn nobody_reading_is_no_failure() {
    let scene = Scene::new();
    scene.save_expiry();
    for args in
        [&["search", "expiry"][..], &["get", "1"], &["start"], &["sessions"], &["stats"], &["timeline", "1"]]
    {
        let run = unread(&scene.place, &scene.daemon.folders.socket, &[&["mem"], args].concat()).ok();
        assert_eq!(run.err, "", "{args:?}");
    }
}
