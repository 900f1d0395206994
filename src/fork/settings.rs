//! What a repository and its user set, read without running anything of it.

use super::git::{Git, GitError, failed};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

impl Git {
    /// Has a command ignore what the user of a repository wants ignored.
    pub fn ignoring(&self, gitdir: &Path, work_tree: &Path, command: &mut Command) -> Result<(), GitError> {
        if let Some(excludes) = self.excludes(gitdir, work_tree)? {
            command.env("GIT_CONFIG_COUNT", "1");
            command.env("GIT_CONFIG_KEY_0", "core.excludesFile").env("GIT_CONFIG_VALUE_0", excludes);
        }
        Ok(())
    }

    /// What holds in a repository for its user, whichever file says it: the last value of each key that matches. Reading
    /// runs nothing.
    pub fn effective(&self, gitdir: &Path, keys: &str) -> Result<Vec<(String, Vec<u8>)>, GitError> {
        let mut command = self.plain();
        command.env_remove("GIT_CONFIG_NOSYSTEM").env_remove("GIT_CONFIG_GLOBAL");
        match &self.home {
            Some(home) => drop(command.env("HOME", home)),
            None => {
                let ours = ["HOME", "XDG_CONFIG_HOME"];
                let ours = ours.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
                command.envs(ours);
            }
        }
        command.env("GIT_DIR", gitdir).args(["-c", "safe.directory=*", "config", "-z", "--get-regexp", keys]);
        let output = self.output("read the configuration of a repository", &mut command, &[])?;
        if !matches!(output.status.code(), Some(0 | 1)) {
            return Err(failed("read the configuration of a repository", &output));
        }
        let mut found: Vec<(String, Vec<u8>)> = Vec::new();
        for line in output.stdout.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
            // A key without a value is true.
            let end = line.iter().position(|byte| *byte == b'\n').unwrap_or(line.len());
            let value = line.get(end + 1..).unwrap_or(b"true").to_vec();
            let key = String::from_utf8_lossy(&line[..end]).into_owned();
            found.retain(|(known, _)| *known != key);
            found.push((key, value));
        }
        Ok(found)
    }

    /// The file that names what its user wants ignored in every repository, if there may be one.
    pub fn excludes(&self, gitdir: &Path, work_tree: &Path) -> Result<Option<PathBuf>, GitError> {
        let set = self.effective(gitdir, "^core\\.excludesfile$")?.pop();
        let home = self.home.clone().or_else(|| std::env::var_os("HOME").map(PathBuf::from));
        if let Some((_, value)) = set {
            let value = Path::new(<OsStr as OsStrExt>::from_bytes(&value));
            return Ok(match (value.strip_prefix("~"), home) {
                (Ok(below), Some(home)) => Some(home.join(below)),
                _ if value.as_os_str().is_empty() => None,
                _ => Some(work_tree.join(value)),
            });
        }
        let apart =
            std::env::var_os("XDG_CONFIG_HOME").filter(|folder| self.home.is_none() && !folder.is_empty());
        let folder = apart.map(PathBuf::from).or_else(|| home.map(|home| home.join(".config")));
        Ok(folder.map(|folder| folder.join("git/ignore")))
    }
}
