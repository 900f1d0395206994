//! What became of one file, said by every method: the path, the cause, what was there and what is there now.

use super::{USER, asked, evidence, is, save, scene, word};
use crate::harness::{Place, digest};
use serde_json::json;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::SystemTime;

/// A deed, what every method must say after it, and what stands there then.
type Deed = (&'static str, fn(&Place), &'static str, Option<&'static str>);

const DEEDS: [Deed; 16] = [
    ("nothing", |_| (), "fresh", None),
    ("a touch", touch, "fresh", None),
    ("a chmod", chmod, "fresh", None),
    ("the same bytes", |place| place.write("d/f", "one\n"), "fresh", None),
    ("a rename over it with the same bytes", |place| over(place, "one\n"), "fresh", None),
    ("other bytes", |place| place.write("d/f", "two\n"), "stale content", Some("two\n")),
    ("other bytes again", |place| place.write("d/f", "six\n"), "stale content", Some("six\n")),
    ("a touch of those", touch, "stale content", Some("six\n")),
    ("a revert", |place| place.write("d/f", "one\n"), "fresh", None),
    ("a rename over it with other bytes", |place| over(place, "two\n"), "stale content", Some("two\n")),
    ("its end", |place| fs::remove_file(place.root.join("d/f")).expect("it is there"), "stale deleted", None),
    (
        "a folder in its place",
        |place| fs::create_dir(place.root.join("d/f")).expect("ours"),
        "stale kind_changed",
        None,
    ),
    ("a symlink to the same bytes", linked, "fresh", None),
    ("other bytes behind the symlink", |place| place.write("same", "two\n"), "stale content", Some("two\n")),
    (
        "the end of its folder",
        |place| fs::remove_dir_all(place.root.join("d")).expect("ours"),
        "stale deleted",
        None,
    ),
    ("all of it again", |place| place.write("d/f", "one\n"), "fresh", None),
];

fn touch(place: &Place) {
    let file = fs::File::options().append(true).open(place.root.join("d/f")).expect("a file");
    file.set_modified(SystemTime::now()).expect("a time");
}

fn chmod(place: &Place) {
    fs::set_permissions(place.root.join("d/f"), fs::Permissions::from_mode(0o600)).expect("ours");
}

fn over(place: &Place, text: &str) {
    place.write("beside", text);
    fs::rename(place.root.join("beside"), place.root.join("d/f")).expect("ours");
}

fn linked(place: &Place) {
    place.write("same", "one\n");
    fs::remove_dir(place.root.join("d/f")).expect("a folder");
    symlink("../same", place.root.join("d/f")).expect("a link");
}

#[test]
fn every_method_says_what_became_of_a_file() {
    let (place, daemon) = scene();
    place.write("d/f", "one\n");
    let path = place.root.join("d/f");
    let id = save(&daemon, "file", &json!([path]));
    for (deed, act, expected, now) in DEEDS {
        act(&place);
        let told = is(&daemon, id, expected, deed);
        let stats = asked(&daemon, "mem_stats", &json!({ "user_id": USER }));
        let stale = u64::from(expected.starts_with("stale"));
        assert_eq!((&stats["stale"], &stats["unknown"]), (&json!(stale), &json!(0)), "{deed}: {stats}");
        if stale == 0 {
            continue;
        }
        let changed = &told["changed"][0];
        assert_eq!(changed["path"], json!(path), "{deed}: {told}");
        assert_eq!(changed["was"], digest("one\n"), "{deed}: {told}");
        if let Some(now) = now {
            assert_eq!(changed["now"], digest(now), "{deed}: {told}");
        }
        assert!(changed["since"].is_string(), "{deed}: {told}");
    }
}

#[test]
fn of_several_sources_those_are_named_that_changed() {
    let (place, daemon) = scene();
    let paths: Vec<_> = ["a", "b", "c"].iter().map(|name| place.root.join(name)).collect();
    ["a", "b", "c"].iter().for_each(|name| place.write(name, "one\n"));
    let id = save(&daemon, "three", &json!(paths));
    is(&daemon, id, "fresh", "nothing");
    place.write("b", "two\n");
    let told = is(&daemon, id, "stale content", "one of three");
    assert_eq!(
        (told["changed"].as_array().map(Vec::len), &told["changed"][0]["path"]),
        (Some(1), &json!(paths[1]))
    );
    fs::remove_file(&paths[0]).expect("it is there");
    let told = evidence(&daemon, id);
    let changed: Vec<_> =
        told["changed"].as_array().expect("two").iter().map(|one| (&one["path"], &one["cause"])).collect();
    assert_eq!(
        changed,
        [(&json!(paths[0]), &json!("deleted")), (&json!(paths[1]), &json!("content"))],
        "{told}"
    );
    place.write("a", "one\n");
    place.write("b", "one\n");
    assert_eq!(word(&evidence(&daemon, id)), "fresh");
}

#[test]
fn a_file_that_went_elsewhere_is_said_to_have_gone_and_is_fresh_when_it_is_back() {
    let (place, daemon) = scene();
    place.write("d/f", "one\n");
    let id = save(&daemon, "moved", &json!([place.root.join("d/f")]));
    for (from, to, expected) in [
        ("d/f", "d/g", "stale renamed"),
        ("d/g", "d/f", "fresh"),
        ("d", "e", "stale renamed"),
        ("e", "d", "fresh"),
    ] {
        fs::rename(place.root.join(from), place.root.join(to)).expect("ours");
        is(&daemon, id, expected, &format!("{from} is {to}"));
    }
}
