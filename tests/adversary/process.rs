//! The second process as those see it who have operations performed there.

use super::operations::Operation;
use super::operator::{ACK, WORLD};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The second process.
pub(crate) struct Operator {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Operator {
    pub(crate) fn start(world: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this binary has a path"))
            .args(["--exact", "adversary::operator::operate", "--nocapture", "--test-threads=1"])
            .env(WORLD, world)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the operator can be started");
        let input = child.stdin.take().expect("it is piped");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, input, output }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Has operations performed, one after the other.
    pub(crate) fn send(&mut self, operations: &[Operation]) {
        for operation in operations {
            let line = serde_json::to_string(operation).expect("operations are JSON") + "\n";
            self.input.write_all(line.as_bytes()).expect("the operator listens");
        }
    }

    /// How the next operation ended, when it has.
    pub(crate) fn acknowledgement(&mut self) -> String {
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line).expect("the operator speaks");
            assert!(read > 0, "the operator ended");
            if let Some(outcome) =
                line.strip_prefix(ACK).or_else(|| line.split_once(ACK).map(|(_, rest)| rest))
            {
                return outcome.trim_end().to_owned();
            }
        }
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        // It is ours alone, and has nothing to lose.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
