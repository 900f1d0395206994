//! Filesystems and moments that lie: writers without events, mounts, filesystems that do not report, clocks that jump,
//! limits that are reached. None of them may make the daemon say fresh about what is not.

mod clocks;
mod exchanges;
pub(crate) mod jumps;
mod kinds;
pub(crate) mod limits;
pub(crate) mod mounts;
mod renames;
mod silent;
mod stopped;
mod writers;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Another process that holds files open or mapped, and does one thing at a time.
pub(crate) struct Writer {
    child: Child,
    orders: ChildStdin,
    done: BufReader<ChildStdout>,
}

const WRITER: &str = r#"
import mmap, os, sys
held, mapped = [], []
for order in sys.stdin:
    word, _, rest = order.rstrip("\n").partition(" ")
    if word == "open": held.append(os.open(rest, os.O_RDWR))
    elif word == "read": held.append(os.open(rest, os.O_RDONLY))
    elif word == "append": held.append(os.open(rest, os.O_WRONLY | os.O_APPEND))
    elif word == "write": os.write(held[-1], rest.encode())
    elif word == "map": mapped.append(mmap.mmap(held[-1], 0))
    elif word == "store": mapped[-1][0:len(rest)] = rest.encode()
    elif word == "close": os.close(held.pop())
    elif word == "unmap": mapped.pop().close()
    print("done", flush=True)
"#;

impl Writer {
    pub(crate) fn start() -> Self {
        let mut python = Command::new("python3");
        let child = python.args(["-c", WRITER]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.expect("python3 runs");
        let orders = child.stdin.take().expect("it was piped");
        let done = BufReader::new(child.stdout.take().expect("it was piped"));
        Self { child, orders, done }
    }

    /// Has one thing done, and waits until its system calls have returned.
    pub(crate) fn does(&mut self, order: &str) {
        writeln!(self.orders, "{order}").expect("it reads orders");
        let mut line = String::new();
        self.done.read_line(&mut line).expect("it answers");
        assert_eq!(line, "done\n", "{order}");
    }

    /// The same, about a file.
    pub(crate) fn does_to(&mut self, verb: &str, path: &Path) {
        self.does(&format!("{verb} {}", path.display()));
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Ended already is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
