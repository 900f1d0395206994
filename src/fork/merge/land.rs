//! The one step that the parent sees: its tree, its index and its branch, moved together.
//!
//! A process of its own does it, which no signal to us reaches: whoever kills us finds the parent as before, or a moment
//! later merged. Git refuses what was edited meanwhile before it writes anything, and a branch that moved meanwhile, upon
//! which tree and index go back to where it was. It ends with the same code where it stops while it writes, so whatever it
//! does not end well is mended before we say that nothing was done (see `mend`).

use super::super::ForkError;
use super::mend::{self, Mended, Note};
use super::parent::{Parent, Place};
use super::{Judged, line, shown};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// What the script ends with when the branch had moved, and all is back where it was.
const MOVED: i32 = 3;

/// And when it could not be taken back.
const STUCK: i32 = 4;

pub(super) fn land(parent: &Parent, place: &Place, of: &Judged, to: &str) -> Result<(), ForkError> {
    let empty = empty_tree(parent)?;
    let from = of.head.as_deref().unwrap_or(&empty);
    // Of a branch that is not there yet the old value is no commit at all.
    let nothing = "0".repeat(to.len());
    let old = of.head.as_deref().unwrap_or(&nothing);
    let refresh = parent.command(["update-index", "-q", "--refresh"]);
    let there = parent.command(["read-tree", "-m", "-u", from, to]);
    let said = of.message.lines().next().unwrap_or_default();
    let mut moved = parent.command(["update-ref", "-m", said]);
    // A detached HEAD that is on a branch meanwhile must not take that along.
    moved.args((place.name == "HEAD").then_some("--no-deref")).args([&place.name, to, old]);
    let back = parent.command(["read-tree", "-m", "-u", to, from]);
    let note = Note { from: from.to_owned(), to: to.to_owned(), name: place.name.clone() };
    let noted = note.write(&parent.note())?;
    let forget = [b" rm -f ", quoted(parent.note().as_os_str()).as_slice()].concat();
    let mut script = word_by_word(&refresh);
    script.extend(b"\n");
    script.extend(word_by_word(&there));
    // The note stays until it is certain that nothing, or all of it, was done.
    script.extend(b" || exit 2\n");
    script.extend(word_by_word(&moved));
    script.extend(b" || { ");
    script.extend(word_by_word(&back));
    script.extend([b"&&", forget.as_slice(), b"&& exit "].concat());
    script.extend(format!("{MOVED}; exit {STUCK}; }}\n").as_bytes());
    script.extend([forget.as_slice(), b"; exit 0\n"].concat());
    let ran = run(&there, &script);
    drop(noted);
    if ran.is_err() {
        // Nothing was begun, so nothing is to be taken back.
        drop(std::fs::remove_file(parent.note()));
    }
    let (code, said) = ran?;
    match code {
        Some(0) => Ok(()),
        Some(MOVED) => {
            let why = format!(
                "{} moved while it was merged, so nothing was done ({said}); run it again",
                shown(parent.tree)
            );
            Err(ForkError::refused("parent_moved", why))
        }
        code => stopped(parent, code, &said),
    }
}

/// Git did not come to its end: what it wrote is taken back, or brought to its end, or it is said that it stands.
fn stopped(parent: &Parent, code: Option<i32>, said: &str) -> Result<(), ForkError> {
    let tree = shown(parent.tree);
    // A git that ended by itself left no lock, so one that is there may be another's, who is not to lose it.
    let mended = parent.refuse_busy().and_then(|()| mend::settle(parent));
    let (word, why) = match mended {
        Ok(Mended::Whole | Mended::Ended) => return Ok(()),
        Ok(Mended::TakenBack) => {
            ("parent_dirty", format!("git would not write {tree} ({said}), so nothing was done"))
        }
        Ok(Mended::Left) if code == Some(STUCK) => {
            let why = "moved while it was merged, and its tree and index are the merge's still";
            let remedy = format!("`git -C {tree} reset --merge` takes them to where it is now");
            ("parent_moved", format!("{tree} {why} ({said}); {remedy}"))
        }
        Ok(Mended::Left) => {
            let why = "moved while it was merged, and git would not write it";
            let remedy = format!("`git -C {tree} status` shows what of the merge is there, if anything");
            ("parent_moved", format!("{tree} {why} ({said}); {remedy}"))
        }
        Err(error) => {
            let why =
                format!("git stopped while it wrote {tree} ({said}), and that could not be taken back yet");
            (error.code(), format!("{why}: {error}; run it again"))
        }
    };
    Err(ForkError::refused(word, why))
}

fn empty_tree(parent: &Parent) -> Result<String, ForkError> {
    let mut asked = parent.command(["hash-object", "-t", "tree", "--stdin"]);
    Ok(line(&parent.git.feed("name the empty tree", &mut asked, b"")?))
}

/// Runs a script with the variables and the folder of a command. What it says goes into a file: a pipe to us would break
/// when we are killed, and git with it.
fn run(like: &Command, script: &[u8]) -> Result<(Option<i32>, String), ForkError> {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(OsStr::from_bytes(script)).env_clear().process_group(0);
    command.envs(like.get_envs().filter_map(|(key, value)| Some((key, value?))));
    command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    if let Some(folder) = like.get_current_dir() {
        command.current_dir(folder);
    }
    let at = std::env::temp_dir().join(format!("staled-merge-{}", std::process::id()));
    let heard = std::fs::OpenOptions::new().write(true).create_new(true).open(&at);
    let heard = heard.map_err(ForkError::io("make", &at))?;
    let read = std::fs::File::open(&at).map_err(ForkError::io("open", &at));
    std::fs::remove_file(&at).map_err(ForkError::io("remove", &at))?;
    // Before anything is begun, as every error is that leaves here.
    let read = read?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(heard);
    let status = command.status().map_err(ForkError::io("run", std::path::Path::new("/bin/sh")))?;
    let said = std::io::read_to_string(read).unwrap_or_default();
    let said: Vec<&str> = said.lines().map(str::trim).take(5).collect();
    Ok((status.code(), said.join(" ")))
}

/// A command as a shell reads it.
fn word_by_word(command: &Command) -> Vec<u8> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.flat_map(|word| [quoted(word), vec![b' ']].concat()).collect()
}

fn quoted(word: &OsStr) -> Vec<u8> {
    let mut quoted = vec![b'\''];
    for byte in word.as_bytes() {
        match byte {
            b'\'' => quoted.extend(b"'\\''"),
            byte => quoted.push(*byte),
        }
    }
    quoted.push(b'\'');
    quoted
}
