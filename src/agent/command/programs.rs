//! Programs that agents run, and what the answer of each rests on: data, to be read and added to.
//!
//! A program that is not here may read anything, the network included, so nothing is claimed of it.

/// What a program's answer rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// On nothing but its own words.
    Says,
    /// On the files it names, or on what it is fed.
    Reads,
    /// The same; its first operand is what it looks for.
    Seeks,
    /// On the names in the folders it names.
    Lists,
    /// On the names below the folders that it names before its tests.
    Finds,
    /// On the whole tree: builds, tests, checks.
    Checks,
    /// On the files it names; but it writes them when asked to with `-w`.
    Formats,
    /// On the network.
    Network,
    /// On the clock.
    Clock,
    /// It changes something; what it prints is no belief about the tree.
    Writes,
    /// It runs the program that its operands name.
    Wraps,
    /// It runs the script that its first operand names.
    Scripts,
    /// Nobody knows.
    Unknown,
}

use Kind::{
    Checks, Clock, Finds, Formats, Lists, Network, Reads, Says, Scripts, Seeks, Unknown, Wraps, Writes,
};

/// Programs by kind.
const PROGRAMS: [(Kind, &str); 12] = [
    (
        Says,
        "echo printf true false : test [ sleep exit return set export unset pwd basename dirname seq tr cd",
    ),
    (
        Reads,
        "cat head tail wc sort uniq cut nl tac rev od xxd hexdump strings diff cmp comm md5sum sha1sum sha256sum \
         sha512sum b3sum shasum md5 file bat less more paste column fold jsonlint xmllint base64 expand",
    ),
    (Seeks, "grep egrep fgrep zgrep rg ag ack sed awk gawk mawk jq yq"),
    (Lists, "ls dir exa eza"),
    (Finds, "find fd tree"),
    (
        Checks,
        "pytest jest vitest mocha ava tsc eslint mypy flake8 pylint pyright golangci-lint staticcheck shellcheck \
         hadolint ctest phpunit rspec stylelint markdownlint markdownlint-cli2 knip tox nox gotestsum cloc tokei scc \
         ansible-lint yamllint actionlint",
    ),
    (Formats, "gofmt goimports gofumpt prettier shfmt clang-format"),
    (
        Network,
        "curl wget gh glab ssh scp rsync ping dig nslookup host nc telnet aws gcloud az kubectl helm docker podman \
         terraform fly vercel netlify heroku",
    ),
    (Clock, "date uptime ps top who w free df"),
    (
        Writes,
        "rm mv cp mkdir rmdir touch ln chmod chown tee dd truncate install patch unzip tar gzip gunzip zip rustfmt \
         autopep8 isort black kill pkill killall brew apt apt-get dnf yum pip pip3 pipx gem composer rustup nvm \
         create-next-app createdb dropdb psql mysql sqlite3",
    ),
    (
        Wraps,
        "time nice nohup env command exec builtin timeout stdbuf caffeinate rtk xargs npx bunx uvx pnpx eval sudo",
    ),
    (Scripts, "make gmake just task rake gradle gradlew mvn mvnw ant ninja bazel"),
];

/// Programs whose first operand decides; an operand that is not here is of the kind that stands first.
const TOOLS: [(&str, Kind, &[(Kind, &str)]); 17] = [
    (
        "cargo",
        Unknown,
        &[
            (Checks, "build b check c test t clippy doc bench tree metadata nextest audit deny machete hack"),
            (
                Writes,
                "fmt fix add remove rm update install uninstall new init publish clean vendor generate-lockfile",
            ),
        ],
    ),
    (
        "go",
        Unknown,
        &[(Checks, "build test vet list"), (Writes, "fmt mod get generate install clean work fix")],
    ),
    ("npm", Unknown, PACKAGES),
    ("pnpm", Scripts, PACKAGES),
    ("yarn", Scripts, PACKAGES),
    ("bun", Unknown, PACKAGES),
    (
        "mise",
        Unknown,
        &[(Scripts, "run r"), (Wraps, "exec x"), (Writes, "trust install use upgrade uninstall")],
    ),
    ("uv", Unknown, &[(Wraps, "run"), (Writes, "sync add remove lock pip venv init tool")]),
    (
        "poetry",
        Unknown,
        &[(Wraps, "run"), (Checks, "check"), (Writes, "install add remove lock update init")],
    ),
    ("pipenv", Unknown, &[(Wraps, "run"), (Writes, "install lock update")]),
    ("bundle", Unknown, &[(Wraps, "exec"), (Writes, "install update add")]),
    ("ruff", Checks, &[(Checks, "check"), (Writes, "format clean")]),
    ("biome", Checks, &[(Checks, "check lint ci format")]),
    ("deno", Unknown, &[(Checks, "test check lint"), (Writes, "fmt install cache add")]),
    ("dotnet", Unknown, &[(Checks, "build test"), (Writes, "format add remove restore new clean publish")]),
    ("swift", Unknown, &[(Checks, "build test")]),
    ("flutter", Unknown, &[(Checks, "analyze test build"), (Writes, "pub create clean")]),
];

/// What all package runners of JavaScript have in common.
const PACKAGES: &[(Kind, &str)] = &[
    (Checks, "test t"),
    (Scripts, "run run-script"),
    (Wraps, "exec x"),
    (Network, "audit outdated view info search"),
    (Unknown, "list ls why start dev serve dlx create"),
    (
        Writes,
        "install i add ci remove rm uninstall update up upgrade publish link unlink init version pack prune dedupe \
         rebuild",
    ),
];

/// Words of a script's name that tell what it does; the first of these that fits decides.
const SCRIPTS: [(Kind, &str); 2] = [
    (
        Writes,
        "fmt format fix write generate gen codegen clean install publish release deploy migrate migration seed update \
         setup bump changeset prepare push",
    ),
    (
        Checks,
        "test tests unit integration e2e spec lint check checks build compile typecheck types tsc vet verify ci \
         coverage clippy audit all validate bench",
    ),
];

/// Options that make a program write which reads otherwise.
const WRITING: &str = "--fix --write --in-place --apply --update-snapshots --updateSnapshot --output --delete -delete \
                       -exec -execdir -ok -okdir -fprint";

/// What a program's answer rests on, told by its name.
pub(super) fn program(name: &str) -> Kind {
    find(&PROGRAMS, name).unwrap_or(Unknown)
}

/// What the answer of a program with parts rests on, told by its first operand; `None` for other programs.
pub(super) fn tool(name: &str, operand: &str) -> Option<Kind> {
    let (_, otherwise, parts) = TOOLS.iter().find(|(tool, ..)| *tool == name)?;
    Some(find(parts, operand).unwrap_or(*otherwise))
}

/// What a script does, as far as its name tells.
pub(super) fn script(name: &str) -> Kind {
    let words = || name.split(|letter: char| !letter.is_ascii_alphanumeric());
    let says = |(kind, known): &(Kind, &str)| {
        words().any(|word| known.split_whitespace().any(|known| known == word)).then_some(*kind)
    };
    SCRIPTS.iter().find_map(says).unwrap_or(Unknown)
}

/// Whether an option makes its program write.
pub(super) fn writes(option: &str) -> bool {
    let name = option.split_once('=').map_or(option, |(name, _)| name);
    WRITING.split_whitespace().any(|writing| writing == name)
}

fn find(table: &[(Kind, &str)], name: &str) -> Option<Kind> {
    table.iter().find(|(_, names)| names.split_whitespace().any(|known| known == name)).map(|(kind, _)| *kind)
}
