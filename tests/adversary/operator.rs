//! The second process: this test binary again, which reads operations from stdin and acknowledges each on stdout
//! when its last system call has returned.

use super::head;
use super::layout::{self, content, remove, target_path};
use super::operations::{HeadMove, Operation};
use super::trees::RULES;
use rustix::fs::{CWD, FileType, Mode, OFlags, RenameFlags, mknodat, renameat_with};
use std::fs::{File, FileTimes, OpenOptions, Permissions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::SystemTime;

/// Names the world; without it the test below is no operator.
pub(super) const WORLD: &str = "STALED_FUZZ_OPERATOR";
/// Every acknowledgement begins so, for the test runner talks on stdout too.
pub(super) const ACK: &str = "ack ";

const MAPPER: &str = "
import mmap, sys
for line in sys.stdin:
    path, text = line.rstrip('\\n').split('\\t')
    try:
        with open(path, 'r+b') as file:
            mapped = mmap.mmap(file.fileno(), 0)
        data = text.encode() + b'\\n'
        size = min(len(data), len(mapped))
        mapped[:size // 2] = data[:size // 2]
        mapped[size // 2:size] = data[size // 2:size]
        mapped.close()
        print('done', flush=True)
    except Exception as error:
        print('refused', type(error).__name__, flush=True)
";

#[test]
fn operate() {
    let Some(world) = std::env::var_os(WORLD).map(PathBuf::from) else { return };
    let commits = head::commits(&world);
    let mut operator = Operator { world, commits, held: None, mapper: Mapper::start() };
    for line in io::stdin().lines() {
        let line = line.expect("the test speaks text");
        let operation: Operation = serde_json::from_str(&line).expect("the test sends operations");
        let outcome = match operator.perform(operation) {
            Ok(()) => "done".to_owned(),
            Err(error) => format!("refused {error}"),
        };
        writeln!(io::stdout(), "{ACK}{}", outcome.replace('\n', " ")).expect("the test listens");
    }
}

struct Operator {
    world: PathBuf,
    commits: Vec<String>,
    held: Option<File>,
    mapper: Option<Mapper>,
}

impl Operator {
    fn at(&self, path: &str) -> PathBuf {
        self.world.join(path)
    }

    fn perform(&mut self, operation: Operation) -> io::Result<()> {
        match operation {
            Operation::Truncate { path, version } => write(&self.at(&path), version),
            Operation::Overwrite { path, version } => overwrite(&open(&self.at(&path))?, version),
            Operation::Append { path } => open(&self.at(&path))?.write_all_at(b"more\n", 20),
            Operation::WriteTwice { path, first, second } => {
                let file = open(&self.at(&path))?;
                file.write_all_at(&content(first), 0)?;
                file.write_all_at(&content(second), 0)
            }
            Operation::SaveLocal { path, version } => self.save(&path, &format!("{path}~"), version),
            Operation::SaveForeign { path, version } => self.save(&path, "foreign/unsaved", version),
            Operation::SaveWhileHeld { path, version } => {
                self.held = Some(open(&self.at(&path))?);
                self.save(&path, &format!("{path}~"), version)
            }
            Operation::HeldWrite { version } => match &self.held {
                Some(file) => overwrite(file, version),
                None => Err(io::ErrorKind::NotFound.into()),
            },
            Operation::WriteKeepingTime { path, version } => {
                let file = open(&self.at(&path))?;
                let before = file.metadata()?.modified()?;
                overwrite(&file, version)?;
                file.set_times(FileTimes::new().set_modified(before))
            }
            Operation::CopyKeepingTime { path, version, tool } => {
                self.copy_keeping_time(&path, version, tool)
            }
            Operation::Map { path, version } => match &mut self.mapper {
                Some(mapper) => mapper.store(&self.world.join(path), version),
                None => Err(io::Error::other("there is no python3")),
            },
            Operation::Head(moved) => self.move_head(moved),
            Operation::Rules { path, text, atomic } => {
                let path = self.at(&path);
                match RULES[text] {
                    "" => remove(&path),
                    text => replace(&path, text, atomic),
                }
            }
            Operation::Chain { folder, version } => {
                std::fs::create_dir_all(self.at(&folder))?;
                let above = Path::new(&folder).ancestors().take(3);
                above.into_iter().try_for_each(|folder| write(&self.world.join(folder).join("x"), version))
            }
            Operation::CopyOver { from, to } => {
                let (from, to) = (self.at(&from).join("."), self.at(&to));
                let copied = Command::new("cp").arg("-a").arg(from).arg(to).stderr(Stdio::null()).status()?;
                if copied.success() { Ok(()) } else { Err(io::Error::other("cp refused")) }
            }
            Operation::Reset => layout::build(&self.world),
            named => self.rename(named),
        }
    }

    fn rename(&self, operation: Operation) -> io::Result<()> {
        match operation {
            Operation::Unlink { path } => std::fs::remove_file(self.at(&path)),
            Operation::Recreate { path, version } => {
                remove(&self.at(&path))?;
                std::fs::create_dir_all(self.at(&path).parent().expect("files are in folders"))?;
                write(&self.at(&path), version)
            }
            Operation::Chmod { path, mode } => {
                open(&self.at(&path))?.set_permissions(Permissions::from_mode(mode))
            }
            Operation::Touch { path } => open(&self.at(&path))?.set_modified(SystemTime::now()),
            Operation::Fifo { path } => {
                std::fs::remove_file(self.at(&path))?;
                Ok(mknodat(CWD, self.at(&path), FileType::Fifo, Mode::from(0o600), 0)?)
            }
            Operation::FileToFolder { path } => {
                std::fs::remove_file(self.at(&path))?;
                std::fs::create_dir(self.at(&path))
            }
            Operation::Link { path, name } => {
                remove(&self.at(&name))?;
                std::fs::hard_link(self.at(&path), self.at(&name))
            }
            Operation::LinkOver { path, name } => {
                let temporary = self.at(&format!("{name}~"));
                std::fs::hard_link(self.at(&path), &temporary)?;
                // Two names of one inode stay two: rename does nothing then.
                let renamed = std::fs::rename(&temporary, self.at(&name));
                renamed.and_then(|()| remove(&temporary))
            }
            Operation::Retarget { link, target, atomic } => self.retarget(&link, &target, atomic),
            Operation::Rename { from, to } => std::fs::rename(self.at(&from), self.at(&to)),
            folder => self.reshape(folder),
        }
    }

    fn reshape(&self, operation: Operation) -> io::Result<()> {
        let aside = |path: &str| self.at(&format!("{path}.aside"));
        match operation {
            Operation::RenameAway { path } => std::fs::rename(self.at(&path), aside(&path)),
            Operation::RenameBack { path } => std::fs::rename(aside(&path), self.at(&path)),
            Operation::ThereAndBack { path } => {
                std::fs::rename(self.at(&path), self.at("foreign/passing"))?;
                std::fs::rename(self.at("foreign/passing"), self.at(&path))
            }
            Operation::Exchange { one, other } => {
                Ok(renameat_with(CWD, self.at(&one), CWD, self.at(&other), RenameFlags::EXCHANGE)?)
            }
            Operation::Swap { one, other } => {
                remove(&self.at("foreign/passing"))?;
                std::fs::rename(self.at(&one), self.at("foreign/passing"))?;
                std::fs::rename(self.at(&other), self.at(&one))?;
                std::fs::rename(self.at("foreign/passing"), self.at(&other))
            }
            Operation::RemoveTree { folder } => remove(&self.at(&folder)),
            Operation::Rebuild { folder, version } => {
                remove(&self.at(&folder))?;
                layout::rebuild(&self.world, &folder, version)
            }
            Operation::RenameAndRebuild { folder, version } => {
                remove(&aside(&folder))?;
                std::fs::rename(self.at(&folder), aside(&folder))?;
                layout::rebuild(&self.world, &folder, version)
            }
            Operation::FolderToLink { folder } => {
                let name = Path::new(&folder).file_name().expect("folders have names").to_string_lossy();
                if self.at(&folder).is_symlink() {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                remove(&aside(&folder))?;
                std::fs::rename(self.at(&folder), aside(&folder))?;
                symlink(format!("{name}.aside"), self.at(&folder))
            }
            Operation::LinkToFolder { folder } => {
                if !self.at(&folder).is_symlink() {
                    return Err(io::ErrorKind::NotFound.into());
                }
                std::fs::remove_file(self.at(&folder))?;
                std::fs::rename(aside(&folder), self.at(&folder))
            }
            Operation::MakeAndRemoveFolders { folder } => {
                std::fs::create_dir_all(self.at(&folder))?;
                std::fs::remove_dir(self.at(&folder))
            }
            other => unreachable!("{other:?} is performed elsewhere"),
        }
    }

    fn save(&self, path: &str, temporary: &str, version: u8) -> io::Result<()> {
        write(&self.at(temporary), version)?;
        std::fs::rename(self.at(temporary), self.at(path))
    }

    fn copy_keeping_time(&self, path: &str, version: u8, tool: u8) -> io::Result<()> {
        let (path, origin) = (self.at(path), self.at("foreign/origin"));
        write(&origin, version)?;
        // The tools would wait for a reader where a FIFO stands; `open` refuses.
        let modified = open(&path)?.metadata()?.modified()?;
        File::options().write(true).open(&origin)?.set_modified(modified)?;
        let mut command = match tool {
            0 => Command::new("cp"),
            1 => Command::new("rsync"),
            _ => {
                std::fs::write(&path, content(version))?;
                Command::new("touch")
            }
        };
        command.arg(["-p", "-t", "-r"][usize::from(tool)]).arg(origin).arg(path).stderr(Stdio::null());
        if command.status()?.success() { Ok(()) } else { Err(io::Error::other("the tool refused")) }
    }

    fn retarget(&self, link: &str, target: &str, atomic: bool) -> io::Result<()> {
        let (path, temporary) = (self.at(link), self.at(&format!("{link}~")));
        let target = target_path(&self.world, target);
        if atomic {
            remove(&temporary)?;
            symlink(target, &temporary)?;
            return std::fs::rename(temporary, path);
        }
        remove(&path)?;
        symlink(target, path)
    }

    fn move_head(&self, moved: HeadMove) -> io::Result<()> {
        let git = self.at("r/repo/.git");
        let commit = |index: usize| &self.commits[index];
        match moved {
            HeadMove::Branch { branch, commit: index, atomic } => {
                let path = git.join("refs/heads").join(branch);
                replace(&path, &format!("{}\n", commit(index)), atomic)
            }
            HeadMove::Symbolic { branch } => {
                replace(&git.join("HEAD"), &format!("ref: refs/heads/{branch}\n"), true)
            }
            HeadMove::Detach { commit: index } => {
                replace(&git.join("HEAD"), &format!("{}\n", commit(index)), true)
            }
            HeadMove::Pack { commit: index } => {
                let lines =
                    ["main", "other"].map(|branch| format!("{} refs/heads/{branch}\n", commit(index)));
                let header = "# pack-refs with: peeled fully-peeled sorted \n";
                replace(&git.join("packed-refs"), &format!("{header}{}", lines.concat()), true)?;
                ["main", "other"].iter().try_for_each(|branch| remove(&git.join("refs/heads").join(branch)))
            }
            HeadMove::Git { arguments } => {
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                let ran = head::git(&self.at("r/repo"), &arguments);
                ran.map(drop).ok_or_else(|| io::Error::other("git refused"))
            }
            HeadMove::Remove => std::fs::rename(self.at("r/repo"), self.at("r/repo.aside"))
                .and_then(|()| std::fs::rename(self.at("r/repo.aside"), self.at("r/repo"))),
        }
    }
}

/// As git does it: beside, then renamed over.
fn replace(path: &Path, text: &str, atomic: bool) -> io::Result<()> {
    if !atomic {
        return std::fs::write(path, text);
    }
    let lock = path.with_extension("lock");
    std::fs::write(&lock, text)?;
    std::fs::rename(lock, path)
}

/// Without waiting for a reader where a FIFO stands.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    options
}

fn open(path: &Path) -> io::Result<File> {
    options().read(true).open(path).and_then(|file| {
        let regular = file.metadata()?.is_file();
        if regular { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
    })
}

fn write(path: &Path, version: u8) -> io::Result<()> {
    options().create(true).truncate(true).open(path)?.write_all(&content(version))
}

fn overwrite(file: &File, version: u8) -> io::Result<()> {
    let bytes = content(version);
    file.write_all_at(&bytes, 0)?;
    if file.metadata()?.len() == bytes.len() as u64 { Ok(()) } else { file.set_len(bytes.len() as u64) }
}

/// A python of our own, for mapping a file takes unsafe code in Rust.
struct Mapper {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Mapper {
    fn start() -> Option<Self> {
        let mut child = Command::new("python3")
            .args(["-c", MAPPER])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let (input, output) = (child.stdin.take()?, BufReader::new(child.stdout.take()?));
        Some(Self { child, input, output })
    }

    fn store(&mut self, path: &Path, version: u8) -> io::Result<()> {
        if !path.metadata()?.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let text = String::from_utf8_lossy(&content(version)).trim_end().to_owned();
        writeln!(self.input, "{}\t{text}", path.display())?;
        let mut answer = String::new();
        self.output.read_line(&mut answer)?;
        if answer.starts_with("done") { Ok(()) } else { Err(io::Error::other(answer)) }
    }
}

impl Drop for Mapper {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
