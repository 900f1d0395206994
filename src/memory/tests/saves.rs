//! Saving: what is new, what is the same, what takes the place of what, and what a refusal leaves alone.

use super::*;
use crate::memory::step::Outcome::{self, Created, Deduped, Updated};

/// What was saved before, and what a save then finds: the outcome, which observation, and its revision.
#[test]
fn a_save_finds_what_it_is_about() {
    let cases: [(&[[&str; 4]], [&str; 4], (Outcome, u64, u32)); 16] = [
        (&[], ["pattern", "t", "c", ""], (Created, 1, 1)),
        (&[], ["pattern", "t", "c", "k"], (Created, 1, 1)),
        // Without a key: user, type and content.
        (&[["pattern", "t", "c", ""]], ["pattern", "t", "c", ""], (Deduped, 1, 1)),
        (&[["pattern", "t", "c", ""]], ["pattern", "other", "c", ""], (Deduped, 1, 1)),
        (&[["pattern", "t", "c", ""]], ["decision", "t", "c", ""], (Created, 2, 1)),
        (&[["pattern", "t", "c", ""]], ["pattern", "t", "C", ""], (Created, 2, 1)),
        (&[["pattern", "t", "c", "k"]], ["pattern", "t", "c", ""], (Deduped, 1, 1)),
        // A type and a content that only together spell the same.
        (&[["pattern", "t", "sc", ""]], ["patterns", "t", "c", ""], (Created, 2, 1)),
        // With one: the key before everything else.
        (&[["pattern", "t", "c", "k"]], ["pattern", "t", "c", "k"], (Deduped, 1, 1)),
        (&[["pattern", "t", "c", "k"]], ["pattern", "t", "d", "k"], (Updated, 1, 2)),
        (&[["pattern", "t", "c", "k"]], ["decision", "t", "d", "k"], (Updated, 1, 2)),
        (&[["pattern", "t", "c", "k"]], ["pattern", "t", "c", "K"], (Created, 2, 1)),
        (
            &[["pattern", "t", "c", "k"], ["pattern", "t", "d", ""]],
            ["pattern", "t", "d", "k"],
            (Updated, 1, 2),
        ),
        // A key for what has none.
        (&[["pattern", "t", "c", ""]], ["pattern", "t", "c", "k"], (Updated, 1, 2)),
        (&[["pattern", "t", "c", ""]], ["decision", "t", "c", "k"], (Created, 2, 1)),
        // What an observation said once, it no longer says.
        (
            &[["pattern", "t", "c", "k"], ["pattern", "t", "d", "k"]],
            ["pattern", "t", "c", ""],
            (Created, 2, 1),
        ),
    ];
    for (before, said, found) in cases {
        let mut desk = Desk::default();
        for one in before {
            desk.save("ana", *one);
        }
        let saved = desk.save("ana", said);
        let about = (saved.outcome, saved.observation.id, saved.observation.marks.revision);
        assert_eq!(about, found, "{said:?} after {before:?}");
        assert_eq!(desk.save("ana", said).outcome, Deduped, "{said:?} again after {before:?}");
    }
}

#[test]
fn of_two_that_say_the_same_the_one_without_a_key_gets_it() {
    let mut desk = Desk::default();
    desk.save("ana", ["pattern", "t", "c", "k"]);
    assert_eq!(
        desk.save("ana", ["pattern", "t", "c", "l"]).outcome,
        Created,
        "another key is another observation"
    );
    desk.save("ana", ["pattern", "t", "d", "k"]);
    desk.save("ana", ["pattern", "t", "d", "l"]);
    desk.save("ana", ["pattern", "t", "e", ""]);
    desk.save("ana", ["pattern", "t", "e", "k"]);
    let attached = desk.save("ana", ["pattern", "t", "e", "m"]);
    assert_eq!(
        (attached.outcome, attached.observation.id),
        (Updated, 3),
        "the first that says it has another key"
    );
}

#[test]
fn a_save_without_a_session_opens_one_and_says_so() {
    let mut desk = Desk { now: 4, ..Desk::default() };
    let saved = desk.save("ana", ["pattern", "t", "c", ""]);
    assert!(saved.opened);
    let [session] = &desk.sessions("ana")[..] else { panic!("one session") };
    assert_eq!((&session.span.id, session.span.started_at.micros), (&saved.session, 4));
    assert!(!desk.save("ana", ["pattern", "t", "d", ""]).opened, "one is active");
    desk.end("ana", "done");
    assert!(desk.save("ana", ["pattern", "t", "e", ""]).opened, "the first was ended");
    desk.now += TIMEOUT;
    let again = desk.save("ana", ["pattern", "t", "e", ""]);
    assert!(again.opened, "the second has expired");
    assert_eq!(again.session, desk.sessions("ana")[1].span.id, "the same again stays where it was");
    assert_eq!(
        desk.sessions("ana")[1].summary.as_deref(),
        Some("Memorias registradas: [pattern] t"),
        "a save closes what has expired"
    );
}

#[test]
fn the_same_again_touches_the_session_and_nothing_else() {
    for key in ["", "k"] {
        let mut desk = Desk::default();
        let first = desk.save("ana", ["pattern", "t", "c", key]);
        desk.end("ana", "done");
        desk.now += HOUR;
        desk.start("ana");
        desk.now += HOUR;
        let again = desk.save("ana", ["pattern", "another title", "c", key]);
        assert_eq!((again.outcome, again.opened), (Deduped, false));
        assert_eq!(again.observation, first.observation);
        assert_eq!(again.session, first.session);
        assert_eq!(desk.observations("ana"), [first.observation]);
        assert_eq!(desk.history("ana", 1), []);
        assert_eq!(desk.sessions("ana")[1].span.last_activity_at.micros, desk.now);
    }
}

#[test]
fn what_is_updated_keeps_its_number_and_its_past() {
    let mut desk = Desk { now: 10, ..Desk::default() };
    let first = desk.save("ana", ["pattern", "one", "1", ""]).observation;
    desk.end("ana", "done");
    desk.now = 20;
    let attached = desk.save("ana", ["pattern", "two", "1", "k"]).observation;
    desk.end("ana", "done");
    desk.now = 30;
    let saved = desk.save("ana", ["decision", "three", "3", "k"]);
    let marks = &saved.observation.marks;
    assert_eq!((marks.revision, marks.session, marks.kind.as_str()), (3, 2, "decision"));
    assert_eq!((marks.created_at.micros, marks.updated_at.micros), (10, 30));
    assert_eq!(saved.session, desk.sessions("ana")[2].span.id);
    assert_eq!(saved.observation.words, said_as(["", "three", "3", "k"]).words);
    assert_eq!(desk.history("ana", 1), [first, attached]);
    assert_eq!(desk.observations("ana"), [saved.observation]);
}

/// What is there, what is said of it, and the revision that it has.
#[test]
fn a_save_that_follows_another_revision_is_refused_and_changes_nothing() {
    let cases: [(&[[&str; 4]], [&str; 4], u32); 6] = [
        (&[], ["pattern", "t", "c", ""], 0),
        (&[["pattern", "t", "c", ""]], ["pattern", "t", "c", ""], 1),
        (&[["pattern", "t", "c", ""]], ["pattern", "t", "d", ""], 0),
        (&[["pattern", "t", "c", ""]], ["pattern", "t", "c", "k"], 1),
        (&[["pattern", "t", "c", "k"], ["pattern", "t", "d", "k"]], ["pattern", "t", "e", "k"], 2),
        (&[["pattern", "t", "c", "k"], ["pattern", "t", "d", "k"]], ["pattern", "t", "d", "k"], 2),
    ];
    for (before, said, revision) in cases {
        // The last time in a session that has expired meanwhile: not even that is closed.
        for passed in [0, 1, TIMEOUT] {
            for told in [0, 1, 2, 3, u32::MAX] {
                let mut desk = Desk::default();
                for one in before {
                    desk.save("ana", *one);
                }
                desk.now += passed;
                let rows = desk.rows();
                match desk.try_save("ana", Save { if_revision: Some(told), ..said_as(said) }) {
                    Ok(saved) => {
                        assert_eq!(told, revision, "{said:?} after {before:?}");
                        assert_eq!(saved.outcome, desk_without_revision(&desk, before, said));
                    }
                    Err(StepError::Conflict { held, told: repeated }) => {
                        assert_ne!(told, revision, "{said:?} after {before:?}");
                        assert_eq!((held, repeated), (revision, told));
                        assert_eq!(desk.rows(), rows, "{said:?} after {before:?}");
                    }
                    Err(StepError::Storage(error)) => panic!("{error}"),
                }
            }
        }
    }
}

fn desk_without_revision(desk: &Desk, before: &[[&str; 4]], said: [&str; 4]) -> Outcome {
    let mut other = Desk { now: desk.now, ..Desk::default() };
    for one in before {
        other.save("ana", *one);
    }
    other.save("ana", said).outcome
}

/// Whether it rested on sources, what a save says of that, and whether it rests on any then.
#[test]
fn what_it_rests_on_changes_only_when_a_save_says_so() {
    for (before, told, after) in [
        (None, None, false),
        (None, Some(true), true),
        (Some(true), None, true),
        (Some(true), Some(true), true),
        (Some(true), Some(false), false),
        (Some(false), None, false),
    ] {
        for (said, outcome) in [(["pattern", "t", "c", "k"], Deduped), (["pattern", "t", "d", "k"], Updated)]
        {
            let mut desk = Desk { now: 1, ..Desk::default() };
            let first = said_as(["pattern", "t", "c", "k"]);
            desk.try_save("ana", Save { has_sources: before, ..first }).unwrap();
            desk.now = 2;
            let saved = desk.try_save("ana", Save { has_sources: told, ..said_as(said) }).unwrap();
            assert_eq!((saved.outcome, saved.observation.marks.has_sources), (outcome, after));
            let moved = if outcome == Deduped { (1, 1) } else { (2, 2) };
            let marks = &desk.observations("ana")[0].marks;
            assert_eq!((marks.revision, marks.updated_at.micros), moved);
            assert_eq!(marks, &saved.observation.marks);
        }
    }
}

#[test]
fn a_summary_is_saved_beside_the_rest_and_leaves_the_session_open() {
    let mut desk = Desk::default();
    let summary = |desk: &mut Desk| {
        desk.try_save("ana", step::summary("Done".to_owned(), "Done all day".to_owned())).unwrap()
    };
    let saved = summary(&mut desk);
    assert_eq!((saved.outcome, saved.opened), (Created, true));
    assert_eq!((saved.observation.marks.kind.as_str(), saved.observation.words.topic_key), ("summary", None));
    desk.now += HOUR;
    assert_eq!(summary(&mut desk).outcome, Deduped);
    let [session] = &desk.sessions("ana")[..] else { panic!("one session") };
    assert_eq!((session.span.ended_at, session.span.last_activity_at.micros), (None, HOUR));
    assert_eq!(desk.save("ana", ["pattern", "Done", "Done all day", ""]).outcome, Created);
}
