//! Random states of a repository: the fork has the same status and the same bytes.

use super::*;
use crate::harness::say;
use std::os::unix::fs::{PermissionsExt, symlink};

const STATES: u64 = 200;

#[test]
fn a_fork_of_any_state_is_the_same_world() {
    let seed = std::env::var("STALED_SEED").ok().and_then(|seed| seed.parse().ok());
    let began = std::time::Instant::now();
    let rig = Rig::new();
    let first = seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
    for seed in first..first + if seed.is_some() { 1 } else { STATES } {
        // A slow machine tries fewer.
        if began.elapsed().as_secs() >= 15 {
            say(&format!("{} random states, then the time was up", seed - first));
            break;
        }
        say(&format!("again: STALED_SEED={seed} cargo test --test staled -- fork_hands::random"));
        let mut random = fastrand::Rng::with_seed(seed);
        reset(&rig);
        (0..random.usize(1..20)).for_each(|_| step(&rig, &mut random));
        let (place, made) = rig.check("a");
        assert!(made.left_out.is_empty(), "{:?}", made.left_out);
        rig.hands.remove(&place.home).unwrap();
    }
}

fn reset(rig: &Rig) {
    git(&rig.parent, &["reset", "-q", "--hard"]);
    git(&rig.parent, &["clean", "-qfdx"]);
    for number in 0..8 {
        rig.write(&format!("f{number}"), &format!("{number}\n"))
            .write(&format!("d{}/f{number}", number % 3), "x\n");
    }
    git(&rig.parent, &["add", "-A"]);
    if run(&rig.parent, &["diff", "--cached", "--quiet"]).status.code() == Some(1) {
        git(&rig.parent, &["commit", "-qm", "more"]);
    }
}

fn step(rig: &Rig, random: &mut fastrand::Rng) {
    let number = random.usize(..12);
    let name = match random.usize(..4) {
        0 => format!("d{}/f{number}", number % 3),
        1 => format!("new/{number}"),
        2 => format!("f{number}.ignored"),
        _ => format!("f{number}"),
    };
    let path = rig.parent.join(&name);
    let there = fs::symlink_metadata(&path);
    match random.usize(..9) {
        0 | 1 => {
            drop(fs::remove_file(&path));
            rig.write(&name, &format!("{}\n", random.u8(..)));
        }
        2 => drop(fs::remove_file(&path)),
        3 if there.is_ok_and(|found| found.is_file()) => {
            let mode = if random.bool() { 0o755 } else { 0o644 };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        4 => {
            drop(fs::remove_file(&path));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(["f1", "nowhere", "/etc", "../p"][random.usize(..4)], &path).unwrap();
        }
        // What cannot be done in this state is not done.
        5 => drop(run(&rig.parent, &["add", "--", &name])),
        6 => drop(run(&rig.parent, &["add", "-N", "--", &name])),
        7 => drop(run(&rig.parent, &["rm", "-q", "--cached", "--", &name])),
        _ => drop(run(&rig.parent, &["mv", "-k", "--", &name, &format!("moved{number}")])),
    }
}
