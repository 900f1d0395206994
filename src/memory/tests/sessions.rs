//! Sessions: when one goes on, when it ends, by whom, and what is said of it then.

use super::*;
use crate::memory::recent;

/// What a start finds that long after the last activity: whether it begins a session.
#[test]
fn a_session_expires_exactly_when_nothing_happened_for_the_timeout() {
    for (passed, is_new) in [
        (0, false),
        (1, false),
        (TIMEOUT - 1, false),
        (TIMEOUT, true),
        (TIMEOUT + 1, true),
        (9 * TIMEOUT, true),
    ] {
        for touch in ["start", "save", "dedup"] {
            let mut desk = Desk { now: 7 * HOUR, ..Desk::default() };
            let (first, _) = desk.start("ana");
            desk.now += HOUR;
            let of = |desk: &mut Desk| desk.save("ana", ["pattern", "t", "c", ""]);
            match touch {
                "start" => drop(desk.start("ana")),
                "save" => drop(of(&mut desk)),
                _ => drop((of(&mut desk), desk.now += HOUR, of(&mut desk))),
            }
            let last = desk.now;
            desk.now += passed;
            let (second, found) = desk.start("ana");
            assert_eq!(found, is_new, "{passed} after {touch}");
            assert_eq!(second.span.id == first.span.id, !is_new, "{passed} after {touch}");
            assert_eq!(second.span.last_activity_at.micros, desk.now);
            let before = &desk.sessions("ana")[0].span;
            let ended_at = is_new.then(|| Moment::from_micros(last + TIMEOUT));
            assert_eq!(
                (before.ended_at, before.is_auto_generated),
                (ended_at, is_new),
                "{passed} after {touch}"
            );
            assert_eq!(before.last_activity_at.micros, if is_new { last } else { desk.now });
        }
    }
}

#[test]
fn a_start_while_one_is_active_goes_on_with_it() {
    let mut desk = Desk { now: 5, ..Desk::default() };
    let (first, is_new) = desk.start("ana");
    assert!(is_new);
    desk.now = 9;
    let (second, is_new) = desk.start("ana");
    assert!(!is_new);
    assert_eq!((second.no, &second.span.id), (first.no, &first.span.id));
    assert_eq!((second.span.started_at.micros, second.span.last_activity_at.micros), (5, 9));
    assert_eq!(desk.sessions("ana"), [second]);
}

#[test]
fn a_clock_that_went_back_closes_nothing_and_moves_nothing_back() {
    for back in [1, HOUR, TIMEOUT, 100 * TIMEOUT, i64::MAX / 2] {
        let mut desk = Desk { now: 200 * TIMEOUT, ..Desk::default() };
        let (first, _) = desk.start("ana");
        desk.now -= back;
        assert_eq!(desk.expire("ana"), None, "{back} back");
        let (second, is_new) = desk.start("ana");
        assert!(!is_new, "{back} back");
        assert_eq!(second, first, "{back} back");
        let saved = desk.save("ana", ["pattern", "t", "c", ""]);
        assert!(!saved.opened);
        assert_eq!(desk.sessions("ana")[0].span.last_activity_at, first.span.last_activity_at, "{back} back");
        let ended = desk.end("ana", "done").expect("it is active");
        assert_eq!(
            ended.span.ended_at,
            Some(first.span.last_activity_at),
            "it ended before it was last used"
        );
    }
}

#[test]
fn users_never_see_each_other() {
    let mut desk = Desk::default();
    let (ana, _) = desk.start("ana");
    let (ben, is_new) = desk.start("ben");
    assert!(is_new);
    assert_ne!(ana.span.id, ben.span.id);
    let hers = desk.save("ana", ["pattern", "t", "same", "key"]);
    let his = desk.save("ben", ["pattern", "t", "same", "key"]);
    assert_eq!((hers.outcome.word(), his.outcome.word()), ("created", "created"));
    assert!(!desk.forget("ben", hers.observation.id), "forgot what is another's");
    assert_eq!(desk.book().observation(desk.user("ben").no, hers.observation.id).unwrap(), None);
    assert_eq!(desk.observations("ana"), [hers.observation]);
    assert_eq!(desk.observations("ben"), [his.observation]);
    desk.now += HOUR;
    assert_eq!(desk.end("ben", "his").unwrap().no, 0);
    assert!(!desk.start("ana").1, "hers was ended with his");
    desk.now += TIMEOUT;
    assert_eq!(desk.expire("ben"), None);
    assert!(desk.expire("ana").is_some());
    assert_eq!(desk.sessions("ben")[0].summary.as_deref(), Some("his"));
}

#[test]
fn what_expired_says_what_was_saved_in_it_in_the_order_of_saving() {
    // What was said in the session, one a second, and what is then said of it.
    let cases: [(&[[&str; 4]], &str); 6] = [
        (&[], "Nenhuma memoria registrada."),
        (&[["pattern", "One", "1", ""]], "Memorias registradas: [pattern] One"),
        (
            &[["pattern", "One", "1", ""], ["decision", "Two", "2", ""], ["profile", "Três, 3", "3", ""]],
            "Memorias registradas: [pattern] One, [decision] Two, [profile] Três, 3",
        ),
        (
            &[["pattern", "One", "1", "k"], ["decision", "Two", "2", ""], ["pattern", "Again", "3", "k"]],
            "Memorias registradas: [decision] Two, [pattern] Again",
        ),
        (
            &[["pattern", "One", "1", ""], ["decision", "Two", "2", ""], ["pattern", "Other title", "1", ""]],
            "Memorias registradas: [pattern] One, [decision] Two",
        ),
        (
            &[["pattern", "One", "1", ""], ["pattern", "One", "2", ""]],
            "Memorias registradas: [pattern] One, [pattern] One",
        ),
    ];
    for (said, summary) in cases {
        let mut desk = Desk::default();
        desk.start("ana");
        for one in said {
            desk.now += SECOND;
            desk.save("ana", *one);
        }
        let last = desk.now;
        desk.now += 3 * TIMEOUT;
        let ended = desk.expire("ana").expect("it has expired");
        assert_eq!(ended.summary.as_deref(), Some(summary), "{said:?}");
        assert_eq!(ended.span.ended_at, Some(Moment::from_micros(last + TIMEOUT)));
        assert!(ended.span.is_auto_generated);
        assert_eq!(desk.sessions("ana"), [ended]);
        assert_eq!(desk.expire("ana"), None, "expired twice");
        assert!(desk.start("ana").1);
    }
}

#[test]
fn what_was_saved_over_in_a_later_session_belongs_to_that() {
    let mut desk = Desk::default();
    desk.save("ana", ["pattern", "Moves", "1", "k"]);
    desk.save("ana", ["pattern", "Stays", "2", ""]);
    desk.end("ana", "by hand");
    desk.save("ana", ["pattern", "Moved", "3", "k"]);
    desk.save("ana", ["pattern", "Stays", "2", ""]);
    desk.now += TIMEOUT;
    let ended = desk.expire("ana").unwrap();
    assert_eq!(ended.summary.as_deref(), Some("Memorias registradas: [pattern] Moved"));
    assert_eq!(desk.sessions("ana")[0].summary.as_deref(), Some("by hand"));
}

#[test]
fn a_made_summary_ends_between_two_observations_when_it_is_long() {
    let mut desk = Desk::default();
    let title = "t".repeat(80);
    for no in 0..800 {
        let said = said_as(["pattern", &title, &no.to_string(), ""]);
        let at = desk.circumstances();
        let (change, _) = step::save(desk.book(), "ana", said, &at).unwrap();
        apply(&mut desk.storage, &change).unwrap();
    }
    desk.now += TIMEOUT;
    let summary = desk.expire("ana").unwrap().summary.unwrap();
    assert!(summary.len() < 65 * 1024, "{}", summary.len());
    let items = summary.strip_prefix("Memorias registradas: ").unwrap().strip_suffix(", …").unwrap();
    assert!(items.split(", ").all(|item| item == format!("[pattern] {title}")), "an item is cut");
}

#[test]
fn only_an_active_session_can_be_ended_and_only_once() {
    let mut desk = Desk { now: 3, ..Desk::default() };
    let untouched = desk.rows();
    assert_eq!(desk.end("ana", "none"), None, "nobody has a session yet");
    assert_eq!(desk.rows(), untouched, "a refused end left something");
    desk.start("ana");
    desk.now += HOUR;
    let ended = desk.end("ana", "by hand").unwrap();
    assert_eq!(ended.summary.as_deref(), Some("by hand"));
    assert_eq!((ended.span.ended_at.unwrap().micros, ended.span.is_auto_generated), (desk.now, false));
    assert_eq!(ended.span.last_activity_at.micros, 3);
    let once = desk.rows();
    assert_eq!(desk.end("ana", "again"), None, "ended twice");
    assert_eq!(desk.end("ben", "none"), None, "ended another's");
    assert_eq!(desk.rows(), once);

    let (second, is_new) = desk.start("ana");
    assert!(is_new && second.no == 1);
    desk.now += TIMEOUT;
    let expired = desk.rows();
    assert_eq!(desk.end("ana", "too late"), None, "it has expired");
    assert_eq!(desk.rows(), expired, "a refused end left something");
    assert!(desk.expire("ana").unwrap().span.is_auto_generated);
}

#[test]
fn who_begins_is_told_of_the_five_that_ended_last() {
    let mut desk = Desk::default();
    let ended = |desk: &Desk| {
        let sessions = recent::ended(desk.book(), &desk.user("ana")).unwrap();
        sessions.into_iter().map(|session| session.no).collect::<Vec<_>>()
    };
    for no in 0..7 {
        desk.now += HOUR;
        desk.start("ana");
        assert!(!ended(&desk).contains(&no), "the active one has not ended");
        if no % 2 == 0 {
            desk.end("ana", "by hand");
        } else {
            desk.now += TIMEOUT;
            desk.expire("ana");
        }
    }
    desk.start("ana");
    assert_eq!(ended(&desk), [6, 5, 4, 3, 2]);
}
