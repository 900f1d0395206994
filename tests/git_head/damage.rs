//! Damaged, odd and hostile repositories: a fault in words, never a panic, never a wait.

use super::{FILES, FORMATS, REFTABLE, git, init, said};
use crate::harness::say;
use staled::world::probe::git::{Head, head};
use std::fs;
use std::process::Command;

/// A repository written by hand, and what HEAD then is. `{1}` and `{2}` are ids.
type Case = (&'static str, &'static [(&'static str, &'static str)], &'static str);

const MAIN: (&str, &str) = ("HEAD", "ref: refs/heads/main\n");
const REFTABLES: (&str, &str) = ("config", "[extensions]\nrefstorage=reftable");
const UNSORTED: &str =
    "# pack-refs with: peeled\n{2} refs/tags/v\n^{2}\n# so\n{1} refs/heads/main\n{2} refs/heads/maim\n";
const OTHER: &str = "{2} refs/heads/main\n";
const C1: (&str, &str) = ("HEAD", "ref: refs/heads/c1");
const C2: (&str, &str) = ("refs/heads/c1", "ref: refs/heads/c2");
const C3: (&str, &str) = ("refs/heads/c2", "ref: refs/heads/c3");
const C4: (&str, &str) = ("refs/heads/c3", "ref: refs/heads/c4");
const C5: (&str, &str) = ("refs/heads/c4", "ref: refs/heads/c5");

const CASES: &[Case] = &[
    ("loose", &[MAIN, ("refs/heads/main", "{1}")], "{1} on Some(\"main\")"),
    ("blanks behind an id", &[MAIN, ("refs/heads/main", "{1} \t\r\n")], "{1} on Some(\"main\")"),
    ("packed, unsorted", &[MAIN, ("packed-refs", UNSORTED)], "{1} on Some(\"main\")"),
    ("a folder", &[MAIN, ("packed-refs", UNSORTED), ("refs/heads/main/x", "{2}")], "{1} on Some(\"main\")"),
    ("loose wins", &[MAIN, ("packed-refs", OTHER), ("refs/heads/main", "{1}")], "{1} on Some(\"main\")"),
    ("no blank behind ref:", &[("HEAD", "ref:refs/heads/x")], "unborn x"),
    ("detached", &[("HEAD", "{1}")], "{1} on None"),
    ("a chain of five", &[C1, C2, C3, C4, ("refs/heads/c4", "{1}")], "{1} on Some(\"c4\")"),
    ("a chain of six", &[C1, C2, C3, C4, C5, ("refs/heads/c5", "{1}")], "unreadable HEAD: a chain"),
    ("an empty ref", &[MAIN, ("refs/heads/main", "")], "unreadable refs/heads/main: neither"),
    ("an id too long", &[MAIN, ("refs/heads/main", "{1}1")], "unreadable refs/heads/main: neither"),
    ("an id of zeros", &[MAIN, ("refs/heads/main", "{0}")], "unreadable refs/heads/main: neither"),
    ("torn packed-refs", &[MAIN, ("packed-refs", "{1} refs/heads/ma")], "unreadable packed-refs: ends"),
    ("a way out", &[("HEAD", "ref: refs/../../x")], "unreadable HEAD: leads to"),
    ("the reftable stub", &[("HEAD", "ref: refs/heads/.invalid")], "unreadable HEAD: leads to"),
    ("not a HEAD", &[("HEAD", "hello")], "no repository"),
    ("an empty commondir", &[MAIN, ("commondir", "\n")], "unreadable commondir: is empty"),
    (
        "no tables",
        &[MAIN, ("config", "[extensions]\nrefStorage = \"reftable\" ; so")],
        "unreadable HEAD: the ref store",
    ),
    ("an unknown store", &[MAIN, ("config", "[Extensions] refstorage = x")], "unreadable config: extensions"),
    ("a subsection", &[MAIN, ("config", "[extensions \"x\"]\nrefstorage = x")], "unborn main"),
    ("a tail", &[MAIN, ("config", "[a]\nb = \\\n[extensions]\nrefstorage = x")], "unborn main"),
    (
        "an unknown version",
        &[MAIN, ("config", "[core]\nrepositoryformatversion = 2")],
        "unreadable config: core",
    ),
    (
        "a table outside",
        &[MAIN, REFTABLES, ("reftable/tables.list", "../x\n")],
        "unreadable reftable/tables.list",
    ),
    ("a table gone", &[MAIN, REFTABLES, ("reftable/tables.list", "x\n")], "unreadable reftable/x: is in"),
];

#[test]
fn by_hand() {
    let filled = |text: &str| {
        ["0", "1", "2"]
            .iter()
            .fold(text.to_owned(), |text, n| text.replace(&format!("{{{n}}}"), &n.repeat(40)))
    };
    for (name, files, expected) in CASES {
        let dir = tempfile::tempdir().unwrap();
        let gitdir = dir.path().canonicalize().unwrap().join(".git");
        for folder in ["objects", "refs/heads", "reftable"] {
            fs::create_dir_all(gitdir.join(folder)).unwrap();
        }
        for (path, text) in *files {
            fs::create_dir_all(gitdir.join(path).parent().unwrap()).unwrap();
            fs::write(gitdir.join(path), filled(text)).unwrap();
        }
        let said = said(&head(dir.path()).head).replace(&format!("{}/", gitdir.display()), "");
        assert!(said.starts_with(&filled(expected)), "{name}: {said}, expected {expected}");
    }
}

#[test]
fn damage_never_panics() {
    let seed =
        std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
    println!("run again with SEED={seed}");
    for format in FORMATS {
        let Some((_dir, repo)) = init(format) else { continue };
        let mut random = fastrand::Rng::with_seed(seed);
        git(&repo, &["config", "reftable.blockSize", "512"]);
        git(&repo, &["commit", "--allow-empty", "-qm", "1"]);
        git(&repo, &["tag", "-a", "-m", "t", "v1"]);
        (0..40).for_each(|n| _ = git(&repo, &["branch", &format!("b{n}")]));
        git(&repo, &["checkout", "-q", "b33"]);
        git(&repo, &["pack-refs", "--all"]);
        let files = head(&repo).files.into_iter().filter(|file| file.is_file()).collect::<Vec<_>>();
        let whole = said(&head(&repo).head);
        let dense = files.iter().max_by_key(|file| file.metadata().unwrap().len()).unwrap().clone();
        let (mut told, mut guessed) = (0, 0);
        for _ in 0..2_000 {
            let file = if random.bool() { &dense } else { random.choice(&files).unwrap() };
            let bytes = fs::read(file).unwrap();
            fs::write(file, damaged(&mut random, bytes.clone())).unwrap();
            match head(&repo).head {
                Head::Commit { .. } if said(&head(&repo).head) != whole => guessed += 1,
                Head::Commit { .. } => {}
                _ => told += 1,
            }
            fs::write(file, bytes).unwrap();
        }
        say(&format!(
            "{format:?}: {} files; {told} of 2,000 damages told, {guessed} gave another id",
            files.len()
        ));
        assert_eq!(said(&head(&repo).head), whole, "SEED={seed}");
        assert!(told > 200, "SEED={seed}: {told}");
    }
}

fn damaged(random: &mut fastrand::Rng, mut bytes: Vec<u8>) -> Vec<u8> {
    for _ in 0..random.usize(1..4) {
        if bytes.is_empty() {
            break;
        }
        let at = random.usize(..bytes.len());
        match random.u8(..8) {
            0 => bytes.truncate(at),
            1 => bytes[at..].fill(random.choice([0, 255]).unwrap()),
            2 => bytes.insert(at, random.u8(..)),
            _ => bytes[at] ^= 1 << random.u8(..8),
        }
    }
    bytes
}

#[test]
fn a_table_whose_ends_are_damaged_is_told() {
    for format in [&[REFTABLE] as &[&str], &[REFTABLE, "--object-format=sha256"]] {
        let Some((_dir, repo)) = init(format) else { continue };
        git(&repo, &["commit", "--allow-empty", "-qm", "1"]);
        let table = head(&repo)
            .files
            .into_iter()
            .find(|file| file.extension().is_some_and(|end| end == "ref"))
            .unwrap();
        let bytes = fs::read(&table).unwrap();
        let header_len = if format.len() == 1 { 24 } else { 28 };
        let footer = bytes.len() - header_len - 44;
        for at in (0..header_len).chain(footer..bytes.len()) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 16;
            fs::write(&table, damaged).unwrap();
            assert!(matches!(head(&repo).head, Head::Unreadable { .. }), "{format:?}: byte {at}");
        }
    }
}

#[test]
fn pipes_do_not_hold_us() {
    for (pipe, expected) in [
        ("HEAD", "no repository"),
        ("packed-refs", "unreadable"),
        ("refs/heads/main", "unreadable"),
        ("config", "unreadable"),
        ("commondir", "unreadable"),
    ] {
        let Some((_dir, repo)) = init(&[FILES]) else { return };
        let path = repo.join(".git").join(pipe);
        _ = fs::remove_file(&path);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let writer = std::thread::spawn(move || fs::OpenOptions::new().write(true).open(path));
        std::thread::sleep(std::time::Duration::from_millis(20));
        let said = said(&head(&repo).head);
        assert!(said.starts_with(expected), "{pipe}: {said}");
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(!writer.is_finished(), "{pipe}: the writer saw a reader");
        drop(fs::File::open(repo.join(".git").join(pipe)).unwrap());
        drop(writer.join());
    }
}
