//! Which program a file of somebody else starts, how it is spelled there, and which entries are ours.

use super::super::shell::Stop;
use super::super::words::quoted;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The program that is to be started: the one that was named, or this one. It is there, it runs, and its name is text.
pub(in crate::cli) fn program(named: Option<&Path>, place: &str) -> Result<String, Stop> {
    let path = match named {
        Some(path) => std::path::absolute(path),
        None => std::env::current_exe(),
    };
    let path = path.map_err(|error| Stop::failed(format!("which program is this? {error}")))?;
    if !runs(&path) {
        return Err(Stop::failed(format!("{} is no program", path.display()))
            .remedy(format!("--exec PATH names the one that the {place} starts")));
    }
    let text = path.to_str().filter(|text| !text.contains(|symbol: char| symbol.is_control()));
    text.map(str::to_owned).ok_or_else(|| {
        Stop::failed(format!("{} cannot stand in a {place}", path.display()))
            .remedy("--exec PATH names another one")
    })
}

/// Whether there is a program at this path.
pub(in crate::cli) fn runs(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// The command of a hook, for the shell that an agent runs it in.
pub(super) fn command(program: &str, agent: &str) -> String {
    let plain = |symbol: char| symbol.is_ascii_alphanumeric() || "/._-+@".contains(symbol);
    let program = if program.chars().all(plain) { program.to_owned() } else { quoted(Path::new(program)) };
    format!("{program} hook {agent}")
}

/// The program of a hook that is ours: a program of our name that is run as this agent's hook, in a shell or without one.
pub(in crate::cli) fn of_hook(hook: &Value, agent: &str) -> Option<PathBuf> {
    let mut words = words(hook["command"].as_str()?)?;
    words.extend(hook["args"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned));
    // Claude Code has two names on our command line.
    let named = |name: &str| name == agent || (agent == "claude-code" && name == "claude");
    match &words[..] {
        [program, verb, name, ..] if verb == "hook" && named(name) && is_ours(program) => {
            Some(program.into())
        }
        _ => None,
    }
}

/// Whether a server of the Model Context Protocol is ours.
pub(super) fn is_server(command: Option<&str>, first_argument: Option<&str>) -> bool {
    command.is_some_and(is_ours) && first_argument == Some("mcp")
}

/// A program is known by its name, whatever folder it was built or installed in.
pub(super) fn is_ours(program: &str) -> bool {
    let own = std::env::current_exe().ok();
    let own = own.as_deref().and_then(Path::file_name);
    Path::new(program).file_name().is_some_and(|name| name == "staled" || Some(name) == own)
}

/// The words of a command as a shell takes them apart; `None` where a quote does not end.
fn words(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut symbols = command.chars();
    while let Some(symbol) = symbols.next() {
        match symbol {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' => loop {
                match symbols.next()? {
                    '\'' => {
                        word.get_or_insert_default();
                        break;
                    }
                    inner => word.get_or_insert_default().push(inner),
                }
            },
            '"' => loop {
                match symbols.next()? {
                    '"' => {
                        word.get_or_insert_default();
                        break;
                    }
                    '\\' => word.get_or_insert_default().push(symbols.next()?),
                    inner => word.get_or_insert_default().push(inner),
                }
            },
            '\\' => word.get_or_insert_default().push(symbols.next()?),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::{command, of_hook};
    use serde_json::json;
    use std::path::Path;

    #[test]
    fn what_is_written_is_known_again() {
        for program in ["/usr/bin/staled", "/opt/my tools/staled", "/it's/staled", "/a\"b/$HOME/`x`\\/staled"]
        {
            let hook = json!({"type": "command", "command": command(program, "codex")});
            assert_eq!(of_hook(&hook, "codex").as_deref(), Some(Path::new(program)));
            assert_eq!(of_hook(&hook, "gemini"), None, "another agent's");
        }
    }

    #[test]
    fn only_a_hook_of_ours_is_ours() {
        for (ours, hook) in [
            (true, json!({"command": "\"/x/staled\" hook claude-code"})),
            (true, json!({"command": "staled hook claude"})),
            (true, json!({"command": "/x/staled", "args": ["hook", "claude-code"]})),
            (false, json!({"command": "/x/staled hook codex"})),
            (false, json!({"command": "/x/unstaled hook claude-code"})),
            (false, json!({"command": "echo staled hook claude-code"})),
            (false, json!({"command": "/x/staled decide claude-code"})),
            (false, json!({"command": "staled 'hook claude-code"})),
            (false, json!({"type": "prompt"})),
        ] {
            assert_eq!(of_hook(&hook, "claude-code").is_some(), ours, "{hook}");
        }
    }
}
