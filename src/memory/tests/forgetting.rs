//! Forgetting: it is gone from everything, and nothing else is.

use super::*;
use crate::memory::step::Outcome::{Created, Deduped};

/// Whether these bytes stand anywhere.
fn holds(desk: &Desk, text: &str) -> bool {
    let within = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    desk.rows().iter().any(|(_, key, value)| within(key) || within(value))
}

#[test]
fn what_is_forgotten_stands_nowhere_any_more() {
    let mut desk = Desk::default();
    for no in 0..4 {
        let said = [format!("Title {no}"), format!("Content {no}")];
        desk.save("ana", ["pattern", &said[0], &said[1], "topic"]);
        desk.save("ana", ["pattern", &format!("Other {no}"), &format!("Else {no}"), ""]);
        desk.now += if no == 2 { HOUR } else { TIMEOUT };
        desk.expire("ana");
    }
    let untouched = desk.sessions("ana").iter().map(|session| session.span.clone()).collect::<Vec<_>>();
    for text in ["Title 0", "Title 2", "Title 3", "Content 0", "topic"] {
        assert!(holds(&desk, text), "{text} was never there");
    }
    assert!(desk.forget("ana", 1));
    for text in ["Title", "Content", "topic"] {
        assert!(!holds(&desk, text), "{text}");
    }
    assert_eq!(desk.book().observation(0, 1).unwrap(), None);
    assert_eq!(desk.history("ana", 1), []);
    let left: Vec<_> = desk.observations("ana").into_iter().map(|left| left.words.title).collect();
    assert_eq!(left, ["Other 0", "Other 1", "Other 2", "Other 3"]);
    let sessions = desk.sessions("ana");
    assert_eq!(sessions.iter().map(|session| session.span.clone()).collect::<Vec<_>>(), untouched);
    let summaries: Vec<_> = sessions.iter().map(|session| session.summary.as_deref().unwrap()).collect();
    assert_eq!(
        summaries,
        [
            "Memorias registradas: [pattern] Other 0",
            "Memorias registradas: [pattern] Other 1",
            "Memorias registradas: [pattern] Other 2, [pattern] Other 3",
        ]
    );
    assert!(!desk.forget("ana", 1), "forgotten twice");
}

/// Titles of what was saved in a session, and in which order they are forgotten.
#[test]
fn a_title_within_another_takes_nothing_of_it_and_leaves_nothing_of_it() {
    for titles in [
        ["Auth", "Auth token", "Auth token ring"],
        ["a", "b, [pattern] a", "a, [pattern] b"],
        ["[pattern] a", "a", "[REDACTED]"],
        ["same", "same", "same"],
        ["", " ", ","],
    ] {
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut desk = Desk::default();
            for (no, title) in titles.iter().enumerate() {
                desk.now += 1;
                desk.save("ana", ["pattern", title, &no.to_string(), ""]);
            }
            desk.now += TIMEOUT;
            desk.expire("ana");
            let mut left = titles.iter().map(|title| Some(format!("[pattern] {title}"))).collect::<Vec<_>>();
            for forgotten in order {
                assert!(desk.forget("ana", forgotten as u64 + 1));
                left[forgotten] = None;
                let items: Vec<String> = left.iter().flatten().cloned().collect();
                let summary = match &items[..] {
                    [] => "Nenhuma memoria registrada.".to_owned(),
                    items => format!("Memorias registradas: {}", items.join(", ")),
                };
                assert_eq!(desk.sessions("ana")[0].summary, Some(summary), "{titles:?}, {order:?}");
            }
        }
    }
}

/// A summary that a person wrote is theirs, and says what it says.
#[test]
fn only_made_summaries_are_made_again() {
    let mut desk = Desk::default();
    desk.save("ana", ["pattern", "t", "c", ""]);
    desk.end("ana", "Memorias registradas: [pattern] t");
    desk.save("ben", ["pattern", "t", "c", ""]);
    desk.now += TIMEOUT;
    desk.expire("ben");
    desk.forget("ana", 1);
    for name in ["ana", "ben"] {
        assert_eq!(
            desk.sessions(name)[0].summary.as_deref(),
            Some("Memorias registradas: [pattern] t"),
            "{name}"
        );
    }
}

#[test]
fn a_session_that_goes_on_is_not_touched_and_does_not_tell_of_it_later() {
    let mut desk = Desk::default();
    desk.save("ana", ["pattern", "Gone", "1", ""]);
    desk.save("ana", ["pattern", "Left", "2", ""]);
    desk.now += HOUR;
    desk.forget("ana", 1);
    assert_eq!(desk.sessions("ana")[0].span.last_activity_at.micros, 0);
    desk.now = TIMEOUT;
    assert_eq!(desk.expire("ana").unwrap().summary.as_deref(), Some("Memorias registradas: [pattern] Left"));
}

#[test]
fn a_number_is_never_anothers() {
    for whole in [false, true] {
        let mut desk = Desk::default();
        let mut last = 0;
        for round in 0..6 {
            for user in ["ana", "ben"] {
                let id = desk.save(user, ["pattern", "t", "c", "k"]).observation.id;
                assert!(id > last, "{id} after {last}, in round {round}");
                last = id;
                assert!(desk.forget(user, id));
                if whole {
                    desk = desk.told_whole();
                }
            }
        }
        assert_eq!(last, 12);
    }
}

#[test]
fn of_two_that_say_the_same_the_other_is_still_found() {
    for (forgotten, left) in [(1, 2), (2, 1)] {
        let mut desk = Desk::default();
        desk.save("ana", ["pattern", "t", "c", "k"]);
        desk.save("ana", ["pattern", "t", "c", "l"]);
        desk.forget("ana", forgotten);
        assert_eq!(desk.book().by_wording(0, "pattern", "c").unwrap(), [left]);
        let again = desk.save("ana", ["pattern", "t", "c", ""]);
        assert_eq!((again.outcome, again.observation.id), (Deduped, left));
        let keys = ["k", "l"].map(|key| desk.book().by_topic(0, key).unwrap());
        assert_eq!(keys, [(left == 1).then_some(1), (left == 2).then_some(2)]);
    }
}

#[test]
fn what_is_said_again_is_new() {
    for key in ["", "k"] {
        let mut desk = Desk { now: 1, ..Desk::default() };
        desk.save("ana", ["pattern", "t", "b", key]);
        let first = desk.save("ana", ["pattern", "t", "c", key]).observation;
        desk.forget("ana", first.id);
        desk.now = 2;
        let again = desk.save("ana", ["pattern", "t", "c", key]);
        assert_eq!((again.outcome, again.observation.marks.revision), (Created, 1));
        assert_eq!(again.observation.marks.created_at.micros, 2);
        assert!(again.observation.id > first.id);
        assert_eq!(desk.history("ana", again.observation.id), []);
    }
}

#[test]
fn nobody_forgets_what_nobody_has() {
    let mut desk = Desk::default();
    desk.save("ana", ["pattern", "t", "c", ""]);
    let rows = desk.rows();
    for (user, id) in [("ana", 0), ("ana", 2), ("ana", u64::MAX), ("ben", 1), ("", 1)] {
        assert!(!desk.forget(user, id), "{user} {id}");
    }
    let stray = Change { forgotten: Some(1), ..Change::of("ben") };
    desk.apply(&stray);
    assert_eq!(desk.rows(), rows, "a stray record made a user");
}
