//! The adversarial world: a second process changes things in every way we know, and no answer may be a false fresh.
//!
//! Quiet: one operation, then every session is asked; every row must be exactly right. Racing: bursts that overtake
//! the verifiers; whatever is called fresh at the end of a burst must be, and when all is verified every row must be
//! exactly right. Restarts: the daemon is away while things happen; its first answer may hold no false fresh.
//!
//! `STALED_FUZZ_OPS` sets the operations of each mode, `STALED_FUZZ_SEED` repeats a run. Absent on purpose: bind
//! mounts, network filesystems, and mappings that stay open across an answer.

pub(crate) mod head;
pub(crate) mod layout;
pub(crate) mod operations;
mod operator;
pub(crate) mod oracle;
pub(crate) mod process;
mod run;
pub(crate) mod sessions;
pub(crate) mod trees;

use crate::adversary::run::{About, Run};

/// Operations of the quiet and of the racing mode.
const OPERATIONS: u64 = 20_000;

#[test]
fn quiet_world() {
    quiet(Run::begin("quiet_world", OPERATIONS, About::Files));
}

#[test]
fn racing_world() {
    racing(Run::begin("racing_world", OPERATIONS, About::Files));
}

#[test]
fn restarted_world() {
    restarted(Run::begin("restarted_world", OPERATIONS / 20, About::Files));
}

#[test]
fn quiet_trees() {
    quiet(Run::begin("quiet_trees", OPERATIONS / 50, About::Trees));
}

#[test]
fn racing_trees() {
    racing(Run::begin("racing_trees", OPERATIONS / 20, About::Trees));
}

#[test]
fn restarted_trees() {
    restarted(Run::begin("restarted_trees", OPERATIONS / 50, About::Trees));
}

fn quiet(mut run: Run) {
    while run.goes_on() {
        run.perturb();
        run.operate(1);
        run.check_exactly();
    }
    run.end();
}

fn racing(mut run: Run) {
    while run.goes_on() {
        run.perturb();
        let longest = [2, 6, 24][run.chance.usize(..3)];
        let burst = run.chance.usize(1..=longest);
        run.operate(burst);
        run.check_hastily();
        if run.chance.u8(..4) == 0 {
            run.check_exactly();
            run.probe();
        }
    }
    run.end();
}

fn restarted(mut run: Run) {
    while run.goes_on() {
        run.perturb();
        let burst = run.chance.usize(0..=12);
        run.operate(burst);
        let burst = run.chance.usize(0..=12);
        run.restart_around(burst);
        run.check_hastily();
        run.check_exactly();
    }
    run.end();
}
