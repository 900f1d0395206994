//! Whatever happens to the files of the journal: the store opens, keeps what stands before the damage, believes
//! nothing that a lost record may have changed, and says so.
//!
//! The number of trials is `STALED_TRIALS`, 60 unless it says otherwise.

use super::index_damage::{Files, fill, read, told, write_back};
use super::{hurt, open};
use crate::harness::say;
use crate::harness::{Daemon, Place, file, lax, wait_until};
use serde_json::{Value, json};
use staled::client::ClientError;
use staled::config::Config;
use staled::store::journal::{Journal, Piece, peek_id};
use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

const HEADER_LEN: usize = 52;
const RECORD_HEAD_LEN: usize = 28;

type Told = BTreeMap<String, Vec<String>>;

/// One record as it stands undamaged: in which segment, where it ends there, and whose it is.
struct Stand {
    segment: PathBuf,
    end: usize,
    session: String,
}

fn session_of(payload: &[u8]) -> String {
    let record: Value = serde_json::from_slice(payload).unwrap();
    let (kind, said) = record.as_object().unwrap().iter().next().unwrap();
    let said = if kind == "told" { &said["context"] } else { said };
    said["session"].as_str().unwrap().to_owned()
}

/// Writes the journal again in several segments, and tells where every record stands.
fn in_segments(folder: &Path, random: &mut fastrand::Rng) -> Vec<Stand> {
    let id = peek_id(folder).unwrap().unwrap();
    let mut payloads = Vec::new();
    let mut keep = |piece: Piece<'_>| {
        let Piece::Record(_, payload) = piece else { panic!("nothing was compacted") };
        payloads.push(payload.to_vec());
        Ok(())
    };
    drop(Journal::open(folder, id, &mut keep).unwrap());
    fs::remove_dir_all(folder).unwrap();
    let (mut journal, _) = Journal::open(folder, id, &mut |_| Ok(())).unwrap();
    let mut end = HEADER_LEN;
    let mut stands = Vec::new();
    for payload in payloads {
        if random.u8(..12) == 0 && end > HEADER_LEN {
            journal.roll().unwrap();
            end = HEADER_LEN;
        }
        journal.append(&payload).unwrap();
        end += RECORD_HEAD_LEN + payload.len();
        let segment = folder.join(format!("{:020}.seg", journal.first_seq()));
        stands.push(Stand { segment, end, session: session_of(&payload) });
    }
    stands
}

/// Where everything of a compacted journal stands, in a snapshot and the segments behind it.
fn stands_of(folder: &Path) -> Vec<Stand> {
    let (mut stands, mut end) = (Vec::new(), HEADER_LEN);
    let mut file = PathBuf::new();
    let mut take = |piece: Piece<'_>| {
        let payload = match piece {
            Piece::Snapshot { last_seq } => {
                file = folder.join(format!("{last_seq:020}.snap"));
                return Ok(());
            }
            Piece::Kept(payload) => payload,
            Piece::Record(seq, payload) => {
                let segment = folder.join(format!("{seq:020}.seg"));
                if segment.exists() {
                    // Without its last bytes a snapshot is not whole, and nothing behind it counts.
                    let mark = std::mem::replace(&mut file, segment);
                    if mark.extension().is_some_and(|extension| extension == "snap") {
                        let end = end + RECORD_HEAD_LEN;
                        stands.push(Stand { segment: mark, end, session: String::new() });
                    }
                    end = HEADER_LEN;
                }
                payload
            }
        };
        end += RECORD_HEAD_LEN + payload.len();
        stands.push(Stand { segment: file.clone(), end, session: session_of(payload) });
        Ok(())
    };
    let id = peek_id(folder).unwrap().unwrap();
    drop(Journal::open(folder, id, &mut take).unwrap());
    stands
}

/// How many records stand before the first byte that is not what was written.
fn sound(stands: &[Stand], before: &Files) -> usize {
    let differs = |segment: &PathBuf| {
        let (was, is) = (&before[segment], fs::read(segment).unwrap_or_default());
        let differs = was.iter().zip(&is).position(|(was, is)| was != is);
        let behind_its_end =
            is.len() > was.len() && segment.extension().is_some_and(|ending| ending == "snap");
        differs.unwrap_or(was.len().min(is.len()) - usize::from(behind_its_end))
    };
    stands.iter().position(|stand| stand.end > differs(&stand.segment)).unwrap_or(stands.len())
}

fn damage(journal: &Path, random: &mut fastrand::Rng) -> &'static str {
    let mut files = Files::new();
    read(journal, &mut files);
    let (path, mut bytes) =
        files.into_iter().nth(random.usize(..fs::read_dir(journal).unwrap().count())).unwrap();
    let Some(what) = hurt(&mut bytes, random, 1_000) else {
        fs::remove_file(path).unwrap();
        return "a segment deleted";
    };
    fs::write(path, bytes).unwrap();
    what
}

/// Nothing in the segment itself says that more stood in it.
fn cut_between_records(stand: &Stand) -> &'static str {
    let segment = fs::File::options().write(true).open(&stand.segment).unwrap();
    segment.set_len(stand.end as u64).unwrap();
    "a segment cut between two records"
}

fn is_doubted(lines: &[String]) -> bool {
    lines[0].contains("doubted: true")
}

fn without_doubt(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| line.replace("doubted: true", "doubted: false")).collect()
}

/// Judges what a damaged journal left, against what was told and which records were lost.
fn check(truth: &Told, after: &Told, stands: &[Stand], kept: usize, again: &str) {
    for (session, lines) in after {
        let same = truth.get(session).is_some_and(|truth| *truth == without_doubt(lines));
        assert!(same || is_doubted(lines), "{session} is believed and is not what was told: {again}");
        assert!(
            kept == stands.len() || is_doubted(lines),
            "{session} is believed without its journal: {again}"
        );
    }
    let lost = |session: &str| stands[kept..].iter().any(|stand| stand.session == session);
    for (session, lines) in truth.iter().filter(|(session, _)| !lost(session)) {
        let after = after.get(session).map(|lines| without_doubt(lines));
        assert_eq!(after.as_ref(), Some(lines), "{session} stood before the damage: {again}");
    }
}

#[test]
fn a_damaged_journal_opens_and_believes_nothing_that_it_may_have_lost() {
    let place = Place::new();
    let daemon = Daemon::start(&place.home);
    fill(&place, &daemon);
    daemon.stop();
    damage_again_and_again(&place, &|folder, random| in_segments(folder, random));
}

#[test]
fn a_compacted_journal_that_is_damaged_opens_and_believes_nothing_that_it_may_have_lost() {
    let place = Place::new();
    let mut config = Config::default();
    config.journal.compact_bytes = 40_000;
    let daemon = Daemon::start_with(&place.home, config);
    fill(&place, &daemon);
    wait_until("it is compacted", || {
        let status = daemon.ask("status", &json!({}));
        status["compacting"] == false && status["compactions"].as_u64() > Some(0)
    });
    daemon.stop();
    let stands = stands_of(&place.home.join("state/journal"));
    let of_snapshot = stands.iter().position(|stand| stand.session.is_empty()).unwrap();
    assert!(of_snapshot > 2 && stands.len() - of_snapshot > 2, "{of_snapshot} of {} are kept", stands.len());
    damage_again_and_again(&place, &|folder, _| stands_of(folder));
}

fn damage_again_and_again(place: &Place, stands: &dyn Fn(&Path, &mut fastrand::Rng) -> Vec<Stand>) {
    let trials: usize = std::env::var("STALED_TRIALS").map_or(60, |text| text.parse().expect("a number"));
    let state = place.home.join("state");
    let seed = std::env::var("STALED_SEED").map_or_else(|_| fastrand::u64(..), |text| text.parse().unwrap());
    let mut random = fastrand::Rng::with_seed(seed);
    let stands = stands(&state.join("journal"), &mut random);
    let truth = told(&open(&state, 0).index);
    let mut files = Files::new();
    read(&state.join("index"), &mut files);
    read(&state.join("journal"), &mut files);
    files.insert(state.join("journal.tail"), fs::read(state.join("journal.tail")).unwrap());
    let (mut doubts, mut records_lost) = (0, 0);
    for trial in 1..=trials {
        write_back(&state, &files);
        let what = match random.u8(..4) {
            0 => cut_between_records(&stands[random.usize(..stands.len())]),
            _ => damage(&state.join("journal"), &mut random),
        };
        // The index knows how far the journal was. Without it only the note does.
        let what = if random.bool() {
            fs::remove_dir_all(state.join("index")).unwrap();
            format!("{what} and no index")
        } else {
            what.to_owned()
        };
        let again = format!("trial {trial}, {what}; again with STALED_SEED={seed}");
        let kept = sound(&stands, &files);
        let opened = catch_unwind(AssertUnwindSafe(|| {
            let opened = open(&state, trial);
            (told(&opened.index), opened.healed)
        }));
        let (after, healed) = opened.unwrap_or_else(|_| panic!("it did not open: {again}"));
        check(&truth, &after, &stands, kept, &again);
        // Of what is left: where nothing is, nothing is in doubt.
        let says = |what: &str| healed.iter().any(|line| line.contains(what));
        let is_said = says("in doubt") || says("the journal is lost");
        assert!(kept == stands.len() || is_said, "nobody is told, but {healed:?}: {again}");
        let twice = open(&state, trial);
        assert_eq!((told(&twice.index), &twice.healed[..]), (after, &[][..]), "the second time: {again}");
        doubts += usize::from(is_said);
        records_lost += stands.len() - kept;
    }
    say(&format!("{trials} damages, {doubts} journals in doubt, {records_lost} records set aside or gone"));
    assert!(doubts > 0 || trials < 20, "no damage was ever found: seed {seed}");
}

/// A critical result is told, and lost: what is left is not critical, and no answer can know.
#[test]
fn a_session_in_doubt_is_not_resumed_because_what_is_left_of_it_is_not_critical() {
    let place = Place::new();
    ["a", "b"].iter().for_each(|name| place.write(name, "1"));
    let volatile = json!([{ "id": "v", "source": { "kind": "volatile", "what": "clock" } }]);
    let daemon = Daemon::start(&place.home);
    for (session, results) in [("s", json!([lax("a", "1")])), ("v", volatile)] {
        daemon
            .ask("context.register", &json!({ "session": session, "root": place.root, "results": results }));
        assert_eq!(daemon.ask("decide", &json!({ "session": session }))["transition"], "resume");
    }
    daemon.ask("context.record", &json!({ "session": "s", "results": [file("b", "1")] }));
    daemon.stop();
    let segment = last_segment(&place.home);
    let mut bytes = fs::read(&segment).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&segment, bytes).unwrap();
    place.write("b", "2");
    let daemon = Daemon::start(&place.home);
    for session in ["s", "v"] {
        let report = daemon.ask("decide", &json!({ "session": session }));
        assert_eq!(report["transition"], "fresh", "{report}");
    }
    let health = daemon.ask("status", &json!({}));
    assert_eq!(health["health"], "degraded", "{health}");
    assert!(health["problems"].to_string().contains("replace"), "{health}");
}

/// The last segment of the journal.
fn last_segment(home: &Path) -> PathBuf {
    let folder = home.join("state/journal");
    let mut names = super::names(&folder);
    names.retain(|name| name.rsplit_once('.').is_some_and(|(_, ending)| ending == "seg"));
    folder.join(names.pop().unwrap())
}

fn only(report: &Value) -> (Value, Value) {
    let row = &report["staleness_results"][0];
    (report["transition"].clone(), row["cause"].clone())
}

#[test]
fn a_session_in_doubt_is_never_resumed_until_it_starts_over() {
    let place = Place::new();
    place.write("a", "1");
    let daemon = Daemon::start(&place.home);
    let mut context = json!({ "session": "s", "root": place.root, "results": [file("a", "1")] });
    daemon.ask("context.register", &context);
    let ask = |daemon: &Daemon| daemon.ask("decide", &json!({ "session": "s" }));
    assert_eq!(ask(&daemon)["transition"], "resume");
    daemon.ask("fact.refute", &json!({ "session": "s", "source": "a" }));
    daemon.stop();
    // The refutation is lost.
    let segment = last_segment(&place.home);
    let mut bytes = fs::read(&segment).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&segment, bytes).unwrap();
    for _ in 0..2 {
        let daemon = Daemon::start(&place.home);
        let report = ask(&daemon);
        assert_eq!(only(&report), ("fresh".into(), "gap".into()), "{report}");
        let more = json!({ "session": "s", "results": [file("a", "1")] });
        let answer = daemon.ask("context.record", &more);
        assert_eq!(answer["results"][0]["cause"], "gap", "{answer}");
        daemon.stop();
    }
    let log = fs::read_to_string(place.home.join("state/decisions.jsonl")).unwrap();
    assert_eq!(
        log.lines().filter(|line| line.contains("\"healed\"") && line.contains("in doubt")).count(),
        1
    );
    let daemon = Daemon::start(&place.home);
    context["replace"] = true.into();
    daemon.ask("context.register", &context);
    assert_eq!(ask(&daemon)["transition"], "resume");
    daemon.stop();
    assert_eq!(ask(&Daemon::start(&place.home))["transition"], "resume");
}

/// An index that goes on knowing it would take more rows for it, and a journal that does not would have those alone.
#[test]
fn a_session_that_a_snapshot_has_lost_is_lost_to_the_index_too() {
    let place = Place::new();
    ["a", "b"].iter().for_each(|name| place.write(name, "1"));
    let daemon = Daemon::start(&place.home);
    for session in ["s", "t"] {
        let context = json!({ "session": session, "root": place.root, "results": [file("a", "1")] });
        daemon.ask("context.register", &context);
    }
    daemon.stop();
    let folder = place.home.join("state/journal");
    let id = peek_id(&folder).unwrap().unwrap();
    let (mut payloads, mut told_t) = (Vec::new(), 0);
    let mut keep = |piece: Piece<'_>| {
        let Piece::Record(_, payload) = piece else { panic!("nothing was compacted") };
        if session_of(payload) == "s" {
            told_t += RECORD_HEAD_LEN + payload.len();
        }
        payloads.push(payload.to_vec());
        Ok(())
    };
    let (mut journal, _) = Journal::open(&folder, id, &mut keep).unwrap();
    journal.roll().unwrap();
    let closed = journal.closed().unwrap();
    closed.write(payloads).unwrap();
    closed.remove_covered().unwrap();
    let snapshot = folder.join(format!("{:020}.snap", closed.last_seq()));
    drop(journal);
    // The index has applied all that the snapshot stands for, and nothing stands behind it.
    let mut bytes = fs::read(&snapshot).unwrap();
    bytes[HEADER_LEN + told_t + RECORD_HEAD_LEN] ^= 1;
    fs::write(&snapshot, bytes).unwrap();
    let daemon = Daemon::start(&place.home);
    let more = json!({ "session": "t", "results": [file("b", "1")] });
    let asked = daemon.client().ask("context.record", &more);
    assert!(matches!(asked, Err(ClientError::Refused(_))), "{asked:?}");
    let report = daemon.ask("decide", &json!({ "session": "s" }));
    assert_eq!(only(&report), ("fresh".into(), "gap".into()), "what stood before it is kept: {report}");
    daemon.stop();
    fs::remove_dir_all(place.home.join("state/index")).unwrap();
    let daemon = Daemon::start(&place.home);
    let asked = daemon.client().ask("decide", &json!({ "session": "t" }));
    assert!(matches!(asked, Err(ClientError::Refused(_))), "{asked:?}");
}
