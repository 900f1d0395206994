//! A repository for HEAD to move in: made once, with git where there is one, and copied from then on.

use std::path::Path;
use std::process::{Command, Stdio};

/// Commits in the repository.
pub(super) const COMMITS: usize = 4;

/// Makes the repository that the world is built with, and notes the ids of its commits in a file beside it.
pub(crate) fn seed(world: &Path) {
    let seed = world.join("seed");
    std::fs::create_dir_all(seed.join("sub")).expect("a folder");
    std::fs::write(seed.join("sub/file"), "in the repository\n").expect("a file");
    let commits = with_git(&seed).unwrap_or_else(|| by_hand(&seed));
    assert_eq!(commits.len(), COMMITS, "{commits:?}");
    std::fs::write(world.join("commits"), commits.join("\n")).expect("a file");
}

/// The ids of the commits.
pub(crate) fn commits(world: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(world.join("commits")).expect("they were noted");
    text.lines().map(str::to_owned).collect()
}

/// Runs git; what it printed, when it went well.
pub(crate) fn git(repository: &Path, arguments: &[&str]) -> Option<String> {
    let run = Command::new("git")
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t",
            "-c",
            "gc.auto=0",
            "-c",
            "core.hooksPath=/dev/null",
        ])
        .args(arguments)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .current_dir(repository)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let run = run.ok().filter(|run| run.status.success())?;
    String::from_utf8(run.stdout).ok()
}

fn with_git(seed: &Path) -> Option<Vec<String>> {
    git(seed, &["init", "-q", "--template=", "-b", "main"])?;
    for number in 0..COMMITS {
        git(seed, &["commit", "-q", "--allow-empty", "-m", &number.to_string()])?;
    }
    git(seed, &["branch", "other", "HEAD~1"])?;
    let listed = git(seed, &["rev-list", "main"])?;
    Some(listed.lines().map(str::to_owned).collect())
}

fn by_hand(seed: &Path) -> Vec<String> {
    let commits: Vec<String> = (1..=COMMITS).map(|number| format!("{number:040x}")).collect();
    let git = seed.join(".git");
    std::fs::create_dir_all(git.join("refs/heads")).expect("a folder");
    std::fs::create_dir_all(git.join("objects")).expect("a folder");
    std::fs::write(git.join("HEAD"), "ref: refs/heads/main\n").expect("a file");
    std::fs::write(git.join("config"), "[core]\n\trepositoryformatversion = 0\n").expect("a file");
    for (branch, commit) in ["main", "other"].iter().zip(&commits) {
        std::fs::write(git.join("refs/heads").join(branch), format!("{commit}\n")).expect("a file");
    }
    commits
}

/// The commit that HEAD stands for, read the plain way: `Err` without a repository, `Ok(None)` on an empty branch.
pub(super) fn read(repository: &Path) -> Result<Option<String>, ()> {
    let git = repository.ancestors().map(|folder| folder.join(".git")).find(|git| git.is_dir()).ok_or(())?;
    let head = std::fs::read_to_string(git.join("HEAD")).map_err(drop)?;
    let Some(name) = head.strip_prefix("ref: ").map(str::trim) else {
        return Ok(Some(head.trim().to_owned()));
    };
    if let Ok(loose) = std::fs::read_to_string(git.join(name)) {
        return Ok(Some(loose.trim().to_owned()));
    }
    let packed = std::fs::read_to_string(git.join("packed-refs")).unwrap_or_default();
    let found = packed.lines().find_map(|line| line.split_once(' ').filter(|(_, named)| *named == name));
    Ok(found.map(|(commit, _)| commit.to_owned()))
}
