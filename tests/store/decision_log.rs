//! The decision log: its chain, and everything that can be done to it.

use super::SmallDisk;
use staled::store::decision_log::{
    DecisionLog, LogError, Opened, Outcome, Receipt, Verdict, id_at, last_line_where, read, verify,
    verify_files,
};
use std::fs;
use std::path::{Path, PathBuf};

struct Log {
    _folder: tempfile::TempDir,
    path: PathBuf,
    receipts: Vec<Receipt>,
}

/// A log of `count` lines `{"n":1,"text":"…"}`.
fn log_of(count: u64) -> Log {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("decisions.jsonl");
    let (mut log, opened) = DecisionLog::open(&path).unwrap();
    assert_eq!(opened, Opened { last: None, torn_bytes: 0, set_aside: None });
    let receipts = (1..=count).map(|n| log.append(&object(n)).unwrap()).collect();
    Log { _folder: folder, path, receipts }
}

fn object(n: u64) -> String {
    format!(r#"{{"n":{n},"text":"{}"}}"#, "é {\\\"} ".repeat(usize::try_from(n % 7).unwrap()))
}

fn lines(path: &Path) -> Vec<Vec<u8>> {
    fs::read(path).unwrap().split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect()
}

fn check(path: &Path, receipt: Option<&Receipt>) -> Verdict {
    verify(path, receipt).unwrap()
}

fn broken_line(path: &Path, receipt: Option<&Receipt>) -> u64 {
    match check(path, receipt).outcome {
        Outcome::Broken { line, .. } => line,
        outcome => panic!("{outcome:?}"),
    }
}

#[test]
fn every_line_is_the_object_sealed_into_the_chain() {
    let log = log_of(20);
    let mut prev = "0".repeat(64);
    for (n, line) in (1..).zip(lines(&log.path)) {
        let text = std::str::from_utf8(&line).unwrap().strip_suffix('\n').unwrap();
        let (body, rest) = text.rsplit_once(r#","hash":""#).unwrap();
        let hash = staled::world::digest::blake3(body.as_bytes()).to_hex();
        assert_eq!(rest, format!("{hash}\"}}"));
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!((&value["n"], &value["seq"]), (&n.into(), &n.into()));
        assert_eq!(value["prev"], prev.as_str());
        let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["n", "text", "seq", "prev", "hash"]);
        assert!(log.receipts.contains(&Receipt { seq: n, hash: hash.clone() }));
        prev = hash;
    }
    let verdict = check(&log.path, None);
    assert_eq!(verdict.outcome, Outcome::Verified { anchored: false });
    assert_eq!((verdict.lines, &verdict.follows, &verdict.last), (20, &None, &log.receipts.last().cloned()));
    for receipt in &log.receipts {
        assert_eq!(check(&log.path, Some(receipt)).outcome, Outcome::Verified { anchored: true });
    }
}

#[test]
fn an_empty_object_and_odd_texts() {
    let log = log_of(0);
    let (mut open, _) = DecisionLog::open(&log.path).unwrap();
    open.append("{}").unwrap();
    open.append("{ }").unwrap();
    for text in ["", "[]", "{", "}", "{\"a\":\n1}", "{}\n", "{\"a\":1\r}", "null"] {
        assert!(matches!(open.append(text), Err(LogError::NotAnObject)), "{text:?}");
    }
    assert_eq!(check(&log.path, None).lines, 2);
    for line in lines(&log.path) {
        serde_json::from_slice::<serde_json::Value>(&line).unwrap();
    }
}

#[test]
fn opening_again_continues_the_chain() {
    let log = log_of(3);
    for n in 4..=6 {
        let (mut open, opened) = DecisionLog::open(&log.path).unwrap();
        assert_eq!(opened.last.as_ref(), open.last());
        assert_eq!(open.append(&object(n)).unwrap().seq, n);
        assert_eq!(open.bytes(), fs::metadata(&log.path).unwrap().len());
    }
    assert_eq!(check(&log.path, Some(&log.receipts[1])).outcome, Outcome::Verified { anchored: true });
}

#[test]
fn a_torn_last_line_is_found_by_the_check_and_cut_when_opened() {
    let log = log_of(3);
    let whole = fs::read(&log.path).unwrap();
    let last_start = whole.len() - lines(&log.path)[2].len();
    for cut in last_start..whole.len() {
        fs::write(&log.path, &whole[..cut]).unwrap();
        let torn = cut - last_start;
        let outcome = check(&log.path, None).outcome;
        if torn == 0 {
            assert_eq!(outcome, Outcome::Verified { anchored: false });
        } else {
            assert_eq!(outcome, Outcome::TornTail { at_byte: last_start as u64 });
        }
        assert_eq!(broken_line(&log.path, Some(&log.receipts[2])), 3, "its receipt is out in the world");
        let (mut open, opened) = DecisionLog::open(&log.path).unwrap();
        let last = Some(log.receipts[1].clone());
        assert_eq!(opened, Opened { last, torn_bytes: torn as u64, set_aside: None }, "cut at {cut}");
        assert_eq!(open.append(&object(3)).unwrap(), log.receipts[2]);
        assert_eq!(fs::read(&log.path).unwrap(), whole);
    }
}

#[test]
fn a_torn_only_line_leaves_an_empty_log() {
    let log = log_of(0);
    fs::write(&log.path, vec![b'x'; 100_000]).unwrap();
    let (mut open, opened) = DecisionLog::open(&log.path).unwrap();
    assert_eq!(opened, Opened { last: None, torn_bytes: 100_000, set_aside: None });
    assert_eq!(open.append("{}").unwrap().seq, 1);
}

#[test]
fn a_torn_line_of_about_a_block_hides_no_newline() {
    let log = log_of(1);
    let whole = fs::read(&log.path).unwrap();
    for torn in (16_380..16_390).chain(32_760..32_776) {
        fs::write(&log.path, [&whole[..], &vec![b'x'; torn]].concat()).unwrap();
        let (_, opened) = DecisionLog::open(&log.path).unwrap();
        assert_eq!(
            opened,
            Opened { last: log.receipts.last().cloned(), torn_bytes: torn as u64, set_aside: None }
        );
    }
}

#[test]
fn lines_longer_than_a_block_are_found_from_the_end() {
    let log = log_of(0);
    let wide = format!(r#"{{"long":"{}"}}"#, "x".repeat(100_000));
    let (mut open, _) = DecisionLog::open(&log.path).unwrap();
    let receipts = [open.append(&wide).unwrap(), open.append("{}").unwrap(), open.append(&wide).unwrap()];
    let mut torn = fs::read(&log.path).unwrap();
    torn.extend(vec![b'y'; 40_000]);
    fs::write(&log.path, torn).unwrap();
    let (_, opened) = DecisionLog::open(&log.path).unwrap();
    assert_eq!(opened, Opened { last: Some(receipts[2].clone()), torn_bytes: 40_000, set_aside: None });
    let found = last_line_where(&log.path, |line| !line.contains("long")).unwrap().unwrap();
    assert!(found.contains(&receipts[1].hash));
    assert_eq!(read(&log.path, Some(1), 9).unwrap().len(), 2);
}

#[test]
fn a_last_line_that_nobody_wrote_is_not_continued() {
    let log = log_of(3);
    let mut bytes = fs::read(&log.path).unwrap();
    let last_start = bytes.len() - lines(&log.path)[2].len();
    bytes[last_start + 5] ^= 1;
    fs::write(&log.path, &bytes).unwrap();
    let error = DecisionLog::open(&log.path).unwrap_err();
    assert!(matches!(error, LogError::Damaged { at_byte, .. } if at_byte == last_start as u64), "{error}");
    assert_eq!(fs::read(&log.path).unwrap(), bytes, "evidence is left as it is");
}

#[test]
fn every_edit_cut_swap_insert_and_delete_is_found() {
    let log = log_of(8);
    let made = lines(&log.path);
    let check = |case: &str, first_bad: u64, hurt: &dyn Fn(&mut Vec<Vec<u8>>)| {
        let mut hurt_lines = made.clone();
        hurt(&mut hurt_lines);
        fs::write(&log.path, hurt_lines.concat()).unwrap();
        assert_eq!(broken_line(&log.path, None), first_bad, "{case}");
    };
    let edit = |line: &mut Vec<u8>, from: &str, to: &str| {
        let text = String::from_utf8(line.clone()).unwrap();
        assert!(text.contains(from));
        *line = text.replacen(from, to, 1).into_bytes();
    };
    for at in 0..8 {
        let line = at as u64 + 1;
        check("a field edited", line, &|lines| edit(&mut lines[at], r#""n":"#, r#""m":"#));
        check("a seq edited", line, &|lines| edit(&mut lines[at], r#""seq":"#, r#""seq":1"#));
        check("a space added", line, &|lines| edit(&mut lines[at], r#","seq""#, r#", "seq""#));
        check("an empty line put before", line, &|lines| lines.insert(at, b"\n".to_vec()));
        check("a line put before", line, &|lines| lines.insert(at, b"{\"event\":\"gap\"}\n".to_vec()));
        check("a line doubled", line + 1, &|lines| lines.insert(at, lines[at].clone()));
        check("a line blanked", line, &|lines| {
            let text_len = lines[at].len() - 1;
            lines[at][..text_len].fill(b' ');
        });
        check("a hash without its line", line, &|lines| drop(lines[at].drain(..20)));
    }
    for at in 0..7 {
        let line = at as u64 + 1;
        check("a line taken out", line, &|lines| drop(lines.remove(at)));
        check("two lines swapped", line, &|lines| lines.swap(at, at + 1));
        check("a line replaced by the next", line, &|lines| lines[at] = lines[at + 1].clone());
        check("two lines joined", line, &|lines| {
            lines[at].pop();
        });
        check("the start cut off", 1, &|lines| drop(lines.drain(..=at)));
        check("cut in the middle", line, &|lines| drop(lines[at].drain(10..40)));
    }
}

#[test]
fn a_line_sealed_anew_breaks_the_next_one() {
    let log = log_of(5);
    let made = lines(&log.path);
    // Somebody who knows how the hash is made edits line 3 and seals it again, on the same place of the chain.
    let other = log_of(2);
    let (mut open, _) = DecisionLog::open(&other.path).unwrap();
    let forged = open.append(r#"{"n":333}"#).unwrap();
    let forged_line = lines(&other.path).pop().unwrap();
    fs::write(&log.path, [&made[..2], &[forged_line], &made[3..]].concat().concat()).unwrap();
    assert_eq!(broken_line(&log.path, None), 4);
    // The same with a right prev and a wrong seq.
    let gap = log_of(0);
    let jump = Receipt { seq: 7, hash: log.receipts[2].hash.clone() };
    DecisionLog::open(&gap.path).unwrap().0.continue_from(jump, "").unwrap();
    fs::write(&log.path, [&made[..3], &lines(&gap.path)].concat().concat()).unwrap();
    assert_eq!(broken_line(&log.path, None), 4);
    // Without the lines behind it nothing is wrong but the receipts.
    assert_ne!(log.receipts[2], forged);
    fs::copy(&other.path, &log.path).unwrap();
    assert_eq!(check(&log.path, None).outcome, Outcome::Verified { anchored: false });
    assert_eq!(broken_line(&log.path, Some(&log.receipts[2])), 3);
}

#[test]
fn a_hundred_and_twenty_random_flips_are_all_found() {
    let log = log_of(30);
    let whole = fs::read(&log.path).unwrap();
    let seed = std::env::var("SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..120 {
        let mut flipped = whole.clone();
        let (at, bit) = (random.usize(..whole.len()), random.u8(..8));
        flipped[at] ^= 1 << bit;
        fs::write(&log.path, &flipped).unwrap();
        let outcome = check(&log.path, None).outcome;
        // The very last newline flipped is a torn line; anything else is a broken one.
        let found = match outcome {
            Outcome::Broken { .. } => true,
            Outcome::TornTail { .. } => at == whole.len() - 1,
            Outcome::Verified { .. } => false,
        };
        assert!(found, "byte {at} bit {bit}: {outcome:?}; again with SEED={seed}");
    }
}

#[test]
fn a_cut_tail_is_found_with_a_receipt_only() {
    let log = log_of(6);
    let made = lines(&log.path);
    for kept in 0..6 {
        fs::write(&log.path, made[..kept].concat()).unwrap();
        assert_eq!(check(&log.path, None).outcome, Outcome::Verified { anchored: false });
        for (n, receipt) in log.receipts.iter().enumerate() {
            let outcome = check(&log.path, Some(receipt)).outcome;
            if n < kept {
                assert_eq!(outcome, Outcome::Verified { anchored: true });
            } else {
                assert!(matches!(outcome, Outcome::Broken { .. }), "{kept} {n}: {outcome:?}");
            }
        }
    }
}

#[test]
fn a_receipt_that_is_not_in_the_chain_is_broken() {
    let log = log_of(4);
    let forged = Receipt { seq: 2, hash: log.receipts[2].hash.clone() };
    assert_eq!(broken_line(&log.path, Some(&forged)), 2);
    let later = Receipt { seq: 9, hash: log.receipts[2].hash.clone() };
    assert_eq!(broken_line(&log.path, Some(&later)), 5);
    let text = log.receipts[3].to_string();
    assert_eq!(text.parse::<Receipt>().unwrap(), log.receipts[3]);
    text.to_uppercase().parse::<Receipt>().unwrap_err();
    "7".parse::<Receipt>().unwrap_err();
}

#[test]
fn after_a_rename_and_reopen_the_chain_goes_on_in_a_new_file() {
    let log = log_of(3);
    let (mut open, _) = DecisionLog::open(&log.path).unwrap();
    let aside = log.path.with_extension("1");
    fs::rename(&log.path, &aside).unwrap();
    assert_eq!(open.append(&object(4)).unwrap().seq, 4, "before it is told, the old file goes on");
    let link = open.reopen().unwrap().unwrap();
    assert_eq!(link.seq, 5);
    let sixth = open.append(&object(6)).unwrap();
    assert_eq!(open.reopen().unwrap(), None, "nothing to do twice");
    assert_eq!(check(&aside, None).lines, 4);
    let verdict = check(&log.path, Some(&sixth));
    assert_eq!((verdict.lines, &verdict.outcome), (2, &Outcome::Verified { anchored: true }));
    assert_eq!(verdict.follows, check(&aside, None).last);
    let joint = check(&log.path, verdict.follows.as_ref()).outcome;
    assert_eq!(joint, Outcome::Verified { anchored: true }, "the end of the old file is in this chain");
    let (mut open, _) = DecisionLog::open(&log.path).unwrap();
    assert_eq!(open.append("{}").unwrap().seq, 7);
    // Without the line that says what it continues, a file may not start in the middle.
    fs::write(&log.path, lines(&log.path)[1..].concat()).unwrap();
    assert_eq!(broken_line(&log.path, None), 1);
}

#[test]
fn rotation_leaves_no_moment_without_a_file_and_names_the_old_one() {
    let log = log_of(3);
    let (mut open, _) = DecisionLog::open(&log.path).unwrap();
    fs::write(log.path.with_extension("jsonl.new"), "left by a crash").unwrap();
    let aside = log.path.with_file_name("decisions-\"1\".jsonl");
    assert_eq!(open.rotate(&aside, None).unwrap().seq, 4);
    let first: serde_json::Value = serde_json::from_slice(&lines(&log.path)[0]).unwrap();
    assert_eq!(first["event"], "log_continued");
    assert_eq!(first["previous_file"], "decisions-\"1\".jsonl");
    assert_eq!(first["previous_seq"], 3);
    assert_eq!(first["previous_hash"], log.receipts[2].hash.as_str());
    open.append(&object(5)).unwrap();
    assert_eq!(check(&aside, Some(&log.receipts[2])).lines, 3);
    assert_eq!(check(&log.path, None).lines, 2);
    let error = open.rotate(&aside, None).unwrap_err();
    assert!(matches!(error, LogError::Io { .. }), "an older file is not overwritten: {error}");
    assert_eq!(open.append(&object(6)).unwrap().seq, 6);
    assert_eq!(check(&log.path, None).lines, 3);
}

#[test]
fn an_empty_log_can_continue_a_chain_known_from_elsewhere() {
    let old = log_of(3);
    let new = log_of(0);
    let (mut open, _) = DecisionLog::open(&new.path).unwrap();
    assert_eq!(open.continue_from(old.receipts[2].clone(), "").unwrap().unwrap().seq, 4);
    assert_eq!(open.continue_from(old.receipts[0].clone(), "").unwrap(), None, "only an empty one");
    assert_eq!(open.append("{}").unwrap().seq, 5);
    assert_eq!(check(&new.path, None).follows.as_ref(), Some(&old.receipts[2]));
}

/// Anchors know the log by its id: under another one nobody would find those of what was cut from it.
#[test]
fn a_log_that_was_renamed_away_while_nobody_wrote_is_still_the_same() {
    for aside in ["decisions.jsonl.1", "decisions-20261129T100000Z.jsonl"] {
        let log = log_of(3);
        let id = log.receipts[0].hash.clone();
        let set_aside = log.path.with_file_name("decisions-9.jsonl");
        for bad in [None, Some("what nobody wrote\n")] {
            fs::rename(&log.path, log.path.with_file_name(aside)).unwrap();
            if let Some(bad) = bad {
                fs::write(&log.path, bad).unwrap();
            }
            let (mut open, _) = DecisionLog::open_or_set_aside(&log.path, &set_aside).unwrap();
            assert_eq!(open.id(), id, "{aside} {bad:?}");
            open.append(&object(9)).unwrap();
            let first = lines(&log.path).remove(0);
            let first: serde_json::Value = serde_json::from_slice(&first).unwrap();
            assert_eq!(first["log"], id.as_str(), "{aside} {bad:?}");
            assert_eq!(id_at(&log.path).unwrap().as_deref(), Some(id.as_str()));
        }
    }
}

/// It goes into a datagram of one field a line.
#[test]
fn an_id_that_is_no_hash_is_not_believed() {
    let log = log_of(3);
    for claim in ["", "x", "0123\\nSTALED_LOG=1", &"A".repeat(64)] {
        let text = format!(r#"{{"event":"log_continued","log":"{claim}"}}"#);
        fs::write(&log.path, "").unwrap();
        let (mut open, _) = DecisionLog::open(&log.path).unwrap();
        let hash = open.append(&text).unwrap().hash;
        drop(open);
        assert_eq!(id_at(&log.path).unwrap(), Some(hash.clone()), "{claim:?}");
        assert_eq!(DecisionLog::open(&log.path).unwrap().0.id(), hash, "{claim:?}");
    }
}

#[test]
fn a_file_changed_by_somebody_else_is_not_written_to() {
    let log = log_of(3);
    let (mut open, _) = DecisionLog::open(&log.path).unwrap();
    // copytruncate, the way of log rotation that loses lines.
    fs::write(&log.path, "").unwrap();
    assert!(matches!(open.append("{}"), Err(LogError::Foreign { found: 0, .. })));
    assert_eq!(open.reopen().unwrap().unwrap().seq, 4);
    assert_eq!(open.append("{}").unwrap().seq, 5);
    // Another log under our name.
    fs::copy(&log_of(2).path, &log.path).unwrap();
    assert!(matches!(open.append("{}"), Err(LogError::Foreign { .. })));
    assert!(matches!(open.reopen(), Err(LogError::Damaged { .. })));
}

#[test]
fn a_full_disk_costs_the_failed_line_only() {
    let Some(disk) = SmallDisk::mount() else { return };
    let path = disk.path("decisions.jsonl");
    let (mut log, _) = DecisionLog::open(&path).unwrap();
    log.append("{}").unwrap();
    let before = fs::read(&path).unwrap();
    let ballast = disk.fill_but(0);
    let wide = format!(r#"{{"long":"{}"}}"#, "x".repeat(9000));
    let error = log.append(&wide).unwrap_err();
    let LogError::Io { doing: "append to", source, .. } = error else { panic!("{error}") };
    assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
    assert_eq!(fs::read(&path).unwrap(), before, "cut back");
    assert_eq!(log.append("{}").unwrap().seq, 2, "the page has room for a little more");
    fs::remove_file(ballast).unwrap();
    assert_eq!(log.append(&wide).unwrap().seq, 3);
    assert_eq!(check(&path, None).lines, 3);
}

#[test]
fn lines_are_read_by_seq() {
    let log = log_of(300);
    let text: Vec<String> = lines(&log.path)
        .into_iter()
        .map(|line| String::from_utf8(line).unwrap().trim_end().to_owned())
        .collect();
    assert_eq!(read(&log.path, None, 1000).unwrap(), text);
    for after in 0..=301 {
        let from = usize::try_from(after).unwrap().min(300);
        let wanted = &text[from..(from + 3).min(300)];
        assert_eq!(read(&log.path, Some(after), 3).unwrap(), wanted, "after {after}");
    }
    assert!(read(&log.path, Some(5), 0).unwrap().is_empty());
    let mut torn = fs::read(&log.path).unwrap();
    torn.extend(b"{\"half\":");
    fs::write(&log.path, torn).unwrap();
    assert_eq!(read(&log.path, Some(298), 9).unwrap(), &text[298..]);
    let mut seen = 0;
    let found = last_line_where(&log.path, |line| {
        seen += 1;
        line.starts_with(r#"{"n":290,"#)
    });
    assert_eq!((found.unwrap().as_ref(), seen), (Some(&text[289]), 11));
    assert_eq!(last_line_where(&log.path, |_| false).unwrap(), None);
}

#[test]
fn an_answer_of_many_long_lines_is_bounded() {
    let log = log_of(0);
    let (mut open, _) = DecisionLog::open(&log.path).unwrap();
    let wide = format!(r#"{{"long":"{}"}}"#, "x".repeat(9 * 1024 * 1024));
    for _ in 0..3 {
        open.append(&wide).unwrap();
    }
    assert_eq!(read(&log.path, None, 10).unwrap().len(), 1);
    assert_eq!(read(&log.path, Some(2), 10).unwrap().len(), 1);
}

/// Many files: the chain, every page and the search go across them.
fn rotated(log: &Log, times: u64) -> Vec<Receipt> {
    let (mut open, _) = DecisionLog::open(&log.path).unwrap();
    let mut receipts = Vec::new();
    for n in 0..times {
        receipts.push(open.append(&object(n)).unwrap());
        open.rotate(&log.path.with_file_name(format!("decisions-{n:04}.jsonl")), None).unwrap();
        receipts.push(open.append(&object(n)).unwrap());
    }
    receipts
}

fn whole(path: &Path, receipts: &[Receipt]) -> Verdict {
    verify_files(path, &[], receipts).unwrap()
}

#[test]
fn the_chain_and_every_page_go_across_files() {
    let log = log_of(3);
    let receipts = rotated(&log, 6);
    let verdict = whole(&log.path, &receipts);
    assert_eq!((verdict.files, verdict.lines), (7, 21));
    assert_eq!(verdict.outcome, Outcome::Verified { anchored: true });
    let all = read(&log.path, None, 1000).unwrap();
    assert_eq!(all.len(), 21);
    for after in 0..=21 {
        for limit in [1, 4, 100] {
            let wanted: Vec<String> = all.iter().skip(after).take(limit).cloned().collect();
            assert_eq!(read(&log.path, Some(after as u64), limit).unwrap(), wanted, "{limit} after {after}");
        }
    }
    let first = last_line_where(&log.path, |line| line.contains("\"seq\":1,")).unwrap();
    assert_eq!(first.as_ref(), Some(&all[0]));
    // The oldest may go; one in the middle may not.
    fs::remove_file(log.path.with_file_name("decisions-0000.jsonl")).unwrap();
    assert_eq!(whole(&log.path, &[]).outcome, Outcome::Verified { anchored: false });
    fs::remove_file(log.path.with_file_name("decisions-0003.jsonl")).unwrap();
    let Verdict { outcome: Outcome::Broken { line: 1, why, .. }, file, .. } = whole(&log.path, &[]) else {
        panic!("a missing file is not noticed")
    };
    assert!(why.contains("decisions-0003.jsonl") && file.ends_with("decisions-0004.jsonl"), "{why} {file:?}");
    let (open, _) = DecisionLog::open(&log.path).unwrap();
    assert_eq!(open.forget_oldest(1).unwrap().len(), 3);
    assert_eq!(whole(&log.path, &[]).files, 2);
}

#[test]
fn a_rotation_cut_short_at_any_step_is_undone_at_the_next_start() {
    for step in 0..3 {
        let log = log_of(3);
        let aside = log.path.with_file_name("decisions-1.jsonl");
        if step >= 1 {
            fs::write(log.path.with_file_name("decisions.jsonl.new"), "{}\n").unwrap();
        }
        if step >= 2 {
            fs::hard_link(&log.path, &aside).unwrap();
        }
        assert_eq!(whole(&log.path, &log.receipts).lines, 3, "step {step}: one file under two names is one");
        let (mut open, _) =
            DecisionLog::open_or_set_aside(&log.path, &log.path.with_file_name("no")).unwrap();
        assert_eq!(open.append("{}").unwrap().seq, 4);
        open.rotate(&aside, None).unwrap();
        assert_eq!(whole(&log.path, &log.receipts).lines, 5);
    }
}

#[test]
fn what_cannot_be_continued_is_set_aside_and_said() {
    let log = log_of(5);
    let text = fs::read_to_string(&log.path).unwrap().replace("\"n\":5", "\"n\":6");
    fs::write(&log.path, text).unwrap();
    let aside = log.path.with_file_name("decisions-1.jsonl");
    let (mut open, opened) = DecisionLog::open_or_set_aside(&log.path, &aside).unwrap();
    assert!(opened.set_aside.unwrap().contains("damaged"));
    assert_eq!(open.append("{}").unwrap().seq, 7, "no number is given twice");
    let first: serde_json::Value = serde_json::from_slice(&lines(&log.path)[0]).unwrap();
    assert!(first["why"].as_str().unwrap().contains("its bytes are not those that were written"), "{first}");
    let verdict = whole(&log.path, &[]);
    assert!(
        matches!(verdict.outcome, Outcome::Broken { line: 5, .. }) && verdict.file == aside,
        "{verdict:?}"
    );
    // Somebody else cut the file: the log goes on, and the cut is found.
    open.append("{}").unwrap();
    let kept = lines(&log.path)[..2].concat();
    fs::write(&log.path, kept).unwrap();
    let error = open.append("{}").unwrap_err();
    assert!(error.ends_the_file());
    let cut = log.path.with_file_name("decisions-2.jsonl");
    open.rotate(&cut, Some(&error.to_string())).unwrap();
    open.append("{}").unwrap();
    let Outcome::Broken { why, .. } = verify_files(&log.path, &[cut, log.path.clone()], &[]).unwrap().outcome
    else {
        panic!("the cut is not noticed")
    };
    assert!(why.contains("lines 8 to 8 are missing") && why.contains("somebody else changed it"), "{why}");
}
