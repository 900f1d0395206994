//! The books, against a naive twin that keeps everything that was ever said, and asks all of it each time.

use super::accounts::{Account, Fault, Ms};
use fastrand::Rng;
use std::path::{Path, PathBuf};

#[test]
fn a_name_that_stands_in_for_a_file_counts_as_it_and_one_that_only_contains_it_does_not() {
    let mut account = Account::default();
    account.allow(Path::new("/w/a.rs"), Vec::new(), 10, 0);
    let is = |name: &str| account.accounts_for(&Path::new("/w").join(name), 5);
    for name in [
        ".a.rs.swp",
        ".a.rs.swo",
        ".a.rs.Xy12Za",
        "a.rs~",
        "#a.rs#",
        ".#a.rs",
        "a.rs.tmp",
        "a.rs.tmp.123.456",
        "a.rs.lock",
        ".a.rs.tmp1",
    ] {
        assert!(is(name), "{name}");
    }
    for name in
        ["aa.rs", "a.rs2", "xa.rs~", "a.rs.rs", "ba.rs.tmp", "data.rs", "4913", ".a.rs", "a", "~", ".tmp", ""]
    {
        assert!(!is(name), "{name}");
    }
    assert!(!account.accounts_for(Path::new("/v/a.rs~"), 5));
    assert!(account.accounts_for(Path::new("/w/a.rs/below/it"), 5));
    assert!(!account.accounts_for(Path::new("/w/a.rs/below/it"), 11));
}

#[test]
fn the_same_question_asked_again_takes_no_more_room() {
    let mut account = Account::default();
    let ask = |account: &mut Account| {
        let made = ["/w/a/b", "/w/a"].map(PathBuf::from);
        account.allow(Path::new("/w/a/b/c"), made.to_vec(), 10, 0);
        format!("{account:?}").len()
    };
    let first = ask(&mut account);
    assert_eq!((0..100).map(|_| ask(&mut account)).max(), Some(first));
    assert!(account.accounts_for(Path::new("/w/a"), 5));
    account.expire(11);
    assert!(!account.accounts_for(Path::new("/w/a"), 11));
}

#[test]
fn a_command_that_never_held_its_lock_is_waited_for_a_while() {
    let mut account = Account::default();
    account.begin(1, false, 0);
    account.begin(2, true, 0);
    account.settle(&account.found_free(1_000));
    assert_eq!(account.running(), 1, "only the one that had held it has ended");
    account.settle(&account.found_free(60_001));
    assert_eq!(account.running(), 0);
}

#[test]
fn what_is_found_locked_again_meanwhile_does_not_end_with_what_ended() {
    let mut account = Account::default();
    account.found_locked();
    let ended = account.found_free(0);
    account.settle(&ended);
    account.begin(1, true, 0);
    account.end(1, true);
    account.settle(&ended);
    assert_eq!(account.running(), 1);
}

#[test]
fn what_was_told_once_is_not_told_again_and_no_more_than_is_kept() {
    let mut account = Account::new([("unwatched".to_owned(), PathBuf::from("/w/old"))]);
    assert!(!account.is_news(Fault::Unwatched, Path::new("/w/old")));
    assert!(account.is_news(Fault::UndeclaredWrite, Path::new("/w/old")));
    let told = (0..200)
        .filter(|number| account.is_news(Fault::Unwatched, Path::new(&format!("/w/{number}"))))
        .count();
    assert_eq!(told, 98);
}

#[test]
fn no_number_of_doubts_hides_the_first_break() {
    let mut account = Account::default();
    let told = (0..200)
        .filter(|number| account.is_news(Fault::Unwatched, Path::new(&format!("/w/{number}"))))
        .count();
    assert_eq!(told, 100);
    assert!(account.is_news(Fault::UndeclaredWrite, Path::new("/w/broken")));
    assert!(!account.is_news(Fault::UndeclaredWrite, Path::new("/w/more")), "it is broken, and that is said");
    assert!(!account.is_news(Fault::Unwatched, Path::new("/w/doubt")));
}

#[derive(Default)]
struct Naive {
    grants: Vec<(PathBuf, Vec<PathBuf>, Ms)>,
    execs: Vec<u64>,
    excused: Vec<PathBuf>,
}

impl Naive {
    fn accounts_for(&self, path: &Path, now: Ms) -> bool {
        let granted = |grant: &(PathBuf, Vec<PathBuf>, Ms)| {
            grant.2 >= now && (path.starts_with(&grant.0) || grant.1.iter().any(|made| made == path))
        };
        !self.execs.is_empty()
            || self.excused.iter().any(|below| path.starts_with(below))
            || self.grants.iter().any(granted)
    }
}

#[test]
fn the_books_say_what_a_naive_twin_says() {
    let seed = std::env::var("STALED_SEED").map_or_else(|_| fastrand::u64(..), |text| text.parse().unwrap());
    let mut chance = Rng::with_seed(seed);
    let (mut yes, mut no) = (0, 0);
    for round in 0..300 {
        let (mut account, mut naive, mut now) = (Account::default(), Naive::default(), 0);
        let path = |chance: &mut Rng| {
            let parts = (0..=chance.usize(1..4)).map(|_| ["a", "b", "c"][chance.usize(0..3)]);
            parts.fold(PathBuf::from("/w"), |path, part| path.join(part))
        };
        for step in 0..200_u64 {
            now += chance.u64(0..3);
            let place = path(&mut chance);
            match chance.u32(0..20) {
                0 | 1 => {
                    let until = now + chance.u64(0..20);
                    let made: Vec<PathBuf> =
                        place.ancestors().skip(1).take(chance.usize(0..2)).map(Path::to_owned).collect();
                    // Leave that is given again lasts as long as the longer one does, and so do its folders.
                    let longest = naive
                        .grants
                        .iter()
                        .filter(|grant| grant.0 == place && grant.2 >= now)
                        .map(|grant| grant.2)
                        .max();
                    let longest = longest.unwrap_or_default().max(until);
                    naive
                        .grants
                        .iter_mut()
                        .filter(|grant| grant.0 == place && grant.2 >= now)
                        .for_each(|grant| grant.2 = longest);
                    naive.grants.push((place.clone(), made.clone(), longest));
                    account.expire(now);
                    account.allow(&place, made, until, now);
                }
                2 => {
                    account.begin(step, true, now);
                    naive.execs.push(step);
                }
                3..=6 if !naive.execs.is_empty() => {
                    let exec = naive.execs.remove(chance.usize(0..naive.execs.len()));
                    account.end(exec, false);
                }
                7 => {
                    account.excuse(&place);
                    naive.excused.push(place);
                }
                8..=11 if !naive.excused.is_empty() => {
                    let below = naive.excused.remove(chance.usize(0..naive.excused.len()));
                    account.end_excuse(&below);
                }
                _ => {
                    account.expire(now);
                    let expected = naive.accounts_for(&place, now);
                    if expected {
                        yes += 1;
                    } else {
                        no += 1;
                    }
                    assert_eq!(
                        account.accounts_for(&place, now),
                        expected,
                        "STALED_SEED={seed} round {round} step {step} {}",
                        place.display()
                    );
                }
            }
        }
    }
    assert!(yes > 1_000 && no > 1_000, "{yes} {no}");
}
