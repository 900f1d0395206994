//! Git, the one program that is run: for making repositories of our own, and for reading those of others.
//!
//! Promise: it runs nothing that a repository or a user configured. Hooks, filters, the fsmonitor and prompts are off, no
//! configuration but the repository's own is read, and a daemon that has confined itself may execute git's own programs
//! and nothing else.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// `ls-files --deduplicate` came with it.
const OLDEST: (u32, u32) = (2, 31);

/// The git of this machine.
#[derive(Debug, Clone)]
pub struct Git {
    program: PathBuf,
    /// Where its own programs are.
    exec_path: PathBuf,
    timeout: Duration,
    /// Whose configuration the user's is; of whoever runs this process when there is none.
    pub(super) home: Option<PathBuf>,
}

/// Git did not do it.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is none.
    #[error(
        "git is not on the PATH of the daemon: install git 2.31 or newer and start the daemon again, or fork with mode \"copy\""
    )]
    Missing,
    /// It is too old.
    #[error(
        "git {found} is too old: forks need 2.31 or newer; install that and start the daemon again, or fork with mode \"copy\""
    )]
    TooOld {
        /// What there is.
        found: String,
    },
    /// It cannot be run.
    #[error("git cannot be run ({}): {source}", program.display())]
    Run {
        /// Which.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It failed.
    #[error("git could not {what} ({status}): {said}")]
    Failed {
        /// What it was to do.
        what: &'static str,
        /// How it ended.
        status: String,
        /// Its last words.
        said: String,
    },
    /// It took too long.
    #[error("git did not {what} within {seconds} s")]
    TimedOut {
        /// What it was to do.
        what: &'static str,
        /// The limit.
        seconds: u64,
    },
}

impl GitError {
    /// The code that a client is told.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Missing | Self::TooOld { .. } | Self::Run { .. } => "fork_unavailable",
            Self::Failed { .. } | Self::TimedOut { .. } => "fork_failed",
        }
    }
}

impl Git {
    /// The git on the `PATH`, if it is new enough. Runs it twice.
    pub fn find() -> Result<Self, GitError> {
        let program = on_path("git").ok_or(GitError::Missing)?;
        let found = Self { program, exec_path: PathBuf::new(), timeout: Duration::from_secs(10), home: None };
        let version = found.run("say its version", found.plain().arg("--version"))?;
        let version = String::from_utf8_lossy(&version).trim().trim_start_matches("git version ").to_owned();
        if numbers(&version).is_none_or(|numbers| numbers < OLDEST) {
            return Err(GitError::TooOld { found: version });
        }
        let exec_path = found.run("say where its programs are", found.plain().arg("--exec-path"))?;
        let exec_path = PathBuf::from(String::from_utf8_lossy(&exec_path).trim());
        Ok(Self { exec_path, ..found })
    }

    /// The same with another limit for each step.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Its version, as far as it matters.
    pub fn version(&self) -> Result<(u32, u32), GitError> {
        let version = self.run("say its version", self.plain().arg("--version"))?;
        let version = String::from_utf8_lossy(&version);
        Ok(numbers(version.trim().trim_start_matches("git version ")).unwrap_or_default())
    }

    /// The user's own git, with all that the user configured: only for asking what that is.
    #[must_use]
    pub fn as_user(&self, tree: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(tree).stdin(Stdio::null());
        for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_NAMESPACE"] {
            command.env_remove(variable);
        }
        command
    }

    /// The same with another home to read the user's configuration in.
    #[must_use]
    pub fn with_home(self, home: PathBuf) -> Self {
        Self { home: Some(home), ..self }
    }

    /// What must be executable for it to run: its programs and what loads them.
    #[must_use]
    pub fn executables(&self) -> Vec<PathBuf> {
        let program = std::fs::canonicalize(&self.program).unwrap_or_else(|_| self.program.clone());
        let loader = loader(&program).ok().flatten();
        [program, self.exec_path.clone()].into_iter().chain(loader).collect()
    }

    /// A git that knows nothing but what it is told.
    pub(super) fn plain(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear();
        command.envs([
            ("LC_ALL", "C"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_NO_LAZY_FETCH", "1"),
            // Stronger than `protocol.<name>.allow` of a repository; a git that knows no GIT_NO_LAZY_FETCH would ask a
            // remote that is a program.
            ("GIT_ALLOW_PROTOCOL", ""),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
        ]);
        command.current_dir("/").stdin(Stdio::null());
        command
    }

    /// A git for one repository: its own folder, and its work tree where it needs one. Neither is looked for.
    #[must_use]
    pub fn of(&self, gitdir: &Path, work_tree: Option<&Path>) -> Command {
        let mut command = self.tame();
        command.env("GIT_DIR", gitdir);
        if let Some(work_tree) = work_tree {
            command.env("GIT_WORK_TREE", work_tree).current_dir(work_tree);
        }
        command
    }

    /// A git that looks for the repository that this folder is in.
    #[must_use]
    pub fn within(&self, folder: &Path) -> Command {
        let mut command = self.tame();
        command.current_dir(folder);
        command
    }

    pub(super) fn tame(&self) -> Command {
        let mut command = self.plain();
        for setting in [
            "core.hooksPath=/dev/null",
            "core.fsmonitor=false",
            "core.untrackedCache=false",
            "core.attributesFile=/dev/null",
            "core.pager=cat",
            "core.sshCommand=false",
            "core.alternateRefsCommand=",
            "credential.helper=",
            "protocol.allow=never",
            "gc.auto=0",
            "maintenance.auto=false",
            "submodule.recurse=false",
            "commit.gpgSign=false",
            "safe.directory=*",
            "advice.detachedHead=false",
        ] {
            command.args(["-c", setting]);
        }
        command
    }

    /// Runs it, and gives what it printed.
    pub fn run(&self, what: &'static str, command: &mut Command) -> Result<Vec<u8>, GitError> {
        let output = self.output(what, command, &[])?;
        if output.status.success() { Ok(output.stdout) } else { Err(failed(what, &output)) }
    }

    /// The same, with what it said besides, which a success may hide.
    pub(super) fn run_aloud(
        &self,
        what: &'static str,
        command: &mut Command,
    ) -> Result<(Vec<u8>, String), GitError> {
        let output = self.output(what, command, &[])?;
        if !output.status.success() {
            return Err(failed(what, &output));
        }
        Ok((output.stdout, String::from_utf8_lossy(&output.stderr).into_owned()))
    }

    /// Runs it with this on its standard input.
    pub fn feed(&self, what: &'static str, command: &mut Command, input: &[u8]) -> Result<Vec<u8>, GitError> {
        let output = self.output(what, command.stdin(Stdio::piped()), input)?;
        if output.status.success() { Ok(output.stdout) } else { Err(failed(what, &output)) }
    }

    /// Whether it ended with 0; any other code than 0 and 1 is an error.
    pub fn asks(&self, what: &'static str, command: &mut Command) -> Result<bool, GitError> {
        let output = self.output(what, command, &[])?;
        match output.status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(failed(what, &output)),
        }
    }

    /// Whether it ended with 0, and what it printed; any other code than 0 and 1 is an error.
    pub fn tells(&self, what: &'static str, command: &mut Command) -> Result<(bool, Vec<u8>), GitError> {
        let output = self.output(what, command, &[])?;
        match output.status.code() {
            Some(0) => Ok((true, output.stdout)),
            Some(1) => Ok((false, output.stdout)),
            _ => Err(failed(what, &output)),
        }
    }

    pub(super) fn output(
        &self,
        what: &'static str,
        command: &mut Command,
        input: &[u8],
    ) -> Result<Output, GitError> {
        let run = |source| GitError::Run { program: self.program.clone(), source };
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(run)?;
        // Each pipe is emptied by a thread of its own, so that neither can fill up while the other is waited for.
        let (mut stdin, mut stdout, mut stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        std::thread::scope(|scope| {
            let input = scope.spawn(move || stdin.as_mut().map(|pipe| io::Write::write_all(pipe, input)));
            let out = scope.spawn(move || drain(stdout.as_mut()));
            let err = scope.spawn(move || drain(stderr.as_mut()));
            let status = self.wait(what, &mut child);
            // One that stopped reading says by its status why.
            drop(input.join());
            let (out, err) = (out.join(), err.join());
            Ok(Output { status: status?, stdout: out.unwrap_or_default(), stderr: err.unwrap_or_default() })
        })
    }

    fn wait(&self, what: &'static str, child: &mut Child) -> Result<std::process::ExitStatus, GitError> {
        let began = Instant::now();
        let mut pause = Duration::from_micros(200);
        loop {
            let run = |source| GitError::Run { program: self.program.clone(), source };
            if let Some(status) = child.try_wait().map_err(run)? {
                return Ok(status);
            }
            if began.elapsed() > self.timeout {
                drop(child.kill());
                drop(child.wait());
                return Err(GitError::TimedOut { what, seconds: self.timeout.as_secs() });
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }
}

fn drain(pipe: Option<&mut impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // What was read before an error is what there is.
        drop(pipe.read_to_end(&mut bytes));
    }
    bytes
}

pub(super) fn failed(what: &'static str, output: &Output) -> GitError {
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim().lines().last().unwrap_or("it said nothing").chars().take(500).collect();
    GitError::Failed { what, status: output.status.to_string(), said }
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

fn numbers(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split('.').map(|part| part.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// The program that a program names as its loader, in its ELF header; none for one that needs none.
fn loader(program: &Path) -> io::Result<Option<PathBuf>> {
    let file = std::fs::File::open(program)?;
    let mut header = [0; 64];
    file.read_exact_at(&mut header, 0)?;
    let number = |at: usize, len: usize| {
        header[at..at + len].iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
    };
    // 64 bits, little endian: what Linux machines are.
    if &header[..6] != b"\x7fELF\x02\x01" {
        return Ok(None);
    }
    let (table, size, entries) = (number(32, 8), number(54, 2), number(56, 2));
    for entry in 0..entries {
        let mut segment = [0; 56];
        file.read_exact_at(&mut segment, table + entry * size)?;
        let number =
            |at: usize| u64::from_le_bytes(segment[at..at + 8].try_into().expect("because it is 8 bytes"));
        if segment[..4] == 3_u32.to_le_bytes() {
            let mut name = vec![0; number(32).min(4_096) as usize];
            file.read_exact_at(&mut name, number(8))?;
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            return Ok(Some(PathBuf::from(<OsStr as OsStrExt>::from_bytes(name))));
        }
    }
    Ok(None)
}
