//! Where a tree is rooted, and which rules count in it from above.

use super::listing::read_rules;
use super::route::{End, Route, resolve, resolve_all};
use crate::index::Looked;
use crate::index::found::Found;
use crate::index::freshness::Doubt;
use crate::index::tree::Root;
use crate::session::source::Filter;
use std::path::{Path, PathBuf};

/// Everything that decides where a tree is rooted, and where that is.
pub(super) fn survey(path: &Path, filter: &Filter) -> (Vec<Route>, Looked) {
    let route = resolve(path);
    let folder = match &route.end {
        End::Something(folder) => folder.clone(),
        End::Nothing => return (vec![route], Found::Missing.into()),
        End::Denied => return (vec![route], Found::Unknown(Doubt::Unreadable).into()),
    };
    match std::fs::symlink_metadata(&folder) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return (vec![route], Found::Other { kind: "file".to_owned() }.into()),
        Err(_) => return (vec![route], Found::Unknown(Doubt::Unsettled).into()),
    }
    let mut routes = vec![route];
    let mut outer = Vec::new();
    if filter.gitignore {
        let files = rule_files(&folder);
        routes.extend(resolve_all(&files.asked));
        outer = files.rules.into_iter().map(|(speaks_of, file)| (speaks_of, read_rules(&file))).collect();
        outer.retain(|(_, text)| !text.is_empty());
    }
    (routes, Looked::Root(Root { folder, outer }))
}

struct RuleFiles {
    /// Every path that was asked about; what appears there changes the answer.
    asked: Vec<PathBuf>,
    /// What rules there may be, each with the folder that it speaks of, top down.
    rules: Vec<(PathBuf, PathBuf)>,
}

/// The rule files from the repository's top down to above `folder`, and the repository's own excludes. Outside of a
/// repository there are none.
fn rule_files(folder: &Path) -> RuleFiles {
    let (mut asked, mut rules) = (Vec::new(), Vec::new());
    for above in folder.ancestors() {
        let git = above.join(".git");
        asked.push(git.clone());
        if above != folder {
            let file = above.join(".gitignore");
            asked.push(file.clone());
            rules.push((above.to_owned(), file));
        }
        if git.exists() {
            let own = git.join("info/exclude");
            asked.push(own.clone());
            rules.push((above.to_owned(), own));
            rules.reverse();
            return RuleFiles { asked, rules };
        }
    }
    RuleFiles { asked, rules: Vec::new() }
}
