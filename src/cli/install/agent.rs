//! One agent's settings: where they are, what of ours stands in them, and what becomes of them.
//!
//! Everything is looked at before anything is written, so a text that cannot be edited leaves all of them as they were.

use super::super::shell::{Done, Shell, Stop};
use super::file::{Found, backup_of};
use super::json::{Dialect, Doc, Fault, Step};
use super::{hooks, lines, program, servers};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// How an agent keeps its settings.
#[derive(Debug)]
pub(in crate::cli) struct Agent {
    /// Its name on our command line.
    pub(in crate::cli) name: &'static str,
    /// The event at which it stops to hold a session.
    pub(in crate::cli) rests: &'static str,
    /// What no file tells of its hooks.
    pub(in crate::cli) unchecked: &'static str,
    /// The variable that names its folder, where it has one.
    pub(super) variable: Option<&'static str>,
    /// Its folder, below a home or a project.
    pub(super) folder: &'static str,
    /// The file in it that has the hooks.
    pub(super) settings: &'static str,
    pub(super) dialect: Dialect,
    /// The events that are wanted, each with its matcher.
    pub(super) events: &'static [(&'static str, Option<&'static str>)],
    /// How long it waits for a hook, in its own unit.
    pub(super) timeout: u64,
    /// Its hooks carry a name.
    pub(super) names_hooks: bool,
    /// Where it keeps the servers of the Model Context Protocol.
    pub(super) servers: fn(&Scope) -> Servers,
    /// Why its hooks do not run, whoever installed them, as far as files tell.
    pub(in crate::cli) off: fn(&Scope) -> Vec<String>,
    /// What is left for the user to do.
    pub(super) next: &'static [&'static str],
}

/// Whose settings are meant.
#[derive(Debug)]
pub(in crate::cli) struct Scope {
    /// The agent's folder.
    pub(in crate::cli) folder: PathBuf,
    /// What the folder is in: a home or a project; `None` where a variable names the folder itself.
    pub(super) around: Option<PathBuf>,
    /// Of one project.
    pub(super) project: bool,
}

/// A file with servers of the Model Context Protocol.
#[derive(Debug)]
pub(super) enum Servers {
    Json(PathBuf, Dialect),
    Toml(PathBuf),
}

/// What every agent's command takes.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(super) struct Options {
    /// The settings of the project that the working directory is in, instead of your own
    #[arg(long)]
    project: bool,
    /// The server for the Model Context Protocol too, `staled mcp`
    #[arg(long, conflicts_with = "uninstall")]
    mcp: bool,
    /// Print what would change and write nothing
    #[arg(long)]
    print: bool,
    /// Take our entries out again
    #[arg(long)]
    uninstall: bool,
    /// The program that the hooks run [default: this one]
    #[arg(long, value_name = "PATH", conflicts_with = "uninstall")]
    exec: Option<PathBuf>,
}

/// What stands in one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Hooks,
    Servers,
    TomlServers,
}

/// A file as it is to be.
struct Planned {
    found: Found,
    new: Option<String>,
    /// Something of ours stood in it before.
    had_ours: bool,
}

impl Agent {
    /// Where the settings of the user are.
    pub(in crate::cli) fn own(&self) -> Result<Scope, Stop> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(folder) = self.variable.and_then(variable) {
            return Ok(Scope { folder, around: None, project: false });
        }
        let home = variable("HOME").ok_or_else(|| Stop::failed("whose settings? set HOME"))?;
        Ok(Scope { folder: home.join(self.folder), around: Some(home), project: false })
    }

    fn of_project(&self) -> Result<Scope, Stop> {
        let here = std::env::current_dir()
            .map_err(|error| Stop::failed(format!("which project is this? {error}")))?;
        let top = here.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(&here);
        Ok(Scope { folder: top.join(self.folder), around: Some(top.to_owned()), project: true })
    }

    /// The file that has the hooks.
    pub(in crate::cli) fn settings(&self, scope: &Scope) -> PathBuf {
        scope.folder.join(self.settings)
    }

    /// The events at which a hook of ours belongs.
    pub(in crate::cli) fn wanted(&self) -> impl Iterator<Item = &'static str> {
        self.events.iter().map(|(event, _)| *event)
    }

    /// The file that has the hooks, as it can be edited; an error names the place in it.
    pub(in crate::cli) fn parse(&self, text: &str) -> Result<Doc, Fault> {
        Doc::parse(text, self.dialect)
    }
}

pub(super) fn run(agent: &Agent, options: &Options, shell: &mut Shell) -> Done {
    let scope = if options.project { agent.of_project()? } else { agent.own()? };
    let program =
        if options.uninstall { None } else { Some(program::program(options.exec.as_deref(), "hook")?) };
    if let Some(program) = program.as_deref().filter(|program| !program::is_ours(program)) {
        // What is not known again could never be taken out.
        return Err(Stop::failed(format!("{program} is not called staled, by which our hooks are known"))
            .remedy("--exec PATH may name a link to it that is called so"));
    }
    let planned = plan(agent, options, &scope, program.as_deref())?;
    if options.print {
        return print(&planned, shell);
    }
    for file in planned.iter().filter(|file| file.changes()) {
        file.found.write(file.new.as_deref(), program.is_some() && !file.had_ours)?;
    }
    if scope.around.is_some() && planned.iter().any(|file| file.changes() && file.new.is_none()) {
        // The agent's folder was made for it, if nothing else has come into it since. No other folder was.
        let _ = std::fs::remove_dir(&scope.folder);
    }
    tell(agent, &scope, &planned, program.is_some(), shell)
}

/// The files, each once, and what of ours belongs in them.
fn files(agent: &Agent, options: &Options, scope: &Scope) -> Vec<(PathBuf, Dialect, Vec<Part>)> {
    let mut files = vec![(agent.settings(scope), agent.dialect, vec![Part::Hooks])];
    if options.mcp || options.uninstall {
        match (agent.servers)(scope) {
            Servers::Json(path, _) if path == files[0].0 => files[0].2.push(Part::Servers),
            Servers::Json(path, dialect) => files.push((path, dialect, vec![Part::Servers])),
            Servers::Toml(path) => files.push((path, Dialect::Strict, vec![Part::TomlServers])),
        }
    }
    files
}

fn plan(
    agent: &Agent,
    options: &Options,
    scope: &Scope,
    program: Option<&str>,
) -> Result<Vec<Planned>, Stop> {
    let planned = files(agent, options, scope).into_iter().map(|(path, dialect, parts)| {
        let found = Found::read(path)?;
        let refused = |fault: Fault| refused(&found.path, &fault);
        let (new, had_ours) = if parts == [Part::TomlServers] {
            servers::toml(found.text.as_deref(), found.backup.as_deref(), program).map_err(refused)?
        } else {
            edited(agent, &parts, &found, dialect, program).map_err(refused)?
        };
        Ok(Planned { found, new, had_ours })
    });
    planned.collect()
}

/// The text of a file of JSON with our entries in it or, without a program, out of it; and whether any was in it.
fn edited(
    agent: &Agent,
    parts: &[Part],
    found: &Found,
    dialect: Dialect,
    program: Option<&str>,
) -> Result<(Option<String>, bool), Fault> {
    let mut doc = Doc::parse(found.text.as_deref().unwrap_or_default(), dialect)?;
    if parts.contains(&Part::Hooks) {
        // What cannot be read as hooks is not said to be without ours.
        hooks::check(&doc, agent)?;
    }
    let had_ours = !hooks::own(&doc, agent).is_empty() || servers::own(&doc).is_some();
    if let Some(program) = program {
        for part in parts {
            match part {
                Part::Hooks => hooks::install(&mut doc, agent, program),
                Part::Servers | Part::TomlServers => servers::install(&mut doc, program)?,
            }
        }
        return Ok((Some(doc.into_text()), had_ours));
    }
    if !had_ours {
        return Ok((found.text.clone(), false));
    }
    let before = found.backup.as_deref().and_then(|text| Doc::parse(text, dialect).ok());
    for part in parts {
        match part {
            Part::Hooks => hooks::uninstall(&mut doc, agent, before.as_ref()),
            Part::Servers | Part::TomlServers => servers::uninstall(&mut doc, before.as_ref())?,
        }
    }
    Ok((left(doc, found, before.as_ref()), true))
}

/// What is left when ours is out: the very bytes that were there before, where it says the same as they did.
fn left(doc: Doc, found: &Found, before: Option<&Doc>) -> Option<String> {
    // As text, for maps are equal in any order. A value has no comments: where there are some, all but the blanks counts.
    let text = |doc: &Doc| (doc.value().to_string(), doc.commented());
    if before.map(text) == Some(text(&doc)) {
        return found.backup.clone();
    }
    // A file that was made for us alone goes with us.
    let made = before.is_none() && doc.blank(&[]).is_some_and(|blank| blank.trim().is_empty());
    (!made).then(|| doc.into_text())
}

fn refused(path: &Path, fault: &Fault) -> Stop {
    let Fault { line, column, why } = fault;
    Stop::failed(format!("{}:{line}:{column}: {why}; nothing was written", path.display()))
        .remedy("mend that line, then run it again")
}

impl Planned {
    fn changes(&self) -> bool {
        self.new != self.found.text
    }

    fn done(&self) -> &'static str {
        match (&self.new, self.changes()) {
            (_, false) => "unchanged",
            (None, true) => "removed",
            (Some(_), true) => "written",
        }
    }
}

fn print(planned: &[Planned], shell: &mut Shell) -> Done {
    if shell.json {
        let files: Vec<_> =
            planned.iter().map(|file| json!({"path": file.found.path, "content": file.new})).collect();
        shell.out.line(json!({ "files": files }))?;
        return Ok(0);
    }
    for file in planned {
        let unchanged = if file.changes() { "" } else { "  unchanged" };
        shell.out.line(format_args!("# {}{unchanged}", file.found.path.display()))?;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        if file.changes() {
            shell.out.lines(lines::changed(&text(&file.found.text), &text(&file.new)))?;
        }
    }
    Ok(0)
}

fn tell(agent: &Agent, scope: &Scope, planned: &[Planned], installed: bool, shell: &mut Shell) -> Done {
    let mut notes = if installed { (agent.off)(scope) } else { Vec::new() };
    let kept = planned.iter().filter(|file| !installed && file.changes() && file.found.backup.is_some());
    notes.extend(kept.filter(|file| file.new != file.found.backup).map(|file| {
        let (path, backup) = (file.found.path.display(), backup_of(&file.found.path));
        format!("{path} has changed since; what it was before is in {}", backup.display())
    }));
    let next = if installed { agent.next } else { &[] };
    if shell.json {
        let files: Vec<_> =
            planned.iter().map(|file| json!({"path": file.found.path, "done": file.done()})).collect();
        shell.out.line(json!({"files": files, "notes": notes, "next": next}))?;
        return Ok(0);
    }
    shell.out.lines(planned.iter().map(|file| format!("{}  {}", file.done(), file.found.path.display())))?;
    shell.out.flush()?;
    notes.iter().for_each(|note| shell.out.talk(&format!("note: {note}")));
    if !next.is_empty() {
        shell.out.talk("next:");
        next.iter().for_each(|line| shell.out.talk(&format!("  {line}")));
    }
    Ok(0)
}

/// Whether a flag is set in a file of JSON, `None` when it says nothing of it, or cannot be read.
pub(super) fn flag(path: &Path, dialect: Dialect, keys: &[&str]) -> Option<bool> {
    let text = std::fs::read_to_string(path).ok()?;
    let doc = Doc::parse(&text, dialect).ok()?;
    let path: Vec<Step<'_>> = keys.iter().map(|key| Step::Key(key)).collect();
    doc.get(&path).as_ref().and_then(Value::as_bool)
}
