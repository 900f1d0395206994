//! Invented transcripts against an invented disk: what is registered of them, in short.

use super::{Imported, context};
use crate::agent::asked::{Asked, Question};
use crate::agent::rebase::Places;
use crate::agent::transcript::{Content, Entry, Knowledge, Range, Transcript};
use crate::protocol::context::{Belief, Source};
use crate::world::digest::blake3;
use std::path::{Path, PathBuf};

/// There: the sessions' repository was `/u/r`.
const FILES: [(&str, &str); 5] = [
    ("src/a.rs", "one\ntwo\nthree\nfour\n"),
    ("src/crlf.rs", "one\r\ntwo\r\nthree\r\n"),
    ("src/mark.rs", "\u{feff}one\ntwo\n"),
    ("docs/a.md", "a\n"),
    ("empty", ""),
];

struct Scene {
    root: tempfile::TempDir,
    transcript: Transcript,
}

impl Scene {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in FILES {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let transcript = Transcript { first_cwd: Some(PathBuf::from("/u/r")), ..Transcript::default() };
        Self { root, transcript }
    }

    fn with(mut self, entry: Entry) -> Self {
        self.transcript.entries.push(entry);
        self
    }

    fn asked(mut self, question: Question, shown: Option<&str>) -> Self {
        let line = 10 + self.transcript.asked.len() as u64;
        self.transcript.asked.push(Asked {
            question,
            cwd: Some("/u/r".to_owned()),
            captured_at: None,
            line,
            via_summary: false,
            via_sidechain: false,
            failed: shown.is_none(),
            shown: shown.map(|shown| Content(shown.into())),
        });
        self
    }

    fn bash(self, text: &str, shown: &str) -> Self {
        self.asked(Question::Command { text: text.to_owned(), shell: "Bash".to_owned() }, Some(shown))
    }

    fn failing(self, text: &str) -> Self {
        self.asked(Question::Command { text: text.to_owned(), shell: "Bash".to_owned() }, None)
    }

    fn grep(self, path: Option<&str>, glob: Option<&str>, kind: Option<&str>) -> Self {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let question = Question::Grep {
            pattern: "x".to_owned(),
            path: owned(path),
            glob: owned(glob),
            kind: owned(kind),
        };
        self.asked(question, Some(""))
    }

    fn glob(self, pattern: &str) -> Self {
        self.asked(Question::Glob { pattern: pattern.to_owned(), path: None }, Some(""))
    }

    fn import(&self) -> Imported {
        let places = Places {
            root: self.root.path(),
            first_cwd: self.transcript.first_cwd.as_deref(),
            cwds: &[],
            maps: &[],
            home: None,
        };
        context(&self.transcript, &places, None, None)
    }

    fn results(&self) -> Vec<String> {
        self.import().context.results.iter().map(show).collect()
    }
}

/// `id: source`, `=text` when the digest is that of one of some texts, `!` when critical.
fn show(told: &Belief) -> String {
    let id = told.id.as_deref().unwrap();
    let critical = if told.critical == Some(true) { " !" } else { "" };
    let digest = told.digest.as_deref().map_or(String::new(), |digest| {
        let texts = FILES.map(|(_, text)| text).into_iter();
        let more = ["two", "two\nthree", "one\ntwo", "\u{feff}one", "old", "old\n", "three\nfour", "three"];
        let text = texts.chain(more).find(|text| blake3(text.as_bytes()).to_string() == digest);
        format!(" ={}", text.map_or("?".to_owned(), |text| format!("{text:?}")))
    });
    format!("{id}: {}{digest}{critical}", source(&told.source))
}

fn source(told: &Source) -> String {
    let signed = |sign: char, globs: &[String]| -> Vec<String> {
        globs.iter().map(|glob| format!("{sign}{glob}")).collect()
    };
    let lines = told.range.map(|range| format!(":{}+{}", range.start_line, range.lines)).unwrap_or_default();
    let mut said = vec![told.kind.clone()];
    said.extend(told.path.as_ref().map(|path| format!("{}{lines}", path.0.display())));
    said.extend(signed('+', &told.include));
    said.extend(signed('-', &told.exclude));
    said.extend((told.contents == Some(false)).then(|| "names".to_owned()));
    said.extend((told.gitignore == Some(false)).then(|| "all".to_owned()));
    said.extend(told.what.clone());
    said.extend(told.cwd.as_ref().map(|cwd| format!("in {}", cwd.0.display())));
    let inputs = told.inputs.as_ref().map(|inputs| inputs.iter().map(source).collect::<Vec<_>>());
    said.extend(inputs.map(|inputs| format!("({})", inputs.join(", "))));
    said.join(" ")
}

fn entry(path: &str, line: u64, knowledge: Knowledge) -> Entry {
    Entry {
        path: Path::new("/u/r").join(path),
        tool: "Read".to_owned(),
        captured_at: None,
        line,
        knowledge,
        edited: false,
        read_whole: false,
        plan: false,
        ranges: Vec::new(),
        via_summary: false,
        via_sidechain: false,
        contradicted: false,
    }
}

fn full(path: &str, line: u64, text: &str) -> Entry {
    let content = text.as_bytes().to_vec();
    entry(path, line, Knowledge::Full { digest: blake3(&content), bytes: content.len() as u64, content })
}

fn partial(path: &str, line: u64, ranges: &[(u64, u64, &str)]) -> Entry {
    let range = |&(start, lines, text): &(u64, u64, &str)| {
        let digest = blake3(text.as_bytes());
        Range { start, lines, digest, total: 9, content: Content(text.into()) }
    };
    Entry { ranges: ranges.iter().map(range).collect(), ..entry(path, line, Knowledge::Partial) }
}

fn edited(entry: Entry) -> Entry {
    Entry { edited: true, ..entry }
}

#[test]
fn a_file_known_in_part_is_judged_by_its_parts() {
    for (case, scene, want) in [
        ("whole", Scene::new().with(full("empty", 1, "")), vec![r#"empty: file empty ="""#]),
        (
            "two parts",
            Scene::new().with(partial("src/a.rs", 1, &[(2, 1, "two"), (2, 2, "two\nthree")])),
            vec![
                r#"src/a.rs:2-2: file src/a.rs:2+1 ="two""#,
                r#"src/a.rs:2-3: file src/a.rs:2+2 ="two\nthree""#,
            ],
        ),
        (
            "edited",
            Scene::new().with(edited(partial("src/a.rs", 1, &[(2, 1, "two")]))),
            vec![r#"src/a.rs:2-2: file src/a.rs:2+1 ="two" !"#],
        ),
        (
            "what was seen counts, not what is there",
            Scene::new().with(partial("src/a.rs", 1, &[(2, 1, "old")])),
            vec![r#"src/a.rs:2-2: file src/a.rs:2+1 ="old""#],
        ),
        (
            "ends of lines are no text",
            Scene::new().with(partial("src/crlf.rs", 1, &[(1, 2, "one\ntwo")])),
            vec![r#"src/crlf.rs:1-2: file src/crlf.rs:1+2 ="one\ntwo""#],
        ),
        (
            "a mark at the begin is a byte of the file",
            Scene::new().with(partial("src/mark.rs", 1, &[(1, 1, "one")])),
            vec![&*format!("src/mark.rs:1-1: file src/mark.rs:1+1 ={:?}", "\u{feff}one")],
        ),
        (
            "lines that cannot be",
            Scene::new().with(partial("src/a.rs", 1, &[(u64::MAX, u64::MAX, "two")])),
            vec!["src/a.rs: file src/a.rs"],
        ),
    ] {
        assert_eq!(scene.results(), want, "{case}");
    }
}

#[test]
fn searches_are_trees() {
    for (case, scene, want) in [
        ("at the root", Scene::new().grep(None, None, None), "Grep: x @ .: tree ."),
        ("in a folder", Scene::new().grep(Some("src"), None, None), "Grep: x @ src: tree src"),
        ("absolute", Scene::new().grep(Some("/u/r/src"), None, None), "Grep: x @ src: tree src"),
        ("in a file", Scene::new().grep(Some("src/a.rs"), None, None), "Grep: x @ src/a.rs: file src/a.rs"),
        ("in a file that is gone", Scene::new().grep(Some("b.rs"), None, None), "Grep: x @ b.rs: file b.rs"),
        ("glob", Scene::new().grep(None, Some("*.rs"), None), "Grep: x in *.rs @ .: tree . +*.rs"),
        (
            "globs",
            Scene::new().grep(None, Some("*.{ts,tsx}, !*.d.ts"), None),
            "Grep: x in *.{ts,tsx}, !*.d.ts @ .: tree . +*.{ts,tsx} -*.d.ts",
        ),
        (
            "a glob from elsewhere narrows nothing",
            Scene::new().grep(Some("src"), Some("src/*.rs"), None),
            "Grep: x in src/*.rs @ src: tree src",
        ),
        ("type", Scene::new().grep(None, None, Some("rust")), "Grep: x in rust @ .: tree . +*.rs"),
        ("unknown type", Scene::new().grep(None, None, Some("zz")), "Grep: x in zz @ .: tree ."),
        ("a glob that is none", Scene::new().grep(None, Some("a{b"), None), "Grep: x in a{b @ .: tree ."),
        ("names", Scene::new().glob("src/**/*.rs"), "Glob: src/**/*.rs @ .: tree . +src/**/*.rs names"),
        (
            "names from afar",
            Scene::new().glob("/u/r/src/*.rs"),
            "Glob: /u/r/src/*.rs @ src: tree src +/*.rs names all",
        ),
        (
            "list",
            Scene::new().asked(
                Question::List { path: Some("/u/r/src".to_owned()), ignore: vec!["x".to_owned()] },
                Some(""),
            ),
            "LS: @ src: tree src -x names all",
        ),
    ] {
        assert_eq!(scene.results(), [want], "{case}");
    }
}

#[test]
fn commands_rest_on_what_they_read() {
    for (case, scene, want) in [
        ("the tree", Scene::new().bash("make test", ""), "make test: command"),
        ("from a folder", Scene::new().bash("cd src && make test", ""), "cd src && make test: command"),
        ("a file", Scene::new().bash("grep x src/a.rs", ""), "grep x src/a.rs: command (file src/a.rs)"),
        ("a folder", Scene::new().bash("grep -r x src", ""), "grep -r x src: command (tree src all)"),
        ("a file that is gone", Scene::new().bash("grep x b.rs", ""), "grep x b.rs: command (file b.rs)"),
        ("the value of an option", Scene::new().bash("sort -t x", ""), "sort -t x: command"),
        ("the root", Scene::new().bash("grep -r x .", ""), "grep -r x .: command"),
        ("names below", Scene::new().bash("find src", ""), "find src: command (tree src names all)"),
        ("names below the root", Scene::new().bash("find .", ""), "find .: command (tree . names)"),
        ("names", Scene::new().bash("ls src", ""), "ls src: command (tree src -/*/* names all)"),
        ("a long list", Scene::new().bash("ls -l src", ""), "ls -l src: command (tree src -/*/* all)"),
        ("nothing there", Scene::new().failing("ls b"), "ls b: command (absent b)"),
        ("there then", Scene::new().bash("ls b", ""), "ls b: command (tree b -/*/* names all)"),
        ("failed", Scene::new().failing("make test"), "make test: command"),
        ("the network", Scene::new().bash("gh pr view", ""), "gh pr view: volatile network: gh pr view"),
        ("another shell", powershell("dir"), "dir: volatile a command of unknown reach: dir"),
    ] {
        assert_eq!(scene.results(), [want], "{case}");
    }
    let mut scene = Scene::new().bash("make test", "");
    scene.transcript.asked[0].cwd = Some("/u/r/src".to_owned());
    assert_eq!(scene.results(), ["make test @ src: command in src"]);
}

fn powershell(text: &str) -> Scene {
    Scene::new().asked(Question::Command { text: text.to_owned(), shell: "PowerShell".to_owned() }, Some(""))
}

#[test]
fn a_command_that_shows_a_file_is_a_look_at_it() {
    let whole = r#"src/a.rs: file src/a.rs ="one\ntwo\nthree\nfour\n""#;
    for (case, scene, want) in [
        ("all", Scene::new().bash("cat src/a.rs", "one\ntwo\nthree\nfour"), vec![whole]),
        (
            "all of another time",
            Scene::new().bash("cat src/a.rs", "old"),
            vec![r#"src/a.rs: file src/a.rs ="old\n""#],
        ),
        ("nothing", Scene::new().bash("cat empty", ""), vec![r#"empty: file empty ="""#]),
        ("gone", Scene::new().bash("cat b.rs", "old"), vec![r#"b.rs: file b.rs ="old\n""#]),
        (
            "lines",
            Scene::new().bash("sed -n 2,3p src/a.rs", "two\nthree"),
            vec![r#"src/a.rs:2-3: file src/a.rs:2+2 ="two\nthree""#],
        ),
        (
            "lines of another time",
            Scene::new().bash("sed -n 2,3p src/a.rs", "old"),
            vec![r#"src/a.rs:2-2: file src/a.rs:2+1 ="old""#],
        ),
        (
            "more lines than there are",
            Scene::new().bash("sed -n 3,9p src/a.rs", "three\nfour"),
            vec![r#"src/a.rs:3-4: file src/a.rs:3+2 ="three\nfour""#],
        ),
        (
            "the last lines",
            Scene::new().bash("tail -n 2 src/a.rs", "three\nfour"),
            vec![r#"src/a.rs:3-4: file src/a.rs:3+2 ="three\nfour""#],
        ),
        (
            "from a line on",
            Scene::new().bash("tail -n +3 src/a.rs", "three\nfour"),
            vec![r#"src/a.rs:3-4: file src/a.rs:3+2 ="three\nfour""#],
        ),
        (
            "the first lines",
            Scene::new().bash("head -2 src/crlf.rs", "one\ntwo"),
            vec![r#"src/crlf.rs:1-2: file src/crlf.rs:1+2 ="one\ntwo""#],
        ),
        (
            "not shown whole",
            Scene::new().failing("head -2 src/a.rs"),
            vec!["src/a.rs:1-2: file src/a.rs:1+2"],
        ),
        (
            "before an edit",
            Scene::new().with(edited(full("src/a.rs", 99, "old"))).bash("cat src/a.rs", "one"),
            vec![r#"src/a.rs: file src/a.rs ="old" !"#],
        ),
        (
            "after an edit",
            Scene::new()
                .with(edited(full("src/a.rs", 1, "old")))
                .bash("cat src/a.rs", "one\ntwo\nthree\nfour"),
            vec![&*format!("{whole} !")],
        ),
        (
            "after an edit, not shown whole",
            Scene::new().with(edited(full("src/a.rs", 1, "old"))).failing("cat src/a.rs"),
            vec![r#"src/a.rs: file src/a.rs ="old" !"#],
        ),
        (
            "a part after a part",
            Scene::new().with(partial("src/a.rs", 1, &[(2, 1, "two")])).bash("sed -n 3p src/a.rs", "three"),
            vec![r#"src/a.rs:2-2: file src/a.rs:2+1 ="two""#, r#"src/a.rs:3-3: file src/a.rs:3+1 ="three""#],
        ),
    ] {
        assert_eq!(scene.results(), want, "{case}");
    }
}

#[test]
fn what_is_left_out_is_said_with_the_reason() {
    for (case, scene, want) in [
        ("written", Scene::new().bash("rm a", ""), "1 changed something"),
        ("elsewhere", Scene::new().bash("ls /etc/x", ""), "1 read outside the root"),
        ("a look elsewhere", Scene::new().bash("cat /etc/x", ""), "1 read outside the root"),
        ("a search elsewhere", Scene::new().grep(Some("/etc/x"), None, None), "1 read outside the root"),
        (
            "git without one",
            Scene::new().bash("git status", ""),
            "1 asked git, and the root is in no repository",
        ),
        (
            "refs of git without one",
            Scene::new().bash("git branch", ""),
            "1 asked git, and the root is in no repository",
        ),
        (
            "known since",
            Scene::new().with(edited(full("src/a.rs", 99, "old"))).bash("cat src/a.rs", "one"),
            "1 showed a file that the session changed or read again later",
        ),
        ("private", Scene::new().bash("cat '<private>x</private>'", ""), "1 named a private path"),
    ] {
        let imported = scene.import();
        let said = format!("1 search or command was left out: {want}");
        assert!(imported.notes.contains(&said), "{case}: {:?}", imported.notes);
        assert_eq!(imported.counts.left_out, 1, "{case}");
    }
}

#[test]
fn in_a_repository_git_rests_on_head_and_the_index() {
    let scene = Scene::new().bash("git status", "").bash("git log -3", "").bash("git branch", "");
    let git = scene.root.path().join(".git");
    std::fs::create_dir_all(git.join("refs/heads")).unwrap();
    std::fs::create_dir_all(git.join("objects")).unwrap();
    std::fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    std::fs::write(git.join("index"), "DIRC").unwrap();
    assert_eq!(
        scene.results(),
        [
            "git status: command (git_head ., file .git/index, tree .)",
            "git log -3: command (git_head .)",
            "git branch: volatile git refs: git branch",
        ]
    );
}

#[test]
fn a_text_too_long_to_be_kept_is_cut_and_said_to_be() {
    let long = format!("grep {} src/a.rs", "ä".repeat(3_000));
    let imported = Scene::new().bash(&long, "").import();
    let told = &imported.context.results[0];
    let kept = told.source.command.as_deref().unwrap();
    assert!(kept.len() < 2_048 && kept.ends_with(&format!("… ({} bytes)", long.len())), "{kept}");
    assert!(kept.starts_with("grep ää") && told.id.as_deref() == Some(kept));
    assert!(imported.notes.iter().any(|note| note.contains("too long")), "{:?}", imported.notes);
}

#[test]
fn of_very_many_questions_the_latest_are_kept() {
    let mut scene = Scene::new();
    for number in 0..1_003 {
        scene = scene.bash(&format!("make test{number}-check"), "");
    }
    let imported = scene.import();
    let first = imported.context.results[0].id.as_deref();
    assert_eq!((imported.context.results.len(), first), (1_000, Some("make test3-check")));
    assert_eq!(imported.counts.left_out, 3);
}

#[test]
fn what_came_before_the_last_edit_is_said_to() {
    let mut scene = Scene::new().bash("make test", "").bash("make check", "");
    scene.transcript.last_edit = Some(11);
    let notes = scene.import().notes;
    assert!(notes.iter().any(|note| note.contains("2 commands watched")), "{notes:?}");
    assert!(notes.iter().any(|note| note.contains("1 of them came before")), "{notes:?}");
}
