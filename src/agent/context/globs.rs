//! Filters of a search in the words of a tree.
//!
//! A tree that takes in more than the search did is stale too often, one that takes in less is fresh when it should not
//! be. So whatever cannot be said in a tree's globs narrows nothing.

use crate::index::tree::sieve;
use crate::session::privacy::strip;

/// What ripgrep's `--type` means, for types that agents name. Another type narrows nothing.
const TYPES: [(&str, &[&str]); 27] = [
    ("c", &["*.c", "*.h"]),
    ("cpp", &["*.cpp", "*.cc", "*.cxx", "*.hpp", "*.hh", "*.hxx", "*.h", "*.inl"]),
    ("cs", &["*.cs"]),
    ("csharp", &["*.cs"]),
    ("css", &["*.css", "*.scss"]),
    ("go", &["*.go"]),
    ("html", &["*.html", "*.htm", "*.ejs"]),
    ("java", &["*.java", "*.jsp", "*.jspx", "*.properties"]),
    ("js", &["*.js", "*.jsx", "*.mjs", "*.cjs", "*.vue"]),
    ("json", &["*.json", "*.sarif", "composer.lock"]),
    ("kotlin", &["*.kt", "*.kts"]),
    ("lua", &["*.lua"]),
    ("markdown", &["*.md", "*.markdown", "*.mdown", "*.mdwn", "*.mkd", "*.mkdn", "*.mdx"]),
    ("md", &["*.md", "*.markdown", "*.mdown", "*.mdwn", "*.mkd", "*.mkdn", "*.mdx"]),
    ("php", &["*.php", "*.php3", "*.php4", "*.php5", "*.php7", "*.php8", "*.pht", "*.phtml"]),
    ("proto", &["*.proto"]),
    ("py", &["*.py", "*.pyi"]),
    ("python", &["*.py", "*.pyi"]),
    ("rust", &["*.rs"]),
    ("scala", &["*.scala", "*.sbt"]),
    ("sql", &["*.sql", "*.psql"]),
    ("svelte", &["*.svelte"]),
    ("swift", &["*.swift"]),
    ("toml", &["*.toml", "Cargo.lock"]),
    ("ts", &["*.ts", "*.tsx", "*.cts", "*.mts"]),
    ("typescript", &["*.ts", "*.tsx", "*.cts", "*.mts"]),
    ("yaml", &["*.yaml", "*.yml"]),
];

/// What ripgrep's filters say in the words of a tree: names that count, names that do not.
pub(super) fn grep_globs(
    glob: Option<&str>,
    kind: Option<&str>,
    has_path: bool,
) -> (Vec<String>, Vec<String>) {
    let told: Vec<String> = glob.map(split_globs).unwrap_or_default();
    // With a slash a glob hangs from where the search was started, not from the path that it was given.
    let anchored = has_path && told.iter().any(|glob| glob.contains('/') && !glob.starts_with("**/"));
    // What begins with a slash is a path of that machine as likely as one below the tree.
    if anchored || told.iter().any(|glob| glob.trim_start_matches('!').starts_with('/')) {
        return (Vec::new(), Vec::new());
    }
    let (out, mut within): (Vec<String>, Vec<String>) =
        told.into_iter().partition(|glob| glob.starts_with('!'));
    let named = kind.and_then(|kind| TYPES.iter().find(|(name, _)| *name == kind));
    // Both narrow: what passes both passes either, and one of them is enough to be sure of all that matters.
    if within.is_empty() {
        within =
            named.map(|(_, globs)| globs.iter().map(|&glob| glob.to_owned()).collect()).unwrap_or_default();
    }
    (usable(within), usable(out.iter().map(|glob| glob[1..].to_owned()).collect()))
}

/// The globs of a list: between commas or blanks that are in no braces.
fn split_globs(told: &str) -> Vec<String> {
    let mut globs = vec![String::new()];
    let mut depth = 0_u32;
    for letter in told.replace('\\', "/").chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (letter == ',' || letter.is_whitespace()) {
            globs.push(String::new());
        } else if let Some(glob) = globs.last_mut() {
            glob.push(letter);
        }
    }
    globs.retain(|glob| !glob.is_empty());
    globs
}

/// All of them or none: a glob that the daemon would refuse must not take names away, nor narrow what others take in.
pub(super) fn usable(globs: Vec<String>) -> Vec<String> {
    let usable =
        |glob: &String| !glob.trim().is_empty() && sieve::refuse(glob).is_none() && strip(glob) == *glob;
    if globs.iter().all(usable) { globs } else { Vec::new() }
}
