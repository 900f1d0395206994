//! `import --follow`: a session that goes on is registered once, and then what each quiet moment changed.
//!
//! Never all of it again: what a search found is known by the tree as it was when the search was registered, and taking
//! it in a second time would call fresh what has changed since. So the contexts of the transcript before and after are
//! made against the same disk, and only what differs between them is told.

use super::{ImportArgs, Progress, Writer, imported, is_by, print, root, still};
use crate::agent;
use crate::agent::context::Imported;
use crate::agent::reading::Reading;
use crate::agent::transcript::{Transcript, TranscriptError};
use crate::cli::away::{Ended, is_away};
use crate::cli::shell::{Done, Shell, Stop, parse};
use crate::cli::words::{counted, list, text};
use crate::client::Client;
use crate::protocol::context::{Belief, Context};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, Metadata};
use std::io::{self, BufReader, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Between two looks at the file.
const PAUSE: Duration = Duration::from_millis(500);
/// A file that never stops growing is read after so many looks all the same.
const GROWING_MAX: u32 = 8;
/// So much of what was read last must still be there before more is read after it.
const TAIL_BYTES: u64 = 256;

pub(super) fn follow(writer: Writer, args: &ImportArgs, shell: &mut Shell) -> Done {
    let packed = agent::is_packed(&args.file).map_err(|source| failed(&args.file, source))?;
    if packed {
        let name = crate::cli::input::name(&args.file);
        return Err(Stop::failed(format!("{name} is an archive, which does not grow"))
            .remedy("import it without --follow"));
    }
    let root = root(&args.root, args.rebuild)?;
    let mut following = Following::new(writer, args, root);
    loop {
        following.round(shell)?;
        shell.out.still_read()?;
        std::thread::sleep(PAUSE);
    }
}

fn failed(file: &Path, source: io::Error) -> Stop {
    Stop::failed(TranscriptError::Read { path: file.into(), source })
}

/// What a file is told by, from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    file: (u64, u64),
    len: u64,
    changed: (i64, i64),
}

impl Mark {
    fn of(found: &Metadata) -> Self {
        let changed = (found.mtime(), found.mtime_nsec());
        Self { file: (found.dev(), found.ino()), len: found.len(), changed }
    }
}

struct Following<'args> {
    writer: Writer,
    args: &'args ImportArgs,
    root: PathBuf,
    reading: Reading,
    /// The file at the last look, and when it was read last.
    seen: Option<Mark>,
    read: Option<Mark>,
    growing: u32,
    /// The last bytes that were read.
    tail: Vec<u8>,
    /// What the daemon knows: the session, by the transcript as it was then.
    known: Option<(String, Transcript)>,
    /// What was read may not be told yet.
    untold: bool,
    /// The daemon was told once, so that one which is away is waited for.
    began: bool,
    /// What is not to be said twice.
    said: Option<&'static str>,
}

impl<'args> Following<'args> {
    fn new(writer: Writer, args: &'args ImportArgs, root: PathBuf) -> Self {
        Self {
            writer,
            args,
            root,
            reading: Reading::default(),
            seen: None,
            read: None,
            growing: 0,
            tail: Vec::new(),
            known: None,
            untold: false,
            began: false,
            said: None,
        }
    }

    /// One look at the file, and what follows from it.
    fn round(&mut self, shell: &mut Shell) -> Result<(), Stop> {
        match std::fs::metadata(&self.args.file).map(|found| Mark::of(&found)) {
            Ok(mark) => {
                if self.is_quiet(mark) && self.read != Some(mark) {
                    self.read_on(shell)?;
                    self.untold = true;
                }
            }
            Err(error) if self.read.is_none() => return Err(failed(&self.args.file, error)),
            Err(_) => self.say("the transcript is gone; waiting for it to come back", shell),
        }
        if self.untold { self.tell(shell) } else { Ok(()) }
    }

    /// Whether the file was the same at the last look; whoever writes all the time is not waited for.
    fn is_quiet(&mut self, mark: Mark) -> bool {
        let same = self.seen.replace(mark).is_none_or(|seen| seen == mark);
        self.growing = if same { 0 } else { self.growing + 1 };
        same || self.growing.is_multiple_of(GROWING_MAX)
    }

    /// Reads what was added. A file that is another one, or not what was read of it any more, is read from its start.
    fn read_on(&mut self, shell: &mut Shell) -> Result<(), Stop> {
        let path = &self.args.file;
        let failed = |error| failed(path, error);
        let mut file = File::open(path).map_err(failed)?;
        let found = Mark::of(&file.metadata().map_err(failed)?);
        let other = self.read.is_some_and(|read| read.file != found.file);
        if other || !self.goes_on(&file).map_err(failed)? {
            self.said = None;
            self.say("the transcript was replaced; reading it again from its start", shell);
            self.reading = Reading::default();
        }
        file.seek(SeekFrom::Start(self.reading.offset())).map_err(failed)?;
        let mut progress = Progress::new(path);
        let size = found.len;
        let read = self.reading.read(BufReader::new(&mut file), |lines, bytes| {
            progress.tell(agent::Progress { lines, bytes, size });
        });
        progress.end();
        read.map_err(failed)?;
        // As it was opened: what it is by now the next look tells.
        self.read = Some(found);
        self.said = None;
        self.keep_tail(&file).map_err(failed)
    }

    /// Whether the file still has what was read last, where it was.
    fn goes_on(&self, file: &File) -> io::Result<bool> {
        let mut there = vec![0; self.tail.len()];
        let start = self.reading.offset() - self.tail.len() as u64;
        match file.read_exact_at(&mut there, start) {
            Ok(()) => Ok(there == self.tail),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn keep_tail(&mut self, file: &File) -> io::Result<()> {
        let end = self.reading.offset();
        let start = end.saturating_sub(TAIL_BYTES);
        self.tail = vec![0; usize::try_from(end - start).unwrap_or_default()];
        file.read_exact_at(&mut self.tail, start)
    }

    /// Tells the daemon what it does not know yet. One that went away is waited for.
    fn tell(&mut self, shell: &mut Shell) -> Result<(), Stop> {
        let transcript = self.reading.clone().transcript();
        is_by(self.writer, &transcript, self.args)?;
        if !transcript.conversation {
            self.say("there is no conversation in this transcript yet; waiting for one", shell);
            self.untold = false;
            return Ok(());
        }
        let now = imported(&transcript, self.args, &self.root, self.args.rebuild && self.known.is_none())?;
        // One that was only written anew is the same session, and what its searches found is not taken in a second time.
        let told = match &self.known {
            Some((session, before)) if before.session_id == transcript.session_id => {
                let session = session.clone();
                self.record(&session, before, &transcript, now, shell).map(|()| session)
            }
            _ => register(&transcript, &now, shell),
        };
        match told {
            Ok(session) => {
                self.known = Some((session, transcript));
                (self.untold, self.began, self.said) = (false, true, None);
                Ok(())
            }
            Err(Ended::Client(error)) if self.began && is_away(&error) => {
                self.say("the daemon went away; waiting for it to come back", shell);
                Ok(())
            }
            Err(Ended::Client(error)) => Err(error.into()),
            Err(Ended::Stop(stop)) => Err(stop),
        }
    }

    /// What differs from before. The disk may have changed meanwhile, so that both are made against the one there is.
    fn record(
        &self,
        session: &str,
        before: &Transcript,
        transcript: &Transcript,
        now: Imported,
        shell: &mut Shell,
    ) -> Result<(), Ended> {
        let before = imported(before, self.args, &self.root, false)?;
        let change = change(session, &before.context.results, now.context.results);
        if change.results.is_empty() && change.remove.is_empty() {
            return Ok(());
        }
        let answer = ask(shell, "context.record", &change)?;
        let rows = list(&answer, "results");
        if shell.json {
            shell.out.line(json!({
                "session": session,
                "lines": transcript.counts.lines,
                "results": rows,
                "removed": change.remove,
            }))?;
        } else {
            let (new, gone) = (rows.len() as u64, change.remove.len() as u64);
            let stale = rows.iter().filter(|row| row["status"] != "fresh").count();
            let lines = counted(transcript.counts.lines, "line");
            let gone = if gone == 0 { String::new() } else { format!(", {gone} gone") };
            shell
                .out
                .line(format!("{session}: {} new or changed{gone}, of {lines}", counted(new, "source")))?;
            shell.out.line(format!("  {}", still(stale, session)))?;
        }
        shell.out.flush()?;
        Ok(())
    }

    fn say(&mut self, what: &'static str, shell: &Shell) {
        if self.said.replace(what) != Some(what) {
            shell.out.talk(what);
        }
    }
}

/// The whole context, for the first time. Returns the session's name.
fn register(transcript: &Transcript, now: &Imported, shell: &mut Shell) -> Result<String, Ended> {
    let answer = ask(shell, "context.register", &now.context)?;
    print(transcript, now, &answer, shell)?;
    Ok(text(&answer, "session"))
}

fn ask(shell: &Shell, method: &str, context: &Context) -> Result<Value, Ended> {
    let text = Client::connect(&shell.socket()?)?.ask(method, context)?;
    Ok(parse(&text)?)
}

/// The results that are not what they were, and those that are no more. What a result is made of says whether it
/// changed: what was seen, where, and when.
fn change(session: &str, before: &[Belief], now: Vec<Belief>) -> Context {
    let known: BTreeMap<String, Value> = before.iter().map(|told| (id(told), json!(told))).collect();
    let ids: BTreeSet<String> = now.iter().map(id).collect();
    let changed = |told: &Belief| known.get(&id(told)) != Some(&json!(told));
    Context {
        session: Some(session.to_owned()),
        results: now.into_iter().filter(changed).collect(),
        remove: known.keys().filter(|id| !ids.contains(*id)).cloned().collect(),
        ..Context::default()
    }
}

fn id(told: &Belief) -> String {
    told.id.clone().unwrap_or_default()
}
