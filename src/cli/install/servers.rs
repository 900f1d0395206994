//! The server of the Model Context Protocol among those of an agent, in JSON and in TOML.

use super::hooks::leave;
use super::json::{Doc, Fault, Step};
use super::program::is_server;
use serde_json::{Value, json};
use toml_edit::{Document, DocumentMut, Item, TableLike, value};

const SERVERS: Step<'static> = Step::Key("mcpServers");
const PLACE: [Step<'static>; 2] = [SERVERS, Step::Key("staled")];
const TOML: &str = "mcp_servers";

/// The program of the server that is ours.
pub(super) fn own(doc: &Doc) -> Option<String> {
    let server = doc.get(&PLACE)?;
    let command = server["command"].as_str();
    is_server(command, server["args"][0].as_str()).then(|| command.unwrap_or_default().to_owned())
}

pub(super) fn install(doc: &mut Doc, program: &str) -> Result<(), Fault> {
    check(doc)?;
    let wanted = json!({ "command": program, "args": ["mcp"] });
    match (doc.get(&[SERVERS]), doc.get(&PLACE)) {
        (None, _) => doc.put(&[], "mcpServers", &json!({})),
        (Some(Value::Object(_)), None) => {}
        (Some(Value::Object(_)), Some(_)) if own(doc).as_deref() == Some(program) => return Ok(()),
        (Some(Value::Object(_)), Some(_)) if own(doc).is_some() => {
            doc.replace(&[PLACE[0], PLACE[1], Step::Key("command")], &json!(program));
            return Ok(());
        }
        (Some(Value::Object(_)), Some(_)) => {
            return Err(doc.fault_at(&PLACE, "another server is called staled"));
        }
        (Some(_), _) => return Err(doc.fault_at(&[SERVERS], "`mcpServers` is no object of servers")),
    }
    doc.put(&[SERVERS], "staled", &wanted);
    Ok(())
}

pub(super) fn uninstall(doc: &mut Doc, before: Option<&Doc>) -> Result<(), Fault> {
    if own(doc).is_some() {
        check(doc)?;
        doc.remove(&PLACE);
        leave(doc, &[SERVERS], before);
    }
    Ok(())
}

/// Of two servers of one name the second counts, and neither can be edited.
fn check(doc: &Doc) -> Result<(), Fault> {
    doc.twice(&[]).or_else(|| doc.twice(&[SERVERS])).map_or(Ok(()), Err)
}

/// The text with our server in it or, without a program, out of it; and whether it was in it.
pub(super) fn toml(
    text: Option<&str>,
    backup: Option<&str>,
    program: Option<&str>,
) -> Result<(Option<String>, bool), Fault> {
    let found = text.unwrap_or_default();
    let doc: DocumentMut = found.parse().map_err(|error| toml_fault(found, &error))?;
    let had = toml_own(&doc);
    let new = match (program, &had) {
        (Some(program), _) => Some(with_server(found, doc, program, had.as_deref())?),
        (None, Some(own)) => without_server(found, doc, own, backup),
        (None, None) => text.map(str::to_owned),
    };
    Ok((new, had.is_some()))
}

fn with_server(text: &str, doc: DocumentMut, program: &str, had: Option<&str>) -> Result<String, Fault> {
    if had == Some(program) {
        return Ok(text.to_owned());
    }
    if had.is_some() {
        // Where it stands: written anew, the text would lose its line ends and its byte order mark.
        let spans = Document::parse(text).map_err(|error| toml_fault(text, &error))?;
        let place = spans.get(TOML).and_then(|servers| servers.get("staled")?.get("command")?.span());
        let place = place.expect("it was found, and has a place");
        return Ok(format!("{}{}{}", &text[..place.start], value(program), &text[place.end..]));
    }
    let fault = |why: &str| Fault { line: 1, column: 1, why: why.to_owned() };
    if doc.get(TOML).and_then(|servers| servers.get("staled")).is_some() {
        return Err(fault("another server is called mcp_servers.staled"));
    }
    // Behind everything else, whatever that is: nothing that stands there needs to be written anew.
    let new = format!("{text}{}{}", gap(text), block(text, program));
    match new.parse::<DocumentMut>() {
        Ok(_) => Ok(new),
        Err(_) => Err(fault("mcp_servers is written in a way that takes no [mcp_servers.staled] behind it")),
    }
}

fn without_server(text: &str, mut doc: DocumentMut, own: &str, backup: Option<&str>) -> Option<String> {
    let block = block(text, own);
    // With a key of the user's own it is no longer the block that we wrote.
    let whole = doc.get(TOML).and_then(|servers| servers.get("staled")).and_then(Item::as_table_like);
    let whole = whole.is_some_and(|server| server.len() == 2);
    let left = match text.find(&block).filter(|_| whole) {
        Some(at) => {
            let before = &text[..at];
            let newline = newline(text);
            let before =
                before.strip_suffix(newline).filter(|rest| rest.ends_with(newline)).unwrap_or(before);
            format!("{before}{}", &text[at + block.len()..])
        }
        None => {
            if let Some(servers) = doc.get_mut(TOML).and_then(Item::as_table_like_mut) {
                servers.remove("staled");
                if servers.is_empty() {
                    doc.remove(TOML);
                }
            }
            doc.to_string()
        }
    };
    match backup {
        Some(backup) if backup.trim_end() == left.trim_end() => Some(backup.to_owned()),
        None if left.trim().is_empty() => None,
        _ => Some(left),
    }
}

fn toml_own(doc: &DocumentMut) -> Option<String> {
    let server: &dyn TableLike = doc.get(TOML)?.get("staled")?.as_table_like()?;
    let command = server.get("command").and_then(Item::as_str);
    let first =
        server.get("args").and_then(Item::as_array).and_then(|args| args.get(0)).and_then(|arg| arg.as_str());
    is_server(command, first).then(|| command.unwrap_or_default().to_owned())
}

fn newline(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// What parts the server from what stands before it.
fn gap(text: &str) -> String {
    let newline = newline(text);
    match text {
        "" => String::new(),
        text if text.ends_with('\n') => newline.to_owned(),
        _ => newline.repeat(2),
    }
}

fn block(text: &str, program: &str) -> String {
    let program = value(program);
    let newline = newline(text);
    let program = program.to_string();
    let lines = ["[mcp_servers.staled]", &format!("command = {}", program.trim()), "args = [\"mcp\"]"];
    lines.map(|line| format!("{line}{newline}")).concat()
}

fn toml_fault(text: &str, error: &toml_edit::TomlError) -> Fault {
    let start = error.span().map_or(0, |span| span.start.min(text.len()));
    let before = &text[..start];
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|symbol| *symbol != '\n').count() + 1;
    Fault { line, column, why: error.message().to_owned() }
}
