//! Rows of commands and what each is: invented, in the manner of real ones.

use super::{Class, Input, Part, classify};

/// In short: `look a 1-9`, `writes`, `nothing`, `network`, `?`, or what it reads.
fn show(text: &str) -> String {
    let path = |path: &std::path::Path| match path.strip_prefix("/r") {
        Ok(below) if below.as_os_str().is_empty() => ".".to_owned(),
        Ok(below) => below.display().to_string(),
        Err(_) => path.display().to_string(),
    };
    match classify(text, Some("/r")) {
        Class::Nothing => "nothing".to_owned(),
        Class::Writes => "writes".to_owned(),
        Class::Volatile("a command of unknown reach") => "?".to_owned(),
        Class::Volatile(what) => what.to_owned(),
        Class::Look { path: file, part, numbered } => {
            let how = if numbered { "#" } else { "" };
            let part = match part {
                Part::Whole => String::new(),
                Part::Lines(first, last) => format!(" {first}-{last}"),
                Part::From(first) => format!(" {first}-"),
                Part::Last(count) => format!(" -{count}"),
            };
            format!("look{how} {}{part}", path(&file))
        }
        Class::Reads(inputs) => {
            let input = |input: &Input| match input {
                Input::Tree(folder) => format!("tree@{}", path(folder)),
                Input::Path(file) => path(file),
                Input::Names { path: folder, deep, contents } => {
                    let deep = if *deep { "**" } else { "*" };
                    format!("{}/{deep}{}", path(folder), if *contents { "+" } else { "" })
                }
                Input::Head(folder) => format!("head@{}", path(folder)),
                Input::Index(folder) => format!("index@{}", path(folder)),
            };
            inputs.iter().map(input).collect::<Vec<_>>().join(" ")
        }
    }
}

fn check(rows: &[(&str, &str)]) {
    for (text, want) in rows {
        assert_eq!(show(text), *want, "{text}");
    }
}

#[test]
fn a_plain_read_of_one_file_is_a_look_at_it() {
    check(&[
        ("cat a.rs", "look a.rs"),
        ("cat /r/src/a.rs", "look src/a.rs"),
        ("cd src && cat a.rs", "look src/a.rs"),
        ("cat a.rs 2>/dev/null", "look a.rs"),
        ("head a.rs", "look a.rs 1-10"),
        ("head -n 30 a.rs", "look a.rs 1-30"),
        ("head -n30 a.rs", "look a.rs 1-30"),
        ("head -30 a.rs", "look a.rs 1-30"),
        ("tail -5 a.rs", "look a.rs -5"),
        ("tail -n +5 a.rs", "look a.rs 5-"),
        ("sed -n '5,9p' a.rs", "look a.rs 5-9"),
        ("sed -n 5p a.rs", "look a.rs 5-5"),
        ("sed -n '5,$p' a.rs", "look a.rs 5-"),
        ("LC_ALL=C sed -n '5,9p' a.rs", "look a.rs 5-9"),
        ("sed -n '5,9p;20p' a.rs", "a.rs"),
        ("sed -n '9,5p' a.rs", "a.rs"),
        ("sed -n '0,5p' a.rs", "a.rs"),
        ("nl -ba a.rs", "look# a.rs"),
        ("nl -ba a.rs | sed -n '5,9p'", "look# a.rs 5-9"),
        ("nl -ba a.rs | sed -n '5,$p'", "look# a.rs 5-"),
        ("nl -ba a.rs | head -n 7", "look# a.rs 1-7"),
        ("nl -ba a.rs | sed -n '5,9p' | sed -n '1,2p'", "a.rs"),
        ("nl -ba a.rs | sed -n '5,9p;12p'", "a.rs"),
        ("nl -ba a.rs | sed -n '5,9p' b.rs", "a.rs b.rs"),
        ("nl -ba a.rs; sed -n '5,9p'", "a.rs tree@."),
        ("nl a.rs", "a.rs"),
        ("cat a.rs | sed -n '5,9p'", "a.rs"),
        ("cat -n a.rs", "a.rs"),
        ("cat a.rs b.rs", "a.rs b.rs"),
        ("cat a.rs | head -5", "a.rs"),
        ("cat a.rs; echo done", "a.rs"),
        ("cat *.rs", "."),
        ("cat src/*.rs", "src"),
        ("cat $FILE", "?"),
        ("cat", "tree@."),
        ("cat a.rs > b.rs", "writes"),
        ("sed -i s/a/b/ a.rs", "writes"),
        ("head -n -5 a.rs", "a.rs"),
        ("head -c 100 a.rs", "a.rs"),
        ("cd - && cat a.rs", "?"),
        ("(cd src && cat a.rs)", "?"),
        ("cat $(cd src && pwd)/a.rs b.rs", "?"),
        ("(cat a.rs)", "look a.rs"),
        ("cd - && cat /r/a.rs", "look a.rs"),
    ]);
}

#[test]
fn searches_listings_and_checks_rest_on_the_tree() {
    check(&[
        ("grep -rn 'x y' src", "src"),
        ("grep -n x a.rs | head -30", "a.rs"),
        ("grep -A 30 \"type X\" /r/a.go", "a.go"),
        ("grep -e x a.rs", "x a.rs"),
        ("rg x", "tree@."),
        ("rg x /elsewhere", "/elsewhere"),
        ("find . -name '*.rs' | xargs grep -l x", "./** tree@."),
        ("find src -size +1k", "src/**+"),
        ("find src -name x -delete", "writes"),
        ("find src -exec rm {} ;", "writes"),
        ("ls", "./*"),
        ("ls -la src/", "src/*+"),
        ("ls -R src docs", "src/** docs/**"),
        ("ls *.md", "."),
        ("tree src -I target", "src/**"),
        ("wc -l < a.rs", "a.rs"),
        ("diff a b", "a b"),
        ("cargo test -p x 2>&1 | tail -5", "tree@."),
        ("cd sub && cargo build --release", "tree@sub"),
        ("cargo clippy --fix", "writes"),
        ("cargo fmt", "writes"),
        ("cargo run", "?"),
        ("RUST_LOG=debug timeout 60 cargo nextest run", "tree@."),
        ("go test ./... | grep -E '^ok' | sort -t'(' -k2 -rn", "tree@."),
        ("GOOS=linux go vet ./a && echo ok", "tree@."),
        ("npm test", "tree@."),
        ("npm run lint:ci", "tree@."),
        ("npm run lint:fix", "writes"),
        ("npm run dev", "?"),
        ("npm install", "writes"),
        ("npx tsc --noEmit", "tree@."),
        ("npx some-tool", "?"),
        ("pnpm lint", "tree@."),
        ("pnpm --filter web exec tsc --noEmit", "tree@."),
        ("yarn typecheck", "tree@."),
        ("mise run test:ci -- -run X", "tree@."),
        ("mise run fmt && mise run lint", "writes"),
        ("make", "tree@."),
        ("make -j 4 check", "tree@."),
        ("make deploy", "writes"),
        ("python3 -m pytest -q", "tree@."),
        ("python3 -m unittest", "tree@."),
        ("python3 x.py", "?"),
        ("prettier --check .", "."),
        ("prettier --write .", "writes"),
        ("gofmt -l .", "."),
        ("gofmt -w a.go", "writes"),
        ("biome check --fix .", "writes"),
        ("ruff check", "tree@."),
        ("for f in a b; do cat a.rs; done", "a.rs"),
        ("if grep -q x a.rs; then echo y; fi", "a.rs"),
    ]);
}

#[test]
fn git_rests_on_head_the_index_and_the_tree_or_on_refs() {
    check(&[
        ("git status", "head@. index@. tree@."),
        ("git diff --stat", "head@. index@. tree@."),
        ("git diff -- a b", "head@. index@. tree@."),
        ("git diff docs/", "head@. index@. tree@."),
        ("git diff HEAD~1..HEAD", "head@. index@. tree@."),
        ("git --no-pager log --oneline -5", "head@."),
        ("git log --oneline -n 5 | cat", "head@."),
        ("git log main..HEAD", "git refs"),
        ("git log v1.2..HEAD", "git refs"),
        ("git log --all", "git refs"),
        ("git show abc1234:src/a.rs", "head@."),
        ("git show origin/main:src/a.rs", "git refs"),
        ("git show $(git rev-parse HEAD)", "git refs"),
        ("git rev-parse HEAD", "head@."),
        ("git blame src/a.rs", "head@. index@. tree@."),
        ("git rev-parse --abbrev-ref HEAD", "git refs"),
        ("git describe", "git refs"),
        ("git grep x", "tree@. index@."),
        ("git branch", "git refs"),
        ("git branch -vv", "git refs"),
        ("git branch new", "writes"),
        ("git stash", "writes"),
        ("git stash list", "git refs"),
        ("git config user.name", "git refs"),
        ("git config user.name me", "writes"),
        ("git fetch origin", "network"),
        ("git push", "writes"),
        ("git add . && git commit -m x", "writes"),
        ("git checkout -- a && cargo build", "writes"),
        ("git -C sub log", "head@sub"),
        ("git -C /other status", "head@/other index@/other tree@/other"),
        ("git -C $X log", "another repository"),
        ("git --git-dir=/x log", "another repository"),
        ("cd $X && git log", "?"),
        ("git", "unknown"),
    ]);
}

#[test]
fn what_nobody_can_watch_is_volatile_and_what_does_something_is_no_result() {
    check(&[
        ("curl https://x", "network"),
        ("gh pr view 5 --json url | jq .url", "network"),
        ("x=$(gh pr view) && echo $x", "network"),
        ("date -u", "clock"),
        ("./run.sh", "?"),
        ("$TOOL x", "?"),
        ("some-server & sleep 1", "?"),
        ("gh pr view; ./run.sh", "network"),
        ("./run.sh; gh pr view", "network"),
        ("echo hello && pwd", "nothing"),
        ("sleep 5", "nothing"),
        ("# only a comment", "nothing"),
        ("", "nothing"),
        ("rm -rf target", "writes"),
        ("mkdir -p a && ls a", "writes"),
        ("cat <<'EOF' > a\nit's here\nEOF", "writes"),
        ("cargo test | tee log", "writes"),
        ("npm pack", "writes"),
    ]);
}
