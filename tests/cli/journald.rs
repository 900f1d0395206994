//! A journald of a test's own: what it was told, entry by entry.

use crate::harness::{Place, wait_until};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// One entry: each field once.
pub(super) type Entry = BTreeMap<String, String>;

/// Ends the reader.
const END: &[u8] = b"end";

/// Takes whatever it is told.
pub(super) struct Listening {
    told: Arc<Mutex<Vec<u8>>>,
    entries: Arc<Mutex<Vec<Entry>>>,
    path: PathBuf,
    reader: Option<JoinHandle<()>>,
}

impl Listening {
    pub(super) fn start(place: &Place) -> Self {
        let path = socket(place);
        Self::on(UnixDatagram::bind(&path).expect("a datagram socket"), path)
    }

    /// On a socket that was bound before, with what waits there.
    pub(super) fn on(socket: UnixDatagram, path: PathBuf) -> Self {
        let (told, entries) = <(Arc<Mutex<Vec<u8>>>, Arc<Mutex<Vec<Entry>>>)>::default();
        let (bytes_of, entries_of) = (Arc::clone(&told), Arc::clone(&entries));
        let reader = std::thread::spawn(move || {
            let mut bytes = vec![0; 1 << 20];
            loop {
                let len = socket.recv(&mut bytes).expect("an entry");
                if &bytes[..len] == END {
                    break;
                }
                bytes_of.lock().expect("no panic").extend_from_slice(&bytes[..len]);
                entries_of.lock().expect("no panic").push(parse(&bytes[..len]));
            }
        });
        Self { told, entries, path, reader: Some(reader) }
    }

    /// Every byte so far.
    pub(super) fn told(&self) -> Vec<u8> {
        self.told.lock().expect("no panic").clone()
    }

    /// The first entry whose fields begin so, once it is there.
    pub(super) fn entry(&self, fields: &[(&str, &str)]) -> Entry {
        let mut found = None;
        wait_until(&format!("the journal is told {fields:?}"), || {
            found = self.find(fields);
            found.is_some()
        });
        found.expect("it was waited for")
    }

    pub(super) fn find(&self, fields: &[(&str, &str)]) -> Option<Entry> {
        let has = |entry: &&Entry| {
            fields.iter().all(|(name, value)| entry.get(*name).is_some_and(|found| found.starts_with(value)))
        };
        self.entries.lock().expect("no panic").iter().find(has).cloned()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let sent = UnixDatagram::unbound().and_then(|socket| socket.send_to(END, &self.path));
        if let (Ok(_), Some(reader)) = (sent, self.reader.take()) {
            let ended = reader.join();
            if !std::thread::panicking() {
                ended.expect("it was told entries only");
            }
        }
    }
}

/// Where the journald of this place listens.
pub(super) fn socket(place: &Place) -> PathBuf {
    place.root.join("journal")
}

/// What systemd would say of the file to which the daemon of this place writes its stderr.
pub(super) fn stream_of(place: &Place) -> PathBuf {
    let log = place.home.with_file_name("serve.log");
    std::fs::write(&log, "").expect("a file");
    let file = std::fs::metadata(&log).expect("it exists");
    format!("{}:{}", file.dev(), file.ino()).into()
}

/// By the journal's own protocol: `NAME=value`, or the name and a value of a length that stands before it.
pub(super) fn parse(bytes: &[u8]) -> Entry {
    let mut entry = Entry::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let end = rest.iter().position(|&byte| byte == b'\n').expect("a line");
        let (line, after) = (&rest[..end], &rest[end + 1..]);
        let (name, value) = if let Some(at) = line.iter().position(|&byte| byte == b'=') {
            rest = after;
            (&line[..at], &line[at + 1..])
        } else {
            let len = u64::from_le_bytes(after[..8].try_into().expect("eight bytes")) as usize;
            assert_eq!(after[8 + len], b'\n');
            rest = &after[9 + len..];
            (line, &after[8..8 + len])
        };
        let text = |bytes: &[u8]| std::str::from_utf8(bytes).expect("UTF-8").to_owned();
        let name = text(name);
        let legal = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_';
        assert!(name.len() <= 64 && name.chars().all(legal) && !name.starts_with('_'), "{name}");
        assert!(entry.insert(name, text(value)).is_none(), "{}", bytes.escape_ascii());
    }
    entry
}
