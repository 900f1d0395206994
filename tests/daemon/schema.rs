//! The schema of a database: stale when, and only when, whoever opened the database now would see another one.
//! And the user's folder is, after any number of looks, what it was.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test does")]

use crate::daemon::{cause, decide, register, row};
use crate::harness::{Daemon, Place, wait_until};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

fn schema(id: &str, path: &str) -> Value {
    json!({ "id": id, "source": { "kind": "sqlite_schema", "path": path } })
}

fn open(place: &Place, mode: &str) -> Connection {
    let database = Connection::open(place.root.join("d.db")).unwrap();
    database.pragma_update(None, "journal_mode", mode).unwrap();
    database
}

fn run(database: &Connection, sql: &str) {
    database.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// So many that the schema does not fit on the first page, which SQLite never writes before it commits.
fn many_tables(database: &Connection) {
    for number in 0..40 {
        run(database, &format!("CREATE TABLE f{number}(a /*{}*/)", "x".repeat(200)));
    }
}

fn many_rows(database: &Connection) {
    run(
        database,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<5000)
                   INSERT INTO t SELECT i, hex(randomblob(40)) FROM n",
    );
}

/// Whether a deed changes the schema.
type Case = (&'static str, fn(&Connection), &'static str);

const CASES: &[Case] = &[
    ("nothing", |_| {}, "fresh"),
    ("rows", many_rows, "fresh"),
    (
        "a checkpoint",
        |d| {
            many_rows(d);
            run(d, "PRAGMA wal_checkpoint(TRUNCATE)");
        },
        "fresh",
    ),
    (
        "a vacuum",
        |d| {
            many_rows(d);
            run(d, "DELETE FROM t; VACUUM");
        },
        "fresh",
    ),
    ("statistics", |d| run(d, "ANALYZE"), "fresh"),
    ("an index rebuilt", |d| run(d, "REINDEX"), "fresh"),
    ("a column", |d| run(d, "ALTER TABLE t ADD COLUMN c"), "schema"),
    ("a name", |d| run(d, "ALTER TABLE t RENAME TO u"), "schema"),
    ("a table", |d| run(d, "CREATE TABLE u(x)"), "schema"),
    ("an index less", |d| run(d, "DROP INDEX i"), "schema"),
    ("a view", |d| run(d, "CREATE VIEW v AS SELECT a FROM t"), "schema"),
    ("a trigger", |d| run(d, "CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT 1; END"), "schema"),
    ("a table, and away again", |d| run(d, "CREATE TABLE u(x); DROP TABLE u"), "fresh"),
    (
        "the same table, spaced otherwise",
        |d| run(d, "DROP TABLE t; CREATE TABLE t(a\n,  b\n); CREATE INDEX i ON t(b)"),
        "fresh",
    ),
    (
        "a change that is not committed",
        |d| {
            run(d, "BEGIN; CREATE TABLE u(x)");
            many_rows(d);
        },
        "fresh",
    ),
    (
        "one that is too large for the cache, not committed",
        |d| {
            run(d, "PRAGMA cache_size=4; BEGIN; CREATE TABLE u(x)");
            many_rows(d);
            run(d, "CREATE TABLE w(x)");
        },
        "fresh",
    ),
    ("a change taken back", |d| run(d, "BEGIN; CREATE TABLE u(x); ROLLBACK"), "fresh"),
    ("a lock that keeps readers out", |d| run(d, "BEGIN EXCLUSIVE"), "fresh"),
];

#[test]
fn a_schema_is_stale_when_and_only_when_it_is_another_one() {
    for mode in ["wal", "delete", "truncate", "persist"] {
        for (what, deed, expected) in CASES {
            let place = Place::new();
            let database = open(&place, mode);
            many_tables(&database);
            run(&database, "CREATE TABLE t(a , b ); CREATE INDEX i ON t(b)");
            many_rows(&database);
            let daemon = Daemon::start(&place.home);
            let told = register(&daemon, &place, "s", &json!([schema("r", "d.db")]));
            assert_eq!(told["results"][0]["status"], "fresh", "{told}");
            deed(&database);
            let report = decide(&daemon, "s");
            assert_eq!(cause(&report, "r"), *expected, "{what} in mode {mode}: {report:#}");
            assert_eq!(row(&report, "r")["signal_type"], "schema");
            drop(database);
            if *expected == "schema" {
                assert_eq!(cause(&decide(&daemon, "s"), "r"), "schema", "{what} in mode {mode}, closed");
            }
        }
    }
}

/// What SQLite says is in a database, in the daemon's own words.
fn told_by_sqlite(database: &Connection) -> Vec<[String; 4]> {
    let sql = "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema
               WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY 1, 2, 3, 4";
    let mut statement = database.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]));
    rows.unwrap().map(Result::unwrap).collect()
}

/// Random schemas of every size of page, encoding and journal: after every step, the digest is the same as before when
/// SQLite says that the schema is, and another when it is not.
#[test]
fn the_digest_moves_as_sqlite_says() {
    let seed = fastrand::u64(..);
    let mut rng = fastrand::Rng::with_seed(seed);
    for round in 0..6 {
        let place = Place::new();
        let mode = ["wal", "delete", "persist", "truncate", "wal", "wal"][round];
        let first = Connection::open(place.root.join("d.db")).unwrap();
        let page = [512, 1024, 4096, 65536][rng.usize(..4)];
        let encoding = ["UTF-8", "UTF-16le", "UTF-16be"][rng.usize(..3)];
        run(&first, &format!("PRAGMA page_size={page}; PRAGMA encoding='{encoding}'; CREATE TABLE t(a, b)"));
        drop(first);
        let database = open(&place, mode);
        let daemon = Daemon::start(&place.home);
        let mut known: BTreeMap<String, Vec<[String; 4]>> = BTreeMap::new();
        for step in 0..25 {
            for _ in 0..rng.usize(1..4) {
                change(&database, &mut rng);
            }
            register(&daemon, &place, "s", &json!([schema("r", "d.db")]));
            let context = daemon.ask("context.get", &json!({ "session": "s" }));
            let digest =
                context["results"][0]["digest"].as_str().unwrap_or_else(|| panic!("seed {seed}: {context}"));
            let told = told_by_sqlite(&database);
            let at = format!("seed {seed}, round {round} ({mode}, {page}, {encoding}), step {step}");
            if let Some(held) = known.get(digest) {
                assert_eq!(*held, told, "two schemas with one digest, {at}");
            }
            let twice = known.iter().find(|(held, schema)| held.as_str() != digest && **schema == told);
            assert!(twice.is_none(), "one schema with two digests, {at}");
            known.insert(digest.to_owned(), told);
        }
        assert!(known.len() > 5, "the schema moved");
    }
}

fn change(database: &Connection, rng: &mut fastrand::Rng) {
    let number = rng.u32(..40);
    let long = "x".repeat(rng.usize(..3000));
    let sql = match rng.u32(..8) {
        0..=2 => format!("CREATE TABLE IF NOT EXISTS t{number}(a /*{long}é*/, b)"),
        3 => format!("DROP TABLE IF EXISTS t{number}"),
        4 => format!("CREATE INDEX IF NOT EXISTS i{number} ON t(a) WHERE a != '{long}'"),
        5 => format!("DROP INDEX IF EXISTS i{number}"),
        6 => "INSERT INTO t VALUES (hex(randomblob(2000)), 1)".to_owned(),
        _ => ["PRAGMA wal_checkpoint", "PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM", "DELETE FROM t"]
            [rng.usize(..4)]
        .to_owned(),
    };
    // A checkpoint answers with a row, and a schema too full for a small page is no matter here.
    let _ = database.execute_batch(&sql);
}

/// Everything there is to see of a folder's files.
fn listing(root: &Path) -> BTreeMap<PathBuf, (u64, u64, i64, i64, i64, i64, Vec<u8>)> {
    let entries = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    let seen = |path: PathBuf| {
        let m = fs::symlink_metadata(&path).unwrap();
        let times = (m.mtime(), m.mtime_nsec(), m.ctime(), m.ctime_nsec());
        let bytes = fs::read(&path).unwrap();
        (path, (m.ino(), m.len(), times.0, times.1, times.2, times.3, bytes))
    };
    entries.map(seen).collect()
}

#[test]
fn a_log_that_was_left_behind_is_read_and_nothing_in_the_folder_changes() {
    for leave in [&["d.db", "d.db-wal"][..], &["d.db", "d.db-wal", "d.db-shm"], &["d.db"]] {
        let place = Place::new();
        let elsewhere = Place::new();
        let database = open(&elsewhere, "wal");
        run(
            &database,
            "PRAGMA wal_autocheckpoint=0; CREATE TABLE t(a); PRAGMA wal_checkpoint; CREATE TABLE u(a)",
        );
        for name in leave {
            fs::copy(elsewhere.root.join(name), place.root.join(name)).unwrap();
        }
        let daemon = Daemon::start(&place.home);
        let before = listing(&place.root);
        register(&daemon, &place, "s", &json!([schema("r", "d.db")]));
        let events = daemon.ask("status", &json!({}))["events"].clone();
        for _ in 0..20 {
            assert_eq!(decide(&daemon, "s")["transition"], "resume", "{leave:?}");
        }
        assert_eq!(listing(&place.root), before, "{leave:?}");
        let after = daemon.ask("status", &json!({}))["events"].clone();
        let cookies = after.as_u64().unwrap() - events.as_u64().unwrap();
        assert!(cookies <= 40, "an idle database sends nothing: {cookies} events in 20 decisions");
        // The log alone says that there is a second table.
        fs::write(place.root.join("d.db-wal"), b"").unwrap();
        let expected = if leave.contains(&"d.db-wal") { "schema" } else { "fresh" };
        assert_eq!(cause(&decide(&daemon, "s"), "r"), expected, "{leave:?}");
    }
}

#[test]
fn a_journal_that_a_crash_left_behind_says_what_was_committed() {
    let place = Place::new();
    let elsewhere = Place::new();
    let database = open(&elsewhere, "delete");
    many_tables(&database);
    run(&database, "CREATE TABLE t(a, b)");
    fs::copy(elsewhere.root.join("d.db"), place.root.join("d.db")).unwrap();
    let daemon = Daemon::start(&place.home);
    register(&daemon, &place, "s", &json!([schema("r", "d.db")]));
    run(&database, "PRAGMA cache_size=2; BEGIN; CREATE TABLE u(x)");
    many_rows(&database);
    run(&database, "CREATE TABLE w(x)");
    many_rows(&database);
    let spilled = fs::read(elsewhere.root.join("d.db")).unwrap();
    assert!(spilled.windows(14).any(|bytes| bytes == b"CREATE TABLE u"), "the change is in the file already");
    fs::copy(elsewhere.root.join("d.db-journal"), place.root.join("d.db-journal")).unwrap();
    fs::write(place.root.join("d.db"), &spilled).unwrap();
    assert_eq!(cause(&decide(&daemon, "s"), "r"), "fresh", "rolled back by whoever opens it");
    let before = listing(&place.root);
    decide(&daemon, "s");
    assert_eq!(listing(&place.root), before);
    fs::remove_file(place.root.join("d.db-journal")).unwrap();
    assert_ne!(cause(&decide(&daemon, "s"), "r"), "fresh", "nothing left to roll it back");
}

#[test]
fn what_is_no_database_any_more_is_told_apart() {
    let whole = |place: &Place| fs::read(place.root.join("d.db")).unwrap();
    let cases: [(&str, fn(&Path, Vec<u8>), &str); 7] = [
        ("deleted", |p, _| fs::remove_file(p).unwrap(), "deleted"),
        ("text", |p, _| fs::write(p, "no database at all\n".repeat(20)).unwrap(), "kind_changed"),
        ("a word", |p, _| fs::write(p, "x").unwrap(), "kind_changed"),
        ("emptied", |p, _| fs::write(p, "").unwrap(), "schema"),
        ("cut short", |p, bytes| fs::write(p, &bytes[..100]).unwrap(), "unreadable"),
        (
            "damaged",
            |p, mut bytes| {
                bytes[100..4000].fill(0xff);
                fs::write(p, bytes).unwrap();
            },
            "unreadable",
        ),
        (
            "a folder",
            |p, _| {
                fs::remove_file(p).unwrap();
                fs::create_dir(p).unwrap();
            },
            "kind_changed",
        ),
    ];
    for (what, deed, expected) in cases {
        let place = Place::new();
        run(&open(&place, "delete"), "CREATE TABLE t(a, b); CREATE INDEX i ON t(a)");
        let daemon = Daemon::start(&place.home);
        register(&daemon, &place, "s", &json!([schema("r", "d.db")]));
        assert_eq!(decide(&daemon, "s")["transition"], "resume");
        deed(&place.root.join("d.db"), whole(&place));
        let report = decide(&daemon, "s");
        assert_eq!(cause(&report, "r"), expected, "{what}: {report:#}");
    }
}

#[test]
fn a_database_behind_a_symlink_has_its_log_beside_itself() {
    let place = Place::new();
    fs::create_dir(place.root.join("link")).unwrap();
    let database = open(&place, "wal");
    run(&database, "PRAGMA wal_autocheckpoint=0; CREATE TABLE t(a)");
    std::os::unix::fs::symlink("../d.db", place.root.join("link/l.db")).unwrap();
    let daemon = Daemon::start(&place.home);
    register(&daemon, &place, "s", &json!([schema("r", "link/l.db")]));
    assert_eq!(decide(&daemon, "s")["transition"], "resume");
    run(&database, "CREATE TABLE u(a)");
    assert_eq!(cause(&decide(&daemon, "s"), "r"), "schema");
}

#[test]
fn a_database_that_is_written_all_the_time_can_still_be_told() {
    let place = Place::new();
    let database = open(&place, "wal");
    run(&database, "PRAGMA synchronous=OFF; CREATE TABLE t(a, b)");
    let daemon = Daemon::start(&place.home);
    register(&daemon, &place, "s", &json!([schema("r", "d.db")]));
    let (stop, writes) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let database = Connection::open(place.root.join("d.db")).unwrap();
            run(&database, "PRAGMA synchronous=OFF; PRAGMA wal_autocheckpoint=0");
            while !stop.load(Ordering::Relaxed) {
                run(&database, "INSERT INTO t VALUES (1, 2)");
                writes.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        // In the midst of writes a look may be overtaken, and then it is asked again; but it must come to an end.
        wait_until("looks between many writes were not overtaken", || {
            (0..10).all(|_| cause(&decide(&daemon, "s"), "r") == "fresh")
                && writes.load(Ordering::Relaxed) > 20
        });
        stop.store(true, Ordering::Relaxed);
    });
    run(&database, "ALTER TABLE t RENAME COLUMN b TO c");
    assert_eq!(cause(&decide(&daemon, "s"), "r"), "schema");
}
