//! The units of systemd.
//!
//! What lies there already and differs is replaced only with `--force`.

use super::super::shell::{Done, Shell, Stop};
use super::program;
use crate::config::config_home;
use rustix::process::geteuid;
use serde_json::json;
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

const USER: [Unit; 2] = [
    Unit { name: "staled.service", text: include_str!("../../../systemd/staled.service") },
    Unit { name: "staled.socket", text: include_str!("../../../systemd/staled.socket") },
];
const NAMESPACES: Unit = Unit {
    name: "staled.service.d/10-namespaces.conf",
    text: include_str!("../../../systemd/staled.service.d/10-namespaces.conf"),
};
const SYSTEM: [Unit; 2] = [
    Unit { name: "staled@.service", text: include_str!("../../../systemd/staled@.service") },
    Unit { name: "staled@.socket", text: include_str!("../../../systemd/staled@.socket") },
];

/// Where an administrator's units are.
const SYSTEM_FOLDER: &str = "/etc/systemd/system";

/// A file of systemd as it stands in the repository.
#[derive(Debug, Clone, Copy)]
struct Unit {
    name: &'static str,
    text: &'static str,
}

/// A file as it is to be, and what lies there.
#[derive(Debug)]
struct Planned {
    path: PathBuf,
    text: String,
    found: Found,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    Same,
    Other,
}

/// The units of systemd: the daemon is started by its socket, and made anew when it ends or hears nothing
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Nothing is enabled or started: the commands for that are printed. Files that are there and differ are left alone.
Exit codes: 0 installed, or so already; 2 not.

Example:
  staled install systemd
  staled install systemd --print
  staled install systemd --uninstall
  sudo staled install systemd --system --exec /usr/local/bin/staled")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(super) struct SystemdArgs {
    /// Templates for the users of a server, staled@USER, in /etc/systemd/system; by root
    #[arg(long)]
    system: bool,
    /// Namespaces around the user unit too, where users may make them
    #[arg(long, conflicts_with = "system")]
    namespaces: bool,
    /// Print the files and write nothing
    #[arg(long)]
    print: bool,
    /// The program that the unit starts [default: this one]
    #[arg(long, value_name = "PATH")]
    exec: Option<PathBuf>,
    /// Replace files that differ, or take them away too
    #[arg(long)]
    force: bool,
    /// Take the units away again
    #[arg(long, conflicts_with_all = ["exec", "print", "namespaces"])]
    uninstall: bool,
}

pub(super) fn run(args: &SystemdArgs, shell: &mut Shell) -> Done {
    if args.uninstall {
        return uninstall(args, shell);
    }
    let planned = plan(args)?;
    if args.print {
        return print(&planned, shell);
    }
    let others: Vec<_> = planned.iter().filter(|file| file.found == Found::Other).collect();
    if let Some(other) = others.first().filter(|_| !args.force) {
        let stop = Stop::failed(format!(
            "{} is there already and differs; nothing was written",
            other.path.display()
        ));
        return Err(
            stop.remedy("`staled install systemd --print` shows what it would be, --force replaces it")
        );
    }
    if args.namespaces {
        own_state()?;
    }
    for file in planned.iter().filter(|file| file.found != Found::Same) {
        write(file).map_err(|error| cannot_write(&file.path, &error))?;
    }
    tell(args, &planned, shell)
}

fn plan(args: &SystemdArgs) -> Result<Vec<Planned>, Stop> {
    let folder = if args.system { PathBuf::from(SYSTEM_FOLDER) } else { user_folder()? };
    let exec = exec(args)?;
    let mut units = if args.system { SYSTEM.to_vec() } else { USER.to_vec() };
    units.extend(args.namespaces.then_some(NAMESPACES));
    let planned = units.iter().map(|unit| {
        let (path, text) = (folder.join(unit.name), starting(unit.text, &exec));
        let found = match fs::read(&path) {
            Ok(bytes) if bytes == text.as_bytes() => Found::Same,
            Ok(_) => Found::Other,
            Err(error) if error.kind() == ErrorKind::NotFound => Found::Nothing,
            Err(error) => return Err(Stop::failed(format!("{}: {error}", path.display()))),
        };
        Ok(Planned { path, text, found })
    });
    planned.collect()
}

/// Takes away what a unit of ours is, whatever program it starts; all of them or none.
fn uninstall(args: &SystemdArgs, shell: &mut Shell) -> Done {
    let folder = if args.system { PathBuf::from(SYSTEM_FOLDER) } else { user_folder()? };
    let units = if args.system { SYSTEM.to_vec() } else { vec![USER[0], USER[1], NAMESPACES] };
    let mut there = Vec::new();
    for unit in units {
        let path = folder.join(unit.name);
        match fs::read_to_string(&path) {
            Ok(text) if args.force || is_ours(&text, unit.text) => there.push(path),
            Ok(_) => {
                let stop =
                    Stop::failed(format!("{} is not as we wrote it; nothing was removed", path.display()));
                return Err(stop.remedy("--force removes it"));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(Stop::failed(format!("{}: {error}", path.display()))),
        }
    }
    for path in &there {
        fs::remove_file(path)
            .map_err(|error| Stop::failed(format!("cannot remove {}: {error}", path.display())))?;
    }
    // The folder of the drop-in, when nothing else is in it.
    let _ = fs::remove_dir(folder.join("staled.service.d"));
    let user = if args.system { "" } else { " --user" };
    let units = if args.system { "'staled@*'" } else { "staled.socket staled.service" };
    let next = [format!("systemctl{user} disable --now {units}"), format!("systemctl{user} daemon-reload")];
    let next = if there.is_empty() { &next[..0] } else { &next[..] };
    if shell.json {
        let files: Vec<_> = there.iter().map(|path| json!({"path": path, "done": "removed"})).collect();
        shell.out.line(json!({"files": files, "next": next}))?;
        return Ok(0);
    }
    shell.out.lines(there.iter().map(|path| format!("removed  {}", path.display())))?;
    shell.out.flush()?;
    if there.is_empty() {
        shell.out.talk(&format!("no unit of ours is in {}", folder.display()));
    } else {
        shell.out.talk("next:");
        next.iter().for_each(|command| shell.out.talk(&format!("  {command}")));
    }
    Ok(0)
}

fn is_ours(text: &str, ours: &str) -> bool {
    let program = |line: &&str| !line.starts_with("ExecStart=");
    text.lines().filter(program).eq(ours.lines().filter(program))
}

fn user_folder() -> Result<PathBuf, Stop> {
    let config = config_home()
        .ok_or_else(|| Stop::failed("nowhere to put the units: set XDG_CONFIG_HOME, or HOME"))?;
    Ok(config.join("systemd/user"))
}

/// The program, as systemd spells a path.
fn exec(args: &SystemdArgs) -> Result<String, Stop> {
    let text = program::program(args.exec.as_deref(), "unit")?;
    let plain = |symbol: char| symbol.is_ascii_alphanumeric() || "/._-+@".contains(symbol);
    if text.chars().all(plain) {
        return Ok(text);
    }
    // `$` needs no second one here: variables are not expanded in the path of the program.
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    Ok(format!("\"{escaped}\""))
}

fn starting(text: &str, exec: &str) -> String {
    let lines = text.lines().map(|line| match line.strip_prefix("ExecStart=") {
        Some(command) => {
            let arguments = command.split_once(' ').map_or("", |(_, arguments)| arguments);
            format!("ExecStart={exec} {arguments}\n")
        }
        None => format!("{line}\n"),
    });
    lines.collect()
}

fn print(planned: &[Planned], shell: &mut Shell) -> Done {
    if shell.json {
        let files: Vec<_> =
            planned.iter().map(|file| json!({"path": file.path, "content": file.text})).collect();
        shell.out.line(json!({"files": files}))?;
        return Ok(0);
    }
    for file in planned {
        shell.out.line(format_args!("# {}", file.path.display()))?;
        shell.out.line(&file.text)?;
    }
    Ok(0)
}

/// The drop-in lets the daemon write to its state, which must be there before there is a daemon.
fn own_state() -> Result<(), Stop> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let home = home.ok_or_else(|| {
        Stop::failed("the namespaces let the daemon write below its home only, and there is none: set HOME")
    })?;
    let state = home.join(".local/state/staled");
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&state)
        .map_err(|error| cannot_write(&state, &error))
}

/// Beside and renamed: systemd never reads half a unit, and a link of somebody's is replaced, not followed.
fn write(file: &Planned) -> std::io::Result<()> {
    let folder = file.path.parent().expect("it is joined to a folder");
    fs::create_dir_all(folder)?;
    let mut name = file.path.clone().into_os_string();
    name.push(format!(".{}.new", std::process::id()));
    let aside = PathBuf::from(name);
    let written = fs::File::create_new(&aside).and_then(|mut new| {
        new.write_all(file.text.as_bytes())?;
        new.set_permissions(fs::Permissions::from_mode(0o644))?;
        new.sync_all()?;
        fs::rename(&aside, &file.path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&aside);
    }
    written
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Stop {
    let stop = Stop::failed(format!("cannot write {}: {error}", path.display()));
    if error.kind() == ErrorKind::PermissionDenied && !geteuid().is_root() && path.starts_with(SYSTEM_FOLDER)
    {
        return stop.remedy("--system is for root; without it the units are your own");
    }
    stop
}

fn tell(args: &SystemdArgs, planned: &[Planned], shell: &mut Shell) -> Done {
    let next: &[&str] = if args.system {
        &[
            "systemctl daemon-reload",
            "systemctl enable --now staled@USER.socket staled@USER.service",
            "export STALED_SOCKET=/run/staled/$USER/staled.sock",
        ]
    } else {
        &[
            "systemctl --user daemon-reload",
            "systemctl --user enable --now staled.socket staled.service",
            "loginctl enable-linger  # keeps it running while nobody is logged in",
        ]
    };
    let word = |found| match found {
        Found::Nothing => "written",
        Found::Same => "unchanged",
        Found::Other => "replaced",
    };
    if shell.json {
        let files: Vec<_> =
            planned.iter().map(|file| json!({"path": file.path, "done": word(file.found)})).collect();
        shell.out.line(json!({"files": files, "next": next}))?;
        return Ok(0);
    }
    shell.out.lines(planned.iter().map(|file| format!("{}  {}", word(file.found), file.path.display())))?;
    shell.out.flush()?;
    shell.out.talk("next:");
    next.iter().for_each(|command| shell.out.talk(&format!("  {command}")));
    Ok(0)
}
