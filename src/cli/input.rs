//! Reading what a command was given: a file, or `-` for standard input.

use super::shell::Stop;
use std::io::Read;
use std::path::Path;

/// The whole text.
pub(super) fn text(file: &Path) -> Result<String, Stop> {
    read(file).map_err(|error| Stop::failed(format!("cannot read {}: {error}", name(file))))
}

fn read(file: &Path) -> std::io::Result<String> {
    if file != Path::new("-") {
        return std::fs::read_to_string(file);
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map(|_| text)
}

/// How the input is called in sentences.
pub(super) fn name(file: &Path) -> String {
    if file == Path::new("-") {
        "standard input".to_owned()
    } else {
        super::words::harmless(&file.to_string_lossy())
    }
}

/// One JSON object, as it stands in the input.
pub(super) fn object(file: &Path) -> Result<serde_json::Map<String, serde_json::Value>, Stop> {
    let text = text(file)?;
    serde_json::from_str(&text).map_err(|error| {
        Stop::failed(format!("{} is not a JSON object: {error}", name(file)))
            .remedy("a context looks like {\"session\": \"s-01\", \"root\": \"/abs/path\", \"results\": […]}")
    })
}
