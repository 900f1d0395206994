//! The memory told whole: an empty storage that is told so holds the same, byte for byte, and tells the same.

use super::*;

fn check(desk: &Desk, what: &str) {
    let again = desk.told_whole();
    assert_eq!(again.rows(), desk.rows(), "{what}");
    assert_eq!(again.changes(), desk.changes(), "{what}");
}

/// What is done, one after the other, and told whole after each.
#[test]
fn what_is_told_whole_is_the_same_byte_for_byte() {
    let steps: [(&str, fn(&mut Desk)); 17] = [
        ("nothing", |_| ()),
        ("a user without observations", |desk| drop(desk.start("zoe"))),
        ("a user who comes first by name", |desk| drop(desk.start("ana"))),
        ("an observation", |desk| drop(desk.save("ana", ["pattern", "t", "1", ""]))),
        ("a key attached", |desk| drop(desk.save("ana", ["pattern", "t", "1", "k"]))),
        ("a revision", |desk| drop(desk.save("ana", ["decision", "u", "2", "k"]))),
        ("the same under another key", |desk| drop(desk.save("ana", ["decision", "u", "2", "l"]))),
        ("sources", |desk| {
            let said = said_as(["decision", "u", "2", "k"]);
            desk.try_save("ana", Save { has_sources: Some(true), ..said }).unwrap();
        }),
        ("another user's", |desk| drop(desk.save("zoe", ["pattern", "t", "1", "k"]))),
        ("a session ended", |desk| drop(desk.end("ana", "by hand"))),
        ("a revision in the next", |desk| drop(desk.save("ana", ["decision", "v", "3", "k"]))),
        ("sources no more", |desk| {
            let said = said_as(["decision", "v", "3", "k"]);
            desk.try_save("ana", Save { has_sources: Some(false), ..said }).unwrap();
        }),
        ("a session expired", |desk| {
            desk.now += TIMEOUT;
            desk.expire("ana").unwrap();
        }),
        ("another closed by a save", |desk| drop(desk.save("zoe", ["pattern", "t", "2", ""]))),
        ("the last one forgotten", |desk| assert!(desk.forget("zoe", 4))),
        ("the first one forgotten", |desk| assert!(desk.forget("ana", 1))),
        ("all forgotten", |desk| assert!(desk.forget("ana", 2) && desk.forget("zoe", 3))),
    ];
    let mut desk = Desk::default();
    for (what, step) in steps {
        step(&mut desk);
        check(&desk, what);
    }
    assert!(desk.observations("ana").is_empty() && desk.observations("zoe").is_empty());
    assert_eq!(desk.told_whole().save("ana", ["pattern", "t", "1", ""]).observation.id, 5);
}

/// More observations than are held at once.
#[test]
fn more_than_a_page_is_told_whole() {
    let mut desk = Desk::default();
    desk.start("ana");
    for no in 0..201_u64 {
        let at = desk.circumstances();
        let said = said_as(["pattern", "t", &no.to_string(), ""]);
        let (change, _) = step::save(desk.book(), "ana", said, &at).unwrap();
        apply(&mut desk.storage, &change).unwrap();
    }
    let mut again = Memory::default();
    for change in desk.changes() {
        apply(&mut again, &change).unwrap();
    }
    assert_eq!(rows(&again), desk.rows());
}
