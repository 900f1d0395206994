//! What a tool of Codex answered, taken out of what the model was told about it.
//!
//! The text is what the command printed, to the byte, unless the harness cut it; then it is good for nothing but to be
//! known as cut.

use crate::agent::line::text;
use serde_json::Value;

/// An answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::agent) struct Output {
    /// What was printed.
    pub(in crate::agent) text: String,
    /// How it ended, where that was told.
    pub(in crate::agent) exit_code: Option<i64>,
    /// It goes on, and is asked for by this number.
    pub(in crate::agent) running: Option<u64>,
    /// Something of it is missing.
    pub(in crate::agent) cut: bool,
}

/// The answer in the `output` of a result; `None` where nothing ran and the words say why.
pub(in crate::agent) fn parse(output: &Value) -> Option<Output> {
    let told = told(output)?;
    if let Some(json) = serde_json::from_str::<Value>(&told).ok().filter(Value::is_object) {
        let printed = text(&json, "output")?.to_owned();
        let exit_code = json.get("metadata").and_then(|told| told.get("exit_code")).and_then(Value::as_i64);
        return Some(Output { cut: is_cut(&printed), text: printed, exit_code, running: None });
    }
    let (head, printed) =
        told.split_once("\nOutput:\n").or_else(|| Some((told.strip_suffix("\nOutput:")?, "")))?;
    let number =
        |prefix: &str| head.lines().rev().find_map(|line| line.strip_prefix(prefix)?.trim().parse().ok());
    let exit_code = number("Process exited with code ").or_else(|| number("Exit code: "));
    let running = number("Process running with session ID ").and_then(|number| u64::try_from(number).ok());
    // The harness counts a token for each four bytes: with more of them than there are bytes, it left some out.
    let counted = number("Original token count: ").and_then(|count| u64::try_from(count).ok());
    let fewer = counted.is_some_and(|count| count > (printed.len() as u64).div_ceil(4));
    let cut = fewer || is_cut(printed);
    (exit_code.is_some() || running.is_some()).then(|| Output {
        text: printed.to_owned(),
        exit_code,
        running,
        cut,
    })
}

/// The words: a string, or the texts of a list.
fn told(output: &Value) -> Option<String> {
    let content = output.get("content").unwrap_or(output);
    let listed = || Some(content.as_array()?.iter().filter_map(|part| text(part, "text")).collect());
    content.as_str().map(str::to_owned).or_else(listed)
}

/// Whether the harness left something out, by the words that it puts there.
pub(in crate::agent) fn is_cut(printed: &str) -> bool {
    const MARKS: [&str; 5] =
        [" truncated…", "[... omitted ", "[... removed ", "[... Else ", "[... truncated"];
    printed.starts_with("Total output lines: ")
        || printed.starts_with("Warning: truncated output")
        || MARKS.iter().any(|mark| printed.contains(mark))
}
