//! STUB
use crate::protocol::fork::Fork;
use crate::protocol::fork::record::{Isolated, Violation};
use crate::world::dart::Died;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;

pub(in crate::daemon) struct Finding {
    pub no: u64,
    pub state: Isolated,
    pub violation: Violation,
}
pub(in crate::daemon) struct Isolation;
impl Isolation {
    pub fn start(
        _forks: &Path,
        _died: &Died,
    ) -> Result<(Self, mpsc::UnboundedReceiver<Finding>), std::io::Error> {
        Ok((Self, mpsc::unbounded_channel().1))
    }
    pub async fn guard(&self, _fork: &Fork, _parents: &[PathBuf]) -> Result<(), std::io::Error> {
        Ok(())
    }
    pub fn forget(&self, _no: u64) {}
    pub async fn allow(&self, _no: u64, _path: &Path, _valid: Duration) {}
    pub fn denied(&self, _no: u64) -> u64 {
        0
    }
    pub fn deny(&self, _no: u64) {}
    pub async fn begin(&self, _no: u64) -> u64 {
        0
    }
    pub async fn end(&self, _no: u64, _exec: u64) {}
    pub fn running(&self, _no: u64) -> usize {
        0
    }
    pub async fn settled(&self) {}
    pub fn excuse(&self, _no: u64) -> Excused {
        Excused
    }
}
pub(in crate::daemon) struct Excused;
