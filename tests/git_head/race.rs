//! Reading while somebody writes: what only moves is never missed.

use super::{FILES, REFTABLE, git, init};
use crate::harness::say;
use staled::world::probe::git::{Head, head};
use std::fs;
use std::path::Path;

#[test]
fn packing_while_we_read_never_hides_a_branch() {
    for format in [FILES, REFTABLE] {
        let Some((_dir, repo)) = init(&[format]) else { continue };
        git(&repo, &["commit", "--allow-empty", "-qm", "0"]);
        let writer = std::thread::spawn({
            let repo = repo.clone();
            move || {
                for n in 0..60 {
                    git(&repo, &["commit", "--allow-empty", "-qm", &n.to_string()]);
                    git(&repo, &["pack-refs", "--all"]);
                }
            }
        });
        let (mut reads, mut commits) = (0, std::collections::HashSet::new());
        while !writer.is_finished() {
            match head(&repo).head {
                Head::Commit { commit, branch: Some(branch) } if branch == "main" => commits.insert(commit),
                other => panic!("{format}, read {reads}: {other:?}"),
            };
            reads += 1;
        }
        writer.join().unwrap();
        say(&format!("{format}: {reads} reads, {} commits seen", commits.len()));
        assert!(commits.len() > 10, "{format}: {} commits seen in {reads} reads", commits.len());
    }
}

/// Runs `head()` until the writer is done. At every moment HEAD has a commit, and no commit's id is below an earlier.
fn hammer(repo: &Path, mut write: impl FnMut(usize) + Send) {
    std::thread::scope(|scope| {
        let writer = scope.spawn(move || {
            for n in 0..2_000 {
                write(n);
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
        });
        let mut last = None;
        while !writer.is_finished() {
            let Head::Commit { commit, .. } = head(repo).head else {
                panic!("{:?}, after {last:?}", head(repo))
            };
            assert!(last <= Some(commit), "{commit} after {last:?}");
            last = Some(commit);
        }
    });
}

/// A file appears whole, as git's do.
fn put(path: &Path, text: &str) {
    let lock = path.with_extension("lock");
    fs::write(&lock, text).unwrap();
    fs::rename(&lock, path).unwrap();
}

#[test]
fn a_packed_value_never_goes_back() {
    let Some((_dir, repo)) = init(&[FILES]) else { return };
    let gitdir = repo.join(".git");
    put(&gitdir.join("refs/heads/main"), &format!("{:040x}", 1));
    hammer(&repo, |n| {
        let id = format!("{:040x}", n + 1);
        put(&gitdir.join("refs/heads/main"), &id);
        put(&gitdir.join("packed-refs"), &format!("{id} refs/heads/main\n"));
        fs::remove_file(gitdir.join("refs/heads/main")).unwrap();
    });
}

/// What git does between two reads of ours, only much more often.
#[test]
fn switching_and_compacting_while_we_read() {
    let Some((_dir, repo)) = init(&[FILES]) else { return };
    git(&repo, &["commit", "--allow-empty", "-qm", "0"]);
    let (gitdir, id) = (repo.join(".git"), git(&repo, &["rev-parse", "HEAD"]));
    put(&gitdir.join("HEAD"), &id);
    hammer(&repo, |n| {
        put(&gitdir.join(format!("refs/heads/n{n}")), &id);
        put(&gitdir.join("HEAD"), &format!("ref: refs/heads/n{n}"));
        _ = fs::remove_file(gitdir.join(format!("refs/heads/n{}", n.wrapping_sub(1))));
    });
    let Some((_dir, repo)) = init(&[REFTABLE]) else { return };
    git(&repo, &["commit", "--allow-empty", "-qm", "0"]);
    let list = repo.join(".git/reftable/tables.list");
    let mut table = list.with_file_name(fs::read_to_string(&list).unwrap().trim());
    hammer(&repo, |n| {
        let compacted = list.with_file_name(format!("n{n}.ref"));
        fs::copy(&table, &compacted).unwrap();
        put(&list, &format!("n{n}.ref\n"));
        fs::remove_file(std::mem::replace(&mut table, compacted)).unwrap();
    });
}
