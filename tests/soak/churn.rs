//! Who changes the world: the adversary's second process, and git, which checks out branches of a project on which
//! trees, commands and HEAD rest.

use super::agent::Asker;
use super::stage::{Stage, count};
use crate::adversary::head::git;
use crate::adversary::layout::{Place, VERSIONS, content};
use crate::adversary::operations::Operation;
use crate::adversary::process::Operator;
use crate::adversary::trees::{Wide, tree};
use fastrand::Rng;
use std::fs;
use std::path::Path;
use std::sync::PoisonError;
use std::time::Duration;

const BRANCHES: [&str; 3] = ["main", "other", "third"];
const FOLDERS: [&str; 4] = ["src/a", "src/b", "src/c", "docs"];
const FILES_EACH: usize = 10;

fn file(folder: &str, number: usize) -> String {
    format!("{folder}/f{number}")
}

/// Makes the project: three branches, of which one lacks files, one has others, and one has a file for a folder.
pub(super) fn seed(world: &Path) {
    let project = world.join("project");
    fs::create_dir_all(&project).expect("a folder");
    git(&project, &["init", "-q", "--template=", "-b", "main"]).expect("git runs");
    for (turn, branch) in BRANCHES.iter().enumerate() {
        if turn > 0 {
            git(&project, &["checkout", "-q", "-b", branch]).expect("a branch");
        }
        for (index, folder) in FOLDERS.iter().enumerate() {
            fs::create_dir_all(project.join(folder)).expect("a folder");
            for number in (0..FILES_EACH).filter(|number| number % 2 == 0 || turn != 1) {
                let version = (index + number + turn * usize::from(number < 6)) % usize::from(VERSIONS);
                fs::write(project.join(file(folder, number)), content(version as u8)).expect("a file");
            }
        }
        match turn {
            1 => fs::write(project.join("src/only-here"), "other\n").expect("a file"),
            2 => {
                fs::remove_dir_all(project.join("src/c")).expect("ours");
                fs::write(project.join("src/c"), "a file now\n").expect("a file");
            }
            _ => {}
        }
        git(&project, &["add", "-A"]).expect("it is added");
        git(&project, &["commit", "-q", "-m", branch]).expect("it is committed");
    }
    git(&project, &["checkout", "-q", "main"]).expect("main again");
}

/// What sessions rest on in it.
pub(super) fn places() -> Vec<Place> {
    let below = |path: &str| format!("../project/{path}");
    let place = |kind, path: &str| Place { kind, path: below(path), wide: None };
    let mut places = vec![tree("../project", 0), tree("../project", 1), tree("../project/src", 0)];
    places.extend([tree("../project/src/c", 0), tree("../project/docs", 1)]);
    for folder in FOLDERS {
        places.extend([0, 1, 2, 9].map(|number| place("file", &file(folder, number))));
    }
    places.push(place("absent", "src/only-here"));
    places.push(place("absent", "src/a/never"));
    places.push(place("git_head", ""));
    let inputs = vec![tree("../project/src", 0), place("file", "docs/f0")];
    places.push(Place {
        kind: "command",
        path: "make project".to_owned(),
        wide: Some(Wide::Command(inputs)),
    });
    places
}

/// Changes the world until it is over. It asks too, for nobody asks sooner after a change than who made it.
pub(super) fn churn(stage: &Stage, mut operator: Operator, mut asker: Asker, mut chance: Rng) {
    let _ending = stage.ending();
    while !stage.is_over() {
        {
            let _busy = stage.calm.read().unwrap_or_else(PoisonError::into_inner);
            let _moving = stage.still.write().unwrap_or_else(PoisonError::into_inner);
            // Whoever compares lets nothing move, so once it is our turn there is more to do than one thing.
            for _ in 0..chance.u8(1..=6) {
                match chance.u8(..8) {
                    0 => check_out(stage, &mut chance),
                    _ => operate(stage, &mut operator, &mut chance),
                }
                asker.ask_at_once();
            }
        }
        std::thread::sleep(Duration::from_millis(chance.u64(..20)));
    }
}

fn operate(stage: &Stage, operator: &mut Operator, chance: &mut Rng) {
    let longest = [1, 2, 6, 24][chance.usize(..4)];
    let burst = chance.usize(1..=longest);
    let mut choose = |_| match chance.u8(..3) {
        0 => of_project(chance),
        _ => Operation::choose(chance),
    };
    let operations: Vec<Operation> = (0..burst).map(&mut choose).collect();
    operator.send(&operations);
    for operation in operations {
        let acknowledged = operator.acknowledgement();
        count(&stage.counts.operations, 1);
        stage.note(format!("{operation:?} {acknowledged}"));
    }
}

/// What people and their tools do between two checkouts. No file gets a name outside of the project.
fn of_project(chance: &mut Rng) -> Operation {
    let name = |chance: &mut Rng| {
        let folder = FOLDERS[chance.usize(..FOLDERS.len())];
        format!("project/{}", file(folder, chance.usize(..FILES_EACH)))
    };
    let (path, version) = (name(chance), chance.u8(..VERSIONS));
    match chance.u8(..20) {
        0..4 => Operation::Truncate { path, version },
        4..6 => Operation::SaveLocal { path, version },
        6..8 => Operation::Recreate { path, version },
        8 => Operation::Overwrite { path, version },
        9 => Operation::Append { path },
        10 => Operation::Unlink { path },
        11 => Operation::Chmod { path, mode: if chance.bool() { 0o600 } else { 0o755 } },
        12 => Operation::Touch { path },
        13..15 => Operation::Rename { from: path, to: name(chance) },
        15 => Operation::WriteKeepingTime { path, version },
        16 => Operation::FileToFolder { path },
        17 => Operation::ThereAndBack { path },
        18 => Operation::MakeAndRemoveFolders { folder: "project/src/new/deeper".to_owned() },
        _ => Operation::Chain { folder: "project/src/made/b/c".to_owned(), version },
    }
}

/// One move of git, with whatever was changed by hand thrown away or committed.
fn check_out(stage: &Stage, chance: &mut Rng) {
    let branch = BRANCHES[chance.usize(..BRANCHES.len())];
    let arguments: &[&str] = match chance.u8(..12) {
        0 => &["reset", "-q", "--hard"],
        1 => &["clean", "-fdq"],
        2 => &["commit", "-q", "-a", "-m", "more"],
        3 => &["checkout", "-q", "-f", "--detach", branch],
        4 => &["pack-refs", "--all"],
        _ => &["checkout", "-q", "-f", branch],
    };
    let went_well = git(&stage.world.join("project"), arguments).is_some();
    count(&stage.counts.checkouts, u64::from(went_well && arguments[0] == "checkout"));
    stage.note(format!("git {} {}", arguments.join(" "), if went_well { "done" } else { "refused" }));
}
