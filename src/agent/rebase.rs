//! From the paths of the machine where a session ran to the paths of this one.
//!
//! Pure logic over names: nothing is looked up on the disk, so a link is not followed and a worktree that is gone is as
//! good as one that is there. The longest matching prefix decides, always on a component border.

use super::spelling::Spelled;
use std::path::{Path, PathBuf};

/// What is known about both machines.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// The repository on this machine.
    pub root: &'a Path,
    /// The first working directory of the session; its toplevel becomes `root`.
    pub first_cwd: Option<&'a Path>,
    /// All its working directories; those in a worktree become `root` too, unless they lie in it.
    pub cwds: &'a [PathBuf],
    /// Prefixes there and here, as the user gave them. On equal length they beat what we infer.
    pub maps: &'a [(PathBuf, PathBuf)],
    /// What `~` means here.
    pub home: Option<&'a Path>,
}

/// Where a path of the transcript is on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rebased {
    /// Below the root, relative to it.
    Inside(PathBuf),
    /// Elsewhere: absolute where a map or `~` said so, else as the transcript spells it.
    Outside(PathBuf),
}

/// Where `path` is on this machine.
#[must_use]
pub fn rebase(path: &Path, places: &Places<'_>) -> Rebased {
    let Some(spelled) = Spelled::parse(path) else {
        return Rebased::Outside(path.into());
    };
    let best = prefixes(places)
        .into_iter()
        .filter_map(|(from, to)| Some((from.len(), to.join(spelled.after(&from)?))))
        .reduce(|best, next| if next.0 > best.0 { next } else { best });
    let Some((_, here)) = best else {
        return Rebased::Outside(path.into());
    };
    match here.strip_prefix(places.root) {
        Ok(relative) => Rebased::Inside(relative.into()),
        Err(_) => Rebased::Outside(here),
    }
}

/// Every prefix there and what it is here; of equally long ones the first counts.
fn prefixes<'a>(places: &Places<'a>) -> Vec<(Spelled, &'a Path)> {
    let root = Spelled::parse(places.root);
    let mut prefixes: Vec<_> =
        places.maps.iter().filter_map(|(from, to)| Some((Spelled::parse(from)?, to.as_path()))).collect();
    prefixes.extend(places.first_cwd.and_then(toplevel).map(|from| (from, places.root)));
    prefixes.extend(root.clone().map(|from| (from, places.root)));
    prefixes.extend(places.home.and_then(|home| Some((Spelled::parse(Path::new("~"))?, home))));
    // A worktree below our own root is still there or was deleted here: either way its path means itself.
    let elsewhere = |from: &Spelled| root.as_ref().is_none_or(|root| from.after(root).is_none());
    let worktrees = places.cwds.iter().filter_map(|cwd| Spelled::parse(cwd)?.worktree()).filter(elsewhere);
    prefixes.extend(worktrees.map(|from| (from, places.root)));
    prefixes
}

/// The toplevel of the tree that `cwd` is in, as far as names tell.
fn toplevel(cwd: &Path) -> Option<Spelled> {
    let cwd = Spelled::parse(cwd)?;
    Some(cwd.worktree().unwrap_or(cwd))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Case {
        first: &'static str,
        cwds: &'static [&'static str],
        maps: &'static [(&'static str, &'static str)],
        paths: &'static [(&'static str, &'static str)],
    }

    /// `+x` is inside, `-x` outside; the root is `/here/repo`, home is `/here`.
    const CASES: &[Case] = &[
        Case {
            first: "/u/repo",
            cwds: &["/u/repo", "/u/repo/sub", "/u/other", "/u/repo/.worktrees/3/cmd"],
            maps: &[],
            paths: &[
                ("/u/repo/a", "+a"),
                ("/u/repo/./b//../a", "+a"),
                ("/u/repo/sub/a", "+sub/a"),
                ("/u/repo/../repo2/a", "-/u/repo/../repo2/a"),
                ("/u/repository/a", "-/u/repository/a"),
                ("/u/other/a", "-/u/other/a"),
                ("/u/repo/.worktrees/3/cmd/a", "+cmd/a"),
                ("/u/repo/.worktrees/4/a", "+.worktrees/4/a"),
                ("/here/repo/a", "+a"),
                ("/here/else", "-/here/else"),
                ("~/repo/a", "+a"),
                ("~/x", "-/here/x"),
                ("~other/x", "-~other/x"),
                ("a", "-a"),
                ("/u/repo\\a", "-/u/repo\\a"),
                ("/u/repo", "+"),
            ],
        },
        Case {
            first: "/u/repo/.worktrees/3/cmd",
            cwds: &[],
            maps: &[],
            paths: &[("/u/repo/.worktrees/3/a", "+a"), ("/u/repo/a", "-/u/repo/a")],
        },
        Case {
            first: "/here/repo",
            cwds: &["/here/repo/.worktrees/3"],
            maps: &[],
            paths: &[("/here/repo/.worktrees/3/a", "+.worktrees/3/a")],
        },
        Case {
            first: "/here/repo/.claude/worktrees/x",
            cwds: &[],
            maps: &[],
            paths: &[("/here/repo/.claude/worktrees/x/a", "+a"), ("/here/repo/a", "+a")],
        },
        Case {
            first: "D:\\repo",
            cwds: &["D:\\repo\\.claude\\worktrees\\x"],
            maps: &[("C:\\Users", "/here/users"), ("d:/repo/lib", "/opt/lib"), ("~", "/root")],
            paths: &[
                ("D:\\repo\\src\\a.go", "+src/a.go"),
                ("d:/repo/src\\a.go", "+src/a.go"),
                ("D:\\repo2\\a", "-D:\\repo2\\a"),
                ("D:\\Repo\\a", "-D:\\Repo\\a"),
                ("c:\\Users\\me\\a", "-/here/users/me/a"),
                ("D:\\repo\\lib\\a", "-/opt/lib/a"),
                ("D:\\repo\\.claude\\worktrees\\x\\a", "+a"),
                ("D:repo\\a", "-D:repo\\a"),
                ("\\\\host\\share\\a", "-\\\\host\\share\\a"),
                ("~/a", "-/root/a"),
            ],
        },
        Case {
            first: "/u/repo",
            cwds: &[],
            maps: &[("/u/repo", "/here/repo/moved"), ("/u", "/here/repo")],
            paths: &[("/u/repo/a", "+moved/a"), ("/u/b", "+b")],
        },
    ];

    #[test]
    fn cases() {
        for case in CASES {
            let cwds: Vec<PathBuf> = case.cwds.iter().map(PathBuf::from).collect();
            let maps: Vec<_> = case.maps.iter().map(|(from, to)| (from.into(), to.into())).collect();
            let places = Places {
                root: Path::new("/here/repo"),
                first_cwd: Some(Path::new(case.first)),
                cwds: &cwds,
                maps: &maps,
                home: Some(Path::new("/here")),
            };
            for (path, want) in case.paths {
                let got = match rebase(Path::new(path), &places) {
                    Rebased::Inside(path) => format!("+{}", path.display()),
                    Rebased::Outside(path) => format!("-{}", path.display()),
                };
                assert_eq!(got, *want, "{path} from {}", case.first);
            }
        }
    }
}
