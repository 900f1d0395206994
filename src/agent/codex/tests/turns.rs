//! Turns that are taken back, and contexts that were cut.

use super::*;

fn turn() -> Vec<Value> {
    vec![event("task_started"), event("user_message")]
}

fn back(count: u64) -> Vec<Value> {
    vec![line("event_msg", json!({"type": "thread_rolled_back", "num_turns": count}))]
}

#[test]
fn what_was_taken_back_is_not_believed() {
    let first = || [turn(), ran("cat f", "a\n", 0), ran("ls", "f", 0)].concat();
    let second = || {
        let cat = [ran("cat f", "b\n", 0), ran("cat g", "g\n", 0)].concat();
        [turn(), cat, ran("ls", "", 2), ran("git log", "x", 0)].concat()
    };
    let before = [r#"/w/f "a\n" whole"#, "? ls"];
    check("the last", &[first(), second(), back(1)], &before);
    check("the last two", &[first(), second(), turn(), ran("cat h", "h", 0), back(2)], &before);
    check("all", &[first(), second(), back(2)], &[]);
    check("none", &[first(), back(0)], &before);
    check("more than there are", &[first(), back(9)], &[]);
    check("and again", &[first(), second(), back(1), second(), back(1)], &before);
    check(
        "and on",
        &[first(), second(), back(1), turn(), ran("cat g", "G", 0)],
        &[before[0], r#"/w/g "G" whole"#, before[1]],
    );
}

#[test]
fn a_turn_without_a_word_of_the_user_goes_with_the_one_before() {
    let quiet = [vec![event("task_started")], ran("cat g", "g", 0)].concat();
    let spoken = [turn(), vec![event("user_message")], ran("cat f", "a", 0)].concat();
    check("goes", &[spoken.clone(), quiet.clone(), back(1)], &[]);
    check("stays", &[spoken, quiet, turn(), back(1)], &[r#"/w/f "a" whole"#, r#"/w/g "g" whole"#]);
}

#[test]
fn where_no_turns_are_told_each_word_of_the_user_begins_one() {
    let story = |back: Vec<Value>| {
        let words = || vec![event("user_message")];
        [words(), ran("cat f", "a", 0), words(), ran("cat g", "g", 0), back]
    };
    check("one", &story(back(1)), &[r#"/w/f "a" whole"#]);
    check("two", &story(back(2)), &[]);
}

#[test]
fn what_came_before_a_compaction_is_known_by_its_summary() {
    let cut = || vec![line("compacted", json!({"message": "", "replacement_history": []}))];
    let story = [turn(), ran("cat f", "a", 0), ran("ls", "f", 0), cut(), turn(), ran("cat g", "g", 0)];
    check("cut", &story, &[r#"/w/f "a" whole summary"#, r#"/w/g "g" whole"#, "? ls summary"]);
    let again = [turn(), ran("cat f", "a", 0), cut(), turn(), ran("cat f", "a", 0)];
    check("read again", &again, &[r#"/w/f "a" whole"#]);
    check("taken back", &[again.concat(), back(1)], &[r#"/w/f "a" whole summary"#]);
}
