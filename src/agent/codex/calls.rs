//! What a call of Codex asks for, in the many spellings that its versions have.

use crate::agent::line::{text, texts};
use crate::agent::spelling;
use serde_json::Value;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Call {
    /// A command of a shell.
    Command {
        /// Its text.
        text: String,
        /// The language of the text: `Bash`, `PowerShell`.
        shell: String,
        /// Where it runs.
        cwd: Option<String>,
    },
    /// Changes of files.
    Patch {
        /// From `*** Begin Patch` on.
        text: String,
        /// What its paths are relative to.
        cwd: Option<String>,
    },
    /// More of what a command prints that goes on.
    More(u64),
    /// A look at an image.
    Image(String),
    /// Nothing that rests on the tree.
    Other,
}

/// The call in an item; `cwd` is where the session is.
pub(super) fn parse(item: &Value, cwd: Option<&str>) -> Option<(String, Call)> {
    let name = text(item, "name").or_else(|| text(item, "type"))?;
    let given = match (item.get("arguments"), item.get("action")) {
        (Some(Value::String(arguments)), _) => serde_json::from_str(arguments).unwrap_or(Value::Null),
        (Some(arguments), _) => arguments.clone(),
        (None, Some(action)) => action.clone(),
        (None, None) => item.clone(),
    };
    Some((name.to_owned(), call(name, &given, cwd)))
}

fn call(name: &str, given: &Value, cwd: Option<&str>) -> Call {
    let folder = text(given, "workdir").or_else(|| text(given, "working_directory"));
    let folder = folder.filter(|folder| !folder.is_empty());
    let folder = folder.map_or(cwd.map(str::to_owned), |folder| place(cwd, folder));
    let argv: Vec<&str> = texts(given, "command").collect();
    match name {
        "apply_patch" => match text(given, "input").or_else(|| text(given, "patch")) {
            Some(patch) => Call::Patch { text: patch.to_owned(), cwd: folder },
            None => Call::Other,
        },
        "write_stdin" => given.get("session_id").and_then(Value::as_u64).map_or(Call::Other, Call::More),
        "view_image" => {
            text(given, "path").and_then(|path| place(cwd, path)).map_or(Call::Other, Call::Image)
        }
        _ if !argv.is_empty() => of_words(&argv, folder),
        "exec_command" | "shell_command" | "shell" => {
            let told = text(given, "cmd").or_else(|| text(given, "command"));
            let shell = text(given, "shell").map_or("Bash", language);
            told.map_or(Call::Other, |told| of_text(told, shell, folder))
        }
        _ => Call::Other,
    }
}

fn place(cwd: Option<&str>, name: &str) -> Option<String> {
    spelling::resolve(cwd, name).map(|path| path.to_string_lossy().into_owned())
}

/// The language that a shell speaks.
fn language(shell: &str) -> &'static str {
    let name = shell.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    match name.trim_end_matches(".exe") {
        "powershell" | "pwsh" => "PowerShell",
        "cmd" => "cmd",
        _ => "Bash",
    }
}

/// A program with its words; most often a shell with a text.
fn of_words(argv: &[&str], cwd: Option<String>) -> Call {
    match argv {
        ["apply_patch", patch] => Call::Patch { text: (*patch).to_owned(), cwd },
        [shell, "-lc" | "-c" | "-ic" | "-Command" | "/c", text] => of_text(text, language(shell), cwd),
        _ => of_text(&argv.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "), "Bash", cwd),
    }
}

fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./=:,@%+".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// A text for a shell. A patch may be fed to its program in a here-document, after a `cd` perhaps.
fn of_text(told: &str, shell: &str, cwd: Option<String>) -> Call {
    let patch = told.split_once("apply_patch").filter(|(_, rest)| rest.contains("*** Begin Patch"));
    let Some((before, rest)) = patch else {
        return Call::Command { text: told.to_owned(), shell: shell.to_owned(), cwd };
    };
    let cwd = match before.trim() {
        "" => cwd,
        moved => moved
            .strip_prefix("cd ")
            .and_then(|moved| moved.strip_suffix("&&"))
            .and_then(|folder| place(cwd.as_deref(), folder.trim().trim_matches(['\'', '"']))),
    };
    let start = rest.find("*** Begin Patch").unwrap_or_default();
    Call::Patch { text: rest[start..].to_owned(), cwd }
}
