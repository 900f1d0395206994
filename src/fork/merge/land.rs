//! The one step that the parent sees: its tree, its index and its branch, moved together.
//!
//! A process of its own does it, which no signal to us reaches: whoever kills us finds the parent as before, or a moment
//! later merged. Git refuses what was edited meanwhile before it writes anything, and a branch that moved meanwhile, upon
//! which tree and index go back to where it was.

use super::super::ForkError;
use super::mend::Note;
use super::parent::{Parent, Place};
use super::{Judged, line, shown};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// What the script ends with when the branch had moved.
const MOVED: i32 = 3;

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
    script.extend([b" || {", forget.as_slice(), b"; exit 2; }\n"].concat());
    script.extend(word_by_word(&moved));
    script.extend(b" || { ");
    script.extend(word_by_word(&back));
    script.extend(
        [b";", forget.as_slice(), format!("; exit {MOVED}; }}\n").as_bytes(), forget.as_slice()].concat(),
    );
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
        _ => {
            let why = format!("git would not write {} ({said}), so nothing was done", shown(parent.tree));
            Err(ForkError::refused("parent_dirty", why))
        }
    }
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
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(heard);
    let status = command.status().map_err(ForkError::io("run", std::path::Path::new("/bin/sh")))?;
    let said = std::io::read_to_string(read?).unwrap_or_default();
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
