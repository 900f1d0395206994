//! What a fork costs: four branches of a repository of 10,000 files, made by one request, against `git clone --shared` of it
//! four times. Rounds of both follow each other, and what a round made is removed outside of what is timed.
//!
//! `cargo bench --bench fork`

#![allow(clippy::unwrap_used, reason = "a bench prints, and fails where it stands")]

#[path = "yard.rs"]
mod yard;

use serde_json::json;
use std::path::Path;
use std::process::Command;
use yard::{Line, Peer, Samples, Table, yard};

const FILES: usize = 10_000;
const ROUNDS: usize = 9;
const BRANCHES: usize = 4;

fn main() {
    if yard::served_as_peer() {
        return;
    }
    let files = yard::number("STALED_BENCH_FILES", FILES);
    let yard = yard("fork", files);
    git(&yard.root, &["init", "-q"]);
    git(&yard.root, &["add", "."]);
    git(&yard.root, &["commit", "-qm", "all"]);
    git(&yard.root, &["gc", "-q"]);
    let daemon = Peer::daemon(&yard);
    let mut asking = Line::to(&daemon);
    yard.register(&mut asking, 40);
    let hypotheses: Vec<String> = (0..BRANCHES).map(|n| format!("way {n}")).collect();
    let mut table = Table::new(&["clone --shared", "first forks", "more forks", "discard"]);
    for _ in 0..yard::number("STALED_BENCH_ROUNDS", ROUNDS) {
        let mut round: [Samples; 4] = Default::default();
        let clones = yard.home("clones");
        round[0].time(|| {
            for n in 0..BRANCHES {
                let to = clones.join(n.to_string());
                git(&yard.root, &["clone", "-q", "--shared", ".", to.to_str().unwrap()]);
            }
        });
        std::fs::remove_dir_all(&clones).unwrap();
        // The first registers the parent's tree, the next finds it known.
        for column in [1, 2] {
            round[column]
                .time(|| asking.ask("fork.create", &json!({ "session": "all-0", "hypotheses": hypotheses })));
        }
        round[3].time(|| {
            for fork in ["way-0", "way-1", "way-2", "way-3"]
                .iter()
                .flat_map(|slug| [(*slug).to_owned(), format!("{slug}-2")])
            {
                asking.ask("fork.discard", &json!({ "fork": format!("all-0/{fork}") }));
            }
        });
        table.add(round);
    }
    table.print();
    table.ratio("4 forks, the first of a session / git clone --shared, 4 times", 1, 0, Some(1.5));
    table.ratio("4 more forks / git clone --shared, 4 times", 2, 0, Some(1.5));
}

fn git(dir: &Path, args: &[&str]) {
    let mut git = Command::new("git");
    git.current_dir(dir).envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")]);
    git.args(["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "gc.auto=0"]).args(args);
    let status = git.status().unwrap();
    assert!(status.success(), "git {args:?}");
}
